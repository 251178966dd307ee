"""Reward and gold against KL where every answer is listed: the tilted family with its betas, and best-of-n."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from killick.algorithms.listed import Measured, every_beta, measure_best_of, measure_tilted
from killick.report.picture import Picture
from killick.report.style import COLOURS, INK
from killick.types import Listed

TICKS = (0.1, 0.3, 1, 2, 3, 4, 6, 8, 10, 15, 20)
"""Nats."""

Marked = list[tuple[str, Measured]]
"""What to write beside a point, and the point."""


def leash(table: Listed, *, betas: Sequence[float], ns: Sequence[int]) -> Picture:
    """Reward, and gold where it is known, against KL.

    Args:
        table: the answers.
        betas: marked along the curve.
        ns: of the best-of-n points.
    """
    curve = [measure_tilted(table, beta=beta) for beta in every_beta(table)]
    marks = [(format(beta, "g"), measure_tilted(table, beta=beta)) for beta in betas]
    bests = [(str(n), measure_best_of(table, n=n)) for n in ns]
    columns = {"proxy": "reward: what the optimiser sees"} | (
        {} if table.gold is None else {"gold": "gold: what people want"}
    )

    def paint(figure: Figure) -> None:
        grid = figure.subplots(len(columns), 1, squeeze=False, sharex=True)[:, 0]
        for axes, (column, label), colour in zip(grid, columns.items(), COLOURS, strict=False):
            panel(axes, column, curve=curve, betas=marks, bests=bests, colour=colour)
            axes.set_ylabel(label)
        grid[-1].set_xlabel("KL, nats (square-root scale)")
        grid[0].legend(*grid[0].get_legend_handles_labels(), loc="lower right")
        figure.suptitle("The exact leash")

    caption = (
        "The line is every policy p_ref x exp(reward / beta), from the tightest leash on the left to none at its right "
        "end, with some betas marked; crosses are exact best-of-n by n. No policy has more reward for its KL than the "
        "line; gold is another matter."
    )
    return Picture("leash", "The exact leash", caption, 0.6 + 2.1 * len(columns), paint)


def panel(axes: Axes, column: str, *, curve: list[Measured], betas: Marked, bests: Marked, colour: str) -> None:
    """One column against KL: the whole family, its marked betas, and best-of-n."""
    axes.plot([each.kl for each in curve], [getattr(each, column) for each in curve], color=colour)
    above, below = (0, 4), (0, -9)
    places = (above, below) if column == "proxy" else (below, above)  # best-of-n has less reward and often more gold
    for points, marker, shade, label, place in (
        (betas, "o", colour, "tilted, marked by beta", places[0]),
        (bests, "x", INK, "best-of-n, marked by n", places[1]),
    ):
        xs, ys = [each.kl for _, each in points], [getattr(each, column) for _, each in points]
        axes.plot(xs, ys, color=shade, marker=marker, linewidth=0, label=label)
        for (name, _), x, y in zip(points, xs, ys, strict=True):
            axes.annotate(name, (x, y), fontsize=6, color=shade, xytext=place, textcoords="offset points", ha="center")
    most = max(each.kl for each in curve)
    axes.set_xscale("function", functions=(lambda x: x.clip(0) ** 0.5, lambda x: x**2))
    axes.xaxis.set_major_locator(FixedLocator([0, *(tick for tick in TICKS if tick <= most)]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: format(x, "g")))
    axes.margins(y=0.12)
    axes.set_xlim(-0.0005, most * 1.06 or 1)
