"""Policies over listed answers: the source's table whole, and the best beta there is."""

import math
from dataclasses import replace

import pytest
import torch

from killick.algorithms.listed import best_beta, every_beta, measure, measure_best_of, measure_tilted
from killick.types import Listed, Refusal
from killick.worlds.listed import FIVE, TWO, AnswerTable, numbers


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
def test_each_beta_of_the_source_gives_its_row(
    beta: float, proxy: float, gold: float, kl: float, gaming: float
) -> None:
    found = measure_tilted(FIVE, beta=beta)
    assert (found.proxy, found.gold, found.kl, found.gaming) == pytest.approx((proxy, gold, kl, gaming), abs=5.1e-5)


def test_the_reference_itself_and_the_best_answer_alone() -> None:
    """Reward .43, gold .30, nothing travelled; and 1.6, -1, log 20, which wins 95 % and ties the rest."""
    assert isinstance(FIVE, Listed)
    at_home = measure(FIVE.reference.log(), FIVE)
    assert (at_home.proxy, at_home.gold, at_home.kl, at_home.gaming) == pytest.approx((0.43, 0.30, 0, 0.05), abs=1e-12)
    free = measure_tilted(FIVE, beta=0)
    assert (free.proxy, free.gold, free.kl, free.gaming) == pytest.approx((1.6, -1, math.log(20), 1))
    assert free.win_rate == pytest.approx(0.975)


def test_the_best_gold_of_the_tilted_family_is_below_that_of_best_of_two_and_four() -> None:
    beta = best_beta(FIVE)
    best = measure_tilted(FIVE, beta=beta)
    assert beta == pytest.approx(0.953, abs=1e-3)
    assert (best.gold, best.kl) == pytest.approx((0.49965, 0.191), abs=5e-4)
    for n in (2, 4):
        kept = measure_best_of(FIVE, n=n)
        assert kept.gold is not None
        assert best.gold is not None
        assert kept.gold > best.gold


def test_the_best_beta_does_not_depend_on_the_unit_of_the_reward() -> None:
    """A thousand times the reward, a thousand times the beta."""
    scaled = replace(FIVE, reward=1000 * FIVE.reward)
    assert best_beta(scaled) == pytest.approx(1000 * best_beta(FIVE), rel=1e-5)


def test_where_gold_is_the_reward_no_leash_is_best_and_where_it_is_its_opposite_the_tightest() -> None:
    """And where no answer is better than another nothing is better than the reference."""
    assert best_beta(replace(TWO, gold=numbers(3, 3))) == every_beta(TWO)[0]
    assert best_beta(replace(TWO, gold=TWO.reward)) == 0
    assert best_beta(replace(TWO, gold=-TWO.reward)) == every_beta(TWO)[0] == pytest.approx(100)


def test_without_gold_there_is_no_best_beta_and_no_gaming_share() -> None:
    with pytest.raises(Refusal, match="needs gold"):
        best_beta(TWO)
    found = measure_tilted(TWO, beta=1)
    assert (found.gold, found.gaming) == (None, None)
    # .2 e / (.8 + .2 e) = .4046: it wins against .8 and ties against .2, the other ties against .8.
    assert found.win_rate == pytest.approx(0.4046 * 0.9 + 0.5954 * 0.4, abs=1e-4)


def test_equal_rewards_leave_the_reference_at_every_beta() -> None:
    table = AnswerTable(("a", "b"), numbers(0.3, 0.7), numbers(2, 2), numbers(0, 1))
    assert every_beta(table)[-1] == 0
    for beta in (*every_beta(table)[:-1:50], 1e-6):
        assert measure_tilted(table, beta=beta).kl == pytest.approx(0, abs=1e-12)


def test_an_answer_that_is_never_given_stays_so() -> None:
    table = AnswerTable(("a", "b", "c"), numbers(0.5, 0.5, 0), numbers(0, 1, 50), numbers(0, 1, 50))
    assert measure_tilted(table, beta=0).proxy == 1
    assert torch.isfinite(torch.tensor(every_beta(table))).all()
    assert every_beta(table)[0] == pytest.approx(100)
