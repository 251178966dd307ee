"""A person's prompts behind the rows of a rollout."""

import pytest
import torch

from killick.models.prompting import PromptSet
from killick.models.texts import Texts
from killick.types import Refusal, Rollout
from llamas import tokenizer

TEXTS = Texts(tokenizer(template=False))
WORDS = ["a lamp", "the park and a bird", "My honest review of the lamp: I thought", "x"]


def rollout(ids: torch.Tensor, mask: torch.Tensor) -> Rollout:
    said = torch.ones(len(ids), 2, dtype=torch.long)
    return Rollout(ids, mask, said, said.bool(), torch.zeros(len(ids), 2), said[:, 0].bool())


def test_each_row_finds_its_prompt_again_whatever_its_padding() -> None:
    asked = PromptSet(WORDS, TEXTS, limit=60)
    assert asked.of(rollout(*asked.all())) == WORDS
    rows = torch.tensor([3, 0, 0])
    ids, mask = (x[rows, -8:] for x in asked.all())
    assert asked.of(rollout(ids, mask)) == ["x", "a lamp", "a lamp"]


def test_a_draw_has_each_prompt_once_before_any_comes_again_and_no_column_of_padding() -> None:
    asked = PromptSet(WORDS, TEXTS, limit=60)
    draws = torch.Generator().manual_seed(0)
    for count in (1, 3, 4, 10):
        ids, mask = asked.source(count, draws)
        assert len(ids) == count
        assert bool(mask.any(0).all())
        seen = asked.of(rollout(ids, mask))
        assert max(seen.count(word) for word in WORDS) <= -(-count // 4)


class Elsewhere(torch.Generator):
    """A generator on a device that is not the processor, where this machine has none: torch's `meta`."""

    device = torch.device("meta")


def test_prompts_come_to_the_generators_device_though_places_are_drawn_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """`randperm` refuses a generator of another device; the word that seeds it here is drawn there."""
    words = []

    def word(high: int, size: tuple[int, ...], **where: object) -> torch.Tensor:
        words.append((high, where))
        return torch.tensor([7])

    monkeypatch.setattr(torch, "randint", word)
    asked, draws = PromptSet(WORDS, TEXTS, limit=60), Elsewhere()
    ids, mask = asked.source(3, draws)
    assert words == [(2**62, {"generator": draws, "device": Elsewhere.device})]
    assert ids.device == mask.device == Elsewhere.device
    assert ids.shape == asked.source(3, torch.Generator().manual_seed(7))[0].shape


def test_prompts_that_are_the_same_ids_count_once() -> None:
    assert len(PromptSet(["a lamp", "a lamp", [("user", "a lamp")]], TEXTS, limit=60)) == 1


@pytest.mark.parametrize(
    ("prompts", "words"),
    [([], "at least one prompt"), (["a", ""], "Prompt 2: "), (["a", "b" * 100], "Prompt 2 has 100 tokens.*leaves 60")],
)
def test_what_cannot_be_asked_is_refused_by_number(prompts, words: str) -> None:
    with pytest.raises(Refusal, match=words):
        PromptSet(prompts, TEXTS, limit=60)
