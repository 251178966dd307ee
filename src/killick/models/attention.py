"""Attention: how queries mix the values of the keys that they may see."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

FEW_KEYS = 16
"""Below this the softmax of torch's fused attention takes one number at a time; a processor's vector holds as many."""


def attend(
    queries: Float[Tensor, "batch head new width"],
    keys: Float[Tensor, "batch head seen width"],
    *,
    values: Float[Tensor, "batch head seen width"],
    visible: Bool[Tensor, "batch 1 new seen"] | None,
) -> Float[Tensor, "batch head new width"]:
    """Mix values by how queries meet keys: those that are visible, or, where nothing is said, none behind a query."""
    new, seen = queries.shape[2], keys.shape[2]
    if seen < FEW_KEYS:
        return attend_few(queries, keys, values=values, visible=visible)
    if new > 1:
        return functional.scaled_dot_product_attention(queries, keys, values, visible, is_causal=visible is None)
    # The fused kernel is made for many queries.
    scores = (queries * queries.shape[3] ** -0.5) @ keys.transpose(2, 3)
    if visible is not None:
        scores = scores.masked_fill(~visible, -torch.inf)
    return scores.softmax(-1) @ values


def attend_few(
    queries: Float[Tensor, "batch head new width"],
    keys: Float[Tensor, "batch head seen width"],
    *,
    values: Float[Tensor, "batch head seen width"],
    visible: Bool[Tensor, "batch 1 new seen"] | None,
) -> Float[Tensor, "batch head new width"]:
    """`attend` with the keys' axis first, so that the softmax runs down many columns at once."""
    new, seen = queries.shape[2], keys.shape[2]
    if visible is None:
        hidden = queries.new_full((seen, new), -torch.inf).tril(new - seen - 1)
    else:
        hidden = torch.zeros_like(visible, dtype=queries.dtype).masked_fill(~visible, -torch.inf).transpose(2, 3)
    scores = torch.add(hidden, keys @ queries.transpose(2, 3), alpha=queries.shape[3] ** -0.5)
    shares = scores.permute(2, 0, 1, 3).softmax(0)
    return shares.permute(1, 2, 3, 0) @ values
