"""A JSONL file that grows chunk by chunk: each chunk is on the disk before anybody is told, and none is made twice."""

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from killick.rundir.durable import replace_file
from killick.rundir.ledger import read_rows


class Progress(NamedTuple):
    """How far it is.

    Args:
        done: rows in the file.
        of: rows in all.
        left: seconds left; None before a chunk was made here.
    """

    done: int
    of: int
    left: float | None


def grow(path: Path, total: int, *, each: int, make: Callable[[int, int], list[dict[str, Any]]]) -> Iterator[Progress]:
    """Make the rows that a file lacks. Killed at any moment and called again, it comes to the same bytes.

    Args:
        path: the file; its last chunk may be cut off anywhere, and is then made anew.
        total: rows in all.
        each: rows in a chunk; the last may have fewer.
        make: the rows from the first number up to the second; what it gives depends on nothing that came before.
    """
    have, began = len(whole(path, total, each=each)), time.monotonic()
    yield Progress(have, total, None)
    for first in range(have, total, each):
        last = min(first + each, total)
        lines = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in make(first, last))
        with path.open("ab") as file:
            file.write(lines.encode("utf-8", "backslashreplace"))
            file.flush()
            os.fsync(file.fileno())
        yield Progress(last, total, (time.monotonic() - began) / (last - have) * (total - last))


def whole(path: Path, total: int, *, each: int) -> list[dict[str, Any]]:
    """The rows of whole chunks; what stands behind them is taken out of the file."""
    rows = read_rows(path, growing=True)
    have = total if len(rows) >= total else len(rows) // each * each
    if path.exists():
        lines = path.read_bytes().split(b"\n")[:have]
        replace_file(path, b"".join(line + b"\n" for line in lines))
    return rows[:have]
