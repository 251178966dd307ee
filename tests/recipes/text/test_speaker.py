"""The speaker of the text recipe on a very small model: which tokens it says, and answers with their features."""

from pathlib import Path
from typing import Any

import pytest
import torch

from killick.recipes.text.prompts import LEARNT, drawn
from killick.recipes.text.speaker import Speaker, answers, printable, speaker
from killick.types import Refusal
from straight import ended
from writers import folder, letters

PROMPTS = drawn(LEARNT, 5)


def opened(**changes: Any) -> tuple[list[str], tuple[Speaker, float]]:
    given: dict[str, Any] = {"prompts": PROMPTS, "layers": 1, "time": 6, "temperature": 0.8, "spoken": 60,
                             "device": "cpu"}  # fmt: skip
    return ended(speaker(folder(), **(given | changes)))


@pytest.fixture(scope="module")
def speaks() -> Speaker:
    return opened()[1][0]


def test_printable_tokens_are_whole_characters_without_breaks_or_marks(speaks: Speaker) -> None:
    """Bytes that are a part of a letter, control characters and the marks of a chat are left out."""
    texts = speaks.texts
    ids = printable(texts, 300)
    assert not {texts.eos, texts.pad} & set(ids)
    assert texts.plain(" is")[0] in ids
    assert texts.plain("\n")[0] not in ids
    assert texts.plain("\u00e9")[0] not in ids  # the first byte of two
    assert all(texts.read([token]).isprintable() for token in ids)


def test_the_most_probable_printable_tokens_and_the_end_are_spoken(speaks: Speaker) -> None:
    """Sorted; all of them where fewer are printable; their share is told."""
    spoken = speaks.settings["spoken"]
    assert len(spoken) == 61
    assert spoken == sorted(spoken)
    assert speaks.texts.eos in spoken
    assert set(spoken) - {speaks.texts.eos} <= set(printable(speaks.texts, 300))
    said, (every, share) = opened(spoken=10_000)
    assert share == pytest.approx(1)
    assert len(every.settings["spoken"]) == len(printable(speaks.texts, 300)) + 1
    assert said == [
        f"{(count := len(printable(speaks.texts, 300)))} of {count} printable tokens hold 100.0% of their mass"
    ]
    assert 0.3 < opened()[1][1] < 1


def test_a_policy_begins_as_the_reference(speaks: Speaker) -> None:
    _, said = ended(answers(speaks, PROMPTS, n=3, seed=0, part="learnt", gold=letters))
    mine, theirs = (one.logprobs(said.rollout)[0] for one in (speaks.policy(), speaks.reference))
    assert torch.equal(mine, theirs)
    assert any(weight.requires_grad for weight in speaks.policy().parameters())
    assert not any(weight.requires_grad for weight in speaks.reference.parameters())


def test_answers_stand_together_by_prompt_with_text_features_and_gold(speaks: Speaker) -> None:
    _, said = ended(answers(speaks, PROMPTS, n=3, seed=0, part="learnt", gold=letters))
    assert said.prompts.of(said.rollout) == [prompt for prompt in PROMPTS for _ in range(3)]
    assert said.texts == speaks.texts.responses(said.rollout)
    assert said.gold.tolist() == pytest.approx(letters([], said.texts).tolist())
    for row in (0, 7):
        alone = said.rollout[torch.tensor([row])]
        length = int(alone.lengths)
        states = speaks.trunk.states(alone)[0, :length]
        assert torch.allclose(states.square().mean(-1), torch.ones(length), atol=1e-2)
        assert torch.allclose(said.features[row], states.mean(0), atol=0.05)  # bfloat16, another batch


def test_answers_are_drawn_once_and_another_part_draws_others(speaks: Speaker) -> None:
    """The second time nothing is told: all is found."""
    first = ended(answers(speaks, PROMPTS, n=2, seed=5, part="learnt", gold=letters))
    again = ended(answers(speaks, PROMPTS, n=2, seed=5, part="learnt", gold=letters))
    other = ended(answers(speaks, PROMPTS, n=2, seed=5, part="held-out", gold=letters))
    assert first[0] == ["10 answers to 5 learnt prompts are written and read"]
    assert again[0] == []
    assert torch.equal(first[1].features, again[1].features)
    assert first[1].texts == again[1].texts != other[1].texts


def test_a_model_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="nowhere"):
        ended(speaker(tmp_path / "nowhere", prompts=PROMPTS, layers=1, time=4, temperature=1.0, spoken=5, device="cpu"))
