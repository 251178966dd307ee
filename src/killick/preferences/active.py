"""What to ask people next: which of many comparisons are worth a label.

Each strategy gives row numbers into the candidates, most wanted first. None sees a label of the candidates.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from killick.ops.information import disagreement, most_informative, precision
from killick.types import Refusal


def check_count(count: int, candidates: int) -> None:
    """Refuse to ask for more than there is.

    Raises:
        Refusal: unless 1 <= count <= candidates.
    """
    if not 1 <= count <= candidates:
        raise Refusal(f"Asking needs a count of 1 to the {candidates} candidates, not {count}.")


def ask_random(candidates: int, *, count: int, generator: torch.Generator) -> Int[Tensor, " count"]:
    """Any of them, each with the same chance.

    Raises:
        Refusal: at fewer candidates than asked for.
    """
    check_count(count, candidates)
    return torch.randperm(candidates, generator=generator, device=generator.device)[:count]


def ask_disagreement(
    first: Float[Tensor, "member candidate"], second: Float[Tensor, "member candidate"], *, count: int
) -> Int[Tensor, " count"]:
    """Those about which the members of an ensemble disagree most.

    Args:
        first: each member's score of each candidate's first response.
        second: of its second.
        count: how many.

    Raises:
        Refusal: at fewer than two members, or fewer candidates than asked for.
    """
    if len(first) < 2:
        raise Refusal(f"An ensemble needs at least 2 members to disagree, not {len(first)}.")
    check_count(count, first.shape[1])
    return disagreement(first - second).argsort(descending=True, stable=True)[:count]


def ask_information(
    candidates: Float[Tensor, "candidate feature"], weights: Float[Tensor, " feature"], *,
    labelled: Float[Tensor, "label feature"], count: int, prior: float = 1.0,
) -> Int[Tensor, " count"]:  # fmt: skip
    """Those whose labels together tell most about the weights of the reward model's last layer.

    Args:
        candidates: features of each candidate's first response less those of its second.
        weights: of the last layer as it stands: the margin is features times weights.
        labelled: the same differences for the pairs that have a label.
        count: how many.
        prior: 1 / variance that the weights are believed to have before any label.

    Raises:
        Refusal: at fewer candidates than asked for, or a prior that is no positive number.
    """
    check_count(count, len(candidates))
    if not 0 < prior < float("inf"):
        raise Refusal(f"prior is 1 / variance of the weights, a positive number, not {prior:g}.")
    known = precision(labelled, labelled @ weights, prior=prior)
    return most_informative(candidates, candidates @ weights, known=known, count=count)
