"""`killick lab` as a teacher meets it: it says what there is, writes a folder, and writes over nothing."""

from pathlib import Path

import pytest

from commands import Command, command
from killick.lab.writing import LABS

killick = pytest.fixture(command)


@pytest.mark.parametrize("words", [("lab",), ("lab", "-h"), ("lab", "--help")])
def test_lab_alone_says_which_there_are_and_how_to_begin(killick: Command, words: tuple[str, ...]) -> None:
    said = killick(*words)
    assert said.status == 0
    assert "usage: killick lab new DIR" in said.out
    assert all(name in said.out and about in said.out for name, about in LABS.items())
    assert "killick lab new my-rlhf" in said.out


def test_new_writes_the_default_exercise_and_says_what_comes_next(killick: Command, tmp_path: Path) -> None:
    said = killick("lab", "new", "my rlhf")
    assert said.status == 0
    assert "cd 'my rlhf', and read README.md" in said.out
    assert "RLHF in five functions" in (tmp_path / "my rlhf" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", LABS)
def test_every_exercise_by_its_name(killick: Command, tmp_path: Path, name: str) -> None:
    for words in (("lab", "new", "one", "--lab", name), ("lab", "new", "--lab", name, "two")):
        said = killick(*words)
        assert said.status == 0
        assert said.err == ""
    for folder in ("one", "two"):
        assert (tmp_path / folder / f"test_{name}.py").exists()


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["lab", "new"], ["takes one new folder"]),
        (["lab", "old", "x"], ["takes one new folder"]),
        (["lab", "new", "x", "y"], ["takes one new folder"]),
        (["lab", "new", "--lab"], ["takes one new folder"]),
        (["lab", "new", "x", "--lab"], ["takes one new folder"]),
        (["lab", "new", "x", "--lab", "leesh"], ["no lab 'leesh'", "did you mean leash?", "rlhf, hacking, leash"]),
        (["lab", "new", "x", "--lab", "../lab/rlhf"], ["no lab '../lab/rlhf'"]),
        (["lab", "new", "x", "--lba", "rlhf"], ["takes one new folder"]),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_no_folder(
    killick: Command, tmp_path: Path, words: list[str], parts: list[str]
) -> None:
    said = killick(*words)
    assert said.status == 2
    assert len(said.err.splitlines()) == 1
    for part in parts:
        assert part in said.err
    assert not list(tmp_path.iterdir())


def test_a_folder_that_exists_is_left_as_it_is(killick: Command, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "rlhf.py").write_text("my work")
    said = killick("lab", "new", "mine")
    assert said.status == 2
    assert said.err == (
        "killick: mine exists, and a lab never writes over anything; name a folder that does not exist yet.\n"
    )
    assert (tmp_path / "mine" / "rlhf.py").read_text() == "my work"
