"""How a linear head without a bias says a shift: along the direction in which its inputs hardly differ."""

import torch
from jaxtyping import Float
from torch import Tensor


def constant_direction(states: Float[Tensor, "row hidden"], *, ridge: float = 1e-3) -> Float[Tensor, " hidden"]:
    """Weights d with mean(states d) = 1 and the least variance of states d: the linear map nearest to a constant 1.

    d = S^-1 m / (m' S^-1 m) for mean m and covariance S, which gets `ridge` times its mean diagonal, so that few rows
    do not promise more than they know. float64.

    Args:
        states: of the responses on which the shift is to be right.
        ridge: share of the mean variance that is added to each.
    """
    rows = states.double()
    mean = rows.mean(0)
    away = rows - mean
    spread = away.T @ away / len(rows)
    spread.diagonal().add_(ridge * spread.diagonal().mean().clamp(min=1e-12))
    solved = torch.linalg.solve(spread, mean)
    return solved / (mean @ solved)


def shifted(
    weight: Float[Tensor, " hidden"], states: Float[Tensor, "row hidden"], *, mean: float, deviation: float
) -> Float[Tensor, " hidden"]:
    """The weights whose scores are (score - mean) / deviation, as nearly as weights without a bias can say it. float64.

    Exactly right in the mean over `states`; each row is off by (mean / deviation)(1 - d . state).
    """
    return (weight.double() - mean * constant_direction(states)) / deviation
