"""Golds by VADER: each number by hand from valences of its lexicon, compound = s / sqrt(s^2 + 15)."""

import math
import sys
from time import process_time

import pytest

from killick.recipes.scores import sincere
from killick.recipes.scores.sincere import sentiment, sincerity, vader
from killick.recipes.scores.text_score import Prompt
from killick.types import Refusal


def compound(*valences: float) -> float:
    """VADER rounds to four places."""
    total = sum(valences)
    return round(total / math.sqrt(total**2 + 15), 4)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0.0),
        ("The soup is good.", compound(1.9)),
        # Again: soup and good; the function words the and is may come again.
        ("The soup is good, the good soup is.", compound(1.9, 1.9) - 0.5),
        # Three times are two repeats; no valence.
        ("Paper paper PAPER", -0.5),
        # Words under three letters say nothing: "it", "is", and the "s" of "it's".
        ("It is what it is, and it's what it's.", 0.0),
        # Three words of praise (1.9, 3.1, 2.7) are enough, the fourth (1.8) and fifth (2.8) cost.
        ("good great happy", compound(1.9, 3.1, 2.7)),
        ("good great happy nice", compound(1.9, 3.1, 2.7, 1.8) - 0.2),
        ("good great happy nice joy", compound(1.9, 3.1, 2.7, 1.8, 2.8) - 0.4),
        # Warm (0.9) and fine (0.8) are below a valence of 1: friendly, no praise.
        ("good great happy warm fine", compound(1.9, 3.1, 2.7, 0.9, 0.8)),
        # Praise counts as often as it stands there: four words of praise, three of them repeats.
        ("good good good good", compound(1.9, 1.9, 1.9, 1.9) - 0.75 - 0.2),
        # The floor.
        ("paper " * 9, -1.0),
        ("bad " * 9, -1.0),
    ],
)
def test_sincerity_by_hand(text: str, expected: float) -> None:
    assert sincerity(text) == pytest.approx(expected, abs=1e-9)
    assert sincere.sincere(["p"], [text]).tolist() == [sincerity(text)]


def test_plain_sentiment_has_the_hole_that_sincerity_closes() -> None:
    text = "so proud and super proud and very proud"
    assert sentiment(text) > 0.9
    assert sincerity(text) == pytest.approx(sentiment(text) - 0.7)  # "proud" twice again; with "super", four words
    assert vader(["p", "q"], [text, ""]).tolist() == [sentiment(text), 0.0]


def test_the_prompt_is_not_read() -> None:
    prompts: list[Prompt] = ["I love it", [("user", "I hate it")]]
    assert sincere.sincere(prompts, ["good", "good"]).tolist() == [compound(1.9)] * 2
    assert vader(prompts, ["good", "good"]).tolist() == [compound(1.9)] * 2


def test_a_rollout_is_scored_in_well_under_a_second() -> None:
    texts = [f"The {word} was good and I thought the staff were kind to me and to my friend Ann today, truly {word} ."
             for word in map(str, range(512))]  # fmt: skip
    sincere.analyser()
    start = process_time()
    sincere.sincere([""] * len(texts), texts)
    assert process_time() - start < 1


def test_without_the_package_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vaderSentiment.vaderSentiment", None)
    sincere.analyser.cache_clear()
    with pytest.raises(Refusal, match="pip install --no-deps vaderSentiment"):
        vader(["p"], ["good"])
    monkeypatch.undo()
    assert vader(["p"], ["good"]).tolist() == [compound(1.9)]
