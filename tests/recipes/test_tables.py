"""Tables: as many cells in a row as there are columns."""

from dataclasses import asdict

import pytest

from killick.recipes.tables import Table


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
