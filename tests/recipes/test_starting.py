"""What recipes begin with: a policy out of the cache or freshly built, and PPO that stands at its reference."""

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest
import torch

from killick.algorithms.leash import Leash
from killick.algorithms.ppo_config import PPOConfig
from killick.models.policy import TransformerPolicy
from killick.models.transformer import TransformerConfig
from killick.recipes.cells import Cell
from killick.recipes.ledger import Note
from killick.recipes.starting import fine_tuned, leashed
from killick.types import Refusal
from killick.worlds.emphasis import Emphasis

NETWORK = TransformerConfig(25, 24, context=13, hidden=8, layers=1, heads=2, feed_forward=8)
SETTINGS = {"seed": 3, "device": "cpu"}


class Building:
    """Adds 1 to the head's bias, and counts how often it was asked."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, policy: TransformerPolicy, generator: torch.Generator) -> Generator[Note, None, dict[str, Any]]:
        self.times += 1
        yield Note("building")
        with torch.no_grad():
            policy.network.head.bias.add_(1)
        return {"policy": policy.state_dict(), "found": {"draw": float(torch.rand(1, generator=generator))}}


def ran(stage: str, build: Building, **settings: Any) -> tuple[TransformerPolicy, dict[str, Any]]:
    """The stage's result, run to its end."""
    network = settings.pop("network", NETWORK)
    loop = fine_tuned(stage, SETTINGS | settings, network=network, world=Emphasis(), build=build)
    while True:
        try:
            next(loop)
        except StopIteration as stop:
            policy, found = stop.value
            return policy, found


def test_a_stage_is_built_once_and_comes_out_of_the_cache_the_same() -> None:
    """Weights bit for bit, and what was found."""
    build = Building()
    first, found = ran("starting-a", build)
    again, kept = ran("starting-a", build)
    assert (build.times, kept) == (1, found)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))


@pytest.mark.parametrize("change", [{"seed": 4}, {"sft": 1}, {"network": replace(NETWORK, feed_forward=9)}])
def test_another_seed_setting_or_network_is_another_stage(change: dict[str, Any]) -> None:
    build, stage = Building(), f"starting-{next(iter(change))}"
    ran(stage, build)
    ran(stage, build, **change)
    assert build.times == 2


def test_a_network_that_cannot_speak_is_refused_before_anything_is_built() -> None:
    """Twelve outputs have no emphasis token, which is number 12."""
    build = Building()
    with pytest.raises(Refusal, match="12 outputs, the vocabulary 24 tokens"):
        ran("starting-small", build, network=TransformerConfig(25, 12, context=13))
    assert build.times == 0


def test_a_leashed_policy_begins_as_its_reference_and_leaves_the_original_alone() -> None:
    """Three networks: moving one moves no other; the draws are those of the arm and the seed alone."""
    policy, _ = ran("starting-b", Building())
    states = [leashed(Cell(arm, seed, 1), Leash(0.5), policy=policy, config=PPOConfig(), device="cpu")
              for arm, seed in (("beta=0", 1), ("beta=0", 1), ("beta=0", 2), ("beta=1", 1))]  # fmt: skip
    state = states[0]
    assert (state.beta, state.value) == (0.5, None)
    with torch.no_grad():
        next(state.policy.parameters()).add_(1)
    assert torch.equal(next(state.reference.parameters()), next(policy.parameters()))
    assert not torch.equal(next(state.policy.parameters()), next(policy.parameters()))
    draws = [float(torch.rand(1, generator=each.generator)) for each in states]
    assert draws[0] == draws[1]
    assert len(set(draws)) == 3
