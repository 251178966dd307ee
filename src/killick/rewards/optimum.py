"""Where the fit of a linear head would end: the optimum of its loss by L-BFGS, as the check on a fit that stopped."""

import torch
from jaxtyping import Float
from torch import Tensor

from killick.ops.losses import bradley_terry
from killick.types import Refusal


def optimum(differences: Float[Tensor, "pair feature"], *, l2: float, steps: int = 1000) -> Float[Tensor, " feature"]:
    """Weights with the least mean Bradley-Terry loss + l2 (squared weights), in float64.

    A linear head depends on the differences of features only: its bias falls out. With l2 above 0 the optimum exists
    and is the only one. At 0 it exists unless some weights put every pair right (`separated`): then every larger
    multiple of them is better still, and what comes back is only far along that way.

    Args:
        differences: features of the chosen less those of the rejected.
        l2: what the loss adds for each unit of squared weight.
        steps: iterations at most.

    Raises:
        Refusal: at a negative or non-finite l2.

    Source: Liu and Nocedal 1989.
    """
    if not 0 <= l2 < float("inf"):
        raise Refusal(f"An optimum needs an l2 of 0 or more, not {l2:g}.")
    found = torch.zeros(differences.shape[1], dtype=torch.float64, device=differences.device, requires_grad=True)
    x = differences.double()
    search = torch.optim.LBFGS(
        [found], max_iter=steps, tolerance_grad=1e-10, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        search.zero_grad()
        right = x @ found
        total = bradley_terry(right, torch.zeros_like(right)).mean() + l2 * found.square().sum()
        total.backward()
        return total

    search.step(loss)
    return found.detach()


def separated(differences: Float[Tensor, "pair feature"], weights: Float[Tensor, " feature"]) -> bool:
    """Whether these weights put every pair right. One such set proves that the loss without l2 has no least value."""
    return bool((differences.double() @ weights.double() > 0).all())
