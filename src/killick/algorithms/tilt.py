"""What every leashed optimiser approaches: reference x exp(reward / beta), exact where answers can be listed."""

import torch
from jaxtyping import Float
from torch import Tensor

from killick.types import Refusal, check_finite


def tilt(
    reference: Float[Tensor, "*prompt answer"], reward: Float[Tensor, "*prompt answer"], *, beta: float
) -> Float[Tensor, "*prompt answer"]:
    """Log-probs of the policy that maximises E[reward] - beta KL(policy || reference), nats.

    At beta 0 it is the best answer that the reference can give, ties shared equally.

    Args:
        reference: log-probs over all answers; minus infinity where it never answers so.
        reward: score units, finite wherever the reference is.
        beta: reward units per nat.

    Raises:
        Refusal: at a beta below 0, infinite or NaN.
        NonFinite: where a score of a possible answer is no finite number.

    Source: Korbak et al. 2022, arXiv 2205.11275; Rafailov et al. 2023, arXiv 2305.18290, equation 4.
    """
    if not 0 <= beta < float("inf"):
        raise Refusal(f"beta must be 0 or more and finite, not {beta:g}.")
    possible = reference > -torch.inf
    check_finite("scores are", reward.where(possible, 0.0))
    reward = reward.where(possible, -torch.inf)
    best = reward.max(-1, keepdim=True).values
    if beta == 0:
        return torch.zeros_like(reward).where(reward == best, -torch.inf).log_softmax(-1)
    # The best reward is taken off first: it cancels, and nothing is divided up to overflow.
    return (reference + (reward - best) / beta).log_softmax(-1)


def log_partition(
    reference: Float[Tensor, "*prompt answer"], reward: Float[Tensor, "*prompt answer"], *, beta: float
) -> Float[Tensor, "*prompt"]:
    """The log of Z = E_reference[exp(reward / beta)], nats: the optimum's E[reward] - beta KL is beta log Z exactly.

    Raises:
        Refusal: unless beta is positive and finite.
    """
    if not 0 < beta < float("inf"):
        raise Refusal(f"log Z needs a positive beta, not {beta:g}.")
    return (reference + reward / beta).logsumexp(-1)
