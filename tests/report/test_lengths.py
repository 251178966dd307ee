"""The picture of length: what was counted is where it belongs."""

from typing import Any

from matplotlib.figure import Figure

from killick.report.lengths import length_picture
from killick.report.style import render

BINS: list[dict[str, Any]] = [
    {"above": 1.0, "share": 0.5, "low": 0.4, "high": 0.6, "pairs": 90},
    {"above": 1.5, "share": None, "low": None, "high": None, "pairs": 0},
    {"above": 3.0, "share": 0.8, "low": 0.7, "high": 0.9, "pairs": 40},
]


def test_points_bars_and_names() -> None:
    """A bin without pairs has a bar of nothing and no point."""
    figure = Figure()
    length_picture(BINS).paint(figure)
    above, below = figure.axes
    points: Any = next(line for line in above.lines if line.get_marker() == "o")
    bars: Any = below.patches
    assert points.get_xydata().tolist() == [[0, 0.5], [2, 0.8]]
    assert [bar.get_height() for bar in bars] == [90, 0, 40]
    assert [text.get_text() for text in below.get_xticklabels()] == ["to 1.5", "to 3", "over 3"]


def test_it_is_drawn_without_a_pair_too() -> None:
    files = render(length_picture([{**each, "pairs": 0} for each in BINS]).paint, size=(3.5, 2.9))
    assert files["png"][:4] == b"\x89PNG"
