"""The linear Bradley-Terry head at its optimum, by Newton's method: no steps, no rate, the same weights each time."""

from collections.abc import Sequence
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from killick.ops.losses import bradley_terry, centring

Block: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
"""Differences, sums, weights, labels and margins of some pairs."""
ROWS = 4096
"""Pairs whose part of the curvature is summed at once: what bounds the memory, not the result."""


def newton(
    differences: Float[Tensor, "pair feature"],
    sums: Float[Tensor, "pair feature"],
    *,
    weights: Float[Tensor, " pair"],
    label: Float[Tensor, " pair"],
    margin: Float[Tensor, " pair"],
    l2: float,
    centre: float,
) -> Float[Tensor, " feature"]:
    """The w with the least weighted loss + centre (score of both)^2 + l2 |w|^2, in float64; scores are w . feature.

    The objective is convex, strictly so with l2 above 0: there is one such w, whatever the start.

    Args:
        differences: features of the chosen less those of the rejected.
        sums: features of both, added.
        weights: of each pair in the mean, summing to 1.
        label: probability that the chosen is preferred.
        margin: score difference that the loss asks for.
        l2: what a unit of squared weight costs, above 0.
        centre: what a unit of squared sum of two scores costs.

    Source: Newton's method with halved steps where a whole one overshoots (Boyd and Vandenberghe 2004, algorithm 9.5).
    """
    w = torch.zeros(differences.shape[1], dtype=torch.float64, device=differences.device)
    parts = (differences, sums, weights.double(), label.double(), margin.double())
    blocks: list[Block] = list(zip(*(part.split(ROWS) for part in parts), strict=True))
    now = objective(w, blocks, l2=l2, centre=centre)
    for _ in range(100):
        slope, curve = slopes(w, blocks, l2=l2, centre=centre)
        step = torch.linalg.solve(curve, slope)
        gain, share = float(slope @ step), 1.0
        if gain < 1e-18 * max(1.0, now):
            break
        while (after := objective(w - share * step, blocks, l2=l2, centre=centre)) > now - 1e-4 * share * gain:
            share /= 2
            if share < 1e-10:
                return w  # what is left to gain is below what float64 can tell
        w, now = w - share * step, after
    return w


def objective(w: Float[Tensor, " feature"], blocks: Sequence[Block], *, l2: float, centre: float) -> float:
    """What is to be least."""
    total = l2 * float(w.square().sum())
    for x, s, weights, label, margin in blocks:
        difference, both = x.double() @ w, s.double() @ w
        first, second = (both + difference) / 2, (both - difference) / 2
        loss = bradley_terry(first, second, label=label, margin=margin) + centre * centring(first, second)
        total += float((weights * loss).sum())
    return total


def slopes(
    w: Float[Tensor, " feature"], blocks: Sequence[Block], *, l2: float, centre: float
) -> tuple[Float[Tensor, " feature"], Float[Tensor, "feature feature"]]:
    """Its gradient and its curvature."""
    slope, curve = 2 * l2 * w, 2 * l2 * torch.eye(len(w), dtype=w.dtype, device=w.device)
    for x, s, weights, label, margin in blocks:
        x, s = x.double(), s.double()
        right = torch.sigmoid(x @ w - margin)
        slope = slope + (weights * (right - label)) @ x + 2 * centre * (weights * (s @ w)) @ s
        curve = curve + (x * (weights * right * (1 - right))[:, None]).T @ x
        if centre:
            curve = curve + 2 * centre * (s * weights[:, None]).T @ s
    return slope, curve
