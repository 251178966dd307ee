"""What a label would tell: how much members of an ensemble disagree, and information about linear weights."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def disagreement(margins: Float[Tensor, "member candidate"]) -> Float[Tensor, " candidate"]:
    """Variance over members of the probability that the first of a pair is preferred.

    Args:
        margins: what each member scores the first above the second.

    Source: Christiano et al. 2017, arXiv 1706.03741, section 2.2.4.
    """
    return torch.sigmoid(margins).var(0, correction=0)


def precision(
    differences: Float[Tensor, "label feature"], margins: Float[Tensor, " label"], *, prior: float
) -> Float[Tensor, "feature feature"]:
    """Fisher information of Bradley-Terry labels about linear weights, with that of a normal prior N(0, 1 / prior)."""
    chance = torch.sigmoid(margins)
    told = (differences * (chance * (1 - chance))[:, None]).T @ differences
    return told + prior * torch.eye(differences.shape[1], dtype=told.dtype, device=told.device)


def most_informative(
    differences: Float[Tensor, "candidate feature"], margins: Float[Tensor, " candidate"], *,
    known: Float[Tensor, "feature feature"], count: int,
) -> Int[Tensor, " count"]:  # fmt: skip
    """Candidates that together tell most about linear weights, taken one by one.

    The gain of a label is log(1 + p (1 - p) x^T H^-1 x), x the difference of the pair's features, p the probability of
    its first and H all that is known; after each pick H grows by p (1 - p) x x^T, whatever the label will be, so that
    the next one asks about something else. This is the greedy choice of a D-optimal batch.

    Args:
        differences: of the features of each candidate's two responses.
        margins: what the model scores the first above the second.
        known: H, as `precision` gives it.
        count: how many to pick.

    Source: Houlsby et al. 2011, arXiv 1112.5745 (information gain); Settles 2009 (Fisher information); the update:
        Sherman and Morrison 1950.
    """
    chance = torch.sigmoid(margins)
    scaled = differences * (chance * (1 - chance)).sqrt()[:, None]
    spread, picked = torch.linalg.inv(known), list[Tensor]()
    left = torch.ones(len(scaled), dtype=torch.bool, device=scaled.device)
    for _ in range(count):
        gain = torch.einsum("ci,ij,cj->c", scaled, spread, scaled).masked_fill(~left, -torch.inf)
        best = gain.argmax()
        picked.append(best)
        left[best] = False
        toward = spread @ scaled[best]
        spread = spread - toward[:, None] * toward / (1 + gain[best])
    return torch.stack(picked) if picked else torch.zeros(0, dtype=torch.long, device=scaled.device)
