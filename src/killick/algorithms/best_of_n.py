"""Best-of-n: draw n answers, keep the best by score. The exact law in a finite world, the curve from a pool."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from killick.ops.kl import best_of_n_bound
from killick.ops.stats import resampled_means
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
    below, tied = mass(p, scores)
    kept = (below + tied) ** n - below**n
    return torch.where(p > 0, kept * p / tied.clamp(min=torch.finfo(p.dtype).tiny), 0.0)


def win_rate(
    policy: Float[Tensor, " answer"], reference: Float[Tensor, " answer"], *, scores: Float[Tensor, " answer"]
) -> float:
    """Chance that an answer of the policy scores above one of the reference, a tie counting half; at most n/(n + 1)
    for best-of-n.

    Args:
        policy: probabilities.
        reference: probabilities.
        scores: of the answers.

    Source: Beirami et al. 2024, arXiv 2401.01879.
    """
    below, tied = mass(reference.double(), scores)
    return float(policy.double() @ (below + tied / 2))


def mass(
    p: Float[Tensor, "*prompt answer"], scores: Float[Tensor, "*prompt answer"]
) -> tuple[Float[Tensor, "*prompt answer"], Float[Tensor, "*prompt answer"]]:
    """For each answer, the probability of a lower score, and of its own."""
    ordered, order = scores.sort(-1)
    upto = torch.nn.functional.pad(p.gather(-1, order).cumsum(-1), (1, 0))
    lower, higher = (torch.searchsorted(ordered, scores.contiguous(), side=side) for side in ("left", "right"))
    below = upto.gather(-1, lower)
    return below, upto.gather(-1, higher) - below


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
    scores, values = scores.cpu().double().contiguous(), values.cpu().double()
    # Weight of the lowest so many, so that a tie's weight is a difference whatever its place in the order.
    upto = torch.cat([torch.zeros(1, dtype=torch.float64), pool_weights(scores.shape[1], n).cumsum(0)])
    ordered = scores.sort(1).values
    below, within = (torch.searchsorted(ordered, scores, side=side) for side in ("left", "right"))
    return ((upto[within] - upto[below]) / (within - below) * values).sum(1)


@dataclass(frozen=True)
class CurvePoint:
    """What best-of-n gives at one n; an interval is of the mean over prompts.

    Attributes:
        n: answers drawn for each prompt, of which the one with the best score is kept.
        kl_bound: nats, log n - (n - 1)/n: the KL from the reference is at most this.
        proxy: mean score of the kept answer, with its interval.
        gold: mean gold of the kept answer, with its interval; None where nobody knows gold.
    """

    n: int
    kl_bound: float
    proxy: float
    proxy_interval: tuple[float, float]
    gold: float | None = None
    gold_interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Curve:
    """Best-of-n along n, from one pool for each prompt.

    Attributes:
        points: by n, the smallest first.
        prompts: over how many the means are.
        top: the n whose mean gold is the highest; None where nobody knows gold.
        top_interval: where that n lies over the resamples: wide where gold is nearly level.
    """

    points: list[CurvePoint]
    prompts: int
    top: int | None = None
    top_interval: tuple[int, int] | None = None

    @property
    def level(self) -> bool:
        """Whether gold is the same at every n, rounding aside, so that no n is its best."""
        golds = [point.gold for point in self.points if point.gold is not None]
        return len(golds) > 1 and math.isclose(min(golds), max(golds), rel_tol=1e-9, abs_tol=1e-12)

    @property
    def turns(self) -> bool:
        """Whether gold surely falls beyond its highest point: more than one prompt, and no interval up to the end."""
        if self.top is None or self.top_interval is None or self.prompts == 1 or self.level:
            return False
        return max(self.top, self.top_interval[1]) < self.points[-1].n


def best_of_n_curve(
    scores: Sequence[Tensor] | Float[Tensor, "prompt pool"],
    golds: Sequence[Tensor] | Float[Tensor, "prompt pool"] | None = None,
    *,
    ns: Sequence[int],
    generator: torch.Generator,
    level: float = 0.95,
    draws: int = 2000,
) -> Curve:
    """Proxy and gold of best-of-n, unbiased from one pool for each prompt, with intervals over prompts.

    The intervals resample whole prompts, the same ones at every n and for both columns. They know nothing of how
    another pool for the same prompt would have come out.

    Args:
        scores: what the choice is made by; a row of its own for each prompt where pools differ in size.
        golds: what people want of the same answers, in the same order.
        ns: in any order; each at most the smallest pool.
        generator: draws the resamples.
        level: share of the resampled means inside an interval.
        draws: resamples.

    Raises:
        Refusal: without a prompt or an n, and at an n outside the pool of a prompt.
    """
    ns = sorted(set(ns))
    if not ns or not len(scores):
        raise Refusal(f"A best-of-n curve needs a prompt and an n, not {len(scores)} prompts and {len(ns)} of n.")
    proxy = along(scores, scores, ns=ns)
    gold = proxy[:, :0] if golds is None else along(scores, golds, ns=ns)
    means = resampled_means(torch.cat([proxy, gold], 1), generator, draws=draws)
    ends = means.new_tensor([(1 - level) / 2, (1 + level) / 2])
    intervals = list(zip(*means.quantile(ends, dim=0).tolist(), strict=True))
    points = [
        CurvePoint(n, best_of_n_bound(n), mean, interval)
        for n, mean, interval in zip(ns, proxy.mean(0).tolist(), intervals, strict=False)
    ]
    if golds is None:
        return Curve(points, len(proxy))
    told = zip(points, gold.mean(0).tolist(), intervals[len(ns) :], strict=True)
    points = [replace(point, gold=mean, gold_interval=interval) for point, mean, interval in told]
    tops = means[:, len(ns) :].argmax(1).double().quantile(ends, interpolation="nearest").long().tolist()
    return Curve(points, len(proxy), ns[int(gold.mean(0).argmax())], (ns[tops[0]], ns[tops[1]]))


def along(
    scores: Sequence[Tensor] | Float[Tensor, "prompt pool"],
    values: Sequence[Tensor] | Float[Tensor, "prompt pool"],
    *,
    ns: Sequence[int],
) -> Float[Tensor, "prompt n"]:
    """`best_of_n` at every n, pools of one size together."""
    sizes = torch.tensor([len(row) for row in scores])
    out = torch.empty(len(sizes), len(ns), dtype=torch.float64)
    for size in sizes.unique():
        rows = (sizes == size).nonzero()[:, 0].tolist()
        score, value = (torch.stack([table[row] for row in rows]) for table in (scores, values))
        out[rows] = torch.stack([best_of_n(score, value, n=n) for n in ns], 1)
    return out
