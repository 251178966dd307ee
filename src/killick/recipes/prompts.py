"""A person's prompts from a file, and which of them are held out: for best-of-n and align alike."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from killick.preferences.formats.cells import from_cells, spoken
from killick.preferences.formats.dialogues import BadField, clean, turns
from killick.preferences.formats.forms import detect
from killick.preferences.formats.lines import SUFFIXES, layout, lines, records, unread
from killick.preferences.formats.reading import read
from killick.preferences.pairing import part
from killick.preferences.rows import BadRow, Turns
from killick.recipes.scores.text_score import as_text
from killick.types import Refusal

Prompt: TypeAlias = str | Turns
"""One turn of the user as a text, or a dialogue so far as turns."""
SHOWN = 3
"""Bad lines that a refusal names, out of all that it counts."""


@dataclass(frozen=True)
class Divided:
    """Prompts to learn from, and prompts that are only asked to see what was learned."""

    train: list[Prompt]
    held_out: list[Prompt]


def read_prompts(path: Path) -> list[Prompt]:
    """The prompts of a file, each once, in order of appearance.

    A file that ends in .jsonl, .csv (either with .gz behind it) or .parquet has a column `prompt` (a string, or a list
    of messages) or `messages` (a dialogue, whose last answer is left off), or is a preference file of any form. Any
    other file is text: one prompt a line.

    Args:
        path: the file; UTF-8, with or without a byte order mark.

    Raises:
        Refusal: where it cannot be read or holds no prompt; naming lines, fields and reasons where rows are bad.
    """
    table = (path.with_suffix("") if path.suffix == ".gz" else path).suffix in SUFFIXES
    found: dict[Prompt, None] = {}
    bad: list[BadRow] = []
    for prompt in from_table(path) if table else from_text(path):
        if isinstance(prompt, BadRow):
            bad.append(prompt)
        else:
            found[plain(prompt)] = None
    if bad:
        told = "; ".join(f"line {row.line}, {row}" for row in bad[:SHOWN]) + ("; ..." if len(bad) > SHOWN else "")
        raise Refusal(f"{path}: {len(bad)} bad row{'s' * (len(bad) > 1)} ({told}), so no prompt was read.")
    if not found:
        raise Refusal(f"{path} holds no prompt.")
    return list(found)


def from_text(path: Path) -> Iterator[Prompt | BadRow]:
    """One prompt a line; blank lines are passed over."""
    try:
        with path.open("rb") as file:
            for number, line in lines(path, file):
                if isinstance(line, BadRow):
                    yield line
                elif line.strip():
                    try:
                        yield clean(line.decode().rstrip("\r\n"), "prompt")
                    except UnicodeDecodeError as error:
                        yield unread(number, error)
                    except BadField as error:
                        yield BadRow(number, error.field, error.reason)
    except OSError as error:
        raise Refusal(f"{path} cannot be read ({error.strerror}); name a file with prompts.") from error


def from_table(path: Path) -> Iterator[Turns | BadRow]:
    """The prompt of each record."""
    cells = layout(path)[0] == "csv"
    for number, record in records(path):
        if isinstance(record, BadRow):
            yield record
            continue
        try:
            yield asked(from_cells(record) if cells else record)
        except BadField as error:
            yield BadRow(number, error.field, error.reason)


def asked(record: dict[str, Any]) -> Turns:
    """The turns that a record asks to be answered.

    Raises:
        BadField: naming the field that holds no prompt.
    """
    form = detect(record)
    if form is not None:
        prompt = read(record, form).prompt
    elif record.get("prompt") is not None:
        prompt = turns(record["prompt"], "prompt", role="user")
    elif record.get("messages") is not None:
        given = record["messages"]
        prompt = turns(spoken("messages", given) if isinstance(given, str) else given, "messages", role="user")
        prompt = prompt[:-1] if prompt[-1].role == "assistant" else prompt
    else:
        there = ", ".join(str(name)[:40] for name in list(record)[:8]) or "nothing"
        raise BadField("prompt", f"is missing, and so is messages; the columns are {there}")
    if not prompt or prompt[-1].role == "assistant":
        raise BadField("prompt" if "messages" not in record else "messages", "ends with an answer, so it asks nothing")
    return prompt


def plain(prompt: Prompt) -> Prompt:
    """One turn of the user as its text, so that a string and a list with one message are the same prompt (O-11)."""
    return (
        prompt[0].content if len(prompt) == 1 and not isinstance(prompt, str) and prompt[0].role == "user" else prompt
    )


def divide(prompts: Sequence[Prompt], *, share: float, seed: int) -> Divided:
    """Hold out a share of the prompts, by their text and a seed (O-12): adding prompts moves none across.

    Args:
        prompts: all of them.
        share: expected share that is held out; 0 holds out none.
        seed: of the split.

    Raises:
        Refusal: where a side would be empty.
    """
    if not 0 <= share < 1:
        raise Refusal(f"--held-out must be a share of 0 or more and below 1, not {share:g}.")
    sides = [part(as_text(prompt), seed, shares=(1 - share, share)) for prompt in prompts]
    train, held_out = ([each for each, side in zip(prompts, sides, strict=True) if side == k] for k in (0, 1))
    if share and not held_out:
        raise Refusal(
            f"None of {len(prompts)} prompt{'s' * (len(prompts) > 1)} falls into the held-out share of {share:g}; give "
            "more prompts, raise --held-out, or go without by --held-out 0."
        )
    if not train:
        raise Refusal(
            f"All {len(prompts)} prompts fall into the held-out share of {share:g}; give more prompts, or lower it."
        )
    return Divided(train, held_out)
