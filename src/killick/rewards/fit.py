"""Fit a reward model to preferences by the Bradley-Terry loss, put it on a scale, and ask how often it is right."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from killick.ops.losses import bradley_terry, centring, group_weights
from killick.ops.stats import pair_accuracy
from killick.optimiser import Adam
from killick.state import restore, snapshot
from killick.types import Preference, Refusal, Reward, Rollout, check_finite


@runtime_checkable
class RewardModel(Protocol):
    """What can be fitted: `score(encode(rollout))` is the reward, and only `score` has weights."""

    def encode(self, rollout: Rollout) -> Any:
        """What of a response the model reads, computed once; rows are picked from it by number."""
        ...

    def score(self, encoded: Any) -> Float[Tensor, " batch"]:
        """One number per row, with gradient."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]:
        """What the fit moves."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Its weights."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> Any:
        """Take them back."""
        ...


@dataclass(frozen=True)
class FitConfig:
    """Settings of a fit.

    Args:
        steps: optimiser steps.
        batch: rankings (or single pairs) a step, drawn with replacement, each with all its pairs; None takes all.
        learning_rate: Adam's.
        l2: what the loss adds for each unit of squared weight; more of it holds the scores together.
        centre: what it adds for each unit of the squared sum of a pair's scores, whose zero nothing else fixes.
    """

    steps: int = 100
    batch: int | None = None
    learning_rate: float = 0.01
    l2: float = 0.0
    centre: float = 0.0

    def validate(self) -> None:
        """Refuse settings that cannot fit.

        Raises:
            Refusal: naming the field.
        """
        if self.steps < 1 or (self.batch is not None and self.batch < 1):
            raise Refusal(f"A fit needs steps and batch of at least 1, not steps {self.steps} and batch {self.batch}.")
        if not 0 < self.learning_rate < float("inf"):
            raise Refusal(f"A fit needs a positive learning_rate, not {self.learning_rate:g}.")
        if not 0 <= self.l2 < float("inf"):
            raise Refusal(f"A fit needs an l2 of 0 or more, not {self.l2:g}.")
        if not 0 <= self.centre < float("inf"):
            raise Refusal(f"A fit needs a centre of 0 or more, not {self.centre:g}.")


class FitState:
    """Everything that changes during a fit.

    Args:
        model: fitted in place.
        config: settings.
        generator: minibatches are drawn from it.
    """

    PARTS = ("model", "optimiser", "generator", "step")

    def __init__(self, model: RewardModel, config: FitConfig, generator: torch.Generator):
        config.validate()
        self.model, self.config, self.generator, self.step = model, config, generator, 0
        self.optimiser = Adam(model.parameters(), config.learning_rate)

    def state_dict(self) -> dict[str, Any]:
        """The state as tensors and plain types."""
        return snapshot(self, self.PARTS)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave; a missing part is a KeyError."""
        restore(self, self.PARTS, saved=state)


@dataclass(frozen=True)
class FitStep:
    """One optimiser step: its number from 0, and the loss before it in nats per pair, without l2 and centre."""

    step: int
    loss: float


def fit(state: FitState, preference: Preference) -> Iterator[FitStep]:
    """Run the remaining steps, yielding each one's loss.

    Args:
        state: moved in place.
        preference: judged pairs; each response is encoded once, however many pairs it stands in.

    Raises:
        Refusal: where there is no pair.
        NonFinite: where the loss is no number.
    """
    if not len(preference):
        raise Refusal("There is no pair to fit: every ranking holds one response, or ties only.")
    config, model, device = state.config, state.model, preference.chosen.device
    with torch.no_grad():
        encoded = model.encode(preference.rollout)
    numbers, group = preference.group.unique(return_inverse=True)
    pairs, weights = preference, group_weights(group, torch.ones_like(numbers))
    read = encoded[torch.cat((pairs.chosen, pairs.rejected))]
    while state.step < config.steps:
        if config.batch is not None:
            drawn = torch.randint(len(numbers), (config.batch,), generator=state.generator, device=device)
            weights = group_weights(group, drawn.bincount(minlength=len(numbers)))
            rows = weights.nonzero()[:, 0]
            pairs, weights = preference.pairs(rows), weights[rows]
            read = encoded[torch.cat((pairs.chosen, pairs.rejected))]
        chosen, rejected = model.score(read).chunk(2)
        loss = (weights * bradley_terry(chosen, rejected, label=pairs.label, margin=pairs.margin)).sum()
        check_finite("the reward model's loss is", loss.detach()[None], step=state.step)
        state.optimiser.zero_grad()
        pull = config.centre * (weights * centring(chosen, rejected)).sum() if config.centre else 0.0
        penalty = sum(weight.square().sum() for weight in state.optimiser.parameters) if config.l2 else 0.0
        (loss + pull + config.l2 * penalty).backward()
        state.optimiser.step()
        state.step += 1
        yield FitStep(state.step - 1, float(loss.detach()))


@torch.no_grad()
def accuracy(reward: Reward, preference: Preference, *, tie_credit: float = 0.5) -> float:
    """Share of pairs whose chosen response scores higher; an exact tie earns half unless told otherwise."""
    scores = reward(preference.rollout)
    return float(
        pair_accuracy(scores[preference.chosen].cpu(), scores[preference.rejected].cpu(), tie_credit=tie_credit)
    )


class Standardised(nn.Module):
    """A `Reward` on the scale of a reference: (score - mean) / deviation.

    Args:
        model: the reward before scaling.
        mean, deviation: of its scores on the reference's responses, saved with the weights (O-08).
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, model: nn.Module, mean: float, deviation: float):
        super().__init__()
        self.model = model
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("deviation", torch.tensor(deviation))

    def forward(self, rollout: Rollout) -> Float[Tensor, " batch"]:
        """One score per response, in deviations of the reference."""
        return (self.model(rollout) - self.mean) / self.deviation


@torch.no_grad()
def standardise(model: nn.Module, rollout: Rollout, *, weights: Float[Tensor, " batch"] | None = None) -> Standardised:
    """Scale a reward to mean 0 and population deviation 1 on a reference's responses; weights of the model freeze.

    Args:
        model: a fitted reward.
        rollout: the reference's responses.
        weights: their probabilities where the reference is known exactly; None counts each response once.

    Raises:
        Refusal: where all scores are equal: such a reward prefers nothing.
    """
    scores = model(rollout).cpu().double()
    check_finite("scores on the reference's responses are", scores)
    share = torch.ones_like(scores) if weights is None else weights.cpu().double()
    share = share / share.sum()
    mean = (share * scores).sum()
    deviation = (share * (scores - mean).square()).sum().sqrt()
    if not deviation > 1e-9 * mean.abs().clamp(min=1.0):
        raise Refusal("The reward model gives every response the same score, so it cannot be put on a scale.")
    return Standardised(model.requires_grad_(False), float(mean), float(deviation))
