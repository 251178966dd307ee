"""Layers: the same start as torch's own, from a generator instead of the global seed."""

import pytest
import torch
from torch import nn

from killick.rewards.layers import linear, mlp


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("inputs", "outputs"), [(4, 16), (16, 1), (1, 1), (64, 64)])
def test_a_linear_layer_starts_as_torch_starts_it_under_the_same_seed(inputs: int, outputs: int) -> None:
    """Bit for bit, weight first, then bias."""
    with torch.random.fork_rng():
        torch.manual_seed(4)
        expected = nn.Linear(inputs, outputs)
    layer = linear(inputs, outputs, generator=seeded(4))
    assert torch.equal(layer.weight, expected.weight)
    assert torch.equal(layer.bias, expected.bias)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_a_network_computes_what_torch_computes_under_the_same_seed(activation) -> None:
    """Inputs - hidden - 1, layers drawn in order."""
    with torch.random.fork_rng():
        torch.manual_seed(4)
        expected = nn.Sequential(nn.Linear(4, 16), nn.ReLU() if activation == "relu" else nn.Tanh(), nn.Linear(16, 1))
    x = torch.randn(10, 4, generator=seeded(0))
    assert torch.equal(mlp(4, 16, generator=seeded(4), activation=activation)(x), expected(x))


def test_without_a_hidden_width_the_network_is_one_linear_layer() -> None:
    """f(x + y) - f(x) - f(y) + f(0) = 0, to float32 rounding."""
    network, zero = mlp(3, None, generator=seeded(1)), torch.zeros(5, 3)
    x, y = torch.randn(2, 5, 3, generator=seeded(2))
    assert float((network(x + y) - network(x) - network(y) + network(zero)).detach().abs().max()) < 1e-5


def test_the_global_seed_is_left_alone_and_the_generator_moves_on() -> None:
    """Two layers from one generator differ; from two generators of one seed they agree."""
    before, generator = torch.random.get_rng_state(), seeded(3)
    first, second = linear(4, 4, generator=generator), linear(4, 4, generator=generator)
    assert torch.equal(before, torch.random.get_rng_state())
    assert not torch.equal(first.weight, second.weight)
    assert torch.equal(first.weight, linear(4, 4, generator=seeded(3)).weight)
