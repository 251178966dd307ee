"""Tables: as many cells in a row as there are columns."""

from dataclasses import asdict

import pytest

from killick.recipes.tables import Table, by_arm, every


def test_a_table_becomes_plain_types() -> None:
    """As results.json holds it."""
    table = Table("Ends", "The last row is best.", ["arm", "gold"], [["beta=0", 1.5], ["beta=1", None]])
    assert asdict(table) == {
        "title": "Ends", "note": "The last row is best.", "columns": ["arm", "gold"],
        "rows": [["beta=0", 1.5], ["beta=1", None]],
    }  # fmt: skip


@pytest.mark.parametrize("row", [[], ["beta=0"], ["beta=0", 1.5, 2.0]])
def test_a_row_of_another_length_is_an_error(row: list[str | int | float | None]) -> None:
    """It would shift every number below another head."""
    with pytest.raises(ValueError, match=f"'Ends' has 2 columns, but a row of {len(row)}"):
        Table("Ends", "", ["arm", "gold"], [["beta=1", 2], row])


def test_a_table_without_rows_is_none() -> None:
    assert Table.unless_empty("Ends", "", ["arm"], rows=[]) is None
    assert Table.unless_empty("Ends", "", ["arm"], rows=[["x"]]) == Table("Ends", "", ["arm"], [["x"]])


def test_rows_are_sorted_out_by_arm_and_read_every_so_many_steps() -> None:
    """One seed; step, proxy, gold and KL."""
    rows = [
        {"arm": arm, "seed": seed, "step": step, "proxy": 0.5, "gold": float(step), "kl": 2.0, "length": 1}
        for arm in ("a", "b") for seed in (0, 1) for step in range(5)
    ]  # fmt: skip
    ledger = by_arm(rows, 1)
    assert list(ledger) == ["a", "b"]
    assert [row["seed"] for row in ledger["a"]] == [1] * 5
    assert every(ledger["b"], 2) == [[step, 0.5, float(step), 2.0] for step in (0, 2, 4)]
