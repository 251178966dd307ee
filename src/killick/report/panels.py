"""Two arrangements that several recipes draw: a panel for each arm, and held-out prompts through training."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from killick.report.picture import LABELS
from killick.report.reading import Arm
from killick.report.style import marks

Looks: TypeAlias = Callable[[Arm, str], tuple[Any, Any, Any]]
"""An arm and a column: the steps at which it was measured, its means, and how far their bars reach."""


def below(count: int) -> tuple[int, int]:
    """Rows and columns of so many panels, at most two side by side."""
    wide = min(2, count)
    return -(-count // wide), wide


def arm_panels(
    figure: Figure, arms: Sequence[Arm], *, draw: Callable[[Axes, Arm], None], labels: tuple[str, str]
) -> None:
    """A panel for each arm on one scale of heights, with one legend below.

    Args:
        figure: drawn into.
        arms: one or more.
        draw: puts an arm's lines into its panel.
        labels: of the horizontal axis, told below the last row, and of the vertical one, told on the left.
    """
    rows, wide = below(len(arms))
    grid = figure.subplots(rows, wide, sharey=True, squeeze=False).flatten()
    for place, (axes, arm) in enumerate(zip(grid, arms, strict=False)):
        draw(axes, arm)
        axes.set_title(arm.name)
        if place >= len(arms) - wide:
            axes.set_xlabel(labels[0])
        if place % wide == 0:
            axes.set_ylabel(labels[1])
    for axes in grid[len(arms) :]:
        axes.set_axis_off()
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)


def held_out_panels(
    figure: Figure, arms: Sequence[Arm], *, columns: Sequence[str], looks: Looks, step: str,
    heights: Sequence[float] | None = None,
) -> None:  # fmt: skip
    """Held-out prompts as marks with bars, the training prompts as faint lines behind them, a panel for each column.

    Args:
        figure: drawn into.
        arms: one or more.
        columns: proxy, gold, kl or some of them; the held-out ones begin with `held_`.
        looks: what was measured.
        step: what a step is called.
        heights: of the panels, relative to each other; None makes them equal.
    """
    grid = figure.subplots(len(columns), 1, sharex=True, squeeze=False, height_ratios=heights).flatten()
    for axes, name in zip(grid, columns, strict=True):
        for index, arm in enumerate(arms):
            look = marks(index)
            axes.plot(arm.steps, arm.smooth(name), color=look["color"], linewidth=0.7, alpha=0.45)
            steps, means, reach = looks(arm, f"held_{name}")
            axes.errorbar(steps, means, yerr=reach, label=arm.name, elinewidth=0.8, capsize=2, **look)
        axes.set_ylabel(LABELS[name].replace(", ", ",\n"))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    grid[-1].set_xlabel(step)
    figure.suptitle("Held-out prompts through training")
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
