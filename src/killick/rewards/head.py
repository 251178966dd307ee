"""A reward on given features: linear, or a small network. Where the features come from is the caller's affair."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from killick.types import Rollout


class Head(nn.Module):
    """A `Reward` = network(features(rollout)).

    Args:
        features: rollout -> [batch, feature], frozen; a world's, or a language model's states.
        network: [batch, feature] -> [batch, 1]; `layers.mlp` makes one.
    """

    def __init__(self, features: Callable[[Rollout], Float[Tensor, "batch feature"]], network: nn.Module):
        super().__init__()
        self.encode, self.network = features, network

    def score(self, encoded: Float[Tensor, "batch feature"]) -> Float[Tensor, " batch"]:
        """The network's one output."""
        return self.network(encoded)[:, 0]

    def forward(self, rollout: Rollout) -> Float[Tensor, " batch"]:
        """One score per response."""
        return self.score(self.encode(rollout))
