"""Labels of a world: which count, what becomes of ties and rankings, and that no prompt is on both sides."""

from dataclasses import replace

import pytest
import torch

from killick.preferences.storing.records import Item, Judgement
from killick.recipes.labelling.labels import read_labels
from killick.types import Refusal
from killick.worlds.arithmetic import Arithmetic
from labelled import answers_items, arithmetic_items, emphasis_items, labels


def test_labels_become_pairs_of_the_very_tokens() -> None:
    """Rows of the rollout in the order of items; the winner of each label is its chosen row."""
    rows = labels(arithmetic_items(80), annotators=2)
    found = read_labels(rows, "arithmetic", seed=0)
    assert (found.used, len(found.preference), len(found.preference.rollout)) == (160, 160, 160)
    texts = Arithmetic().render(found.preference.rollout)
    for pair, (item, label) in enumerate(rows):
        assert texts[found.preference.chosen[pair]] == item.candidates[label.judgement.ranking[0][0]]
        assert texts[found.preference.rejected[pair]] == item.candidates[label.judgement.ranking[1][0]]
    assert found.verdicts[0].place == (0, 1) or found.verdicts[0].place == (1, 0)


def test_skips_and_flags_are_left_out_and_counted_and_a_tie_is_one_half() -> None:
    """The first label skipped, the second flagged, the third a tie."""
    rows = labels(arithmetic_items(80), annotators=1)
    others = (Judgement((), 1.0), Judgement(((0,), (1,)), 1.0, flags=("unsafe",)), Judgement(((0, 1),), 1.0))
    for place, judgement in enumerate(others):
        rows[place] = (rows[place][0], replace(rows[place][1], judgement=judgement))
    found = read_labels(rows, "arithmetic", seed=0)
    assert found.left_out == {"skipped": 1, "flagged": 1}
    assert found.used == 78
    assert found.preference.label.tolist() == [0.5] + [1.0] * 77


def test_a_ranking_is_all_its_pairs_in_one_group() -> None:
    """Four responses: six pairs, each the better over the worse."""
    rows = labels(arithmetic_items(80, k=4), annotators=1)
    found = read_labels(rows, "arithmetic", seed=0)
    assert len(found.preference) == 6 * 80
    assert found.preference.group.bincount().tolist() == [6] * 80
    order = [number for group in rows[0][1].judgement.ranking for number in group]
    expected = [(order[i], order[j]) for i in range(4) for j in range(i + 1, 4)]
    got = zip(found.preference.chosen[:6].tolist(), found.preference.rejected[:6].tolist(), strict=True)
    assert list(got) == expected


def test_a_prompt_is_on_one_side_whoever_labels_it_and_whatever_else_there_is() -> None:
    """By its tokens and the seed; another seed splits otherwise."""
    rows = labels(arithmetic_items(100), annotators=2)
    found, again, other = (read_labels(given, "arithmetic", seed=seed) for given, seed in
                           ((rows, 0), (rows[:160], 0), (rows, 1)))  # fmt: skip
    assert found.unit == "prompts"
    sides = {int(prompt): bool(held) for prompt, held in zip(found.units, found.held, strict=True)}
    assert [sides[int(prompt)] for prompt in found.units] == found.held.tolist()
    assert torch.equal(found.held[:160], again.held)
    assert not torch.equal(found.held, other.held)
    assert 0.1 < float(found.held.double().mean()) < 0.4


@pytest.mark.parametrize(("world", "items"), [("emphasis", emphasis_items(90)), ("answers", answers_items(90))])
def test_a_world_of_a_few_prompts_is_split_by_item(world: str, items: list[Item]) -> None:
    """Prompts are on both sides, an item is on one: by its content, also where another item turns it round."""
    turned = [
        replace(each, id=100 + int(each.id or 0), candidates=each.candidates[::-1],
                metadata={**each.metadata, "responses": each.metadata["responses"][::-1]})
        for each in items
    ]  # fmt: skip
    found = read_labels(labels(items + turned, annotators=1), world, seed=0)
    assert found.unit == "items"
    assert found.units.tolist() == [*range(90)] * 2
    assert found.held[:90].tolist() == found.held[90:].tolist()
    assert 0.1 < float(found.held.double().mean()) < 0.4
    prompts = found.preference.rollout.prompts[found.preference.chosen]
    assert len(prompts.unique(dim=0)) == len(prompts[found.held].unique(dim=0)) == {"emphasis": 1, "answers": 4}[world]


@pytest.mark.parametrize(("world", "items"), [("emphasis", emphasis_items(20)), ("answers", answers_items(20))])
def test_too_few_labels_of_a_world_of_a_few_prompts_are_told_in_items(world: str, items: list[Item]) -> None:
    """Nobody is sent to look for sixty prompts where there is one; what is asked for is enough."""
    said = "preferences on 1. items to learn from and . to be judged by, .* label about 60 items"
    with pytest.raises(Refusal, match=said):
        read_labels(labels(items, annotators=1), world, seed=0)
    enough = emphasis_items(60) if world == "emphasis" else answers_items(60)
    assert read_labels(labels(enough, annotators=1), world, seed=0).used == 60


@pytest.mark.parametrize(
    ("world", "count", "said"),
    [
        ("arithmetic", 0, "holds no label yet; label some with killick label --world arithmetic"),
        ("answers", 40, "no label of the world answers that can be learned from, only 40 of arithmetic"),
        ("arithmetic", 20, "Too few labels: preferences on 1. prompts to learn from and . to be judged by"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(world: str, count: int, said: str) -> None:
    """One sentence each."""
    with pytest.raises(Refusal, match=said):
        read_labels(labels(arithmetic_items(40), annotators=1)[:count], world, seed=0)
