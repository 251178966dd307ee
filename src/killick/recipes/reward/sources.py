"""Where judgements come from: a preference file, or the labels of a store."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from killick.preferences.asking import labelled_row
from killick.preferences.files import BadRows, find_form, row_form, scan_preferences
from killick.preferences.rows import BadRow
from killick.preferences.storing.records import Item, Label
from killick.preferences.verdict_tables import from_rows
from killick.preferences.verdicts import Verdict
from killick.recipes.reward.data import Placed
from killick.types import Refusal


@dataclass(frozen=True)
class Source:
    """Judgements, and what of them was left out.

    Args:
        name: the file or the store.
        kind: the form of the file's rows (forms, where it mixes them), or "labels".
        placed: judgements, each with where it stands.
        left: why others are not among them -> how often.
    """

    name: str
    kind: str
    placed: list[Placed]
    left: Counter[str]

    def verdicts(self) -> list[Verdict]:
        """Who said what: from it follows how far annotators agree."""
        return from_rows(row for _, row in self.placed)[0]


def from_file(path: Path, *, form: str | None = None, skip_bad: bool = False) -> Source:
    """All judgements of a preference file.

    Args:
        path: ends in .jsonl, .csv (either with .gz behind it) or .parquet.
        form: of all rows; found by the columns of each where None.
        skip_bad: leave bad rows out and count them.

    Raises:
        BadRows: where there is a bad row, unless told to leave it out.
        Refusal: where the file cannot be read at all, or has no good row.
    """
    placed, bad = list[Placed](), list[BadRow]()
    usual, kinds = form or find_form(path), dict[str, None]()
    for line, record, row in scan_preferences(path, form):
        if isinstance(row, BadRow):
            bad.append(row)
        else:
            kinds[form or row_form(record, usual)] = None
            placed.append(Placed(f"line {line}", row))
    if (bad and not skip_bad) or not placed:
        raise BadRows(path, bad) if bad else Refusal(f"{path} holds no judgement.")
    return Source(str(path), ", ".join(kinds), placed, Counter({"bad rows": len(bad)} if bad else {}))


def from_labels(labels: Iterable[tuple[Item, Label]], *, name: str) -> Source:
    """All judgements of a store that hold; skipped and flagged ones are left out and counted.

    Args:
        labels: as `Store.export` gives them.
        name: of the store.

    Raises:
        Refusal: where there is none.
    """
    placed, left = list[Placed](), Counter[str]()
    for item, label in labels:
        if label.judgement.skipped or label.judgement.flags:
            left["skipped labels" if label.judgement.skipped else "flagged labels"] += 1
        else:
            placed.append(Placed(f"item {item.id} by {label.annotator}", labelled_row(item, label)))
    if not placed:
        found = ", ".join(f"{count} {reason}" for reason, count in left.items())
        raise Refusal(f"The store {name} holds no label to learn from{f', only {found}' if found else ''}.")
    return Source(name, "labels", placed, left)
