"""What a person is asked about a world: different responses, and the tokens behind them."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from killick.recipes.arithmetic import recipe as arithmetic
from killick.recipes.labelling.items import JUDGED, Item, judged, judged_rollout, world_items
from killick.types import Refusal
from killick.worlds.arithmetic import EOS, PAD, Arithmetic
from straight import ended

SHORT = arithmetic.Config(device="cpu", sft_accuracy=0.0)
SHORT = replace(SHORT, sft=replace(SHORT.sft, steps=20, batch=32))


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that has only begun to learn sums: the path is the same."""
    monkeypatch.setattr(arithmetic, "Config", lambda **_: SHORT)


def drawn(name: str, count: int, **settings: Any) -> list[Item]:
    return ended(world_items(name, count, **settings))[1]


@pytest.mark.parametrize(("name", "k"), [("arithmetic", 2), ("arithmetic", 4), ("answers", 2), ("answers", 3)])
def test_the_responses_of_an_item_differ_as_they_read(name: str, k: int) -> None:
    items = drawn(name, 30, k=k)
    assert len(items) == 30
    for each in items:
        assert len(set(each["responses"])) == k == len(each["metadata"]["responses"])
        assert each["metadata"]["world"] == name


def test_no_item_is_asked_twice_and_a_small_world_says_how_many_it_has() -> None:
    """Four prompts with eight answers have 4 x 28 = 112 pairs, and some of their answers are never sampled."""
    notes, items = ended(world_items("answers", 200))
    asked = [(each["prompt"], *sorted(each["responses"])) for each in items]
    assert len(set(asked)) == len(asked) < 112
    assert f"only {len(items)} different" in notes[-1]


def test_text_and_tokens_say_the_same() -> None:
    items, world = drawn("arithmetic", 40, k=3), Arithmetic()
    rollout = judged_rollout([each["metadata"] for each in items], world.vocabulary)
    assert world.render(rollout) == [text for each in items for text in each["responses"]]
    assert world.questions(rollout.prompts[::3]) == [each["prompt"] for each in items]


def test_more_items_of_a_seed_begin_with_the_fewer_and_another_seed_has_others() -> None:
    assert drawn("answers", 40)[:20] == drawn("answers", 20)
    assert drawn("answers", 20, seed=1) != drawn("answers", 20)


def test_a_rollout_is_read_back_with_its_padding_and_its_ends() -> None:
    """By hand: 37+48= answered 85<eos> and, without an end, 8 5 5 5."""
    ids = [3, 7, 10, 4, 8, 11]
    read = judged_rollout([{"prompt": ids, "responses": [[8, 5, EOS], [8, 5, 5, 5]]}], Arithmetic.vocabulary)
    assert read.responses.tolist() == [[8, 5, EOS, PAD], [8, 5, 5, 5]]
    assert read.mask.tolist() == [[True, True, True, False], [True] * 4]
    assert read.finished.tolist() == [True, False]
    assert read.prompts.tolist() == [ids, ids]
    assert Arithmetic().gold(read).tolist() == [0.0, -1.0]


def test_prompts_of_two_lengths_are_padded_on_the_left() -> None:
    read = judged_rollout([{"prompt": [1], "responses": [[2]]}, {"prompt": [3, 4], "responses": [[5]]}],
                          Arithmetic.vocabulary)  # fmt: skip
    assert torch.equal(read.prompts, torch.tensor([[PAD, 1], [3, 4]]))
    assert read.prompt_mask.tolist() == [[False, True], [True, True]]


def test_every_world_says_by_which_rule_it_is_judged() -> None:
    for name in JUDGED:
        assert len(judged(name).guidelines) > 80


@pytest.mark.parametrize(
    ("name", "count", "k", "part"),
    [("arithmetik", 5, 2, "arithmetic, emphasis, answers"), ("answers", 0, 2, "at least 1"),
     ("answers", 5, 1, "2 responses"), ("answers", 5, 9, "9 different")],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused(name: str, count: int, k: int, part: str) -> None:
    with pytest.raises(Refusal, match=part):
        drawn(name, count, k=k)
