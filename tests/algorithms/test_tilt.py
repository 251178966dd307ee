import math
from typing import cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from killick.algorithms.tilt import log_partition, tilt
from killick.ops.kl import exact_kl
from killick.types import NonFinite, Refusal
from killick.worlds.listed import FIVE, TWO

REFERENCE, REWARD, GOLD = FIVE.reference.log(), FIVE.reward, cast(torch.Tensor, FIVE.gold)


@pytest.mark.parametrize(
    ("beta", "proxy", "gold", "kl", "gaming"),
    [
        (10, 0.4835, 0.3377, 0.0027, 0.0561),
        (2, 0.6678, 0.4486, 0.0563, 0.0843),
        (1, 0.8335, 0.4993, 0.1779, 0.1286),
        (0.5, 1.0349, 0.3904, 0.4709, 0.2479),
        (0.25, 1.3117, -0.1856, 1.2907, 0.5759),
        (0.1, 1.5904, -0.9693, 2.8846, 0.9845),
    ],
)
def test_the_table_of_five_answers_comes_out(beta: float, proxy: float, gold: float, kl: float, gaming: float) -> None:
    policy = tilt(REFERENCE, REWARD, beta=beta)
    p = policy.exp()
    found = (p @ REWARD, p @ GOLD, exact_kl(policy, REFERENCE), p[4])
    assert [float(x) for x in found] == pytest.approx([proxy, gold, kl, gaming], abs=5.1e-5)


@pytest.mark.parametrize(("beta", "second"), [(10, 0.216), (1, 0.405), (0.5, 0.649), (0.25, 0.932)])
def test_the_table_of_two_answers_comes_out(beta: float, second: float) -> None:
    policy = tilt(TWO.reference.log(), TWO.reward, beta=beta).exp()
    assert policy.tolist() == pytest.approx([1 - second, second], abs=5.1e-4)


@pytest.mark.parametrize(("beta", "value"), [(10, 0.456964), (1, 0.655616), (0.1, 1.301988)])
def test_beta_log_z_is_the_value_of_the_optimum(beta: float, value: float) -> None:
    policy = tilt(REFERENCE, REWARD, beta=beta)
    assert float(beta * log_partition(REFERENCE, REWARD, beta=beta)) == pytest.approx(value, abs=1e-6)
    assert float(policy.exp() @ REWARD - beta * exact_kl(policy, REFERENCE)) == pytest.approx(value, abs=1e-6)


def test_at_beta_zero_the_best_answers_share_equally() -> None:
    reference = torch.tensor([[0.7, 0.2, 0.1, 0.0]]).log()
    policy = tilt(reference, torch.tensor([[1.0, 2.0, 2.0, 9.0]]), beta=0.0)
    # Answer 3 scores most, but the reference never gives it.
    assert policy.exp().tolist() == [[0.0, 0.5, 0.5, 0.0]]


@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_policy_is_as_precise_as_what_it_is_made_of(beta: float, dtype: torch.dtype) -> None:
    assert tilt(REFERENCE.to(dtype), REWARD.to(dtype), beta=beta).dtype == dtype


def test_scores_that_would_overflow_exp_give_the_right_limit() -> None:
    policy = tilt(torch.tensor([0.5, 0.5]).log(), torch.tensor([1e4, 1e4 + 1.0]), beta=1e-3).exp()
    assert policy.tolist() == pytest.approx([0.0, 1.0], abs=1e-6)
    huge = tilt(torch.tensor([0.5, 0.5]).log(), torch.tensor([1e30, 2e30]), beta=1e-10).exp()
    assert huge.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_is_refused_where_the_answer_can_be_given(score: float, beta: float) -> None:
    scores = torch.tensor([[1.0, 2.0], [1.0, score]])
    with pytest.raises(NonFinite, match=r"scores are not finite in 1 of 2 rows \(row 1\)"):
        tilt(torch.tensor([[0.5, 0.5], [0.5, 0.5]]).log(), scores, beta=beta)
    policy = tilt(torch.tensor([[0.5, 0.5], [1.0, 0.0]]).log(), scores, beta=beta)
    assert policy[1].exp().tolist() == [1.0, 0.0]


def test_at_beta_zero_every_row_has_its_own_best() -> None:
    policy = tilt(torch.full((3, 2), 0.5).log(), torch.tensor([[1e38, -1e38], [0.0, 1e-30], [-5.0, -5.0]]), beta=0.0)
    assert policy.exp().tolist() == [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]


@pytest.mark.parametrize("beta", [-1.0, math.nan, math.inf])
def test_a_beta_that_cannot_be_is_refused(beta: float) -> None:
    with pytest.raises(Refusal, match="beta"):
        tilt(REFERENCE, REWARD, beta=beta)
    with pytest.raises(Refusal, match="beta"):
        log_partition(REFERENCE, REWARD, beta=beta)


@settings(max_examples=50, deadline=None)
@given(st.floats(0.05, 20), st.floats(-100, 100), st.integers(0, 10_000))
def test_no_policy_beats_the_tilted_one_and_a_shift_of_the_reward_changes_nothing(
    beta: float, shift: float, seed: int
) -> None:
    other = torch.randn(5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).log_softmax(-1)
    policy = tilt(REFERENCE, REWARD, beta=beta)

    def worth(log_probs: torch.Tensor) -> float:
        return float(log_probs.exp() @ REWARD - beta * exact_kl(log_probs, REFERENCE))

    assert worth(other) <= worth(policy) + 1e-9
    assert torch.allclose(tilt(REFERENCE, REWARD + shift, beta=beta), policy, atol=1e-8)
