"""Facts of held-out pairs, by hand."""

import math
from typing import Any

import pytest
import torch

from killick.ops.shares import share_interval
from killick.recipes.exam.pairs import (
    Judged,
    accuracy_facts,
    agreement_facts,
    by_gap,
    by_length,
    by_level,
    by_strength,
    calibration_facts,
    length_facts,
    quarters,
)


def judged(margins: list[float], **more: Any) -> Judged:
    """Pairs with these margins, a prompt each."""
    count = len(margins)
    given: dict[str, Any] = {
        "label": [1.0] * count,
        "lengths": [(2, 1)] * count,
        "strength": [None] * count,
        "unit": list(range(count)),
    }
    return Judged([margin + 1 for margin in margins], [1.0] * count, **(given | more))


def test_accuracy_by_hand() -> None:
    """Five right, two wrong, three equal: .65 with half credit, .5 strictly (O-05)."""
    found = accuracy_facts(judged([1.0] * 5 + [-1.0] * 2 + [0.0] * 3))
    assert (found["accuracy"], found["strict"], found["score_ties"]) == (0.65, 0.5, 3)
    assert (found["pairs"], found["prompts"]) == (10, 10)


def test_swapped_pairs_have_the_rest_of_the_accuracy() -> None:
    """O-03."""
    margins = [0.3, -2.0, 1.0, 0.7, -0.1, 4.0, 1.5]
    right, wrong = (accuracy_facts(judged(each))["accuracy"] for each in (margins, [-margin for margin in margins]))
    assert right == 1 - wrong == 5 / 7


def test_a_soft_label_is_the_chance_to_agree_with_it() -> None:
    assert accuracy_facts(judged([1.0, -1.0], label=[0.9, 0.8]))["accuracy"] == pytest.approx((0.9 + 0.2) / 2)


def test_pairs_of_one_prompt_count_together() -> None:
    """Four prompts of three pairs that are all right or all wrong are four trials, of which three succeed."""
    found = accuracy_facts(judged([1.0] * 9 + [-1.0] * 3, unit=[place // 3 for place in range(12)]))
    assert (found["low"], found["high"]) == pytest.approx(share_interval(3, 4))


def test_scores_that_would_overflow_in_half_precision_are_compared() -> None:
    """O-02: 120000 apart."""
    pairs = Judged([-60000.0], [60000.0], [1.0], [(1, 1)], [None], [0])
    assert accuracy_facts(pairs)["accuracy"] == 0
    assert calibration_facts(pairs, torch.Generator(), nats=1.0)["brier"] == 1


def test_gaps_claim_what_bradley_terry_reads_out_of_them() -> None:
    """Gaps 1, 2, 3, 4 in quarters; at half a nat a unit the first claims sigma(.5)."""
    found = by_gap(judged([1.0, -2.0, 3.0, 4.0]), nats=0.5)
    assert [row["accuracy"] for row in found] == [1, 0, 1, 1]
    assert found[0]["claimed"] == pytest.approx(1 / (1 + math.exp(-0.5)))


def test_quarters_hold_every_value_once_and_keep_equal_ones_together() -> None:
    values = [0.0] * 9 + [1.0, 2.0, 3.0]
    places = [place for _, _, found in quarters(values) for place in found]
    assert sorted(places) == list(range(12))
    assert sum(0 in found for _, _, found in quarters(values)) == 1
    assert quarters([5.0, 5.0]) == [(5.0, 5.0, [0, 1])]


def test_levels_are_means_of_two_scores() -> None:
    pairs = Judged([1.0, 3.0], [0.0, 4.0], [1.0, 1.0], [(1, 1)] * 2, [None] * 2, [0, 1])
    assert [(row["accuracy"], row["pairs"]) for row in by_level(pairs)] == [(1.0, 1), (0.0, 1)]


def test_strengths_come_from_the_file_and_else_from_soft_labels() -> None:
    margins = [1.0, 1.0, -1.0]
    assert by_strength(judged(margins)) == []
    own = by_strength(judged(margins, strength=[1.0, 3.0, 1.0]))
    assert [(row["from"], row["accuracy"]) for row in own] == [(1.0, 0.5), (3.0, 1.0)]
    soft = by_strength(judged(margins, label=[0.6, 0.9, 0.6]))
    assert [row["from"] for row in soft] == [0.6, 0.9]
    many = by_strength(judged([1.0] * 8, strength=[float(place) for place in range(8)]))
    assert [row["pairs"] for row in many] == [2, 2, 2, 2]


def test_bins_of_length_are_of_the_ratio() -> None:
    """Ratios .4, .5, 1, 1.3, 3, and an empty rejected answer, which counts as one character: 5."""
    lengths = [(4, 10), (5, 10), (7, 7), (13, 10), (3, 1), (5, 0)]
    found = by_length(judged([1.0, -1.0, 1.0, 1.0, 1.0, -1.0], lengths=lengths))
    assert [row["pairs"] for row in found] == [2, 0, 1, 1, 2]
    assert [row["accuracy"] for row in found] == [0.5, None, 1.0, 1.0, 0.5]


def test_a_judge_of_length_is_right_by_half_however_often_people_like_length() -> None:
    """People choose the longer one in 30 of 40 pairs, the judge always does: .75 as they are, .5 if weighed alike."""
    lengths = [(20, 10)] * 30 + [(10, 20)] * 10
    found = length_facts(judged([1.0] * 30 + [-1.0] * 10, lengths=lengths))
    assert (found["longer_chosen"]["accuracy"], found["shorter_chosen"]["accuracy"]) == (1, 0)
    assert found["balanced"] == 0.5
    assert (found["model_longer"], found["people_longer"]) == (1, 0.75)
    assert found["lean"] == pytest.approx(0.25)
    assert found["correlation"] == pytest.approx(1)
    assert found["balanced_low"] < 0.5 < found["balanced_high"]


def test_the_interval_of_the_balance_is_made_of_its_halves() -> None:
    lengths = [(2, 1)] * 20 + [(1, 2)] * 20
    found = length_facts(judged([1.0] * 18 + [-1.0] * 2 + [1.0] * 12 + [-1.0] * 8, lengths=lengths))
    (a, _), (b, _) = share_interval(18, 20), share_interval(12, 20)
    assert found["balanced"] == pytest.approx(0.75)
    assert found["balanced_low"] == pytest.approx(0.75 - math.hypot(0.9 - a, 0.6 - b) / 2)


def test_length_and_quality_cannot_be_told_apart_where_the_longer_one_is_always_chosen() -> None:
    found = length_facts(judged([1.0] * 40))
    assert found["balanced"] is None
    assert "40 pairs and the rejected one in 0" in found["balanced_reason"]
    same = length_facts(judged([1.0] * 4, lengths=[(5, 5)] * 4))
    assert (same["lean"], same["balanced"], same["pairs"]) == (None, None, 0)


def test_calibration_is_in_nats_of_preference() -> None:
    """Scores of deviation 1 that mean half a nat a unit: margins 2 x log 3 of which .75 are right are calibrated."""
    pairs = judged([2 * math.log(3)] * 12, label=[0.75] * 12)
    found = calibration_facts(pairs, torch.Generator().manual_seed(0), nats=0.5)
    assert found["temperature"] == pytest.approx(1)
    assert found["ece"] == pytest.approx(0, abs=1e-9)
    assert found["reliability"][0]["pairs"] == 12
    assert calibration_facts(pairs, torch.Generator().manual_seed(0), nats=1.0)["temperature"] == pytest.approx(2)


@pytest.mark.parametrize(
    ("margins", "reason"), [([1.0, 2.0], "every pair is right"), ([0.0, 0.0], "better than knowing nothing")]
)
def test_a_temperature_that_is_no_number_has_a_reason(margins: list[float], reason: str) -> None:
    """O-52."""
    found = calibration_facts(judged(margins), torch.Generator().manual_seed(0), nats=1.0)
    assert found["temperature"] is None
    assert reason in found["temperature_reason"]


def test_agreement_is_over_all_twos_of_members() -> None:
    """Signs + + -, + - -, 0 0 0: the first pair of members agrees on 2 of 3 pairs, the others on none: 2 / 9."""
    found = agreement_facts([[1.0, 2.0, -1.0], [3.0, -1.0, -2.0], [0.0, 0.0, 0.0]], [0, 1, 2])
    assert found["agreement"] == pytest.approx(2 / 9)
    assert (found["members"], found["pairs"]) == (3, 3)
