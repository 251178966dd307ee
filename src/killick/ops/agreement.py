"""Agreement between annotators: Cohen's kappa and Krippendorff's alpha."""

import math
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

Level = Literal["nominal", "ordinal", "interval"]


def cohen_kappa(first: Float[Tensor, " item"], second: Float[Tensor, " item"]) -> float:
    """Agreement of two annotators on the same items beyond what their own shares of answers would give by chance.

    1 is full agreement, 0 what chance gives; NaN where both give one and the same answer throughout, or at no item.

    Source: Cohen 1960: (p_o - p_e) / (1 - p_e).
    """
    values, codes = torch.stack((first, second)).unique(return_inverse=True)
    observed = (codes[0] == codes[1]).double().mean()
    shares = [row.bincount(minlength=len(values)).double() / max(len(row), 1) for row in codes]
    chance = (shares[0] * shares[1]).sum()
    return float((observed - chance) / (1 - chance)) if chance < 1 else math.nan


def krippendorff_alpha(item: Int[Tensor, " label"], value: Float[Tensor, " label"], *, level: Level) -> float:
    """1 - observed / expected disagreement of any number of annotators; a label that is not there is just missing.

    1 is full agreement, 0 what chance gives. An item with a single label says nothing and is left out.

    Args:
        item: which item each label is of.
        value: the label.
        level: how far apart two values are: nominal, all alike; ordinal, by the labels between them; interval, by
            their difference squared.

    Returns:
        NaN where there is nothing to disagree on: all labels alike, or no item with two.

    Source: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", part C and the metrics of part F.
    """
    values, code = value.double().unique(return_inverse=True)
    counts = torch.zeros(int(item.max()) + 1 if len(item) else 0, len(values), dtype=torch.double)
    counts.index_put_((item, code), torch.ones(len(item), dtype=torch.double), accumulate=True)
    counts = counts[counts.sum(1) >= 2]
    paired = counts / (counts.sum(1, keepdim=True) - 1)
    coincidences = counts.T @ paired - paired.sum(0).diag()
    shares = coincidences.sum(1)
    apart = squared_distance(values, shares, level=level)
    expected = (shares[:, None] * shares * apart).sum() / (shares.sum() - 1)
    return float(1 - (coincidences * apart).sum() / expected) if expected > 0 else math.nan


def squared_distance(
    values: Float[Tensor, " value"], counts: Float[Tensor, " value"], *, level: Level
) -> Float[Tensor, "value value"]:
    """How far apart each two values are on a level of measurement, squared; `values` ascend."""
    if level == "nominal":
        return 1 - torch.eye(len(values), dtype=values.dtype)
    # The ordinal distance counts the labels from one value to the other, those at the two ends by half.
    place = values if level == "interval" else counts.cumsum(0) - counts / 2
    return (place[:, None] - place).square()
