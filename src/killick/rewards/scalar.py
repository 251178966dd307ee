"""A language model as reward: one number read off the state after the last real token. All of it is trained."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from killick.types import Refusal, Rollout


class Scalar(nn.Module):
    """A `Reward` = head(state of the backbone after the last real token, the end token included).

    Unlike a count it sees order, prompt and end. Its zero is arbitrary: preferences say nothing about it.

    Args:
        backbone: rollout -> [batch time hidden], the state after each response token; trained along.
        hidden: width of a state.
        generator: the head's weights are drawn from it, N(0, 1 / (hidden + 1)); its bias starts at 0.

    Source: Stiennon et al. 2020, arXiv 2009.01325.
    """

    def __init__(self, backbone: nn.Module, hidden: int, generator: torch.Generator):
        super().__init__()
        self.backbone = backbone
        with torch.random.fork_rng(devices=[]):
            self.head = nn.Linear(hidden, 1).to(generator.device)
        nn.init.normal_(self.head.weight, 0.0, (hidden + 1) ** -0.5, generator)
        nn.init.zeros_(self.head.bias)

    def encode(self, rollout: Rollout) -> Rollout:
        """The responses themselves: nothing of a backbone that is trained can be computed beforehand."""
        return rollout

    def score(self, encoded: Rollout) -> Float[Tensor, " batch"]:
        """One number per response.

        Raises:
            Refusal: where a response has no real token, and so no last one (O-07).
        """
        encoded = encoded.trimmed()
        place = torch.arange(1, encoded.mask.shape[1] + 1, device=encoded.mask.device)
        last = (encoded.mask * place).amax(1) - 1
        if bool((last < 0).any()):
            empty = (last < 0).nonzero()[:, 0].tolist()[:5]
            raise Refusal(f"A response without a token has no last token to be scored at (row {empty}).")
        states = self.backbone(encoded)
        return self.head(states[torch.arange(len(last), device=last.device), last])[:, 0]

    def forward(self, rollout: Rollout) -> Float[Tensor, " batch"]:
        """One score per response."""
        return self.score(rollout)
