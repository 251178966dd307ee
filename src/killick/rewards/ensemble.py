"""Several rewards as one: their minimum, which trusts a response as far as the most doubtful member, or their mean."""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from killick.rewards.fit import Standardised
from killick.types import Refusal, Rollout


class Ensemble(nn.Module):
    """A `Reward` over members that are centred and scaled on one reference's responses.

    Bradley-Terry fixes scores up to a constant, so raw members have no common zero and their minimum would be the
    member with the lowest one, whatever the response. The result is on no scale of its own: `standardise` it again.

    Args:
        members: each from `standardise` on the same responses.
        pick: "minimum" or "mean" of their scores.

    Raises:
        Refusal: at fewer than two members.

    Source: Coste et al. 2023, arXiv 2310.02743 (worst-case and mean optimisation).
    """

    def __init__(self, members: Sequence[Standardised], pick: Literal["minimum", "mean"] = "minimum"):
        super().__init__()
        if len(members) < 2:
            raise Refusal(f"An ensemble needs at least 2 members, not {len(members)}; fit some more.")
        self.members, self.pick = nn.ModuleList(members), pick

    def each(self, rollout: Rollout) -> Float[Tensor, "member batch"]:
        """What every member says, in deviations of the reference."""
        return torch.stack([member(rollout) for member in self.members])

    def forward(self, rollout: Rollout) -> Float[Tensor, " batch"]:
        """One score per response."""
        scores = self.each(rollout)
        return scores.amin(0) if self.pick == "minimum" else scores.mean(0)
