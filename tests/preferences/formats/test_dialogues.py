"""Prompts taken out of dialogues and texts (O-10), the HH form, and what no text may hold."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from killick.preferences.formats.dialogues import (
    BadField,
    after_prompt,
    boundary,
    clean,
    common,
    from_hh,
    part_dialogues,
    part_texts,
    to_hh,
    to_value,
    turns,
)
from killick.preferences.rows import Turn, Turns

modest = settings(max_examples=60, deadline=None, derandomize=True)


def dialogue(*said: str) -> Turns:
    """Turns of user and assistant in turn."""
    return tuple(Turn(("user", "assistant")[index % 2], content) for index, content in enumerate(said))


# Message lists (O-10)


def test_the_prompt_is_the_whole_shared_run() -> None:
    chosen, rejected = (dialogue("Name a bird", "Heron", "Another?", last) for last in ("Gull", "Cod"))
    assert part_dialogues(chosen, rejected) == (chosen[:3], chosen[3:], rejected[3:])


def test_one_that_goes_on_where_the_other_ends_shares_all_of_the_shorter_and_is_refused() -> None:
    """[U, A] and [U, A, U]: two shared turns, not one; no answer of the assistant differs."""
    short, long = dialogue("Name a bird", "Heron"), dialogue("Name a bird", "Heron", "Another?")
    assert common(short, long) == common(long, short) == 2
    with pytest.raises(BadField, match="chosen: is the beginning of the other"):
        part_dialogues(short, long)
    with pytest.raises(BadField, match="chosen: first differs in a turn that is not the assistant's"):
        part_dialogues(long, short)


@pytest.mark.parametrize(
    ("chosen", "rejected", "reason"),
    [
        (dialogue("a", "b"), dialogue("c", "b"), "shares no first turn"),
        (dialogue("a", "b"), dialogue("a", "b"), "same dialogue"),
        (dialogue("a", "b", "c", "d"), dialogue("a", "b", "e", "d"), "not the assistant's"),
        ((), (), "same dialogue"),
        ((), dialogue("a", "b"), "shares no first turn"),
    ],
)
def test_dialogues_without_a_prompt_or_an_answer_are_refused(chosen: Turns, rejected: Turns, reason: str) -> None:
    with pytest.raises(BadField, match=reason):
        part_dialogues(chosen, rejected)


def test_a_prompt_that_is_repeated_is_taken_off_with_the_system_turn_before_it() -> None:
    """A prompt as a string beside whole dialogues (O-11)."""
    prompt = dialogue("Name a bird")
    system = (Turn("system", "Be brief."),)
    one, two = dialogue("Name a bird", "Heron"), dialogue("Name a bird", "Cod")
    assert after_prompt(prompt, one, second=two) == (prompt, one[1:], two[1:])
    assert after_prompt(prompt, system + one, second=system + two) == (system + prompt, one[1:], two[1:])
    assert after_prompt(prompt, one[1:], second=two[1:]) == (prompt, one[1:], two[1:])


# Texts (O-10)


@pytest.mark.parametrize(
    ("chosen", "rejected", "prompt"),
    [
        ("The sky is blue.", "The sky is green.", "The sky is"),
        ("The sky is blue.", "The sky is black.", "The sky is"),  # not "The sky is bl"
        ("Say bl", "Say blue", "Say"),  # one is the other's beginning, inside a word
        ("I don't", "I don", "I"),
        ("cost: 1.5", "cost: 1.6", "cost:"),
        ("we say \U0001f469\u200d\U0001f52c", "we say \U0001f469\u200d\U0001f680", "we say"),  # inside a joined emoji
        ("so \U0001f44d\U0001f3fb", "so \U0001f44d\U0001f3ff", "so"),  # between a hand and its colour
        ("caf e\u0301", "caf e\u0300", "caf"),  # between a letter and its accent
        ("天空是蓝色的", "天空是绿色的", "天空是"),  # Han needs no spaces
        ("line\r\na", "line\r\nb", "line"),
    ],
)
def test_two_texts_part_after_their_last_shared_word(chosen: str, rejected: str, prompt: str) -> None:
    found, first, second = part_texts(chosen, rejected)
    assert (found, found + first, found + second) == (prompt, chosen, rejected)


@pytest.mark.parametrize(
    ("chosen", "rejected", "reason"),
    [
        ("a b", "a b", "same text"),
        ("blue", "black", "no whole word"),
        ("x", "y", "no whole word"),
        ("a b", "a b c", "chosen: is the beginning"),
        ("a b c", "a b", "rejected: is the beginning"),
        ("a b ", "a b c", "chosen: is the beginning"),
        (" a", " b", "no whole word"),
    ],
)
def test_texts_without_a_prompt_or_an_answer_are_refused(chosen: str, rejected: str, reason: str) -> None:
    with pytest.raises(BadField, match=reason):
        part_texts(chosen, rejected)


@modest
@given(st.text("ab \u0301\u200d\U0001f469天", max_size=12), st.text("ab ", max_size=4), st.text("ab ", max_size=4))
def test_whatever_the_texts_nothing_is_lost_and_no_word_is_cut(start: str, one: str, two: str) -> None:
    try:
        prompt, first, second = part_texts(start + one, start + two)
    except BadField:
        return
    assert (prompt + first, prompt + second) == (start + one, start + two)
    assert first.strip()
    assert second.strip()
    assert boundary(prompt + first, len(prompt))
    assert boundary(prompt + second, len(prompt))


# The HH form


def test_a_dialogue_in_one_text() -> None:
    text = "\n\nHuman: Hi\nthere\n\nAssistant: Hello: \n\nso\n\nHuman: Bye\n\nAssistant: Ciao"
    assert from_hh(text, "chosen") == dialogue("Hi\nthere", "Hello: \n\nso", "Bye", "Ciao")
    assert to_hh(from_hh(text, "chosen")) == text


@pytest.mark.parametrize("text", ["Human: a", "x\n\nHuman: a", "", "\n\nHuman: \n\nAssistant: b"])
def test_what_is_no_such_dialogue_is_refused(text: str) -> None:
    with pytest.raises(BadField, match=r"must begin with|is empty"):
        from_hh(text, "chosen")


@pytest.mark.parametrize(
    "said", [(Turn("system", "a"),), dialogue("a\n\nHuman: b", "c"), dialogue("a", "b\n\nAssistant: c")]
)
def test_what_would_read_back_as_other_turns_is_not_written(said: Turns) -> None:
    with pytest.raises(BadField, match="neither the human's"):
        to_hh(said)


# Values


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "chosen: must be a string or a list of messages, not null"),
        (7, "not a number"),
        (True, "not true or false"),
        ({}, "not an object"),
        ("", "is empty"),
        (" \n\u3000", "is empty"),
        ([], "empty list"),
        ("a\0", "null character"),
        ("a\ud800", "surrogate"),
        (["a"], r"chosen\[0\]: must be a message"),
        ([{"role": "user"}], r"chosen\[0\].content: must be a string, not null"),
        ([{"role": "User", "content": "a"}], r"chosen\[0\].role: must be one of"),
        ([{"role": [], "content": "a"}], r"chosen\[0\].role: must be one of"),
        ([{"role": "user", "content": "a"}, {"role": "assistant", "content": ""}], r"chosen\[1\].content: is empty"),
    ],
)
def test_what_is_no_text_is_refused_by_field_and_without_its_content(value: object, reason: str) -> None:
    with pytest.raises(BadField, match=reason):
        turns(value, "chosen", role="assistant")


def test_a_system_turn_may_be_empty() -> None:
    assert turns([{"role": "system", "content": ""}], "prompt", role="user") == (Turn("system", ""),)
    assert clean("", "prompt", empty=True) == ""


def test_a_string_and_a_list_with_one_message_are_the_same() -> None:
    for value in ("Hi", [{"role": "user", "content": "Hi", "name": "ann"}]):
        assert turns(value, "prompt", role="user") == dialogue("Hi")
    assert to_value(dialogue("Hi"), messages=False, role="user") == "Hi"
    assert to_value(dialogue("Hi"), messages=True, role="user") == [{"role": "user", "content": "Hi"}]
    with pytest.raises(BadField, match="no string can keep"):
        to_value(dialogue("Hi", "Ho"), messages=False, role="user")
