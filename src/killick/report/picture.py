"""What a figure is before it is drawn, and the lines that every figure shares."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from killick.report.reading import Arm
from killick.report.style import marks

LABELS = {
    "proxy": "proxy, reward units",
    "gold": "gold, gold units",
    "kl": "KL, nats per response",
    "kl_k1": "KL (k1), nats per response",
    "beta": "beta, reward units per nat",
    "accuracy": "accuracy, share right",
    "emphasis": "emphasis, tokens per response",
    "promises": "promises of repair, sentences per answer",
    "tv_to_optimum": "distance to optimum, total variation",
    "finished": "finished, share of responses",
    "entropy": "entropy, nats per token",
    "length": "length, tokens",
}
"""Columns with their units, as an axis names them."""
OWN = ("accuracy", "emphasis", "promises", "tv_to_optimum", "finished", "entropy", "length")
"""What may stand beside proxy, gold and KL: the first that was measured."""


@dataclass(frozen=True)
class Picture:
    """A figure to be: its file's stem, what it shows, what to see in it, its height in inches, how to paint it."""

    name: str
    title: str
    caption: str
    height: float
    paint: Callable[[Figure], None]


def kl_column(arms: list[Arm]) -> str:
    """The exact KL, or the sampled log-ratio where no arm has the exact one."""
    return "kl" if any(arm.has("kl") for arm in arms) else "kl_k1"


def iterations(axes: Axes, column: str, *, named: bool = True) -> None:
    """Name the axes: the column with its unit, against iteration."""
    axes.set_ylabel(LABELS.get(column, column).replace(", ", ",\n"))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5, min_n_ticks=1))
    axes.set_xlabel("iteration" if named else "")
    axes.margins(x=0.02)


def trace(axes: Axes, arm: Arm, *, column: str, index: int, label: str, smooth: bool = True) -> None:
    """One line: smoothed over five iterations, with the raw one faint behind it, or one deviation over seeds.

    Args:
        axes: drawn into.
        arm: the arm; without a value in `column` only its name enters the legend.
        column: of the ledger.
        index: which colour, dash and marker.
        label: in the legend.
        smooth: whether to smooth.
    """
    look: dict[str, Any] = marks(index)
    if not arm.has(column):
        axes.plot([], [], label=label, **look)
        return
    mean, deviation = arm.mean(column), arm.deviation(column)
    line = arm.smooth(column) if smooth else mean
    if np.isfinite(deviation).any():
        low, high = line - deviation, line + deviation
        axes.fill_between(arm.steps, low, high, color=look["color"], alpha=0.18, linewidth=0)
    elif smooth and len(arm.steps) > 1:
        axes.plot(arm.steps, mean, color=look["color"], linewidth=0.5, alpha=0.35)
    count = len(arm.steps)
    every = sorted({round(place) for place in np.linspace(index % 4 / 30, 1, 6) * (count - 1)})
    axes.plot(arm.steps, line, label=label, markevery=every, **look)
