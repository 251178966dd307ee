"""The linear Bradley-Terry head at its optimum, by Newton's method: no steps, no rate, the same weights each time."""

import torch
from jaxtyping import Float
from torch import Tensor

from killick.ops.losses import bradley_terry, centring

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
    weights, label, margin = weights.double(), label.double(), margin.double()
    blocks = list(zip(*(part.split(ROWS) for part in (differences, sums, weights, label, margin)), strict=True))

    def objective(w: Tensor) -> Tensor:
        total = l2 * w.square().sum()
        for x, s, a, y, m in blocks:
            first, second = (s.double() @ w + x.double() @ w) / 2, (s.double() @ w - x.double() @ w) / 2
            loss = bradley_terry(first, second, label=y, margin=m) + centre * centring(first, second)
            total = total + (a * loss).sum()
        return total

    now = objective(w)
    for _ in range(100):
        slope, curve = 2 * l2 * w, 2 * l2 * torch.eye(len(w), dtype=w.dtype, device=w.device)
        for x, s, a, y, m in blocks:
            x, s = x.double(), s.double()
            right = torch.sigmoid(x @ w - m)
            slope = slope + (a * (right - y)) @ x + 2 * centre * (a * (s @ w)) @ s
            curve = curve + (x * (a * right * (1 - right))[:, None]).T @ x
            curve = curve + 2 * centre * (s * a[:, None]).T @ s if centre else curve
        step = torch.linalg.solve(curve, slope)
        gain = float(slope @ step)
        if gain < 1e-18 * max(1.0, float(now)):
            break
        share = 1.0
        while float(after := objective(w - share * step)) > float(now) - 1e-4 * share * gain and share > 1e-10:
            share /= 2
        if not float(after) < float(now):
            break
        w, now = w - share * step, after
    return w
