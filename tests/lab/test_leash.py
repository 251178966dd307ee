"""The exact leash: unsolved it teaches, solved it passes, mistakes are named, and the tables are the source's."""

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from exercises import check_unsolved, failures, opened, plant, run
from killick.lab import solutions
from killick.lab.writing import write


def test_unsolved_each_task_says_what_is_to_be_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened("leash", tmp_path / "new", monkeypatch, solved=False) as (_, tests):
        check_unsolved(tests, tasks=4)


def sorted_best(reference: Tensor, reward: Tensor, *, n: int) -> Tensor:
    order = reward.argsort()
    return solutions.best_of_n(reference, reward, n=n)[order]


def overflowing(reference: Tensor, reward: Tensor, *, beta: float) -> Tensor:
    weights = reference * (reward / beta).exp()
    return weights / weights.sum()


MISTAKES: dict[str, tuple[str, Callable[..., Any]]] = {
    "task1: it is divided by it": ("tilted", lambda p, r, *, beta: solutions.tilted(p, r, beta=1 / beta)),
    "task1: the reference is missing": ("tilted", lambda p, r, *, beta: (r / beta).softmax(0)),
    "task1: exp left float32": ("tilted", overflowing),
    "task2: this is beta log Z": ("log_z", lambda p, r, *, beta: beta * solutions.log_z(p, r, beta=beta)),
    "task2: this is Z itself": ("log_z", lambda p, r, *, beta: solutions.log_z(p, r, beta=beta).exp()),
    "task3: this is KL(reference || policy)": ("kl", lambda q, p: solutions.kl(p, q)),
    "task3: 0 log 0 came out as NaN": ("kl", lambda q, p: (q * (q / p).log()).sum()),
    "task4: the worst is kept": ("best_of_n", lambda p, r, *, n: solutions.best_of_n(p, -r, n=n)),
    "task4: these are p^n": ("best_of_n", lambda p, r, *, n: p**n),
    "task4: in the order of their rewards": ("best_of_n", sorted_best),
}
TOGETHER = "test_task3_what_a_leash_maximises_is_beta_log_z"
"""A test across tasks 1 to 3, which says so; and the last one is across all."""


def test_each_mistake_fails_its_own_task_in_words_that_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    across = (TOGETHER, "test_task4_best_of_two_and_of_four_beat_every_beta")
    with opened("leash", tmp_path / "planted", monkeypatch) as (module, tests):
        assert plant(module, tests, mistakes=MISTAKES, leave=across) == []


def test_solved_every_test_passes_and_the_tables_are_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exact values of the five-answer world; .49965 at beta .953 is the best of any tilt."""
    with opened("leash", tmp_path / "solved", monkeypatch) as (_, tests):
        assert failures(tests) == {}
        importlib.import_module("run").main()
    said = capsys.readouterr().out
    for line in ("beta   0.5: 0.351 0.649", "beta 0.25    1.312   -0.186    1.291    57.6%", "best of 2, best of 4."):
        assert line in said
    found = json.loads((tmp_path / "solved" / "leash.json").read_text(encoding="utf-8"))
    assert found["best"]["gold"] == pytest.approx(0.49965, abs=1e-5)
    assert found["best"]["beta"] == pytest.approx(0.953, abs=2e-3)
    golds = {row["n"]: row["gold"] for row in found["best_of_n"]}
    assert golds == pytest.approx({1: 0.3, 2: 0.5635, 4: 0.5656, 8: 0.3172, 16: -0.1201, 64: -0.9250}, abs=1e-4)


def test_a_learners_first_command_teaches(tmp_path: Path) -> None:
    """`pytest -k task1` in the folder: task 1's tests and no others, and the sentence that says what to do."""
    write("leash", tmp_path / "new")
    done = run(tmp_path / "new", "pytest", "-k", "task1", solved=False)
    assert done.returncode == 1
    assert "NotImplementedError: Task 1: tilted in leash.py is yours to write" in done.stdout
    assert "1 failed, 7 deselected" in done.stdout
