"""A transformer that only reads: the state after each response token, for whoever puts a head on it."""

from copy import deepcopy
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from killick.models.decoding import sequence
from killick.models.transformer import Transformer
from killick.ops.masked import masked_mean
from killick.types import Refusal, Rollout

BATCH = 256
"""Responses read at once: more would only take memory."""


class Reader(nn.Module):
    """The body of another network, copied, without its head; it shares no tensor with it (O-41).

    Args:
        network: a policy's; its context must hold prompt and whole response.
    """

    def __init__(self, network: Transformer):
        super().__init__()
        self.network = deepcopy(network).requires_grad_()
        del self.network.head

    def forward(self, rollout: Rollout) -> Float[Tensor, "batch time hidden"]:
        """The state after each response token, having read it; what stands on padding means nothing."""
        return self.network(*sequence(rollout, after=True)).view(*rollout.responses.shape, -1)


@torch.no_grad()
def summary(reader: Reader, rollout: Rollout, *, limit: int) -> Float[Tensor, "batch feature"]:
    """Frozen features of a response: its mean state, joined with the state after its last token.

    Args:
        reader: whose states.
        rollout: the responses.
        limit: most tokens of prompt and response together; what lies beyond them is not read.

    Raises:
        Refusal: where a response has no token within the limit.
    """
    room = limit - rollout.prompt_mask.sum(1, keepdim=True)
    mask = rollout.mask & (torch.arange(rollout.mask.shape[1], device=rollout.mask.device) < room)
    lengths = mask.sum(1)
    if bool((lengths < 1).any()):
        empty = (lengths < 1).nonzero()[:, 0].tolist()[:5]
        raise Refusal(f"Of some responses no token lies within {limit} tokens, prompt included (row {empty}).")
    kept, order, found = replace(rollout, mask=mask), lengths.argsort(), []
    for rows in order.split(BATCH):  # rows of like length together, so that little is computed for padding
        piece, last = kept[rows].trimmed(), lengths[rows] - 1
        states = reader(piece)
        mean = masked_mean(states, piece.mask[..., None].expand_as(states), dim=1)
        found.append(torch.cat((mean, states[torch.arange(len(rows)), last]), 1))
    return torch.cat(found)[order.argsort()]
