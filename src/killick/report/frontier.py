"""Gold against KL where answers can be listed: every policy that a leash allows, and where each optimiser came out."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from torch import Tensor

from killick.algorithms.best_of_n import exact_law
from killick.algorithms.tilt import tilt
from killick.ops.kl import exact_kl
from killick.report.picture import Picture
from killick.report.reading import Arm, Shown
from killick.report.style import INK, marks
from killick.report.words import number

BETAS = [*torch.logspace(2, -2.5, 200, dtype=torch.float64).tolist(), 0.0]
"""From a leash that holds everything to none."""
DRAWN = (2, 4, 8, 16, 64, 256)
"""The n of the best-of-n points."""

Points = tuple[list[float], list[float]]
"""KL, nats per response, and gold; means over prompts."""


@dataclass(frozen=True)
class Listed:
    """A finite world as stages.json keeps it: all answers to all prompts, and which arm climbs which scores."""

    reference: Float[Tensor, "prompt answer"]
    gold: Float[Tensor, "prompt answer"]
    scores: dict[str, Float[Tensor, "prompt answer"]]
    arms: dict[str, str]


def listed(shown: Shown) -> Listed | None:
    """The world of the first seed that lists one."""
    kept = next((stage["exact"] for stage in shown.stages.values() if "exact" in stage), None)
    if kept is None:
        return None
    scores = {name: table(rows) for name, rows in kept["scores"].items()}
    return Listed(table(kept["reference"]), table(kept["gold"]), scores, kept["arms"])


def table(rows: Any) -> Float[Tensor, "prompt answer"]:
    """Rows of a JSON file; null, which is how minus infinity was kept, never happens."""
    return torch.tensor(rows, dtype=torch.float64)


def points(world: Listed, logprobs: Float[Tensor, "policy prompt answer"]) -> Points:
    """KL and gold of each policy."""
    kl = exact_kl(logprobs, world.reference.expand_as(logprobs)).mean(1)
    return kl.tolist(), (logprobs.exp() * world.gold).sum(2).mean(1).tolist()


def tilted(world: Listed, scores: Float[Tensor, "prompt answer"]) -> Points:
    """The frontier of one reward: no policy with its KL has a higher proxy."""
    leashed = (
        scores / torch.tensor(BETAS[:-1], dtype=scores.dtype)[:, None, None]
    )  # all at once: only score / beta matters
    optima = tilt(world.reference.expand_as(leashed), leashed, beta=1.0)
    return points(world, torch.cat((optima, tilt(world.reference, scores, beta=BETAS[-1])[None])))


def best_of(world: Listed, scores: Float[Tensor, "prompt answer"]) -> Points:
    """Exact best-of-n, one point for each n."""
    laws = [exact_law(world.reference.exp(), scores, n=n) for n in DRAWN]
    return points(world, torch.stack(laws).log())


def frontier(shown: Shown) -> Picture | None:
    """One panel for each reward that two arms or more climb: its frontier, gold's own, best-of-n, and the arms."""
    world = listed(shown)
    if world is None:
        return None
    climbed = {name: [arm for arm in shown.arms if world.arms.get(arm.name) == name] for name in world.scores}
    panels = {name: arms for name, arms in climbed.items() if len(arms) > 1}
    if not panels:
        return None
    curves = {name: tilted(world, world.scores[name]) for name in panels}

    def paint(figure: Figure) -> None:
        grid = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
        for axes, (name, arms) in zip(grid, panels.items(), strict=True):
            drawn = panel(axes, world, name=name, curve=curves[name], arms=arms)
        grid[-1].set_xlabel("KL, nats per response")
        figure.suptitle("Gold against KL, beside the exact frontier")
        figure.legend(handles=drawn, loc="outside lower center", ncols=3)

    told = " ".join(curve_words(name, curves[name]) for name in panels)
    caption = (
        "The line is every policy reference x exp(score / beta), from a tight leash on the left to none at its right "
        f"end; dashed, the same with gold for the score, which nothing can pass. {told} Follow an arm's faint path to "
        f"its mark: one that ends on the line has found its optimum. Crosses are exact best-of-n, n = {DRAWN[0]} to "
        f"{DRAWN[-1]}."
    )
    return Picture("frontier", "The exact frontier", caption, 0.5 + 2.6 * len(panels), paint)


def panel(axes: Axes, world: Listed, *, name: str, curve: Points, arms: list[Arm]) -> list[Line2D]:
    """One reward's frontier with the arms that climb it; returns the lines that every panel has."""
    ceiling = axes.plot(*tilted(world, world.gold), color=INK, linewidth=0.8, linestyle=(0, (4, 2)), label="gold's own")
    line = axes.plot(*curve, color=INK, linewidth=1.2, label="the proxy's")
    chosen = best_of(world, world.scores[name])
    crosses = axes.plot(*chosen, color=INK, linewidth=0, marker="x", markersize=4, label="best-of-n")
    ends = []
    for index, arm in enumerate(arms):
        look = marks(index) | {"linestyle": "-", "markerfacecolor": "none"}
        kl, gold = arm.mean("kl"), arm.mean("gold")
        axes.plot(kl, gold, color=look["color"], linewidth=0.6, alpha=0.6)
        size = 4 + 3 * (index % 3)  # two that end in one place are both seen
        ends += axes.plot(kl[-1:], gold[-1:], label=arm.name, **(look | {"linewidth": 0, "markersize": size}))
    axes.set_title(f"{name} reward model")
    axes.set_ylabel("gold, gold units")
    axes.margins(x=0.06)
    axes.legend(handles=ends, loc="lower right")
    return ceiling + line + crosses


def curve_words(name: str, curve: Points) -> str:
    """Where gold is best along a frontier, and where it ends."""
    kl, gold = curve
    top = max(range(len(gold)), key=gold.__getitem__)
    return (
        f"With the {name} reward model gold is best ({number(gold[top])}) at {number(kl[top])} nats, beta "
        f"{number(BETAS[top])}, and {number(gold[-1])} at the end."
    )
