"""A file into train, validation and test, by the prompts' text and a seed; the rows themselves stay as they are."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from killick.preferences.files import BadRows, scan_preferences
from killick.preferences.formats.cells import from_cells
from killick.preferences.formats.lines import arrow, layout, records
from killick.preferences.formats.saving import check_folder, check_free, save
from killick.preferences.pairing import part
from killick.preferences.rows import BadRow, fingerprint, prompt_key, prompt_text

PARTS = ("train", "validation", "test")
OUT = 255


@dataclass
class Split:
    """Which part each record of a file goes to.

    Args:
        place: of each record, in the file's order; `OUT` where it is left out.
        rows: in each part.
        prompts: in each part.
        bad: rows that were left out.
        repeated: rows that are another row of the same annotator once more, and are written once (O-12).
    """

    place: bytearray = field(default_factory=bytearray)
    rows: list[int] = field(default_factory=lambda: [0] * len(PARTS))
    prompts: list[int] = field(default_factory=lambda: [0] * len(PARTS))
    bad: list[BadRow] = field(default_factory=list)
    repeated: int = 0


def split(
    source: Path, out: Path, *, shares: tuple[float, ...], seed: int, form: str | None = None, skip_bad: bool = False,
    force: bool = False,
) -> Split:  # fmt: skip
    """Write the parts of a file into a folder, in the layout and with all columns of the file.

    Adding rows never moves a prompt to another part; all rows of a prompt are in one, and so are prompts that differ
    only in case or outer white space (O-12).

    Args:
        source: a preference file.
        out: made where it is not there; a part without a row is not written.
        shares: expected shares of train, validation and test.
        seed: of the split.
        form: found by the columns where none is given.
        skip_bad: leave bad rows out instead of refusing the file.
        force: write over files that are there.

    Raises:
        Refusal: where the file cannot be read, has bad rows, or a part cannot be written.
    """
    kind, zipped = layout(source)
    suffix = "".join(source.suffixes[-2:] if zipped else source.suffixes[-1:])
    targets = {name: out / (name + suffix) for name, share in zip(PARTS, shares, strict=True) if share}
    made = assign(source, shares, seed=seed, form=form)
    if made.bad and not skip_bad:
        raise BadRows(source, made.bad)
    check_folder(out)
    out.mkdir(exist_ok=True)
    for target in targets.values():
        check_free(target, force=force)
    schema = arrow().parquet.read_schema(source) if kind == "parquet" else None
    for name, target in targets.items():
        if not made.rows[PARTS.index(name)]:
            continue  # a file without a row could not be read
        columns, rows = picked(source, made, part=PARTS.index(name))
        save(target, rows, columns=columns, schema=schema, force=force)
    return made


def assign(source: Path, shares: tuple[float, ...], *, seed: int, form: str | None) -> Split:
    """Go through a file and find the part of each record."""
    found = Split()
    marks: set[bytes] = set()
    prompts: set[bytes] = set()
    for _, _, row in scan_preferences(source, form):
        if isinstance(row, BadRow):
            found.bad.append(row)
            found.place.append(OUT)
            continue
        mark = bytes.fromhex(fingerprint(row))
        if mark in marks:
            found.repeated += 1
            found.place.append(OUT)
            continue
        marks.add(mark)
        place = part(prompt_text(row), seed, shares=shares)
        found.place.append(place)
        found.rows[place] += 1
        key = prompt_key(row)
        found.prompts[place] += key not in prompts
        prompts.add(key)
    return found


def picked(source: Path, found: Split, *, part: int) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """The columns of a file, and its records of one part."""
    cells = layout(source)[0] == "csv"
    columns = next((list(record) for _, record in records(source) if isinstance(record, dict)), [])
    rows = (
        from_cells(record) if cells else record
        for (_, record), place in zip(records(source), found.place, strict=True)
        if place == part and isinstance(record, dict)
    )
    return columns, rows
