"""Claims: measured at every seed, their mean held against the band, nothing said of an arm that did not run."""

import math
from dataclasses import replace
from typing import Any

import pytest

from killick.ops.stats import smoothed
from killick.recipes.claims import Claim, column, judge, peak_gold, peak_step, stage

CLAIM = Claim("gold", "beta=0", "final gold", "-1", -1.0, -1.1, -0.9, "", column("gold", 2))
FOUND: dict[str, dict[str, Any]] = {"0": {"accuracy": 0.5}, "10": {"accuracy": 0.7}, "2": {"accuracy": 0.6}}


def rows(arm: str, seed: int, golds: list[float]) -> list[dict[str, Any]]:
    return [{"arm": arm, "seed": seed, "step": 5 * i, "gold": gold} for i, gold in enumerate(golds)]


def test_one_seed_gives_a_figure_and_no_spread() -> None:
    """The mean of the last two steps, (-0.9 - 1.1) / 2; every column of results.json in its order."""
    (found,) = judge([CLAIM], rows("beta=0", 0, [5.0, -0.9, -1.1]), found={"0": {}})
    assert found == {
        "id": "gold", "arm": "beta=0", "text": "final gold", "source": "-1", "expected": -1.0, "low": -1.1,
        "high": -0.9, "measured": -1.0, "spread": None, "unit": "", "kind": "claim", "holds": True,
    }  # fmt: skip
    assert list(found) == ["id", "arm", "text", "source", "expected", "low", "high", "measured", "spread", "unit",
                           "kind", "holds"]  # fmt: skip


def test_several_seeds_give_mean_and_sample_deviation() -> None:
    """Golds 1, 2 and 6 of seeds 0, 2 and 10: mean 3, deviation sqrt((4 + 1 + 9) / 2); another arm's rows do not count,
    and neither do another seed's."""
    ledger = rows("beta=0", 0, [1.0]) + rows("beta=0", 2, [2.0]) + rows("beta=0", 10, [6.0]) + rows("beta=1", 0, [99.0])
    (found,) = judge([CLAIM], ledger, found=FOUND)
    assert found["measured"] == pytest.approx(3)
    assert found["spread"] == pytest.approx(math.sqrt(7))
    assert found["holds"] is False


@pytest.mark.parametrize(
    ("low", "high", "holds"),
    [
        (None, None, True),
        (0.5, None, True),
        (0.51, None, False),
        (None, 0.5, True),
        (None, 0.49, False),
        (0.5, 0.5, True),
    ],
)
def test_a_band_holds_its_ends_and_an_end_that_is_none_is_open(low: Any, high: Any, holds: bool) -> None:
    (found,) = judge([replace(CLAIM, low=low, high=high)], rows("beta=0", 0, [0.5]), found={"0": {}})
    assert found["holds"] is holds


def test_what_nothing_measures_is_left_out() -> None:
    """At the one seed that has it, it is measured; at none, the claim is not shown."""
    claim = replace(CLAIM, arm=None, measure=lambda _, found: found.get("only"))
    (found,) = judge([claim], [], found={"0": {}, "1": {"only": -1.0}})
    assert (found["measured"], found["spread"]) == (-1.0, None)
    assert judge([claim], [], found={"0": {}, "1": {}}) == []


def test_a_figure_that_is_no_number_does_not_hold() -> None:
    (found,) = judge([CLAIM], rows("beta=0", 0, [math.nan]), found={"0": {}})
    assert found["holds"] is False


def test_a_claim_about_an_arm_that_did_not_run_is_left_out() -> None:
    """The others are judged; a seed that has not got that far does not count."""
    claims = [replace(CLAIM, arm="beta=7"), CLAIM]
    found = judge(claims, rows("beta=0", 2, [-1.0]), found=FOUND)
    assert [(claim["arm"], claim["measured"], claim["spread"]) for claim in found] == [("beta=0", -1.0, None)]
    assert judge(claims, [], found=FOUND) == []


def test_what_comes_before_the_arms_is_read_from_the_stages_of_every_seed() -> None:
    """Accuracies .5, .6 and .7."""
    claim = replace(CLAIM, arm=None, measure=stage("accuracy"), low=0.59, high=0.61)
    (found,) = judge([claim], [], found=FOUND)
    assert (found["measured"], found["spread"]) == (pytest.approx(0.6), pytest.approx(0.1))
    assert found["holds"] is True


def test_a_setting_is_measured_and_not_judged() -> None:
    (found,) = judge([replace(CLAIM, kind="setting")], rows("beta=0", 0, [5.0]), found={"0": {}})
    assert (found["measured"], found["holds"], found["kind"]) == (5.0, None, "setting")


def test_a_window_of_five_is_shorter_at_the_ends() -> None:
    """(0 + 1 + 2) / 3, (0 + 1 + 2 + 1) / 4, (0 + 1 + 2 + 1 - 1) / 5, (1 + 2 + 1 - 1) / 4, (2 + 1 - 1) / 3."""
    assert smoothed([0.0, 1.0, 2.0, 1.0, -1.0]) == pytest.approx([1, 1, 0.6, 0.75, 2 / 3])
    assert smoothed([3.0]) == [3.0]


def test_the_peak_is_read_from_smoothed_gold_at_its_step() -> None:
    """One lucky batch at place 9 (gold 2, smoothed .6) is no peak beside five good ones around place 2 (1)."""
    ledger = rows("a", 0, [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.25, 2.0, 0.0, 0.0])
    assert peak_step(ledger[2:], {}) == 10
    assert peak_gold(ledger, {}) == 1.0


def test_a_column_is_read_at_the_end_of_an_arm() -> None:
    """Its last ten steps, or as many as there are."""
    ledger = rows("a", 0, [float(i) for i in range(20)])
    assert column("gold")(ledger, {}) == pytest.approx(14.5)
    assert column("gold")(ledger[:3], {}) == pytest.approx(1)
