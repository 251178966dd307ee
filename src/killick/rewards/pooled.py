"""A bag-of-tokens reward: embeddings averaged over the response, then a small network. Order is invisible to it."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from killick.rewards.layers import mlp
from killick.types import Rollout


class Pooled(nn.Module):
    """A `Reward`: mean token embedding, then hidden units, then one number.

    Args:
        size: token ids 0 .. size - 1.
        hidden: width of the embedding and of the hidden layer.
        generator: weights are drawn from it.
        activation: of the hidden units: ReLU goes on in a straight line past the data, tanh levels off.
    """

    def __init__(
        self, size: int, hidden: int, generator: torch.Generator, activation: Literal["relu", "tanh"] = "relu"
    ):
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(size, hidden, device=generator.device))
        nn.init.normal_(self.embedding, generator=generator)
        self.network = mlp(hidden, hidden, generator=generator, activation=activation)

    def encode(self, rollout: Rollout) -> Float[Tensor, "batch vocab"]:
        """Share of each token in each response: a mean of embeddings is this times the embedding table."""
        shape = (len(rollout), len(self.embedding))
        counts = torch.zeros(shape, device=rollout.responses.device)
        tokens = rollout.responses.where(rollout.mask, 0)
        counts.scatter_add_(1, tokens, rollout.mask.float())
        return counts / rollout.lengths[:, None]

    def score(self, encoded: Float[Tensor, "batch vocab"]) -> Float[Tensor, " batch"]:
        """The network on the mean embedding."""
        return self.network(encoded @ self.embedding)[:, 0]

    def forward(self, rollout: Rollout) -> Float[Tensor, " batch"]:
        """One score per response."""
        return self.score(self.encode(rollout))
