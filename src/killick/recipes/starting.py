"""What recipes with a transformer begin with: a policy that imitated demonstrations, and that policy on a leash."""

from collections.abc import Generator, Mapping
from copy import deepcopy
from dataclasses import asdict
from typing import Any, Protocol, runtime_checkable

import torch

from killick.algorithms.leash import Leash
from killick.algorithms.ppo import PPOState
from killick.algorithms.ppo_config import PPOConfig
from killick.models.policy import TransformerPolicy
from killick.models.transformer import Transformer, TransformerConfig
from killick.recipes.cells import Cell
from killick.recipes.ledger import Note
from killick.rundir.cache import cached
from killick.rundir.seeds import stage_generator
from killick.types import Value, World, check_speaks


@runtime_checkable
class Build(Protocol):
    """Trains a policy; returns {"policy": its state, "found": plain values}."""

    def __call__(
        self, policy: TransformerPolicy, /, *, generator: torch.Generator
    ) -> Generator[Note, None, dict[str, Any]]:
        """Move the policy in place, telling how it goes."""
        ...


def fine_tuned(
    stage: str, settings: Mapping[str, Any], *, network: TransformerConfig, world: World, build: Build
) -> Generator[Note, None, tuple[TransformerPolicy, dict[str, Any]]]:
    """A fresh transformer after `build`, or as the cache kept it; returns it and what was found on the way.

    Args:
        stage: its name in the cache.
        settings: all that decides the result beside the network; `seed` and `device` are among them.
        network: the policy's shape.
        world: whose tokens it has to speak.
        build: trains the policy that it is given.

    Raises:
        Refusal: where the network cannot speak the world.
    """
    generator = stage_generator(settings["seed"], "sft", device=settings["device"])
    policy = TransformerPolicy(Transformer(network, generator), world.vocabulary)
    check_speaks(policy, world)
    whole = {**settings, "network": asdict(network)}
    saved = yield from cached(stage, whole, build=lambda: build(policy, generator=generator))
    policy.load_state_dict(saved["policy"])
    return policy, saved["found"]


def leashed(
    cell: Cell, leash: Leash, *, policy: TransformerPolicy, config: PPOConfig, device: str, critic: Value | None = None
) -> PPOState:
    """PPO of one cell, not yet moved: the policy begins as a copy of its reference and draws what only it draws."""
    generator = stage_generator(cell.seed, f"ppo {cell.arm}", device=device)
    return PPOState(deepcopy(policy), deepcopy(policy), critic, config, generator, leash)
