"""Arrangements of panels: who stands where, and which axes are named."""

from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from killick.report.panels import arm_panels, below, held_out_panels
from killick.report.reading import Arm


def arms(count: int) -> list[Arm]:
    """Arms with three steps at one height in every column."""
    level = np.full((1, 3), 2.0)
    return [Arm(f"beta={place}", [0], np.arange(3), {"proxy": level, "kl": level}) for place in range(count)]


@pytest.mark.parametrize(("count", "rows", "wide"), [(1, 1, 1), (2, 1, 2), (3, 2, 2), (5, 3, 2)])
def test_two_panels_stand_side_by_side(count: int, rows: int, wide: int) -> None:
    assert below(count) == (rows, wide)


def line(axes: Axes, arm: Arm) -> None:
    axes.plot(arm.steps, label="a line")


def test_three_arms_name_the_left_and_the_lowest_axes_and_the_fourth_place_is_empty() -> None:
    figure = Figure()
    arm_panels(figure, arms(3), draw=line, labels=("across", "up"))
    panels = figure.axes
    assert [axes.get_title() for axes in panels] == ["beta=0", "beta=1", "beta=2", ""]
    assert [axes.get_xlabel() for axes in panels] == ["", "across", "across", ""]
    assert [axes.get_ylabel() for axes in panels] == ["up", "", "up", ""]
    assert [axes.axison for axes in panels] == [True, True, True, False]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a line"]


def test_held_out_columns_are_marks_over_the_lines_of_training() -> None:
    asked = []

    def looks(arm: Arm, name: str) -> tuple[list[int], list[float], list[float]]:
        asked.append((arm.name, name))
        return [0, 2], [1.0, 3.0], [0.5, 0.5]

    figure = Figure()
    held_out_panels(figure, arms(2), columns=("proxy", "kl"), looks=looks, step="rollout", heights=(1, 2))
    assert asked == [("beta=0", "held_proxy"), ("beta=1", "held_proxy"), ("beta=0", "held_kl"), ("beta=1", "held_kl")]
    panels: list[Any] = figure.axes
    upper, lower = panels
    assert (upper.get_xlabel(), lower.get_xlabel()) == ("", "rollout")
    assert upper.lines[0].get_ydata().tolist() == [2, 2, 2]
    assert list(upper.containers[0].lines[0].get_ydata()) == [1, 3]
    assert lower.get_position().height > 1.5 * upper.get_position().height
