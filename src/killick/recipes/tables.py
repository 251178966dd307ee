"""A table that a recipe shows: on the console, in results.json and on the page, after the claims."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from killick.recipes.ledger import Row

Ledger: TypeAlias = Mapping[str, Sequence[Row]]
"""Arm -> its rows at one seed, by step."""


@dataclass(frozen=True)
class Table:
    """One table with what to see in it.

    Args:
        title: a few words.
        note: one or two sentences: what to see.
        columns: their names, with units where they have any.
        rows: text or numbers, as many in each as there are columns; None where there is nothing to tell.

    Raises:
        ValueError: where a row has another number of cells.
    """

    title: str
    note: str
    columns: list[str]
    rows: list[list[str | int | float | None]]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"The table {self.title!r} has {len(self.columns)} columns, but a row of {len(row)}.")

    @classmethod
    def unless_empty(cls, title: str, note: str, columns: list[str], *, rows: list[list[Any]]) -> "Table | None":
        """The table, or none where it would have no row."""
        return cls(title, note, columns, rows) if rows else None


def by_arm(rows: Sequence[Row], seed: int) -> dict[str, list[Row]]:
    """One seed's rows, arm by arm."""
    ledger: dict[str, list[Row]] = {}
    for row in rows:
        if row["seed"] == seed:
            ledger.setdefault(row["arm"], []).append(row)
    return ledger


def numbers(row: Row) -> list[float]:
    """Proxy, gold and KL, never one of them alone."""
    return [row["proxy"], row["gold"], row["kl"]]


def every(rows: Sequence[Row], steps: int) -> list[list[Any]]:
    """The step and the three numbers, every so many steps."""
    return [[row["step"], *numbers(row)] for row in rows[::steps]]
