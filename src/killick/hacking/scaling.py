"""Gold against distance: the two forms of over-optimisation, fitted by least squares, with their peaks.

With d = sqrt(KL) from the reference, in sqrt(nats), and gold counted from its value at the reference:

    rl           gold = d (alpha - b log d)
    best-of-n    gold = d (alpha - b d)

Both are linear in alpha and b. Where the coefficients come from one training run, its points are not independent, so
an interval over points is too narrow; one over seeds is honest.

Source: Gao, Schulman and Hilton 2022, arXiv 2210.10760.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from killick.types import Refusal

Form = Literal["rl", "best-of-n"]
LEAST = 3
"""Different distances that two coefficients and a misfit need."""


@dataclass(frozen=True)
class Scaling:
    """A fitted form.

    Args:
        form: which of the two.
        alpha: gold units per sqrt(nat), the first gain.
        b: how fast the gain is lost: gold units per sqrt(nat) for `rl`, per nat for `best-of-n`.
        draws: (alpha, b) of each resample.
        miss: root of the mean squared residual, gold units.
    """

    form: Form
    alpha: float
    b: float
    draws: Float[Tensor, "draw 2"]
    miss: float

    def gold(self, distance: Float[Tensor, " point"]) -> Float[Tensor, " point"]:
        """Gold gained at these distances, in gold units; 0 at distance 0."""
        return terms(distance, self.form) @ torch.tensor([self.alpha, self.b], dtype=torch.float64)

    def band(
        self, distance: Float[Tensor, " point"], *, level: float = 0.95
    ) -> tuple[Float[Tensor, " point"], Float[Tensor, " point"]]:
        """Where `level` of the resampled curves lie, point by point."""
        low, high = spread(terms(distance, self.form) @ self.draws.T, level)
        return low, high

    def intervals(self, *, level: float = 0.95) -> tuple[tuple[float, float], tuple[float, float]]:
        """Percentile intervals of alpha and of b."""
        low, high = spread(self.draws.T, level)
        return (float(low[0]), float(high[0])), (float(low[1]), float(high[1]))

    @property
    def peak(self) -> tuple[float, float] | None:
        """Distance and height where gold is largest: exp(alpha/b - 1) with b d*, or alpha/(2b) with alpha^2/(4b).

        None where the curve has no peak at a finite distance above 0.
        """
        if self.b <= 0 or (self.form == "best-of-n" and self.alpha <= 0):
            return None
        if self.form == "best-of-n":
            return self.alpha / (2 * self.b), self.alpha**2 / (4 * self.b)
        distance = float(torch.tensor(self.alpha / self.b - 1, dtype=torch.float64).exp())
        return (distance, self.b * distance) if 0 < distance < float("inf") else None


def fit_scaling(
    distance: Float[Tensor, " point"],
    gold: Float[Tensor, " point"],
    *,
    generator: torch.Generator,
    form: Form = "rl",
    group: Int[Tensor, " point"] | None = None,
    draws: int = 1000,
) -> Scaling:
    """Fit one form by least squares, and again on resamples (Efron 1979).

    Args:
        distance: sqrt(KL), sqrt(nats). Points at 0 are left out: they carry no weight, and log d has no value there.
        gold: gold units above its value at the reference.
        generator: drawn from for the resamples.
        form: `rl` or `best-of-n`.
        group: points with one number (a seed) are drawn together; None draws each point by itself.
        draws: resamples. One that holds too few distances to decide both coefficients is not counted.

    Raises:
        Refusal: at fewer than three different distances above 0.
    """
    kept = distance > 0
    distance, gold = distance[kept].double(), gold[kept].double()
    different = len(distance.unique())
    if different < LEAST:
        raise Refusal(
            f"A fit of gold against distance needs {LEAST} different distances above 0, and {different} were given; "
            "run more steps, or let the policy go further."
        )
    group = torch.arange(len(distance)) if group is None else group[kept].unique(return_inverse=True)[1]
    features, count = terms(distance, form), int(group.max()) + 1
    picks = torch.randint(count, (draws, count), generator=generator)
    times = torch.zeros(draws, count, dtype=torch.float64).scatter_add_(1, picks, torch.ones(draws, count).double())
    found = solve(features, gold, weights=times[:, group])
    best = solve(features, gold, weights=torch.ones(1, len(gold), dtype=torch.float64))[0]
    miss = (features @ best - gold).square().mean().sqrt()
    return Scaling(form, float(best[0]), float(best[1]), found, float(miss))


def terms(distance: Float[Tensor, " point"], form: Form) -> Float[Tensor, "point 2"]:
    """What alpha and b multiply, in float64; the log form is 0 at distance 0, its limit."""
    distance = distance.double()
    bend = torch.special.xlogy(distance, distance) if form == "rl" else distance.square()
    return torch.stack((distance, -bend), 1)


def solve(
    features: Float[Tensor, "point 2"], gold: Float[Tensor, " point"], *, weights: Float[Tensor, "draw point"]
) -> Float[Tensor, "kept 2"]:
    """Weighted least squares, one row for each row of weights whose equations have one answer."""
    gram = torch.einsum("dp,pi,pj->dij", weights, features, features)
    right = torch.einsum("dp,pi,p->di", weights, features, gold)
    size = gram.diagonal(dim1=1, dim2=2).sum(1)
    decided = torch.linalg.det(gram) > 1e-12 * size.square()
    return torch.linalg.solve(gram[decided], right[decided])


def spread(values: Float[Tensor, "point draw"], level: float) -> Float[Tensor, "2 point"]:
    """The lower and upper quantile that leave `level` between them."""
    ends = torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=torch.float64)
    return values.quantile(ends, dim=1)
