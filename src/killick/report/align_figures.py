"""The figures of an alignment run: held-out prompts through training, and how far from the start they were asked."""

from collections.abc import Callable
from functools import partial

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from killick.report.panels import held_out_panels
from killick.report.picture import LABELS, Picture
from killick.report.reading import WINDOW, Arm, Shown
from killick.report.style import marks
from killick.report.words import number

Maker = Callable[[], Picture | None]
BARS = {"held_gold": "held_gold_error", "held_proxy": "held_proxy_error"}
"""A column, and the standard error of its mean over prompts."""


def makers(shown: Shown) -> dict[str, Maker]:
    """Both figures, where the recipe is this one."""
    if shown.recipe != "align":
        return {}
    return {"held-out": partial(through_training, shown), "held-out-distance": partial(by_distance, shown)}


def looked(shown: Shown) -> list[Arm]:
    """The arms in which held-out prompts were asked."""
    return [arm for arm in shown.arms if arm.has("held_proxy")]


def points(
    arm: Arm, name: str
) -> tuple[Float[np.ndarray, " look"], Float[np.ndarray, " look"], Float[np.ndarray, " look"]]:
    """The looks of an arm: their steps, a column, and two standard errors of it."""
    there = np.isfinite(arm.mean("held_proxy"))
    error = arm.mean(BARS[name]) if name in BARS and arm.has(BARS[name]) else np.zeros(len(there))
    return arm.steps[there].astype(float), arm.mean(name)[there], 2 * np.nan_to_num(error)[there]


def through_training(shown: Shown) -> Picture | None:
    """Proxy, gold and KL on held-out prompts as marks, those of the training prompts as lines behind them."""
    arms = looked(shown)
    if not arms:
        return None
    panels = [name for name in ("proxy", "gold", "kl") if any(arm.has(f"held_{name}") for arm in arms)]

    def paint(figure: Figure) -> None:
        held_out_panels(figure, arms, columns=panels, looks=points, step="step")

    judged = "gold" if "gold" in panels else "proxy"
    told = "; ".join(f"{arm.name}: {journey(arm, f'held_{judged}')}" for arm in arms)
    caption = (
        "Marks are answers to prompts that nothing was learned from, with two standard errors over prompts; faint "
        f"lines are the training prompts, means over {WINDOW} steps. Held-out {judged}, {told}."
    )
    return Picture("held-out", "Held-out prompts", caption, 1.2 + 1.1 * len(panels), paint)


def journey(arm: Arm, name: str) -> str:
    """A column at the start, at its best, at the end."""
    steps, means, _ = points(arm, name)
    top = int(np.argmax(means))
    return f"{number(float(means[0]))} at first, best {number(float(means[top]))} at step {steps[top]:.0f}, " + (
        f"{number(float(means[-1]))} at the end"
    )


def by_distance(shown: Shown) -> Picture | None:
    """Held-out proxy and gold against how far the policy stood from its reference."""
    arms = looked(shown)
    if not arms or all(len(points(arm, "held_kl")[0]) < 2 for arm in arms):
        return None
    panels = [name for name in ("proxy", "gold") if any(arm.has(f"held_{name}") for arm in arms)]

    def paint(figure: Figure) -> None:
        grid = figure.subplots(len(panels), 1, sharex=True, squeeze=False).flatten()
        for axes, name in zip(grid, panels, strict=True):
            for index, arm in enumerate(arms):
                _, means, reach = points(arm, f"held_{name}")
                distance = np.sqrt(points(arm, "held_kl")[1].clip(min=0))
                axes.errorbar(distance, means, yerr=reach, label=arm.name, elinewidth=0.8, capsize=2, **marks(index))
            axes.set_ylabel(LABELS[name].replace(", ", ",\n"))
        grid[-1].set_xlabel("distance d = sqrt(KL), square root of nats")
        figure.suptitle("Held-out prompts by distance from the reference")
        figure.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)

    caption = (
        "Each mark is one look at the held-out prompts, in order of training, with two standard errors over prompts. "
        "Where the proxy goes on and gold turns, the distance below is as far as this reward can be trusted."
    )
    return Picture("held-out-distance", "Held-out prompts by distance", caption, 1.3 + 1.2 * len(panels), paint)
