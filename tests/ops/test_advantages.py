"""From scores and values to advantages: sums written out, and loops in plain Python as oracles."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from killick.ops.advantages import (
    batch_mean,
    gae,
    group_mean,
    leave_one_out,
    penalised_rewards,
    place_score,
    returns,
)

modest = settings(max_examples=30, deadline=None, derandomize=True)
pairs = st.tuples(st.floats(-10, 10), st.floats(-10, 10))
ragged = st.lists(st.lists(pairs, min_size=1, max_size=6), min_size=1, max_size=4)
junk = st.sampled_from([0.0, 50.0, -1e30, math.inf, -math.inf, math.nan])
discounts = st.floats(0, 1)
groups = st.integers(2, 5).flatmap(
    lambda n: st.lists(st.lists(st.floats(-10, 10), min_size=n, max_size=n), min_size=1, max_size=4)
)


def double(numbers) -> Tensor:
    """A float64 tensor."""
    return torch.tensor(numbers, dtype=torch.float64)


def padded(rows: list[list[float]], fill: float = 0.0, extra: int = 2) -> tuple[Tensor, Tensor]:
    """Rows of unlike length on the left of a rectangle filled with `fill`, and where they are."""
    width = max(map(len, rows)) + extra
    values = torch.full((len(rows), width), fill, dtype=torch.float64)
    mask = torch.zeros(len(rows), width, dtype=torch.bool)
    for row, numbers in enumerate(rows):
        values[row, : len(numbers)] = double(numbers)
        mask[row, : len(numbers)] = True
    return values, mask


def halves(rows: list[list[tuple[float, float]]]) -> tuple[list[list[float]], list[list[float]]]:
    """Rows of pairs as two lists of rows."""
    return [[a for a, _ in row] for row in rows], [[b for _, b in row] for row in rows]


def backward_gae(rewards: list[float], values: list[float], gamma: float, gae_lambda: float) -> list[float]:
    """The textbook recursion, last token first, with a terminal value of 0."""
    advantages, running = [], 0.0
    for t in reversed(range(len(rewards))):
        following = values[t + 1] if t + 1 < len(values) else 0.0
        running = rewards[t] + gamma * following - values[t] + gamma * gae_lambda * running
        advantages.append(running)
    return advantages[::-1]


def grad(leaf: Tensor) -> Tensor:
    """What backward left on a leaf."""
    assert leaf.grad is not None
    return leaf.grad


# Closed forms


def test_a_constant_reward_of_1_has_the_geometric_return() -> None:
    """At the k-th token from the end the return is (1 - gamma^k) / (1 - gamma), or k where gamma is 1."""
    rewards, mask = padded([[1.0] * 5], extra=0)
    assert_close(returns(rewards, mask, gamma=0.5), double([[1.9375, 1.875, 1.75, 1.5, 1.0]]))
    assert_close(returns(rewards, mask), double([[5.0, 4.0, 3.0, 2.0, 1.0]]))


def test_the_return_discounts_nothing_unless_asked() -> None:
    """gamma is 1 by default: a score on the last token is the return at every token."""
    rewards, mask = padded([[0.0, 0.0, 0.0, 2.5]])
    assert returns(rewards, mask)[0, :4].tolist() == [2.5] * 4


def test_a_discount_of_0_keeps_each_token_to_itself() -> None:
    """0^0 is 1 and every later power is 0."""
    values, mask = padded([[3.0, -1.0, 4.0]], fill=9.0)
    assert returns(values, mask, gamma=0.0).tolist() == [[3.0, -1.0, 4.0, 0.0, 0.0]]


def test_an_exact_critic_leaves_advantages_of_0() -> None:
    """Where values are the true returns every temporal difference is 0, at any lambda."""
    gamma = 0.9
    rewards, mask = padded([[1.0, -2.0, 0.5], [3.0]])
    exact, _ = padded([[1.0 + gamma * (-2.0 + gamma * 0.5), -2.0 + gamma * 0.5, 0.5], [3.0]], fill=77.0)
    for gae_lambda in (0.0, 0.5, 1.0):
        assert_close(gae(rewards, exact, mask=mask, gamma=gamma, gae_lambda=gae_lambda), torch.zeros_like(rewards))


def test_padding_before_and_between_real_tokens_adds_nothing_and_gets_0() -> None:
    """(x, 1, x, 2) at discount .5: 1 + .25 * 2 = 1.5 at the second place, 2 at the last."""
    values = double([[math.nan, 1.0, math.inf, 2.0]])
    mask = torch.tensor([[False, True, False, True]])
    assert returns(values, mask, gamma=0.5).tolist() == [[0.0, 1.5, 0.0, 2.0]]


# Invariants


@modest
@given(ragged, discounts, junk)
def test_a_return_is_the_plain_loop_over_real_tokens(
    rows: list[list[tuple[float, float]]], discount: float, fill: float
) -> None:
    """sum over s >= t of discount^(s - t) value[s], and 0 on the padding whatever it holds."""
    numbers, _ = halves(rows)
    values, mask = padded(numbers, fill)
    expected = [
        [math.fsum(discount ** (s - t) * row[s] for s in range(t, len(row))) for t in range(len(row))]
        for row in numbers
    ]
    assert_close(returns(values, mask, gamma=discount), padded(expected)[0], rtol=1e-9, atol=1e-9)


@modest
@given(ragged, discounts, discounts, junk, junk)
def test_gae_is_the_backward_recursion_and_never_reads_padding(
    rows: list[list[tuple[float, float]]], gamma: float, gae_lambda: float, first: float, second: float
) -> None:
    """O-26: rewards and values on the padding may be NaN or infinite."""
    reward_rows, value_rows = halves(rows)
    rewards, mask = padded(reward_rows, first)
    values, _ = padded(value_rows, second)
    expected = [backward_gae(r, v, gamma, gae_lambda) for r, v in zip(reward_rows, value_rows, strict=True)]
    assert_close(
        gae(rewards, values, mask=mask, gamma=gamma, gae_lambda=gae_lambda), padded(expected)[0], rtol=1e-9, atol=1e-9
    )


@modest
@given(ragged)
def test_gae_at_lambda_and_gamma_1_is_the_monte_carlo_return_minus_the_value(
    rows: list[list[tuple[float, float]]],
) -> None:
    """The values between cancel: what remains is the sum of rewards to the end less one value."""
    reward_rows, value_rows = halves(rows)
    (rewards, mask), (values, _) = padded(reward_rows), padded(value_rows, math.nan)
    expected = [[math.fsum(r[t:]) - v[t] for t in range(len(r))] for r, v in zip(reward_rows, value_rows, strict=True)]
    assert_close(gae(rewards, values, mask=mask, gamma=1.0, gae_lambda=1.0), padded(expected)[0], rtol=1e-9, atol=1e-9)


@modest
@given(ragged, st.floats(-5, 5), st.floats(0, 2))
def test_the_return_is_the_score_minus_beta_times_the_remaining_log_ratio(
    rows: list[list[tuple[float, float]]], score: float, beta: float
) -> None:
    """With the score on the last real token and no discount, at every real token."""
    ratio_rows, _ = halves(rows)
    log_ratio, mask = padded(ratio_rows, math.nan)
    scores = score + torch.arange(len(rows), dtype=torch.float64)
    got = returns(penalised_rewards(scores, log_ratio, mask=mask, beta=beta), mask)
    expected = [[score + i - beta * math.fsum(row[t:]) for t in range(len(row))] for i, row in enumerate(ratio_rows)]
    assert_close(got, padded(expected)[0], rtol=1e-9, atol=1e-9)


@modest
@given(ragged, junk, st.integers(0, 4))
def test_a_score_stands_once_in_each_row_whatever_the_width(
    rows: list[list[tuple[float, float]]], fill: float, extra: int
) -> None:
    """O-21: the last real column holds it, and sums over a row give it back."""
    ratio_rows, _ = halves(rows)
    log_ratio, mask = padded(ratio_rows, fill, extra)
    scores = torch.arange(1, len(rows) + 1, dtype=torch.float64)
    placed = place_score(scores, mask)
    assert torch.equal(placed.sum(1), scores)
    assert [placed[i, len(row) - 1].item() for i, row in enumerate(rows)] == scores.tolist()
    rewards = penalised_rewards(scores, log_ratio, mask=mask, beta=0.5)
    assert (rewards[~mask] == 0).all()
    assert rewards.isfinite().all()


@modest
@given(ragged, st.randoms(use_true_random=False))
def test_rows_do_not_see_each_other(rows: list[list[tuple[float, float]]], random) -> None:
    """Rows in another order give the same advantages in that order."""
    reward_rows, value_rows = halves(rows)
    (rewards, mask), (values, _) = padded(reward_rows), padded(value_rows)
    order = list(range(len(rows)))
    random.shuffle(order)
    assert_close(gae(rewards[order], values[order], mask=mask[order]), gae(rewards, values, mask=mask)[order])


@modest
@given(groups)
def test_baselines_are_plain_means_over_the_rows_own_prompt(rows: list[list[float]]) -> None:
    """Means of a group, of its other members, and of everything, by lists."""
    n, scores = len(rows[0]), double(rows).flatten()
    own = [math.fsum(row) / n for row in rows for _ in row]
    others = [math.fsum(row[:i] + row[i + 1 :]) / (n - 1) for row in rows for i in range(n)]
    everything = math.fsum(score for row in rows for score in row) / len(scores)
    assert_close(group_mean(scores, n), double(own), rtol=1e-9, atol=1e-9)
    assert_close(leave_one_out(scores, n), double(others), rtol=1e-9, atol=1e-9)
    assert_close(batch_mean(scores), double([everything] * len(scores)), rtol=1e-9, atol=1e-9)


@modest
@given(groups, st.floats(-10, 10))
def test_a_leave_one_out_baseline_does_not_read_its_own_row(rows: list[list[float]], change: float) -> None:
    """Which is what keeps it unbiased: moving one score moves every other baseline of its group, not its own."""
    n, scores = len(rows[0]), double(rows).flatten()
    moved = scores.clone()
    moved[0] += change
    expected = torch.zeros_like(scores)
    expected[1:n] = change / (n - 1)
    assert_close(leave_one_out(moved, n) - leave_one_out(scores, n), expected, rtol=1e-9, atol=1e-9)


# Numbers by hand


def test_the_score_lands_on_the_end_token_before_two_pads() -> None:
    """O-21: log-ratio (.1, -.3, 0) at beta .1 charges (-.01, .03, 0), plus 1.5 at the third token: sum 1.52."""
    policy = torch.tensor([[-0.2, -1.0, -0.5, 0.0, 0.0]])
    reference = torch.tensor([[-0.3, -0.7, -0.5, -5.0, -5.0]])
    mask = torch.tensor([[True, True, True, False, False]])
    rewards = penalised_rewards(torch.tensor([1.5]), policy - reference, mask=mask, beta=0.1)
    assert_close(rewards, torch.tensor([[-0.01, 0.03, 1.5, 0.0, 0.0]]), rtol=0, atol=1e-5)
    assert rewards.sum().item() == pytest.approx(1.52, abs=1e-5)


def test_a_full_width_answer_has_its_score_in_the_last_column() -> None:
    """O-21: width 3, and a one-token answer beside it (O-43: [EOS] alone is a valid answer)."""
    mask = torch.tensor([[True, True, True], [True, False, False]])
    placed = place_score(torch.tensor([1.5, -0.2]), mask)
    assert_close(placed, torch.tensor([[0.0, 0.0, 1.5], [-0.2, 0.0, 0.0]]), rtol=0, atol=0)


def test_the_end_token_counts_although_it_is_the_pad_token_too() -> None:
    """O-20: ids (11, 12, 2, 2, 2) with end = pad = 2 have mask (1, 1, 1, 0, 0): the score sits on the first 2."""
    mask = torch.tensor([[True, True, True, False, False]])
    assert place_score(torch.tensor([0.8]), mask)[0].nonzero().flatten().tolist() == [2]


def test_padding_does_not_enter_the_charged_kl() -> None:
    """O-24: log-ratio (.2, -1, 0) sums to -.8; with pads of 0 against -5 it would be 9.2."""
    log_ratio = torch.tensor([[0.2, -1.0, 0.0, 5.0, 5.0]])
    mask = torch.tensor([[True, True, True, False, False]])
    rewards = penalised_rewards(torch.tensor([0.0]), log_ratio, mask=mask, beta=1.0)
    assert rewards.sum().item() == pytest.approx(0.8, abs=1e-5)


def test_a_row_without_a_real_token_is_refused_by_its_number() -> None:
    """O-21 and O-43: index -1 never happens."""
    mask = torch.tensor([[True, False], [False, False], [True, True]])
    with pytest.raises(ValueError, match="Row 1 "):
        place_score(torch.tensor([1.0, 2.0, 3.0]), mask)


@pytest.mark.parametrize(
    ("gamma", "gae_lambda", "expected"),
    [
        # Differences: 0 + .4 - .5 = -.1; 0 + .3 - .4 = -.1; 1 - .3 = .7. Then -.1 + .95 (-.1 + .95 * .7), and so on.
        (1.0, 0.95, [0.43675, 0.565, 0.7, 0.0]),
        (1.0, 1.0, [0.5, 0.6, 0.7, 0.0]),
        (1.0, 0.0, [-0.1, -0.1, 0.7, 0.0]),
        # Differences with gamma .9: -.14, -.13, .7; weights .72: .374 = -.13 + .72 * .7; .12928 = -.14 + .72 * .374.
        (0.9, 0.8, [0.12928, 0.374, 0.7, 0.0]),
    ],
)
def test_a_value_on_the_padding_is_no_bootstrap(gamma: float, gae_lambda: float, expected: list[float]) -> None:
    """O-26: 50 stands on the padding; reading it would start the row with 2.693 or worse."""
    rewards = torch.tensor([[0.0, 0.0, 1.0, 0.0]])
    values = torch.tensor([[0.5, 0.4, 0.3, 50.0]])
    mask = torch.tensor([[True, True, True, False]])
    got = gae(rewards, values, mask=mask, gamma=gamma, gae_lambda=gae_lambda)
    assert_close(got, torch.tensor([expected]), rtol=0, atol=1e-5)


def test_the_critics_target_is_advantage_plus_value() -> None:
    """O-26: at the defaults gamma 1 and lambda .95, (.43675, .565, .7) + (.5, .4, .3) = (.93675, .965, 1)."""
    rewards, values = torch.tensor([[0.0, 0.0, 1.0]]), torch.tensor([[0.5, 0.4, 0.3]])
    mask = torch.ones(1, 3, dtype=torch.bool)
    target = gae(rewards, values, mask=mask) + values
    assert_close(target, torch.tensor([[0.93675, 0.965, 1.0]]), rtol=0, atol=1e-5)


def test_one_token_has_reward_minus_value() -> None:
    """O-26: 1.2 - 0.7 = 0.5."""
    got = gae(torch.tensor([[1.2]]), torch.tensor([[0.7]]), mask=torch.ones(1, 1, dtype=torch.bool))
    assert got.item() == pytest.approx(0.5, abs=1e-6)


def test_an_answer_never_pays_for_the_next_ones_value() -> None:
    """O-27: lengths 1 and 2 with rewards (1 | 0, 2) and values (.5 | .2, .4), gamma = lambda = 1."""
    # 1 - .5 = .5, then 2 - .2 = 1.8 and 2 - .4 = 1.6; paying for the second answer would give the first one 2.5.
    rewards = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    values = torch.tensor([[0.5, 0.0], [0.2, 0.4]])
    mask = torch.tensor([[True, False], [True, True]])
    together = gae(rewards, values, mask=mask, gamma=1.0, gae_lambda=1.0)
    assert_close(together, torch.tensor([[0.5, 0.0], [1.8, 1.6]]), rtol=0, atol=1e-5)
    alone = gae(rewards[1:], values[1:], mask=mask[1:], gamma=1.0, gae_lambda=1.0)
    assert torch.equal(together[1:], alone)


def test_baselines_of_two_prompts_with_three_answers() -> None:
    """(1, 2, 6 | 0, 0, 3): group means 3 and 1; others (2 + 6) / 2 = 4, 3.5, 1.5 and 1.5, 1.5, 0; all 12 / 6 = 2."""
    scores = torch.tensor([1.0, 2.0, 6.0, 0.0, 0.0, 3.0])
    assert group_mean(scores, 3).tolist() == [3.0, 3.0, 3.0, 1.0, 1.0, 1.0]
    assert leave_one_out(scores, 3).tolist() == [4.0, 3.5, 1.5, 1.5, 1.5, 0.0]
    assert batch_mean(scores).tolist() == [2.0] * 6


def test_leave_one_out_needs_a_second_answer() -> None:
    """n = 1 is refused with the number that was given; n = 2 swaps the pair."""
    with pytest.raises(ValueError, match="not 1"):
        leave_one_out(torch.tensor([1.0, 2.0]), 1)
    assert leave_one_out(torch.tensor([1.0, 2.0, 5.0, 7.0]), 2).tolist() == [2.0, 1.0, 7.0, 5.0]


# Precision and gradients


def test_a_long_answer_keeps_its_digits_in_float32() -> None:
    """2,000 rewards of a thousandth sum to 2 at the first token."""
    rewards, mask = torch.full((1, 2000), 1e-3), torch.ones(1, 2000, dtype=torch.bool)
    got = returns(rewards, mask)
    assert got.dtype == torch.float32
    assert got[0, 0].item() == pytest.approx(2.0, abs=1e-5)


def test_advantages_have_the_gradient_of_finite_differences() -> None:
    """They are linear in rewards, values and scores; padding has gradient exactly 0."""
    generator = torch.Generator().manual_seed(31)
    rewards, values = (
        torch.randn(2, 4, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2)
    )
    scores = torch.randn(2, generator=generator, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, True, True], [True, True, False, False]])
    assert torch.autograd.gradcheck(lambda r, v: gae(r, v, mask=mask, gamma=0.9, gae_lambda=0.7), (rewards, values))
    assert torch.autograd.gradcheck(lambda s, r: penalised_rewards(s, r, mask=mask, beta=0.3), (scores, rewards))
    gae(rewards, values, mask=mask).sum().backward()
    assert (grad(rewards)[~mask] == 0).all()
    assert (grad(values)[~mask] == 0).all()
