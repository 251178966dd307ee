"""A run's folder: made once, held by one process, entered again under the same settings only, never written over."""

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from killick.rundir import folder as module
from killick.rundir.folder import (
    Lock,
    RunFolder,
    agree,
    cell_file,
    cell_files,
    checkpoints,
    commit,
    environment,
    new_folder,
)
from killick.rundir.ledger import line
from killick.types import Refusal

SETTINGS = {"betas": (0.0, 0.5), "seeds": (0,), "device": "cpu", "workers": 1, "ppo": {"n": 1, "rate": 0.1}}
HOLD = """
import sys, time
from pathlib import Path
from killick.rundir.folder import Lock
lock = Lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""
fork = multiprocessing.get_context("fork")


@pytest.fixture(autouse=True)
def quick_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No call of git in every test."""
    monkeypatch.setattr(module, "commit", lambda: None)


@pytest.fixture
def holder() -> Iterator[Callable[[Path], subprocess.Popen[str]]]:
    """Another process that holds a lock; ended at the end."""
    started: list[subprocess.Popen[str]] = []

    def hold(path: Path) -> subprocess.Popen[str]:
        process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        return process

    yield hold
    for process in started:
        process.kill()
        process.communicate()


def enter(path: Path | None, recipe: str = "answers", **changes: Any) -> RunFolder:
    return RunFolder(path, recipe, {**SETTINGS, **changes})


def test_a_new_folder_holds_its_settings_and_its_environment(tmp_path: Path) -> None:
    """Parents are made; text is UTF-8 with line feeds; strict JSON."""
    with closing(enter(tmp_path / "a" / "b", note="é")) as run:
        assert (run.resumed, run.finished) == (False, False)
        found = json.loads((run.path / "config.json").read_text(encoding="utf-8"))
        assert found == {"recipe": "answers", **SETTINGS, "betas": [0, 0.5], "seeds": [0], "note": "é"}
        assert sorted(path.name for path in run.path.iterdir()) == ["config.json", "environment.json", "lock"]
        for path in run.path.iterdir():
            assert b"\r" not in path.read_bytes()
            assert path.read_bytes().endswith(b"\n")


def test_the_same_settings_take_a_run_up_and_change_no_file(tmp_path: Path) -> None:
    """On another device and with other workers too."""
    enter(tmp_path).close()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with closing(enter(tmp_path, device="cuda", workers=7)) as run:
        assert (run.resumed, run.finished) == (True, False)
        run.finish({"claims": [], "odd": float("nan")})
    with closing(enter(tmp_path)) as run:
        assert (run.resumed, run.finished) == (True, True)
    assert json.loads((tmp_path / "results.json").read_text()) == {"claims": [], "odd": None}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != "results.json"} == before


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"betas": (0.0, 1.0)}, r"betas is \[0.0, 0.5\] there and \[0.0, 1.0\] here"),
        ({"ppo": {"n": 2, "rate": 0.1}}, "ppo.n is 1 there and 2 here"),
        ({"ppo": {"n": 2, "rate": 0.2}}, "ppo.n is 1 there and 2 here; ppo.rate is 0.1 there and 0.2 here"),
        ({"recipe": "emphasis"}, "recipe is answers there and emphasis here"),
        ({"further": 3}, "further is None there and 3 here"),
    ],
)
def test_other_settings_are_refused_with_each_difference_and_the_folder_is_let_go(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    enter(tmp_path).close()
    before = (tmp_path / "config.json").read_bytes()
    with pytest.raises(Refusal, match=told) as refusal:
        enter(tmp_path, **changes)
    assert str(tmp_path) in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert "another --out" in str(refusal.value)
    assert (tmp_path / "config.json").read_bytes() == before
    enter(tmp_path).close()


def test_only_the_difference_is_named() -> None:
    """Settings that agree are not; neither are those that may differ, at any depth."""
    with pytest.raises(Refusal) as refusal:
        agree(Path("r"), {"a": 1, "b": 2, "device": "cpu", "fit": {"workers": 1}},
              here={"a": 1, "b": 3, "device": "mps", "fit": {"workers": 2}})  # fmt: skip
    assert "b is 2 there and 3 here" in str(refusal.value)
    assert not any(word in str(refusal.value) for word in ("a is", "device", "workers"))


# What is in the way


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    with pytest.raises(Refusal, match=r"file is a file, not a folder; .*--out") as refusal:
        enter(tmp_path / "file")
    assert "\n" not in str(refusal.value)
    assert (tmp_path / "file").read_text() == "old"


@pytest.mark.parametrize("below", ["run", "deep/run"])
def test_below_a_file_it_is_the_file_that_is_named(tmp_path: Path, below: str) -> None:
    """What is asked for does not exist, so it cannot be a file."""
    (tmp_path / "file").write_text("old")
    with pytest.raises(Refusal, match="--out") as refusal:
        enter(tmp_path / "file" / below)
    assert f"{below} is a file" not in str(refusal.value)


@pytest.mark.parametrize("call", ["mkdir", "open"])
def test_a_place_that_cannot_be_written_is_refused_with_the_systems_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A read-only place, or a read-only folder; root may write anywhere, so the system's answer is given here."""

    def denied(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, call, denied)
    with pytest.raises(Refusal, match=r"run cannot be written \(Permission denied\); .*--out"):
        enter(tmp_path / "run")


def test_a_folder_with_something_else_in_it_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("keep")
    with pytest.raises(Refusal, match=r"holds something that is no run.*--out"):
        enter(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} <= {"notes.txt", "lock"}
    assert (tmp_path / "notes.txt").read_text() == "keep"


def killed_while_made(path: Path, at: int) -> None:
    """Die at once, as by kill -9, at the at-th renaming of a first file, or before the first is written."""
    done: list[Any] = []

    def die(*given: Any) -> None:
        if len(done) == at or at < 0:
            os._exit(9)
        done.append(given)
        os.rename(*given)

    os.replace = die  # type: ignore[assignment]
    if at < 0:
        setattr(module, "write_json", die)  # noqa: B010
    enter(path)


@pytest.mark.parametrize("at", [-1, 0, 1])
def test_a_run_that_was_killed_while_its_folder_was_made_can_be_taken_up(tmp_path: Path, at: int) -> None:
    """Before its two first files, in the first and in the second: nothing in there is anybody else's."""
    child = fork.Process(target=killed_while_made, args=(tmp_path, at))
    child.start()
    child.join()
    assert child.exitcode == 9
    with closing(enter(tmp_path)):
        assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "environment.json", "lock"]


def test_settings_that_cannot_be_read_are_refused_by_file_and_the_folder_is_let_go(tmp_path: Path) -> None:
    enter(tmp_path).close()
    (tmp_path / "config.json").write_text('{"recipe": "ans')
    for _ in range(2):
        with pytest.raises(Refusal, match=r"config\.json"):
            enter(tmp_path)


def test_what_killed_processes_left_half_written_is_swept_when_a_run_is_taken_up(tmp_path: Path) -> None:
    """In the folder and among its cells; under a name that is somebody else's it stays."""
    enter(tmp_path).close()
    (tmp_path / "cells").mkdir()
    for name in (".metrics.jsonl.99.partial", "cells/.stages,seed=0.json.99.partial", "mine.partial"):
        (tmp_path / name).write_text("{")
    enter(tmp_path).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "cells", "config.json", "environment.json", "lock", "mine.partial",
    ]  # fmt: skip
    assert list((tmp_path / "cells").iterdir()) == []


# One process at a time


def test_a_folder_that_a_live_process_holds_is_refused_with_its_number(
    tmp_path: Path, holder: Callable[[Path], subprocess.Popen[str]]
) -> None:
    enter(tmp_path).close()
    process = holder(tmp_path / "lock")
    with pytest.raises(Refusal, match=rf"is in use by process {process.pid}; wait for it or stop it") as refusal:
        enter(tmp_path)
    assert str(tmp_path) in str(refusal.value)
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(Refusal, match=f"process {process.pid}"):
        enter(tmp_path)


def test_a_dead_holder_is_taken_over_at_once(tmp_path: Path, holder: Callable[[Path], subprocess.Popen[str]]) -> None:
    """kill -9; its number is still in the file, and that does not matter."""
    process = holder(tmp_path / "lock")
    process.kill()
    process.wait()
    began = time.monotonic()
    with closing(Lock(tmp_path / "lock")):
        assert time.monotonic() - began < 1
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_a_lock_can_be_waited_for(tmp_path: Path, holder: Callable[[Path], subprocess.Popen[str]]) -> None:
    process = holder(tmp_path / "lock")
    began = time.monotonic()
    with pytest.raises(Refusal, match=f"process {process.pid}"):
        Lock(tmp_path / "lock", wait=0.3)
    assert 0.3 <= time.monotonic() - began < 5
    process.kill()
    Lock(tmp_path / "lock", wait=20).close()


def test_a_forked_child_that_gives_up_its_copy_does_not_let_anybody_in(tmp_path: Path) -> None:
    """Neither by closing it nor by ending."""
    with closing(Lock(tmp_path / "lock")) as lock:
        child = fork.Process(target=os.close, args=(lock.descriptor,))
        child.start()
        child.join()
        with pytest.raises(Refusal, match=f"process {os.getpid()}"):
            Lock(tmp_path / "lock")


def test_a_refused_process_leaves_no_open_file_behind(tmp_path: Path) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("open files are counted in /proc")
    with closing(enter(tmp_path)):
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(Refusal, match="in use"):
            enter(tmp_path)
        assert len(os.listdir("/proc/self/fd")) == before


def begin(say: Any, start: Any) -> None:
    """One of eight runs that begin at once."""
    start.wait()
    run = enter(None)
    (run.path / "mine").write_text(str(os.getpid()))
    say.put(str(run.path))
    start.wait()
    run.close()


def test_eight_runs_at_once_in_the_same_second_get_eight_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same recipe, same settings, eight processes, none refused, each holding its own (O-49)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "strftime", lambda _: "20300101-000000")
    say, start = fork.SimpleQueue(), fork.Barrier(8)
    children = [fork.Process(target=begin, args=(say, start)) for _ in range(8)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    found = [Path(say.get()) for _ in children]
    assert len(set(found)) == 8
    assert {(path / "mine").read_text() for path in found} == {str(child.pid) for child in children}
    assert all(path.parent == Path("runs/answers") for path in found)


def test_a_folder_is_named_by_its_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same settings in another order have the same name with a number behind it, others another one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "strftime", lambda _: "20300101-000000")
    a, b, c = (new_folder("x", config) for config in ({"s": 0, "t": (1,)}, {"t": [1], "s": 0}, {"s": 1, "t": [1]}))
    assert b.name == f"{a.name}-2"
    assert not c.name.startswith(a.name)


# What is in it


def test_cells_are_gathered_into_four_files(tmp_path: Path) -> None:
    """Ledgers apart from samples and timing; stages by seed, in the order of numbers."""
    with closing(enter(tmp_path)) as run:
        for arm, seed in (("beta=1", 10), ("beta=0", 2)):
            cell_file(tmp_path, f"{arm},seed={seed}").parent.mkdir(exist_ok=True)
            for kind, what in (("jsonl", "gold"), ("samples.jsonl", "prompt"), ("timing.jsonl", "cpu_s")):
                text = line({"arm": arm, "seed": seed, "step": 0, what: 1}) + "\n"
                cell_file(tmp_path, f"{arm},seed={seed}", kind=kind).write_text(text)
            cell_file(tmp_path, f"{arm},seed={seed}", kind="lock").write_text("99\n")
            (tmp_path / "cells" / f"stages,seed={seed}.json").write_text(json.dumps({"found": seed}))
        run.merge()
        assert [(row["arm"], row["gold"]) for row in run.rows()] == [("beta=0", 1), ("beta=1", 1)]
        samples = (tmp_path / "samples.jsonl").read_text().splitlines()
        assert [json.loads(row)["prompt"] for row in samples] == [1, 1]
        timing = (tmp_path / "timing.jsonl").read_text().splitlines()
        assert [json.loads(row)["cpu_s"] for row in timing] == [1, 1]
        assert [path.name for path in cell_files(tmp_path)] == ["beta=0,seed=2.jsonl", "beta=1,seed=10.jsonl"]
        assert list(run.found().items()) == [("2", {"found": 2}), ("10", {"found": 10})]


def test_a_run_without_cells_merges_to_nothing(tmp_path: Path) -> None:
    """Stopped before the first one began."""
    with closing(enter(tmp_path)) as run:
        run.merge()
        assert (run.rows(), run.found()) == ([], {})


def test_files_of_a_cell_stand_under_its_name() -> None:
    assert cell_file(Path("r"), "beta=0,seed=1") == Path("r/cells/beta=0,seed=1.jsonl")
    assert checkpoints(Path("r"), "beta=0,seed=1") == Path("r/checkpoints/beta=0,seed=1")


def test_the_environment_names_versions_and_neither_a_clock_nor_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is needed to understand a run; without git there is no commit and no error."""
    monkeypatch.setattr(module, "commit", commit)
    found = environment()
    assert set(found) == {"python", "platform", "threads", "packages", "commit"}
    assert set(found["packages"]) >= {"killick", "torch", "numpy", "safetensors"}
    assert found["commit"] is None or len(found["commit"]) == 40
    text = json.dumps(found)
    assert socket.gethostname() not in text
    assert time.strftime("%Y-%m-%d") not in text
    assert found == environment()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit() is None


def test_a_model_folder_is_no_run_and_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}', encoding="utf-8")
    with pytest.raises(Refusal, match="holds something that is no run"):
        RunFolder(tmp_path, "best-of", {"n": 4})
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]
