"""What a saved state holds stays as it was, and a critic never trains the judge it was copied from (O-41, O-45)."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
import torch

from killick.algorithms.ppo import PPOState, ppo
from killick.algorithms.reinforce import ReinforceConfig, ReinforceState, reinforce
from killick.algorithms.sft import SFTConfig, SFTState, sft
from killick.models.transformer import Transformer, TransformerConfig
from killick.models.value import Critic
from killick.ops.losses import value_loss
from killick.rewards.fit import FitConfig, FitState, fit
from killick.rewards.pooled import Pooled
from killick.types import Preference, Rollout
from killick.worlds.arithmetic import Arithmetic
from learners import learner


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def started(kind: str) -> tuple[Any, Callable[[], Any]]:
    """A fresh state and its loop."""
    made, world = learner("transformer"), Arithmetic()
    if kind == "ppo":
        state: Any = made.state(batch=8, decay=True)
        return state, lambda: ppo(state, made.reward, prompts=made.prompts)
    if kind == "reinforce":
        reference = deepcopy(made.policy).requires_grad_(False)
        state = ReinforceState(made.policy, reference, ReinforceConfig(4, batch=4, n=2), seeded())
        return state, lambda: reinforce(state, made.reward, prompts=made.prompts)
    if kind == "sft":
        state = SFTState(made.policy, SFTConfig(steps=4, batch=8), seeded())
        return state, lambda: sft(state, world.demonstrations)
    rollout = world.demonstrations(8, seeded(1))
    pairs = Preference.hard(rollout, torch.arange(4), torch.arange(4, 8))
    state = FitState(Pooled(14, 4, seeded(2)), FitConfig(steps=4, batch=2), seeded())
    return state, lambda: fit(state, pairs)


def flat(saved: Any) -> list[Any]:
    """All leaves of a nest of dicts and lists, tensors as lists of numbers."""
    if isinstance(saved, torch.Tensor):
        return [saved.tolist()]
    if isinstance(saved, Mapping):
        return [leaf for key in sorted(saved) for leaf in flat(saved[key])]
    return [leaf for inner in saved for leaf in flat(inner)] if isinstance(saved, list) else [saved]


@pytest.mark.parametrize("kind", ["ppo", "reinforce", "sft", "fit"])
def test_a_saved_state_does_not_move_while_training_goes_on(kind: str) -> None:
    state, steps = started(kind)
    list(islice(steps(), 2))
    saved = state.state_dict()
    before = flat(deepcopy(saved))
    list(steps())
    after = state.state_dict()
    assert flat(saved) == before
    changed = [name for name in saved if flat(saved[name]) != flat(after[name])]
    still = {"beta", "reference_digest"}  # a leash without a target, and the anchor
    assert set(changed) == set(saved) - still


class Judge(torch.nn.Module):
    """A reward model over our own transformer: its reading at the last real token is the score."""

    def __init__(self) -> None:
        super().__init__()
        self.critic = Critic(Transformer(TransformerConfig(14, 1, context=16, hidden=16, feed_forward=32), seeded(4)))

    def forward(self, rollout: Rollout) -> torch.Tensor:
        return self.critic(rollout).gather(1, rollout.lengths[:, None] - 1)[:, 0].detach()


def test_a_critic_started_from_the_reward_model_leaves_the_judge_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # O-41: five iterations; the critic's targets are read once, when the rollout is made.
    made, judge = learner("transformer"), Judge()
    critic = Critic.from_network(judge.critic.network)
    config = replace(made.config, iterations=5, epochs=3, minibatches=1, batch=16)
    state = PPOState(made.policy, deepcopy(made.policy), critic, config, seeded())
    fixed = Arithmetic().demonstrations(16, seeded(9))
    scores, readings = judge(fixed), critic(fixed).detach()
    assert scores.std() > 0
    stored: list[torch.Tensor] = []
    olds: list[torch.Tensor] = []

    def noted(values: torch.Tensor, returns: torch.Tensor, **more: Any) -> torch.Tensor:
        olds.append(more["old"])
        return value_loss(values, returns, **more)

    def kept(module: Any, arguments: tuple[Rollout], values: torch.Tensor) -> None:
        if not torch.is_grad_enabled():
            stored.append(values.where(arguments[0].mask, 0.0))

    critic.register_forward_hook(kept)
    monkeypatch.setattr("killick.algorithms.ppo.value_loss", noted)
    list(ppo(state, judge, prompts=made.prompts))
    assert (len(stored), len(olds)) == (5, 15)
    for iteration, values in enumerate(stored):
        assert all(torch.equal(old, values) for old in olds[3 * iteration : 3 * iteration + 3])
    assert torch.equal(judge(fixed), scores)
    with torch.no_grad():
        assert float((critic(fixed) - readings).abs().max()) > 1e-3
