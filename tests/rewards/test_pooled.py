"""Pooled: a mean of embeddings and a small network."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional
from torch.testing import assert_close

from killick.rewards.pooled import Pooled
from killick.types import Rollout

modest = settings(max_examples=30, deadline=None, derandomize=True)


def responses(rows: list[list[int]], fill: int, width: int = 6) -> Rollout:
    """Responses padded on the right."""
    tokens = torch.tensor([row + [fill] * (width - len(row)) for row in rows])
    mask = torch.arange(width)[None] < torch.tensor([len(row) for row in rows])[:, None]
    ids = torch.zeros(len(rows), 1, dtype=torch.long)
    seen = torch.ones_like(ids, dtype=torch.bool)
    return Rollout(ids, seen, tokens, mask, torch.zeros(tokens.shape), seen[:, 0])


def model(seed: int = 0) -> Pooled:
    return Pooled(5, 8, torch.Generator().manual_seed(seed))


def test_the_encoding_is_the_share_of_each_token() -> None:
    """Tokens 1, 1, 3: two thirds and one third; padding (an id outside the table) counts nothing."""
    encoded = model().encode(responses([[1, 1, 3], [0, 1, 2, 3, 4, 4]], fill=7))
    expected = torch.tensor([[0, 2 / 3, 0, 1 / 3, 0], [1 / 6, 1 / 6, 1 / 6, 1 / 6, 2 / 6]])
    assert_close(encoded, expected)


def test_a_score_is_the_network_on_the_mean_embedding() -> None:
    """Against embeddings looked up and averaged one by one; 1e-6 covers another order of summation."""
    pooled, rows = model(), [[1, 1, 3], [4], [0, 2, 4, 4, 1, 3]]
    first, _, last = pooled.network.children()
    for row, score in zip(rows, pooled(responses(rows, fill=0)), strict=True):
        mean = pooled.embedding[torch.tensor(row)].mean(0)
        hidden = functional.linear(mean, first.weight, first.bias).relu()  # type: ignore[arg-type]
        assert_close(score, functional.linear(hidden, last.weight, last.bias)[0], atol=1e-6, rtol=1e-6)  # type: ignore[arg-type]


def test_past_the_data_relu_goes_on_in_a_line_and_tanh_levels_off() -> None:
    """The same weights, embeddings of one token times 1, 1e3 and 2e3: tanh stands still, ReLU doubles what it adds."""
    relu, tanh = (Pooled(5, 8, torch.Generator().manual_seed(3), activation=name) for name in ("relu", "tanh"))
    far = torch.tensor([1e3, 2e3, 4e3])[:, None] * torch.eye(5)[:1]
    first, second, third = relu.score(far)
    assert_close((third - second) / (second - first), torch.tensor(2.0), atol=1e-3, rtol=0)
    still = tanh.score(far)
    assert_close(still[0], still[2], atol=1e-6, rtol=0)
    assert not torch.equal(relu(responses([[1, 2]], fill=0)), tanh(responses([[1, 2]], fill=0)))


def test_embeddings_start_at_a_standard_normal() -> None:
    """6,400 numbers: mean 0 and variance 1 within 4 standard errors (1/80 and sqrt(2)/80)."""
    numbers = Pooled(100, 64, torch.Generator().manual_seed(5)).embedding.detach()
    assert abs(float(numbers.mean())) < 4 / 80
    assert abs(float(numbers.var()) - 1) < 4 * 2**0.5 / 80


def test_the_generator_alone_decides_the_weights() -> None:
    """The same seed twice, then another."""
    a, b, c = (model(seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not any(torch.equal(a[name], c[name]) for name in a)


@modest
@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.randoms(use_true_random=False), st.integers(0, 9))
def test_order_repetition_and_padding_are_invisible(tokens: list[int], random, fill: int) -> None:
    """Shuffled, padded otherwise, or written twice over: the same bag (1e-6: shares may round)."""
    pooled = model()
    plain = pooled(responses([tokens], fill=0, width=10))
    for other in (random.sample(tokens, len(tokens)), tokens * 2):
        assert_close(pooled(responses([other], fill, width=10)), plain, atol=1e-6, rtol=1e-6)
