"""Exercises are copied into new folders, whole, and over nothing."""

from pathlib import Path

import pytest

from exercises import edit, edits
from killick.lab import writing
from killick.lab.writing import LABS, write
from killick.types import Refusal

TEMPLATES = Path(writing.__file__).parent


@pytest.mark.parametrize("name", LABS)
def test_a_written_exercise_is_the_template(tmp_path: Path, name: str) -> None:
    """Byte by byte, in a folder whose parents are made too, without what a run leaves behind."""
    files = write(name, tmp_path / "deep" / "new")
    assert files == sorted(path.name for path in (tmp_path / "deep" / "new").iterdir())
    assert {"README.md", "run.py", "pytest.ini", f"{name}.py", f"test_{name}.py"} <= set(files)
    for file in files:
        assert (tmp_path / "deep" / "new" / file).read_bytes() == (TEMPLATES / name / file).read_bytes()
        assert Path(file).suffix in (".py", ".md", ".ini")


def test_nothing_is_written_over(tmp_path: Path) -> None:
    """Neither a folder, nor an empty one, nor a file, nor a link that leads nowhere."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("folder", "file", "link"):
        with pytest.raises(Refusal, match=f"{name} exists, and a lab never writes over anything"):
            write("rlhf", tmp_path / name)
    assert list((tmp_path / "folder").iterdir()) == []
    assert (tmp_path / "file").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["rhlf", "", "../lab/rlhf", "__pycache__", "."])
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    """Only the names that are listed."""
    with pytest.raises(Refusal, match="There is no lab"):
        write(name, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", LABS)
def test_every_edit_of_the_readme_fits_the_files_and_says_what_comes_of_it(tmp_path: Path, name: str) -> None:
    """What goes stands there once, what comes compiles, and an outcome with a number follows before the next idea."""
    write(name, tmp_path / "new")
    readme = (tmp_path / "new" / "README.md").read_text(encoding="utf-8")
    found = edits(readme)
    assert len(found) >= 3
    for number, pieces in enumerate(found):
        write(name, tmp_path / str(number))
        edit(tmp_path / str(number), pieces)
    ideas = readme.partition("## Things to try")[2].partition("## What is simplified")[0].split("\n**")[1:]
    for idea in ideas:
        assert any(letter.isdigit() for letter in idea.rpartition("```")[2]), idea
    assert "OUTCOME" not in readme
    assert "RESULTS" not in readme
