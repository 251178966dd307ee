"""KL: exact, and the three sampled estimators as values and as losses."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import Categorical, kl_divergence
from torch.testing import assert_close

from killick.ops.kl import LOG_RATIO_LIMIT, best_of_n_bound, bound, count_bounded, exact_kl, k1, k2, k3

modest = settings(max_examples=30, deadline=None, derandomize=True)
log_ratios = st.lists(st.floats(-19, 19), min_size=1, max_size=8)
two_rows = st.integers(2, 6).flatmap(
    lambda vocab: st.tuples(*[st.lists(st.floats(-15, 15), min_size=vocab, max_size=vocab)] * 2)
)


def double(numbers) -> Tensor:
    """A float64 tensor."""
    return torch.tensor(numbers, dtype=torch.float64)


def gaussian_log_ratio(sample: Tensor, mu: float) -> tuple[Tensor, Tensor]:
    """log N(x; 0, 1) and log N(x; mu, 1), up to the constant that they share."""
    return -sample.square() / 2, -(sample - mu).square() / 2


def grad(leaf: Tensor) -> Tensor:
    """What backward left on a leaf."""
    assert leaf.grad is not None
    return leaf.grad


# Closed forms


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (1, 0.0),
        (2, 0.193147),
        (4, 0.636294),
        (8, 1.204442),
        (16, 1.835089),
        (64, 3.174508),
        (128, 3.859843),
        (1_000, 5.908755),
        (60_000, 10.002117),
    ],
)
def test_the_best_of_n_bound_is_log_n_minus_n_minus_1_over_n(n: int, expected: float) -> None:
    """Values worked out apart from any package; n = 2 is log 2 - 1/2."""
    assert best_of_n_bound(n) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("n", [2, 3, 5, 16])
def test_the_best_of_n_bound_is_the_kl_of_the_maximum_of_n_uniform_scores(n: int) -> None:
    """Without ties the winner's density is n u^(n-1): its KL from uniform by Gauss-Legendre on (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    u = (nodes + 1) / 2
    density = n * u ** (n - 1)
    assert best_of_n_bound(n) == pytest.approx(float((weights / 2 * density * np.log(density)).sum()), abs=1e-4)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_ties_put_the_true_kl_of_best_of_n_below_the_bound(n: int) -> None:
    """Five scores with shares (.4, .3, .15, .1, .05): q(y) = F(y)^n - F(y-)^n, summed in plain Python."""
    edges = [0.0, 0.4, 0.7, 0.85, 0.95, 1.0]
    law = [(high**n - low**n, high - low) for low, high in pairwise(edges)]
    assert math.fsum(q * math.log(q / p) for q, p in law) < best_of_n_bound(n)


def test_exact_kl_of_two_coins() -> None:
    """p log(p / q) + (1 - p) log((1 - p) / (1 - q)) for p = .9 and q = .5: log 2 minus the entropy of .9."""
    expected = math.log(2) + 0.9 * math.log(0.9) + 0.1 * math.log(0.1)
    assert exact_kl(double([0.9, 0.1]).log(), double([0.5, 0.5]).log()).item() == pytest.approx(expected, abs=1e-12)


def test_a_sure_policy_pays_minus_log_of_the_reference() -> None:
    """KL((1, 0, 0) || q) = -log q(0); the impossible tokens add 0, even where the reference is impossible too."""
    policy = torch.tensor([0.0, -math.inf, -math.inf])
    assert exact_kl(policy, torch.tensor([0.25, 0.75, 0.0]).log()).item() == pytest.approx(math.log(4), abs=1e-6)


def test_a_policy_that_leaves_the_reference_has_infinite_kl() -> None:
    """What the reference never writes cannot be had at a finite price; the other direction stays finite."""
    inside, outside = double([1.0, 0.0]).log(), double([0.5, 0.5]).log()
    assert exact_kl(outside, inside).item() == math.inf
    assert exact_kl(inside, outside).item() == pytest.approx(math.log(2), abs=1e-12)


@pytest.mark.parametrize(
    ("mu", "spread_1", "spread_2", "spread_3", "bias_2"),
    [(0.1, 20.0, 1.4177, 1.4166, 0.0025), (1.0, 2.0, 1.7321, 1.6950, 0.25)],
)
def test_spread_and_bias_of_the_estimators_between_two_gaussians(
    mu: float, spread_1: float, spread_2: float, spread_3: float, bias_2: float
) -> None:
    """Sampling N(0, 1) against N(mu, 1), KL = mu^2 / 2, moments by Gauss-Hermite: sd over KL, and k2's bias over KL."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    sample, weight = torch.from_numpy(nodes), torch.from_numpy(weights / weights.sum())
    kl = mu**2 / 2
    means, spreads = [], []
    for estimator in (k1, k2, k3):
        values = estimator(*gaussian_log_ratio(sample, mu))
        mean = (weight * values).sum()
        means.append(mean.item() / kl)
        spreads.append((weight * (values - mean).square()).sum().sqrt().item() / kl)
    assert means == pytest.approx([1.0, 1.0 + bias_2, 1.0], abs=1e-6)
    assert spreads == pytest.approx([spread_1, spread_2, spread_3], abs=1e-4)
    assert (spreads[2] * kl) ** 2 == pytest.approx(math.exp(mu**2) - 1 - mu**2, rel=1e-6)


@pytest.mark.parametrize("mu", [0.1, 1.0])
def test_sampled_means_agree_with_the_gaussian_kl_within_4_standard_errors(mu: float) -> None:
    """100,000 seeded samples; standard errors from the closed-form deviations mu, mu^2 sqrt(2 + mu^2) / 2 and k3's."""
    count = 100_000
    sample = torch.randn(count, generator=torch.Generator().manual_seed(21), dtype=torch.float64)
    policy, reference = gaussian_log_ratio(sample, mu)
    kl = mu**2 / 2
    deviations = [mu, mu**2 * math.sqrt(2 + mu**2) / 2, math.sqrt(math.exp(mu**2) - 1 - mu**2)]
    expected = [kl, kl * (1 + mu**2 / 4), kl]
    for estimator, mean, deviation in zip((k1, k2, k3), expected, deviations, strict=True):
        got = estimator(policy, reference).mean().item()
        assert abs(got - mean) <= 4 * deviation / math.sqrt(count)


def test_expected_gradients_of_the_estimators_as_losses() -> None:
    """Averaged over the policy: k1 has 0, k2 that of KL(policy || reference), k3 that of KL(reference || policy)."""
    # In logits these are p (log p/q - KL) and p - q. Source: Tang and Munos 2025, arXiv 2506.09477.
    p, q = double([0.7, 0.2, 0.1]), double([0.5, 0.25, 0.25])
    log_ratio = (p / q).log()
    forward = p * (log_ratio - (p * log_ratio).sum())
    for estimator, expected in [(k1, torch.zeros_like(p)), (k2, forward), (k3, p - q)]:
        logits = p.log().requires_grad_()
        (p * estimator(logits.log_softmax(-1), q.log())).sum().backward()
        assert_close(grad(logits), expected, rtol=0, atol=1e-12)


# Invariants


@modest
@given(log_ratios, st.floats(-50, 50))
def test_estimators_agree_with_plain_python(ratios: list[float], base: float) -> None:
    """d, d^2 / 2 and exp(-d) - 1 + d by math, wherever the reference stands."""
    reference = torch.full((len(ratios),), base, dtype=torch.float64)
    policy = reference + double(ratios)
    assert_close(k1(policy, reference), double(ratios), rtol=0, atol=1e-12)
    assert_close(k2(policy, reference), double([d * d / 2 for d in ratios]), rtol=1e-12, atol=1e-11)
    expected = double([math.expm1(-d) + d for d in ratios])
    assert_close(k3(policy, reference), expected, rtol=1e-12, atol=1e-11)


@modest
@given(st.lists(st.floats(-1e5, 1e5, width=32), min_size=1, max_size=8))
def test_k2_and_k3_are_never_below_0_and_k3_is_always_finite(ratios: list[float]) -> None:
    """O-25: any float32 log-ratio has a finite k3 and a finite gradient."""
    policy = torch.tensor(ratios, requires_grad=True)
    values = k3(policy, torch.zeros(len(ratios)))
    values.sum().backward()
    assert (values >= 0).all()
    assert values.isfinite().all()
    assert grad(policy).isfinite().all()
    assert (k2(policy, torch.zeros(len(ratios))) >= 0).all()


@modest
@given(two_rows)
def test_exact_kl_agrees_with_torch_distributions_and_is_never_below_0(rows: tuple[list[float], list[float]]) -> None:
    """kl_divergence of two Categoricals is the oracle."""
    policy, reference = (Categorical(logits=double(row)) for row in rows)
    got = exact_kl(policy.logits, reference.logits)
    assert_close(got, kl_divergence(policy, reference), rtol=1e-9, atol=1e-9)
    assert got.item() >= -1e-9
    assert exact_kl(policy.logits, policy.logits).item() == 0.0


@modest
@given(two_rows, st.randoms(use_true_random=False))
def test_exact_kl_does_not_depend_on_the_order_of_the_vocabulary(rows: tuple[list[float], list[float]], random) -> None:
    """Relabelling tokens changes nothing."""
    policy, reference = (double(row).log_softmax(-1) for row in rows)
    order = list(range(len(rows[0])))
    random.shuffle(order)
    assert_close(exact_kl(policy[order], reference[order]), exact_kl(policy, reference), rtol=1e-9, atol=1e-12)


@modest
@given(two_rows)
def test_the_policys_average_of_k1_and_of_k3_is_the_exact_kl(rows: tuple[list[float], list[float]]) -> None:
    """Both are unbiased: sum p k = KL, with torch.distributions as the oracle for the right side."""
    policy, reference = (double(row).log_softmax(-1) for row in rows)
    d = policy - reference
    expected = kl_divergence(Categorical(logits=policy), Categorical(logits=reference))
    assert_close((policy.exp() * k1(policy, reference)).sum(), expected, rtol=1e-9, atol=1e-9)
    if d.abs().max() < 20:
        assert_close((policy.exp() * k3(policy, reference)).sum(), expected, rtol=1e-7, atol=1e-7)


@modest
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.sampled_from([0.0, 1e9, math.inf, math.nan]))
def test_counting_the_bounded_ignores_padding(ratios: list[float], fill: float) -> None:
    """O-24: plain Python counts real entries beyond 20; the padding may hold anything."""
    values = double([*ratios, fill, fill])
    mask = torch.tensor([True] * len(ratios) + [False] * 2)
    assert count_bounded(values, mask).item() == sum(abs(d) > 20 for d in ratios)


# Numbers by hand


def test_the_three_estimators_on_one_row() -> None:
    """O-23: d = (.2, -1, 0); k2 .02 + .5; k3 e^-.2 - 1 + .2 = .018731 and e - 2 = .718282."""
    policy, reference = torch.tensor([-0.1, -2.0, -0.5]), torch.tensor([-0.3, -1.0, -0.5])
    assert_close(k1(policy, reference), torch.tensor([0.2, -1.0, 0.0]), rtol=0, atol=1e-5)
    assert k1(policy, reference).sum().item() == pytest.approx(-0.8, abs=1e-5)
    assert_close(k2(policy, reference), torch.tensor([0.02, 0.5, 0.0]), rtol=0, atol=1e-5)
    assert k2(policy, reference).sum().item() == pytest.approx(0.52, abs=1e-5)
    assert_close(k3(policy, reference), torch.tensor([0.018731, 0.718282, 0.0]), rtol=0, atol=1e-5)
    assert k3(policy, reference).sum().item() == pytest.approx(0.737013, abs=1e-5)


def test_exact_kl_has_a_direction() -> None:
    """O-23: p = (.7, .2, .1), q = (.5, .25, .25): KL(p || q) = .099273, KL(q || p) = .116622."""
    p, q = torch.tensor([0.7, 0.2, 0.1]).log(), torch.tensor([0.5, 0.25, 0.25]).log()
    assert exact_kl(p, q).item() == pytest.approx(0.099273, abs=1e-5)
    assert exact_kl(q, p).item() == pytest.approx(0.116622, abs=1e-5)


def test_exact_kl_is_taken_per_position() -> None:
    """Shape [batch, time, vocab] gives [batch, time]: 0 where both agree, log 2 where a sure token meets a coin."""
    coin, sure = [0.5, 0.5], [1.0, 0.0]
    policy, reference = double([[coin, sure]]).log(), double([[coin, coin]]).log()
    assert_close(exact_kl(policy, reference), double([[0.0, math.log(2)]]))


def test_the_kl_of_an_update_by_k3_and_by_k1() -> None:
    """O-39: new / old log-ratios (.3, -.3, .1), samples from old: k3 mean (.049859 + .040818 + .005171) / 3."""
    old = torch.tensor([-1.0, -2.0, -0.5])
    new = old + torch.tensor([0.3, -0.3, 0.1])
    assert k3(old, new).mean().item() == pytest.approx(0.031949, abs=1e-5)
    assert k1(old, new).mean().item() == pytest.approx(-0.033333, abs=1e-5)


def test_equal_log_probs_cost_nothing_and_push_only_k1() -> None:
    """O-28: at a ratio of 1 every estimator is 0; the gradients are 1, 0 and 0."""
    for estimator, slope in [(k1, 1.0), (k2, 0.0), (k3, 0.0)]:
        policy = torch.tensor([-0.7, -3.0], requires_grad=True)
        values = estimator(policy, torch.tensor([-0.7, -3.0]))
        values.sum().backward()
        assert values.tolist() == [0.0, 0.0]
        assert grad(policy).tolist() == [slope, slope]


def test_a_log_ratio_of_minus_100_has_a_finite_k3_and_gradient() -> None:
    """O-25: bounded to -20 before exp: e^20 - 1 - 20, with gradient 0; at -10 it is untouched: 1 - e^10."""
    policy = torch.tensor([-105.0, -15.0], requires_grad=True)
    values = k3(policy, torch.tensor([-5.0, -5.0]))
    values.sum().backward()
    assert values.tolist() == pytest.approx([math.exp(20) - 21, math.exp(10) - 11], rel=1e-5)
    assert grad(policy).tolist() == pytest.approx([0.0, 1 - math.exp(10)], rel=1e-5)


def test_the_bound_is_20_on_both_sides_and_counts_only_what_lies_beyond() -> None:
    """20 itself is not bounded; 20.5 and -300 are; the third is padding."""
    values = torch.tensor([20.0, 20.5, 999.0, -300.0, -20.0, 3.0])
    mask = torch.tensor([True, True, False, True, True, True])
    assert LOG_RATIO_LIMIT == 20.0
    assert bound(values).tolist() == [20.0, 20.0, 20.0, -20.0, -20.0, 3.0]
    assert count_bounded(values, mask).item() == 2


def test_the_bound_stops_the_gradient_outside_only() -> None:
    """Gradient 1 inside and 0 beyond, which is why callers count."""
    values = torch.tensor([-25.0, -5.0, 0.0, 19.9, 25.0], requires_grad=True)
    bound(values).sum().backward()
    assert grad(values).tolist() == [0.0, 1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize("d", [1e-7, 3e-6, 1e-5, 1e-4, 1e-3, -1e-5, -1e-3])
def test_k3_of_a_small_log_ratio_keeps_its_digits_in_float32(d: float) -> None:
    """exp(-d) - 1 + d = d^2/2 - d^3/6 + ...; the plain exp(-d) - 1 would lose 6e-8 of it."""
    got = k3(torch.tensor(d), torch.tensor(0.0)).item()
    assert got >= 0
    assert got == pytest.approx(d**2 / 2 - d**3 / 6, abs=1e-7 * abs(d))


def test_a_probability_that_underflows_does_not_give_nan() -> None:
    """A log-prob of -200 is 0 in float32; against an impossible reference token the row must still be a number."""
    got = exact_kl(torch.tensor([0.0, -200.0]), torch.tensor([0.0, -math.inf]))
    assert not got.isnan()


def test_a_nan_policy_is_not_reported_as_no_kl() -> None:
    """O-44: a broken row must show, not read as a policy that never left its reference."""
    assert exact_kl(torch.tensor([math.nan, math.nan]), torch.tensor([0.5, 0.5]).log()).isnan()


# Gradients


def test_all_four_have_the_gradient_of_finite_differences() -> None:
    """Central differences in float64, on policy and reference."""
    generator = torch.Generator().manual_seed(22)
    policy, reference = (
        torch.randn(3, 4, generator=generator, dtype=torch.float64).log_softmax(-1).requires_grad_() for _ in range(2)
    )
    for function in (k1, k2, k3, exact_kl):
        assert torch.autograd.gradcheck(function, (policy, reference))


def test_exact_kl_in_logits_has_gradient_p_times_the_centred_log_ratio() -> None:
    """d KL / d logits = p (log p/q - KL) on the policy's side and q - p on the reference's."""
    p, q = double([0.7, 0.2, 0.1]), double([0.5, 0.25, 0.25])
    log_ratio = (p / q).log()
    policy, reference = p.log().requires_grad_(), q.log().requires_grad_()
    exact_kl(policy.log_softmax(-1), reference.log_softmax(-1)).backward()
    assert_close(grad(policy), p * (log_ratio - (p * log_ratio).sum()))
    assert_close(grad(reference), q - p)


def test_impossible_tokens_leave_the_gradient_finite() -> None:
    """No 0 * infinity: forbidden on both sides, the third token gets 0 and the others what they get without it."""
    logits = double([1.0, -0.5, -math.inf]).requires_grad_()
    reference = double([0.5, 0.5, 0.0]).log()
    exact_kl(logits.log_softmax(-1), reference).backward()
    p = 1 / (1 + math.exp(-1.5))
    kl = p * math.log(2 * p) + (1 - p) * math.log(2 * (1 - p))
    expected = double([p * (math.log(2 * p) - kl), (1 - p) * (math.log(2 * (1 - p)) - kl), 0.0])
    assert_close(grad(logits), expected)
