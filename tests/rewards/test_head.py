"""Head: a network on given features, nothing more."""

import torch
from torch import nn
from torch.testing import assert_close

from killick.rewards.head import Head
from killick.rewards.layers import mlp
from killick.worlds.answers import Answers

world = Answers()


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_score_is_the_network_on_the_features() -> None:
    """Weights (3, -8, -1.5, 1) and bias 2 on what is seen of all 32 answers."""
    network = nn.Linear(4, 1)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[3.0, -8.0, -1.5, 1.0]]))
        network.bias.fill_(2.0)
    rollout = world.everything()
    expected = world.seen.view(32, 4) @ torch.tensor([3.0, -8.0, -1.5, 1.0]) + 2
    assert_close(Head(world.features, network)(rollout).detach(), expected)


def test_encode_and_score_together_are_the_reward() -> None:
    """What a fit trains is what is called later."""
    head = Head(world.features, mlp(4, 16, generator=seeded(4), activation="tanh"))
    rollout = world.everything()
    assert torch.equal(head.score(head.encode(rollout)), head(rollout))


def test_only_the_network_has_weights() -> None:
    """Features are frozen: one weight matrix and bias for each of the two layers."""
    head = Head(world.features, mlp(4, 16, generator=seeded(4), activation="tanh"))
    assert sum(p.numel() for p in head.parameters()) == 4 * 16 + 16 + 16 + 1
    assert sorted(head.state_dict()) == ["network.0.bias", "network.0.weight", "network.2.bias", "network.2.weight"]


def test_features_are_read_once_per_call() -> None:
    """They may be a language model's states, and dear."""
    calls = []

    def features(rollout):
        calls.append(len(rollout))
        return world.features(rollout)

    Head(features, mlp(4, None, generator=seeded(0)))(world.everything())
    assert calls == [32]
