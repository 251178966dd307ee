"""A blind reward: one weight for each counted token, r(y) = sum_d w_d count_d(y). It sees neither order nor end."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from killick.types import Rollout


class Counts(nn.Module):
    """A `Reward` with one weight a token, started at 0.

    Args:
        tokens: ids that are counted; all others are invisible.
    """

    tokens: Tensor

    def __init__(self, tokens: Sequence[int]):
        super().__init__()
        self.register_buffer("tokens", torch.tensor(tokens))
        self.weights = nn.Parameter(torch.zeros(len(tokens)))

    def encode(self, rollout: Rollout) -> Float[Tensor, "batch token"]:
        """How often each counted token stands in each response."""
        return ((rollout.responses[..., None] == self.tokens) & rollout.mask[..., None]).sum(1).float()

    def score(self, encoded: Float[Tensor, "batch token"]) -> Float[Tensor, " batch"]:
        """Weighted counts."""
        return encoded @ self.weights

    def forward(self, rollout: Rollout) -> Float[Tensor, " batch"]:
        """One score per response."""
        return self.score(self.encode(rollout))
