"""Figures of an exam: each is drawn, with next to nothing in it too, and no interval reaches backwards."""

import numpy as np
import pytest

import exams
from killick.report.exam_figures import bin_name, exam_makers, reaching
from killick.report.style import render


@pytest.fixture(scope="module")
def examined(tmp_path_factory):
    """A whole exam with gold, members and labels of different strength."""
    rows = exams.rows(40, seed=0)
    for place, row in enumerate(rows):
        row["margin"] = place % 3 + 1
    from killick.recipes.exam.held import read_held

    held = read_held(exams.write(tmp_path_factory.mktemp("exam") / "p.jsonl", rows), None)
    return exams.examined(held, exams.setup(exams.GOOD, gold=exams.LENGTH, prompts=4))


def test_every_figure_is_drawn(examined):
    makers = exam_makers(examined.facts, examined.samples)
    assert list(makers) == ["slope", "probes", "accuracy", "length", "reliability", "spread"]
    for make in makers.values():
        picture = make()
        assert picture is not None
        assert render(picture.paint, size=(3.5, picture.height))["png"].startswith(b"\x89PNG")


def test_without_a_policy_its_figures_are_left_out(examined):
    facts = examined.facts | {"slope": None}
    drawn = {name: make() for name, make in exam_makers(facts, []).items()}
    assert drawn["slope"] is drawn["spread"] is None
    assert drawn["probes"] is not None


def test_probes_that_none_could_score_are_no_figure(examined):
    facts = examined.facts | {"probes": {"empty": {"what": "-", "beats_chosen": None, "reason": "-"}}}
    assert exam_makers(facts, [])["probes"]() is None


def test_a_line_far_above_the_curve_is_told_instead_of_drawn(examined):
    slope = examined.facts["slope"]
    far = slope | {"covered": {"n": 16, "kl": 1.8, "score": 1e6}}
    assert "Above all of this, at 1000000.00" in exam_makers(examined.facts | {"slope": far}, [])["slope"]().caption
    near = slope | {"covered": {"n": 16, "kl": 1.8, "score": slope["points"][-1]["proxy"]}}
    assert "Dashed" in exam_makers(examined.facts | {"slope": near}, [])["slope"]().caption


def test_intervals_reach_forwards_only():
    """Wilson's upper end at a share of 1 is 1 up to rounding."""
    found = reaching(np.array([1.0, 0.5]), [{"low": 0.9, "high": 1 - 1e-16}, {"low": 0.4, "high": 0.7}])
    assert found == pytest.approx(np.array([[0.1, 0.1], [0.0, 0.2]]))
    assert (found >= 0).all()


def test_a_bin_of_one_value_has_one_name():
    assert bin_name({"from": 3.0, "to": 3.0}) == "3"
    assert bin_name({"from": 0.12345, "to": 2.0}) == "0.123 to 2"
