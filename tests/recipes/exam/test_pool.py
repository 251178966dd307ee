"""Facts of a policy's answers, by hand."""

import pytest
import torch

from killick.recipes.exam.pool import labelled_reach, length_in_pool, slope_facts, spread_facts


def test_spread_within_and_between_prompts_by_hand() -> None:
    """Rows 0, 2 and 10, 12: variance within 2; of the means 1 and 11 it is 50, less 2 / 2: 49."""
    found = spread_facts([[0.0, 2.0], [10.0, 12.0]])
    assert found["within"] == pytest.approx(2**0.5)
    assert found["between"] == pytest.approx(7)
    assert found["share_within"] == pytest.approx(2 / 51)
    assert (found["mean"], found["prompts"], found["answers"]) == (6, 2, 2)


def test_prompts_that_differ_by_their_samples_alone_do_not_differ() -> None:
    assert spread_facts([[0.0, 2.0], [1.0, 1.0]])["between"] == 0
    assert spread_facts([[3.0, 3.0], [3.0, 3.0]])["share_within"] is None
    assert spread_facts([[3.0, 5.0]])["between"] is None


def test_length_is_ranked_within_a_prompt() -> None:
    """Long answers to the second prompt score lower than short ones to the first, yet within each the longer wins."""
    assert length_in_pool([[5.0, 6.0], [1.0, 2.0]], [[1, 2], [30, 40]]) == pytest.approx(1)
    assert length_in_pool([[5.0, 6.0], [2.0, 1.0]], [[1, 2], [30, 40]]) == pytest.approx(0)


def test_the_reach_of_labels_is_above_the_mean_of_a_prompt() -> None:
    """Two answers 2 apart deviate by 1 from their mean, stretched by sqrt(2); their quantile .975 lies .975 of the way
    from -sqrt(2) to sqrt(2). Single answers tell nothing."""
    assert labelled_reach([10.0, 12.0, 5.0], [0, 0, 1]) == pytest.approx(0.95 * 2**0.5)
    assert labelled_reach([10.0, 12.0], [0, 1]) is None


def test_best_of_n_goes_as_far_as_labels_reach() -> None:
    """One prompt with answers 0, 1, 2, 3: best of 1 is 1.5, of 2 is 2.5 - 1/6 = 2.3333 (+.8333), of 4 is 3 (+1.5)."""
    rows, draws = [[0.0, 1.0, 2.0, 3.0]] * 2, torch.Generator().manual_seed(0)
    found = slope_facts(rows, None, reach=1.0, generator=draws)
    assert [point["proxy"] for point in found["points"]] == pytest.approx([1.5, 7 / 3, 3.0])
    assert found["covered"]["n"] == 2
    assert found["covered"]["score"] == pytest.approx(2.5)
    assert slope_facts(rows, None, reach=0.5, generator=draws)["covered"]["n"] == 1
    assert slope_facts(rows, None, reach=None, generator=draws)["covered"] is None
    assert "gold_gain" not in found


def test_gold_along_n_has_its_gain() -> None:
    """Gold is the score turned round: best of 4 takes 0 where the mean is 1.5."""
    rows, golds = [[0.0, 1.0, 2.0, 3.0]] * 3, [[3.0, 2.0, 1.0, 0.0]] * 3
    found = slope_facts(rows, golds, reach=1.0, generator=torch.Generator().manual_seed(0))
    assert found["gold_gain"] == found["gold_gain_low"] == found["gold_gain_high"] == pytest.approx(-1.5)
    assert found["points"][-1]["gold"] == 0
    assert found["turns"]
