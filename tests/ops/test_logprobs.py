"""Log-probs, entropy and draws: one distribution for sampling and for scoring."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import Categorical
from torch.testing import assert_close

from killick.ops.logprobs import draw, entropy, log_distribution, pick

modest = settings(max_examples=30, deadline=None, derandomize=True)
rows_of_logits = st.integers(2, 6).flatmap(
    lambda vocab: st.lists(st.lists(st.floats(-30, 30), min_size=vocab, max_size=vocab), min_size=1, max_size=4)
)
temperatures = st.floats(0.1, 5.0)


def double(numbers) -> torch.Tensor:
    """A float64 tensor."""
    return torch.tensor(numbers, dtype=torch.float64)


def grad(leaf: Tensor) -> Tensor:
    """What backward left on a leaf."""
    assert leaf.grad is not None
    return leaf.grad


# Closed forms


def test_equal_logits_give_minus_log_vocab_each() -> None:
    """Uniform over 5 tokens: log-prob -log 5 and entropy log 5, at any temperature."""
    for temperature in (0.3, 1.0, 4.0):
        log_probs = log_distribution(torch.full((2, 5), 7.0, dtype=torch.float64), temperature)
        assert_close(log_probs, torch.full((2, 5), -math.log(5), dtype=torch.float64))
        assert_close(entropy(log_probs), double([math.log(5)] * 2))


def test_two_tokens_have_the_log_sigmoid_of_their_difference() -> None:
    """log p(0) = -log(1 + exp(-(a - b) / T)) for logits (a, b)."""
    for difference, temperature in [(1.0, 1.0), (-3.0, 2.0), (5.0, 0.5)]:
        log_probs = log_distribution(double([difference, 0.0]), temperature)
        assert log_probs[0].item() == pytest.approx(-math.log1p(math.exp(-difference / temperature)), abs=1e-12)


def test_a_forbidden_token_leaves_its_share_to_the_others() -> None:
    """Probabilities (.5, .3, .2) without the first are (0, .6, .4); without first and last (0, 1, 0)."""
    logits = double([0.5, 0.3, 0.2]).log()
    assert_close(log_distribution(logits, forbidden=(0,)).exp(), double([0.0, 0.6, 0.4]))
    assert_close(log_distribution(logits, forbidden=(0, 2)).exp(), double([0.0, 1.0, 0.0]))
    assert log_distribution(logits, forbidden=(0,))[0].item() == -math.inf


def test_the_entropy_of_a_coin_is_its_binary_entropy() -> None:
    """-(p log p + (1 - p) log(1 - p)) at p = .5, .25, .001, and 0 for a sure coin."""
    for p in (0.5, 0.25, 0.001):
        expected = -(p * math.log(p) + (1 - p) * math.log(1 - p))
        assert entropy(double([p, 1 - p]).log()).item() == pytest.approx(expected, abs=1e-12)
    assert entropy(torch.tensor([0.0, -math.inf])).item() == 0.0


def test_top_k_leaves_the_shares_to_the_k_most_probable() -> None:
    """(.4, .3, .2, .1) with k = 2 is (4/7, 3/7, 0, 0), with k = 1 sure (O-29), with k of 4 or more itself."""
    logits = double([0.4, 0.3, 0.2, 0.1]).log()
    assert_close(log_distribution(logits, top_k=2).exp(), double([4 / 7, 3 / 7, 0, 0]))
    assert log_distribution(logits, top_k=1).tolist() == [0.0] + [-math.inf] * 3
    for k in (4, 5, 1000):
        assert torch.equal(log_distribution(logits, top_k=k), log_distribution(logits))


def test_top_p_leaves_the_fewest_tokens_whose_shares_reach_p() -> None:
    """(.1, .4, .2, .3): .4 reaches .39 alone; .41 needs .3 too, .71 needs .2, .91 all; a tiny p keeps the best one."""
    logits = double([0.1, 0.4, 0.2, 0.3]).log()
    for p, kept in ((1e-9, [1]), (0.39, [1]), (0.41, [1, 3]), (0.71, [1, 2, 3]), (0.91, [0, 1, 2, 3])):
        found = log_distribution(logits, top_p=p).exp()
        assert (found > 0).nonzero()[:, 0].tolist() == kept
        shares = double([0.1, 0.4, 0.2, 0.3])[kept]
        assert_close(found[kept], shares / shares.sum())
    assert torch.equal(log_distribution(logits, top_p=1.0), log_distribution(logits))


def test_temperature_comes_before_top_k_and_top_k_before_top_p() -> None:
    """Odds 4 : 2 : 1 at temperature 1/2 are 16 : 4 : 1. The best has 16/21 = .76, so p = .77 keeps two; of two
    (k = 2) it has .8, so p = .79 keeps one and .81 both."""
    logits = double([4.0, 2.0, 1.0]).log()
    assert_close(log_distribution(logits, 0.5, top_p=0.77).exp(), double([0.8, 0.2, 0.0]))
    assert_close(log_distribution(logits, 0.5, top_k=2, top_p=0.79).exp(), double([1.0, 0.0, 0.0]))
    assert_close(log_distribution(logits, 0.5, top_k=2, top_p=0.81).exp(), double([0.8, 0.2, 0.0]))


def test_tokens_that_tie_with_the_last_one_stay_and_forbidden_ones_count_for_nothing() -> None:
    """Which of two equals comes first is no reason; a forbidden token takes neither a place nor a share."""
    logits = double([0.4, 0.2, 0.2, 0.2]).log()
    assert_close(log_distribution(logits, top_k=2).exp(), double([0.4, 0.2, 0.2, 0.2]))
    assert_close(log_distribution(logits, top_p=0.5).exp(), double([0.4, 0.2, 0.2, 0.2]))
    assert_close(
        log_distribution(double([0.5, 0.3, 0.2]).log(), forbidden=(0,), top_k=1).exp(), double([0.0, 1.0, 0.0])
    )
    assert_close(
        log_distribution(double([0.5, 0.3, 0.2]).log(), forbidden=(0,), top_p=0.59).exp(), double([0.0, 1.0, 0.0])
    )


def test_filters_give_no_gradient_to_what_they_bar_and_no_nan() -> None:
    """Of (.4, .3, .2, .1) two stay; d log p(0) / d logits = (1 - 4/7, -3/7, 0, 0), and the entropy's is finite."""
    for filters in ({"top_k": 2}, {"top_p": 0.6}):
        logits = double([0.4, 0.3, 0.2, 0.1]).log().requires_grad_()
        log_distribution(logits, **filters)[0].backward()
        assert_close(grad(logits), double([3 / 7, -3 / 7, 0, 0]))
        logits.grad = None
        entropy(log_distribution(logits, **filters)).backward()
        assert bool(torch.isfinite(grad(logits)).all())
        assert grad(logits)[2:].tolist() == [0, 0]


def test_a_filter_keeps_nan_in_sight() -> None:
    """O-44: not a number in, not a number out."""
    broken = torch.tensor([[math.nan, 1.0, 2.0], [0.0, 1.0, 2.0]])
    for filters in ({"top_k": 2}, {"top_p": 0.6}):
        found = log_distribution(broken, **filters)
        assert bool(found[0].isnan().all())
        assert not bool(found[1].isnan().any())


# Invariants


@modest
@given(rows_of_logits, st.integers(1, 6), st.floats(0.05, 0.95))
def test_filtered_tokens_keep_their_odds_and_the_nucleus_is_the_smallest(
    rows: list[list[float]], k: int, p: float
) -> None:
    """Those that stay have the odds they had; they reach p, and without their least probable ones they do not."""
    plain = log_distribution(double(rows))
    for found in (log_distribution(double(rows), top_k=k), log_distribution(double(rows), top_p=p)):
        assert_close(found.exp().sum(-1), torch.ones(len(rows), dtype=torch.float64))
        for before, after in zip(plain, found, strict=True):
            kept = after > -torch.inf
            assert_close(after[kept] - after.max(), before[kept] - before.max(), atol=1e-9, rtol=0)
            assert bool((before[~kept] <= before[kept].min()).all())
    for before, after in zip(plain, log_distribution(double(rows), top_p=p), strict=True):
        kept = after > -torch.inf
        least = before[kept].min()
        assert float(before[kept].exp().sum()) >= p - 1e-9
        assert float(before[kept & (before > least)].exp().sum()) < p + 1e-9


@modest
@given(rows_of_logits, temperatures)
def test_probabilities_sum_to_1_and_equal_the_plain_ratio_of_exponentials(
    rows: list[list[float]], temperature: float
) -> None:
    """Plain Python with the largest logit taken off is the oracle."""
    log_probs = log_distribution(double(rows), temperature)
    for got, row in zip(log_probs, rows, strict=True):
        top = max(row)
        total = math.fsum(math.exp((logit - top) / temperature) for logit in row)
        expected = [(logit - top) / temperature - math.log(total) for logit in row]
        assert got.tolist() == pytest.approx(expected, abs=1e-9)
    assert_close(log_probs.exp().sum(-1), torch.ones(len(rows), dtype=torch.float64))


@modest
@given(rows_of_logits, st.floats(-100, 100), temperatures)
def test_a_constant_added_to_all_logits_changes_nothing(rows: list[list[float]], shift: float, t: float) -> None:
    """Softmax is shift invariant."""
    assert_close(log_distribution(double(rows) + shift, t), log_distribution(double(rows), t), rtol=1e-9, atol=1e-9)


@modest
@given(rows_of_logits, st.data())
def test_a_forbidden_logit_is_never_read(rows: list[list[float]], data: st.DataObject) -> None:
    """Whatever a forbidden token's logit is, the others keep their log-probs."""
    token = data.draw(st.integers(0, len(rows[0]) - 1))
    other = double(rows)
    other[:, token] = data.draw(st.sampled_from([-1e4, 0.0, 1e4, math.inf, math.nan]))
    assert torch.equal(log_distribution(other, forbidden=(token,)), log_distribution(double(rows), forbidden=(token,)))


@modest
@given(rows_of_logits)
def test_entropy_agrees_with_torch_distributions_and_lies_between_0_and_log_vocab(rows: list[list[float]]) -> None:
    """Categorical.entropy is the oracle."""
    logits = double(rows)
    got = entropy(log_distribution(logits))
    assert_close(got, Categorical(logits=logits).entropy(), rtol=1e-9, atol=1e-9)
    assert (got >= 0).all()
    assert (got <= math.log(len(rows[0])) + 1e-12).all()


@modest
@given(rows_of_logits, st.randoms(use_true_random=False))
def test_rows_do_not_see_each_other(rows: list[list[float]], random) -> None:
    """Rows in another order give the same log-probs and entropies in that order."""
    order = list(range(len(rows)))
    random.shuffle(order)
    whole = log_distribution(double(rows))
    assert torch.equal(log_distribution(double(rows)[order]), whole[order])
    assert torch.equal(entropy(whole[order]), entropy(whole)[order])


@modest
@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(1, 8))
def test_a_draw_never_has_probability_0(seed: int, zeros: int, batch: int) -> None:
    """Zero-probability tokens may lead, trail or stand between; whatever is drawn has a finite log-prob."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(batch, 7, generator=generator)
    for row in logits:
        row[torch.randperm(7, generator=generator)[:zeros]] = -math.inf
    log_probs = log_distribution(logits)
    for _ in range(20):
        tokens = draw(log_probs, generator)
        assert pick(log_probs, tokens).isfinite().all()


# Numbers by hand


def test_the_temperature_is_in_the_log_probs() -> None:
    """O-29: logits (1, 0): -log(1 + e^-2) = -.126928 at T = .5, -log(1 + e^-1) = -.313262 at T = 1."""
    logits = torch.tensor([1.0, 0.0])
    cold, warm = log_distribution(logits, 0.5)[0].item(), log_distribution(logits)[0].item()
    assert cold == pytest.approx(-0.126928, abs=1e-5)
    assert warm == pytest.approx(-0.313262, abs=1e-5)
    assert math.exp(warm - cold) == pytest.approx(0.829997, abs=1e-5)


def test_one_allowed_token_is_certain_and_no_0_times_infinity_arises() -> None:
    """O-29: the top-1 filter as forbidden tokens: log-prob 0, entropy 0, draws of it only."""
    log_probs = log_distribution(torch.tensor([[3.0, 2.0, -1.0]]), 0.7, forbidden=(1, 2))
    assert log_probs.tolist() == [[0.0, -math.inf, -math.inf]]
    assert entropy(log_probs).tolist() == [0.0]
    assert draw(log_probs.expand(100, 3), torch.Generator().manual_seed(0)).tolist() == [0] * 100


def test_half_precision_is_raised_before_the_division() -> None:
    """(60000, -60000) / 0.5 overflows float16; in float32 it is a certain first token at distance 240,000."""
    log_probs = log_distribution(torch.tensor([60000.0, -60000.0], dtype=torch.float16), 0.5)
    assert log_probs.dtype == torch.float32
    # float16 holds 60000 exactly (a multiple of 32).
    assert log_probs.tolist() == [0.0, -240000.0]
    assert log_distribution(torch.zeros(3, dtype=torch.bfloat16)).dtype == torch.float32
    assert log_distribution(torch.zeros(3, dtype=torch.float64)).dtype == torch.float64


def test_pick_takes_the_entry_of_each_token() -> None:
    """Entry [row, time, token] of 0..11 laid out as 2 x 2 x 3 is 6 row + 3 time + token."""
    table = torch.arange(12.0).view(2, 2, 3)
    assert pick(table, torch.tensor([[2, 0], [1, 1]])).tolist() == [[2.0, 3.0], [7.0, 10.0]]


def test_an_impossible_row_is_not_made_up() -> None:
    """O-44: logits of minus infinity only have no distribution; the answer is NaN, for the caller's check to name."""
    assert log_distribution(torch.full((1, 3), -math.inf)).isnan().all()
    assert entropy(torch.tensor([[math.nan, math.nan], [0.0, -math.inf]])).isnan().tolist() == [True, False]


# Gradients


def test_log_probs_have_the_gradient_of_finite_differences() -> None:
    """Central differences in float64, with a temperature; the entropy too."""
    generator = torch.Generator().manual_seed(6)
    logits = torch.randn(3, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    tokens = torch.tensor([0, 3, 1])
    assert torch.autograd.gradcheck(lambda x: log_distribution(x, 0.7), (logits,))
    assert torch.autograd.gradcheck(lambda x: pick(log_distribution(x, 0.7), tokens), (logits,))
    assert torch.autograd.gradcheck(lambda x: entropy(log_distribution(x)), (logits,))


def test_the_gradient_of_a_picked_log_prob_is_the_token_minus_the_probabilities() -> None:
    """d log p(a) / d logits = (onehot(a) - p) / T; a forbidden token has gradient exactly 0."""
    logits = double([0.2, -0.4, 1.1, 5.0]).requires_grad_()
    pick(log_distribution(logits, 2.0, forbidden=(3,)), torch.tensor(0)).backward()
    weights = [math.exp(x / 2) for x in (0.2, -0.4, 1.1)]
    p = [w / sum(weights) for w in weights]
    assert_close(grad(logits), double([(1 - p[0]) / 2, -p[1] / 2, -p[2] / 2, 0.0]))
