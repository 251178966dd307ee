"""What several commands leave behind."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from killick.cli.output import show, write_csv, write_picture
from killick.report.picture import Picture


def test_a_table_is_shown_with_a_blank_line(capsys: pytest.CaptureFixture[str]) -> None:
    show({"title": "Two", "note": "Of them.", "columns": ["a", "b"], "rows": [[1, "x"], [2, "y"]]})
    assert capsys.readouterr().out == "Two\nOf them.\n\na  b\n1  x\n2  y\n\n"


def test_a_csv_quotes_what_needs_it_and_leaves_empty_what_is_not_known(tmp_path: Path) -> None:
    write_csv(tmp_path / "t.csv", ["name", "value"], rows=[["a, b", 0.5], ["c", None]])
    assert (tmp_path / "t.csv").read_bytes() == b'name,value\r\n"a, b",0.5\r\nc,\r\n'


def test_a_picture_is_two_files_whatever_points_stand_in_its_name(tmp_path: Path) -> None:
    def paint(figure: Figure) -> None:
        figure.subplots().plot([0, 1])

    write_picture(tmp_path / "run.1", Picture("line", "A line", "It rises.", 1.0, paint))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.1.pdf", "run.1.png"]
    assert (tmp_path / "run.1.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "run.1.pdf").read_bytes().startswith(b"%PDF")
