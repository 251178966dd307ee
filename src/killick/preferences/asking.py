"""From a preference file to questions for people, and from their labels back to rows of a preference file.

A file may be judged already: its verdict then stands in the item's metadata, where no annotator sees it. Or it may hold
responses that nobody judged, in the columns `prompt` and `responses`, or `prompt`, `first` and `second` (or as
HelpSteer3 calls these three).
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from killick.preferences.files import BadRows
from killick.preferences.formats.cells import from_cells
from killick.preferences.formats.dialogues import BadField
from killick.preferences.formats.forms import ALIASES, detect
from killick.preferences.formats.lines import layout, records
from killick.preferences.formats.reading import read, several, two
from killick.preferences.formats.writing import write
from killick.preferences.rows import BadRow, PreferenceRow, Turn, Turns, prompt_text, response_texts
from killick.preferences.storing.records import Item, Label

Form = Literal["comparison", "ranking"]


def questions(path: str | Path, *, skip_bad: bool = False) -> tuple[list[Item], Counter[str]]:
    """What a file asks, judged or not.

    Args:
        path: ends in .jsonl, .csv (either with .gz behind it) or .parquet.
        skip_bad: leave bad rows out instead of refusing the file.

    Returns:
        An item for each row with two different responses or more, and what was left out: words -> how often.

    Raises:
        BadRows: where there is a bad row, unless told to leave it out.
        Refusal: where the file cannot be read at all.
    """
    path, items, left, bad = Path(path), list[Item](), Counter[str](), list[BadRow]()
    cells = layout(path)[0] == "csv"
    for line, record in records(path):
        try:
            if isinstance(record, BadRow):
                raise BadField(record.field, record.reason)
            asked = question(from_cells(record) if cells else record, line)
        except BadField as error:
            bad.append(BadRow(line, error.field, error.reason))
            continue
        if asked is None:
            left["rows without two different responses"] += 1
        else:
            items.append(asked)
    if bad and not skip_bad:
        raise BadRows(path, bad)
    if bad:
        left["bad rows"] = len(bad)
    return items, left


def question(record: dict[str, Any], line: int) -> Item | None:
    """A record as an item; None where it has no two responses that differ.

    Raises:
        BadField: naming the first field that cannot be used.
    """
    form, row = detect(record), None
    if form is not None:
        row = read(record, form)
        prompt, responses = row.prompt, row.responses
    else:
        known = {ALIASES.get(name, name): value for name, value in record.items()} | record
        prompt, responses = two(known) if "first" in known else several(known)
    different = list(dict.fromkeys(responses))
    if len(different) < 2:
        return None
    metadata: dict[str, Any] = {"line": line}
    if row is not None:
        metadata["place"] = [row.place[responses.index(each)] for each in different]
    if any(len(turns) != 1 for turns in (prompt, *different)):
        metadata["turns"] = {"prompt": prompt, "responses": different}
    plain = PreferenceRow(prompt, tuple(different), tuple(range(len(different))))
    texts = tuple(response_texts(plain))
    return Item(prompt_text(plain), texts, kind="pair" if len(texts) == 2 else "ranking", metadata=metadata)


def labelled_row(item: Item, label: Label) -> PreferenceRow:
    """What an annotator said, as a row with the responses in the order in which they were shown.

    Args:
        item: the question.
        label: what was said of it; no skip, which says nothing.
    """
    place = {number: rank for rank, group in enumerate(label.judgement.ranking) for number in group}
    prompt, responses = dialogues(item)
    won = place[label.order[0]] < place[label.order[1]]
    strength = label.judgement.strength
    return PreferenceRow(
        prompt,
        tuple(responses[number] for number in label.order),
        tuple(place[number] for number in label.order),
        strength=None if strength is None else -strength if won else strength,
        annotator=label.annotator,
    )


def held_rows(labels: Iterable[tuple[Item, Label]]) -> tuple[list[tuple[Item, Label, PreferenceRow]], Counter[str]]:
    """The labels that a preference file can hold, as rows, and why others stay out: words -> how often."""
    labels, rows, left = list(labels), list[tuple[Item, Label, PreferenceRow]](), Counter[str]()
    form = export_form(item for item, _ in labels)
    for item, label in labels:
        if label.judgement.skipped:
            left["skips hold no preference and stay out"] += 1
            continue
        row = labelled_row(item, label)
        try:
            write(row, form, messages="turns" in item.metadata)
        except BadField as error:
            left[f"labels that no preference file can hold stay out ({error.reason})"] += 1
        else:
            rows.append((item, label, row))
    return rows, left


def dialogues(item: Item) -> tuple[Turns, list[Turns]]:
    """Prompt and responses as turns: those of the file, or one turn each."""
    turns = item.metadata.get("turns")
    if turns is None:
        return (Turn("user", item.prompt),), [(Turn("assistant", text),) for text in item.candidates]
    return spoken(turns["prompt"]), [spoken(each) for each in turns["responses"]]


def spoken(turns: Iterable[Any]) -> Turns:
    """Turns again, after they were JSON."""
    return tuple(Turn(role, content) for role, content in turns)


def export_form(items: Iterable[Item]) -> Form:
    """The form of a preference file that holds labels of all these items."""
    return "comparison" if all(item.kind == "pair" for item in items) else "ranking"
