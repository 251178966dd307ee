"""Calibration of pair predictions: whether a margin of scores means the probability that it claims.

A reward model claims that the better-scored answer of a pair is preferred with probability sigma(margin), 0.5 or more.
What it is held to is the label of that side: 1 or 0, or a probability where labels are soft.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Reliability(NamedTuple):
    """Pairs in bins of equal width of what is claimed, from 0.5 to 1.

    Args:
        pairs: in each bin.
        claimed: mean probability that is claimed; NaN in an empty bin.
        found: mean label of the better-scored side; NaN in an empty bin.
    """

    pairs: Int[Tensor, " bin"]
    claimed: Float[Tensor, " bin"]
    found: Float[Tensor, " bin"]


def claims(
    margins: Float[Tensor, " pair"], labels: Float[Tensor, " pair"]
) -> tuple[Float[Tensor, " pair"], Float[Tensor, " pair"]]:
    """What is claimed of the better-scored side of each pair, and its label; equal scores claim 0.5 and find it.

    Args:
        margins: score of the first answer minus that of the second, in nats of Bradley-Terry.
        labels: probability that the first is preferred.
    """
    side = margins.sign()
    return margins.abs().double().sigmoid(), 0.5 + side.double() * (labels.double() - 0.5)


def brier(margins: Float[Tensor, " pair"], labels: Float[Tensor, " pair"]) -> float:
    """Mean squared distance of sigma(margin) from the label: 0 is best, 0.25 what a constant score gets of sure labels.

    Source: Brier 1950, one side of the two.
    """
    return float((margins.double().sigmoid() - labels.double()).square().mean())


def reliability(claimed: Float[Tensor, " pair"], found: Float[Tensor, " pair"], *, bins: int = 10) -> Reliability:
    """Claims and labels in bins of equal width, which do not depend on the order of the pairs.

    Args:
        claimed: 0.5 to 1.
        found: labels of the same sides.
        bins: how many.
    """
    place = ((claimed - 0.5) * 2 * bins).long().clamp(0, bins - 1)
    pairs = place.bincount(minlength=bins)
    sums = [torch.zeros(bins, dtype=torch.double).index_add(0, place, each.double()) for each in (claimed, found)]
    return Reliability(pairs, sums[0] / pairs, sums[1] / pairs)


def expected_calibration_error(table: Reliability) -> float:
    """Mean over pairs of how far their bin's label is from its claim.

    Never below 0, so that even a perfect model shows some on few pairs: `chance_error` says how much.

    Source: Naeini, Cooper and Hauskrecht 2015; Guo et al. 2017, arXiv 1706.04599.
    """
    apart = (table.found - table.claimed).abs().nan_to_num()
    return float((apart * table.pairs).sum() / table.pairs.sum())


def chance_error(
    claimed: Float[Tensor, " pair"], generator: torch.Generator, *, bins: int = 10, draws: int = 500,
    level: float = 0.95,
) -> tuple[float, float]:  # fmt: skip
    """Calibration error that labels drawn from the claims themselves would show: its mean, and its upper quantile.

    Args:
        claimed: 0.5 to 1.
        generator: drawn from.
        bins: as in the error it is held against.
        draws: sets of labels.
        level: of the quantile.

    Source: Vaicenavicius et al. 2019, arXiv 1902.06977, section 4 (consistency resampling).
    """
    claimed = claimed.double()
    errors = []
    for _ in range(draws):
        drawn = torch.rand(len(claimed), generator=generator, dtype=torch.double) < claimed
        errors.append(expected_calibration_error(reliability(claimed, drawn.double(), bins=bins)))
    values = torch.tensor(errors, dtype=torch.double)
    return float(values.mean()), float(values.quantile(level))


def fitted_temperature(margins: Float[Tensor, " pair"], labels: Float[Tensor, " pair"], *, steps: int = 80) -> float:
    """The temperature T under which sigma(margin / T) fits the labels best: above 1 the scores claim too much.

    Infinite where no positive one is better than knowing nothing, 0 where every pair is right and none is large enough.

    Args:
        margins: score of the first answer minus that of the second.
        labels: probability that the first is preferred.
        steps: halvings of the interval in which 1 / T lies.

    Source: Guo et al. 2017, arXiv 1706.04599, section 4.2; the loss is convex in 1 / T, so its slope is bisected.
    """
    margins, labels = margins.double(), labels.double()

    def slope(sharpness: float) -> float:
        return float((margins * ((sharpness * margins).sigmoid() - labels)).sum())

    if slope(0.0) >= 0:
        return math.inf
    side = (margins > 0).double()
    if float((margins * (side - labels)).sum()) <= 0:
        return 0.0
    low, high = 0.0, 1.0
    while slope(high) < 0:
        low, high = high, 2 * high
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return 2 / (low + high)
