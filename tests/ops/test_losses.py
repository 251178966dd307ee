"""Losses of pairs and rankings: truth tables by hand, gradients by formula and by finite differences."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from killick.ops.losses import bradley_terry, centring, group_weights

modest = settings(max_examples=30, deadline=None, derandomize=True)
scores = st.lists(st.tuples(st.floats(-40, 40), st.floats(-40, 40)), min_size=1, max_size=8)
shares = st.floats(0, 1)


def double(numbers) -> Tensor:
    """A float64 tensor."""
    return torch.tensor(numbers, dtype=torch.float64)


def gap_loss(gap: float) -> float:
    """log(1 + exp(-gap)) in plain Python, stable on both sides."""
    return max(-gap, 0.0) + math.log1p(math.exp(-abs(gap)))


def grad(leaf: Tensor) -> Tensor:
    """What backward left on a leaf."""
    assert leaf.grad is not None
    return leaf.grad


# Bradley-Terry: closed forms


@pytest.mark.parametrize(
    ("gap", "loss", "gradient"),
    [
        (-1000.0, 1000.0, -1.0),
        (-100.0, 100.0, -1.0),
        (-2.0, 2.126928, -0.880797),  # 1 / (1 + e^-2)
        (0.0, 0.693147, -0.5),
        (2.0, 0.126928, -0.119203),  # 1 / (1 + e^2)
        (100.0, 0.0, 0.0),
        (1000.0, 0.0, 0.0),
    ],
)
def test_the_loss_and_the_gradient_of_a_gap(gap: float, loss: float, gradient: float) -> None:
    """O-01: softplus(-gap), and -(1 - sigma(gap)) on the chosen score, in float32 and never NaN."""
    chosen, rejected = torch.tensor([gap], requires_grad=True), torch.zeros(1, requires_grad=True)
    got = bradley_terry(chosen, rejected)
    got.sum().backward()
    assert got.item() == pytest.approx(loss, abs=1e-5)
    assert grad(chosen).item() == pytest.approx(gradient, abs=1e-5)
    assert grad(rejected).item() == pytest.approx(-gradient, abs=1e-5)


def test_a_pair_at_a_gap_of_minus_100_costs_100() -> None:
    """O-01: exactly, where the log of a sigmoid is infinite; the mean over (-100, 0, 2) is 33.606692."""
    losses = bradley_terry(torch.tensor([-100.0, 0.0, 2.0]), torch.zeros(3))
    assert losses[0].item() == 100.0
    assert losses.mean().item() == pytest.approx(33.606692, abs=1e-5)


def test_a_tie_costs_log_2() -> None:
    """Equal scores at any height: log 2."""
    level = double([-7.0, 0.0, 1e6])
    assert_close(bradley_terry(level, level), double([math.log(2)] * 3))


def test_half_precision_scores_are_raised_before_they_are_subtracted() -> None:
    """O-02: -60000 against +60000 in float16 costs exactly 120000, and the gradient is finite."""
    chosen = torch.tensor([-60000.0], dtype=torch.float16, requires_grad=True)
    loss = bradley_terry(chosen, torch.tensor([60000.0], dtype=torch.float16))
    loss.sum().backward()
    assert loss.dtype == torch.float32
    assert loss.item() == 120000.0
    assert grad(chosen).item() == -1.0
    assert bradley_terry(torch.zeros(1, dtype=torch.bfloat16), torch.zeros(1, dtype=torch.bfloat16)).item() == (
        pytest.approx(0.693147, abs=1e-6)
    )
    assert bradley_terry(double([0.0]), double([0.0])).dtype == torch.float64


def test_the_loss_is_least_at_the_log_odds_of_the_label_where_it_is_the_labels_entropy() -> None:
    """For a label p the minimum stands at log p/(1-p), with value H(p) and slope 0."""
    for p in (0.1, 0.5, 0.8):
        gap = double([math.log(p / (1 - p))]).requires_grad_()
        loss = bradley_terry(gap, double([0.0]), label=p)
        loss.backward()
        assert loss.item() == pytest.approx(-p * math.log(p) - (1 - p) * math.log(1 - p), abs=1e-12)
        assert grad(gap).item() == pytest.approx(0.0, abs=1e-12)


def test_plackett_luce_pair_marginals_are_bradley_terry() -> None:
    """Over all 24 orders of four items, P(i above j) by enumeration is exp(-loss) of that pair."""
    strength = [0.3, -1.0, 2.0, 0.7]
    marginal = dict.fromkeys(itertools.permutations(range(4), 2), 0.0)
    for order in itertools.permutations(range(4)):
        probability, left = 1.0, list(order)
        for item in order:
            probability *= math.exp(strength[item]) / math.fsum(math.exp(strength[other]) for other in left)
            left.remove(item)
        for above, below in itertools.combinations(order, 2):
            marginal[above, below] += probability
    winners, losers = zip(*marginal, strict=True)
    losses = bradley_terry(double([strength[i] for i in winners]), double([strength[i] for i in losers]))
    assert_close((-losses).exp(), double(list(marginal.values())))


# Bradley-Terry: invariants


@modest
@given(scores, shares, st.floats(-5, 5))
def test_bradley_terry_is_the_cross_entropy_in_plain_python(
    pairs: list[tuple[float, float]], label: float, margin: float
) -> None:
    """label * loss(gap) + (1 - label) * loss(-gap), gap = chosen - rejected - margin."""
    chosen, rejected = (double(side) for side in zip(*pairs, strict=True))
    gaps = [c - r - margin for c, r in pairs]
    expected = double([label * gap_loss(gap) + (1 - label) * gap_loss(-gap) for gap in gaps])
    as_floats = bradley_terry(chosen, rejected, label=label, margin=margin)
    as_tensors = bradley_terry(
        chosen, rejected, label=torch.full_like(chosen, label), margin=torch.full_like(chosen, margin)
    )
    # softplus is cut to the identity beyond 20, which leaves 2e-9.
    assert_close(as_floats, expected, rtol=0, atol=1e-8)
    assert torch.equal(as_tensors, as_floats)


@modest
@given(scores, st.floats(-30, 30), shares)
def test_bradley_terry_is_shift_invariant(pairs: list[tuple[float, float]], shift: float, label: float) -> None:
    """Only differences of scores are seen."""
    chosen, rejected = (double(side) for side in zip(*pairs, strict=True))
    moved = bradley_terry(chosen + shift, rejected + shift, label=label)
    assert_close(moved, bradley_terry(chosen, rejected, label=label), rtol=0, atol=1e-8)


@modest
@given(scores, shares)
def test_swapping_the_sides_and_the_label_changes_nothing(pairs: list[tuple[float, float]], label: float) -> None:
    """A label p for (a, b) is a label 1 - p for (b, a)."""
    chosen, rejected = (double(side) for side in zip(*pairs, strict=True))
    swapped = bradley_terry(rejected, chosen, label=1 - label)
    assert_close(swapped, bradley_terry(chosen, rejected, label=label), rtol=0, atol=1e-8)


@modest
@given(st.floats(-1e4, 1e4, width=32), shares)
def test_any_float32_gap_has_a_finite_loss_and_a_bounded_gradient(gap: float, label: float) -> None:
    """The gradient sigma(gap) - label lies in -1..1."""
    chosen = torch.tensor([gap], requires_grad=True)
    loss = bradley_terry(chosen, torch.zeros(1), label=label)
    loss.backward()
    assert loss.isfinite()
    assert loss.item() >= -1e-7 * max(1.0, abs(gap))
    sigma = 1 / (1 + math.exp(-gap)) if gap > -700 else 0.0
    assert grad(chosen).item() == pytest.approx(sigma - label, abs=1e-5)


# Bradley-Terry: numbers by hand


def test_swapped_columns_change_loss_and_gradient() -> None:
    """O-03: margins (1, -2): (.313262 + 2.126928) / 2; gradient -(1 - sigma) / 2; swapped (1.313262 + .126928) / 2."""
    chosen, rejected = double([1.0, -2.0]).requires_grad_(), double([0.0, 0.0])
    loss = bradley_terry(chosen, rejected).mean()
    loss.backward()
    assert loss.item() == pytest.approx(1.220095, abs=1e-5)
    assert_close(grad(chosen), double([-0.134471, -0.440399]), rtol=0, atol=1e-5)
    assert bradley_terry(rejected, chosen).mean().item() == pytest.approx(0.720095, abs=1e-5)


def test_two_equal_sides_teach_nothing() -> None:
    """O-04: both scores come from one weight and one input, so their gradients cancel exactly at a loss of log 2."""
    weight = torch.tensor([1.7], requires_grad=True)
    loss = bradley_terry(weight * 0.3, weight * 0.3)
    loss.backward()
    assert loss.item() == pytest.approx(0.693147, abs=1e-5)
    assert grad(weight).item() == 0.0


def test_a_tie_label_is_the_mean_of_both_directions() -> None:
    """O-05: margins 0, 1, -1, 2: e.g. (.313262 + 1.313262) / 2 = .813262; no gradient at 0."""
    chosen = double([0.0, 1.0, -1.0, 2.0]).requires_grad_()
    losses = bradley_terry(chosen, double([0.0] * 4), label=0.5)
    losses.sum().backward()
    assert_close(losses, double([0.693147, 0.813262, 0.813262, 1.126928]), rtol=0, atol=1e-5)
    assert grad(chosen)[0].item() == 0.0
    assert grad(chosen)[1].item() == pytest.approx(0.231059, abs=1e-5)  # sigma(1) - 1/2


def test_each_pair_has_its_own_label_and_margin() -> None:
    """Gaps 3 - 1 - 2 = 0, 2 - 0 = 2 and 2 - 0 with the label turned round: log 2, .126928 and 2.126928."""
    losses = bradley_terry(
        torch.tensor([3.0, 2.0, 2.0]),
        torch.tensor([1.0, 0.0, 0.0]),
        label=torch.tensor([1.0, 1.0, 0.0]),
        margin=torch.tensor([2.0, 0.0, 0.0]),
    )
    assert_close(losses, torch.tensor([0.693147, 0.126928, 2.126928]), rtol=0, atol=1e-5)


def test_rankings_are_averaged_inside_first() -> None:
    """O-06: scores in rank order (0, 1) and (3, 2, 1, 0)."""
    # One pair at -1: 1.313262. Six pairs at 1, 1, 1, 2, 2, 3: (3 * .313262 + 2 * .126928 + .048587) / 6 = .207038.
    # Mean of both .760150; over all seven pairs .365070.
    short, long = [(0.0, 1.0)], list(itertools.combinations([3.0, 2.0, 1.0, 0.0], 2))
    chosen, rejected = (double(side) for side in zip(*(short + long), strict=True))
    losses = bradley_terry(chosen, rejected)
    apart = group_weights(torch.tensor([0] + [1] * 6), torch.tensor([1, 1]))
    pooled = group_weights(torch.zeros(7, dtype=torch.int64), torch.tensor([1]))
    assert float((apart * losses).sum()) == pytest.approx(0.760150, abs=1e-5)
    assert float((pooled * losses).sum()) == pytest.approx(0.365070, abs=1e-5)


def test_a_ranking_weighs_as_often_as_it_was_drawn() -> None:
    """Group 0 (one pair) drawn twice, group 1 (two pairs) once, group 2 never: 2/3, 1/6, 1/6, 0."""
    weights = group_weights(torch.tensor([0, 1, 1, 2]), torch.tensor([2, 1, 0]))
    assert weights.tolist() == pytest.approx([2 / 3, 1 / 6, 1 / 6, 0.0])


def test_a_group_without_pairs_still_counts_below_the_line() -> None:
    """Two groups drawn, one of them empty: half of the mean is missing, and nothing is NaN."""
    assert group_weights(torch.tensor([1, 1]), torch.tensor([1, 1])).tolist() == pytest.approx([0.25, 0.25])


def test_the_pairwise_mean_of_a_ranking_of_three() -> None:
    """O-06: scores (2, 1, 0): (2 * .313262 + .126928) / 3 = .251150."""
    losses = bradley_terry(double([2.0, 2.0, 1.0]), double([1.0, 0.0, 0.0]))
    weights = group_weights(torch.zeros(3, dtype=torch.int64), torch.tensor([1]))
    assert float((weights * losses).sum()) == pytest.approx(0.251150, abs=1e-5)


# Group weights: invariants


@modest
@given(
    st.lists(st.tuples(st.floats(-10, 10), st.integers(0, 3)), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
)
def test_group_averages_do_not_depend_on_order(rows: list[tuple[float, int]], random) -> None:
    """Dictionaries in plain Python are the oracle."""
    members: dict[int, list[float]] = {}
    for loss, group in rows:
        members.setdefault(group, []).append(loss)
    expected = math.fsum(math.fsum(m) / len(m) for m in members.values()) / len(members)
    shuffled = rows.copy()
    random.shuffle(shuffled)
    for order in (rows, shuffled):
        losses, groups = double([loss for loss, _ in order]), torch.tensor([group for _, group in order])
        _, place = groups.unique(return_inverse=True)
        weights = group_weights(place, torch.ones(len(members), dtype=torch.int64))
        # The weights are float32: a relative 6e-8 of losses up to 10.
        assert float((weights * losses).sum()) == pytest.approx(expected, abs=1e-5)


# Gradients


def test_bradley_terry_has_the_gradient_of_finite_differences() -> None:
    """Central differences in float64, at seeded points."""
    generator = torch.Generator().manual_seed(41)
    chosen, rejected = (torch.randn(6, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2))
    label = torch.rand(6, generator=generator, dtype=torch.float64)
    margin = torch.randn(6, generator=generator, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda c, r: bradley_terry(c, r, label=label, margin=margin), (chosen, rejected))


def test_centring_is_the_squared_sum_and_pulls_both_scores_alike() -> None:
    """Scores 2 and -.5: 1.5 squared, 2.25, with slope 3 on both; none where they are opposite."""
    chosen, rejected = double([2.0, 1.0]).requires_grad_(), double([-0.5, -1.0]).requires_grad_()
    found = centring(chosen, rejected)
    assert_close(found.detach(), double([2.25, 0.0]))
    found.sum().backward()
    assert_close(chosen.grad, double([3.0, 0.0]))
    assert_close(rejected.grad, double([3.0, 0.0]))
