"""Counts as lines that a person reads."""

from collections import Counter
from pathlib import Path

from killick.cli.prefs_words import overlapped, plural, share, summary_lines, told_lines
from killick.preferences.summary import Summary


def test_one_and_many() -> None:
    assert [plural(count, "row") for count in (0, 1, 2_000)] == ["0 rows", "1 row", "2,000 rows"]


def test_what_was_written_and_what_is_lost() -> None:
    told = Counter({"rows": 3, "scores are lost": 2})
    assert told_lines(told, 1, out=Path("a.csv"), form="pairs") == [
        "a.csv: 3 rows in the form pairs.",
        "  scores are lost: 2",
        "  bad rows are left out: 1",
    ]


def test_a_share_with_its_interval_or_none() -> None:
    assert share({"share": None, "pairs": 0}) == "no pair tells"
    assert share({"share": 0.5, "low": 0.25, "high": 0.75, "pairs": 8}) == "0.500 (0.250 to 0.750) of 8 pairs"


def test_a_file_in_lines_with_at_most_eight_annotators() -> None:
    """An empty file is counted too; names are the file's own."""
    figures = Summary().figures() | {"file": "a.jsonl", "bad_rows": 2}
    figures["rows_per_annotator"] = {f"name {number}": 1 for number in range(10)}
    text = "\n".join(summary_lines(figures, limit=""))
    assert "a.jsonl" in text
    assert "(2 bad rows left out)" in text
    assert "name 7: 1, 2 others" in text
    assert "equal within" not in text
    assert "equal within 8 words" in "\n".join(
        summary_lines(figures | {"equal_pairs_after_truncation": 3}, limit="8 words")
    )


def test_two_files_that_share_prompts() -> None:
    found = {"prompts": 1, "rows_of_first": 2, "rows_of_second": 3}
    lines = overlapped(found, [{"file": "a", "rows": 5}, {"file": "b", "rows": 6}])
    assert lines[0].startswith("1 prompt in both")
    assert lines[1:] == ["  2 rows of 5 in a", "  3 rows of 6 in b"]
