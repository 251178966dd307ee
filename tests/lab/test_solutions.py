"""The solutions are killick's own arithmetic in the words of the exercises; the rest is checked by hand here."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import tensor

from killick.lab import solutions
from killick.types import Refusal


def test_the_loss_is_a_mean() -> None:
    """log 2 at equal scores, and log(4/3) at log 3 apart: (.6931 + .2877) / 2."""
    loss = solutions.bt_loss(tensor([1.0, math.log(3)]), tensor([1.0, 0.0]))
    assert float(loss) == pytest.approx((math.log(2) + math.log(4 / 3)) / 2)


@given(st.permutations(range(6)))
def test_pairs_follow_the_ranking(ranking: list[int]) -> None:
    """Whoever stands earlier wins."""
    found = [tuple(pair) for pair in solutions.ranking_to_pairs(tensor(ranking)).tolist()]
    assert len(found) == len(set(found)) == 15
    assert all(ranking.index(winner) < ranking.index(loser) for winner, loser in found)


def test_rewards_carry_no_gradient_and_advantages_end_with_the_response() -> None:
    """Score 1.5, beta .1: -.01, .03, 1.5; values 1.05, 1.21, 1.40 at lambda 1: .47, .32, .10."""
    mask = tensor([[True, True, True, False]])
    logprobs = tensor([[0.1, -0.3, 0.0, 9.0]], requires_grad=True)
    rewards = solutions.kl_penalized_rewards(
        tensor([1.5]), logprobs, reference_logprobs=torch.zeros(1, 4), mask=mask, beta=0.1
    )
    assert not rewards.requires_grad
    assert torch.allclose(rewards, tensor([[-0.01, 0.03, 1.5, 0.0]]))
    advantages, returns = solutions.gae_per_token(rewards, tensor([[1.05, 1.21, 1.40, 9.0]]), mask=mask, gae_lambda=1.0)
    assert torch.allclose(advantages, tensor([[0.47, 0.32, 0.10, 0.0]]), atol=1e-6)
    assert torch.allclose(returns, tensor([[1.52, 1.53, 1.50, 0.0]]), atol=1e-6)


def test_ppo_losses_are_means_over_real_tokens() -> None:
    """Ratio 1.5 at A = 1 is held at 1.2; the value is off by 2; the other token is padding."""
    mask = tensor([[True, False]])
    found = solutions.ppo_rlhf_loss(
        tensor([[math.log(1.5), 7.0]]), tensor([[1.0, 9.0]]), old_logprobs=torch.zeros(1, 2),
        advantages=tensor([[1.0, 5.0]]), returns=tensor([[3.0, 0.0]]), mask=mask,
    )  # fmt: skip
    assert [float(x) for x in found] == pytest.approx([-1.2, 2.0, 1.0])


def test_the_turn_is_where_a_third_is_beyond_the_data() -> None:
    """98 % of the data hold 2 at most."""
    seen = tensor([5] + [2] * 5 + [0] * 194)
    assert solutions.predict_turn(tensor([[0, 0, 0], [3, 2, 2], [3, 3, 0], [9, 9, 9]]), seen) == 2
    assert solutions.predict_turn(tensor([[0, 0, 0], [2, 2, 2]]), seen) == 2  # nowhere: the number of iterations


def test_the_tilted_mean_is_weighted() -> None:
    """Weights 1 and e."""
    found = solutions.tilted_mean(tensor([10.0, 20.0]), tensor([0.0, 1.0]), beta=1.0)
    assert float(found) == pytest.approx((10 + 20 * math.e) / (1 + math.e), rel=1e-5)


def test_the_largest_beta_gains_enough() -> None:
    """1 / (1 + beta) falls through .4 at 1.5."""
    found = solutions.largest_beta(lambda beta: 1 / (1 + beta), low=0.1, high=10.0, wanted=0.4)
    assert found == pytest.approx(1.5, abs=1e-4)
    assert 1 / (1 + found) >= 0.4
    for low, high in ((2.0, 3.0), (0.1, 1.0)):
        with pytest.raises(Refusal, match="does not fall through"):
            solutions.largest_beta(lambda beta: 1 / (1 + beta), low=low, high=high, wanted=0.4)


def test_the_exact_leash_by_hand() -> None:
    """.8 and .2 e^2, normalised; its log; (1/2, 1/2) from there; the worse of two only when it comes twice."""
    p, r = tensor([0.8, 0.2]), tensor([0.0, 1.0])
    z = 0.8 + 0.2 * math.e**2
    assert solutions.tilted(p, r, beta=0.5).tolist() == pytest.approx([0.8 / z, 1 - 0.8 / z])
    assert float(solutions.log_z(p, r, beta=0.5)) == pytest.approx(math.log(z))
    assert float(solutions.kl(tensor([0.5, 0.5]), p)) == pytest.approx(0.5 * math.log(0.625 * 2.5))
    assert float(solutions.kl(tensor([0.0, 1.0]), p)) == pytest.approx(math.log(5))
    assert solutions.best_of_n(p, r, n=2).tolist() == pytest.approx([0.64, 0.36])


def test_shown_more_holds_any_number_of_emphasis_tokens() -> None:
    """Twelve of twelve too, and rows without any."""
    rows = torch.randint(24, (500, 12), generator=torch.Generator().manual_seed(0))
    numbers = (solutions.show_more(rows, torch.Generator().manual_seed(1)) == 12).sum(1)
    assert set(numbers.tolist()) == set(range(13))
