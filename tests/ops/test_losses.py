"""Losses: truth tables by hand, gradients by formula and by finite differences."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from killick.ops.losses import bradley_terry, clipped, group_weights, likelihood, ppo_clip, value_loss
from killick.ops.masked import masked_mean

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
        loss = bradley_terry(gap, double([0.0]), p)
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
    as_floats = bradley_terry(chosen, rejected, label, margin)
    as_tensors = bradley_terry(chosen, rejected, torch.full_like(chosen, label), torch.full_like(chosen, margin))
    # softplus is cut to the identity beyond 20, which leaves 2e-9.
    assert_close(as_floats, expected, rtol=0, atol=1e-8)
    assert torch.equal(as_tensors, as_floats)


@modest
@given(scores, st.floats(-30, 30), shares)
def test_bradley_terry_is_shift_invariant(pairs: list[tuple[float, float]], shift: float, label: float) -> None:
    """Only differences of scores are seen."""
    chosen, rejected = (double(side) for side in zip(*pairs, strict=True))
    moved = bradley_terry(chosen + shift, rejected + shift, label)
    assert_close(moved, bradley_terry(chosen, rejected, label), rtol=0, atol=1e-8)


@modest
@given(scores, shares)
def test_swapping_the_sides_and_the_label_changes_nothing(pairs: list[tuple[float, float]], label: float) -> None:
    """A label p for (a, b) is a label 1 - p for (b, a)."""
    chosen, rejected = (double(side) for side in zip(*pairs, strict=True))
    swapped = bradley_terry(rejected, chosen, 1 - label)
    assert_close(swapped, bradley_terry(chosen, rejected, label), rtol=0, atol=1e-8)


@modest
@given(st.floats(-1e4, 1e4, width=32), shares)
def test_any_float32_gap_has_a_finite_loss_and_a_bounded_gradient(gap: float, label: float) -> None:
    """The gradient sigma(gap) - label lies in -1..1."""
    chosen = torch.tensor([gap], requires_grad=True)
    loss = bradley_terry(chosen, torch.zeros(1), label)
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
    losses = bradley_terry(chosen, double([0.0] * 4), 0.5)
    losses.sum().backward()
    assert_close(losses, double([0.693147, 0.813262, 0.813262, 1.126928]), rtol=0, atol=1e-5)
    assert grad(chosen)[0].item() == 0.0
    assert grad(chosen)[1].item() == pytest.approx(0.231059, abs=1e-5)  # sigma(1) - 1/2


def test_each_pair_has_its_own_label_and_margin() -> None:
    """Gaps 3 - 1 - 2 = 0, 2 - 0 = 2 and 2 - 0 with the label turned round: log 2, .126928 and 2.126928."""
    losses = bradley_terry(
        torch.tensor([3.0, 2.0, 2.0]),
        torch.tensor([1.0, 0.0, 0.0]),
        torch.tensor([1.0, 1.0, 0.0]),
        torch.tensor([2.0, 0.0, 0.0]),
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


# PPO: the clipped loss


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "gradient"),
    [
        (1.5, 2.0, -2.4, 0.0),  # pushed up and already beyond 1.2: max(-3, -2.4)
        (1.5, -2.0, 3.0, 3.0),  # wrong way: the whole price
        (0.5, 1.0, -0.5, -0.5),
        (0.5, -1.0, 0.8, 0.0),
        (1.1, 1.0, -1.1, -1.1),  # inside the range nothing is clipped
    ],
)
def test_the_clip_truth_table(ratio: float, advantage: float, loss: float, gradient: float) -> None:
    """O-31: loss and gradient with respect to the log-ratio at clip range .2; `clipped` is where the gradient is 0."""
    log_ratio = torch.tensor([math.log(ratio)], requires_grad=True)
    got = ppo_clip(log_ratio, torch.tensor([advantage]), 0.2)
    got.backward()
    assert got.item() == pytest.approx(loss, abs=1e-5)
    assert grad(log_ratio).item() == pytest.approx(gradient, abs=1e-5)
    assert clipped(log_ratio.detach(), torch.tensor([advantage]), 0.2).item() == (gradient == 0)


def test_a_ratio_of_e_to_the_200_gives_finite_losses_and_gradients() -> None:
    """O-30: -1.2 and .8 where the clip holds; e^20 and -e^-20 where it does not, the log-ratio bounded to 20."""
    log_ratio = torch.tensor([200.0, 200.0, -200.0, -200.0], requires_grad=True)
    losses = ppo_clip(log_ratio, torch.tensor([1.0, -1.0, 1.0, -1.0]), 0.2)
    losses.sum().backward()
    assert losses.tolist() == pytest.approx([-1.2, math.exp(20), 0.0, 0.8], rel=1e-5, abs=1e-5)
    assert grad(log_ratio).tolist() == [0.0, 0.0, 0.0, 0.0]


def test_at_a_ratio_of_1_the_loss_is_minus_the_advantage_and_nothing_is_clipped() -> None:
    """O-28: gradient -A with respect to the log-ratio, for both signs and any clip range."""
    for clip_range in (0.0, 0.1, 0.2):
        advantages = torch.tensor([2.0, -0.5, 0.0])
        log_ratio = torch.zeros(3, requires_grad=True)
        losses = ppo_clip(log_ratio, advantages, clip_range)
        losses.sum().backward()
        assert losses.tolist() == [-2.0, 0.5, 0.0]
        assert grad(log_ratio).tolist() == [-2.0, 0.5, 0.0]
        assert not clipped(torch.zeros(3), advantages, clip_range).any()


def test_at_a_ratio_of_1_the_gradient_is_reinforces() -> None:
    """In logits: -A (onehot(token) - p), written out from the softmax, where old is the policy itself."""
    logits = double([[0.3, -1.0, 0.8], [2.0, 0.0, -0.5]]).requires_grad_()
    tokens, advantages = torch.tensor([2, 1]), double([1.5, -0.7])
    log_probs = logits.log_softmax(-1).gather(1, tokens[:, None])[:, 0]
    ppo_clip(log_probs - log_probs.detach(), advantages, 0.2).sum().backward()
    weights = logits.detach().exp()
    p = weights / weights.sum(1, keepdim=True)
    onehot = double([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    assert_close(grad(logits), -advantages[:, None] * (onehot - p))


@modest
@given(
    st.lists(st.tuples(st.floats(-19, 19), st.floats(-5, 5)), min_size=1, max_size=8),
    st.sampled_from([0.05, 0.2, 0.5]),
)
def test_ppo_takes_the_worse_of_two_prices(tokens: list[tuple[float, float]], clip_range: float) -> None:
    """Plain Python: max(-A r, -A clip(r)); `clipped` where the clipped one is strictly worse."""
    log_ratio, advantages = (double(side) for side in zip(*tokens, strict=True))
    expected, stopped = [], []
    for d, a in tokens:
        ratio = math.exp(d)
        near = min(max(ratio, 1 - clip_range), 1 + clip_range)
        expected.append(max(-a * ratio, -a * near))
        stopped.append((a > 0 and ratio > 1 + clip_range) or (a < 0 and ratio < 1 - clip_range))
    assert_close(ppo_clip(log_ratio, advantages, clip_range), double(expected), rtol=1e-9, atol=1e-12)
    assert clipped(log_ratio, advantages, clip_range).tolist() == stopped


@modest
@given(st.floats(-1e5, 1e5, width=32), st.floats(-5, 5, width=32))
def test_any_float32_log_ratio_has_a_finite_loss_and_gradient(d: float, advantage: float) -> None:
    """O-30: over the whole range, on both sides."""
    log_ratio = torch.tensor([d], requires_grad=True)
    loss = ppo_clip(log_ratio, torch.tensor([advantage]), 0.2)
    loss.backward()
    assert loss.isfinite()
    assert grad(log_ratio).isfinite()


def test_an_advantage_of_0_is_never_counted_as_clipped() -> None:
    """Nothing pushes, so nothing is stopped, however far the ratio has gone."""
    assert not clipped(torch.tensor([-3.0, 0.0, 3.0, 300.0]), torch.zeros(4), 0.2).any()


@modest
@given(st.sampled_from([0.0, 300.0, -math.inf, math.inf, math.nan]), st.sampled_from([0.0, 1e9, math.nan]))
def test_padding_changes_neither_the_masked_loss_nor_its_gradient(d: float, a: float) -> None:
    """O-24: the mean over two real tokens is (-1.1 + .8) / 2 whatever stands behind them."""
    log_ratio = double([[math.log(1.1), math.log(0.5), 0.0, 0.0]]).requires_grad_()
    mask = torch.tensor([[True, True, False, False]])
    shown = torch.where(mask, log_ratio, d)
    loss = masked_mean(ppo_clip(shown, torch.where(mask, double([[1.0, -1.0, 0.0, 0.0]]), a), 0.2), mask)
    loss.backward()
    assert loss.item() == pytest.approx(-0.15, abs=1e-9)
    assert_close(grad(log_ratio), double([[-0.55, 0.0, 0.0, 0.0]]))


# The critic's loss


@pytest.mark.parametrize(
    ("new", "old", "target", "loss", "gradient"),
    [
        (2.0, 6.0, 9.0, 24.5, -7.0),  # 7^2 / 2 beats (6 - .5 - 9)^2 / 2 = 6.125
        (6.0, 2.0, 9.0, 21.125, 0.0),  # (2.5 - 9)^2 / 2 beats 4.5: already moved beyond the range
        (3.0, 2.9, 3.5, 0.125, -0.5),  # inside the range both are (3 - 3.5)^2 / 2
    ],
)
def test_the_value_clip_takes_the_worse_error(
    new: float, old: float, target: float, loss: float, gradient: float
) -> None:
    """O-32: half squared errors with range .5."""
    values = torch.tensor([new], requires_grad=True)
    got = value_loss(values, torch.tensor([target]), torch.tensor([old]), 0.5)
    got.backward()
    assert got.item() == pytest.approx(loss, abs=1e-5)
    assert grad(values).item() == pytest.approx(gradient, abs=1e-5)


def test_without_a_range_the_value_loss_is_half_the_squared_error() -> None:
    """O-32: old readings alone clip nothing; (2 - 9)^2 / 2 and (6 - 9)^2 / 2."""
    values, target, old = torch.tensor([2.0, 6.0]), torch.tensor([9.0, 9.0]), torch.tensor([6.0, 2.0])
    assert value_loss(values, target).tolist() == [24.5, 4.5]
    assert value_loss(values, target, old).tolist() == [24.5, 4.5]
    assert value_loss(values, target, old, None).tolist() == [24.5, 4.5]


def test_the_masked_value_loss_leaves_out_the_pad() -> None:
    """O-32: values (1, 2, 99), returns 0: (.5 + 2) / 2 = 1.25; with the pad it would be 1634.33."""
    losses = value_loss(torch.tensor([1.0, 2.0, 99.0]), torch.zeros(3))
    assert masked_mean(losses, torch.tensor([True, True, False])).item() == pytest.approx(1.25)


@modest
@given(st.lists(st.tuples(*[st.floats(-9, 9)] * 3), min_size=1, max_size=8), st.sampled_from([0.0, 0.2, 1.0, 50.0]))
def test_the_value_loss_agrees_with_plain_python(rows: list[tuple[float, float, float]], clip_range: float) -> None:
    """The worse of two half squared errors; a range wider than any move clips nothing."""
    values, targets, old = (double(side) for side in zip(*rows, strict=True))
    expected = [max((v - r) ** 2, (o + min(max(v - o, -clip_range), clip_range) - r) ** 2) / 2 for v, r, o in rows]
    got = value_loss(values, targets, old, clip_range)
    assert_close(got, double(expected), rtol=1e-9, atol=1e-9)
    if clip_range == 50.0:
        assert_close(got, double([(v - r) ** 2 / 2 for v, r, _ in rows]), rtol=1e-9, atol=1e-9)


# Likelihood, and PPO with a supervised term


def test_the_likelihood_loss_of_a_response_is_minus_its_log_probability() -> None:
    """O-20: probabilities .5, .25 and .8 for (11, 12, end): -log(.1) over the three real tokens, end included."""
    log_probs = double([[0.5, 0.25, 0.8, 0.1, 0.1]]).log()
    mask = torch.tensor([[True, True, True, False, False]])
    assert masked_mean(likelihood(log_probs), mask).item() == pytest.approx(-math.log(0.1) / 3, abs=1e-12)


@pytest.mark.parametrize("coefficient", [0.0, 1.0, 2.0])
def test_the_supervised_term_adds_its_own_gradient(coefficient: float) -> None:
    """O-42: PPO at ratio 1 gives -A, likelihood gives -1: together -A - coefficient; with A = 0 the latter alone."""
    advantages = double([1.5, -0.5, 0.0])
    log_probs = double([-1.0, -2.0, -0.3]).requires_grad_()
    ppo = ppo_clip(log_probs - log_probs.detach(), advantages, 0.2)
    (ppo + coefficient * likelihood(log_probs)).sum().backward()
    assert_close(grad(log_probs), -advantages - coefficient)


# Gradients


def test_every_loss_has_the_gradient_of_finite_differences() -> None:
    """Central differences in float64, at seeded points away from the kinks of max and clip."""
    generator = torch.Generator().manual_seed(41)
    first, second = (torch.randn(6, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2))
    label = torch.rand(6, generator=generator, dtype=torch.float64)
    margin = torch.randn(6, generator=generator, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda c, r: bradley_terry(c, r, label, margin), (first, second))
    assert torch.autograd.gradcheck(likelihood, (first,))
    assert torch.autograd.gradcheck(lambda v, r: value_loss(v, r), (first, second))
    log_ratio = double([-1.0, -0.3, -0.1, 0.1, 0.3, 1.0]).requires_grad_()
    for advantages in (double([1.0, 2.0, 0.5, 1.0, 2.0, 0.5]), double([-1.0, -2.0, -0.5, -1.0, -2.0, -0.5])):
        assert torch.autograd.gradcheck(lambda d, a=advantages: ppo_clip(d, a, 0.2), (log_ratio,))
    values = double([2.0, 6.0, 4.0, 0.0, -3.0]).requires_grad_()
    old, target = double([6.0, 2.0, 3.8, 0.3, 1.0]), double([9.0, 9.0, 3.0, 5.0, 0.5])
    assert torch.autograd.gradcheck(lambda v: value_loss(v, target, old, 0.5), (values,))
