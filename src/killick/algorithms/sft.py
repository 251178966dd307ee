"""Supervised fine-tuning: raise the likelihood of demonstrations. The caller stops when it has seen enough."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from killick.ops.losses import negative_log_likelihood
from killick.optimiser import Adam
from killick.state import restore, snapshot
from killick.types import Demonstrations, Policy, Refusal, check_finite


@dataclass(frozen=True)
class SFTConfig:
    """Settings of supervised fine-tuning.

    Args:
        steps: optimiser steps at most.
        batch: demonstrations a step, drawn afresh.
        learning_rate: Adam's, after the warm-up.
        warmup: steps over which the rate rises linearly.
    """

    steps: int = 800
    batch: int = 256
    learning_rate: float = 2e-3
    warmup: int = 0

    def validate(self) -> None:
        """Refuse settings that cannot train.

        Raises:
            Refusal: naming the field.
        """
        if self.steps < 1 or self.batch < 1 or self.warmup < 0:
            asked = f"steps {self.steps}, batch {self.batch}, warmup {self.warmup}"
            raise Refusal(f"SFT needs steps and batch of at least 1 and a warmup of 0 or more, not {asked}.")
        if not 0 < self.learning_rate < float("inf"):
            raise Refusal(f"SFT needs a positive learning_rate, not {self.learning_rate:g}.")


class SFTState:
    """Everything that changes while SFT runs.

    Args:
        policy: optimised in place.
        config: settings.
        generator: the demonstrations are drawn from it.
    """

    PARTS = ("policy", "optimiser", "generator", "step")

    def __init__(self, policy: Policy, config: SFTConfig, generator: torch.Generator):
        config.validate()
        self.policy, self.config, self.generator, self.step = policy, config, generator, 0
        self.optimiser = Adam(policy.parameters(), config.learning_rate)

    def state_dict(self) -> dict[str, Any]:
        """The state as tensors and plain types."""
        return snapshot(self, self.PARTS)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave; a missing part is a KeyError."""
        restore(self, self.PARTS, saved=state)


@dataclass(frozen=True)
class SFTStep:
    """One optimiser step: its number from 0, and the loss before it in nats per token."""

    step: int
    loss: float


def sft(state: SFTState, demonstrations: Demonstrations) -> Iterator[SFTStep]:
    """Run the remaining steps, yielding each one's loss.

    Args:
        state: moved in place.
        demonstrations: (count, generator) -> rollout, called anew each step.

    Raises:
        NonFinite: where the loss is no number.
    """
    config = state.config
    while state.step < config.steps:
        rollout = demonstrations(config.batch, state.generator)
        loss = negative_log_likelihood(state.policy.logprobs(rollout)[0], rollout.mask)
        check_finite("the SFT loss is", loss.detach()[None], step=state.step)
        state.optimiser.zero_grad()
        loss.backward()
        rate = min(1.0, (state.step + 1) / config.warmup) if config.warmup else 1.0
        state.optimiser.learning_rate = config.learning_rate * rate
        state.optimiser.step()
        state.step += 1
        yield SFTStep(state.step - 1, float(loss.detach()))
