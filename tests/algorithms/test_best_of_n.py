import math
from typing import cast

import pytest
import torch

from killick.algorithms.best_of_n import best_of_n, best_of_n_curve, exact_law, pool_weights, win_rate
from killick.ops.kl import best_of_n_bound, exact_kl
from killick.types import Refusal
from killick.worlds.listed import FIVE

REFERENCE, PROXY, GOLD = FIVE.reference, FIVE.reward, cast(torch.Tensor, FIVE.gold)


@pytest.mark.parametrize(
    ("n", "kl", "bound", "proxy", "gold", "win"),
    [
        (2, 0.1771, 0.1931, 0.8170, 0.5635, 0.6539),
        (4, 0.5729, 0.6363, 1.0479, 0.5656, 0.7723),
        (8, 1.0351, 1.2044, 1.1923, 0.3172, 0.8485),
        (16, 1.5138, 1.8351, 1.3356, -0.1201, 0.8976),
        (64, 2.7685, 3.1745, 1.5775, -0.9250, 0.9684),
    ],
)
def test_the_exact_law_of_five_answers_comes_out(
    n: int, kl: float, bound: float, proxy: float, gold: float, win: float
) -> None:
    law = exact_law(REFERENCE, PROXY, n=n)
    found = (exact_kl(law.log(), REFERENCE.log()), law @ PROXY, law @ GOLD, win_rate(law, REFERENCE, scores=PROXY))
    assert [float(x) for x in found] == pytest.approx([kl, proxy, gold, win], abs=5.1e-5)
    assert found[3] <= n / (n + 1)
    assert best_of_n_bound(n) == pytest.approx(bound, abs=5.1e-5)
    assert float(law.sum()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_equal_scores_leave_the_reference_as_it_is(n: int) -> None:
    law = exact_law(REFERENCE, torch.zeros(5, dtype=torch.float64), n=n)
    assert law.tolist() == pytest.approx(REFERENCE.tolist(), abs=1e-12)


def test_a_win_against_oneself_is_a_coin_flip_and_a_tie_half_a_win() -> None:
    """The reference wins half the time, ties or none. (0, 0, 1) with thirds: the last wins 2/3 and ties 1/3: 5/6."""
    third, scores = torch.full((3,), 1 / 3, dtype=torch.float64), torch.tensor([0.0, 0.0, 1.0])
    assert win_rate(REFERENCE, REFERENCE, scores=PROXY) == pytest.approx(0.5)
    assert win_rate(third, third, scores=scores) == pytest.approx(0.5)
    assert win_rate(torch.tensor([0.0, 0.0, 1.0]), third, scores=scores) == pytest.approx(5 / 6)


def test_an_answer_that_the_reference_never_gives_is_never_kept() -> None:
    law = exact_law(torch.tensor([[0.5, 0.5, 0.0]]), torch.tensor([[0.0, 1.0, 9.0]]), n=4)
    assert law.tolist()[0] == pytest.approx([1 / 16, 15 / 16, 0.0], abs=1e-12)


@pytest.mark.parametrize(("size", "n"), [(1, 1), (5, 1), (5, 3), (5, 5), (40, 7)])
def test_pool_weights_are_ratios_of_binomials(size: int, n: int) -> None:
    expected = [math.comb(i - 1, n - 1) / math.comb(size, n) for i in range(1, size + 1)]
    assert pool_weights(size, n).tolist() == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_weights_of_a_large_pool_sum_to_one() -> None:
    assert float(pool_weights(60_000, 1_000).sum()) == pytest.approx(1, abs=1e-6)


def test_best_of_one_is_the_mean_and_best_of_all_the_maximum() -> None:
    scores = torch.tensor([[3.0, 1.0, 2.0, 0.0]])
    assert best_of_n(scores, scores, n=1).tolist() == pytest.approx([1.5])
    assert best_of_n(scores, scores, n=4).tolist() == pytest.approx([3.0])


def test_best_of_two_by_hand() -> None:
    # Six pairs of four scores; the larger of each: 3, 3, 3, 2, 2, 1 -> 14/6. Gold is read off the kept one:
    # score 3 has gold -1, 2 has 5, 1 has 0: (3 x -1 + 2 x 5 + 1 x 0)/6.
    scores, gold = torch.tensor([[3.0, 1.0, 2.0, 0.0]]), torch.tensor([[-1.0, 0.0, 5.0, 8.0]])
    assert best_of_n(scores, scores, n=2).tolist() == pytest.approx([14 / 6])
    assert best_of_n(scores, gold, n=2).tolist() == pytest.approx([7 / 6])


def test_tied_scores_share_what_the_choice_between_them_decides() -> None:
    # Three answers, two tie at the top with gold 0 and 1. Pairs: (top, top) keeps either, mean 0.5; each (top, low)
    # keeps its top: 0 and 1. Mean (0.5 + 0 + 1)/3.
    scores, gold = torch.tensor([[1.0, 1.0, 0.0]]), torch.tensor([[0.0, 1.0, 9.0]])
    assert best_of_n(scores, gold, n=2).tolist() == pytest.approx([0.5])
    assert best_of_n(scores.flip(1), gold.flip(1), n=2).tolist() == pytest.approx([0.5])


def test_gaussian_scores_give_the_expected_maximum() -> None:
    scores = torch.randn(1, 40_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for n, expected in ((2, 0.5642), (4, 1.0294), (16, 1.7660)):
        # The deviation of a maximum is below 0.83, and a pool holds 40,000 / n independent groups.
        assert float(best_of_n(scores, scores, n=n)[0]) == pytest.approx(expected, abs=4 * 0.83 / math.sqrt(40_000 / n))


@pytest.mark.parametrize("n", [0, -1, 5])
def test_an_n_outside_the_pool_is_refused(n: int) -> None:
    with pytest.raises(Refusal, match="between 1 and 4"):
        best_of_n(torch.zeros(1, 4), torch.zeros(1, 4), n=n)
    if n < 1:
        with pytest.raises(Refusal, match="at least 1"):
            exact_law(REFERENCE, PROXY, n=n)


# The curve


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_curve_of_two_prompts_by_hand() -> None:
    # Prompt 0 as in the test of best-of-two: 1.5, 14/6, 3. Prompt 1 holds 0, 0, 0, 8: a quarter, a half (three of six
    # pairs hold the 8) and all of 8: 2, 4, 8. Gold of the kept: (13/4, 7/6, -1), and minus its proxy in prompt 1.
    scores = torch.tensor([[3.0, 1.0, 2.0, 0.0], [0.0, 8.0, 0.0, 0.0]])
    gold = torch.tensor([[-1.0, 0.0, 5.0, 8.0], [0.0, -8.0, 0.0, 0.0]])
    curve = best_of_n_curve(scores, gold, ns=[4, 1, 2, 2], generator=seeded())
    assert [point.n for point in curve.points] == [1, 2, 4]
    assert [point.kl_bound for point in curve.points] == pytest.approx([0, 0.193147, 0.636294], abs=1e-6)
    assert [point.proxy for point in curve.points] == pytest.approx([1.75, (14 / 6 + 4) / 2, 5.5])
    assert [point.gold for point in curve.points] == pytest.approx([(3 - 2) / 2, (7 / 6 - 4) / 2, -4.5])
    # Of two prompts a resample holds the first, the second or both: a 95 % interval ends at the prompts themselves.
    assert curve.points[1].proxy_interval == pytest.approx((14 / 6, 4))
    assert curve.points[1].gold_interval == pytest.approx((-4, 7 / 6))
    assert (curve.prompts, curve.top, curve.top_interval, curve.turns) == (2, 1, (1, 1), True)


def test_the_n_where_gold_turns_is_that_of_the_five_answers() -> None:
    """Draws from the five answers, against their exact gold: it is nearly level between 2 and 4."""
    rows = torch.multinomial(REFERENCE.expand(400, 5), 64, replacement=True, generator=seeded(1))
    curve = best_of_n_curve(PROXY[rows], GOLD[rows], ns=(1, 2, 4, 8, 16, 64), generator=seeded(2))
    exact = [0.30, 0.5635, 0.5656, 0.3172, -0.1201, -0.9250]
    for point, expected in zip(curve.points, exact, strict=True):
        assert point.gold is not None
        assert point.gold_interval is not None
        # A quarter of an interval of 95 % is one standard error, nearly; four of them.
        low, high = point.gold_interval
        assert low < point.gold < high
        assert point.gold == pytest.approx(expected, abs=high - low)
    assert curve.turns
    assert curve.top in (2, 4)
    assert curve.top_interval == (2, 4)


def test_noise_does_not_turn() -> None:
    """Scores and gold that know nothing of each other: the highest n is anywhere, so no turn is sure."""
    scores, gold = torch.randn(2, 12, 16, generator=seeded(0))
    curve = best_of_n_curve(scores, gold, ns=(1, 2, 4, 8, 16), generator=seeded())
    assert (curve.top, curve.top_interval, curve.turns) == (2, (1, 16), False)


def test_one_prompt_alone_is_never_sure_of_a_turn() -> None:
    scores = torch.arange(4.0)[None]
    assert not best_of_n_curve(scores, -scores, ns=(1, 4), generator=seeded()).turns
    assert best_of_n_curve(scores.expand(2, 4), -scores.expand(2, 4), ns=(1, 4), generator=seeded()).turns


def test_without_gold_nothing_turns_and_the_proxy_is_the_same() -> None:
    scores = torch.rand(6, 8, generator=seeded(3))
    with_gold = best_of_n_curve(scores, -scores, ns=(1, 8), generator=seeded())
    without = best_of_n_curve(scores, ns=(1, 8), generator=seeded())
    assert (without.top, without.top_interval, without.turns) == (None, None, False)
    for mine, other in zip(without.points, with_gold.points, strict=True):
        assert (mine.gold, mine.gold_interval) == (None, None)
        assert mine.proxy == other.proxy
        assert mine.proxy_interval == pytest.approx(other.proxy_interval)
    # Gold is minus the proxy: it falls from the first n on. Where it is the proxy, it never turns.
    assert (with_gold.top, with_gold.turns) == (1, True)
    assert not best_of_n_curve(scores, scores, ns=(1, 8), generator=seeded()).turns


def test_pools_of_different_sizes_stand_side_by_side_in_their_order() -> None:
    pools = [torch.tensor([1.0, 2.0]), torch.tensor([5.0, 3.0, 4.0]), torch.tensor([0.0, 6.0])]
    curve = best_of_n_curve(pools, [-pool for pool in pools], ns=(1, 2), generator=seeded())
    # Best of two: 2; 5, 5 or 4 with equal chances; 6.
    assert [point.proxy for point in curve.points] == pytest.approx([(1.5 + 4 + 3) / 3, (2 + 14 / 3 + 6) / 3])
    assert [point.gold for point in curve.points] == pytest.approx([-(1.5 + 4 + 3) / 3, -(2 + 14 / 3 + 6) / 3])


def test_the_curve_draws_from_its_generator_only() -> None:
    scores, before = torch.rand(9, 4, generator=seeded(5)), torch.get_rng_state()
    first = best_of_n_curve(scores, ns=(2,), generator=seeded(6))
    assert best_of_n_curve(scores, ns=(2,), generator=seeded(6)) == first
    assert best_of_n_curve(scores, ns=(2,), generator=seeded(7)) != first
    assert torch.equal(torch.get_rng_state(), before)


def test_a_curve_of_nothing_or_beyond_a_pool_is_refused() -> None:
    with pytest.raises(Refusal, match="0 prompts and 1 of n"):
        best_of_n_curve([], ns=(1,), generator=seeded())
    with pytest.raises(Refusal, match="1 prompts and 0 of n"):
        best_of_n_curve(torch.zeros(1, 4), ns=(), generator=seeded())
    with pytest.raises(Refusal, match="pool of 2 needs n between 1 and 2, not 4"):
        best_of_n_curve([torch.zeros(4), torch.zeros(2)], ns=(4,), generator=seeded())
