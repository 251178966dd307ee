"""KL between policy and reference, in nats: exact where the distribution is at hand, and three sampled estimators.

Samples come from the policy; d = log policy - log reference at the sampled token.
Source: Schulman 2020, "Approximating KL Divergence"; as losses: Tang and Munos 2025, arXiv 2506.09477.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

LOG_RATIO_LIMIT = 20.0
"""Log-ratios beyond this are bounded before exp, so value and gradient stay finite (O-25, O-30); callers count them."""


def bound(log_ratio: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The log-ratio within +-20, with zero gradient outside."""
    return log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


def count_bounded(log_ratio: Float[Tensor, "*shape"], mask: Bool[Tensor, "*shape"]) -> Tensor:
    """How many real entries `bound` changes: whoever bounds also logs this."""
    return ((log_ratio.abs() > LOG_RATIO_LIMIT) & mask).sum()


def k1(policy: Float[Tensor, "*shape"], reference: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """d, nats per token: unbiased, signed (a negative sample is no fault), what the reward charges.

    As a loss its expected gradient is zero: never use it as one.
    """
    return policy - reference


def k2(policy: Float[Tensor, "*shape"], reference: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """d^2 / 2, nats per token: biased as a value; as a loss it has the gradient of KL(policy || reference)."""
    return (policy - reference).square() / 2


def k3(policy: Float[Tensor, "*shape"], reference: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """exp(-d) - 1 + d, nats per token: unbiased and never negative, d bounded to +-20 (count it: `count_bounded`).

    As a loss its expected gradient is that of KL(reference || policy), the other direction.
    """
    d = bound(policy - reference)
    return torch.expm1(-d) + d


def exact_kl(
    policy: Float[Tensor, "*shape vocab"], reference: Float[Tensor, "*shape vocab"]
) -> Float[Tensor, "*shape"]:
    """KL(policy || reference) over the whole vocabulary, nats; a token that the policy never writes adds 0.

    Args:
        policy: log-probs.
        reference: log-probs; where it cannot follow the policy the KL is infinite, which is right.
    """
    possible = policy.exp() != 0  # an underflowed token cannot happen either; NaN stays in sight
    # Both operands are made harmless before they are multiplied, so that no 0 * inf reaches the gradient.
    p = torch.where(possible, policy, 0.0)
    difference = torch.where(possible, p - torch.where(possible, reference, 0.0), 0.0)
    return (torch.where(possible, p.exp(), 0.0) * difference).sum(-1)


def best_of_n_bound(n: int) -> float:
    """The value log n - (n - 1) / n, nats: an upper bound of KL(best-of-n || reference), reached only without ties.

    Source: Beirami et al. 2024, arXiv 2401.01879; the exact law of a finite world is in algorithms/best_of_n.py.
    """
    return math.log(n) - (n - 1) / n
