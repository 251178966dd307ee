"""Attention: a mean by hand, and torch's own kernel beside both ways, with gradients, padding and a cache's queries."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.testing import assert_close

from killick.models.attention import FEW_KEYS, attend


def drawn(*lengths: int) -> list[Tensor]:
    """Parts of three rows and two heads of width 8, cut out of a wider tensor as a network cuts them."""
    draws = torch.Generator().manual_seed(4)
    return [torch.randn(3, length, 2, 8, generator=draws).transpose(1, 2).requires_grad_() for length in lengths]


def test_values_are_mixed_by_the_softmax_of_scaled_products() -> None:
    """One head of width 4, keys whose products with the query are 2 log 3 and 0: over sqrt(4) they are log 3 and 0, so
    the shares are 3/4 and 1/4. The first query sees the first key only."""
    queries = torch.ones(1, 1, 2, 4)
    keys = torch.tensor([[2 * math.log(3), 0, 0, 0], [0, 0, 0, 0]])[None, None]
    values = torch.tensor([[4.0, 0, 0, 8], [0, 4, 0, 0]])[None, None]
    expected = torch.tensor([[4.0, 0, 0, 8], [3, 1, 0, 6]])[None, None]
    assert_close(attend(queries, keys, values=values, visible=None), expected, atol=1e-6, rtol=0)
    last = attend(queries[:, :, 1:], keys, values=values, visible=None)
    assert_close(last, expected[:, :, 1:], atol=1e-6, rtol=0)


@pytest.mark.parametrize("count", [1, 2, FEW_KEYS - 1, FEW_KEYS, 40])
@pytest.mark.parametrize("padded", [False, True])
def test_many_queries_are_torchs_kernel_with_its_gradients(count: int, padded: bool) -> None:
    """1e-5 on both sides of the threshold: all columns, or those behind two of padding, which sees itself only."""
    queries, keys, values = parts = drawn(count, count, count)
    weights = torch.randn(3, 2, count, 8, generator=torch.Generator().manual_seed(5))
    causal = torch.ones(count, count).tril().bool()
    visible = None
    if padded:
        visible = (causal & (torch.arange(count) >= 2) | torch.eye(count).bool()).expand(3, 1, count, count)
    expected = scaled_dot_product_attention(queries, keys, values, causal if visible is None else visible)
    found = attend(queries, keys, values=values, visible=visible)
    assert_close(found, expected, atol=1e-5, rtol=0)
    for mine, theirs in zip(
        torch.autograd.grad((found * weights).sum(), parts),
        torch.autograd.grad((expected * weights).sum(), parts),
        strict=True,
    ):
        assert_close(mine, theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize("count", [1, 2, FEW_KEYS - 1, FEW_KEYS, 40])
@pytest.mark.parametrize("hidden_keys", [0, 7])
def test_one_query_meets_all_keys_as_in_torchs_kernel(count: int, hidden_keys: int) -> None:
    """Both sides of the threshold, with keys that are padding (but for the last, which is its own) and without."""
    query, keys, values = (part.detach() for part in drawn(1, count, count))
    hidden = min(hidden_keys, count - 1)
    visible = None if not hidden else (torch.arange(count) >= hidden).expand(3, 1, 1, count)
    expected = scaled_dot_product_attention(query, keys, values, visible)
    assert_close(attend(query, keys, values=values, visible=visible), expected, atol=1e-6, rtol=0)
    if hidden:
        keys[:, :, :hidden], values[:, :, :hidden] = 1e4, 1e4
        assert_close(attend(query, keys, values=values, visible=visible), expected, atol=1e-6, rtol=0)


def test_large_scores_do_not_overflow() -> None:
    """Products of 1e4 and -1e4: the softmax is 1 and 0."""
    queries, keys = torch.full((1, 1, 1, 1), 100.0), torch.tensor([100.0, -100.0]).view(1, 1, 2, 1)
    values = torch.tensor([3.0, 5.0]).view(1, 1, 2, 1)
    assert float(attend(queries, keys, values=values, visible=None)) == 3.0
