"""A person's own table of answers, from CSV; what cannot be read is one sentence with line and column."""

import csv
import difflib
import io
import math

import torch

from killick.types import Refusal
from killick.worlds.listed import AnswerTable, numbers

COLUMNS = ("answer", "p_ref", "reward", "gold", "gaming")
NEEDED = ("p_ref", "reward")
ROUNDING = 1e-3
"""How far p_ref may sum from 1 and be taken for rounded numbers."""
MOST = 10_000
"""Answers; more are refused."""
LARGEST = 1e100
"""The most that a number may be, either side of 0: sums and squares of such numbers stay finite."""
YES, NO = ("1", "true", "yes", "y"), ("0", "false", "no", "n", "")

Row = tuple[int, dict[str, str]]
"""The line where a row ends, and its cells by column."""


def read_table(data: bytes) -> AnswerTable:
    """The table that a CSV file holds, its notes telling what was left out or divided.

    Columns, in any order and any case: `p_ref` and `reward`; `answer`, `gold` and `gaming` (1 or 0) may be missing.
    UTF-8, with or without a byte order mark; commas, semicolons or tabs, whichever the first line has; points in
    numbers. `p_ref` within 0.001 of summing to 1 is divided by its sum, any other sum is refused.

    Raises:
        Refusal: one sentence that names line and column.
    """
    cells, others = lines(decoded(data))
    if len(cells) < 2:
        raise Refusal(f"The table has {len(cells)} answers; a policy needs two or more to choose from.")
    notes = [f"Columns that are not read: {', '.join(others)}."] if others else []
    reference = numbers(*(probability(row) for row in cells))
    total = float(reference.sum())
    if not abs(total - 1) <= ROUNDING:
        raise Refusal(f"Column p_ref sums to {total:.6g} over {len(cells)} answers, not to 1: an answer is missing.")
    if abs(total - 1) > 1e-9:
        notes.append(f"p_ref sums to {total:.6g}, near enough to be rounded numbers, and was divided by that.")
    given = cells[0][1]
    return AnswerTable(
        named(cells),
        reference / total,
        numbers(*(number(row, "reward") for row in cells)),
        numbers(*(number(row, "gold") for row in cells)) if "gold" in given else None,
        torch.tensor([truth(row) for row in cells]) if "gaming" in given else None,
        tuple(notes),
    )


def decoded(data: bytes) -> str:
    """UTF-8 text, or where it stops being that."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].rpartition(b"\n")[2]
        line, column = data[: error.start].count(b"\n") + 1, len(before.decode("utf-8-sig", "replace")) + 1
        raise Refusal(
            f"Line {line}, character {column}: byte 0x{data[error.start]:02X} is not UTF-8; save the file as UTF-8."
        ) from error
    if "\0" in text:
        raise Refusal(
            f"Line {text[: text.index(chr(0))].count(chr(10)) + 1} holds a zero byte; save the file as UTF-8."
        )
    return text


def lines(text: str) -> tuple[list[Row], list[str]]:
    """The rows by column, and the columns that mean nothing here."""
    (_, first), *rest = split(text) or [(1, [])]
    head = [cell.lower() for cell in first]
    if not head:
        raise Refusal("The table is empty; its first line must name the columns p_ref and reward.")
    for name in NEEDED:
        if name not in head:
            close = difflib.get_close_matches(name, head, 1, 0.5)
            hint = f" (is it {close[0]!r}?)" if close else ""
            raise Refusal(f"The first line names no column {name}{hint}; it has {', '.join(head)[:200]}.")
    twice = next((name for name in COLUMNS if head.count(name) > 1), None)
    if twice:
        raise Refusal(f"The first line names the column {twice} twice.")
    for line, cells in rest:
        if len(cells) != len(head):
            raise Refusal(f"Line {line} has {len(cells)} cells, but the first line names {len(head)} columns.")
    if len(rest) > MOST:
        raise Refusal(f"Line {rest[MOST][0]}: a table may have {MOST} answers at most.")
    rows = [(line, dict(zip(head, cells, strict=True))) for line, cells in rest]
    return rows, [name or "(no name)" for name in head if name not in COLUMNS]


def separator(text: str) -> str:
    """What stands between cells: a comma, semicolon or tab, whichever the first line has most of."""
    return max(",;\t", key=text.lstrip().partition("\n")[0].count)


def split(text: str) -> list[tuple[int, list[str]]]:
    """The cells of every line that is not blank, with the line's number."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator(text), strict=True)
    try:
        return [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader if any(map(str.strip, cells))]
    except csv.Error as error:
        raise Refusal(f"Line {reader.line_num} cannot be read: {error}.") from error


def number(row: Row, column: str) -> float:
    """A finite number of bearable size."""
    line, cells = row
    text = cells[column]
    try:
        found = float(text)
    except ValueError as error:
        hint = "; write it with a point" if "," in text else ""
        raise Refusal(f"Line {line}, column {column}: {shown(text)} is no number{hint}.") from error
    if not math.isfinite(found):
        raise Refusal(f"Line {line}, column {column}: {shown(text)} is no finite number.")
    if abs(found) > LARGEST:
        raise Refusal(
            f"Line {line}, column {column}: {shown(text)} is too far from 0; at most {LARGEST:g} either side."
        )
    return found


def probability(row: Row) -> float:
    """A number between 0 and 1."""
    found = number(row, "p_ref")
    if not 0 <= found <= 1:
        raise Refusal(f"Line {row[0]}, column p_ref: {found:g} is no probability; it must lie between 0 and 1.")
    return found


def truth(row: Row) -> bool:
    """Whether an answer is marked."""
    line, cells = row
    text = cells["gaming"].lower()
    if text not in YES + NO:
        raise Refusal(f"Line {line}, column gaming: {shown(text)} is neither 1 nor 0.")
    return text in YES


def named(rows: list[Row]) -> tuple[str, ...]:
    """The answers; one without a text is called by its number."""
    seen: dict[str, int] = {}
    for place, (line, cells) in enumerate(rows, 1):
        name = cells.get("answer") or f"answer {place}"
        if name in seen:
            raise Refusal(f"Line {line}, column answer: {shown(name)} stands on line {seen[name]} already.")
        seen[name] = line
    return tuple(seen)


def shown(text: str) -> str:
    """A cell inside a sentence: short, on one line, quoted."""
    return repr(text if len(text) <= 40 else text[:39] + "…") if text else "an empty cell"
