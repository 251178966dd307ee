"""A blind reward: one weight for each counted token, r(y) = sum_d w_d count_d(y). It sees neither order nor end."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from killick.rewards.layers import linear
from killick.types import Rollout


class Counts(nn.Module):
    """A `Reward` with one weight a token.

    Args:
        tokens: ids that are counted; all others are invisible.
        generator: weights start as those of a linear layer, drawn from it; without one they start at 0.
    """

    tokens: Tensor

    def __init__(self, tokens: Sequence[int], generator: torch.Generator | None = None):
        super().__init__()
        device = generator.device if generator else torch.device("cpu")
        self.register_buffer("tokens", torch.tensor(tokens, device=device))
        start = torch.zeros(len(tokens)) if generator is None else linear(len(tokens), 1, generator=generator).weight[0]
        self.weights = nn.Parameter(start.detach().clone().to(device))

    def encode(self, rollout: Rollout) -> Float[Tensor, "batch token"]:
        """How often each counted token stands in each response."""
        return ((rollout.responses[..., None] == self.tokens) & rollout.mask[..., None]).sum(1).float()

    def score(self, encoded: Float[Tensor, "batch token"]) -> Float[Tensor, " batch"]:
        """Weighted counts."""
        return encoded @ self.weights

    def forward(self, rollout: Rollout) -> Float[Tensor, " batch"]:
        """One score per response."""
        return self.score(self.encode(rollout))
