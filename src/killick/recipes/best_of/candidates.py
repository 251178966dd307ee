"""A person's own variants, from JSONL or CSV: for each prompt the responses to choose from."""

import csv
import difflib
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from killick.preferences.formats.dialogues import BadField, turns
from killick.preferences.rows import Turns
from killick.recipes.prompts import plain
from killick.recipes.scores.text_score import Prompt
from killick.types import Refusal
from killick.worlds.listed_csv import decoded, separator

TEXTS = ("response", "text")
"""What the column of responses may be called."""

Candidate = tuple[int, str | Turns, str]
"""The line, the prompt (empty where there is none), the response."""


@dataclass(frozen=True)
class Pool:
    """The responses to one prompt, in the file's order.

    Attributes:
        prompt: empty where the file has none; turns where it has messages.
        responses: as they stand in the file.
        lines: where each stands.
    """

    prompt: Prompt
    responses: tuple[str, ...]
    lines: tuple[int, ...]


def read_pools(data: bytes, *, name: str) -> list[Pool]:
    """One pool for each prompt, in order of appearance; a file without prompts is one pool.

    JSONL: an object a line, {"prompt": ..., "response": ...} or {"prompt": ..., "responses": [...]}, a prompt being a
    text or a list of messages; CSV: a line of column names, then a line for each response. `text` may stand for
    `response`, and `prompt` may be missing.

    Args:
        data: the file.
        name: its name; what does not end in .csv or .jsonl is taken for JSONL where it begins with a brace.

    Raises:
        Refusal: one sentence that names the line.
    """
    text = decoded(data)
    lowered = name.lower()
    lines = lowered.endswith((".jsonl", ".ndjson")) or (not lowered.endswith(".csv") and text.lstrip()[:1] == "{")
    found: dict[str | Turns, list[tuple[int, str]]] = {}
    for line, prompt, response in from_lines(text) if lines else from_table(text):
        found.setdefault(prompt, []).append((line, response))
    if not found:
        raise Refusal(f"{name} holds no response.")
    return [
        Pool(prompt, tuple(response for _, response in rows), tuple(line for line, _ in rows))
        for prompt, rows in found.items()
    ]


def from_lines(text: str) -> Iterator[Candidate]:
    """Each response of JSONL."""
    for line, row in enumerate(text.split("\n"), 1):  # splitlines would also break at characters that JSON allows
        if not row.strip():
            continue
        try:
            found = json.loads(row)
        except (ValueError, RecursionError) as error:
            raise Refusal(f"Line {line} is no JSON ({error}).") from error
        if not isinstance(found, dict):
            raise Refusal(f'Line {line} is no object; it must look like {{"prompt": ..., "response": ...}}.')
        prompt = asked(found.get("prompt") or "", line=line)
        for response in responses(found, line=line):
            yield line, prompt, response


def asked(prompt: Any, *, line: int) -> str | Turns:
    """A prompt: a text, or messages."""
    if not isinstance(prompt, list):
        return told(prompt, line=line, field="prompt")
    try:
        return plain(turns(prompt, "prompt", role="user"))
    except BadField as error:
        raise Refusal(f"Line {line}: {error.field} {error.reason}.") from error


def responses(row: dict[str, Any], *, line: int) -> Iterator[str]:
    """The one response of a row, or its many."""
    several = row.get("responses")
    if isinstance(several, list):
        for place, response in enumerate(several):
            yield told(response, line=line, field=f"responses[{place}]")
        return
    name = named(list(row), [*TEXTS, "responses"], line=line)
    if name == "responses":
        raise Refusal(f"Line {line}: responses must be a list of texts, not {type(several).__name__}.")
    yield told(row[name], line=line, field=name)


def from_table(text: str) -> Iterator[Candidate]:
    """Each response of CSV, separated by commas, semicolons or tabs, whichever the first line has most of."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator(text), strict=True)
    try:
        head = [cell.strip().lower() for cell in next(reader, [])]
        place = head.index(named(head, TEXTS, line=1))
        prompt = head.index("prompt") if "prompt" in head else None
        for cells in reader:
            if not any(map(str.strip, cells)):
                continue
            if len(cells) != len(head):
                raise Refusal(f"Line {reader.line_num} has {len(cells)} cells, but line 1 names {len(head)} columns.")
            yield reader.line_num, "" if prompt is None else cells[prompt], cells[place]
    except csv.Error as error:
        raise Refusal(f"Line {reader.line_num} cannot be read: {error}.") from error


def named(there: list[str], wanted: Sequence[str], *, line: int) -> str:
    """The column of responses."""
    for name in wanted:
        if name in there:
            return name
    close = [match for name in wanted for match in difflib.get_close_matches(name, there, 1, 0.6)]
    hint = f" (is it {close[0]!r}?)" if close else ""
    raise Refusal(f"Line {line} names no {' or '.join(wanted)}{hint}; it has {', '.join(there)[:200] or 'nothing'}.")


def told(value: Any, *, line: int, field: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise Refusal(f"Line {line}: {field} must be a text, not {type(value).__name__}.")
    return value
