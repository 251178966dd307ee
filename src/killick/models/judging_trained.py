"""A reward model whose layers learn: the top ones over what a frozen trunk says of each text, or all of them.

Both score rows of one rollout, which is read from the same ids at every step; each row once, however many pairs it
stands in.
"""

from copy import deepcopy
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from killick.models.judging import PretrainedReward, batches, moved, narrow
from killick.models.layers import layer_of, normed, reach, run
from killick.models.trunk import Trunk
from killick.types import Rollout

KEPT = 2**30
"""Bytes of trunk states that are kept at most; where all rows would take more, they are computed at each step."""


class TopJudge(nn.Module):
    """Own copies of the top layers, the final norm and the head, over frozen layers below.

    Weights are kept in float32 and cast to the model's type where they are read.

    Args:
        judge: of the Llama layout; its weights are frozen and stay as they are until `put_back`.
        rollout: everything that is ever scored.
        train_layers: how many layers at the top learn.

    Raises:
        Refusal: where the layout is another, or there are not so many layers.
    """

    def __init__(self, judge: PretrainedReward, rollout: Rollout, *, train_layers: int):
        super().__init__()
        self.judge, self.rollout, self.device = [judge], rollout, judge.model.device
        self.trunk = Trunk(judge.model, train_layers)
        body = self.trunk.body
        self.layers = deepcopy(body.layers[self.trunk.depth :]).float().requires_grad_()
        self.norm = deepcopy(body.norm).float().requires_grad_()
        self.head = nn.Parameter(judge.model.score.weight.detach()[0].float().clone())
        self.below: list[Tensor] | None = None
        lengths = rollout.prompt_mask.sum(1) + rollout.lengths
        if int(lengths.sum()) * self.trunk.hidden * judge.model.dtype.itemsize <= KEPT:
            self.below = [torch.empty(0)] * len(rollout)
            for rows in batches(lengths.argsort(stable=True), lengths):
                self.keep(rows)

    def keep(self, rows: Int[Tensor, " some"]) -> None:
        """Remember what the trunk says of some rows."""
        ids, mask = self.tokens(rows)
        if self.below is not None:
            for row, states, real in zip(rows.tolist(), self.under(ids, mask), mask, strict=True):
                self.below[row] = states[real].clone()

    @torch.no_grad()
    def under(
        self, ids: Int[Tensor, "some time"], mask: Bool[Tensor, "some time"]
    ) -> Float[Tensor, "some time hidden"]:
        """What the trunk says."""
        return self.trunk.computed(ids, mask, self.trunk.depth)

    def tokens(self, rows: Int[Tensor, " some"]) -> tuple[Tensor, Tensor]:
        """Ids and mask of some rows, padded on the right alone: what is kept of a row goes into any batch."""
        part = narrow(self.rollout[rows])
        ids, mask = torch.cat((part.prompts, part.responses), 1), torch.cat((part.prompt_mask, part.mask), 1)
        order = (~mask).long().argsort(dim=1, stable=True)
        length = int(mask.sum(1).max())
        ids, mask = ids.gather(1, order)[:, :length], mask.gather(1, order)[:, :length]
        return ids.to(self.device), mask.to(self.device)

    def pooled(self, rows: Int[Tensor, " some"]) -> Float[Tensor, "some hidden"]:
        """The state after the last token of each row, with gradient."""
        ids, mask = self.tokens(rows)
        if self.below is None:
            x = self.under(ids, mask)
        else:
            x = nn.utils.rnn.pad_sequence([self.below[row] for row in rows.tolist()], batch_first=True)
        dtype, body = self.trunk.dtype, self.trunk.body
        where = reach(body.rotary_emb, dtype, mask=mask, new=ids.shape[1], seen=ids.shape[1])
        states = run(x.flatten(0, 1), [layer_of(layer, dtype=dtype) for layer in self.layers], where=where)
        last = states.view(*ids.shape, -1)[torch.arange(len(ids), device=self.device), mask.sum(1) - 1]
        return normed(last, self.norm.weight.to(dtype), eps=body.norm.variance_epsilon).float()

    def encode(self, rollout: Rollout) -> Int[Tensor, " batch"]:
        """The number of each row."""
        return torch.arange(len(rollout))

    def score(self, rows: Int[Tensor, " some"]) -> Float[Tensor, " some"]:
        """The head's number for each row, a row that comes twice being read once."""
        once, place = rows.unique(return_inverse=True)
        return (self.pooled(once) @ self.head).cpu()[place]

    def put_back(self) -> None:
        """Write what was learned into the model itself."""
        with torch.no_grad():
            body = self.trunk.body
            body.layers[self.trunk.depth :].load_state_dict(self.layers.state_dict())
            body.norm.load_state_dict(self.norm.state_dict())
            self.judge[0].model.score.weight.copy_(self.head[None])


class WholeJudge(nn.Module):
    """All weights of a reward model, whatever its layout.

    Args:
        judge: trained in place.
        rollout: everything that is ever scored.
    """

    def __init__(self, judge: PretrainedReward, rollout: Rollout):
        super().__init__()
        self.model: Any = judge.model.requires_grad_()
        self.judge, self.rollout, self.device = [judge], rollout, judge.model.device

    def encode(self, rollout: Rollout) -> Int[Tensor, " batch"]:
        """The number of each row."""
        return torch.arange(len(rollout))

    def pooled(self, rows: Int[Tensor, " some"]) -> Float[Tensor, "some hidden"]:
        """The state after the last token of each row, with gradient."""
        return self.judge[0].pooled(moved(narrow(self.rollout[rows]), self.device)).float()

    def score(self, rows: Int[Tensor, " some"]) -> Float[Tensor, " some"]:
        """The head's number for each row, a row that comes twice being read once."""
        once, place = rows.unique(return_inverse=True)
        return self.judge[0].score(self.pooled(once)).cpu()[place]

    def put_back(self) -> None:
        """Leave the model as it was learned, frozen."""
        self.model.requires_grad_(False)
