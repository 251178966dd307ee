"""The figures of an exam: where it is right, whether it is as sure, what beats good answers, what choosing gives."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from killick.report.picture import Picture
from killick.report.style import COLOURS, DASHES, INK, MARKERS

Facts = Mapping[str, Any]
DOTTED, DASHED = (0, (1.2, 1.2)), (0, (4, 2))


def exam_makers(facts: Facts, samples: Sequence[Facts]) -> dict[str, Callable[[], Picture | None]]:
    """Every figure that these numbers can fill.

    Args:
        facts: as results.json has them.
        samples: a row for each answer of the policy; none where there was no policy.
    """
    return {
        "slope": lambda: slope(facts["slope"]) if facts["slope"] else None,
        "probes": lambda: probes(facts["probes"]),
        "accuracy": lambda: accuracy(facts),
        "length": lambda: length(facts),
        "reliability": lambda: reliability(facts["calibration"]),
        "spread": lambda: spread(samples) if samples else None,
    }


def bars(axes: Axes, rows: Sequence[Facts], *, names: Sequence[str], colour: str = COLOURS[1]) -> None:
    """Accuracy of each bin with its interval, chance dotted; a bin without a pair stays empty."""
    axes.axhline(0.5, color=INK, linewidth=0.6, linestyle=DOTTED)
    kept = [(place, row) for place, row in enumerate(rows) if row["pairs"]]
    share = np.array([row["accuracy"] for _, row in kept])
    reach = reaching(share, [row for _, row in kept])
    axes.errorbar([place for place, _ in kept], share, yerr=reach, fmt="o", color=colour, elinewidth=1.0, capsize=2)
    axes.set_xticks(range(len(rows)), [f"{name}\n{row['pairs']}" for name, row in zip(names, rows, strict=True)])
    axes.set_xlim(-0.5, len(rows) - 0.5)
    axes.set_ylim(-0.03, 1.03)
    axes.grid(False, axis="x")
    axes.set_ylabel("accuracy")


def reaching(share: np.ndarray, rows: Sequence[Facts]) -> np.ndarray:
    """How far intervals reach on either side; rounding may put an end on the wrong side of a share of 0 or 1."""
    low, high = (np.array([row[end] for row in rows], dtype=float) for end in ("low", "high"))
    return np.maximum([share - low, high - share], 0.0)


def accuracy(facts: Facts) -> Picture:
    """Accuracy by the gap of the scores, by their height, and by the strength of the label where there is one."""
    panels = [
        ("gap", "gap between the scores, in quarters; pairs below"),
        ("level", "mean of the two scores, in quarters; pairs below"),
        ("strength", "how much better by the label; pairs below"),
    ]
    shown = [(key, label) for key, label in panels if facts[key]]

    def paint(figure: Figure) -> None:
        grid = figure.subplots(len(shown), 1, squeeze=False)[:, 0]
        for place, (axes, (key, label)) in enumerate(zip(grid, shown, strict=True)):
            rows = facts[key]
            bars(axes, rows, names=[bin_name(row) for row in rows], colour=COLOURS[place])
            top = facts["ceiling"]["ceiling"]
            if top is not None and key != "strength":
                axes.axhline(top, color=INK, linewidth=0.8, linestyle=DASHED)
            if key == "gap":
                axes.plot(range(len(rows)), [row["claimed"] for row in rows], "_", color=INK, markersize=9)
            axes.set_xlabel(label)

    caption = "Bars are 95 % intervals over prompts, chance is dotted; the short lines are what such gaps claim"
    caption += ", the ceiling is dashed." if facts["ceiling"]["ceiling"] is not None else "."
    return Picture("accuracy", "Where it is right", caption, 0.3 + 1.65 * len(shown), paint)


def bin_name(row: Facts) -> str:
    """From where to where a bin goes."""
    return f"{row['from']:.3g}" if row["from"] == row["to"] else f"{row['from']:.3g} to {row['to']:.3g}"


def length(facts: Facts) -> Picture:
    """Accuracy by how long the chosen answer is beside the rejected one."""
    rows = facts["length_bins"]
    edges = [row["from"] for row in rows]
    names = [f"to {edges[1]:g}", *(f"{row['from']:g} to {row['to']:g}" for row in rows[1:-1]), f"over {edges[-1]:g}"]

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        bars(axes, rows, names=names)
        axes.set_xlabel("characters, chosen answer / rejected one; pairs below")

    lean = facts["length"]
    caption = "A judge of length is right on one side and wrong on the other."
    if lean["model_longer"] is not None:
        caption += (
            f" It prefers the longer answer in {lean['model_longer']:.0%} of the pairs, people in "
            f"{lean['people_longer']:.0%}."
        )
    return Picture("length", "Accuracy by length", caption, 1.9, paint)


def reliability(found: Facts) -> Picture:
    """What is claimed of the better-scored answer, against how often people prefer it."""
    rows = found["reliability"]

    def paint(figure: Figure) -> None:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2.4, 1])
        above.plot([0.5, 1], [0.5, 1], color=INK, linewidth=0.6, linestyle=DOTTED)
        share = np.array([row["found"] for row in rows])
        look: dict[str, Any] = {"fmt": "o", "color": COLOURS[1], "elinewidth": 1.0, "capsize": 2}
        above.errorbar([row["claimed"] for row in rows], share, yerr=reaching(share, rows), **look)
        above.set_ylim(-0.03, 1.03)
        above.set_ylabel("preferred by people,\nshare of pairs")
        below.bar([row["claimed"] for row in rows], [row["pairs"] for row in rows], width=0.035, color=COLOURS[5])
        below.set_ylabel("pairs")
        below.set_xlabel("claimed: sigmoid of the gap between the scores")
        below.set_xlim(0.48, 1.02)
        below.grid(False, axis="x")

    caption = (
        "On the dotted line a gap means what Bradley-Terry reads out of it. Calibration error "
        f"{found['ece']:.3f}; a perfect model would show {found['ece_by_chance']:.3f} on so few pairs, and at most "
        f"{found['ece_by_chance_high']:.3f} in 19 of 20 cases."
    )
    return Picture("reliability", "Is it as sure as it claims?", caption, 2.9, paint)


def probes(found: Facts) -> Picture | None:
    """How often each probe beats the chosen answer, and the mean answer of the policy."""
    rows = [(name, each) for name, each in found.items() if each["beats_chosen"]]
    if not rows:
        return None
    kinds = {"beats_chosen": "the chosen answer", "beats_sampled": "the policy's mean answer"}
    kinds = {key: label for key, label in kinds.items() if any(each.get(key) for _, each in rows)}

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        axes.axvline(0.5, color=INK, linewidth=0.6, linestyle=DOTTED)
        for place, (key, label) in enumerate(kinds.items()):
            at = [row + 0.14 * (2 * place - len(kinds) + 1) for row in range(len(rows))]
            share = np.array([each[key]["share"] for _, each in rows])
            reach = reaching(share, [each[key] for _, each in rows])
            look: dict[str, Any] = {
                "fmt": MARKERS[place],
                "color": COLOURS[place],
                "elinewidth": 1.0,
                "capsize": 2,
                "label": label,
            }
            axes.errorbar(share, at, xerr=reach, **look)
        axes.set_yticks(range(len(rows)), [name for name, _ in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(-0.03, 1.03)
        axes.set_xlabel("share of prompts on which the probe scores higher")
        axes.grid(False, axis="y")
        if len(kinds) > 1:
            figure.legend(loc="outside upper center", ncols=2)

    caption = "What is no answer, or a spoilt one, should stand at the left. Bars are 95 % intervals."
    return Picture("probes", "What beats good answers", caption, 0.8 + 0.3 * len(rows), paint)


def slope(found: Facts) -> Picture:
    """Score and gold of best-of-n from the policy's own answers; dashed, as high as labelled answers score."""
    points = found["points"]
    ns = [point["n"] for point in points]
    columns = {"proxy": ("low", "high", "score: what chooses")}
    rise = points[-1]["proxy"] - points[0]["proxy"]
    near = found["covered"] and found["covered"]["score"] <= points[0]["proxy"] + 2 * rise  # else it flattens the curve
    if points[0]["gold"] is not None:
        columns["gold"] = ("gold_low", "gold_high", "gold: what people want")

    def paint(figure: Figure) -> None:
        grid = figure.subplots(len(columns), 1, squeeze=False, sharex=True)[:, 0]
        for place, (axes, (column, (low, high, label))) in enumerate(zip(grid, columns.items(), strict=True)):
            means = [point[column] for point in points]
            band = [[point[end] for point in points] for end in (low, high)]
            axes.fill_between(ns, *band, color=COLOURS[place], alpha=0.18, linewidth=0)
            axes.plot(ns, means, color=COLOURS[place], linestyle=DASHES[place], marker=MARKERS[place])
            axes.set_ylabel(label)
            if column == "proxy" and near:
                axes.axhline(found["covered"]["score"], color=INK, linewidth=0.8, linestyle=DASHED)
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_locator(FixedLocator(ns))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(
                FixedFormatter([f"{point['n']}\n{point['kl_bound']:.2f}" for point in points])
            )
        grid[-1].set_xlabel("n, with the bound of KL in nats below")

    caption = f"Best of n of the policy's answers to {found['prompts']} prompts; bands are 95 % intervals over prompts."
    if found["covered"]:
        where = "Dashed" if near else f"Above all of this, at {found['covered']['score']:.2f}"
        caption += f" {where}: as far above its prompt's mean as one in forty of the answers that people judged."
    return Picture("slope", "Choosing harder", caption, 0.5 + 1.75 * len(columns), paint)


def spread(samples: Sequence[Facts]) -> Picture:
    """The scores of the policy's answers, a column for each prompt, the lowest mean first."""
    rows: dict[str, list[float]] = {}
    for row in samples:
        rows.setdefault(row["prompt"], []).append(row["score"])
    columns = sorted(rows.values(), key=lambda each: sum(each) / len(each))

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for place, scores in enumerate(columns):
            axes.plot([place] * len(scores), scores, "_", color=COLOURS[1], markersize=3.5, alpha=0.7)
        axes.plot([sum(each) / len(each) for each in columns], color=COLOURS[0], linewidth=1.0)
        axes.set_ylabel("score")
        axes.set_xlabel("prompts, by the mean score of their answers")
        axes.set_xticks([])
        axes.grid(False, axis="x")

    caption = (
        "The policy's answers, each a dash, and their means. Only what lies apart within a column can teach the policy."
    )
    return Picture("spread", "How scores spread under the policy", caption, 1.9, paint)
