"""A critic that begins as a copy of a reward model: it reads a token as the judge reads an answer that ends there.

Nothing is shared with the judge, which must not move (O-41). Over a trunk only the judge's top layers, norm and head
are copied; below they stand on the policy's own trunk where the judge was fitted on the same frozen layers, and on a
trunk of the judge's otherwise.
"""

from copy import deepcopy
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from killick.models.decoding import sequence
from killick.models.layers import layer_of, normed, reach, run
from killick.models.speakers import WholeValue
from killick.models.trunk import Trunk
from killick.types import Refusal, Rollout


class JudgingValue(nn.Module):
    """The top layers and the head of a reward model over a trunk, as a `Value`; float32 masters.

    Args:
        trunk: below.
        model: an `AutoModelForSequenceClassification` with a linear head `score`; copied from, never kept.
        alone: the trunk is this critic's own, so that nobody else empties its memo.
    """

    def __init__(self, trunk: Trunk, model: Any, *, alone: bool):
        super().__init__()
        self.trunk, self.alone = trunk, alone
        body = model.base_model
        top = (body.layers[trunk.depth :], body.norm, model.score)
        self.layers, self.norm, self.head = (deepcopy(part).float().requires_grad_() for part in top)

    def forward(self, rollout: Rollout) -> Float[Tensor, "batch time"]:
        """Expected return at each response token, in score units; what stands on padding means nothing."""
        if self.alone and not torch.is_grad_enabled():
            self.trunk.forget()  # a rollout is read once without gradient, before its updates
        ids, mask, first = sequence(rollout)
        length, dtype = ids.shape[1], self.trunk.dtype
        where = reach(self.trunk.body.rotary_emb, dtype, mask=mask, new=length, seen=length)
        x = self.trunk.whole(rollout)[:, :length].flatten(0, 1)
        x = run(x, [layer_of(module, dtype) for module in self.layers], where=where)
        x = normed(x, self.norm.weight.to(dtype), eps=self.trunk.body.norm.variance_epsilon)
        return self.head(x.view(*ids.shape, -1)[:, first:].float())[..., 0]


def critic_from_judge(model: Any, trunk: Trunk | None, *, compute: torch.dtype) -> nn.Module:
    """A critic that begins as a reward model.

    Args:
        model: an `AutoModelForSequenceClassification` with a linear head `score`, which reads the policy's tokens.
        trunk: the policy's; None trains a whole copy.
        compute: type of a whole copy's forward pass.

    Raises:
        Refusal: where there is a trunk, and the judge's layout knows none.
    """
    if trunk is None:
        whole = WholeValue(model, compute)
        with torch.no_grad():
            whole.head.weight.copy_(model.score.weight)
        return whole
    if stands_on(model, trunk):
        return JudgingValue(trunk, model, alone=False)
    top = len(trunk.layers) - trunk.depth
    below = deepcopy(model).to(trunk.dtype)
    return JudgingValue(Trunk(below, min(top, len(below.base_model.layers))), model, alone=True)


def stands_on(model: Any, trunk: Trunk) -> bool:
    """Whether a model's embedding and bottom layers are the trunk's, weight for weight."""
    mine, theirs = model.base_model, trunk.body
    if model.config.model_type != trunk.model.config.model_type or len(mine.layers) != len(theirs.layers):
        return False
    parts = [(mine.embed_tokens, theirs.embed_tokens)]
    parts += list(zip(mine.layers[: trunk.depth], theirs.layers[: trunk.depth], strict=True))
    for one, other in parts:
        for first, second in zip(one.parameters(), other.parameters(), strict=True):
            if first.shape != second.shape or not torch.equal(first.to(second), second):
                return False
    return True


def check_reads(judge: Any, texts: Any, *, name: str) -> None:
    """Refuse a judge that would read other tokens than the policy writes.

    Args:
        judge: a reward model with its `texts`.
        texts: the policy's.
        name: of the judge, as the user gave it.

    Raises:
        Refusal: where tokenizer or template differ.
    """
    if judge.texts.digest != texts.digest:
        raise Refusal(
            f"{name} has another tokenizer or chat template than the model, so a critic cannot begin from it; take "
            "--critic-from policy."
        )
