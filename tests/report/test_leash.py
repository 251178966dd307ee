"""The picture of the exact leash: both columns where both are known, at the places that the closed form gives."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from killick.report.leash import leash
from killick.worlds.listed import FIVE, AnswerTable, numbers


def painted(table: AnswerTable) -> Figure:
    figure = Figure()
    leash(table, betas=(1, 0.5), ns=(2, 4)).paint(figure)
    return figure


def test_the_marks_lie_where_the_source_has_them() -> None:
    reward, gold = painted(FIVE).axes
    assert "reward" in reward.get_ylabel()
    assert "gold" in gold.get_ylabel()
    tilted, best = gold.lines[1:]
    assert np.asarray(tilted.get_xdata()).tolist() == pytest.approx([0.1779, 0.4709], abs=5e-5)
    assert np.asarray(tilted.get_ydata()).tolist() == pytest.approx([0.4993, 0.3904], abs=5e-5)
    assert np.asarray(best.get_ydata()).tolist() == pytest.approx([0.5635, 0.5656], abs=5e-5)
    assert [text.get_text() for text in gold.texts] == ["1", "0.5", "2", "4"]
    # The line of the reward rises all the way; gold's turns.
    rising, turning = (np.asarray(axes.lines[0].get_ydata()).tolist() for axes in (reward, gold))
    assert rising == sorted(rising)
    assert max(turning) > max(turning[0], turning[-1])


def test_without_gold_there_is_one_panel() -> None:
    assert len(painted(replace(FIVE, gold=None)).axes) == 1


@pytest.mark.parametrize("reward", [(1.0, 1.0), (-1e9, 1e9), (0.0, 1e-12)])
def test_rewards_of_any_size_are_drawn(reward: tuple[float, float]) -> None:
    table = AnswerTable(("a", "b"), numbers(0.9, 0.1), numbers(*reward), numbers(*reward))
    figure = Figure(figsize=(3.5, 4), dpi=50)
    leash(table, betas=(1,), ns=(2,)).paint(figure)
    FigureCanvasAgg(figure).draw()
    assert figure.axes[0].get_xlim()[1] > 0
