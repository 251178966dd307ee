"""Files to records: encodings, line ends, broken lines told by number, whole files that are refused."""

import gzip
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from killick.preferences.formats import lines as lines_file
from killick.preferences.formats.lines import decode, layout, records
from killick.preferences.rows import BadRow
from killick.types import Refusal

ROW = b'{"prompt": "a"}'


def found(path: Path, content: bytes) -> list[tuple[int, Any]]:
    """The records of a file with this content."""
    path.write_bytes(content)
    return list(records(path))


def wrong(path: Path, content: bytes) -> list[tuple[int, str]]:
    """What is wrong with it, by line."""
    return [(line, record.reason) for line, record in found(path, content) if isinstance(record, BadRow)]


# JSON lines


def test_six_lines_of_which_three_are_broken(tmp_path: Path) -> None:
    """O-14: good, blank, a trailing comma, a list, good, and one cut in the middle of a string."""
    content = ROW + b'\n\n{"prompt":"secret",}\n[1,2]\n' + ROW + b'\n{"prompt": "sec'
    assert [line for line, _ in found(tmp_path / "a.jsonl", content)] == [1, 3, 4, 5, 6]
    said = wrong(tmp_path / "a.jsonl", content)
    assert [line for line, _ in said] == [3, 4, 6]
    assert [reason[:14] for _, reason in said] == ["is not JSON at", "is JSON, but n", "is not JSON at"]
    assert not any("sec" in reason for _, reason in said)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_byte_order_mark_and_other_line_ends_change_nothing(tmp_path: Path, mark: bytes, end: bytes) -> None:
    """O-13."""
    content = mark + ROW + end + ROW
    assert found(tmp_path / "a.jsonl", content) == [(1, {"prompt": "a"}), (2, {"prompt": "a"})]
    assert found(tmp_path / "a.csv", mark + b"prompt" + end + b"a" + end) == [(2, {"prompt": "a"})]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_utf_16_is_refused_by_its_name(tmp_path: Path, name: str, encoding: str) -> None:
    """O-13: not as a JSON error at column 1."""
    with pytest.raises(Refusal, match="looks like UTF-16"):
        found(tmp_path / name, ROW.decode().encode(encoding))


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_only_a_line_feed_ends_a_line(tmp_path: Path, name: str) -> None:
    """O-15: U+2028, U+2029, U+0085 and an emoji, unescaped, inside a text."""
    said = "a\u2028b\u2029c\u0085d \U0001f44d"
    content = f'{{"prompt": "{said}"}}\n' if name == "a.jsonl" else f'prompt\n"{said}"\n'
    assert [record for _, record in found(tmp_path / name, content.encode())] == [{"prompt": said}]


def test_other_bytes_are_refused_by_line(tmp_path: Path) -> None:
    """Latin-1 in line 2, a surrogate as three bytes in line 3."""
    content = ROW + b'\n{"prompt": "\xe9"}\n{"prompt": "\xed\xa0\x80"}\n' + ROW
    assert wrong(tmp_path / "a.jsonl", content) == [(2, "is not UTF-8 at byte 13"), (3, "is not UTF-8 at byte 13")]
    assert wrong(tmp_path / "a.csv", b'prompt,x\na,"b\xe9,\nc"\nd,e\n') == [(2, "is not UTF-8 at byte 5")]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": NaN}', "NaN"),
        ('{"a": [Infinity]}', "NaN"),
        ('{"a": -Infinity}', "NaN"),
        ('{"a": 1e999}', "too large"),
        ('{"a": 1, "a": 2}', "a field twice"),
        ("[" * 100_000, "nested too deep"),
        ('{"a": ' + "9" * 5000 + "}", "thousands of digits"),
        ("", "not JSON at column 1"),
        ("{'a': 1}", "not JSON at column 2"),
        ("1 2", "not JSON at column 3"),
    ],
)
def test_what_strict_json_does_not_know_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decode(text)


def test_a_line_without_an_end_is_no_reason_to_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_file, "LONGEST", 2**20)
    content = ROW + b"\n" + b"x" * (5 * 2**20) + b"\n" + ROW
    assert found(tmp_path / "a.jsonl", content)[1:] == [
        (2, BadRow(2, "", "is longer than 1 MiB")),
        (3, {"prompt": "a"}),
    ]


# CSV


def test_a_row_of_csv_may_span_lines_and_is_told_by_its_first(tmp_path: Path) -> None:
    content = b'prompt,chosen\n"a\nb","c ""quoted"", d"\n\nx\n"y",z\n"p" q,r\n"never closed,1\n'
    assert found(tmp_path / "a.csv", content) == [
        (2, {"prompt": "a\nb", "chosen": 'c "quoted", d'}),
        (5, BadRow(5, "", "has 1 cells where the header names 2")),
        (6, {"prompt": "y", "chosen": "z"}),
        (7, BadRow(7, "", "is not CSV: ',' expected after '\"'")),
        (8, BadRow(8, "", "is not CSV: unexpected end of data")),
    ]


@pytest.mark.parametrize("content", [b"", b"\n", b"a,a\n1,2\n", b'"a\n', b"\xff\xfa\n1\n"])
def test_csv_without_a_header_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(Refusal, match="names of its columns"):
        found(tmp_path / "a.csv", content)


# Parquet and gzip


def test_parquet_rows_are_counted_from_one(tmp_path: Path) -> None:
    rows = [{"prompt": f"p{i}", "responses": ["a", "b"]} for i in range(1200)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    assert list(records(tmp_path / "a.parquet")) == list(enumerate(rows, 1))


def test_a_gzip_file_is_read_as_what_is_in_it(tmp_path: Path) -> None:
    assert found(tmp_path / "a.jsonl.gz", gzip.compress(b"\n" + ROW)) == [(2, {"prompt": "a"})]


# Whole files


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.json", b"[]", "ends in .jsonl"),
        ("a.parquet.gz", b"", "ends in .jsonl"),
        ("a.parquet", b"PAR1 no", "no whole Parquet file"),
        ("a.parquet", b"", "no whole Parquet file"),
        ("a.jsonl.gz", b"plain", "no whole gzip file"),
        ("a.jsonl.gz", gzip.compress(ROW * 99, mtime=0)[:-12], "no whole gzip file"),
    ],
)
def test_a_file_that_cannot_be_read_at_all_is_one_sentence(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    with pytest.raises(Refusal, match=reason):
        found(tmp_path / name, content)


def test_a_file_that_is_not_there_or_a_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").mkdir()
    with pytest.raises(Refusal, match="is a folder"):
        list(records(tmp_path / "a.jsonl"))
    with pytest.raises(Refusal, match="There is no file"):
        list(records(tmp_path / "b.jsonl"))


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(Refusal, match=r"pip install 'killick\[prefs\]'"):
        found(tmp_path / "a.parquet", b"")


def test_the_name_of_a_file_tells_its_layout() -> None:
    assert layout(Path("x.y.csv.gz")) == ("csv", True)
    assert layout(Path("x.parquet")) == ("parquet", False)
