"""The figures of the text recipe: held-out prompts, the heads that watch, the phrase that took over, best-of-n."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter, NullLocator

from killick.hacking.phrases import Phrase, commonest, share_with
from killick.report.brand_figures import TICKS, column, line
from killick.report.panels import arm_panels, below, held_out_panels
from killick.report.picture import Picture, trace
from killick.report.reading import WINDOW, Arm, Row, Shown
from killick.report.style import COLOURS, INK, marks
from killick.report.words import number

Maker = Callable[[], Picture | None]
HEADS = {
    "proxy": "proxy",
    "watching_other": "other labels",
    "watching_few": "a fifth of the labels",
    "watching_many": "twice the labels",
}


def makers(shown: Shown) -> dict[str, Maker]:
    """The figures that this run may have, by name; none where no head watched and nothing was held out."""
    curves = [stage["best_of_n"] for stage in shown.stages.values() if "best_of_n" in stage]
    if not curves:
        return {}
    return {
        "held-out": partial(held_out, shown),
        "watching-heads": partial(watching, shown),
        "phrase": partial(phrase, shown),
        "best-of-n": partial(best_of_n, curves),
    }


def measured(arm: Arm, name: str) -> tuple[list[int], list[float], list[float]]:
    """The steps at which a column was measured, its means over seeds, and the deviation or the error of the mean."""
    mean = arm.mean(name)
    there = np.isfinite(mean)
    error = arm.deviation(name) if len(arm.seeds) > 1 else arm.mean("held_gold_error") if name == "held_gold" else None
    reach = np.zeros(len(mean)) if error is None else 2 * np.nan_to_num(error)
    return arm.steps[there].tolist(), mean[there].tolist(), reach[there].tolist()


def held_out(shown: Shown) -> Picture | None:
    """Proxy, gold and KL on held-out prompts as points, those of the rollouts as lines behind them."""
    arms = [arm for arm in shown.arms if arm.has("held_gold")]
    if not arms:
        return None

    def paint(figure: Figure) -> None:
        columns = ("proxy", "gold", "kl")
        held_out_panels(figure, arms, columns=columns, looks=measured, step="rollout", heights=(1, 1.4, 1))

    told = "; ".join(f"{arm.name}: {journey(arm)}" for arm in arms)
    bars = "one deviation over seeds, twice" if len(arms[0].seeds) > 1 else "two standard errors over prompts"
    caption = (
        f"Marks are answers to prompts about things that were never asked about, at rollouts set before (gold's bars: "
        f"{bars}); faint lines are the training rollouts, means over {WINDOW}. Held-out gold {told}."
    )
    return Picture("held-out", "Held-out prompts", caption, 4.4, paint)


def journey(arm: Arm) -> str:
    """Held-out gold at the start, at its best, at the end."""
    steps, gold, _ = measured(arm, "held_gold")
    top = int(np.argmax(gold))
    return f"{number(gold[0])} at first, best {number(gold[top])} at {steps[top]}, {number(gold[-1])} at {steps[-1]}"


def watching(shown: Shown) -> Picture | None:
    """The proxy and the heads that only watch, a panel an arm."""
    arms = [arm for arm in shown.arms if all(arm.has(name) for name in HEADS)]
    if not arms:
        return None

    def draw(axes: Axes, arm: Arm) -> None:
        for index, (name, label) in enumerate(HEADS.items()):
            trace(axes, arm, column=name, index=index, label=label)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))

    def paint(figure: Figure) -> None:
        arm_panels(figure, arms, draw=draw, labels=("rollout", "score, deviations of\nthe reference's answers"))
        figure.suptitle("The proxy, and heads that only watch")

    told = "; ".join(f"{arm.name}: {apart(arm)}" for arm in arms)
    caption = (
        "All heads read the same states of the same rollouts; only the proxy is optimised. Where it climbs away from "
        f"the others it has found what it alone likes: a hint, no proof. At the end, {told}."
    )
    return Picture("watching-heads", "Watching heads", caption, 1.2 + 1.7 * below(len(arms))[0], paint)


def apart(arm: Arm) -> str:
    """Where each head stands at the end."""
    return ", ".join(f"{label} {number(arm.smooth(name)[-1])}" for name, label in HEADS.items())


def texts(samples: Sequence[Row], *, held_out: bool) -> dict[int, list[str]]:
    """Answers by step."""
    found: dict[int, list[str]] = {}
    for row in samples:
        if row.get("held_out") == held_out:
            found.setdefault(row["step"], []).append(row["response"])
    return dict(sorted(found.items()))


def phrase(shown: Shown) -> Picture | None:
    """In how many answers of each rollout the phrase stands that the arm ends with, and how many runs differ."""
    paths: dict[str, tuple[Phrase, list[int], list[float]]] = {}
    for arm in shown.arms:
        own = [row for row in shown.samples if row["arm"] == arm.name and row["seed"] == arm.seeds[0]]
        held, seen = texts(own, held_out=True), texts(own, held_out=False)
        took = commonest(held[max(held)]) if held else None
        if took is not None and seen:
            paths[arm.name] = took, list(seen), [share_with(said, took.words) for said in seen.values()]
    if not paths:
        return None

    def paint(figure: Figure) -> None:
        above, below = figure.subplots(2, 1, sharex=True)
        for index, arm in enumerate(shown.arms):
            look = marks(index) | {"markevery": 4}
            if arm.name in paths:
                above.plot(*paths[arm.name][1:], label=arm.name, **look)
            if arm.has("distinct"):
                below.plot(arm.steps, arm.mean("distinct"), label=arm.name, **look)
        above.set_ylabel("answers with the\nphrase, share")
        below.set_ylabel("different three-word\nruns, share")
        for axes in (above, below):
            axes.set_ylim(-0.03, 1.03)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        below.set_xlabel("rollout")
        figure.suptitle("The phrase that took over")
        figure.legend(*below.get_legend_handles_labels(), loc="outside lower center", ncols=3)

    told = "; ".join(f"{name}: \u201c{took.words}\u201d in {took.share:.0%}" for name, (took, _, _) in paths.items())
    caption = (
        "Above, the share of each rollout's answers that hold the phrase which stands in most held-out answers at the "
        f"end; below, how varied all answers are. At the end, on held-out prompts, {told} of the answers."
    )
    return Picture("phrase", "The hack in words", caption, 3.3, paint)


def best_of_n(curves: list[Row]) -> Picture | None:
    """The proxy above, gold below with what choosing by gold would give, against n and the bound of its KL."""
    proxy, own = ([each[name] for each in curves] for name in ("proxy", "gold"))
    first = proxy[0]

    def paint(figure: Figure) -> None:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1, 1.5])
        line(above, proxy, name="proxy", label="chosen by the proxy", index=0)
        line(below, proxy, name="gold", label="chosen by the proxy", index=0)
        line(below, own, name="gold", label="chosen by gold", index=1)
        gap(below, first, own=own[0])
        for axes in (above, below):
            axes.set_xscale("log")
        bounds = {point["n"]: point["kl_bound"] for point in first["points"]}
        ticks = [n for n in TICKS if n in bounds]
        below.set_xticks(ticks, [f"{n}\n{bounds[n]:.2f}" for n in ticks])
        below.xaxis.set_minor_locator(NullLocator())
        below.xaxis.set_minor_formatter(NullFormatter())
        below.set_xlabel("answers drawn, n; below it the bound of the KL, nats")
        above.set_ylabel("proxy,\ndeviations")
        below.set_ylabel("gold,\ngold units")
        figure.suptitle("Best-of-n on held-out prompts: the gap opens")
        figure.legend(*below.get_legend_handles_labels(), loc="outside lower center", ncols=2)

    start, end, best = first["points"][0], first["points"][-1], own[0]["points"][-1]
    turned = "falls again within the pool" if first["turns"] else "has not surely turned by the end of the pool"
    caption = (
        f"Of {end['n']} answers the one with the best score: gold goes from {number(start['gold'])} to "
        f"{number(end['gold'])} and {turned}, where choosing by gold gives {number(best['gold'])}. Bands are 95 % "
        f"intervals over {first['prompts']} prompts. The KL here is a bound of at most {number(end['kl_bound'])} nats; "
        "PPO's is measured and lies far higher for the same proxy, so the two are never drawn on one axis."
    )
    return Picture("best-of-n", "Best-of-n", caption, 3.9, paint)


def gap(axes: Axes, proxy: Row, *, own: Row) -> None:
    """What choosing by the proxy leaves on the table."""
    axes.fill_between(
        column(proxy, "n"), column(proxy, "gold"), column(own, "gold"), color=COLOURS[5], alpha=0.12, linewidth=0
    )
    axes.annotate(
        "the gap", (column(proxy, "n")[-2], (column(proxy, "gold")[-2] + column(own, "gold")[-2]) / 2),
        ha="center", va="center", fontsize=6, color=INK,
    )  # fmt: skip
