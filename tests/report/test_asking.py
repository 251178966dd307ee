"""The figure of what to ask next: from stages alone, with what they hold."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from killick.report.asking import asking
from killick.report.reading import Shown


def shown(seeds: int) -> Shown:
    """So many seeds that compared, and one that did not."""
    study = {
        "sizes": [10, 20], "whole": 0.63, "ceiling": 0.65,
        "accuracy": {"random": [0.5, 0.6], "disagreement": [0.5, 0.61], "information": [0.5, 0.62]},
    }  # fmt: skip
    stages = {str(seed): {"asking": study} for seed in range(seeds)} | {"other": {"weights": {}}}
    return Shown(Path(), [], [], stages, {}, {}, {})


@pytest.mark.parametrize("seeds", [1, 3])
def test_a_line_for_each_strategy_and_two_for_what_is_possible(seeds: int) -> None:
    """The caption tells where each ended; bands only with several seeds."""
    picture = asking(shown(seeds))
    assert picture is not None
    assert "at random 0.600; ensemble disagreement 0.610; Fisher information 0.620 after 20 labels" in picture.caption
    assert ("one standard error" in picture.caption) == (seeds > 1)
    figure = Figure()
    picture.paint(figure)
    (axes,) = figure.axes
    assert len(axes.lines) == 5
    assert len(axes.collections) == (3 if seeds > 1 else 0)


def test_a_run_that_did_not_compare_has_no_figure() -> None:
    assert asking(shown(0)) is None
