"""Losses of PPO: clip tables by hand, the critic's error, likelihood, gradients by finite differences."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from killick.ops.losses import clipped, negative_log_likelihood, ppo_clip, value_loss
from killick.ops.masked import masked_mean

modest = settings(max_examples=30, deadline=None, derandomize=True)


def double(numbers) -> Tensor:
    """A float64 tensor."""
    return torch.tensor(numbers, dtype=torch.float64)


def grad(leaf: Tensor) -> Tensor:
    """What backward left on a leaf."""
    assert leaf.grad is not None
    return leaf.grad


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
    got = ppo_clip(log_ratio, torch.tensor([advantage]), clip_range=0.2)
    got.backward()
    assert got.item() == pytest.approx(loss, abs=1e-5)
    assert grad(log_ratio).item() == pytest.approx(gradient, abs=1e-5)
    assert clipped(log_ratio.detach(), torch.tensor([advantage]), clip_range=0.2).item() == (gradient == 0)


def test_a_ratio_of_e_to_the_200_gives_finite_losses_and_gradients() -> None:
    """O-30: -1.2 and .8 where the clip holds; e^20 and -e^-20 where it does not, the log-ratio bounded to 20."""
    log_ratio = torch.tensor([200.0, 200.0, -200.0, -200.0], requires_grad=True)
    losses = ppo_clip(log_ratio, torch.tensor([1.0, -1.0, 1.0, -1.0]), clip_range=0.2)
    losses.sum().backward()
    assert losses.tolist() == pytest.approx([-1.2, math.exp(20), 0.0, 0.8], rel=1e-5, abs=1e-5)
    assert grad(log_ratio).tolist() == [0.0, 0.0, 0.0, 0.0]


def test_at_a_ratio_of_1_the_loss_is_minus_the_advantage_and_nothing_is_clipped() -> None:
    """O-28: gradient -A with respect to the log-ratio, for both signs and any clip range."""
    for clip_range in (0.0, 0.1, 0.2):
        advantages = torch.tensor([2.0, -0.5, 0.0])
        log_ratio = torch.zeros(3, requires_grad=True)
        losses = ppo_clip(log_ratio, advantages, clip_range=clip_range)
        losses.sum().backward()
        assert losses.tolist() == [-2.0, 0.5, 0.0]
        assert grad(log_ratio).tolist() == [-2.0, 0.5, 0.0]
        assert not clipped(torch.zeros(3), advantages, clip_range=clip_range).any()


def test_at_a_ratio_of_1_the_gradient_is_reinforces() -> None:
    """In logits: -A (onehot(token) - p), written out from the softmax, where old is the policy itself."""
    logits = double([[0.3, -1.0, 0.8], [2.0, 0.0, -0.5]]).requires_grad_()
    tokens, advantages = torch.tensor([2, 1]), double([1.5, -0.7])
    log_probs = logits.log_softmax(-1).gather(1, tokens[:, None])[:, 0]
    ppo_clip(log_probs - log_probs.detach(), advantages, clip_range=0.2).sum().backward()
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
    assert_close(ppo_clip(log_ratio, advantages, clip_range=clip_range), double(expected), rtol=1e-9, atol=1e-12)
    assert clipped(log_ratio, advantages, clip_range=clip_range).tolist() == stopped


@modest
@given(st.floats(-1e5, 1e5, width=32), st.floats(-5, 5, width=32))
def test_any_float32_log_ratio_has_a_finite_loss_and_gradient(d: float, advantage: float) -> None:
    """O-30: over the whole range, on both sides."""
    log_ratio = torch.tensor([d], requires_grad=True)
    loss = ppo_clip(log_ratio, torch.tensor([advantage]), clip_range=0.2)
    loss.backward()
    assert loss.isfinite()
    assert grad(log_ratio).isfinite()


def test_an_advantage_of_0_is_never_counted_as_clipped() -> None:
    """Nothing pushes, so nothing is stopped, however far the ratio has gone."""
    assert not clipped(torch.tensor([-3.0, 0.0, 3.0, 300.0]), torch.zeros(4), clip_range=0.2).any()


@modest
@given(st.sampled_from([0.0, 300.0, -math.inf, math.inf, math.nan]), st.sampled_from([0.0, 1e9, math.nan]))
def test_padding_changes_neither_the_masked_loss_nor_its_gradient(d: float, a: float) -> None:
    """O-24: the mean over two real tokens is (-1.1 + .8) / 2 whatever stands behind them."""
    log_ratio = double([[math.log(1.1), math.log(0.5), 0.0, 0.0]]).requires_grad_()
    mask = torch.tensor([[True, True, False, False]])
    shown = torch.where(mask, log_ratio, d)
    loss = masked_mean(ppo_clip(shown, torch.where(mask, double([[1.0, -1.0, 0.0, 0.0]]), a), clip_range=0.2), mask)
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
    got = value_loss(values, torch.tensor([target]), old=torch.tensor([old]), clip_range=0.5)
    got.backward()
    assert got.item() == pytest.approx(loss, abs=1e-5)
    assert grad(values).item() == pytest.approx(gradient, abs=1e-5)


def test_without_a_range_the_value_loss_is_half_the_squared_error() -> None:
    """O-32: old readings alone clip nothing; (2 - 9)^2 / 2 and (6 - 9)^2 / 2."""
    values, target, old = torch.tensor([2.0, 6.0]), torch.tensor([9.0, 9.0]), torch.tensor([6.0, 2.0])
    assert value_loss(values, target).tolist() == [24.5, 4.5]
    assert value_loss(values, target, old=old).tolist() == [24.5, 4.5]
    assert value_loss(values, target, old=old, clip_range=None).tolist() == [24.5, 4.5]


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
    got = value_loss(values, targets, old=old, clip_range=clip_range)
    assert_close(got, double(expected), rtol=1e-9, atol=1e-9)
    if clip_range == 50.0:
        assert_close(got, double([(v - r) ** 2 / 2 for v, r, _ in rows]), rtol=1e-9, atol=1e-9)


# Likelihood, and PPO with a supervised term


def test_the_likelihood_loss_of_a_response_is_minus_its_log_probability() -> None:
    """O-20: probabilities .5, .25 and .8 for (11, 12, end): -log(.1) over the three real tokens, end included."""
    log_probs = double([[0.5, 0.25, 0.8, 0.1, 0.1]]).log()
    mask = torch.tensor([[True, True, True, False, False]])
    assert negative_log_likelihood(log_probs, mask).item() == pytest.approx(-math.log(0.1) / 3, abs=1e-12)
    wild = torch.where(mask, log_probs, math.nan)
    assert negative_log_likelihood(wild, mask).item() == negative_log_likelihood(log_probs, mask).item()


def test_a_long_response_weighs_more_than_a_short_one() -> None:
    """Log-probs (-1, -2, -3) and (-6): 12 nats over four tokens are 3 each, not the mean 4 of the two rows' means."""
    log_probs = double([[-1.0, -2.0, -3.0], [-6.0, 0.0, 0.0]])
    mask = torch.tensor([[True, True, True], [True, False, False]])
    assert negative_log_likelihood(log_probs, mask).item() == 3.0


@pytest.mark.parametrize("coefficient", [0.0, 1.0, 2.0])
def test_the_supervised_term_adds_its_own_gradient(coefficient: float) -> None:
    """O-42: over three tokens PPO at ratio 1 gives -A / 3 and likelihood -1 / 3; with A = 0 the latter alone."""
    advantages, mask = double([[1.5, -0.5, 0.0]]), torch.ones(1, 3, dtype=torch.bool)
    log_probs = double([[-1.0, -2.0, -0.3]]).requires_grad_()
    ppo = ppo_clip(log_probs - log_probs.detach(), advantages, clip_range=0.2).mean()
    (ppo + coefficient * negative_log_likelihood(log_probs, mask)).backward()
    assert_close(grad(log_probs), (-advantages - coefficient) / 3)


# Gradients


def test_every_loss_has_the_gradient_of_finite_differences() -> None:
    """Central differences in float64, at points away from the kinks of max and clip."""
    generator = torch.Generator().manual_seed(41)
    first, second = (torch.randn(2, 3, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2))
    mask = torch.tensor([[True, True, False], [True, False, False]])
    assert torch.autograd.gradcheck(lambda x: negative_log_likelihood(x, mask), (first,))
    assert torch.autograd.gradcheck(lambda v, r: value_loss(v, r), (first, second))
    log_ratio = double([-1.0, -0.3, -0.1, 0.1, 0.3, 1.0]).requires_grad_()
    for advantages in (double([1.0, 2.0, 0.5, 1.0, 2.0, 0.5]), double([-1.0, -2.0, -0.5, -1.0, -2.0, -0.5])):
        assert torch.autograd.gradcheck(lambda d, a=advantages: ppo_clip(d, a, clip_range=0.2), (log_ratio,))
    values = double([2.0, 6.0, 4.0, 0.0, -3.0]).requires_grad_()
    old, target = double([6.0, 2.0, 3.8, 0.3, 1.0]), double([9.0, 9.0, 3.0, 5.0, 0.5])
    assert torch.autograd.gradcheck(lambda v: value_loss(v, target, old=old, clip_range=0.5), (values,))
