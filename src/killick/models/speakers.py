"""What PPO asks of a language model: a policy that trains, a reference that does not, and a critic."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from killick.models.decoding import sequence
from killick.models.layers import layer_of, normed, reach, run, unlike
from killick.models.pretrained import PretrainedPolicy, evaluating
from killick.models.trunk import TopPolicy, TopValue, Trunk
from killick.types import Refusal, Rollout, Vocabulary


@dataclass(frozen=True)
class Speakers:
    """Who takes part.

    Args:
        policy: trains.
        reference: the model as it was; frozen.
        value: a critic; None where none was asked for.
        trunk: what they share; None where each is a whole model.
    """

    policy: TopPolicy | PretrainedPolicy
    reference: TopPolicy | PretrainedPolicy
    value: "TopValue | WholeValue | None"
    trunk: Trunk | None


def speakers(
    model: Any,
    vocabulary: Vocabulary,
    *,
    train_layers: int | None,
    generator: torch.Generator | None,
    **distribution: Any,
) -> Speakers:
    """Policy, reference and critic from one model.

    Args:
        model: an `AutoModelForCausalLM`; it becomes the reference, or the trunk.
        vocabulary: what is spoken, and how long.
        train_layers: how many layers at the top train, over one shared trunk; None trains whole copies.
        generator: fills what is new in the critic; None makes no critic, which may be a whole copy.
        distribution: temperature and spoken of the distribution. A filter (top_k, top_p) is refused: a token that one
            of policy and reference can say and the other cannot has an infinite log-ratio (O-29).

    Raises:
        Refusal: where the model's layout knows no trunk, or there are not so many layers.
    """
    if distribution.pop("top_k", None) is not None or distribution.pop("top_p", 1.0) != 1.0:
        raise Refusal(
            "PPO compares policy and reference token by token, and top_k or top_p would make some impossible for one "
            "of them; use a temperature, or a fixed set of spoken tokens."
        )
    if train_layers is not None:
        trunk = Trunk(model, train_layers)
        policy, reference = (TopPolicy(trunk, vocabulary, **distribution, trains=trains) for trains in (True, False))
        return Speakers(policy, reference, None if generator is None else TopValue(trunk, generator), trunk)
    compute: torch.dtype = model.dtype
    if unlike(model) is not None:  # the library computes in the type of the weights, which want float32 to train
        model, compute = model.float(), torch.float32
    anchor = PretrainedPolicy(model.requires_grad_(False).eval(), vocabulary, **distribution)
    whole = PretrainedPolicy(deepcopy(model).float().requires_grad_(), vocabulary, compute=compute, **distribution)
    return Speakers(whole, anchor, None if generator is None else WholeValue(model, compute), None)


class WholeValue(nn.Module):
    """A critic of its own: a copy of a whole language model whose states a linear head reads before each token.

    It starts by expecting 0 everywhere.

    Args:
        model: copied, in float32, without its head.
        compute: the type of the forward pass (Llama layouts only).
    """

    def __init__(self, model: Any, compute: torch.dtype):
        super().__init__()
        self.by_hand, self.compute = unlike(model) is None, compute
        self.body = deepcopy(model.base_model).float().requires_grad_()
        self.head = nn.Linear(model.get_input_embeddings().weight.shape[1], 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, rollout: Rollout) -> Float[Tensor, "batch time"]:
        """Expected return at each response token, in score units; what stands on padding means nothing."""
        ids, mask, first = sequence(rollout)
        return self.head(self.states(ids, mask)[:, first:].float())[..., 0]

    def states(self, ids: Tensor, mask: Tensor | None) -> Float[Tensor, "batch length hidden"]:
        """Normed states of all tokens."""
        if self.by_hand:
            length, dtype = ids.shape[1], self.compute
            layers = [layer_of(module, dtype) for module in self.body.layers]
            x = functional.embedding(ids, self.body.embed_tokens.weight.to(dtype)).flatten(0, 1)
            where = reach(self.body.rotary_emb, dtype, mask=mask, new=length, seen=length)
            x = normed(
                run(x, layers, where=where), self.body.norm.weight.to(dtype), eps=self.body.norm.variance_epsilon
            )
            return x.view(*ids.shape, -1)
        mask = torch.ones_like(ids) if mask is None else mask.long()
        places = (mask.cumsum(1) - 1).clamp(min=0)
        with evaluating(self.body):
            return self.body(ids, attention_mask=mask, position_ids=places, use_cache=False).last_hidden_state
