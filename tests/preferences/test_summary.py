"""Counts of a preference file against a hand-made one, and shares against closed forms."""

from typing import Any

import pytest

from killick.preferences.formats.reading import read
from killick.preferences.rows import PreferenceRow, Turns
from killick.preferences.summary import Summary, overlap


def compared(prompt: str, first: str, second: str, preference: str, **more: Any) -> PreferenceRow:
    """A comparison."""
    return read({"prompt": prompt, "first": first, "second": second, "preference": preference, **more}, "comparison")


def counted(*rows: PreferenceRow, **more: Any) -> dict[str, Any]:
    """The figures of these rows."""
    summary = Summary(**more)
    for row in rows:
        summary.add(row)
    return summary.figures()


def test_a_hand_made_file() -> None:
    """Pairs: aa > b (the longer, first), c < dd (the longer, second), e = f, and of the ranking g > h, g > i, h = i."""
    found = counted(
        compared("p", "aa", "b", "first", annotator="ann"),
        compared(" P", "c", "dd", "second", annotator="ben"),
        compared("q", "e", "f", "tie", annotator="ann"),
        read({"prompt": "r", "responses": ["g", "h", "i"], "ranking": [0, [1, 2]]}, "ranking"),
        read({"prompt": "r", "responses": ["g"], "ranking": [0]}, "ranking"),
        compared("p", "aa", "b", "first", annotator="ann"),
        compared("p", "aa", "b", "first", annotator="ben"),
    )
    assert (found["rows"], found["prompts"], found["pairs"], found["ties"]) == (7, 3, 6, 2)
    assert found["duplicate_rows"] == 1
    assert found["responses_per_row"] == {"1": 1, "2": 5, "3": 1}
    assert found["rows_per_annotator"] == {"ann": 3, "ben": 2, "": 2}
    assert (found["longer_wins"]["share"], found["longer_wins"]["pairs"]) == (1.0, 4)
    assert (found["first_wins"]["share"], found["first_wins"]["pairs"]) == (5 / 6, 6)


def test_pairs_that_say_not_who_was_shown_first_are_no_evidence_of_position() -> None:
    sure = read({"prompt": "p", "chosen": "a", "rejected": "b"}, "pairs")
    found = counted(sure, compared("p", "a", "b", "first", shown=False))
    assert found["first_wins"] == {"share": None, "low": None, "high": None, "pairs": 0}
    assert found["longer_wins"]["pairs"] == 0  # of one length


def test_pairs_that_truncation_makes_equal_are_counted_beside_those_of_one_text() -> None:
    """O-04: eight shared words and a ninth that differs; and a row whose two texts are one."""

    def seen(prompt: Turns, response: Turns) -> tuple[str, ...]:
        return tuple(response[0].content.split()[:8])

    rows = [
        compared("p", "1 2 3 4 5 6 7 8 9", "1 2 3 4 5 6 7 8 10", "first"),
        compared("p", "same", "same", "tie"),
        compared("p", "a", "b", "first"),
    ]
    found = counted(*rows, seen=seen)
    assert (found["equal_pairs"], found["equal_pairs_after_truncation"]) == (1, 2)
    assert counted(*rows)["equal_pairs_after_truncation"] is None


def test_responses_that_repeat_the_prompt_are_counted() -> None:
    rows = [compared("Say it", "Say it: a", "Say it: b", "first"), compared("Say it", "Say it: a", "b", "first")]
    assert counted(*rows)["pairs_that_repeat_the_prompt"] == 1


@pytest.mark.parametrize(("long", "bin_"), [(11, 0), (12, 1), (13, 2), (15, 2), (20, 3), (30, 4), (31, 5)])
def test_a_pair_falls_into_the_bin_of_its_ratio(long: int, bin_: int) -> None:
    """Ten characters against `long`; a ratio on an edge belongs below it."""
    found = counted(compared("p", "x" * 10, "y" * long, "second"))["longer_wins_by_length"]
    assert [each["pairs"] for each in found] == [int(place == bin_) for place in range(6)]
    assert found[bin_]["share"] == 1.0


def test_prompts_in_two_files_are_found_whatever_their_case_and_outer_spaces() -> None:
    one, other = Summary(), Summary()
    for row in (compared("A", "x", "y", "tie"), compared("a ", "x", "z", "tie"), compared("b", "x", "y", "tie")):
        one.add(row)
    for row in (compared("a", "x", "y", "tie"), compared("c", "x", "y", "tie")):
        other.add(row)
    assert overlap(one, other) == {"prompts": 1, "rows_of_first": 2, "rows_of_second": 1}
