"""Agreement of a table of verdicts: counted by hand, and biases that are put in come out."""

import math

import pytest
import torch

from killick.preferences.agreement import agreement, leaning, pair_answers
from killick.preferences.verdicts import Verdict


def test_a_small_table_counted_by_hand() -> None:
    """Items 1 to 4; ada, bob on all, cy on the first two. First (+), second (-), tie (0):

    ada + + - 0, bob + - - 0, cy + +. Two answers meet: item 1 three times, agreeing 3; item 2 three times, agreeing 1
    (ada, cy); items 3 and 4 once each, agreeing 1 each: 6 of 8. Ada met 2 + 2 + 1 + 1 = 6, agreed 2 + 1 + 1 + 1 = 5.
    Cohen for ada and bob: agreed 3/4; chance (2 * 1 + 1 * 2 + 1 * 1) / 16 = 5/16; (12 - 5) / (16 - 5) = 7/11.
    """
    plus, minus, tie = (0, 1), (1, 0), (0, 0)
    said = {"ada": (plus, plus, minus, tie), "bob": (plus, minus, minus, tie), "cy": (plus, plus)}
    table = [Verdict(name, str(n), place) for name, mine in said.items() for n, place in enumerate(mine)]
    found = agreement(table)
    assert (found.items, found.shared, found.percent, found.ties) == (4, 4, 6 / 8, 2)
    ada = found.annotators["ada"]
    assert (ada.labels, ada.met, ada.agreed) == (4, 6, 5)
    pairs, kappa = found.cohen["ada", "bob"]
    assert pairs == 4
    assert kappa == pytest.approx(7 / 11)
    assert found.cohen["bob", "cy"] == (2, 0.0)  # cy says the same throughout, so chance does as well
    # Nominal: ten values, 5 plus, 3 minus, 2 tie. Off the diagonal only item 2 (+ - +): 2 * 2 / 2 = 2 of 10.
    assert found.alpha_nominal == pytest.approx(1 - 9 * 2 / (100 - 25 - 9 - 4))


def test_the_last_verdict_counts() -> None:
    """A revision replaces what it revises."""
    table = [Verdict("ada", "1", (0, 1)), Verdict("bob", "1", (1, 0)), Verdict("ada", "1", (1, 0))]
    assert agreement(table).percent == 1.0


def test_a_ranking_is_read_as_its_pairs() -> None:
    """a > b > c against b > a > c: of three pairs two agree."""
    first, second = Verdict("ada", "1", (0, 1, 2)), Verdict("bob", "1", (1, 0, 2))
    assert pair_answers([first, second]) == [{"ada": 1, "bob": -1}, {"ada": 1, "bob": 1}, {"ada": 1, "bob": 1}]
    assert agreement([first, second]).percent == pytest.approx(2 / 3)


def test_an_empty_table_knows_nothing_and_says_so() -> None:
    """No number is made up."""
    found = agreement([])
    assert (found.items, found.shared, found.annotators, found.cohen, found.noise) == (0, 0, {}, {}, None)
    assert all(map(math.isnan, (found.percent, found.alpha_nominal, found.alpha_ordinal, found.leaning.share)))


def test_ties_and_unknown_orders_are_no_choices_of_the_first() -> None:
    """Three firsts, one second, a tie, a ranking, and one whose order nobody knows: 3 of 4, one tie."""
    table = [
        Verdict("ada", "1", (0, 1), (0, 1)),
        Verdict("ada", "2", (0, 1), (0, 1)),
        Verdict("ada", "3", (1, 0), (1, 0)),  # the second candidate, shown first
        Verdict("ada", "4", (0, 1), (1, 0)),
        Verdict("ada", "5", (0, 0), (0, 1)),
        Verdict("ada", "6", (0, 1, 2), (0, 1, 2)),
        Verdict("ada", "7", (0, 1)),
    ]
    found = leaning(table)
    assert (found.first, found.chosen, found.ties, found.share) == (3, 4, 1, 0.75)
    assert found.p == pytest.approx(2 * (1 + 4) / 16)


def leaned(count: int, bias: float, *, seed: int) -> list[Verdict]:
    """Verdicts of an annotator who takes the first with a known probability, whatever it is."""
    draws = torch.Generator().manual_seed(seed)
    shown = [(0, 1) if flip else (1, 0) for flip in (torch.rand(count, generator=draws) < 0.5).tolist()]
    firsts = (torch.rand(count, generator=draws) < bias).tolist()
    places = [(0, 1) if (order[0] == 0) == first else (1, 0) for order, first in zip(shown, firsts, strict=True)]
    return [Verdict("ada", str(n), place, order) for n, (place, order) in enumerate(zip(places, shown, strict=True))]


@pytest.mark.parametrize("bias", [0.5, 0.65])
def test_the_interval_of_a_leaning_holds_it_and_the_test_finds_it(bias: float) -> None:
    """100 datasets of 150 pairs: 95 % hold the truth; one in twenty at most is called biased where none is."""
    found = [leaning(leaned(150, bias, seed=seed)) for seed in range(100)]
    held = sum(each.interval[0] <= bias <= each.interval[1] for each in found)
    assert 88 <= held <= 100  # 95 +- 3.2 standard errors of 2.2
    called = sum(each.p < 0.05 for each in found)
    assert called <= 12 if bias == 0.5 else called > 80
