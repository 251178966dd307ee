"""The six demonstrations: what each table shows, read from a short real run."""

from functools import cache
from typing import Any

import pytest

from answers_arms import EVERY_ARM
from killick.recipes.answers import demonstrations as six
from killick.recipes.answers import recipe as answers
from killick.recipes.tables import Ledger, by_arm
from straight import kept


@cache
def run() -> tuple[Ledger, dict[str, Any]]:
    """Every arm, a few steps each."""
    told = kept(answers, EVERY_ARM)
    return by_arm(told.rows, 0), told.found["0"]


def test_the_candidates_are_those_of_prompt_0() -> None:
    """Gold .11 2.71 2.81 3.56 -.04 -1.62 .90 .67; the reference gives 20.3 % to each of the first four."""
    table = six.candidates(*run())
    column = dict(zip(table.columns, zip(*table.rows, strict=True), strict=True))
    assert column["gold"] == pytest.approx([0.11, 2.71, 2.81, 3.56, -0.04, -1.62, 0.90, 0.67], abs=6e-3)
    assert column["reference, %"] == pytest.approx([20.3, 20.3, 20.3, 20.3, 12.2, 4.3, 1.6, 0.6], abs=0.06)
    assert set(column["sounds right"]) <= {"yes", "no"}


def test_six_people_are_asked() -> None:
    """The chance is sigma of the difference, so above one half just where A has more gold."""
    table = six.questions(*run())
    assert len(table.rows) == 6
    for *_, first, second, chance, preferred in table.rows:
        assert isinstance(first, float)
        assert isinstance(second, float)
        assert isinstance(chance, float)
        assert (chance > 0.5) == (first > second)
        assert preferred in ("A", "B")


def test_the_fit_is_told_with_what_was_shown() -> None:
    """Loss at the steps kept; 2 x 50 answers shown; ranks 1 to 8 by the model's score."""
    _, found = run()
    assert six.losses(*run()).rows == found["losses"]
    table = six.opinions(*run())
    assert sum(int(str(row[1])) for row in table.rows) == 100
    by_score = sorted(table.rows, key=lambda row: -float(str(row[4])))
    assert [row[5] for row in by_score] == list(range(1, 9))


def test_the_leash_is_told_every_fifty_steps_and_prompt_by_prompt() -> None:
    ledger, found = run()
    table = six.on_the_leash(ledger, found)
    assert table is not None
    assert [row[0] for row in table.rows] == [0]  # three steps only
    favourites = six.favourites(ledger, found)
    assert favourites is not None
    assert [row[3] for row in favourites.rows] == [3, 3, 3, 5]
    good = six.good_model(ledger, found)
    assert good is not None
    assert {row[0] for row in good.rows} == {"beta=0+reinforce", "beta=0+ppo", "beta=0.5+reinforce", "beta=0.5+ppo"}


def test_hacking_is_told_with_the_prompt_that_went_furthest_wrong() -> None:
    """Made by hand: gold falls by 2 at prompt 1 and by .5 at prompt 2; the favourite there is answer 7."""
    _, found = run()
    row = {"proxy": 1.0, "kl": 1.0} | {f"pick_{prompt}": 7 for prompt in range(4)}
    golds = {"gold_0": 1.0, "gold_1": 3.0, "gold_2": 2.5, "gold_3": 1.0}
    rows = [row | golds | {"step": step, "gold": 3.0 - step / 100} for step in range(26)]
    rows[-1] |= {"gold_1": 1.0, "gold_2": 2.0}
    ledger = {"beta=0+thin": rows}
    table = six.furthest(ledger, found)
    assert table is not None
    assert "prompt 1" in table.title
    assert "From step 0 on gold fell there from 3.000 to 1.000" in table.note
    assert [bool(cells[4]) for cells in table.rows] == [False] * 7 + [True]
    hacked = six.hacked(ledger, found)
    assert hacked is not None
    assert hacked.rows == [[0, 1.0, 3.0, 1.0], [25, 1.0, 2.75, 1.0]]
    assert "best at step 0 (3.000)" in hacked.note
    assert [cells[0] for cells in six.correlations(ledger, found).rows] == [50, 150]


def test_the_leashs_lengths_stand_beside_the_reference() -> None:
    ledger, found = run()
    table = six.lengths(ledger, found)
    assert table is not None
    assert [row[0] for row in table.rows] == ["the reference", "beta=0+thin", "beta=0.5+thin", "beta=2+thin"]
    assert table.rows[0][1:] == [0.0, found["reference_gold"], 0.0]


def test_the_breaks_tell_the_real_distance_and_the_charged_one() -> None:
    ledger, found = run()
    table = six.breaks(ledger, found)
    assert table is not None
    assert [str(row[0]) for row in table.rows] == [
        "beta=0+flipped", "beta=0.5+thin+moving", "beta=0+thin+ascent", "beta=0+direct",
    ]  # fmt: skip
    moving = table.rows[1]
    assert moving[4] == 0
    assert float(str(moving[3])) > 0


@pytest.mark.parametrize("make", [six.on_the_leash, six.favourites, six.good_model, six.hacked, six.furthest,
                                  six.lengths, six.breaks])  # fmt: skip
def test_a_table_whose_arms_did_not_run_is_left_out(make: Any) -> None:
    assert make({}, run()[1]) is None
