"""Commands as a test gives them: in this process, in an empty folder, with what they said and how they ended."""

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from killick import cli

SHORT = [
    "--quick", "--device", "cpu", "--betas", "0.5", "--thin-betas", "--breaks", "--draws", "0",
    "--every", "1", "--comparisons", "40", "--fit.steps", "5", "--reinforce.iterations", "4", "--ppo.iterations", "3",
]  # fmt: skip
"""Two arms of the answers recipe, a few steps each."""


class Said(NamedTuple):
    """What a command left: exit status, and both outputs."""

    status: int
    out: str
    err: str


Command = Callable[..., Said]


def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """Run a command in an empty folder, in this process; the report is drawn in tests of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("killick.report.drawing.draw", lambda *_, **__: [])

    def run(*words: str) -> Said:
        status: object = 0
        try:
            cli.main(list(words))
        except SystemExit as stop:
            status = stop.code or 0
        return Said(int(str(status)), *capsys.readouterr())

    before = signal.getsignal(signal.SIGTERM)
    yield run
    signal.signal(signal.SIGTERM, before)


def strict(line: str) -> dict[str, Any]:
    """One line of a ledger; NaN and Infinity are no JSON."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    found: dict[str, Any] = json.loads(line, parse_constant=refuse)
    return found


def ledger(folder: Path) -> list[dict[str, Any]]:
    """All rows of a run."""
    return [strict(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
