"""What several commands leave: a table on the terminal, a table as CSV, a picture as files."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from killick.report.picture import Picture


def show(table: Mapping[str, Any]) -> None:
    """Print a table and a blank line."""
    from killick.console import table_lines

    print("\n".join(table_lines(table)) + "\n")


def write_csv(path: Path, head: Sequence[str], *, rows: Iterable[Sequence[Any]]) -> None:
    """Write a table, whole or not at all; None becomes an empty cell.

    Raises:
        OSError: where it cannot be written.
    """
    from killick.rundir.durable import replace_file

    text = io.StringIO()
    csv.writer(text).writerows([head, *rows])
    replace_file(path, text.getvalue().encode())


def write_picture(path: Path, picture: "Picture") -> None:
    """Write a picture as PNG and PDF, under the path's name with their endings.

    Raises:
        OSError: where they cannot be written.
    """
    from killick.report.style import WIDTH, render
    from killick.rundir.durable import replace_file

    files = render(picture.paint, size=(WIDTH, picture.height))
    for kind in ("png", "pdf"):
        replace_file(path.with_name(f"{path.name}.{kind}"), files[kind])
