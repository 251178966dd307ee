"""Sums, means and whitening over real tokens: every result is the same whatever stands on the padding."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def masked_sum(values: Float[Tensor, "*shape"], mask: Bool[Tensor, "*shape"], *, dim: int | None = None) -> Tensor:
    """Sum over real entries, in the unit of `values`; NaN or infinity on the padding does not enter.

    Args:
        values: any shape.
        mask: True at real entries.
        dim: the axis to sum over; None sums everything.
    """
    kept = torch.where(mask, values, 0.0)
    return kept.sum() if dim is None else kept.sum(dim)


def masked_mean(values: Float[Tensor, "*shape"], mask: Bool[Tensor, "*shape"], *, dim: int | None = None) -> Tensor:
    """Mean over real entries, pooled (long rows weigh more); 0 where there is no real entry (O-34, O-37)."""
    count = mask.sum() if dim is None else mask.sum(dim)
    return masked_sum(values, mask, dim=dim) / count.clamp(min=1)


def whiten(
    values: Float[Tensor, "*shape"], mask: Bool[Tensor, "*shape"], *, centre: bool = True
) -> Float[Tensor, "*shape"]:
    """Scale real entries to sample deviation 1 (n - 1 below), centred on their mean; padding becomes 0.

    One value, no value, or values that differ by rounding only give zeros (when centred): a deviation below
    1e-6 max(1, |mean|) is rounding, and dividing by it would push the policy for no reason (O-33 to O-35).

    Args:
        values: advantages or scores.
        mask: True at real entries.
        centre: False keeps the mean: (values - mean) / deviation + mean.
    """
    mean = masked_mean(values, mask)
    centred = torch.where(mask, values - mean, 0.0)
    deviation = (centred.square().sum() / (mask.sum() - 1).clamp(min=1)).sqrt()
    flat = deviation < 1e-6 * mean.abs().clamp(min=1.0)
    scaled = torch.where(flat, 0.0, centred / torch.where(flat, 1.0, deviation))
    return scaled if centre else torch.where(mask, scaled + mean, 0.0)
