"""Statistics that the rooms share: pair accuracy, rank correlation with ties, a bootstrap interval, smoothing."""

from collections.abc import Sequence
from statistics import fmean

import torch
from jaxtyping import Float
from torch import Tensor

RESAMPLED = 20_000_000
"""Numbers that a bootstrap holds at once: what bounds its memory, not its result."""


def pair_credit(
    chosen: Float[Tensor, " pair"], rejected: Float[Tensor, " pair"], *, tie_credit: float = 0.5
) -> Float[Tensor, " pair"]:
    """1 where the chosen response scores higher, 0 where the rejected one does, `tie_credit` where both are equal."""
    return (chosen > rejected).double() + tie_credit * (chosen == rejected).double()


def pair_accuracy(
    chosen: Float[Tensor, " pair"], rejected: Float[Tensor, " pair"], *, tie_credit: float = 0.5
) -> Float[Tensor, ""]:
    """Share of pairs whose chosen response scores higher; an exact tie earns `tie_credit` (0 is strict, O-05)."""
    return pair_credit(chosen, rejected, tie_credit=tie_credit).mean()


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


def clustered_error(values: Float[Tensor, " item"], *, n: int) -> float | None:
    """Standard error of the mean where each `n` neighbours belong together (answers to one prompt).

    The groups are what is independent, so it is the sample deviation of their means over the root of their number;
    None at one group, which has no spread.

    Source: Miller 2024, "Adding error bars to evals", arXiv 2411.00640 (clustered standard errors).
    """
    means = values.double().view(-1, n).mean(1)
    return float(means.std() / len(means) ** 0.5) if len(means) > 1 else None


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
    columns = values[:, None] if counts is None else torch.stack((values.double(), counts.double()), 1)
    means = resampled_means(columns, generator, draws=draws)
    means = means[:, 0] if counts is None else means[:, 0] / means[:, 1]
    low, high = means.quantile(means.new_tensor([(1 - level) / 2, (1 + level) / 2])).tolist()
    return low, high


def resampled_means(
    values: Float[Tensor, "item column"], generator: torch.Generator, *, draws: int = 2000
) -> Float[Tensor, "draw column"]:
    """Means over items drawn with replacement, in float64: one row a resample, whose columns share its items.

    Args:
        values: a row for each independent item.
        generator: drawn from.
        draws: resamples.

    Source: Efron 1979.
    """
    items = len(values)
    at_once = max(1, RESAMPLED // values.numel())
    means = []
    for start in range(0, draws, at_once):
        shape = (min(at_once, draws - start), items)
        rows = torch.randint(items, shape, generator=generator, device=values.device)
        means.append(values.double()[rows].mean(1))
    return torch.cat(means)


def smoothed(values: Sequence[float], reach: int = 2) -> list[float]:
    """Mean over a window of 2 reach + 1 steps, shorter at the ends."""
    return [fmean(values[max(0, i - reach) : i + reach + 1]) for i in range(len(values))]


def ends(values: Sequence[float]) -> tuple[float, float]:
    """Means over the first tenth of the steps and over their last third, of one step at least: of 30, 3 and 10.

    One batch of answers is noisy, and the two never share a step where there are two.
    """
    return fmean(values[: max(1, len(values) // 10)]), fmean(values[-max(1, len(values) // 3) :])
