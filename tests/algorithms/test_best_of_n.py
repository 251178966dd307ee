import math

import pytest
import torch

from killick.algorithms.best_of_n import best_of_n, exact_law, pool_weights
from killick.ops.kl import best_of_n_bound, exact_kl
from killick.types import Refusal

REFERENCE = torch.tensor([0.30, 0.35, 0.15, 0.15, 0.05], dtype=torch.float64)
PROXY = torch.tensor([1, 0.7, -0.5, -0.8, 1.6], dtype=torch.float64)
GOLD = torch.tensor([1, 0.7, -0.5, -0.8, -1.0], dtype=torch.float64)


@pytest.mark.parametrize(
    ("n", "kl", "bound", "proxy", "gold"),
    [
        (2, 0.1771, 0.1931, 0.8170, 0.5635),
        (4, 0.5729, 0.6363, 1.0479, 0.5656),
        (8, 1.0351, 1.2044, 1.1923, 0.3172),
        (16, 1.5138, 1.8351, 1.3356, -0.1201),
        (64, 2.7685, 3.1745, 1.5775, -0.9250),
    ],
)
def test_the_exact_law_of_five_answers_comes_out(n: int, kl: float, bound: float, proxy: float, gold: float) -> None:
    law = exact_law(REFERENCE, PROXY, n=n)
    found = (exact_kl(law.log(), REFERENCE.log()), law @ PROXY, law @ GOLD)
    assert [float(x) for x in found] == pytest.approx([kl, proxy, gold], abs=5.1e-5)
    assert best_of_n_bound(n) == pytest.approx(bound, abs=5.1e-5)
    assert float(law.sum()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_equal_scores_leave_the_reference_as_it_is(n: int) -> None:
    law = exact_law(REFERENCE, torch.zeros(5, dtype=torch.float64), n=n)
    assert law.tolist() == pytest.approx(REFERENCE.tolist(), abs=1e-12)


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
