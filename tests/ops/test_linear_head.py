"""The linear head at its optimum: the closed form of one pair, the slope at zero, the same answer as torch's L-BFGS."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from killick.ops.linear_head import newton
from killick.ops.losses import bradley_terry, centring


def drawn(seed: int, *, pairs: int, features: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Differences, sums, weights, labels from one half to one, margins."""
    draws = torch.Generator().manual_seed(seed)
    weights = torch.rand(pairs, generator=draws, dtype=torch.double)
    return (
        torch.randn(pairs, features, generator=draws),
        torch.randn(pairs, features, generator=draws),
        weights / weights.sum(),
        0.5 + torch.rand(pairs, generator=draws) / 2,
        torch.rand(pairs, generator=draws),
    )


def objective(w: Tensor, data: tuple[Tensor, Tensor, Tensor, Tensor, Tensor], *, l2: float, centre: float) -> Tensor:
    x, s, weights, label, margin = data
    first, second = (s.double() @ w + x.double() @ w) / 2, (s.double() @ w - x.double() @ w) / 2
    loss = bradley_terry(first, second, label=label.double(), margin=margin.double()) + centre * centring(first, second)
    return (weights * loss).sum() + l2 * w.square().sum()


def test_one_pair_one_feature() -> None:
    """One pair that differs by 1: the slope 2 l2 w = sigma(-w). At w = 1 that is l2 = sigma(-1) / 2 = .1344707."""
    one = torch.ones(1)
    w = newton(
        torch.ones(1, 1), torch.zeros(1, 1), weights=one, label=one, margin=0 * one, l2=0.5 / (1 + torch.e), centre=0.0
    )
    assert_close(w, torch.ones(1, dtype=torch.double), atol=1e-6, rtol=0)


def test_a_soft_label_without_decay_to_speak_of_gives_its_log_odds() -> None:
    """Label .8, difference 1: log(.8 / .2) = 1.386294; a margin of .3 is added to it."""
    one = torch.ones(1)
    for margin in (0.0, 0.3):
        w = newton(
            torch.ones(1, 1), torch.zeros(1, 1), weights=one, label=0.8 * one, margin=margin * one, l2=1e-9, centre=0.0
        )
        assert_close(w, torch.tensor([1.386294 + margin]).double(), atol=1e-5, rtol=0)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 8), st.sampled_from([0.01, 0.1, 3.0]),
       st.sampled_from([0.0, 0.01, 1.0]))  # fmt: skip
def test_the_slope_is_zero_there(seed: int, pairs: int, features: int, l2: float, centre: float) -> None:
    data = drawn(seed, pairs=pairs, features=features)
    w = newton(data[0], data[1], weights=data[2], label=data[3], margin=data[4], l2=l2, centre=centre).requires_grad_()
    (slope,) = torch.autograd.grad(objective(w, data, l2=l2, centre=centre), w)
    assert slope.abs().max() < 1e-7


def test_pairs_in_blocks_give_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    data = drawn(3, pairs=50, features=4)
    whole = newton(data[0], data[1], weights=data[2], label=data[3], margin=data[4], l2=0.1, centre=0.1)
    monkeypatch.setattr("killick.ops.linear_head.ROWS", 7)
    parts = newton(data[0], data[1], weights=data[2], label=data[3], margin=data[4], l2=0.1, centre=0.1)
    assert_close(parts, whole, atol=1e-9, rtol=0)


def test_differences_of_thousands_end_somewhere() -> None:
    """Where a whole step overshoots it is halved; nothing is NaN (O-01)."""
    x = torch.tensor([[1000.0], [-999.0]])
    half = torch.full((2,), 0.5)
    w = newton(x, 0 * x, weights=half, label=torch.ones(2), margin=torch.zeros(2), l2=1e-6, centre=0.0)
    assert torch.isfinite(w).all()
    assert 0 < float(w) < 0.01
