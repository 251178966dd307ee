"""Between a record and the cells of a CSV row: text as it is, everything else as JSON. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from killick.preferences.formats.dialogues import BadField
from killick.preferences.formats.lines import decode

TEXT = {"prompt", "chosen", "rejected", "first", "second", "context", "response1", "response2"}
"""Columns whose cells hold a text, or a list of messages as JSON."""
JSON = {
    "responses", "ranking", "scores", "probability", "strength", "overall_preference", "margin", "choice", "shown",
}  # fmt: skip
"""Columns whose cells are JSON."""
OPTIONAL = {"annotator", "group"}
"""Columns whose empty cell says nothing, as an empty cell of JSON does."""


def from_cells(cells: Mapping[str, str]) -> dict[str, Any]:
    """The record that a row of CSV holds.

    Raises:
        BadField: where a cell is no JSON, and has to be.
    """
    found: dict[str, Any] = {}
    for name, cell in cells.items():
        if name in TEXT:
            found[name] = spoken(name, cell)
        elif name in JSON and cell:
            try:
                found[name] = decode(cell)
            except ValueError as error:
                raise BadField(name, f"{error}; its cells are JSON") from error
        elif name not in JSON and (cell or name not in OPTIONAL):
            found[name] = cell
    return found


def spoken(name: str, cell: str) -> Any:
    """A text, or the messages that a cell lists as JSON.

    Raises:
        BadField: at messages written in Python's way, which would otherwise be learned as text.
    """
    if not cell.startswith("[{"):
        return cell
    try:
        found = decode(cell)
    except ValueError as error:
        if cell.startswith(("[{'role'", "[{'content'")):
            raise BadField(name, "holds messages in Python's notation; its cells are text or JSON") from error
        return cell
    listed = isinstance(found, list) and all(isinstance(each, dict) and "role" in each for each in found)
    return found if listed else cell


def to_cells(record: Mapping[str, Any]) -> dict[str, str]:
    """A record as cells; a text that would be read as messages becomes a message."""
    roles = {"prompt": "user"}
    cells = {}
    for name, value in record.items():
        if isinstance(value, str) and (name not in TEXT or spoken(name, value) == value):
            cells[name] = value
        elif isinstance(value, str):
            cells[name] = dumps([{"role": roles.get(name, "assistant"), "content": value}])
        else:
            cells[name] = "" if value is None else dumps(value)
    return cells


def dumps(value: Any) -> str:
    """Strict JSON on one line, in the letters that the text has."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
