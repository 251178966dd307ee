"""A reward that is a table: the scores of a finite world, listed once and looked up from then on."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from killick.types import Rollout


@dataclass(frozen=True)
class TabularReward:
    """A `Reward` of one-token responses; like a `TabularPolicy` it takes the last prompt token for the row.

    Args:
        scores: of every answer to every prompt, in the unit of whatever scored them.
    """

    scores: Float[Tensor, "prompt answer"]

    def __call__(self, rollout: Rollout) -> Float[Tensor, " batch"]:
        """The entry of each response."""
        return self.scores[rollout.prompts[:, -1], rollout.responses[:, 0]]
