"""Choosing among variants: the winner, its ties, and the curve over the prompts that can give it."""

import pytest
import torch

from killick.recipes.best_of.candidates import Pool
from killick.recipes.best_of.recipe import choices, curve, overall, reach
from killick.types import Refusal

POOLS = [Pool("p", ("a", "b", "c", "d"), (2, 3, 4, 5)), Pool("q", ("e", "f"), (6, 7))]
SCORES = [torch.tensor([1.0, 3.0, 3.0, 0.0]).double(), torch.tensor([2.0, 1.0]).double()]
GOLDS = [torch.tensor([5.0, 1.0, 0.0, 9.0]).double(), torch.tensor([0.0, 4.0]).double()]


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_the_first_of_the_best_is_kept_and_ties_are_told() -> None:
    first, second = choices(POOLS, SCORES, golds=GOLDS)
    assert (first.winner, first.tied) == (1, 1)
    assert first.row() == {
        "prompt": "p", "response": "b", "line": 3, "reward": 3, "tied": 1, "responses": 4, "reward_first": 1,
        "reward_mean": 1.75, "gold": 1, "gold_first": 5, "gold_mean": 3.75,
    }  # fmt: skip
    assert (second.winner, second.tied, second.row()["gold"]) == (0, 0, 0)
    assert "gold" not in choices(POOLS, SCORES, golds=None)[0].row()


def test_over_all_prompts_first_mean_and_best() -> None:
    """First (1 + 2)/2, mean (1.75 + 1.5)/2, best (3 + 2)/2; gold (5 + 0)/2, (3.75 + 2)/2, (1 + 0)/2."""
    rows = [choice.row() for choice in choices(POOLS, SCORES, golds=GOLDS)]
    assert overall(rows) == [("first", 1.5, 2.5), ("mean", 1.625, 2.875), ("best", 2.5, 0.5)]
    assert overall([choice.row() for choice in choices(POOLS, SCORES, golds=None)])[2] == ("best", 2.5, None)


@pytest.mark.parametrize(
    ("sizes", "ns"), [([1], [1]), ([4, 4, 4], [1, 2, 4]), ([2, 8, 9], [1, 2, 4, 8]), ([3, 70], [1, 2])]
)
def test_the_curve_goes_as_far_as_half_of_the_prompts_do(sizes: list[int], ns: list[int]) -> None:
    assert reach(sizes) == ns


def test_the_curve_is_over_the_same_prompts_at_every_n() -> None:
    """At n = 4 only the first prompt has responses enough; at n = 2 both: (3 + 3 + 3 + 3 + 3 + 1)/6 and 2."""
    made = choices(POOLS, SCORES, golds=GOLDS)
    along = curve(made, ns=[1, 4], generator=seeded())
    assert along.prompts == 1
    assert [point.proxy for point in along.points] == pytest.approx([1.75, 3])
    assert [point.gold for point in along.points] == pytest.approx([3.75, 0.5])
    assert (along.top, along.turns) == (1, False)  # of one prompt nothing is sure
    along = curve(made, ns=[2], generator=seeded())
    assert along.prompts == 2
    assert along.points[0].proxy == pytest.approx((16 / 6 + 2) / 2)
    assert curve(choices(POOLS, SCORES, golds=None), ns=[2], generator=seeded()).top is None


def test_an_n_beyond_every_pool_is_refused() -> None:
    with pytest.raises(Refusal, match="--ns goes to 5, but no prompt has more than 4"):
        curve(choices(POOLS, SCORES, golds=None), ns=[5], generator=seeded())
