"""Runs as a user sees them: their folder, what they print, and how they end when something breaks."""

import os
import signal
import subprocess
import sys
import webbrowser
from pathlib import Path
from typing import Any

import pytest
import torch

from commands import SHORT, Command, Said, command, ledger, strict
from killick.console import Plain
from killick.recipes import RECIPES, pool
from killick.recipes.answers import recipe as answers
from killick.recipes.tables import Table
from killick.rewards.tabular import TabularReward
from killick.types import Refusal, Reward, Rollout

COMMON = ["arm", "seed", "step", "proxy", "gold", "kl", "kl_k1", "beta", "entropy", "length", "finished"]
killick = pytest.fixture(command)


# A run


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Said, set[str]]:
    """`killick run answers --quick --out DIR` as another process, its output in pipes; what it imported, too."""
    place = tmp_path_factory.mktemp("cli")
    code = (
        "import sys; from killick.cli import main; main(sys.argv[2:]);"
        "open(sys.argv[1], 'w').write(' '.join(sys.modules))"
    )
    words = ["run", "answers", "--quick", "--device", "cpu", "--comparisons", "200", "--betas", "0.5", "--thin-betas",
             "--breaks", "--out", str(place / "run")]  # fmt: skip
    command = [sys.executable, "-c", code, str(place / "modules"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return place / "run", Said(done.returncode, done.stdout, done.stderr), set((place / "modules").read_text().split())


def test_a_run_leaves_settings_environment_and_ledger(quick: tuple[Path, Said, set[str]]) -> None:
    """Exit 0, nothing on standard error; strict JSON in every file."""
    folder, said, _ = quick
    assert (said.status, said.err) == (0, "")
    assert {path.name for path in folder.iterdir()} >= {
        "cells", "checkpoints", "config.json", "environment.json", "figures", "metrics.jsonl", "report.html",
        "results.json", "samples.jsonl", "stages.json",
    }  # fmt: skip
    config = strict((folder / "config.json").read_text())
    assert (config["recipe"], config["comparisons"], config["betas"], config["device"]) == (
        "answers",
        200,
        [0.5],
        "cpu",
    )
    assert config["ppo"]["iterations"] == answers.Config().quick().ppo.iterations
    assert set(strict((folder / "environment.json").read_text())["packages"]) >= {"killick", "torch", "numpy"}


def test_the_ledger_has_a_row_for_every_step_sorted_with_the_same_columns(quick: tuple[Path, Said, set[str]]) -> None:
    """Arm by arm, every fifth step from 0 to 50; the common columns first in every row, one set of columns an arm."""
    rows = ledger(quick[0])
    steps = answers.Config().quick().ppo.iterations
    assert [(row["arm"], row["step"]) for row in rows] == [
        (arm, step) for arm in ("beta=0.5+ppo", "beta=0.5+reinforce") for step in range(0, steps, 5)
    ]
    for arm in ("beta=0.5+reinforce", "beta=0.5+ppo"):
        shapes = {tuple(row) for row in rows if row["arm"] == arm}
        assert len(shapes) == 1
        assert list(shapes.pop())[: len(COMMON)] == COMMON


def test_in_a_pipe_there_are_plain_lines_only(quick: tuple[Path, Said, set[str]]) -> None:
    """No carriage return, no escape code; the question first, where the run is, and the arms in words at the end."""
    folder, said, _ = quick
    assert "\r" not in said.out
    assert "\x1b" not in said.out
    lines = said.out.splitlines()
    assert lines[0] == RECIPES["answers"]
    assert lines[1] == f"Run folder: {folder}"
    assert lines[-1].endswith(f"claims hold; the report is {folder / 'report.html'}.")
    assert lines[-2].startswith("Proxy is what the optimiser saw, gold what people want, KL ")
    assert lines[-3].startswith("beta=0.5+reinforce: the proxy went from ")
    assert lines[-4].startswith("beta=0.5+ppo: the proxy went from ")
    assert max(map(len, lines)) < 250


def test_a_run_never_imports_torchs_compiler(quick: tuple[Path, Said, set[str]]) -> None:
    """It would cost as much as torch itself, in every worker, and nothing here is compiled."""
    assert "torch" in quick[2]
    assert "torch._dynamo" not in quick[2]


def test_a_run_never_imports_symbolic_algebra(quick: tuple[Path, Said, set[str]]) -> None:
    """sympy comes with the first random number drawn on torch's meta device: two CPU seconds for nothing."""
    assert "sympy" not in quick[2]


def test_flags_reach_the_settings(killick: Command, tmp_path: Path) -> None:
    """Flat and nested ones, several betas; --quick underneath, not on top."""
    said = killick(
        "run", "answers", *SHORT, "--betas", "0", "0.25", "--ppo.clip-range", "0.1", "--seeds", "3", "1", "--out", "r"
    )
    assert (said.status, said.err) == (0, "")
    config = strict((tmp_path / "r" / "config.json").read_text())
    found = (config["betas"], config["seeds"], config["ppo"]["clip_range"], config["ppo"]["iterations"])
    assert found == ([0, 0.25], [3, 1], 0.1, 3)
    rows = ledger(tmp_path / "r")
    assert list(dict.fromkeys((row["arm"], row["seed"]) for row in rows)) == [
        (f"beta={beta}+{name}", seed) for beta in ("0", "0.25") for name in ("ppo", "reinforce") for seed in (1, 3)
    ]


def test_without_out_a_run_gets_a_folder_of_its_own_and_is_listed(killick: Command, tmp_path: Path) -> None:
    """Twice the same command: two folders; before them the list says how to start."""
    assert "start with: killick run" in killick("list").out
    for _ in range(2):
        assert killick("run", "answers", *SHORT).status == 0
    folders = sorted((tmp_path / "runs" / "answers").iterdir())
    assert len(folders) == 2
    said = killick("list")
    assert "2 runs in ./runs" in said.out
    assert all(str(folder.relative_to(tmp_path)) in said.out for folder in folders)
    assert (folders[0] / "metrics.jsonl").read_text() == (folders[1] / "metrics.jsonl").read_text()


def test_results_hold_the_recipe_its_seeds_what_it_cost_and_the_claims(quick: tuple[Path, Said, set[str]]) -> None:
    """CPU time of all processes, so at least a second of imports; wall time of the cells."""
    found = strict((quick[0] / "results.json").read_text())
    assert {"recipe", "seeds", "cpu_s", "wall_s", "claims"} <= set(found)
    assert (found["recipe"], found["seeds"]) == ("answers", [0])
    assert 0 < found["wall_s"] < 120
    assert 0.5 < found["cpu_s"] < 120


CLAIM = {"id": "x", "arm": None, "text": "a figure", "source": "1", "expected": 1.0, "low": 0.5, "high": 1.5,
         "measured": 2.0, "spread": None, "unit": "", "kind": "claim", "holds": False}  # fmt: skip


@pytest.mark.parametrize(("holds", "words", "status"), [
    (False, ["--strict"], 1), (False, [], 0), (True, ["--strict"], 0), (None, ["--strict"], 0),
])  # fmt: skip
def test_strict_fails_when_a_claim_does_not_hold(
    killick: Command, monkeypatch: pytest.MonkeyPatch, holds: bool | None, words: list[str], status: int
) -> None:
    """And a finished run that is drawn again is judged again."""
    monkeypatch.setattr(answers, "claims", lambda *_: [{**CLAIM, "holds": holds}], raising=False)
    for _ in range(2):
        said = killick("run", "answers", *SHORT, *words, "--out", "r")
        assert said.status == status
        assert "a figure" in said.out
    if holds is not None:
        assert f"{int(holds)} of 1 claims hold; the report is" in said.out


def test_a_recipes_tables_are_kept_told_and_told_again_from_the_folder(
    killick: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They come from the ledger and from what the stages found."""

    def tables(rows: list[Any], found: dict[str, Any]) -> list[Table]:
        return [Table("A title", f"Of {len(rows)} rows.", ["seed"], [[int(seed)] for seed in found])]

    monkeypatch.setattr(answers, "tables", tables, raising=False)
    said = killick("run", "answers", *SHORT, "--out", "r")
    assert strict((tmp_path / "r" / "results.json").read_text())["tables"] == [
        {"title": "A title", "note": f"Of {len(ledger(tmp_path / 'r'))} rows.", "columns": ["seed"], "rows": [[0]]}
    ]
    assert "\nA title\nOf " in said.out
    monkeypatch.delattr(answers, "tables")
    assert "\nA title\nOf " in killick("report", "r").out


def test_open_shows_the_report_in_the_browser(
    killick: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of a run, and of `killick report`."""
    shown: list[str] = []
    monkeypatch.setattr(webbrowser, "open", shown.append)
    assert killick("run", "answers", *SHORT, "--open", "--out", "r").status == 0
    assert killick("report", "r", "--open").status == 0
    assert killick("report", "r").status == 0
    assert shown == [(tmp_path / "r" / "report.html").as_uri()] * 2


def test_the_cache_is_listed_and_cleared(killick: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KILLICK_CACHE", str(tmp_path / "cache"))
    assert killick("cache").out == f"0 stages in {tmp_path / 'cache'}.\n"
    from killick.rundir.durable import save_state

    save_state(tmp_path / "cache", "arithmetic-sft-0123456789abcdef", state={"step": 1})
    said = killick("cache").out.splitlines()
    assert said[0].split()[1:] == ["MB", "arithmetic-sft-0123456789abcdef"]
    assert said[1].startswith("1 stages in ")
    assert killick("cache", "clear").out.splitlines()[-1].endswith(", removed.")
    assert killick("cache").out.startswith("0 stages")


# What is in the way


@pytest.mark.parametrize("what", ["file", "notes", "other"])
def test_a_folder_that_cannot_be_used_is_refused_and_left_alone(killick: Command, tmp_path: Path, what: str) -> None:
    """A file, somebody's notes, a run of another seed: exit 2, one line that names it and says what to do."""
    mine = tmp_path / "mine"
    if what == "file":
        mine.write_text("keep")
    elif what == "notes":
        mine.mkdir()
        (mine / "notes.txt").write_text("keep")
    else:
        assert killick("run", "answers", *SHORT, "--seeds", "5", "--out", "mine").status == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock"}
    said = killick("run", "answers", *SHORT, "--out", "mine")
    assert (said.status, said.out, len(said.err.splitlines())) == (2, "", 1)
    assert "mine" in said.err
    assert "--out" in said.err
    assert {"file": "is a file", "notes": "no run", "other": "seeds is [5] there and [0] here"}[what] in said.err
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock"}
    assert after == before


def poisoned(monkeypatch: pytest.MonkeyPatch, arm: str, healthy: int) -> None:
    """Give one arm of the answers recipe a reward that scores so many rollouts, then says NaN."""
    whole = answers.begin

    def sick(scores: torch.Tensor) -> Reward:
        scored, calls = TabularReward(scores), []

        def forward(rollout: Rollout) -> torch.Tensor:
            calls.append(rollout)
            return scored(rollout) if len(calls) <= healthy else scored(rollout) * float("nan")

        return forward

    def begin(config: answers.Config, cell: Any, *, prepared: Any) -> Any:
        with monkeypatch.context() as patch:
            if cell.arm == arm:
                patch.setattr(answers, "TabularReward", sick)
            return whole(config, cell, prepared=prepared)

    monkeypatch.setattr(answers, "begin", begin)


@pytest.mark.parametrize("arm", ["beta=0.5+reinforce", "beta=0.5+ppo"])
@pytest.mark.parametrize("healthy", [0, 2])
def test_scores_that_are_no_numbers_stop_the_run_and_say_where(
    killick: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, healthy: int, arm: str
) -> None:
    """The quantity, its step, its rows and its arm; what came before is in the ledger."""
    poisoned(monkeypatch, arm, healthy)
    said = killick("run", "answers", *SHORT, "--out", "r")
    assert said.status == 2
    assert len(said.err.splitlines()) == 1
    for part in ("scores are not finite", f"at step {healthy}", "256 of 256 rows", f"arm {arm}", "is in r"):
        assert part in said.err
    assert [row["step"] for row in ledger(tmp_path / "r") if row["arm"] == arm] == list(range(healthy))
    assert not (tmp_path / "r" / "results.json").exists()


def test_a_process_that_is_killed_is_told_in_one_sentence(killick: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a system that has run out of memory: exit 2, which cell it was, no traceback."""
    whole = answers.begin

    def begin(config: answers.Config, cell: Any, *, prepared: Any) -> Any:
        if cell.arm.endswith("ppo"):
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(config, cell, prepared=prepared)

    monkeypatch.setattr(answers, "begin", begin)
    said = killick("run", "answers", *SHORT, "--out", "r")
    assert said.status == 2
    assert len(said.err.splitlines()) == 1
    assert "beta=0.5+ppo,seed=0" in said.err


def test_debug_shows_the_error_of_a_cell(killick: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever kind it is of, it comes from its process to the caller."""

    def begin(*_: Any, **__: Any) -> Any:
        raise Refusal("Not today.")

    monkeypatch.setattr(answers, "begin", begin)
    with pytest.raises(Refusal, match="Not today"):
        killick("run", "answers", *SHORT, "--out", "r", "--debug")


def test_ctrl_c_stops_says_where_the_run_is_and_lets_it_go_on(
    killick: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 130; the rows so far can be read; the same words again come to the rows of a run in one go."""

    def interrupted(self: Plain, cell: str, row: dict[str, Any]) -> None:
        if row["step"] == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Plain, "row", interrupted)
        said = killick("run", "answers", *SHORT, "--out", "r")
    assert said.status == 130
    assert said.err.strip().startswith("killick: stopped. ")
    assert "To go on: killick run answers" in said.err
    assert said.err.strip().endswith("--out r")
    assert "Traceback" not in said.err
    assert max(row["step"] for row in ledger(tmp_path / "r")) >= 2
    assert killick("run", "answers", *SHORT, "--out", "r").status == 0
    assert killick("run", "answers", *SHORT, "--out", "s").status == 0
    assert (tmp_path / "r" / "metrics.jsonl").read_bytes() == (tmp_path / "s" / "metrics.jsonl").read_bytes()


def test_a_run_in_a_folder_of_its_own_says_that_folder_when_it_is_stopped(
    killick: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words to go on name it, though the user did not."""

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pool, "wait", interrupted)
    said = killick("run", "answers", *SHORT, "--open")
    (folder,) = (tmp_path / "runs" / "answers").iterdir()
    assert said.status == 130
    assert said.err.strip().endswith(f"--out {folder.relative_to(tmp_path)}")
    assert "--open" not in said.err
