"""A recipe's cells one after the other, in this process and without a folder: rows, answers, notes, findings."""

from collections.abc import Generator
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from killick.recipes.ledger import Note, Row

Value = TypeVar("Value")


class Told(NamedTuple):
    """What a run says."""

    rows: list[Row]
    samples: list[Row]
    notes: list[str]
    found: dict[str, dict[str, Any]]

    def arm(self, name: str) -> list[Row]:
        """The rows of one arm."""
        return [row for row in self.rows if row["arm"] == name]


def ended(loop: Generator[Note, None, Value]) -> tuple[list[str], Value]:
    """What a stage says on the way, and what it returns."""
    notes = list[str]()
    while True:
        try:
            notes.append(next(loop).text)
        except StopIteration as stop:
            return notes, stop.value


def tell(recipe: ModuleType, config: Any) -> Told:
    """Prepare each seed and run each cell."""
    told, ready = Told([], [], [], {}), {}
    for cell in recipe.cells(config):
        if cell.seed not in ready:
            notes, (ready[cell.seed], told.found[str(cell.seed)]) = ended(recipe.prepare(config, cell.seed))
            told.notes.extend(notes)
        _, seen = recipe.begin(config, cell, prepared=ready[cell.seed])
        for event in seen:
            if event.row is not None:
                told.rows.append(event.row)
            told.samples.extend(event.samples)
    return told


kept = cache(tell)
"""The same, each run once."""
