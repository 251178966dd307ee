"""Best-of-n along n: what the reward says, and what people want, with intervals over prompts."""

from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from killick.algorithms.best_of_n import Curve
from killick.report.picture import Picture
from killick.report.style import COLOURS, DASHES, INK, MARKERS


def best_of(curve: Curve) -> Picture:
    """Reward against n, and gold below it where it is known; the n at which gold turns is marked."""
    columns = {"proxy": "reward: what chose"} | ({} if curve.top is None else {"gold": "gold: what people want"})
    ns = [point.n for point in curve.points]

    def paint(figure: Figure) -> None:
        grid = figure.subplots(len(columns), 1, squeeze=False, sharex=True)[:, 0]
        for place, (axes, (column, label)) in enumerate(zip(grid, columns.items(), strict=True)):
            low, high = zip(*(getattr(point, column + "_interval") for point in curve.points), strict=True)
            means = [getattr(point, column) for point in curve.points]
            axes.fill_between(ns, low, high, color=COLOURS[place], alpha=0.18, linewidth=0)
            axes.plot(ns, means, color=COLOURS[place], linestyle=DASHES[place], marker=MARKERS[place])
            axes.set_ylabel(label)
            if column == "gold" and curve.turns:
                axes.axvline(curve.top, color=INK, linewidth=0.8, linestyle=(0, (4, 2)))
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_locator(FixedLocator(ns))
            axes.xaxis.set_minor_locator(NullLocator())
            named = [f"{point.n}\n{point.kl_bound:.2f}" for point in curve.points]
            axes.xaxis.set_major_formatter(FixedFormatter(named))
        grid[-1].set_xlabel("n, with the bound of KL in nats below")
        figure.suptitle("Best of n, from your own responses")

    falls = "and falls beyond (dashed)" if curve.turns else "but whether it falls beyond is not sure"
    turn = f" Gold is highest at n = {curve.top} {falls}." if curve.top not in (None, ns[-1]) else ""
    turn = " Gold is the same at every n." if curve.level else turn
    caption = (
        f"Means over {curve.prompts} prompts, unbiased from one pool for each; bands are 95 % intervals over prompts."
        f"{turn}"
    )
    return Picture("best_of", "Best of n", caption, 0.7 + 1.9 * len(columns), paint)
