"""Labelers: drawn labels follow the exact probabilities, and nobody beats the ceiling."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from killick.preferences.labelers import BradleyTerry, PlackettLuce, ceiling
from killick.preferences.pairing import pairs
from killick.types import Comparison, Preference, Refusal, Rollout

modest = settings(max_examples=30, deadline=None, derandomize=True)
golds = st.floats(-3, 3, width=32)


def rows(count: int) -> Rollout:
    """So many responses of one token to one prompt."""
    ids, seen = torch.zeros(count, 1, dtype=torch.long), torch.ones(count, 1, dtype=torch.bool)
    return Rollout(ids, seen, ids, seen, torch.zeros(count, 1), seen[:, 0])


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def within_four_errors(share: Tensor | float, chance: float, draws: int) -> bool:
    """Whether an observed share is within 4 standard errors of a probability."""
    return abs(float(share) - chance) < 4 * (chance * (1 - chance) / draws) ** 0.5


# Closed forms


@pytest.mark.parametrize("labeler", [BradleyTerry, PlackettLuce])
def test_the_chance_of_a_win_is_the_logistic_function_of_kappa_times_the_difference(labeler) -> None:
    """sigma(2 * 0.5) = 0.731059, sigma(0) = 1/2, sigma(-10 * 0.1) = 0.268941."""
    for kappa, first, second, expected in ((2.0, 1.0, 0.5, 0.731059), (5.0, 1.0, 1.0, 0.5), (10.0, 0.0, 0.1, 0.268941)):
        chance = labeler(kappa).probability(torch.tensor([first]), torch.tensor([second]))
        assert float(chance[0]) == pytest.approx(expected, abs=1e-6)


def test_the_ceiling_of_coin_flips_is_one_half_and_of_sure_labels_one() -> None:
    """Equal gold gives 1/2; a difference of 100 at kappa 2 gives 1."""
    preference = Preference.hard(rows(2), torch.tensor([0]), torch.tensor([1]))
    assert ceiling(BradleyTerry(), preference, gold=torch.tensor([0.3, 0.3])) == 0.5
    assert ceiling(PlackettLuce(2.0), preference, gold=torch.tensor([0.0, 100.0])) == 1.0


def test_the_ceiling_is_the_mean_chance_of_the_better_response_whichever_was_chosen() -> None:
    """Differences 1 (labelled the right way) and -2 (the wrong way), kappa 1: (sigma(1) + sigma(2)) / 2 = 0.805928."""
    preference = Preference.hard(rows(4), torch.tensor([0, 2]), torch.tensor([1, 3]))
    gold = torch.tensor([1.0, 0.0, 0.0, 2.0])
    expected = (1 / (1 + math.exp(-1)) + 1 / (1 + math.exp(-2))) / 2
    assert ceiling(BradleyTerry(1.0), preference, gold=gold) == pytest.approx(expected, abs=1e-6)


# Invariants


@modest
@given(golds, golds, st.floats(0.1, 10))
def test_the_two_chances_of_a_pair_sum_to_one(first: float, second: float, kappa: float) -> None:
    """And the better response is never the underdog."""
    a, b = torch.tensor([first]), torch.tensor([second])
    chance = BradleyTerry(kappa).probability(a, b)
    assert_close(chance + BradleyTerry(kappa).probability(b, a), torch.ones(1))
    assert (float(chance) >= 0.5) == (first >= second) or first == pytest.approx(second, abs=1e-6)


@modest
@given(st.lists(golds, min_size=4, max_size=4), st.integers(0, 1000))
def test_a_ranking_holds_each_row_of_its_group_once(gold: list[float], seed: int) -> None:
    """Three groups of four: rows 0-3, 4-7, 8-11, each a permutation with places 0 to 3."""
    ranking = PlackettLuce().rank(rows(12), torch.tensor(gold * 3), 4, seeded(seed))
    assert ranking.rows.sort(1).values.tolist() == torch.arange(12).view(3, 4).tolist()
    assert ranking.place.tolist() == [[0, 1, 2, 3]] * 3
    again = PlackettLuce().rank(rows(12), torch.tensor(gold * 3), 4, seeded(seed))
    assert torch.equal(ranking.rows, again.rows)


@modest
@given(st.lists(golds, min_size=6, max_size=6), st.integers(0, 1000))
def test_a_label_only_says_who_of_the_two_was_chosen(gold: list[float], seed: int) -> None:
    """Chosen and rejected are the same two rows; hard, without margin, each pair its own group."""
    comparison = Comparison(rows(6), torch.tensor([0, 2, 4]), torch.tensor([1, 3, 5]))
    preference = BradleyTerry().label(comparison, torch.tensor(gold), seeded(seed))
    both = torch.stack((preference.chosen, preference.rejected), 1).sort(1).values
    assert both.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert (preference.label.tolist(), preference.margin.tolist()) == ([1.0] * 3, [0.0] * 3)
    assert preference.group.tolist() == [0, 1, 2]


# Draws


@pytest.mark.parametrize("difference", [-0.2, 0.0, 0.05, 0.3])
def test_bradley_terry_labels_fall_as_often_as_their_probability_says(difference: float) -> None:
    """20,000 labels of the same pair at kappa 10, within 4 standard errors; a tie is a fair coin."""
    draws = 20_000
    comparison = Comparison(rows(2), torch.zeros(draws, dtype=torch.long), torch.ones(draws, dtype=torch.long))
    preference = BradleyTerry(10.0).label(comparison, torch.tensor([difference, 0.0]), seeded(11))
    share = (preference.chosen == 0).double().mean()
    assert within_four_errors(share, 1 / (1 + math.exp(-10 * difference)), draws)


def test_every_pair_of_a_ranking_is_bradley_terry() -> None:
    """20,000 rankings of golds (1, 0, 0, -1) at kappa 2: six marginals within 4 standard errors of sigma(2 d)."""
    draws, gold = 20_000, [1.0, 0.0, 0.0, -1.0]
    ranking = PlackettLuce(2.0).rank(rows(4 * draws), torch.tensor(gold * draws), 4, seeded(12))
    place = ranking.rows.remainder(4).argsort(1)  # column i: the place of response i
    for i in range(4):
        for j in range(i + 1, 4):
            share = (place[:, i] < place[:, j]).double().mean()
            assert within_four_errors(share, 1 / (1 + math.exp(-2 * (gold[i] - gold[j]))), draws)
    preference = pairs(ranking)
    assert len(preference) == 6 * draws


def test_the_winner_of_a_ranking_is_drawn_from_the_softmax_of_kappa_gold() -> None:
    """Plackett-Luce's first choice among golds (1, 0, -1) at kappa 1; then the second among the two that are left."""
    draws, gold = 20_000, torch.tensor([1.0, 0.0, -1.0])
    ranking = PlackettLuce(1.0).rank(rows(3 * draws), gold.repeat(draws), 3, seeded(13))
    order = ranking.rows.remainder(3)
    for winner, chance in enumerate(gold.softmax(0).tolist()):
        assert within_four_errors((order[:, 0] == winner).double().mean(), chance, draws)
    left = order[order[:, 0] == 0]
    assert within_four_errors((left[:, 1] == 1).double().mean(), 1 / (1 + math.exp(-1)), len(left))


def test_a_judge_with_the_known_noise_reaches_the_ceiling() -> None:
    """Choosing by gold is right as often as the ceiling says: 20,000 labels, within 4 standard errors of a mean."""
    draws = 20_000
    gold = torch.randn(2 * draws, generator=seeded(1))
    first, second = torch.arange(0, 2 * draws, 2), torch.arange(1, 2 * draws, 2)
    labeler = BradleyTerry(1.5)
    preference = labeler.label(Comparison(rows(2 * draws), first, second), gold, seeded(2))
    right = (gold[preference.chosen] > gold[preference.rejected]).double()
    assert abs(float(right.mean()) - ceiling(labeler, preference, gold=gold)) < 4 * float(right.std()) / draws**0.5


# Refusals


@pytest.mark.parametrize("kappa", [0.0, -1.0, math.inf, math.nan])
@pytest.mark.parametrize("labeler", [BradleyTerry, PlackettLuce])
def test_a_labeler_without_a_finite_positive_kappa_is_refused(labeler, kappa: float) -> None:
    """The sentence names kappa and what was given."""
    with pytest.raises(Refusal, match=rf"kappa must be a positive number, not {kappa:g}"):
        labeler(kappa)


def test_a_ranking_of_one_is_refused() -> None:
    """One response gives no pair."""
    with pytest.raises(Refusal, match="at least 2 responses per prompt, not 1"):
        PlackettLuce().rank(rows(4), torch.zeros(4), 1, seeded(0))


def test_rows_that_do_not_fall_into_rankings_are_refused() -> None:
    """Seven rows are no rankings of four."""
    with pytest.raises(Refusal, match="7 responses do not fall into rankings of 4"):
        PlackettLuce().rank(rows(7), torch.zeros(7), 4, seeded(0))
