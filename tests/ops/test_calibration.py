"""Calibration: every number by hand, the temperature by its closed form, and what holds for any scores."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from killick.ops.calibration import (
    brier,
    chance_error,
    claims,
    expected_calibration_error,
    fitted_temperature,
    reliability,
)


def logit(p: float) -> float:
    return math.log(p / (1 - p))


def test_a_claim_is_made_of_the_better_scored_side() -> None:
    """Margins log 3, -log 3, 0 claim .75, .75, .5; a soft label of .9 for the first is .1 for the second."""
    margins = torch.tensor([math.log(3), -math.log(3), 0.0])
    claimed, found = claims(margins, torch.tensor([1.0, 0.9, 1.0]))
    assert claimed.tolist() == pytest.approx([0.75, 0.75, 0.5])
    assert found.tolist() == pytest.approx([1.0, 0.1, 0.5])


def test_the_brier_score_by_hand() -> None:
    """Margin log 3 with label 1: .25^2 = .0625; the same margin with label 0: .5625; a constant score: .25."""
    margins = torch.tensor([math.log(3), math.log(3)])
    assert brier(margins, torch.tensor([1.0, 0.0])) == pytest.approx((0.0625 + 0.5625) / 2)
    assert brier(torch.zeros(4), torch.tensor([1.0, 1.0, 0.0, 1.0])) == 0.25


def test_the_calibration_error_by_hand() -> None:
    """Five bins of .1: three pairs that claim .62 with 2 right miss by .04667, one that claims .97 and is wrong by .97:
    (3 x .046667 + .97) / 4 = .2775."""
    claimed = torch.tensor([0.62, 0.62, 0.62, 0.97], dtype=torch.double)
    table = reliability(claimed, torch.tensor([1.0, 1.0, 0.0, 0.0]), bins=5)
    assert table.pairs.tolist() == [0, 3, 0, 0, 1]
    assert table.found[1] == pytest.approx(2 / 3)
    assert expected_calibration_error(table) == pytest.approx((3 * (2 / 3 - 0.62) + 0.97) / 4)


def test_a_claim_of_certainty_lies_in_the_last_bin() -> None:
    table = reliability(torch.tensor([1.0, 0.5]), torch.tensor([1.0, 0.5]), bins=10)
    assert table.pairs.tolist() == [1, *[0] * 8, 1]
    assert expected_calibration_error(table) == 0


def test_a_perfect_model_still_shows_an_error_on_few_pairs() -> None:
    """All of n pairs claim .5: the error is |share - .5| with mean sqrt(1 / (2 pi n)) = .0399 at 100."""
    mean, most = chance_error(torch.full((100,), 0.5), torch.Generator().manual_seed(0), draws=4000)
    assert mean == pytest.approx(math.sqrt(1 / (2 * math.pi * 100)), abs=0.002)
    assert most == pytest.approx(1.96 * 0.05, abs=0.011)


def test_the_temperature_is_that_of_the_odds() -> None:
    """Margins of one size m of which a share p is right: sigma(m / T) = p, T = m / logit(p)."""
    margins = torch.full((10,), 2.0)
    labels = torch.tensor([1.0] * 7 + [0.0] * 3)
    assert fitted_temperature(margins, labels) == pytest.approx(2 / logit(0.7))
    soft = torch.full((10,), 0.7)
    assert fitted_temperature(margins, soft) == pytest.approx(2 / logit(0.7), rel=1e-6)


def test_no_temperature_mends_scores_that_know_nothing() -> None:
    assert fitted_temperature(torch.tensor([1.0, -1.0]), torch.tensor([1.0, 1.0])) == math.inf
    assert fitted_temperature(torch.zeros(3), torch.ones(3)) == math.inf
    assert fitted_temperature(torch.tensor([-1.0, -2.0]), torch.ones(2)) == math.inf


def test_scores_that_are_always_right_could_be_any_surer() -> None:
    assert fitted_temperature(torch.tensor([0.1, 3.0]), torch.ones(2)) == 0.0


PAIRS = st.lists(
    st.tuples(st.integers(-80, 80).map(lambda k: k / 8), st.sampled_from([0.0, 0.3, 0.5, 1.0])), min_size=1, max_size=30
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(PAIRS)
def test_naming_the_pairs_the_other_way_round_changes_nothing(pairs: list[tuple[float, float]]) -> None:
    margins, labels = (torch.tensor(each) for each in zip(*pairs, strict=True))
    there, back = claims(margins, labels), claims(-margins, 1 - labels)
    assert torch.allclose(there[0], back[0])
    assert torch.allclose(there[1], back[1])
    assert brier(margins, labels) == pytest.approx(brier(-margins, 1 - labels), abs=1e-6)
    assert fitted_temperature(margins, labels) == pytest.approx(fitted_temperature(-margins, 1 - labels), rel=1e-5)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(PAIRS, st.floats(0.1, 10))
def test_scores_of_another_scale_have_a_temperature_of_that_scale(
    pairs: list[tuple[float, float]], scale: float
) -> None:
    margins, labels = (torch.tensor(each, dtype=torch.double) for each in zip(*pairs, strict=True))
    found = fitted_temperature(margins, labels)
    if 1e-6 < found < 1e6:
        assert fitted_temperature(margins * scale, labels) == pytest.approx(found * scale, rel=1e-6)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(PAIRS)
def test_the_error_is_no_larger_than_one_and_depends_on_no_order(pairs: list[tuple[float, float]]) -> None:
    margins, labels = (torch.tensor(each, dtype=torch.double) for each in zip(*pairs, strict=True))
    error = expected_calibration_error(reliability(*claims(margins, labels)))
    turned = expected_calibration_error(reliability(*claims(margins.flip(0), labels.flip(0))))
    assert 0 <= error <= 1
    assert error == pytest.approx(turned, abs=1e-12)


def test_extreme_scores_give_numbers() -> None:
    """O-01 and O-02: margins of 1000 and of 120000 are certainties, no overflow."""
    margins = torch.tensor([1000.0, -120000.0])
    assert brier(margins, torch.tensor([1.0, 1.0])) == 0.5
    assert math.isfinite(fitted_temperature(margins, torch.tensor([1.0, 0.0])) + 1)
