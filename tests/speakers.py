"""A small transformer that speaks at random, and what it says: for tests of what reads the same network."""

import torch

from killick.models.policy import TransformerPolicy
from killick.models.transformer import Transformer, TransformerConfig
from killick.types import Rollout, Vocabulary

WORDS = Vocabulary(size=9, time=5, eos=7, pad=8, forbidden=(8,))
SMALL = TransformerConfig(9, 9, context=12, hidden=16, layers=2, heads=2, feed_forward=24)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def speaker(config: TransformerConfig = SMALL) -> TransformerPolicy:
    return TransformerPolicy(Transformer(config, seeded(0)), WORDS)


def rollout_of(policy: TransformerPolicy, count: int = 12) -> Rollout:
    ids = torch.randint(0, 7, (count, 4), generator=seeded(1))
    return policy.sample((ids, torch.ones_like(ids, dtype=torch.bool)), 1, seeded(2))
