"""A recipe's cells one after the other, in this process and without a folder: rows, answers, notes, findings."""

from collections.abc import Generator
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from killick.recipes.ledger import Row

Result = TypeVar("Result")


def done(loop: Generator[Any, None, Result]) -> Result:
    """What a generator returns."""
    while True:
        try:
            next(loop)
        except StopIteration as stop:
            result: Result = stop.value
            return result


class Told(NamedTuple):
    """What a run says."""

    rows: list[Row]
    samples: list[Row]
    notes: list[str]
    found: dict[str, dict[str, Any]]

    def arm(self, name: str) -> list[Row]:
        """The rows of one arm."""
        return [row for row in self.rows if row["arm"] == name]


def tell(recipe: ModuleType, config: Any) -> Told:
    """Prepare each seed and run each cell."""
    told, ready = Told([], [], [], {}), {}
    for cell in recipe.cells(config):
        if cell.seed not in ready:
            loop = recipe.prepare(config, cell.seed)
            while True:
                try:
                    told.notes.append(next(loop).text)
                except StopIteration as stop:
                    ready[cell.seed], told.found[str(cell.seed)] = stop.value
                    break
        _, seen = recipe.begin(config, cell, prepared=ready[cell.seed])
        for event in seen:
            if event.row is not None:
                told.rows.append(event.row)
            told.samples.extend(event.samples)
    return told


kept = cache(tell)
"""The same, each run once."""
