"""A critic: the same transformer with one output, read before each response token is written."""

from copy import deepcopy
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from killick.models.decoding import sequence
from killick.models.transformer import Transformer
from killick.types import Rollout


class Critic(nn.Module):
    """A `Value` over our own transformer; it never shares a tensor with a policy or a reward model (O-41).

    Args:
        network: a transformer with one output.
    """

    def __init__(self, network: Transformer):
        super().__init__()
        self.network = network

    @classmethod
    def from_network(cls, network: Transformer, *, head: nn.Linear | None = None) -> "Critic":
        """A critic with copies of another network's weights.

        Args:
            network: a policy's, or the one inside a reward model's backbone.
            head: a reward model's, copied too; without one the head is zeros, so that the critic starts by expecting 0.
        """
        config = replace(network.config, outputs=1)
        copy = Transformer(config, torch.Generator(network.embed.weight.device))
        body = {name: tensor for name, tensor in network.state_dict().items() if not name.startswith("head.")}
        copy.load_state_dict(body, strict=False)
        if head is not None:
            copy.head = deepcopy(head).requires_grad_()
            return cls(copy)
        for parameter in copy.head.parameters():
            nn.init.zeros_(parameter)
        return cls(copy)

    def forward(self, rollout: Rollout) -> Float[Tensor, "batch time"]:
        """Expected return at each response token, in score units; what stands on padding means nothing."""
        return self.network.head(self.network(*sequence(rollout))).view(rollout.responses.shape)
