"""What every reward promises, learned or exact: one finite number per response, of that response alone."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from killick.models.decoding import Distribution, decode
from killick.models.reader import Reader
from killick.models.transformer import Transformer, TransformerConfig
from killick.rewards.counts import Counts
from killick.rewards.ensemble import Ensemble
from killick.rewards.fit import standardise
from killick.rewards.head import Head
from killick.rewards.layers import mlp
from killick.rewards.pooled import Pooled
from killick.rewards.scalar import Scalar
from killick.types import Rollout
from killick.worlds.arithmetic import Arithmetic

modest = settings(max_examples=10, deadline=None, derandomize=True)
world = Arithmetic()


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def babble(count: int, seed: int) -> Rollout:
    """Responses of 1 to 4 tokens from equal odds."""
    generator = seeded(seed)
    prompts = world.prompts(count, generator)
    return decode(
        lambda new: torch.zeros(len(new), 14),
        prompts,
        n=1,
        distribution=Distribution(world.vocabulary),
        generator=generator,
    )


def counts() -> Counts:
    """One weight for each of twelve tokens, drawn."""
    model = Counts(range(12))
    torch.nn.init.normal_(model.weights, generator=seeded(0))
    return model


def head(hidden: int | None) -> Head:
    """A network on counts and length."""
    seen = Counts(range(12))
    return Head(
        lambda rollout: torch.cat((seen.encode(rollout), rollout.lengths[:, None].float()), 1),
        mlp(13, hidden, generator=seeded(1)),
    )


def scalar() -> Scalar:
    """A small transformer with one output; room for three columns of padding."""
    shape = TransformerConfig(14, 14, context=16, hidden=16, layers=2, heads=2, feed_forward=24)
    return Scalar(Reader(Transformer(shape, seeded(4))), 16, seeded(5)).requires_grad_(False)


REWARDS: dict[str, Callable[[Rollout], Tensor]] = {
    "counts": counts(),
    "pooled": Pooled(14, 16, seeded(2)),
    "linear head": head(None),
    "network head": head(8),
    "standardised": standardise(Pooled(14, 16, seeded(3)), babble(100, 0)),
    "scalar": scalar(),
    "tanh": Pooled(14, 16, seeded(9), activation="tanh"),
    "minimum": Ensemble([standardise(Pooled(14, 16, seeded(k)), babble(100, 0)) for k in range(10, 13)]),
    "mean": Ensemble([standardise(Pooled(14, 16, seeded(k)), babble(100, 0)) for k in range(10, 13)], "mean"),
    "gold": world.gold,
}
every_reward = pytest.mark.parametrize("reward", REWARDS.values(), ids=REWARDS.keys())


@every_reward
@modest
@given(st.integers(0, 1000))
def test_a_reward_is_one_finite_number_per_response(reward: Callable[[Rollout], Tensor], seed: int) -> None:
    """Empty answers (the end token alone) included; responses are told apart."""
    scores = reward(babble(64, seed))
    assert scores.shape == (64,)
    assert scores.dtype == torch.float32
    assert bool(torch.isfinite(scores).all())
    assert len(scores.unique()) > 1


@every_reward
def test_a_response_scores_the_same_alone_as_in_any_batch(reward: Callable[[Rollout], Tensor]) -> None:
    """1e-6: a product of matrices of another shape may round otherwise."""
    rollout = babble(16, 5)
    scores = reward(rollout)
    alone = torch.cat([reward(rollout[row : row + 1]) for row in range(16)])
    assert_close(alone, scores, atol=1e-6, rtol=1e-6)
    order = torch.randperm(16, generator=seeded(6))
    assert_close(reward(rollout[order]), scores[order], atol=1e-6, rtol=1e-6)


@every_reward
@modest
@given(st.integers(0, 13))
def test_a_reward_is_blind_to_what_stands_on_the_padding(reward: Callable[[Rollout], Tensor], fill: int) -> None:
    """Bit-equal with any token there, and with three more columns of it (1e-6: longer sums may round)."""
    rollout = babble(64, 7)
    assert not bool(rollout.mask.all())
    filled = replace(rollout, responses=rollout.responses.where(rollout.mask, fill))
    assert torch.equal(reward(filled), reward(rollout))
    more = torch.full((64, 3), fill)
    wider = replace(
        rollout,
        responses=torch.cat((rollout.responses, more), 1),
        mask=torch.cat((rollout.mask, torch.zeros_like(more, dtype=torch.bool)), 1),
        logprobs=torch.cat((rollout.logprobs, torch.zeros(64, 3)), 1),
    )
    assert_close(reward(wider), reward(rollout), atol=1e-6, rtol=1e-6)


@every_reward
def test_a_reward_is_the_same_twice(reward: Callable[[Rollout], Tensor]) -> None:
    """No dropout, no draw."""
    rollout = babble(16, 8)
    assert torch.equal(reward(rollout), reward(rollout))
