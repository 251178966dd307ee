"""The two tables of the exact leash, and what makes a table one."""

import pytest
import torch

from killick.types import Refusal
from killick.worlds.listed import FIVE, TWO, AnswerTable, numbers


def test_both_tables_are_distributions_and_the_reference_has_the_gold_of_the_source() -> None:
    """.3 + .245 - .075 - .12 = .35 from the first four; the last adds 1.6 or -1, times .05."""
    for table in (TWO, FIVE):
        assert float(table.reference.sum()) == pytest.approx(1, abs=1e-15)
        assert table.reference.dtype == torch.float64
    assert FIVE.gold is not None
    assert (float(FIVE.reference @ FIVE.reward), float(FIVE.reference @ FIVE.gold)) == pytest.approx((0.43, 0.30))


def test_the_gaming_answers_are_those_whose_reward_is_above_their_gold_unless_someone_marked_them() -> None:
    assert FIVE.gaming is not None
    assert FIVE.gaming.tolist() == [False, False, False, False, True]
    assert "above its gold" in FIVE.rule
    assert TWO.gaming is None
    assert "nobody knows" in TWO.rule
    marked = AnswerTable(("a", "b"), numbers(0.5, 0.5), numbers(1, 2), numbers(0, 3), torch.tensor([False, True]))
    assert marked.gaming is not None
    assert marked.gaming.tolist() == [False, True]
    assert "column gaming" in marked.rule


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_answers_are_no_choice(count: int) -> None:
    with pytest.raises(Refusal, match="two answers or more"):
        AnswerTable(("a",) * count, numbers(*[1.0] * count), numbers(*[1.0] * count))


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(Refusal, match="one length"):
        AnswerTable(("a", "b", "c"), numbers(0.5, 0.5), numbers(1, 2))
