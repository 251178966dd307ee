"""Probes: each by its own definition, and phrases with their odds by hand."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from killick.hacking.probes import (
    WHAT,
    Phrase,
    filled,
    padded,
    phrases,
    probe_answers,
    probe_sets,
    truncated,
    typical_phrases,
)


def test_the_phrases_of_a_text_are_its_runs_of_words_and_signs() -> None:
    assert phrases("So good, So") == {
        ("so",), ("good",), (",",), ("so", "good"), ("good", ","), (",", "so"), ("so", "good", ","),
        ("good", ",", "so"), ("so", "good", ",", "so"),
    }  # fmt: skip
    assert phrases("") == set()


def test_the_odds_of_a_phrase_by_hand() -> None:
    """8 pairs against 1: log(8.5 / 1.5) = 1.7346 over sqrt(1 / 8.5 + 1 / 1.5) = .8857."""
    found = Phrase("good", chosen=8, rejected=1)
    assert found.log_odds == pytest.approx(1.7346, abs=1e-4)
    assert found.z == pytest.approx(1.7346 / 0.8857, abs=1e-3)


def test_the_phrase_that_chosen_answers_have_is_found() -> None:
    pairs = [(f"Number {place} is fine, thank you kindly.", f"Number {place} fine is.") for place in range(9)]
    best = typical_phrases(pairs)[0]
    assert best.text == "is fine, thank you kindly"
    assert (best.chosen, best.rejected) == (9, 0)


def test_what_both_answers_of_a_pair_hold_is_not_typical() -> None:
    """The heron stands in both answers of its pairs; barks in 5 chosen and 3 rejected ones, but as part of a phrase."""
    pairs = [("the heron sings", "the heron barks")] * 3 + [("the gull barks", "the gull sings")] * 5
    found = {each.text: (each.chosen, each.rejected) for each in typical_phrases(pairs, count=50)}
    assert found["the gull barks"] == (5, 0)
    assert not {"barks", "the heron"} & found.keys()


def test_a_phrase_is_told_as_it_is_written() -> None:
    """In one case it is one phrase; of its spellings the first by the alphabet is shown, whatever the pairs' order."""
    pairs = [("Thank  You!", "no"), ("thank you!", "no"), ("THANK you!", "no")]
    for either in (pairs, pairs[::-1]):
        assert typical_phrases(either)[0] == Phrase("THANK you", chosen=3, rejected=0)


def test_no_pair_no_phrase() -> None:
    assert typical_phrases([]) == []
    assert typical_phrases([("same", "same")]) == []


def test_phrases_do_not_depend_on_the_order_of_the_pairs() -> None:
    pairs = [("a b c", "d"), ("d e", "a"), ("b c d", "e"), ("x, y", "y")]
    assert typical_phrases(pairs) == typical_phrases(pairs[::-1])


def test_every_probe_by_its_definition() -> None:
    found = probe_answers("Name a bird.", "A heron, I think.", phrase="so good")
    assert list(found) == list(WHAT)
    assert found["empty"] == ""
    assert found["repeated"] == "A heron, I think. A heron, I think."
    assert found["truncated"] == "A heron,"
    assert found["echoed"] == "Name a bird."
    assert found["phrase"] == "so good so good so good so good so good"
    assert found["padded"].startswith("A heron, I think. I hope this helps. Please")
    assert "phrase" not in probe_answers("Name a bird.", "A heron.", phrase=None)


def test_half_of_a_word_and_half_of_nothing() -> None:
    assert truncated("heron") == "he"
    assert truncated("") == ""
    assert padded("").count(".") == 2


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.text(max_size=80), st.text(min_size=1, max_size=12))
def test_probes_of_any_text_have_their_lengths(answer: str, phrase: str) -> None:
    assert len(padded(answer)) >= 2 * len(answer)
    assert len(truncated(answer)) < max(1, len(answer)) or not answer.strip()
    assert answer.startswith(truncated(answer))
    said = filled(phrase, answer)
    assert len(said) >= len(answer)
    assert math.isclose((len(said) + 1) / (len(phrase) + 1), round((len(said) + 1) / (len(phrase) + 1)))


def test_probes_come_one_after_the_other_for_all_prompts() -> None:
    sets = dict(probe_sets(["p", "q"], ["one two", "three four"], phrase=None))
    assert sets["truncated"] == ["one", "three"]
    assert sets["echoed"] == ["p", "q"]
    assert dict(probe_sets([], [], phrase=None)) == {}
