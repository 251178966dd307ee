"""The figures of the emphasis recipe: its reward model, the hacking of it, the leash, and the families side by side.

The first three carry the source's names and content; each stands only where the run holds what it shows.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

from killick.report.picture import Picture, iterations, trace
from killick.report.reading import Arm, Row, Shown, masked_mean
from killick.report.style import COLOURS, INK, marks
from killick.report.words import best, number

Maker = Callable[[], Picture | None]
Curve = Float[np.ndarray, "seed count"]
PROXY, GOLD = marks(0), marks(1)
"""How the two look wherever they stand together."""
LLAMA = (0, (1.2, 1.2))
EDGE = 3
"""Emphasis tokens up to which gold rises, and beyond which next to no pair says anything."""


def makers(shown: Shown) -> dict[str, Maker]:
    """The figures that this run may have, by name; none where no stage asked a reward model about every count."""
    found = {"source": facts(shown, "source"), "llama": facts(shown, "llama")}
    if not any(found.values()):
        return {}
    return {
        "fig1_reward_model": partial(reward_model, found["source"]),
        "fig2_reward_hacking": partial(hacking, shown),
        "fig3_kl_anchor": partial(anchor, shown),
        "fig4_families": partial(families, shown, found["source"] or found["llama"]),
    }


def facts(shown: Shown, shape: str) -> list[Row]:
    """What the stages found of one shape of the policy, one for each seed that has it."""
    return [stage[shape] for stage in shown.stages.values() if isinstance(stage.get(shape), dict)]


def band(axes: Axes, curves: Curve, *, x: Sequence[float], label: str, look: Row) -> None:
    """A mean over seeds with one deviation around it."""
    mean = masked_mean(curves)
    axes.plot(x, mean, label=label, **look)
    if len(curves) > 1:
        spread = curves.std(0, ddof=1)
        axes.fill_between(x, mean - spread, mean + spread, color=look["color"], alpha=0.18, linewidth=0)


def twin(axes: Axes, label: str, *, colour: str) -> Axes:
    """A second axis on the right in the colour of its line; no grid of its own, which would cross the first."""
    other = axes.twinx()
    other.grid(visible=False)
    other.spines["right"].set_visible(True)
    other.set_ylabel(label, color=colour)
    other.tick_params(axis="y", colors=colour)
    return other


def legend(figure: Figure, *panels: Axes, columns: int) -> None:
    """One legend below the figure for the lines of some panels."""
    lines = [line for axes in panels for line in axes.get_legend_handles_labels()[0]]
    figure.legend(handles=lines, loc="outside lower center", ncols=columns)


def covered(axes: Axes, height: float) -> None:
    """Shade the counts that the pairs hold, and say so at a height (a share of the panel) where no line runs."""
    axes.axvspan(-0.4, EDGE + 0.4, color=COLOURS[5], alpha=0.16, linewidth=0)
    axes.text(EDGE / 2, height, "where the\ndata are", transform=axes.get_xaxis_transform(), ha="center", fontsize=6)


def reward_model(found: list[Row]) -> Picture | None:
    """How often the reward model is right, by pairs; and what it says of every count, beside gold."""
    found = [each for each in found if "relu" in each.get("families", {}) and each.get("accuracy_by_pairs")]
    if not found:
        return None
    sizes = sorted(int(size) for size in found[0]["accuracy_by_pairs"])
    right = np.array([[each["accuracy_by_pairs"][str(size)] for size in sizes] for each in found])
    score = np.array([each["families"]["relu"]["score_by_count"] for each in found])
    gold = np.array([each["gold_by_count"] for each in found])
    top = float(np.mean([each["reward_ceiling"] for each in found]))

    def paint(figure: Figure) -> None:
        above, below = figure.subplots(2, 1)
        band(above, right, x=sizes, label="reward model", look=GOLD)
        above.axhline(top, color=INK, linewidth=0.7, linestyle=(0, (2, 2)), label="the most that the labels allow")
        above.axhline(0.5, color=INK, linewidth=0.7, label="random guess")
        above.set_xscale("log")
        above.set_xticks(sizes, [f"{size:,}" for size in sizes])
        above.xaxis.set_minor_locator(NullLocator())
        above.xaxis.set_minor_formatter(NullFormatter())
        above.set_ylim(0.46, 0.92)
        above.set_xlabel("labelled pairs")
        above.set_ylabel("accuracy, share of\nother pairs")
        above.legend(loc="center right")
        counts = range(len(score[0]))
        other = twin(below, "mean gold, gold units", colour=COLOURS[1])
        covered(below, 0.58)
        band(below, score, x=counts, label="reward model's score", look=PROXY)
        band(other, gold, x=counts, label="gold", look=GOLD)
        below.set_xticks(range(0, len(counts), 2))
        below.set_xlabel("emphasis tokens in the sequence, c")
        below.set_ylabel("mean score, deviations", color=COLOURS[0])
        below.tick_params(axis="y", colors=COLOURS[0])
        legend(figure, below, other, columns=2)

    seeds = f" Bands are one deviation over {len(found)} seeds." if len(found) > 1 else ""
    caption = (
        f"Above: more pairs bring the reward model close to what the labeler's noise allows. Below: it follows gold "
        f"where the pairs are and goes on rising where there are none: {number(float(score[:, -1].mean()))} deviations "
        f"at {score.shape[1] - 1} emphasis tokens, where gold is {number(float(gold[:, -1].mean()))}.{seeds}"
    )
    return Picture("fig1_reward_model", "The reward model, inside its data and beyond", caption, 4.1, paint)


def hacking(shown: Shown) -> Picture | None:
    """Proxy and gold against iteration without a leash, an axis each."""
    arm = next((arm for arm in shown.arms if arm.name == "beta=0"), None)
    if arm is None or not arm.has("gold"):
        return None
    top = best(arm)

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        other = twin(axes, "gold, gold units", colour=COLOURS[1])
        trace(axes, arm, column="proxy", index=0, label="proxy: what is optimised", smooth=False)
        trace(other, arm, column="gold", index=1, label="gold: what people want", smooth=False)
        iterations(axes, "proxy")
        axes.set_ylabel("proxy, deviations", color=COLOURS[0])
        axes.tick_params(axis="y", colors=COLOURS[0])
        if top:
            axes.axvline(top[0], color=INK, linewidth=0.7, linestyle=(0, (2, 2)))
        legend(figure, axes, other, columns=2)

    seeds = f" Lines are means, bands one deviation over {len(arm.seeds)} seeds." if len(arm.seeds) > 1 else ""
    peak = f"is at its best ({number(top[1])}) around iteration {top[0]}" if top else "is not measured"
    caption = (
        f"Without a leash the proxy climbs to the end ({number(arm.final('proxy')[0])}); gold {peak} and ends at "
        f"{number(arm.final('gold')[0])}, with {number(arm.final('emphasis')[0])} emphasis tokens.{seeds}"
    )
    return Picture("fig2_reward_hacking", "Reward hacking", caption, 2.4, paint)


def anchor(shown: Shown) -> Picture | None:
    """Gold against iteration for every leash, with the SFT policy's gold dashed."""
    arms = [arm for arm in shown.arms if "+" not in arm.name and arm.has("gold")]
    found = facts(shown, "source")
    if not arms or not found:
        return None
    base = float(np.mean([each["base_gold"] for each in found]))

    def lines(axes: Axes) -> None:
        for index, arm in enumerate(arms):
            trace(axes, arm, column="gold", index=index, label=arm.name, smooth=False)
        axes.axhline(base, color=INK, linewidth=0.8, linestyle=(0, (4, 2)), label="SFT policy")

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        lines(axes)
        iterations(axes, "gold")
        bottom, top = axes.get_ylim()
        if base - bottom > 2 * (top - base):  # one arm has fallen so far that the others lie on each other
            inset = axes.inset_axes((0.5, 0.18, 0.48, 0.54))
            lines(inset)
            inset.set_ylim(base - 0.1 * (top - base), top)
            inset.tick_params(labelsize=5.5)
            inset.set_title("the same, closer", fontsize=6, pad=2)
        legend(figure, axes, columns=2)

    told = "; ".join(f"{arm.name}: {number(arm.final('gold')[0])} at {number(arm.final('kl')[0])} nats" for arm in arms)
    seeds = f" Bands are one deviation over {max(len(arm.seeds) for arm in arms)} seeds." if len(found) > 1 else ""
    caption = f"A KL charge keeps the policy near the data, at the price of what lies further. Ends: {told}.{seeds}"
    return Picture("fig3_kl_anchor", "The anchor", caption, 2.4, paint)


def families(shown: Shown, found: list[Row]) -> Picture | None:
    """What each family of reward models says beyond the data, and what becomes of gold when each is optimised."""
    names = list(found[0].get("families", {})) if found else []
    arms = [arm for arm in shown.arms if arm.name.split("+")[0] == "beta=0" and arm.has("kl") and arm.has("gold")]
    if len(names) < 2 and len(arms) < 2:
        return None
    gold = np.array([each["gold_by_count"] for each in found])
    gold = (gold - [[each["base_gold"]] for each in found]) / [[each["gold_deviation"]] for each in found]
    share = masked_mean(np.array([each["coverage"] for each in found]))

    def paint(figure: Figure) -> None:
        pairs, above, below = figure.subplots(3, 1, height_ratios=[0.5, 1.2, 1.3])
        counts = range(gold.shape[1])
        pairs.bar(counts, share, color=COLOURS[5])
        pairs.set_yscale("log")
        pairs.set_yticks([1, 0.1, 0.01, 0.001], ["100 %", "10 %", "1 %", ".1 %"])
        pairs.yaxis.set_minor_locator(NullLocator())
        pairs.set_ylabel("share\nof pairs")
        pairs.tick_params(labelbottom=False)
        above.sharex(pairs)
        for index, name in enumerate(names):
            scores = np.array([each["families"][name]["score_by_count"] for each in found])
            band(above, scores, x=counts, label=name, look=marks(index))
        band(above, gold, x=counts, label="gold", look={"color": INK, "linestyle": "--"})
        covered(above, 0.2)
        above.set_xticks(range(0, len(counts), 2))
        above.set_xlabel("emphasis tokens in the sequence, c")
        above.set_ylabel("score, deviations of\nthe SFT policy's samples")
        for arm in arms:
            departure(below, arm, names=names)
        below.plot([], [], color=INK, label="the source's policy")
        below.plot([], [], color=INK, linestyle=LLAMA, label="Llama's shape")
        below.plot([], [], color=INK, marker="x", linestyle="none", label="leaves the data")
        below.set_xlabel("KL, nats per response")
        below.set_ylabel("gold, gold units")
        legend(figure, above, below, columns=3)

    caption = (
        "Top: how many pairs hold each count. Middle: what each family of reward models says of it, with gold on the "
        "same scale. Bottom: gold against the KL that was spent on it, without a leash; the cross marks where half of "
        f"the responses hold more than {EDGE} emphasis tokens. {'; '.join(map(fate, arms))}."
    )
    return Picture("fig4_families", "Which reward models are hacked, and at what KL", caption, 5.6, paint)


def left(arm: Arm) -> int | None:
    """The first step at which half of the responses, on the mean over seeds, have left the data."""
    if not arm.has("beyond"):
        return None
    gone = np.flatnonzero(arm.mean("beyond") > 0.5)
    return int(gone[0]) if len(gone) else None


def departure(axes: Axes, arm: Arm, *, names: list[str]) -> None:
    """Gold against KL, mean over seeds, in the colour of the arm's family, with a cross where it leaves the data."""
    parts, kl, gold, gone = arm.name.split("+"), arm.mean("kl"), arm.mean("gold"), left(arm)
    colour = marks(next((index for index, name in enumerate(names) if name in parts), 0))["color"]
    axes.plot(kl, gold, color=colour, linestyle=LLAMA if "llama" in parts else "-")
    if gone is not None:
        axes.plot(kl[gone], gold[gone], marker="x", markersize=5, color=colour, linestyle="none")


def fate(arm: Arm) -> str:
    """One arm in a few words."""
    gone = left(arm)
    away = f"left the data at {number(float(arm.mean('kl')[gone]))} nats" if gone is not None else "stayed in the data"
    return f"{arm.name} {away} and ended at {number(arm.final('gold')[0])}"
