"""A linear head on frozen states: where its fit ends, how strong a decay to take, and members from resampled prompts.

The field's format for reward models gives the head no bias, so its zero cannot be set by one. Here the head learns only
in directions in which the mean of the training states is zero: its mean score on them is 0 whatever its weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from killick.ops.linear_head import newton
from killick.ops.losses import bradley_terry, group_weights
from killick.types import Preference, Refusal

L2S = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
"""Decays among which the validation part chooses, the strongest first."""
L2 = 0.1
"""The decay where nothing can choose (the one of the recipe that was tried on a real model)."""
FEWEST = 20
"""Pairs in the validation part below which it chooses nothing."""


@dataclass(frozen=True)
class Scale:
    """How states are read before a fit, from the states of the training responses.

    Args:
        deviation: of each feature; 1 where a feature never changes.
        mean: the direction (of length 1) of the mean of the scaled states, which the head does not see.
    """

    deviation: Float[Tensor, " feature"]
    mean: Float[Tensor, " feature"]

    @classmethod
    def of(cls, states: Float[Tensor, "row feature"]) -> "Scale":
        """From the states of distinct responses."""
        deviation = states.double().std(0, correction=0)
        deviation = torch.where(deviation > 1e-9, deviation, torch.ones_like(deviation))
        mean = (states.double() / deviation).mean(0)
        return cls(deviation, mean / mean.norm().clamp(min=1e-30))

    def read(self, states: Float[Tensor, "row feature"]) -> Float[Tensor, "row feature"]:
        """States as the fit sees them: scaled, and without their part along the mean."""
        scaled = states.double() / self.deviation
        return scaled - (scaled @ self.mean)[:, None] * self.mean

    def folded(self, weights: Float[Tensor, " feature"]) -> Float[Tensor, " feature"]:
        """The weights that give states as they are the score that `weights` give them read."""
        return (weights - (weights @ self.mean) * self.mean) / self.deviation


def optimum(
    read: Float[Tensor, "row feature"],
    pairs: Preference,
    *,
    l2: float,
    centre: float = 0.0,
    times: Int[Tensor, " group"] | None = None,
) -> Float[Tensor, " feature"]:
    """The weights at which the fit of a linear head ends; each ranking counts as one (O-06).

    Args:
        read: features of the responses, by row.
        pairs: rows of `read`; the rollout is not looked at.
        l2: see `FitConfig`; above 0.
        centre: see `FitConfig`.
        times: how often each group counts, numbered in the order of their numbers; once where None.

    Raises:
        Refusal: where there is no pair, or l2 is not above 0.
    """
    if not len(pairs):
        raise Refusal("There is no pair to fit: every ranking holds one response, or ties only.")
    if not 0 < l2 < float("inf"):
        raise Refusal(f"A linear head needs an l2 above 0, not {l2:g}: without one a fit to few pairs has no end.")
    groups, group = pairs.group.unique(return_inverse=True)
    weights = group_weights(group, torch.ones_like(groups) if times is None else times)
    chosen, rejected = read[pairs.chosen], read[pairs.rejected]
    return newton(
        chosen - rejected, chosen + rejected, weights=weights, label=pairs.label, margin=pairs.margin, l2=l2,
        centre=centre,
    )  # fmt: skip


def mean_loss(scores: Float[Tensor, " row"], pairs: Preference) -> float:
    """Bradley-Terry loss in nats per pair, rankings averaged first, without decay."""
    groups, group = pairs.group.unique(return_inverse=True)
    weights = group_weights(group, torch.ones_like(groups))
    each = bradley_terry(scores[pairs.chosen], scores[pairs.rejected], label=pairs.label, margin=pairs.margin)
    return float((weights * each).sum())


def choose_l2(
    read: Float[Tensor, "row feature"],
    pairs: Preference,
    *,
    validation: Preference,
    centre: float = 0.0,
    l2s: Sequence[float] = L2S,
) -> tuple[float, dict[float, float]]:
    """The decay whose fit has the least loss on pairs that it did not learn from, and the loss of each.

    The strongest counts where two are alike. With fewer than `FEWEST` validation pairs it is `L2`, and no loss is told.
    """
    if len(validation) < FEWEST:
        return L2, {}
    losses = {
        l2: mean_loss(read @ optimum(read, pairs, l2=l2, centre=centre), validation)
        for l2 in sorted(l2s, reverse=True)
    }  # fmt: skip
    return min(losses, key=losses.__getitem__), losses


def resampled(
    read: Float[Tensor, "row feature"], pairs: Preference, *, units: Int[Tensor, " pair"], count: int, l2: float,
    centre: float, generator: torch.Generator,
) -> Iterator[Float[Tensor, " feature"]]:  # fmt: skip
    """Heads, each fitted to prompts drawn with replacement, so that they differ where the data leave them free.

    Args:
        read: features of the responses, by row.
        pairs: rows of `read`.
        units: the prompt of each pair; all pairs of one come together.
        count: how many.
        l2: of every head.
        centre: of every head.
        generator: prompts are drawn from it.

    Source: Breiman 1996 (bagging).
    """
    _, unit = units.unique(return_inverse=True)
    groups, group = pairs.group.unique(return_inverse=True)
    prompts = int(unit.max()) + 1
    of_group = torch.zeros(len(groups), dtype=torch.long).scatter(0, group, unit)
    for _ in range(count):
        drawn = torch.randint(prompts, (prompts,), generator=generator).bincount(minlength=prompts)
        yield optimum(read, pairs, l2=l2, centre=centre, times=drawn[of_group])
