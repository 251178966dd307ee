"""Best-of-n: draw n answers, keep the best by score. The exact law in a finite world, the curve from a pool."""

import torch
from jaxtyping import Float
from torch import Tensor

from killick.types import Refusal, check_finite


def exact_law(
    reference: Float[Tensor, "*prompt answer"], scores: Float[Tensor, "*prompt answer"], *, n: int
) -> Float[Tensor, "*prompt answer"]:
    """Probability that each answer is kept: F(y)^n - F(y-)^n, shared among answers of equal score by their probability.

    F is the reference's distribution function of the score. The KL of this law to the reference is at most
    log n - (n - 1)/n (`ops.kl.best_of_n_bound`), with equality only without ties.

    Args:
        reference: probabilities, summing to 1 along the last axis.
        scores: what the choice is made by.
        n: answers drawn.

    Raises:
        Refusal: at n below 1.

    Source: Beirami et al. 2024, arXiv 2401.01879.
    """
    if n < 1:
        raise Refusal(f"Best-of-n needs n of at least 1, not {n}.")
    p = reference.double()
    pair = (*scores.shape, scores.shape[-1])
    mine, other = scores[..., :, None].expand(pair), scores[..., None, :].expand(pair)
    mass = p[..., None, :].expand(pair)
    below = torch.where(other < mine, mass, 0.0).sum(-1)
    tied = torch.where(other == mine, mass, 0.0).sum(-1)
    kept = (below + tied) ** n - below**n
    return torch.where(p > 0, kept * p / tied.clamp(min=torch.finfo(p.dtype).tiny), 0.0)


def pool_weights(size: int, n: int) -> Float[Tensor, " rank"]:
    """Weight of each sample of a pool, lowest score first: C(rank - 1, n - 1) / C(size, n), by log-gamma, in float64.

    The weighted mean is the unbiased estimate of best-of-n from `size` samples: their mean at n = 1, their maximum at
    n = size.

    Raises:
        Refusal: unless 1 <= n <= size.

    Source: Nakano et al. 2021, arXiv 2112.09332, appendix I.
    """
    if not 1 <= n <= size:
        raise Refusal(f"Best-of-n from a pool of {size} needs n between 1 and {size}, not {n}.")
    below = torch.arange(size, dtype=torch.float64)
    total, take = torch.tensor(size, dtype=torch.float64), torch.tensor(n, dtype=torch.float64)
    ways = torch.lgamma(below + 1) - torch.lgamma((below - n + 2).clamp(min=1)) - torch.lgamma(take)
    every = torch.lgamma(total + 1) - torch.lgamma(total - n + 1) - torch.lgamma(take + 1)
    return torch.where(below >= n - 1, (ways - every).exp(), 0.0)


def best_of_n(
    scores: Float[Tensor, "prompt pool"], values: Float[Tensor, "prompt pool"], *, n: int
) -> Float[Tensor, " prompt"]:
    """Expected value of the answer that best-of-n keeps, for each prompt, unbiased over one pool.

    Answers of equal score share their weights, since the choice between them is a coin flip.

    Args:
        scores: what the choice is made by (the proxy).
        values: what is read off the kept answer (the proxy again, or gold).
        n: answers drawn, at most the pool.
    """
    check_finite("scores of the pool are", scores)
    weights, scores, values = pool_weights(scores.shape[1], n), scores.cpu(), values.cpu()
    out = []
    for row, value in zip(scores, values, strict=True):
        ordered = row.sort().values
        _, place = ordered.unique(return_inverse=True)
        groups = int(place.max()) + 1
        mean_weight = torch.zeros(groups, dtype=weights.dtype).scatter_reduce(
            0, place, weights, "mean", include_self=False
        )
        level = torch.searchsorted(ordered.unique(), row)
        out.append((mean_weight[level] * value.double()).sum())
    return torch.stack(out)
