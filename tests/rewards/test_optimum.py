"""The optimum of a linear head: closed forms, the gradient, Adam's agreement, and what separable pairs do."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from killick.ops.losses import bradley_terry
from killick.rewards.fit import FitConfig, FitState, fit
from killick.rewards.head import Head
from killick.rewards.optimum import optimum, separated
from killick.types import Preference, Refusal, Rollout

modest = settings(max_examples=15, deadline=None, derandomize=True)


def test_three_of_four_pairs_one_way_is_the_logarithm_of_three() -> None:
    """One feature, differences 1, 1, 1, -1: sigma(w) = 3/4 at the optimum, so w = log 3 = 1.098612."""
    found = optimum(torch.tensor([[1.0], [1.0], [1.0], [-1.0]]), l2=0)
    assert_close(found, torch.tensor([math.log(3)], dtype=torch.float64), atol=1e-7, rtol=0)


def test_a_penalty_holds_separable_pairs_at_the_root_of_its_equation() -> None:
    """One pair with difference 1: sigma(-w) = 2 l2 w. With l2 = sigma(-1) / 2 = .134471 the root is w = 1."""
    l2 = 1 / (1 + math.e) / 2
    assert_close(optimum(torch.ones(1, 1), l2=l2), torch.ones(1, dtype=torch.float64), atol=1e-7, rtol=0)


def test_weights_that_put_every_pair_right_prove_that_pairs_are_separable() -> None:
    """The first set can be separated by (1, 1) and by no weight of (1, -1)'s sign; of w and -w only one is right."""
    easy = torch.tensor([[1.0, 0.5], [-0.5, 1.0]])
    assert separated(easy, torch.tensor([1.0, 1.0]))
    assert not separated(easy, torch.tensor([1.0, -1.0]))
    assert separated(easy, optimum(easy, l2=0))
    hard = torch.tensor([[1.0], [-1.0]])
    assert not separated(hard, optimum(hard, l2=0))


@modest
@given(st.integers(0, 10_000), st.sampled_from([0.3, 0.01, 0.001]))
def test_the_gradient_vanishes_at_the_optimum(seed: int, l2: float) -> None:
    x = torch.randn(30, 8, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    found = optimum(x, l2=l2).requires_grad_()
    (bradley_terry(x @ found, torch.zeros(30, dtype=torch.float64)).mean() + l2 * found.square().sum()).backward()
    assert found.grad is not None
    assert float(found.grad.abs().max()) < 1e-7


def test_adam_with_the_same_penalty_ends_at_the_same_weights() -> None:
    """40 pairs of 10 features with a noisy direction; 4,000 full-batch steps, equal to 1e-4."""
    generator = torch.Generator().manual_seed(3)
    features = torch.randn(80, 10, generator=generator)
    ids = torch.arange(80)[:, None]
    seen = torch.ones_like(ids, dtype=torch.bool)
    rollout = Rollout(torch.zeros_like(ids), seen, ids, seen, torch.zeros(ids.shape), seen[:, 0])
    pairs = Preference.hard(rollout, torch.arange(0, 80, 2), torch.arange(1, 80, 2))
    head = Head(lambda given: features[given.responses[:, 0]], nn.Linear(10, 1))
    list(fit(FitState(head, FitConfig(steps=4000, learning_rate=0.01, l2=0.05), generator), pairs))
    found = optimum(features[::2] - features[1::2], l2=0.05)
    assert_close(head.state_dict()["network.weight"][0].double(), found, atol=1e-4, rtol=0)


@pytest.mark.parametrize("l2", [-0.1, float("nan"), float("inf")])
def test_a_penalty_that_cannot_be_is_refused(l2: float) -> None:
    with pytest.raises(Refusal, match="l2 of 0 or more"):
        optimum(torch.ones(1, 1), l2=l2)
