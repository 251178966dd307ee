"""A table that a recipe shows: on the console, in results.json and on the page, after the claims."""

from dataclasses import dataclass


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
