"""The picture of a best-of-n curve: one panel for each column that is known, its turn marked."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from killick.algorithms.best_of_n import best_of_n_curve
from killick.report.best_of import best_of

SCORES = torch.tensor([[3.0, 1.0, 2.0, 0.0], [0.0, 8.0, 0.0, 0.0]])
GOLD = torch.tensor([[-1.0, 0.0, 5.0, 8.0], [0.0, -8.0, 0.0, 0.0]])


def painted(gold: torch.Tensor | None) -> Figure:
    curve = best_of_n_curve(SCORES, gold, ns=(1, 2, 4), generator=torch.Generator().manual_seed(0))
    figure = Figure(figsize=(3.5, 4), dpi=50)
    best_of(curve).paint(figure)
    FigureCanvasAgg(figure).draw()
    return figure


def test_means_and_the_turn_stand_where_they_are() -> None:
    """By hand, as in the tests of the curve: 1.75, 3.17 and 5.5; gold is highest at n = 1."""
    proxy, gold = painted(GOLD).axes
    assert np.asarray(proxy.lines[0].get_ydata()).tolist() == pytest.approx([1.75, (14 / 6 + 4) / 2, 5.5])
    assert np.asarray(gold.lines[1].get_xdata()).tolist() == [1, 1]
    assert [text.get_text() for text in gold.get_xticklabels()] == ["1\n0.00", "2\n0.19", "4\n0.64"]


def test_without_gold_there_is_one_panel_and_with_gold_that_rises_no_mark() -> None:
    assert len(painted(None).axes) == 1
    assert len(painted(SCORES).axes[1].lines) == 1


def test_the_caption_says_what_turned() -> None:
    curve = best_of_n_curve(SCORES, GOLD, ns=(1, 4), generator=torch.Generator().manual_seed(0))
    assert "Gold is highest at n = 1 and falls beyond (dashed)." in best_of(curve).caption
    unsure = best_of(replace(curve, top_interval=(1, 4)))
    assert "Gold is highest at n = 1 but whether it falls beyond is not sure." in unsure.caption
    assert "Gold" not in best_of(replace(curve, top=4, top_interval=(1, 4))).caption
