"""Rows of every form: what they mean, and the field and reason of those that mean nothing."""

from typing import Any

import pytest

from killick.preferences.formats.dialogues import BadField
from killick.preferences.formats.reading import read
from killick.preferences.rows import PreferenceRow, Turn

USER = {"role": "user", "content": "Name a bird"}
GOOD, POOR = ({"role": "assistant", "content": name} for name in ("Heron", "Cod"))
PAIR = {"prompt": "Name a bird", "chosen": "Heron", "rejected": "Cod"}
TWO = {"prompt": "p", "first": "a", "second": "b"}
MANY = {"prompt": "p", "responses": ["a", "b", "c"]}


def test_four_layouts_of_one_pair_are_one_row() -> None:
    """O-11: strings; messages with the prompt; without it; a prompt as string beside messages that repeat it."""
    rows = [
        read(record, "pairs")
        for record in (
            PAIR,
            {"prompt": [USER], "chosen": [GOOD], "rejected": [POOR]},
            {"chosen": [USER, GOOD], "rejected": [USER, POOR]},
            {"prompt": "Name a bird", "chosen": [USER, GOOD], "rejected": [USER, POOR]},
            {
                "chosen": "\n\nHuman: Name a bird\n\nAssistant: Heron",
                "rejected": "\n\nHuman: Name a bird\n\nAssistant: Cod",
            },
            PAIR | {"extra": {"any": "thing"}, "prompt_id": 7},
        )
    ]
    assert set(rows) == {rows[0]}
    assert rows[0] == PreferenceRow(
        (Turn("user", "Name a bird"),),
        ((Turn("assistant", "Heron"),), (Turn("assistant", "Cod"),)),
        (0, 1),
        shown=False,
    )


@pytest.mark.parametrize(
    ("form", "record", "field", "reason"),
    [
        ("pairs", PAIR | {"prompt": None}, "prompt", "not null"),
        ("pairs", PAIR | {"prompt": ""}, "prompt", "is empty"),
        ("pairs", PAIR | {"chosen": ""}, "chosen", "is empty"),
        ("pairs", PAIR | {"chosen": 7}, "chosen", "not a number"),
        ("pairs", PAIR | {"chosen": "Cod"}, "rejected", "same as chosen"),
        ("pairs", {"prompt": "p", "Chosen": "a", "rejected": "b"}, "chosen", "is missing (there is 'Chosen'"),
        ("pairs", {"prompt": "p", "chosen": "a"}, "rejected", "is missing"),
        ("pairs", {"prompt": [USER], "chosen": [USER], "rejected": [USER, POOR]}, "chosen", "the prompt and nothing"),
        ("pairs", {"prompt": "p", "chosen": [USER, GOOD], "rejected": "b"}, "chosen", "begin and end with a turn"),
        ("pairs", {"prompt": "p", "chosen": [GOOD, USER], "rejected": "b"}, "chosen", "begin and end with a turn"),
        ("pairs", {"chosen": "a b", "rejected": [USER, POOR]}, "rejected", "one kind"),
        ("pairs", {"chosen": "a b", "rejected": None}, "rejected", "one kind"),
        ("pairs", {"chosen": None, "rejected": None}, "chosen", "not null"),
        ("pairs", PAIR | {"margin": "2"}, "margin", "not a string"),
        ("pairs", PAIR | {"margin": float("nan")}, "margin", "finite"),
        ("pairs", PAIR | {"margin": 10**400}, "margin", "finite"),
        ("pairs", PAIR | {"annotator": ["ann"]}, "annotator", "not a list"),
        ("pairs", PAIR | {"annotator": 10**5000}, "annotator", "not a number"),
        ("pairs", PAIR | {"group": ""}, "group", "is empty"),
        ("hh", PAIR, "chosen", "must begin with"),
        ("hh", {"chosen": 1, "rejected": 2}, "chosen", "must be a string"),
        ("comparison", TWO | {"preference": "a"}, "preference", '"first", "second" or "tie"'),
        ("comparison", TWO | {"preference": []}, "preference", '"first", "second" or "tie"'),
        ("comparison", TWO, "preference", "is missing"),
        ("comparison", TWO | {"preference": "first", "strength": 2}, "strength", "says another"),
        ("comparison", TWO | {"preference": "tie", "strength": -1}, "strength", "says another"),
        ("comparison", TWO | {"second": "a", "preference": "first"}, "second", "same as first"),
        ("comparison", TWO | {"preference": "tie", "shown": 1}, "shown", "true or false"),
        ("comparison", TWO | {"prompt": [USER], "first": [USER], "preference": "tie"}, "first", "nothing else"),
        ("soft", TWO | {"probability": 1.01}, "probability", "0..1"),
        ("soft", TWO | {"probability": True}, "probability", "not true or false"),
        ("strength", TWO | {"strength": 4}, "strength", "-3..3"),
        ("strength", TWO | {"strength": 1.5}, "strength", "whole"),
        ("choice", MANY | {"choice": 3}, "choice", "0..2"),
        ("choice", MANY | {"choice": -1}, "choice", "0..2"),
        ("choice", {"prompt": "p", "responses": [], "choice": 0}, "responses", "not empty"),
        ("choice", {"prompt": "p", "responses": "ab", "choice": 0}, "responses", "not a string"),
        ("choice", {"prompt": "p", "responses": ["a", 7], "choice": 0}, "responses[1]", "not a number"),
        ("choice", {"prompt": [USER], "responses": [[USER]], "choice": 0}, "responses[0]", "nothing else"),
        ("ranking", MANY | {"ranking": [0, 1]}, "ranking", "names 2 of 3"),
        ("ranking", MANY | {"ranking": [0, 1, 1, 2]}, "ranking[2]", "second time"),
        ("ranking", MANY | {"ranking": [[0, 1], [], 2]}, "ranking[1]", "empty list"),
        ("ranking", MANY | {"ranking": [[0, [1]], 2]}, "ranking[0]", "not a list"),
        ("ranking", MANY | {"ranking": {"0": 1}}, "ranking", "not an object"),
        ("scores", MANY | {"scores": [1, 2]}, "scores", "3 numbers"),
        ("scores", MANY | {"scores": [1, 2, None]}, "scores[2]", "not null"),
    ],
)
def test_a_row_that_cannot_be_used_names_its_field_and_says_why(
    form: str, record: dict[str, Any], field: str, reason: str
) -> None:
    with pytest.raises(BadField) as refused:
        read(record, form)
    assert refused.value.field == field
    assert reason in refused.value.reason


def test_preferences_scores_choices_and_rankings_become_places() -> None:
    """0 for the best; what ties shares a place."""
    for preference, place in (("first", (0, 1)), ("second", (1, 0)), ("tie", (0, 0))):
        assert read(TWO | {"preference": preference}, "comparison").place == place
    for probability, place in ((0.6, (0, 1)), (0, (1, 0)), (0.5, (0, 0))):
        assert read(TWO | {"probability": probability}, "soft").place == place
    for strength, place in ((-3, (0, 1)), (1.0, (1, 0)), (0, (0, 0))):
        assert read(TWO | {"strength": strength}, "strength").place == place
    assert read(MANY | {"scores": [1, -2.5, 1]}, "scores").place == (0, 1, 0)
    assert read(MANY | {"ranking": [2, [0, 1]]}, "ranking").place == (1, 1, 0)
    assert read(MANY | {"choice": 1}, "choice").place == (1, 0, 1)


def test_the_rows_of_helpsteer3_are_read_as_they_are() -> None:
    """Their -3: the first is much better."""
    answers = {"response1": "Cod", "response2": "Heron"}
    row = read({"domain": "x", "context": [USER], **answers, "overall_preference": 2}, "strength")
    assert (row.place, row.strength, row.prompt) == ((1, 0), 2, (Turn("user", "Name a bird"),))


def test_only_the_best_is_known_of_a_choice_among_more_than_two() -> None:
    assert read(MANY | {"choice": 1}, "choice").best_only
    assert not read({"prompt": "p", "responses": ["a", "b"], "choice": 1}, "choice").best_only


def test_traits_are_taken_along_and_null_is_as_good_as_absent() -> None:
    row = read(PAIR | {"annotator": 7, "group": "g", "margin": 2}, "pairs")
    assert (row.annotator, row.group, row.margin) == ("7", "g", 2.0)
    assert read(PAIR | dict.fromkeys(("annotator", "group", "margin", "shown")), "pairs") == read(PAIR, "pairs")


def test_responses_stand_as_they_were_shown_unless_told() -> None:
    assert read(TWO | {"preference": "tie"}, "comparison").shown
    assert not read(TWO | {"preference": "tie", "shown": False}, "comparison").shown
    assert not read(PAIR, "pairs").shown


def test_an_implicit_prompt_is_read_where_another_column_is_called_prompt() -> None:
    """`--form implicit` does not look at it."""
    assert read({"prompt": 7, "chosen": [USER, GOOD], "rejected": [USER, POOR]}, "implicit") == read(PAIR, "pairs")
    row = read({"chosen": "Birds are loud", "rejected": "Birds are dinosaurs"}, "pairs")
    assert row.prompt == (Turn("user", "Birds are"),)
