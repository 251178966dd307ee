"""Files appear whole or not at all, and over nothing."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from killick.preferences.formats.lines import records
from killick.preferences.formats.saving import check_free, replacing, save, schema
from killick.types import Refusal

ROWS: list[dict[str, Any]] = [
    {"prompt": "a\n“é” 日本 \U0001f469\u200d\U0001f52c\u2028", "scores": [1.0, 2.0]},
    {"prompt": "b", "annotator": "ann"},
]
COLUMNS = ["prompt", "scores", "annotator"]


def broken() -> Iterator[dict[str, Any]]:
    """Records that end in an error."""
    yield ROWS[0]
    raise ArithmeticError("halfway")


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.jsonl.gz", "a.csv.gz", "a.parquet"])
def test_an_error_halfway_leaves_what_was_there(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for before in ([], [name]):
        with pytest.raises(ArithmeticError, match="halfway"):
            save(path, broken(), columns=COLUMNS, schema=schema(COLUMNS, messages=False), force=True)
        assert os.listdir(tmp_path) == before
        path.write_bytes(b"mine")
    assert path.read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.jsonl.gz", "a.csv.gz"])
def test_the_same_records_are_the_same_bytes_with_plain_line_feeds(tmp_path: Path, name: str) -> None:
    """gzip without a clock or a name in it."""
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        save(tmp_path / place / name, ROWS, columns=COLUMNS)
    content = (tmp_path / "one" / name).read_bytes()
    assert content == (tmp_path / "two" / name).read_bytes()
    if not name.endswith("gz"):
        assert b"\r" not in content
        assert "“é” 日本 \U0001f469\u200d\U0001f52c".encode() in content


def test_a_file_is_not_written_over_unless_told(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    save(path, ROWS, columns=COLUMNS)
    with pytest.raises(Refusal, match="nothing is written over"):
        save(path, ROWS[:1], columns=COLUMNS)
    assert len(list(records(path))) == 2
    save(path, ROWS[:1], columns=COLUMNS, force=True)
    assert len(list(records(path))) == 1


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    saving = replacing(path)
    saving.__enter__().write(b"new")
    path.write_bytes(b"somebody else's")
    with pytest.raises(Refusal, match="exists"):
        saving.__exit__(None, None, None)
    assert path.read_bytes() == b"somebody else's"
    assert os.listdir(tmp_path) == ["a.jsonl"]


@pytest.mark.parametrize(
    ("name", "reason"), [("there", "is a folder"), ("none/a.jsonl", "no folder .*none for a.jsonl")]
)
def test_places_where_nothing_can_be_written_are_refused(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(Refusal, match=reason):
        check_free(tmp_path / name, force=True)


def test_a_folder_that_may_not_be_written_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may be allowed everything, so the system's answer is given here."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(Refusal, match="may not be written to"):
        check_free(tmp_path / "a.jsonl", force=False)
