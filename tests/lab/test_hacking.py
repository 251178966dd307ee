"""The hacking exercise: unsolved it teaches, solved it passes, mistakes are named, and the experiment comes out."""

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from exercises import check_unsolved, failures, opened, plant, run
from killick.lab import solutions
from killick.lab.writing import write


def test_unsolved_each_task_says_what_is_to_be_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened("hacking", tmp_path / "new", monkeypatch, solved=False) as (_, tests):
        check_unsolved(tests, tasks=4)


def beyond_all(counts: Tensor, seen: Tensor) -> int:
    beyond = (counts > seen.max()).float().mean(1) > 1 / 3
    return int(beyond.float().argmax()) if bool(beyond.any()) else len(counts)


def argmax_only(counts: Tensor, seen: Tensor) -> int:
    covered = seen.float().quantile(0.98, interpolation="higher")
    return int(((counts > covered).float().mean(1) > 1 / 3).float().argmax())


def up_to_the_end(gain: Callable[[float], float], *, low: float, high: float, wanted: float, steps: int = 20) -> float:
    solutions.largest_beta(gain, low=low, high=high, wanted=wanted)
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if gain(middle) >= wanted else (low, middle)
    return high


def never_all(responses: Tensor, generator: torch.Generator) -> Tensor:
    plain = responses.where(responses != 12, 13)
    place = torch.rand(responses.shape, generator=generator).argsort(1).argsort(1)
    return plain.where(place >= torch.randint(12, (len(responses), 1), generator=generator), 12)


def from_the_left(responses: Tensor, generator: torch.Generator) -> Tensor:
    count = torch.randint(13, (len(responses), 1), generator=generator)
    return responses.where(responses != 12, 13).where(torch.arange(12) >= count, 12)


MISTAKES: dict[str, tuple[str, Callable[..., Any]]] = {
    "task1: not the maximum": ("predict_turn", beyond_all),
    "task1: argmax says 0": ("predict_turn", argmax_only),
    "task2: it is divided by it": ("tilted_mean", lambda v, s, *, beta: solutions.tilted_mean(v, s, beta=1 / beta)),
    "task2: the sign is flipped": ("tilted_mean", lambda v, s, *, beta: solutions.tilted_mean(v, -s, beta=beta)),
    "task2: exp(10000) left float32": (
        "tilted_mean",
        lambda v, s, *, beta: ((s / beta).exp() * v).sum() / (s / beta).exp().sum(),
    ),
    "task3: return the end that": ("largest_beta", up_to_the_end),
    "task4: 12 is a possible number too": ("show_more", never_all),
    "task4: emphasis prefers some places": ("show_more", from_the_left),
    "task4: make new ones": ("show_more", lambda r, g: r.copy_(solutions.show_more(r, g))),
}


def test_each_mistake_fails_its_own_task_in_words_that_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened("hacking", tmp_path / "planted", monkeypatch) as (module, tests):
        assert plant(module, tests, mistakes=MISTAKES) == []


def test_solved_every_test_passes_and_a_first_look_leaves_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened("hacking", tmp_path / "solved", monkeypatch) as (_, tests):
        assert failures(tests) == {}
        monkeypatch.setattr(sys, "argv", ["run.py", "--iterations", "4"])
        importlib.import_module("run").main()
    assert (tmp_path / "solved" / "hacking.png").read_bytes().startswith(b"\x89PNG")
    # The pool needs no training: the reference gains nothing, and the leash is where a full run finds it.
    found = json.loads((tmp_path / "solved" / "hacking.json").read_text(encoding="utf-8"))
    assert found["base"] == pytest.approx(0.376, abs=0.01)
    assert found["beta"] == pytest.approx(0.65, abs=0.08)


@pytest.mark.slow
def test_the_whole_exercise_shows_what_its_readme_says(tmp_path: Path) -> None:
    """The turn within five iterations, the collapse, and gold that stays up once the data show more."""
    write("hacking", tmp_path / "full")
    done = run(tmp_path / "full", "run.py", solved=True)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "full" / "hacking.json").read_text(encoding="utf-8"))
    assert abs(found["predicted"] - found["turned"]) <= 5
    assert found["free"]["gold"] < -4
    assert 0.3 < found["gained"] < 0.45
    assert found["closed"]["gold"] > 1.2
