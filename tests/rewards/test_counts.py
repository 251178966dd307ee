"""Counts: one weight a token, blind to order and end."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from killick.rewards.counts import Counts
from killick.types import Rollout

modest = settings(max_examples=30, deadline=None, derandomize=True)


def responses(rows: list[list[int]], fill: int = 13) -> Rollout:
    """Responses padded on the right to four tokens."""
    tokens = torch.tensor([row + [fill] * (4 - len(row)) for row in rows])
    mask = torch.arange(4)[None] < torch.tensor([len(row) for row in rows])[:, None]
    ids = torch.zeros(len(rows), 1, dtype=torch.long)
    seen = torch.ones_like(ids, dtype=torch.bool)
    return Rollout(ids, seen, tokens, mask, torch.zeros(tokens.shape), seen[:, 0])


def weighted(weights: Tensor) -> Counts:
    """A reward on the ten digits with these weights."""
    model = Counts(range(10))
    with torch.no_grad():
        model.weights.copy_(weights)
    return model


def test_it_starts_at_zero_for_everything() -> None:
    """Ten weights of 0: no opinion before the fit."""
    model = Counts(range(10))
    assert model.weights.tolist() == [0.0] * 10
    assert model(responses([[4, 4, 4, 4], [12]])).tolist() == [0.0, 0.0]


def test_a_score_is_the_sum_of_the_weights_of_the_digits_that_were_written() -> None:
    """Weight of digit d is d / 8: 4, 2, <eos> score 6/8, 4444 scores 2, + and <eos> score 0."""
    scores = weighted(torch.arange(10.0) / 8)(responses([[4, 2, 12], [4, 4, 4, 4], [10, 12]]))
    assert scores.tolist() == [0.75, 2.0, 0.0]


def test_counting_other_tokens_sees_only_those() -> None:
    """Tokens 12 and 4, in this order."""
    assert Counts((12, 4)).encode(responses([[4, 4, 12], [1, 2, 3, 5]])).tolist() == [[1.0, 2.0], [0.0, 0.0]]


def test_the_gradient_of_a_score_is_the_count() -> None:
    """Digit 4 three times, digit 7 once."""
    model = Counts(range(10))
    model(responses([[4, 7, 4, 4]])).sum().backward()
    assert model.weights.grad is not None
    assert model.weights.grad.tolist() == [0, 0, 0, 0, 3, 0, 0, 1, 0, 0]


@modest
@given(st.lists(st.integers(0, 12), min_size=1, max_size=4), st.randoms(use_true_random=False), st.integers(0, 13))
def test_order_and_padding_are_invisible(tokens: list[int], random, fill: int) -> None:
    """A shuffle, and any digit behind the end, leave the counts bit-equal."""
    model = Counts(range(10))
    plain = model.encode(responses([tokens]))
    assert torch.equal(plain, model.encode(responses([random.sample(tokens, len(tokens))])))
    assert torch.equal(plain, model.encode(responses([tokens], fill)))
    assert float(plain.sum()) == sum(token < 10 for token in tokens)


def test_a_saved_model_scores_as_before() -> None:
    """Weights and counted tokens travel in the state."""
    model = weighted(torch.randn(10, generator=torch.Generator().manual_seed(0)))
    copy = Counts([9] * 10)
    copy.load_state_dict(model.state_dict())
    rollout = responses([[1, 2, 3, 12], [9, 9, 12]])
    assert torch.equal(model(rollout), copy(rollout))
