"""Exercises as a learner has them: written into a folder, run there, and broken on purpose."""

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from killick.lab.writing import write


def run(folder: Path, *words: str, solved: bool) -> subprocess.CompletedProcess[str]:
    """A command of the learner's, in the folder."""
    environment = os.environ | {"KILLICK_SOLUTIONS": "1" if solved else "", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *(("-m", *words) if words[0] == "pytest" else words)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@contextmanager
def opened(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *, solved: bool = True
) -> Iterator[tuple[ModuleType, ModuleType]]:
    """A freshly written exercise inside this process: its module, and the module of its tests."""
    write(name, folder)
    mine = {path.stem for path in folder.glob("*.py")}
    assert not mine & set(sys.modules)
    monkeypatch.setenv("KILLICK_SOLUTIONS", "1" if solved else "")
    monkeypatch.syspath_prepend(folder)
    importlib.invalidate_caches()
    try:
        tests = importlib.import_module(f"test_{name}")
        yield sys.modules[name], tests
    finally:
        for module in mine:
            sys.modules.pop(module, None)


def given(test: Any) -> list[dict[str, Any]]:
    """What a test is to be called with: one empty call, or one for each row of its parametrize mark."""
    calls: list[dict[str, Any]] = [{}]
    for mark in getattr(test, "pytestmark", []):
        names, rows = mark.args
        named = (names,) if isinstance(names, str) else names
        calls = [dict(zip(named, row if len(named) > 1 else (row,), strict=True)) for row in rows]
    return calls


def failures(tests: ModuleType, *, leave: tuple[str, ...] = ()) -> dict[str, str]:
    """Test name -> what it says, of all tests that do not pass, but for those named in `leave`."""
    said: dict[str, str] = {}
    for name, test in vars(tests).items():
        if name.startswith("test_task") and name not in leave:
            for words in given(test):
                try:
                    test(**words)
                except (AssertionError, NotImplementedError, pytest.fail.Exception, pytest.skip.Exception) as error:
                    said.setdefault(name, str(error))
    return said


def plant(module: ModuleType, tests: ModuleType, *, mistakes: dict[str, Any], leave: tuple[str, ...] = ()) -> list[str]:
    """What does not come out as it should: a mistake is noticed by its own task only, in the words that it deserves.

    Args:
        module: the exercise.
        tests: its tests.
        mistakes: "task: words" -> (function's name, a mistaken one).
        leave: tests that are not run.
    """
    wrong = []
    for label, (function, mistaken) in mistakes.items():
        task, words = label.split(": ", 1)
        right: Callable[..., Any] = getattr(module, function)
        setattr(module, function, mistaken)
        said = failures(tests, leave=leave)
        setattr(module, function, right)
        if not said or any(not name.startswith(f"test_{task}_") for name in said):
            wrong.append(f"{label}: noticed by {sorted(said)}")
        elif not any(words in text for text in said.values()):
            wrong.append(f"{label}: said {list(said.values())}")
    return wrong


def check_unsolved(tests: ModuleType, *, tasks: int) -> None:
    """Nothing passes by accident, and each task says whose it is and where."""
    names = [name for name in vars(tests) if name.startswith("test_task")]
    said = failures(tests)
    assert sorted(said) == sorted(names)
    for task in range(1, tasks + 1):
        mine = [text for name, text in said.items() if name.startswith(f"test_task{task}_")]
        assert any(text.startswith(f"Task {task}: ") and "is yours to write" in text for text in mine)


def edits(readme: str) -> list[list[tuple[str, str, str]]]:
    """Every diff of a README as (file, what goes, what comes), a list a diff."""
    found = []
    for block in re.findall(r"```diff\n(.*?)```", readme, re.DOTALL):
        pieces = []
        for part in re.split(r"^--- ", block, flags=re.MULTILINE)[1:]:
            file, _, body = part.partition("\n")
            for hunk in re.split(r"^@@\n", body, flags=re.MULTILINE):
                lines = hunk.splitlines(keepends=True)
                old, new = ("".join(line[1:] for line in lines if line[0] in kept) for kept in (" -", " +"))
                pieces.append((file, old, new))
        found.append(pieces)
    return found


def edit(folder: Path, pieces: list[tuple[str, str, str]]) -> None:
    """Make an edit as its diff says; what goes has to stand there exactly once, and what comes is Python."""
    for file, old, new in pieces:
        path = folder / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{file} holds {text.count(old)} times:\n{old}"
        path.write_text(text.replace(old, new), encoding="utf-8")
        compile(path.read_text(encoding="utf-8"), file, "exec")
