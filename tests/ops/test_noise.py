"""The likelihood of kappa: probabilities that sum to one, plain integration, finite differences."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from killick.ops.noise import Choices, ceiling_of, differences, marginal, modes, most_likely, normal_nodes

KAPPA = torch.tensor([0.7, 2.0, -1.5], dtype=torch.double)


def pairs(labels: list[list[tuple[int, int]]]) -> Choices:
    """One pair of responses for each list of (annotator, chosen slot)."""
    rows = torch.tensor([(block, who, slot) for block, mine in enumerate(labels) for who, slot in mine])
    return Choices(len(labels), rows, torch.ones(len(rows), 2, dtype=torch.bool), torch.ones(len(rows)).double())


def ranking(orders: list[tuple[int, tuple[int, ...]]], slots: int) -> Choices:
    """One block that each of these annotators ranks, best first."""
    rows, among = [], []
    for who, order in orders:
        for place, chosen in enumerate(order[:-1]):
            rows.append((0, who, chosen))
            among.append([slot in order[place:] for slot in range(slots)])
    return Choices(1, torch.tensor(rows), torch.tensor(among), torch.ones(len(rows)).double())


def test_a_single_label_says_nothing_about_noise() -> None:
    """By symmetry one of two is chosen with probability 1/2 and one order of three with 1/6, at any kappa."""
    for kappa in (KAPPA, 3 * KAPPA):
        value, slope, information = marginal(kappa, pairs([[(1, 0)]]))
        assert float(value) == pytest.approx(math.log(1 / 2), abs=1e-4)
        assert float(slope.abs().max()) < 1e-3
        assert float(information.abs().max()) < 1e-3
    assert float(marginal(KAPPA, ranking([(0, (2, 0, 1))], 3))[0]) == pytest.approx(math.log(1 / 6), abs=1e-6)


def test_the_chances_of_all_that_three_annotators_can_say_sum_to_one() -> None:
    """Eight answers to one pair; 36 pairs of rankings of three."""
    total = sum(float(marginal(KAPPA, pairs([list(enumerate(said))]))[0].exp()) for said in product((0, 1), repeat=3))
    assert total == pytest.approx(1, abs=1e-5)
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    two = [ranking(list(enumerate(said)), 3) for said in product(orders, repeat=2)]
    assert sum(float(marginal(KAPPA, each)[0].exp()) for each in two) == pytest.approx(1, abs=1e-4)


def test_pairs_agree_with_plain_integration() -> None:
    """The difference of two N(0, 1) strengths is N(0, 2): the same integral on 20,001 even points."""
    labels = [[(0, 0), (1, 0), (2, 1)], [(0, 1), (1, 0)], [(1, 1), (1, 1), (1, 1), (1, 1)]]
    points = torch.linspace(-12, 12, 20_001, dtype=torch.double)
    density = (-points.square() / 4).exp() / math.sqrt(4 * math.pi) * (points[1] - points[0])
    expected = 0.0
    for mine in labels:
        chance = torch.stack([torch.sigmoid((1 - 2 * slot) * KAPPA[who] * points) for who, slot in mine]).prod(0)
        expected += math.log(float((chance * density).sum()))
    assert float(marginal(KAPPA, pairs(labels))[0]) == pytest.approx(expected, abs=1e-4)


def test_slope_and_information_are_the_derivatives() -> None:
    """Central differences of the likelihood, on pairs and on rankings of three."""
    mixed = [pairs([[(0, 0), (1, 0), (2, 1)], [(0, 1), (1, 0)]]), ranking([(0, (0, 1, 2)), (1, (0, 2, 1))], 3)]
    for choices in mixed:
        _, slope, information = marginal(KAPPA, choices)
        step = 1e-4 * torch.eye(3, dtype=torch.double)
        up, down = ([marginal(KAPPA + sign * each, choices) for each in step] for sign in (1, -1))
        measured = torch.stack([(a[0] - b[0]) / 2e-4 for a, b in zip(up, down, strict=True)])
        bent = torch.stack([(b[1] - a[1]) / 2e-4 for a, b in zip(up, down, strict=True)])
        assert_close(slope, measured, atol=2e-3, rtol=0)
        assert_close(information, bent, atol=5e-3, rtol=0)


def test_the_mode_is_where_the_slope_ends() -> None:
    """Five labels for the first of a pair at kappa 1: d / sqrt(2) = u solves u = 5 sqrt(2) sigma(-sqrt(2) u)."""
    free, _ = modes(torch.ones(1, dtype=torch.double), choices=pairs([[(0, 0)] * 5]))
    u = abs(float(free[0, 0]))
    assert u == pytest.approx(5 * math.sqrt(2) / (1 + math.exp(math.sqrt(2) * u)), abs=1e-9)


@pytest.mark.parametrize("dimensions", [1, 2, 4, 6])
def test_nodes_have_the_moments_of_a_normal_distribution(dimensions: int) -> None:
    """Weights sum to 1, mean 0, unit covariance (to 5 % for the sequence that serves beyond four)."""
    nodes, logs = normal_nodes(dimensions)
    weights = logs.exp()
    assert float(weights.sum()) == pytest.approx(1)
    assert_close(weights @ nodes, torch.zeros(dimensions).double(), atol=1e-9, rtol=0)
    covariance = torch.einsum("n,ni,nj->ij", weights, nodes, nodes)
    assert_close(covariance, torch.eye(dimensions).double(), atol=1e-9 if dimensions <= 4 else 0.05, rtol=0)


def test_differences_leave_out_what_moves_all_alike() -> None:
    """Orthonormal, and no direction has a sum."""
    basis = differences(5)
    assert_close(basis.T @ basis, torch.eye(4).double())
    assert float(basis.sum(0).abs().max()) < 1e-12


def test_large_blocks_agree_with_small_ones() -> None:
    """A pair among six responses of which four were never seen has the likelihood of the pair alone (Sobol: 2 %)."""
    alone = pairs([[(0, 0), (1, 0), (1, 1)]])
    among = torch.tensor([True, True, False, False, False, False]).expand(3, -1)
    value = marginal(KAPPA, Choices(1, alone.rows, among, alone.weight))[0]
    assert float(value) == pytest.approx(float(marginal(KAPPA, alone)[0]), abs=0.02)


def test_who_stands_against_the_others_has_a_negative_kappa() -> None:
    """Three who say the same 30 times and one who always says the contrary."""
    kappa, _ = most_likely(4, [pairs([[(who, int(who == 3)) for who in range(4)] for _ in range(30)])])
    assert bool((kappa[:3] > 1).all())
    assert float(kappa[3]) < -1


def test_the_ceiling_of_coins_is_one_half_and_of_the_sure_one() -> None:
    """At kappa 0 and 1,000; an annotator who is always contrary is as foreseeable; kappa 1 by 400,000 draws."""
    none, sure, contrary, one = ceiling_of(torch.tensor([0.0, 1000, -1000, 1], dtype=torch.double)).tolist()
    assert none == pytest.approx(0.5)
    assert sure == contrary == pytest.approx(1, abs=2e-3)
    strengths = np.random.default_rng(0).normal(size=(2, 400_000))
    assert one == pytest.approx((1 / (1 + np.exp(-np.abs(strengths[0] - strengths[1])))).mean(), abs=1e-3)
