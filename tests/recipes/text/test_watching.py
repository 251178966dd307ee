"""What is seen of an arm: columns by hand, and a distance that is 0 where nothing has moved."""

from typing import Any

import pytest
import torch

from killick.recipes.cells import Cell
from killick.recipes.text import recipe as text
from killick.recipes.text.rewards import Proxy
from killick.recipes.text.watching import HELD, Watch, columns, distances, spoken
from straight import ended
from writers import counts_letters, letters, tiny


@pytest.fixture(scope="module")
def prepared() -> text.Prepared:
    with pytest.MonkeyPatch.context() as patch:
        counts_letters(patch)
        found: Any = ended(text.prepare(tiny(), 3))[1][0]
    return found


@pytest.fixture
def watch(prepared: text.Prepared) -> Watch:
    speaks, proxy = prepared.speaks, Proxy(prepared.speaks, prepared.heads)
    return Watch(Cell("beta=0", 3, 4), "beta=0", speaks, letters, proxy, prepared.said.prompts, prepared.held, 2, 2)


def test_what_answers_repeat_is_told_in_words() -> None:
    """`a b c` stands in both; of the three runs of three words two are different; `x a b c` stands in one."""
    assert spoken(["a b c", "x. A b, c"]) == {
        "distinct": 2 / 3, "phrase": "a b c", "phrase_share": 1.0, "longest": "x a b c", "longest_share": 0.5,
    }  # fmt: skip
    assert spoken(["a"]) == {"distinct": 1.0, "phrase": None, "phrase_share": None, "longest": None,
                             "longest_share": None}  # fmt: skip


def test_the_error_is_that_of_the_mean_over_prompts() -> None:
    """Means over two answers each: 1, 2 and 6; their deviation is sqrt(7), over sqrt(3)."""
    gold = torch.tensor([0.0, 2.0, 2.0, 2.0, 5.0, 7.0])
    found = columns(["a b c"] * 6, gold=gold, proxy=gold + 1, kl=torch.ones(6), n=2)
    assert tuple(found) == HELD
    assert (found["held_gold"], found["held_proxy"], found["held_kl"]) == (3.0, 4.0, 1.0)
    assert found["held_gold_error"] == pytest.approx((7 / 3) ** 0.5)
    assert columns(["a"], gold=gold[:2], proxy=gold[:2], kl=gold[:2], n=2)["held_gold_error"] is None


def test_a_policy_that_has_not_moved_is_at_no_distance(watch: Watch, prepared: text.Prepared) -> None:
    rollout = prepared.held.rollout
    still, moved = prepared.speaks.policy(), prepared.speaks.policy()
    with torch.no_grad():
        moved.norm.weight.mul_(1.5)
    assert distances(still, prepared.speaks.reference, rollout=rollout).tolist() == [0.0] * 16
    far = distances(moved, prepared.speaks.reference, rollout=rollout)
    assert bool((far > 0).all())
    assert far.tolist() == pytest.approx(
        [float(distances(moved, prepared.speaks.reference, rollout=rollout[row : row + 1])) for row in range(16)],
        rel=0.05, abs=0.02,
    )  # fmt: skip


def test_an_evaluation_is_drawn_by_its_step_alone(watch: Watch, prepared: text.Prepared) -> None:
    """The same at every call, from no stream of the optimiser's; nothing is measured between two of them."""
    policy = prepared.speaks.policy()
    first, answers = watch.held_out(2, policy)
    again, same = watch.held_out(2, policy)
    assert (first, answers) == (again, same)
    assert len(answers) == 8
    assert first["held_gold"] == pytest.approx(sum(row["gold"] for row in answers) / 8, abs=1e-3)
    assert watch.held_out(4, policy)[0] != first
    assert watch.held_out(3, policy) == (dict.fromkeys(HELD), [])
