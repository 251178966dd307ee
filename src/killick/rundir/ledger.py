"""The ledger: one JSON object a line, strict, without a clock; one file per cell, merged into metrics.jsonl."""

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from killick.rundir.durable import replace_file, write_synced
from killick.types import Refusal


def plain(value: Any) -> Any:
    """Numbers of numpy and torch as Python's; NaN and infinity as None, since they are not JSON (O-52, O-56)."""
    if isinstance(value, (str, bool, int)) or value is None:
        return value
    if isinstance(value, float):  # most of a ledger: asked before the slow question of what is a Mapping
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)


def line(row: Mapping[str, Any]) -> str:
    """One ledger row as strict JSON; a number that is none becomes null, and `reason` says which."""
    clean = plain(row)
    lost = [key for key, value in row.items() if value is not None and clean[str(key)] is None]
    if lost:
        clean["reason"] = ", ".join(f"{key} is {float(row[key])}" for key in lost)
    return json.dumps(clean, allow_nan=False)


def read_rows(path: Path, growing: bool = False) -> list[dict[str, Any]]:
    """All rows of a JSONL file.

    Args:
        path: the file; none at all gives no rows.
        growing: its writer may be in the middle of the last line, or was killed there; such a line is left out.

    Raises:
        Refusal: naming the first line that is no JSON object.
    """
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    if growing or not lines[-1]:
        lines.pop()
    rows = []
    for number, text in enumerate(lines, 1):
        try:
            row = json.loads(text)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise Refusal(f"{path}, line {number}: this is no JSON object; the file is cut or damaged.")
        rows.append(row)
    return rows


class CellLedger:
    """The rows of one cell, appended one by one; it can be read while it grows.

    Args:
        path: made here, or taken up.
        step: rows from this step on are dropped: what follows will write them again. None keeps all.
    """

    def __init__(self, path: Path, step: int | None):
        kept = [row for row in read_rows(path, growing=True) if step is None or row["step"] < step]
        if path.exists():
            replace_file(path, "".join(line(row) + "\n" for row in kept).encode())
        else:
            write_synced(path, b"")
        self.file = path.open("ab", buffering=0)

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row; a reader sees it at once."""
        rest = memoryview((line(row) + "\n").encode())
        while rest:
            rest = rest[self.file.write(rest) :]

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def merge(paths: Iterable[Path], into: Path) -> list[dict[str, Any]]:
    """Write the rows of all cells into one file, sorted by arm, seed and step; the same bytes in any order of cells."""
    rows = [row for path in paths for row in read_rows(path, growing=True)]
    rows.sort(key=lambda row: (row["arm"], row["seed"], row["step"]))
    replace_file(into, "".join(line(row) + "\n" for row in rows).encode())
    return rows
