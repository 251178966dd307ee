"""How noisy each annotator is: the likelihood of choices, with the unknown strengths of the responses integrated out.

Annotator a picks one of several responses with probability softmax(kappa_a s), which for two is Bradley-Terry's
sigma(kappa_a (s_i - s_j)) and for a whole ranking, choice by choice, Plackett-Luce. Kappa and the strengths share a
scale and a sign, and most responses are seen a few times only, so that the strengths cannot be estimated one by one:
kappa would come out too large, and infinite where all agree. They are taken for draws from N(0, 1). This sets the
scale, and the likelihood of kappa is what remains when they are integrated out.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

PULL = 10.0
"""A weak hold on kappa, N(0, 10 squared): it moves no kappa that the labels say something of, and keeps that of an
annotator who was never seen to err finite."""


class Choices(NamedTuple):
    """Choices among responses. A block is a set of responses that were compared with each other, each in a slot.

    Args:
        blocks: how many there are, all of one size.
        rows: one for each choice: its block, the annotator, the slot that was chosen.
        among: the slots that there were to choose from.
        weight: how often it was made.
    """

    blocks: int
    rows: Int[Tensor, "row 3"]
    among: Bool[Tensor, "row slot"]
    weight: Float[Tensor, " row"]


def moments(
    kappa: Float[Tensor, " annotator"], strengths: Float[Tensor, "block slot node"], *, choices: Choices
) -> tuple[
    Float[Tensor, "block node"], Float[Tensor, "block annotator node"], Float[Tensor, "block annotator node"]
]:  # fmt: skip
    """Log-likelihood of the choices, its slope in each kappa, and minus its curvature, at given strengths."""
    block, who, chosen = choices.rows.T
    shape = (len(strengths), len(kappa), strengths.shape[2])
    seen, scale, row = strengths[block], choices.weight[:, None], torch.arange(len(block))
    logp = (kappa[who, None, None] * seen).masked_fill(~choices.among[..., None], -torch.inf).log_softmax(1)
    chance = logp.exp()
    mean = (chance * seen).sum(1)
    spread = (chance * seen.square()).sum(1) - mean.square()
    likelihood = strengths.new_zeros(shape[0], shape[2]).index_add(0, block, scale * logp[row, chosen])
    place, empty = block * len(kappa) + who, strengths.new_zeros(shape[0] * shape[1], shape[2])
    slope = empty.index_add(0, place, scale * (seen[row, chosen] - mean)).view(shape)
    return likelihood, slope, empty.index_add(0, place, scale * spread).view(shape)


def modes(
    kappa: Float[Tensor, " annotator"], *, choices: Choices, steps: int = 12
) -> tuple[Float[Tensor, "block free"], Float[Tensor, "block free free"]]:
    """The most likely strengths of each block along `differences`, and minus the curvature there (Newton's method)."""
    block, who, chosen = choices.rows.T
    basis = differences(choices.among.shape[1])
    eye, pull, scale = torch.eye(basis.shape[1], dtype=kappa.dtype), kappa[who, None], choices.weight[:, None]
    free, bend = kappa.new_zeros(choices.blocks, basis.shape[1]), eye.expand(choices.blocks, -1, -1)
    for _ in range(steps):
        chance = (pull * (free @ basis.T)[block]).masked_fill(~choices.among, -torch.inf).softmax(1)
        slope = scale * pull * (basis[chosen] - chance @ basis)
        apart = basis - (chance @ basis)[:, None]
        spread = torch.einsum("rs,rsi,rsj->rij", scale * pull.square() * chance, apart, apart)
        bend = eye.repeat(choices.blocks, 1, 1).index_add(0, block, spread)
        free = free + torch.linalg.solve(bend, (-free).index_add(0, block, slope))
    return free, bend


def differences(slots: int) -> Float[Tensor, "slot free"]:
    """Directions in which strengths can differ: an orthonormal basis without the one that moves all of them alike."""
    whole = torch.eye(slots, dtype=torch.double)
    whole[:, 0] = 1
    return torch.linalg.qr(whole).Q[:, 1:]


def normal_nodes(dimensions: int) -> tuple[Float[Tensor, "node free"], Float[Tensor, " node"]]:
    """Points and log-weights that stand for a standard normal distribution.

    Up to four dimensions the grid of Gauss and Hermite, next to exact here; beyond, Sobol's sequence and its mirror
    image, which will do: where so many responses are compared with each other, what is known of them is all but normal.
    """
    each = {1: 41, 2: 13, 3: 7, 4: 5}.get(dimensions)
    if each is None:
        half = torch.special.ndtri(torch.quasirandom.SobolEngine(dimensions).draw(257, dtype=torch.double)[1:])
        return torch.cat((half, -half)), torch.full((2 * len(half),), -math.log(2 * len(half)), dtype=torch.double)
    points, weights = map(torch.from_numpy, np.polynomial.hermite_e.hermegauss(each))
    grid, shares = (
        torch.cartesian_prod(*[values] * dimensions).view(-1, dimensions)
        for values in (points, (weights / weights.sum()).log())
    )
    return grid, shares.sum(1)


def marginal(
    kappa: Float[Tensor, " annotator"], choices: Choices
) -> tuple[Float[Tensor, ""], Float[Tensor, " annotator"], Float[Tensor, "annotator annotator"]]:
    """Log-likelihood of kappa without the strengths, its slope, and minus its curvature (the observed information).

    The strengths are integrated out around their mode (adaptive quadrature: Naylor and Smith 1982).

    Source: Louis 1982 for slope and curvature.
    """
    centre, bend = modes(kappa, choices=choices)
    basis = differences(choices.among.shape[1])
    nodes, weights = normal_nodes(basis.shape[1])
    root = torch.linalg.cholesky(bend)
    offset = torch.linalg.solve_triangular(root.mT, nodes.T.expand(len(centre), -1, -1), upper=True)
    free = centre[..., None] + offset
    likelihood, slope, bend = moments(kappa, basis @ free, choices=choices)
    density = (nodes.T.square() - free.square()).sum(1) / 2 - root.diagonal(dim1=1, dim2=2).log().sum(1, keepdim=True)
    logs = likelihood + density + weights
    share = logs.softmax(1)
    mean = torch.einsum("bm,bam->ba", share, slope)
    spread = torch.einsum("bm,bam,bcm->ac", share, slope, slope) - mean.T @ mean
    return logs.logsumexp(1).sum(), mean.sum(0), torch.einsum("bm,bam->a", share, bend).diag() - spread


def most_likely(
    annotators: int, batches: Sequence[Choices], *, steps: int = 100
) -> tuple[Float[Tensor, " annotator"], Float[Tensor, "annotator annotator"]]:
    """The kappas of the largest likelihood under the weak hold, and the information of the labels about them there.

    The sign is that under which the kappas sum to more than 0: who stands against the others has a negative one.

    Args:
        annotators: how many.
        batches: the choices; blocks of one size stand together.
        steps: at most so many of Newton's.
    """
    kappa, hold = torch.ones(annotators, dtype=torch.double), PULL**-2
    for _ in range(steps):
        parts = [marginal(kappa, batch)[1:] for batch in batches]
        slope = sum((part[0] for part in parts), -hold * kappa)
        values, vectors = torch.linalg.eigh(
            sum((part[1] for part in parts), hold * torch.eye(annotators, dtype=kappa.dtype))
        )
        step = vectors @ ((vectors.T @ slope) / values.abs().clamp(min=hold))
        step = step / step.abs().max().clamp(min=1)
        kappa = kappa + step
        if step.abs().max() < 1e-4:
            break
    kappa = kappa if kappa.sum() >= 0 else -kappa
    return kappa, sum((marginal(kappa, batch)[2] for batch in batches), kappa.new_zeros(annotators, annotators))


def ceiling_of(kappa: Float[Tensor, " annotator"]) -> Float[Tensor, " annotator"]:
    """How often the better of two responses, strengths drawn from N(0, 1), is the one that an annotator prefers.

    No judge is right more often about this annotator's labels. An annotator who stands against the others is as
    predictable as one who stands with them.
    """
    points, weights = map(torch.from_numpy, np.polynomial.hermite_e.hermegauss(200))
    return (torch.sigmoid(math.sqrt(2) * kappa.abs()[:, None] * points.abs()) * weights).sum(1) / weights.sum()
