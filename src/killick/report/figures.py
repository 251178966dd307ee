"""The figures of a run: all arms at once, each arm alone, gold against distance, a moving beta, the digit weights."""

import re
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from killick.hacking.scaling import Scaling, fit_scaling
from killick.report import align_figures, brand_figures, emphasis_figures, text_figures
from killick.report.asking import asking
from killick.report.frontier import frontier
from killick.report.picture import OWN, Picture, iterations, kl_column, trace
from killick.report.reading import WINDOW, Arm, Shown, masked_mean, slug
from killick.report.style import COLOURS, INK
from killick.report.words import arm_words, best, number
from killick.types import Refusal

ALONE = 6
"""Arms up to which each has a figure of its own; with more, the page would be a heap that nobody looks through."""
Maker = Callable[[], Picture | None]
LINES = f"Lines are means over {WINDOW} rows of the ledger"


def makers(shown: Shown) -> dict[str, Maker]:
    """Every figure that this run may have, by name, not yet made: one that fails takes no other with it."""
    found: dict[str, Maker] = {"overview": partial(overview, shown)}
    found |= brand_figures.makers(shown) | emphasis_figures.makers(shown) | text_figures.makers(shown)
    found |= align_figures.makers(shown)
    for arm in shown.arms if len(shown.arms) <= ALONE else ():
        name = f"arm-{slug(arm.name)}"
        while name in found:
            name += "-again"
        found[name] = partial(single, arm, name)
    return found | {
        "gold-against-distance": partial(against_distance, shown),
        "frontier": partial(frontier, shown),
        "beta": partial(moving_beta, shown),
        "digit-weights": partial(digit_weights, shown),
        "asking": partial(asking, shown),
    }


def overview(shown: Shown) -> Picture | None:
    """Proxy, gold, KL and what else the recipe measures, against iteration, one line an arm."""
    if not shown.arms:
        return None
    own = next((column for column in OWN if any(arm.has(column) for arm in shown.arms)), None)
    columns = ["proxy", "gold", kl_column(shown.arms), *([own] if own else [])]
    seeds = max(len(arm.seeds) for arm in shown.arms)
    behind = f"the band is one deviation over {seeds} seeds" if seeds > 1 else "the faint line is each iteration"
    wide = 3 if max(len(arm.name) for arm in shown.arms) < 15 else 2
    rows = -(-len(shown.arms) // wide)
    lengths = [int(arm.steps[-1]) + 1 for arm in shown.arms]

    def paint(figure: Figure) -> None:
        grid = figure.subplots(2, 2, sharex=True).flatten()
        for place, (axes, column) in enumerate(zip(grid, columns, strict=False)):
            for index, arm in enumerate(shown.arms):
                trace(axes, arm, column=column, index=index, label=arm.name)
            iterations(axes, column, named=place >= 2)
            if max(lengths) > 4 * min(lengths):
                logarithmic(axes, lengths)
        unfold(grid[2], [arm.final(columns[2])[0] for arm in shown.arms])
        for axes in grid[len(columns) :]:
            axes.set_axis_off()
        figure.suptitle("Proxy, gold and KL of every arm")
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(wide, len(labels)))

    return Picture(
        "overview",
        f"All arms of {shown.recipe}",
        f"Read the panels together: where the proxy climbs and gold falls, look at the KL. {LINES}; {behind}.",
        3.6 + 0.14 * rows,
        paint,
    )


def logarithmic(axes: Axes, lengths: list[int]) -> None:
    """Iterations by their logarithm past the first: else one long arm would squeeze all others against the axis."""
    straight = min(lengths) / 4
    tens = [10**power for power in range(9) if straight <= 10**power < max(lengths)]
    axes.set_xscale("symlog", linthresh=straight)
    axes.set_xticks([0, *tens], ["0", *map(str, tens)])
    axes.set_xticks([], minor=True)


def unfold(axes: Axes, ends: list[float]) -> None:
    """KL by its logarithm past 1 nat where one arm ends twenty times as far as another: else the near ones lie on 0."""
    far = [end for end in ends if np.isfinite(end)]
    if far and max(far) > 20 * max(min(far), 0.05):
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=0)
        between = (1, 2, 5) if max(far) < 30 else (1,)
        steps = (step * 10**power for power in range(9) for step in between)
        ticks = [0, 0.5, *(tick for tick in steps if tick <= max(far))]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_yticks([], minor=True)


def single(arm: Arm, name: str) -> Picture:
    """One arm: proxy and gold in one panel, KL below, then the shares that the recipe measures."""
    kl, top = kl_column([arm]), best(arm)
    shares = [column for column in ("accuracy", "finished") if arm.has(column)]
    panels = [["proxy", "gold"], [kl]] + ([shares] if shares else [])

    def paint(figure: Figure) -> None:
        grid = figure.subplots(len(panels), 1, sharex=True, height_ratios=[1.4, 1, 1][: len(panels)])
        for axes, columns in zip(grid, panels, strict=True):
            for index, column in enumerate(columns):
                trace(axes, arm, column=column, index=index, label=column)
            iterations(axes, columns[0], named=axes is grid[-1])
            if len(columns) > 1:
                axes.set_ylabel("score,\nown unit each" if columns[0] == "proxy" else "share of\nresponses")
                axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.1)
            if top:
                axes.axvline(top[0], color=INK, linewidth=0.7, linestyle=(0, (2, 2)))
        figure.suptitle(f"Proxy, gold and KL of {arm.name}")

    dotted = " The dotted line marks the best gold." if top else ""
    return Picture(name, f"Arm {arm.name}", f"{arm_words(arm, kl)}{dotted} {LINES}.", 2.6 + 1.1 * bool(shares), paint)


def against_distance(shown: Shown) -> Picture | None:
    """Gold gained against sqrt(KL) where nothing held the policy back, with the fitted RL form."""
    arm = next((arm for arm in shown.arms if arm.name == "beta=0"), None)
    if arm is None or not arm.has("kl") or not arm.has("gold"):
        return None
    gold = arm.columns["gold"] - arm.columns["gold"][:, :1]
    distance = np.sqrt(arm.columns["kl"].clip(min=0))
    real = np.isfinite(gold) & np.isfinite(distance)
    seeds = np.broadcast_to(np.arange(len(arm.seeds))[:, None], real.shape)[real]
    points = torch.from_numpy(distance[real]), torch.from_numpy(gold[real])
    over = "seeds" if len(arm.seeds) > 2 else "points"
    try:
        group = torch.from_numpy(seeds) if over == "seeds" else None
        found = fit_scaling(*points, generator=torch.Generator().manual_seed(0), group=group)
        fitted: Scaling | None = found
        told = fit_words(found, over, points=points)
    except Refusal as refusal:
        fitted, told = None, f"No curve is fitted: {refusal}"
    told += " Colours are seeds." if len(arm.seeds) > 1 else ""

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        colours = [COLOURS[(1 + seed) % len(COLOURS)] for seed in seeds]
        axes.scatter(*points, s=5, c=colours, linewidths=0, alpha=0.7, label=f"{arm.name}, one point an iteration")
        if fitted:
            along = torch.linspace(0, float(points[0].max()), 200, dtype=torch.float64)
            low, high = fitted.band(along)
            axes.fill_between(along, low, high, color=COLOURS[0], alpha=0.2, linewidth=0, label=f"95 % over {over}")
            axes.plot(along, fitted.gold(along), color=COLOURS[0], label="d (alpha - b log d), fitted")
        axes.set_xlabel("distance d = sqrt(KL), square root of nats")
        axes.set_ylabel("gold gained since iteration 0, gold units")
        figure.suptitle("Gold against distance from the reference, beta = 0")
        figure.legend(loc="outside lower center", ncols=2)

    return Picture("gold-against-distance", "Gold against distance", told, 3.0, paint)


def fit_words(fitted: Scaling, over: str, *, points: tuple[torch.Tensor, torch.Tensor]) -> str:
    """The coefficients with their intervals, and the curve's peak beside what the run itself reached."""
    alpha, b = fitted.intervals()
    top = int(points[1].argmax())
    told = (
        f"The curve d (alpha - b log d) fits with alpha {number(fitted.alpha)} [{number(alpha[0])}, {number(alpha[1])}]"
        f" and b {number(fitted.b)} [{number(b[0])}, {number(b[1])}] (95 %, resampled {over}); it misses the points by "
        f"{number(fitted.miss)} gold units (root mean square), so trust it as far as it follows them. "
    )
    peak = "has no peak" if fitted.peak is None else f"peaks at d = {number(fitted.peak[0])} ({number(fitted.peak[1])})"
    return (
        f"{told}The curve {peak}; the run's own best is {number(float(points[1][top]))} at d = "
        f"{number(float(points[0][top]))}. The form: Gao, Schulman and Hilton 2022, arXiv 2210.10760."
    )


def moving_beta(shown: Shown) -> Picture | None:
    """Beta and the KL that it steers, for the arms in which beta moves."""
    steered = [arm for arm in shown.arms if "beta" in arm.columns and any(moves(row) for row in arm.columns["beta"])]
    if not steered:
        return None
    kl = kl_column(steered)

    def paint(figure: Figure) -> None:
        grid = figure.subplots(2, 1, sharex=True)
        for index, arm in enumerate(steered):
            trace(grid[0], arm, column="beta", index=index, label=arm.name, smooth=False)
            trace(grid[1], arm, column=kl, index=index, label=arm.name)
            target = re.search(r"\+target=([-+.e\d]+)", arm.name)
            if target:
                grid[1].axhline(float(target[1]), color=INK, linewidth=0.7, linestyle=(0, (2, 2)), label="target")
        for axes, column in zip(grid, ("beta", kl), strict=True):
            iterations(axes, column, named=axes is grid[1])
        figure.suptitle("Beta, and the KL that it steers")
        figure.legend(*grid[1].get_legend_handles_labels(), loc="outside lower center", ncols=2)

    caption = "Beta rises while the KL is above its target and falls while it is below; read the two panels together."
    return Picture("beta", "Beta over time", caption, 3.0, paint)


def moves(values: Float[np.ndarray, " step"]) -> bool:
    """Whether more than one value was measured."""
    return len(set(values[np.isfinite(values)].tolist())) > 1


def digit_weights(shown: Shown) -> Picture | None:
    """What the reward model learned: one bar a symbol, the mean over seeds with each seed as a point."""
    by_seed = [stage["weights"] for stage in shown.stages.values() if stage.get("weights")]
    if not by_seed:
        return None
    names = list(by_seed[0])
    values = np.array([[weights.get(name, np.nan) for name in names] for weights in by_seed], dtype=float)

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for place, (name, mean) in enumerate(zip(names, masked_mean(values), strict=True)):
            even, odd = (name.isdigit() and int(name) % 2 == side for side in (0, 1))
            colour, label = (1, "even digit") if even else (0, "odd digit") if odd else (2, "other symbol")
            hatch = "" if even else "////" if odd else ".."
            axes.bar(place, mean, color=COLOURS[colour], hatch=hatch, edgecolor="white", linewidth=0, label=label)
            tip = values[:, place].max() if mean >= 0 else values[:, place].min()
            axes.annotate(
                f"{mean:+.2f}", (place, tip), xytext=(0, 3 if mean >= 0 else -3), textcoords="offset points",
                ha="center", va="bottom" if mean >= 0 else "top", fontsize=6,
            )  # fmt: skip
            if len(values) > 1:
                axes.scatter([place] * len(values), values[:, place], s=4, color=INK, zorder=3, linewidths=0)
        axes.axhline(0, color=INK, linewidth=0.6)
        axes.set_xticks(range(len(names)), names)
        axes.grid(axis="x", visible=False)
        axes.margins(y=0.12)
        axes.set_xlabel("symbol")
        axes.set_ylabel("weight, reward units per count")
        figure.suptitle("What the reward model pays for each symbol")
        unique = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        figure.legend(unique.values(), unique.keys(), loc="outside lower center", ncols=3)

    points = " Points are seeds." if len(values) > 1 else ""
    caption = (
        "The score of a response is the sum of these weights over its symbols, whatever their place: the symbol with "
        f"the highest bar pays every time it is written.{points}"
    )
    return Picture("digit-weights", "Weights of the reward model", caption, 2.4, paint)
