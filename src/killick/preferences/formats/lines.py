"""From a file to records, one at a time: JSON lines, CSV or Parquet by the file's suffix, gzip where it ends in .gz.

What is wrong with a line is told with its number, counted from 1 as an editor does; what is wrong with the whole file
is a `Refusal`. Text is UTF-8 whatever the locale, with or without a byte order mark, and only a line feed ends a line
(O-13 to O-16). Memory holds one line (of Parquet, one batch).
"""

import csv
import gzip
import json
import math
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from killick.preferences.rows import BadRow
from killick.refusal import Refusal

LONGEST = 16 * 2**20
"""Bytes of a line; a longer one is a file without line ends, or no text."""
BATCH = 500
"""Rows of Parquet in memory at once."""
SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}


def layout(path: Path) -> tuple[str, bool]:
    """What a file's name says it is: jsonl, csv or parquet, and whether it is compressed.

    Raises:
        Refusal: at any other name.
    """
    zipped = path.suffix == ".gz"
    kind = SUFFIXES.get(path.with_suffix("").suffix if zipped else path.suffix)
    if kind is None or (zipped and kind == "parquet"):
        raise Refusal(f"{path}: a preference file ends in .jsonl, .csv (either with .gz behind it) or .parquet.")
    return kind, zipped


def records(path: Path) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """Each record with its line (in Parquet its row), or what is wrong with that line; blank lines are passed over.

    Raises:
        Refusal: where the file cannot be read at all.
    """
    kind, zipped = layout(path)
    try:
        if kind == "parquet":
            yield from parquet_records(path)
            return
        with ExitStack() as stack:
            file: BufferedIOBase = stack.enter_context(path.open("rb"))
            if zipped:
                file = stack.enter_context(gzip.GzipFile(fileobj=file))
            yield from json_records(path, file) if kind == "jsonl" else csv_records(path, file)
    except IsADirectoryError as error:
        raise Refusal(f"{path} is a folder; name the file in it.") from error
    except FileNotFoundError as error:
        raise Refusal(f"There is no file {path}.") from error
    except PermissionError as error:
        raise Refusal(f"{path} may not be read; its permissions forbid it.") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Refusal(f"{path} is no whole gzip file: {error}.") from error


def lines(path: Path, file: BufferedIOBase) -> Iterator[tuple[int, bytes | BadRow]]:
    """Lines as bytes, ended by a line feed and by nothing else.

    Raises:
        Refusal: where the file looks like UTF-16.
    """
    number = 0
    while line := file.readline(LONGEST + 1):
        number += 1
        if number == 1:
            if line[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0\0" in (line[:1] + line[2:3], line[1:2] + line[3:4]):
                raise Refusal(f"{path} looks like UTF-16; save it as UTF-8.")
            line = line.removeprefix(b"\xef\xbb\xbf")
        if len(line) > LONGEST:
            while line and not line.endswith(b"\n"):
                line = file.readline(LONGEST)
            yield number, BadRow(number, "", f"is longer than {LONGEST // 2**20} MiB")
        else:
            yield number, line


def unread(number: int, error: UnicodeDecodeError) -> BadRow:
    """A line whose bytes are no UTF-8."""
    return BadRow(number, "", f"is not UTF-8 at byte {error.start + 1}")


def json_records(path: Path, file: BufferedIOBase) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """One JSON object a line."""
    for number, line in lines(path, file):
        if isinstance(line, BadRow):
            yield number, line
        elif line := line.strip(b" \t\r\n"):
            try:
                found = decode(line.decode())
                if b"\\u" in line:
                    json.dumps(found, ensure_ascii=False).encode()
                yield number, found if isinstance(found, dict) else BadRow(number, "", "is JSON, but no object")
            except UnicodeEncodeError:
                yield number, BadRow(number, "", "holds half of a surrogate pair, which is no character")
            except UnicodeDecodeError as error:
                yield number, unread(number, error)
            except ValueError as error:
                yield number, BadRow(number, "", str(error))


def decode(text: str) -> Any:
    """Strict JSON: no NaN, no number too large for a float, no name twice.

    Raises:
        ValueError: saying what is wrong, and nothing of what the text holds.
    """
    try:
        return DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON at column {error.colno}: {error.msg[0].lower()}{error.msg[1:]}") from error
    except RecursionError as error:
        raise ValueError("is nested too deep") from error
    except Strict as error:
        raise ValueError(str(error)) from error
    except ValueError as error:  # Python's bound on the digits of a whole number
        raise ValueError("holds a number with thousands of digits") from error


class Strict(ValueError):
    """JSON that Python would let pass."""


def finite(word: str) -> float:
    """A number; NaN, Infinity and what overflows to it are none."""
    if not math.isfinite(value := float(word)):
        raise Strict("holds a number that is NaN, infinite or too large")
    return value


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Strict("has an object that names a field twice")
    return found


DECODER = json.JSONDecoder(parse_float=finite, parse_constant=finite, object_pairs_hook=unique)


def csv_records(path: Path, file: BufferedIOBase) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """A header, then a row each, which may span lines; the number is that of its first line."""
    wrong: list[BadRow] = []

    def text() -> Iterator[str]:
        for number, line in lines(path, file):
            if isinstance(line, BadRow):
                wrong.append(line)
                yield "\n"
                continue
            try:
                yield line.decode()
            except UnicodeDecodeError as error:
                wrong.append(unread(number, error))
                yield line.decode(errors="replace")  # its quotes and commas still tell where the row ends

    csv.field_size_limit(LONGEST)
    reader = csv.reader(text(), strict=True)
    header = next_cells(reader)
    if isinstance(header, str) or not header or wrong or len(set(header)) < len(header):
        raise Refusal(f"{path} needs a first line with the names of its columns, each once.")
    while True:
        number = reader.line_num + 1
        cells = next_cells(reader)
        if wrong:
            yield wrong[0].line, wrong[0]
            wrong.clear()
        elif cells is None:
            return
        elif isinstance(cells, str):
            yield number, BadRow(number, "", cells)
        elif cells and len(cells) != len(header):
            yield number, BadRow(number, "", f"has {len(cells)} cells where the header names {len(header)}")
        elif cells:
            yield number, dict(zip(header, cells, strict=True))


def next_cells(reader: Any) -> list[str] | str | None:
    """The next row's cells, an empty list for a blank line, None at the end, or what is wrong."""
    try:
        return list(next(reader))
    except StopIteration:
        return None
    except csv.Error as error:
        return f"is not CSV: {error}"


def parquet_records(path: Path) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """Rows of a Parquet file, read in batches.

    Raises:
        Refusal: where pyarrow is missing, or the file is none.
    """
    pyarrow = arrow()
    number = 0
    with path.open("rb") as file:
        try:
            for batch in pyarrow.parquet.ParquetFile(file).iter_batches(BATCH):
                for record in batch.to_pylist():
                    number += 1
                    yield number, record
        except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
            said = " ".join(str(error).split()).rstrip(".")
            raise Refusal(f"{path} is no whole Parquet file (after row {number}: {said}).") from error


def arrow() -> Any:
    """pyarrow, which reads and writes Parquet.

    Raises:
        Refusal: where it is not installed.
    """
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise Refusal("Parquet needs pyarrow: pip install 'killick[prefs]'; JSONL and CSV need nothing.") from error
    return pyarrow
