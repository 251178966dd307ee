"""Preference files: read row by row with every bad line told, or all at once or not at all; written whole."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from killick.preferences.formats.cells import from_cells
from killick.preferences.formats.dialogues import BadField
from killick.preferences.formats.forms import FORMS, TRAITS, detect
from killick.preferences.formats.lines import layout, records
from killick.preferences.formats.reading import read
from killick.preferences.formats.saving import check_free, save, schema
from killick.preferences.formats.writing import write
from killick.preferences.rows import BadRow, PreferenceRow
from killick.refusal import Refusal

LOOKED = 1000
"""Lines that are looked at to find the form of a file."""


class BadRows(Refusal):
    """A file with rows that cannot be used, all of them in `rows`; nothing was read."""

    def __init__(self, path: Path, rows: Sequence[BadRow]):
        first = f"line {rows[0].line}, {rows[0]}"
        super().__init__(
            f"{path}: {len(rows)} bad row{'s' * (len(rows) > 1)} ({first}{'; ...' * (len(rows) > 1)}), so nothing was "
            "read; killick prefs check lists them, --skip-bad leaves them out."
        )
        self.rows = list(rows)


class Scanned(NamedTuple):
    """A line of a file: its number from 1, the columns that it has, and the row or what is wrong with it."""

    line: int
    record: dict[str, Any]
    row: PreferenceRow | BadRow


def find_form(path: Path) -> str:
    """The form of the first row of a file whose columns show one; others may be mixed with it.

    Raises:
        Refusal: where the file cannot be read, holds nothing, or has the columns of no form.
    """
    seen: dict[str, Any] | None = None
    empty = True
    for _, record in islice(records(path), LOOKED):
        empty = False
        if isinstance(record, dict):
            if form := detect(record):
                return form
            seen = record if seen is None else seen
    if empty:
        raise Refusal(f"{path} holds no rows.")
    if seen is None:
        return "pairs"  # not one row can be read, whatever it was meant to be; each says why
    shown = ", ".join(str(name)[:40] for name in list(seen)[:8]) or "none"
    raise Refusal(f"{path} has the columns of no form ({shown}); killick prefs --help shows the forms.")


def row_form(record: Mapping[str, Any], usual: str) -> str:
    """The form of one row: what its columns show that hold anything, else the file's usual one."""
    return detect([name for name, value in record.items() if value not in (None, "")]) or usual


def scan_preferences(path: Path, form: str | None = None) -> Iterator[Scanned]:
    """Each line of a file, read; blank lines are passed over. One line is in memory at a time.

    Args:
        path: of a preference file.
        form: a name of `FORMS`, of all rows; without one, each row has the form that its own columns show.

    Raises:
        Refusal: where the file cannot be read at all, or the form is unknown.
    """
    if form is not None and form not in FORMS:
        raise Refusal(f"There is no form {form!r}; there are {', '.join(FORMS)}.")
    usual = find_form(path) if form is None else form
    cells = layout(path)[0] == "csv"
    for line, record in records(path):
        if isinstance(record, BadRow):
            yield Scanned(line, {}, record)
            continue
        try:
            kind = form or row_form(record, usual)
            yield Scanned(line, record, read(from_cells(record) if cells else record, kind))
        except BadField as error:
            yield Scanned(line, record, BadRow(line, error.field, error.reason))


def read_preferences(
    path: str | Path, *, form: str | None = None, skip_bad: bool = False
) -> tuple[list[PreferenceRow], list[BadRow]]:
    """All rows of a file, or none.

    Args:
        path: ends in .jsonl, .csv (either with .gz behind it) or .parquet.
        form: a name of `FORMS`; found by the columns where none is given.
        skip_bad: leave bad rows out instead of refusing the file.

    Returns:
        The rows in the file's order, and the bad rows that were left out.

    Raises:
        BadRows: where there is a bad row, unless told to leave it out.
        Refusal: where the file cannot be read at all.
    """
    rows: list[PreferenceRow] = []
    bad: list[BadRow] = []
    for scanned in scan_preferences(Path(path), form):
        if isinstance(scanned.row, BadRow):
            bad.append(scanned.row)
        else:
            rows.append(scanned.row)
    if bad and not skip_bad:
        raise BadRows(Path(path), bad)
    return rows, bad


def write_preferences(
    path: str | Path, rows: Iterable[PreferenceRow], *, form: str, messages: bool | None = None, force: bool = False
) -> Counter[str]:
    """Write rows in a form; the file is whole, or there is none.

    Args:
        path: ends in .jsonl, .csv (either with .gz behind it) or .parquet.
        rows: gone through twice, so no iterator: first to see that all can be written.
        form: a name of `FORMS`.
        messages: lists of messages, or strings; None takes strings where every row can be one.
        force: write over a file that is there.

    Returns:
        "rows" written, and what they no longer say: words -> how often.

    Raises:
        Refusal: where the place is taken or the form cannot hold a row: what is missing, how often, and where first.
    """
    return put(Path(path), lambda: enumerate(rows, 1), form=form, messages=messages, force=force, at="row")


def convert(
    source: Path, target: Path, *, to: str, form: str | None = None, messages: bool | None = None,
    skip_bad: bool = False, force: bool = False,
) -> tuple[Counter[str], list[BadRow]]:  # fmt: skip
    """Write a file's rows in another form or layout, one row in memory at a time.

    Args:
        source: read twice.
        target: as `write_preferences` has it, with `messages` and `force`.
        to: the form to write.
        form: of the source; found by the columns where none is given.
        messages: see `write_preferences`.
        skip_bad: leave bad rows out instead of refusing the file.
        force: see `write_preferences`.

    Returns:
        What `write_preferences` does, and the bad rows that were left out.

    Raises:
        Refusal: as `read_preferences` and `write_preferences` do.
    """
    bad: list[BadRow] = []

    def good() -> Iterator[tuple[int, PreferenceRow]]:
        bad.clear()
        for line, _, row in scan_preferences(source, form):
            if isinstance(row, BadRow):
                bad.append(row)
            else:
                yield line, row
        if bad and not skip_bad:
            raise BadRows(source, bad)

    return put(target, good, form=to, messages=messages, force=force, at="line"), bad


def put(
    path: Path, rows: Callable[[], Iterable[tuple[int, PreferenceRow]]], *, form: str, messages: bool | None,
    force: bool, at: str,
) -> Counter[str]:  # fmt: skip
    """Write numbered rows: look whether all can be, then do it."""
    kind, _ = layout(path)
    check_free(path, force=force)
    told, wordy, columns = survey(rows(), form, messages=messages, at=at)
    records = (record for _, row in rows() for record in write(row, form, messages=wordy).records)
    types = schema(columns, messages=wordy) if kind == "parquet" else None
    save(path, records, columns=columns, schema=types, force=force)
    return told


def survey(
    rows: Iterable[tuple[int, PreferenceRow]], form: str, *, messages: bool | None, at: str
) -> tuple[Counter[str], bool, list[str]]:
    """What rows lose in a form, whether they have to be messages, and the columns that they need.

    Raises:
        Refusal: where one cannot be written.
    """
    if form not in FORMS:
        raise Refusal(f"There is no form {form!r}; there are {', '.join(FORMS)}.")
    wordy = bool(messages)
    told: Counter[str] = Counter()
    wrong: dict[str, list[int]] = {}
    columns: dict[str, None] = {}
    for number, row in rows:
        try:
            written = write(row, form, messages=wordy)
        except BadField as error:
            try:
                if messages is not None or wordy:
                    raise
                written, wordy = write(row, form, messages=True), True
            except BadField:
                wrong.setdefault(error.reason, []).append(number)
                continue
        told["rows"] += len(written.records)
        told += written.lost
        for record in written.records:
            columns.update(dict.fromkeys(record))
    if wrong:
        reasons = "; ".join(f"{why} ({len(lines)}, the first at {at} {lines[0]})" for why, lines in wrong.items())
        raise Refusal(f"The form {form} cannot hold all rows: {reasons}; nothing was written.")
    return told, wordy, sorted(columns, key=lambda name: name in TRAITS)
