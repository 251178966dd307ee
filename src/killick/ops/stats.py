"""Statistics that the rooms share: pair accuracy, rank correlation with ties, a bootstrap interval, smoothing."""

from collections.abc import Sequence
from statistics import fmean

import torch
from jaxtyping import Float
from torch import Tensor


def pair_accuracy(
    chosen: Float[Tensor, " pair"], rejected: Float[Tensor, " pair"], *, tie_credit: float = 0.5
) -> Float[Tensor, ""]:
    """Share of pairs whose chosen response scores higher; an exact tie earns `tie_credit` (0 is strict, O-05)."""
    return ((chosen > rejected).double() + tie_credit * (chosen == rejected).double()).mean()


def ranks(values: Float[Tensor, " item"]) -> Float[Tensor, " item"]:
    """Ranks from 1 in float64, ties sharing their mean rank."""
    _, place, counts = values.unique(return_inverse=True, return_counts=True)
    last = counts.cumsum(0).double()
    return (last - (counts - 1) / 2)[place]


def rank_correlation(first: Float[Tensor, " item"], second: Float[Tensor, " item"]) -> float:
    """Spearman's coefficient with averaged ties; 0 where one side is constant.

    Source: Spearman 1904; with ties it is Pearson's coefficient of the ranks.
    """
    a, b = ranks(first), ranks(second)
    a, b = a - a.mean(), b - b.mean()
    scale = (a.square().sum() * b.square().sum()).sqrt()
    return float((a * b).sum() / scale) if scale > 0 else 0.0


def bootstrap_interval(
    values: Float[Tensor, " item"], generator: torch.Generator, *, counts: Float[Tensor, " item"] | None = None,
    level: float = 0.95, draws: int = 2000,
) -> tuple[float, float]:  # fmt: skip
    """Percentile interval of the mean, from `draws` resamples of whole items.

    Args:
        values: one number for each independent item (a prompt, a seed), not for each pair of one prompt.
        generator: drawn from.
        counts: how many things each value is the sum over, where it is not one: the mean is then over all things.
        level: share of resampled means inside.
        draws: resamples.

    Source: Efron 1979.
    """
    shape = (draws, len(values))
    rows = torch.randint(len(values), shape, generator=generator, device=values.device)
    means = values.double()[rows].mean(1)
    if counts is not None:
        means = means / counts.double()[rows].mean(-1)
    low, high = means.quantile(means.new_tensor([(1 - level) / 2, (1 + level) / 2])).tolist()
    return low, high


def smoothed(values: Sequence[float], reach: int = 2) -> list[float]:
    """Mean over a window of 2 reach + 1 steps, shorter at the ends."""
    return [fmean(values[max(0, i - reach) : i + reach + 1]) for i in range(len(values))]
