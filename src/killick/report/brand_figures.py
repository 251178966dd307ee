"""The figures of the brand recipe: what best-of-n gains and where it turns, and which flaws PPO trades."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

from killick.ops.stats import ends
from killick.report.panels import arm_panels, below
from killick.report.picture import Picture
from killick.report.reading import WINDOW, Arm, Row, Shown
from killick.report.style import COLOURS, INK, marks
from killick.report.words import number
from killick.worlds.catalogue import FLAWS

Maker = Callable[[], Picture | None]
TICKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def makers(shown: Shown) -> dict[str, Maker]:
    """The figures that this run may have, by name; none where no stage chose among a pool of answers."""
    curves = [stage["curves"] for stage in shown.stages.values() if "head" in stage.get("curves", {})]
    if not curves:
        return {}
    return {"best-of-n": partial(best_of_n, curves), "flaws-against-kl": partial(flaws, shown)}


def column(curve: Row, name: str) -> list[Any]:
    """One number of each point."""
    return [point[name] for point in curve["points"]]


def line(axes: Axes, curves: list[Row], *, name: str, label: str, index: int) -> None:
    """The first seed's curve with its interval over products, and the others faint behind it."""
    look = marks(index)
    for other in curves[1:]:
        axes.plot(column(other, "n"), column(other, name), color=look["color"], alpha=0.35, linewidth=0.7)
    first = curves[0]
    low, high = zip(*column(first, f"{name}_interval"), strict=True)
    axes.fill_between(column(first, "n"), low, high, color=look["color"], alpha=0.16, linewidth=0)
    axes.plot(column(first, "n"), column(first, name), label=label, **look)


def best_of_n(curves: list[Row]) -> Picture | None:
    """The proxy above, gold below, against n and the bound of its KL; the turn of gold is marked."""
    head = [each["head"] for each in curves]
    first = head[0]

    def paint(figure: Figure) -> None:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1, 1.5])
        line(above, head, name="proxy", label="kept by the head", index=0)
        line(below, head, name="gold", label="kept by the head", index=0)
        line(below, [each["reviewer"] for each in curves], name="gold", label="kept by the reviewer", index=1)
        low, high = first["top_interval"]
        for axes in (above, below):
            axes.axvspan(low, high, color=COLOURS[5], alpha=0.14, linewidth=0)
            axes.axvline(first["top"], color=INK, linewidth=0.7, linestyle=(0, (2, 2)))
            axes.set_xscale("log")
        below.plot([], [], color=INK, linewidth=0.7, linestyle=(0, (2, 2)), label="the head's best n")
        bounds = {point["n"]: point["kl_bound"] for point in first["points"]}
        ticks = [n for n in TICKS if n in bounds]
        below.set_xticks(ticks, [f"{n}\n{bounds[n]:.2f}" for n in ticks])
        below.xaxis.set_minor_locator(NullLocator())
        below.xaxis.set_minor_formatter(NullFormatter())
        below.set_xlabel("answers drawn, n; below it the bound of the KL, nats")
        above.set_ylabel("proxy,\ndeviations")
        below.set_ylabel("gold, minus the\nnumber of flaws")
        figure.suptitle("Best-of-n on held-out products")
        figure.legend(*below.get_legend_handles_labels(), loc="outside lower center", ncols=2)

    end = first["points"][-1]
    falls = "falls again beyond it" if first["turns"] else "has not surely turned by the end of the pool"
    seeds = f" Faint lines are the other {len(curves) - 1} seeds." if len(curves) > 1 else ""
    caption = (
        f"The best of more answers by score: the proxy rises to {number(end['proxy'])} at n = {end['n']}, gold by the "
        f"head goes from {number(first['points'][0]['gold'])} to {number(max(column(first, 'gold')))} at n = "
        f"{first['top']} (95 % interval {low_high(first)}, shaded) and {falls}. Bands are 95 % intervals over "
        f"{first['prompts']} products.{seeds}"
    )
    return Picture("best-of-n", "Best-of-n", caption, 3.9, paint)


def low_high(curve: Row) -> str:
    """The interval of the best n."""
    return " to ".join(map(str, curve["top_interval"]))


def flaws(shown: Shown) -> Picture | None:
    """How often answers have each flaw, against the KL that PPO has spent: a panel an arm."""
    arms = [arm for arm in shown.arms if arm.has("kl") and all(arm.has(f"flaw_{kind}") for kind in FLAWS)]
    if not arms:
        return None

    def draw(axes: Axes, arm: Arm) -> None:
        for index, kind in enumerate(FLAWS):
            path(axes, arm, column=f"flaw_{kind}", index=index, label=kind)
        axes.set_ylim(-0.03, 1.03)

    def paint(figure: Figure) -> None:
        arm_panels(figure, arms, draw=draw, labels=("KL, nats per response", "share of answers"))
        figure.suptitle("Flaws by kind against KL, one panel an arm")

    told = "; ".join(f"{arm.name}: {bargain(arm)}" for arm in arms)
    caption = (
        "The axes of KL differ. A line that falls is a flaw that the reward model sees; one that rises pays for it. "
        f"From the first tenth of the iterations to the last third: {told}. Lines are means over {WINDOW} iterations."
    )
    return Picture("flaws-against-kl", "Which flaws PPO trades", caption, 1.3 + 1.5 * below(len(arms))[0], paint)


def path(axes: Axes, arm: Arm, *, column: str, index: int, label: str) -> None:
    """One kind of flaw along the KL of an arm, both smoothed over iterations, joined in the order of iterations."""
    look = marks(index) | {"marker": ""}
    axes.plot(arm.smooth("kl"), arm.smooth(column), label=label, **look)
    real = np.flatnonzero(np.isfinite(arm.smooth(column)))
    axes.plot(arm.smooth("kl")[real[-1]], arm.smooth(column)[real[-1]], **(look | {"marker": marks(index)["marker"]}))


def bargain(arm: Arm) -> str:
    """How each flaw's share moved, by the same ends as the table of the run."""
    said = []
    for kind in FLAWS:
        shares = arm.mean(f"flaw_{kind}")
        before, after = ends(shares[np.isfinite(shares)].tolist())
        said.append(f"{kind} {number(before)} to {number(after)}")
    return ", ".join(said)
