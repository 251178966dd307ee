"""Round trips of every form, and what is said to be lost where another form is written."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgements import fields, judged
from killick.preferences.formats.dialogues import BadField
from killick.preferences.formats.forms import FORMS
from killick.preferences.formats.reading import read
from killick.preferences.formats.writing import SURE, TOGETHER, write
from killick.preferences.rows import PreferenceRow, Turn

modest = settings(max_examples=10, deadline=None, derandomize=True)
MANY = {"prompt": "p", "responses": ["a", "b", "c"]}
SHOWN = "the order in which responses were shown is lost"
BELOW = "the order of the responses below the best is lost"
TWO = {"prompt": "p", "first": "a", "second": "b"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("long", [False, True])
@modest
@given(data=st.data())
def test_a_row_comes_back_as_it_was(form: str, long: bool, data: Any) -> None:
    """As messages; as strings where it can be strings; what a form cannot hold is refused, never changed."""
    row = judged(data.draw(fields(form, long)))
    for messages in (True, False):
        try:
            written = write(row, form, messages=messages)
        except BadField as error:
            several = long and not messages
            assert several or form in ("implicit", "hh"), error  # noqa: PT017
            continue
        assert [read(record, form) for record in written.records] == [row]
        assert not written.lost


@settings(max_examples=120, deadline=None, derandomize=True)
@given(data=st.data(), source=st.sampled_from(list(FORMS)), target=st.sampled_from(list(FORMS)))
def test_into_any_other_form_a_row_keeps_its_texts_and_never_gains_an_opinion(
    data: Any, source: str, target: str
) -> None:
    """Which of two responses is better never turns, whatever the forms."""
    row = judged(data.draw(fields(source)))
    try:
        written = write(row, target, messages=True)
    except BadField:
        return
    place = dict(zip(row.responses, row.place, strict=True))
    for record in written.records:
        back = read(record, target)
        assert back.prompt == row.prompt
        assert set(back.responses) <= set(row.responses)
        if target in ("choice",):
            assert place[back.responses[back.place.index(0)]] == 0
        else:
            for one, other in ((0, 1),) if len(back.responses) == 2 else ():
                below = place[back.responses[one]] - place[back.responses[other]]
                now = back.place[one] - back.place[other]
                assert (below > 0) - (below < 0) == (now > 0) - (now < 0)
        assert (back.annotator, back.margin) == (row.annotator, row.margin)


def test_a_ranking_becomes_its_strict_pairs_in_one_group() -> None:
    """[[a], [b, c]] holds two; the tie is left out and told, and so is the order in which they were shown."""
    written = write(read(MANY | {"ranking": [0, [1, 2]]}, "ranking"), "pairs")
    assert [(record["chosen"], record["rejected"]) for record in written.records] == [("a", "b"), ("a", "c")]
    assert len({record["group"] for record in written.records}) == 1
    assert written.lost == {
        "rows with several responses became pairs, those of a row with one group": 1,
        "ties have no chosen response and are left out": 1,
        "the order in which responses were shown is lost": 2,
    }


def test_a_ranking_becomes_comparisons_with_its_tie() -> None:
    written = write(read(MANY | {"ranking": [0, [1, 2]]}, "ranking"), "comparison")
    assert [record["preference"] for record in written.records] == ["first", "first", "tie"]


def test_one_response_gives_no_pair_and_is_told() -> None:
    written = write(read({"prompt": "p", "responses": ["a"], "ranking": [0]}, "ranking"), "pairs")
    assert (written.records, written.lost) == ([], {"rows with one response, which give no pair, are left out": 1})


def test_equal_responses_give_no_pair_and_are_told() -> None:
    row = read({"prompt": "p", "responses": ["a", "a", "b"], "ranking": [0, 1, 2]}, "ranking")
    written = write(row, "comparison")
    assert len(written.records) == 2
    assert written.lost["pairs of equal responses are left out"] == 1


@pytest.mark.parametrize(
    ("record", "source", "target", "lost"),
    [
        (TWO | {"strength": -2}, "strength", "pairs", ["strength is lost", SHOWN]),
        (TWO | {"strength": -2}, "strength", "comparison", []),
        (TWO | {"strength": -2}, "strength", "soft", ["strength is lost"]),
        (TWO | {"probability": 0.7}, "soft", "comparison", ["probability is lost"]),
        (MANY | {"scores": [1, 2, 3]}, "scores", "ranking", ["scores are lost"]),
        (MANY | {"scores": [1, 2, 3]}, "scores", "choice", ["scores are lost", BELOW]),
        (MANY | {"choice": 1}, "choice", "ranking", ["responses that nobody compared are written as tied"]),
        (MANY | {"ranking": [0, 1, 2]}, "ranking", "ranking", []),
    ],
)  # fmt: skip
def test_what_another_form_does_not_say_is_told(
    record: dict[str, Any], source: str, target: str, lost: list[str]
) -> None:
    assert sorted(write(read(record, source), target).lost) == sorted(lost)


@pytest.mark.parametrize(
    ("record", "source", "target", "reason"),
    [
        (TWO | {"preference": "first"}, "comparison", "strength", "has no strength"),
        (TWO | {"preference": "first"}, "comparison", "scores", "has no scores"),
        (MANY | {"ranking": [[0, 1], 2]}, "ranking", "choice", "no single best"),
        (MANY | {"ranking": [0, 1, 2]}, "ranking", "strength", "has no strength"),
    ],
)
def test_what_nothing_sensible_can_be_written_for_is_refused(
    record: dict[str, Any], source: str, target: str, reason: str
) -> None:
    with pytest.raises(BadField, match=reason):
        write(read(record, source), target)


def test_a_tie_needs_no_strength() -> None:
    assert write(read(TWO | {"preference": "tie"}, "comparison"), "strength").records[0]["strength"] == 0


def test_what_would_be_read_as_another_prompt_is_refused() -> None:
    """Two answers that begin with the same turn would lend it to the prompt."""
    turn = Turn("assistant", "Well,")
    responses = ((turn, Turn("user", "so"), Turn("assistant", "a")), (turn, Turn("user", "so"), Turn("assistant", "b")))
    row = PreferenceRow((Turn("user", "p"),), responses, (0, 1), shown=False)
    with pytest.raises(BadField, match="another prompt"):
        write(row, "implicit", messages=True)
    with pytest.raises(BadField, match=r"another prompt|same"):
        write(row, "hh")
    joined = PreferenceRow(
        (Turn("user", "Name a"),), ((Turn("assistant", "b c"),), (Turn("assistant", "b d"),)), (0, 1)
    )
    with pytest.raises(BadField, match="another prompt"):
        write(joined, "implicit")


def test_every_form_is_of_two_responses_or_of_several() -> None:
    assert set(SURE) | set(TOGETHER) | {"comparison", "soft", "strength"} == set(FORMS)
