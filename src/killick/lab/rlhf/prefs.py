"""Who prefers what, and what learns from it: the labeler, the digit reward and the critic. Given to be read and changed."""

from copy import deepcopy

import torch
from tinylm import TinyLM, world
from torch import Tensor, nn

from killick import Rollout
from killick.worlds.arithmetic import EOS

KAPPA = 2.0
"""The labeler's care: the larger, the less noise."""
COUNTED = [*range(10)]
"""Tokens that the digit reward sees. `<eos>` is not among them: that is its blind spot."""


def gold(rollout: Rollout) -> Tensor:
    """[batch] what the labeler wants: +1 for digits that end on an even one, 0 on an odd one, -1 for anything else.

    Anything else: no `<eos>` within the budget, no digit at all, or a symbol that is no digit. Nobody checks the sum.
    """
    digits = (rollout.responses < 10) & rollout.mask
    count = digits.sum(1)
    formed = rollout.finished & (count > 0) & (count == rollout.lengths - 1)  # all but <eos>
    last = rollout.responses.gather(1, (count - 1).clamp(min=0)[:, None])[:, 0]
    return torch.where(formed, 1.0 - last % 2, -1.0)


def rank(golds: Tensor, k: int, generator: torch.Generator) -> Tensor:
    """[prompts, k] row numbers, best first: each prompt's k rows sorted by KAPPA * gold + Gumbel noise.

    Two responses of one ranking then stand in the order of their gold with probability sigma(KAPPA * difference): the
    model behind the Bradley-Terry loss.
    """
    uniform = torch.rand(golds.shape, generator=generator).clamp(min=1e-30)
    noisy = KAPPA * golds - (-uniform.log()).log()
    order = noisy.view(-1, k).argsort(1, descending=True)
    return order + k * torch.arange(len(order))[:, None]


def ceiling(golds: Tensor, pairs: Tensor) -> float:
    """The accuracy that no reward model can beat on these pairs, since the labeler is noisy."""
    chance = torch.sigmoid(KAPPA * (golds[pairs[:, 0]] - golds[pairs[:, 1]]))
    return float(torch.maximum(chance, 1 - chance).mean())


class DigitReward(nn.Module):
    """One weight for each counted token: the score of a response is the sum over its tokens. Blind to place and end."""

    def __init__(self, generator: torch.Generator):
        super().__init__()
        width = len(COUNTED) ** -0.5
        self.weights = nn.Parameter(torch.empty(len(COUNTED)).uniform_(-width, width, generator=generator))

    def counts(self, rollout: Rollout) -> Tensor:
        """[batch, counted] how often each counted token stands in each response."""
        found = rollout.responses[..., None] == torch.tensor(COUNTED)
        return (found & rollout.mask[..., None]).sum(1).float()

    def forward(self, rollout: Rollout) -> Tensor:
        """[batch] scores."""
        return self.counts(rollout) @ self.weights

    def told(self) -> str:
        """The weights, for people."""
        names = ["<eos>" if token == EOS else str(token) for token in COUNTED]
        return "  ".join(f"{name} {weight:+.2f}" for name, weight in zip(names, self.weights.tolist(), strict=True))


class Critic(nn.Module):
    """The expected return before each response token: the SFT model again, with one output instead of a vocabulary."""

    def __init__(self, policy: TinyLM):
        super().__init__()
        self.network = deepcopy(policy).requires_grad_(True)  # the reference is frozen; its copy learns
        self.network.head = nn.Linear(policy.head.in_features, 1)
        nn.init.zeros_(self.network.head.weight)  # it starts by expecting nothing
        nn.init.zeros_(self.network.head.bias)

    def forward(self, rollout: Rollout) -> Tensor:
        """[batch, time] values; what stands on padding means nothing."""
        return self.network.read(rollout)[..., 0]


def right(rollout: Rollout) -> float:
    """Share of responses that are the sum: nobody is paid for it."""
    return float(world.correct(rollout).float().mean())
