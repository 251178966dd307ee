"""`killick reward`: help, and a word that is not there."""

import pytest

from commands import Command, command

killick = pytest.fixture(command, name="killick")


def test_help_and_unknown_commands(killick: Command) -> None:
    for words in ([], ["--help"]):
        said = killick("reward", *words)
        assert (said.status, "fit PREFS --model DIR --out DIR" in said.out, "score DIR ... FILE" in said.out) == (
            0, True, True,
        )  # fmt: skip
    assert "no command 'fti' (did you mean fit?)" in killick("reward", "fti").err
