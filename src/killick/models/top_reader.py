"""Other models on the same trunk: a reward model, or a critic that begins as a copy of one.

A reward model that was fitted with a frozen bottom has the policy's own bottom layers. Standing on the policy's trunk
it reads the states that are remembered there, and its own copy of them is given up.
"""

from copy import deepcopy
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from killick.models.decoding import sequence
from killick.models.layers import layer_of, normed, reach, run, unlike
from killick.models.trunk import Trunk
from killick.types import Refusal, Rollout


def apart(trunk: Trunk, model: Any) -> str | None:
    """Why a model does not stand on a trunk, in words that go on after "it"; None where its bottom is the trunk."""
    if unlike(model) is not None or len(model.base_model.layers) != len(trunk.layers):
        return "has another layout"
    mine, theirs = trunk.body, model.base_model
    parts = [(mine.embed_tokens, theirs.embed_tokens), *zip(mine.layers, theirs.layers, strict=True)][: trunk.depth + 1]
    for number, (one, other) in enumerate(parts):
        here, there = one.state_dict(), other.state_dict()
        same = here.keys() == there.keys() and all(same_weight(here[name], there[name]) for name in here)
        if not same:
            return "reads another embedding" if number == 0 else f"has another layer {number}"
    if model.config.rope_parameters != trunk.model.config.rope_parameters:
        return "has other positions"
    return None


def same_weight(one: Tensor, other: Tensor) -> bool:
    """Whether two weights are the same numbers, in whatever type."""
    return one.shape == other.shape and torch.equal(one.float(), other.float())


class TopReader(nn.Module):
    """The top layers and the norm of a model whose bottom is the trunk: the normed state after every token.

    Args:
        trunk: what stands below; its memo is used, and it is remembered there.
        model: of the library, with any head; its bottom is given up for the trunk's own where it does not train.
        trains: True copies the top in float32; False reads the model's own.

    Raises:
        Refusal: where the model's bottom is not the trunk.
    """

    def __init__(self, trunk: Trunk, model: Any, *, trains: bool = False):
        super().__init__()
        if (why := apart(trunk, model)) is not None:
            raise Refusal(f"A model stands on a trunk only where its bottom layers are the trunk's; this one {why}.")
        body = model.base_model
        self.trunk, self.layers, self.norm = trunk, body.layers[trunk.depth :], body.norm
        if trains:
            self.layers, self.norm = (deepcopy(part).float().requires_grad_() for part in (self.layers, self.norm))
        else:
            body.embed_tokens = trunk.body.embed_tokens
            for number in range(trunk.depth):
                body.layers[number] = trunk.body.layers[number]

    def forward(self, rollout: Rollout) -> Float[Tensor, "batch length hidden"]:
        """States of prompt and response in the trunk's type; what stands on padding means nothing."""
        ids, mask, _ = sequence(rollout, after=True)
        length, dtype = ids.shape[1], self.trunk.dtype
        where = reach(self.trunk.body.rotary_emb, dtype, mask=mask, new=length, seen=length)
        x = self.trunk.whole(rollout).flatten(0, 1)
        x = run(x, [layer_of(module, dtype) for module in self.layers], where=where)
        return normed(x, self.norm.weight.to(dtype), eps=self.norm.variance_epsilon).view(*ids.shape, -1)


class TopCritic(nn.Module):
    """A critic that begins as a copy of a reward model on the same trunk, and shares no weight with it (O-41).

    Args:
        trunk: what stands below.
        model: an `AutoModelForSequenceClassification` with one label, whose bottom is the trunk.
    """

    def __init__(self, trunk: Trunk, model: Any):
        super().__init__()
        self.reader = TopReader(trunk, model, trains=True)
        self.head = deepcopy(model.score).float().requires_grad_()

    def forward(self, rollout: Rollout) -> Float[Tensor, "batch time"]:
        """Expected return at each response token, in score units; what stands on padding means nothing."""
        first = rollout.prompts.shape[1] - 1
        return self.head(self.reader(rollout)[:, first:-1].float())[..., 0]
