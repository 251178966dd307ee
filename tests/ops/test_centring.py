"""A shift said by weights: exact where a constant input exists, and in the mean everywhere."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from killick.ops.centring import constant_direction, shifted


def states(seed: int, rows: int = 40, hidden: int = 6) -> torch.Tensor:
    draws = torch.Generator().manual_seed(seed)
    return torch.randn(rows, hidden, generator=draws) + 3 * torch.randn(hidden, generator=draws)


def test_an_input_that_is_always_two_gets_weight_a_half() -> None:
    """A constant 2 times 1/2 is 1 in every row; nothing varies, so nothing else is used (ridge: to 1e-3)."""
    rows = torch.cat((torch.full((40, 1), 2.0), states(0) - states(0).mean(0)), 1)
    found = constant_direction(rows, ridge=1e-9)
    assert_close(found, torch.tensor([0.5] + [0.0] * 6, dtype=torch.float64), atol=1e-6, rtol=0)


@given(st.integers(0, 1000))
def test_the_mean_is_one(seed: int) -> None:
    rows = states(seed)
    assert abs(float((rows.double() @ constant_direction(rows)).mean()) - 1) < 1e-9


def test_no_other_weights_with_mean_one_vary_less() -> None:
    """200 random ones, scaled to mean 1."""
    rows = states(1)
    least = (rows.double() @ constant_direction(rows, ridge=1e-9)).var()
    others = torch.randn(200, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    others = others / (others @ rows.double().mean(0))[:, None]
    assert bool(((others @ rows.double().T).var(1) >= least).all())


@given(st.integers(0, 1000), st.floats(-5, 5), st.floats(0.1, 5))
def test_scores_are_shifted_in_the_mean_and_scaled(seed: int, mean: float, deviation: float) -> None:
    rows, weight = states(seed), torch.randn(6, generator=torch.Generator().manual_seed(seed))
    before = rows.double() @ weight.double()
    after = rows.double() @ shifted(weight, rows, mean=mean, deviation=deviation)
    assert_close(after.mean(), (before.mean() - mean) / deviation, atol=1e-8, rtol=1e-8)
