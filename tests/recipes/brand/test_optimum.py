"""The head beside the optimum: what is the same, and what cannot be where pairs can be separated."""

import pytest
import torch
from torch import nn

from killick.recipes.brand.optimum import beside_the_optimum, decided
from killick.rewards.fit import FitConfig, FitState, fit
from killick.rewards.head import Head
from killick.types import Preference, Rollout


def problem(pairs: int, features: int) -> tuple[Head, Preference, Preference]:
    """A direction in noise: half of the pairs to learn from, half held out."""
    draws = torch.Generator().manual_seed(pairs)
    x = torch.randn(4 * pairs, features, generator=draws)
    ids = torch.arange(4 * pairs)[:, None]
    seen = torch.ones_like(ids, dtype=torch.bool)
    rollout = Rollout(torch.zeros_like(ids), seen, ids, seen, torch.zeros(ids.shape), seen[:, 0])
    better = x[:, 0] + torch.randn(4 * pairs, generator=draws)
    first, second = torch.arange(0, 4 * pairs, 2), torch.arange(1, 4 * pairs, 2)
    wins = better[first] > better[second]
    whole = Preference.hard(rollout, first.where(wins, second), second.where(wins, first))
    model = Head(lambda given: x[given.responses[:, 0]], nn.Linear(features, 1))
    return model, whole.pairs(slice(0, pairs)), whole.pairs(slice(pairs, None))


@pytest.mark.parametrize(("pairs", "features", "separable"), [(20, 40, True), (120, 4, False)])
def test_with_more_features_than_pairs_there_is_no_optimum_and_with_fewer_there_is(
    pairs: int, features: int, separable: bool
) -> None:
    """20 generic points in 40 dimensions lie on one side of some plane; 120 noisy ones in 4 do not."""
    model, learned, held = problem(pairs, features)
    config = FitConfig(steps=201, learning_rate=1e-2)
    list(fit(FitState(model, config, torch.Generator()), learned))
    found = beside_the_optimum(model, config, pairs=(learned, held))
    assert found["separable"] is separable
    fitted, free, adam, exact = found["optimum"]
    assert [row["way"] for row in found["optimum"]] == [
        "Adam, 201 steps", "L-BFGS", "Adam, l2 0.01, 1,000 steps", "L-BFGS, l2 0.01",
    ]  # fmt: skip
    assert fitted["agreement"] == 1
    assert adam["loss"] == pytest.approx(exact["loss"], abs=1e-4)
    assert adam["agreement"] == exact["agreement"]
    assert adam["squared"] == pytest.approx(exact["squared"], rel=1e-3)
    if separable:
        assert (free["learned_accuracy"], exact["learned_accuracy"]) == (1, 1)
        assert free["loss"] < 1e-6
        assert free["squared"] > 20 * exact["squared"]
    else:
        assert fitted["loss"] == pytest.approx(free["loss"], abs=0.02)
        assert fitted["agreement"] >= 0.95


def test_decisions_are_counted() -> None:
    """Weights (1, 0) on differences (1, 0), (-1, 5): loss (softplus(-1) + softplus(1)) / 2 = .813262; half right. Held
    out (2, 1), (1, -3): both right; beside weights (1, 1) only the first is decided alike."""
    learned, held = torch.tensor([[1.0, 0.0], [-1.0, 5.0]]), torch.tensor([[2.0, 1.0], [1.0, -3.0]])
    found = decided(torch.tensor([1.0, 0.0]).double(), learned, held=held, fitted=torch.tensor([1.0, 1.0]).double())
    assert found["loss"] == pytest.approx(0.813262, abs=1e-6)
    assert {name: found[name] for name in ("squared", "learned_accuracy", "accuracy", "agreement")} == {
        "squared": 1, "learned_accuracy": 0.5, "accuracy": 1, "agreement": 0.5,
    }  # fmt: skip


def test_a_tie_is_half_right_as_in_the_table_beside() -> None:
    """Weights (1, 0) see no difference in (0, 3): of two pairs one is right and one is tied, .75."""
    pairs = torch.tensor([[1.0, 0.0], [0.0, 3.0]])
    found = decided(torch.tensor([1.0, 0.0]).double(), pairs, held=pairs, fitted=torch.tensor([1.0, 0.0]).double())
    assert (found["learned_accuracy"], found["accuracy"]) == (0.75, 0.75)
