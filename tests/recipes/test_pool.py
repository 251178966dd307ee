"""Cells side by side: the same bytes as one after the other, one error for all, and a state put down at every end."""

import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import toy
from killick.recipes import pool, running
from killick.recipes.cells import Cell
from killick.recipes.ledger import Note
from killick.recipes.pool import run_cells
from killick.rundir.durable import load_state, numbered
from killick.rundir.folder import Lock
from killick.rundir.ledger import read_rows
from killick.types import NonFinite, Refusal

CONFIG = toy.Config(seeds=(0, 1))
SLOW = toy.Config(steps=500, pause=0.02)
fork = multiprocessing.get_context("fork")


@pytest.fixture(autouse=True)
def walks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The pool runs walks, with a state every four steps; no child outlives its test."""
    monkeypatch.setattr(pool, "load", lambda _: toy)
    monkeypatch.setattr(running, "EVERY", 4)
    yield
    assert multiprocessing.active_children() == []


def start(folder: Path, config: toy.Config = CONFIG, workers: int = 2) -> Generator[Any, None, None]:
    """A run's cells, under the run's lock."""
    folder.mkdir(exist_ok=True)
    with closing(Lock(folder / "lock")) as lock:
        cells = toy.cells(config)
        yield from run_cells("toy", config, cells=cells, folder=folder, workers=workers, lock=lock.descriptor)


def files(folder: Path) -> dict[str, bytes]:
    """Everything but locks, and timing, which holds a clock."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*")
            if path.is_file() and not path.name.endswith(("lock", ".timing.jsonl"))}  # fmt: skip


def put_down(folder: Path, cell: str) -> tuple[int, int]:
    """The step of a cell's newest state, and how many rows its ledger holds."""
    newest = numbered(folder / "checkpoints" / cell)[0]
    step = load_state(newest)["step"]
    assert int(newest.name) == step
    return step, len(read_rows(folder / "cells" / f"{cell}.jsonl"))


def until_rows(loop: Any, count: int) -> dict[str, int]:
    """Read on until every cell has so many rows."""
    rows: dict[str, int] = {}
    for cell, event in loop:
        if isinstance(event, dict):
            rows[cell.name] = rows.get(cell.name, 0) + 1
            if len(rows) == 2 and min(rows.values()) >= count:
                break
    return rows


def child_of(name: str) -> int:
    """The process of a cell."""
    return next(child.pid for child in multiprocessing.active_children() if child.name == name) or 0


# Together and apart


def test_cells_side_by_side_leave_the_same_bytes_as_one_after_the_other(tmp_path: Path) -> None:
    """Four cells on one, two, three and nine processes."""
    found = []
    for workers in (1, 2, 3, 9):
        list(start(tmp_path / str(workers), workers=workers))
        found.append(files(tmp_path / str(workers)))
    assert found[0] == found[1] == found[2] == found[3]
    assert len([name for name in found[0] if name.endswith(".samples.jsonl")]) == 4


def test_every_word_of_every_cell_arrives_in_its_order_and_its_end_last(tmp_path: Path) -> None:
    """A note, the rows by step, then None; what arrives is what the ledger holds."""
    heard: dict[Cell, list[Any]] = {}
    for cell, event in start(tmp_path):
        heard.setdefault(cell, []).append(event)
    assert set(heard) == set(toy.cells(CONFIG))
    for cell, events in heard.items():
        assert isinstance(events[0], Note)
        assert events[-1] is None
        assert [row["step"] for row in events[1:-1]] == list(range(13))
        assert [row["gold"] for row in events[1:-1]] == [
            row["gold"] for row in read_rows(tmp_path / "cells" / f"{cell.name}.jsonl")
        ]


def test_no_more_cells_run_at_once_than_there_are_workers(tmp_path: Path) -> None:
    most = 0
    for _ in start(tmp_path, workers=2):
        most = max(most, len(multiprocessing.active_children()))
    assert most == 2


def test_a_pool_without_cells_ends_at_once(tmp_path: Path) -> None:
    assert list(start(tmp_path, replace(CONFIG, arms=()))) == []


def test_a_child_gives_up_the_runs_lock(tmp_path: Path) -> None:
    """Once the parent has let go, another process may enter though a child still works."""
    lock = Lock(tmp_path / "lock")
    cells = toy.cells(SLOW)
    with closing(run_cells("toy", SLOW, cells=cells, folder=tmp_path, workers=2, lock=lock.descriptor)) as loop:
        until_rows(loop, 1)
        with pytest.raises(Refusal, match="in use"):
            Lock(tmp_path / "lock")
        lock.close()
        Lock(tmp_path / "lock").close()


# Errors


@pytest.mark.parametrize("change", [{"refuse": "beta=1"}, {"breaks": "beta=1"}])
def test_an_error_in_a_cell_reaches_the_caller_and_stops_the_others(tmp_path: Path, change: dict[str, Any]) -> None:
    """With its kind and its sentence; the other cell is put down where it stands."""
    kind = Refusal if "refuse" in change else NonFinite
    with pytest.raises(kind, match="The walk"):
        list(start(tmp_path, replace(SLOW, **change)))
    step, rows = put_down(tmp_path, "beta=0,seed=0")
    assert 0 < step == rows < 500


def test_an_error_stops_before_further_cells_begin(tmp_path: Path) -> None:
    with pytest.raises(Refusal):
        list(start(tmp_path, replace(CONFIG, refuse="beta=0"), workers=1))
    assert [path.name for path in (tmp_path / "cells").glob("*.samples.jsonl")] == ["beta=0,seed=0.samples.jsonl"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "ended"])
def test_a_child_that_is_ended_from_outside_is_named(tmp_path: Path, number: signal.Signals) -> None:
    """As when the system runs out of memory: a sentence for a person, of the kinds that the command shows as one."""
    loop = start(tmp_path, SLOW)
    until_rows(loop, 2)
    os.kill(child_of("beta=1,seed=0"), number)
    with pytest.raises((ValueError, OSError, ArithmeticError), match=r"beta=1,seed=0.*ended"):
        list(loop)
    step, rows = put_down(tmp_path, "beta=0,seed=0")
    assert step == rows


# Stops


def test_a_pool_that_is_closed_lets_every_cell_put_its_state_down(tmp_path: Path) -> None:
    """At once, at the step where it stands; taken up, the rest is the same as in one go."""
    loop = start(tmp_path / "cut", replace(SLOW, steps=60))
    until_rows(loop, 3)
    began = time.monotonic()
    loop.close()
    assert time.monotonic() - began < 4
    for cell in ("beta=0,seed=0", "beta=1,seed=0"):
        step, rows = put_down(tmp_path / "cut", cell)
        assert 3 <= step == rows < 60
    list(start(tmp_path / "cut", toy.Config(steps=60)))
    list(start(tmp_path / "whole", toy.Config(steps=60)))
    assert files(tmp_path / "cut") == files(tmp_path / "whole")


def test_a_polite_end_of_one_child_lets_it_put_its_state_down(tmp_path: Path) -> None:
    """SIGTERM, between two steps."""
    with closing(start(tmp_path, SLOW)) as loop:
        until_rows(loop, 2)
        child = child_of("beta=1,seed=0")
        os.kill(child, signal.SIGTERM)
        with pytest.raises(Exception, match="beta=1"):
            list(loop)
    step, rows = put_down(tmp_path, "beta=1,seed=0")
    assert 2 <= step == rows < 500


def test_ctrl_c_is_left_to_the_parent(tmp_path: Path) -> None:
    """A child that gets it, since the whole group does, goes on until it is told."""
    loop = start(tmp_path, replace(SLOW, steps=12))
    until_rows(loop, 2)
    for child in multiprocessing.active_children():
        os.kill(child.pid or 0, signal.SIGINT)
    assert [event for _, event in loop if event is None] == [None, None]


def test_children_that_do_not_stop_are_ended_together_and_not_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four steps of a minute, patience for half a second: it is spent once, since Ctrl-C has to end within ten seconds
    however many cells there are."""
    monkeypatch.setattr(pool, "PATIENCE", 0.5)
    config = replace(CONFIG, stuck=60.0)
    loop = start(tmp_path, config, workers=4)
    rows = 0
    while rows < 8:
        rows += isinstance(next(loop)[1], dict)
    time.sleep(0.1)
    began = time.monotonic()
    loop.close()
    spent = time.monotonic() - began
    for child in multiprocessing.active_children():
        child.join(5)
    assert 0.4 < spent < 1.2


def lonely(folder: Path, say: Any) -> None:
    """A parent that is killed in the middle of its run."""
    os.setsid()
    loop = start(folder, SLOW)
    until_rows(loop, 3)
    say.put([child.pid for child in multiprocessing.active_children()])
    for _ in loop:
        pass


def test_children_end_by_themselves_when_their_parent_is_killed(tmp_path: Path) -> None:
    """kill -9 of the parent alone: they put their states down and let their locks go, in time for whoever goes on."""
    say = fork.SimpleQueue()
    parent = fork.Process(target=lonely, args=(tmp_path, say))
    parent.start()
    children = say.get()
    parent.kill()
    parent.join()
    assert len(children) == 2
    Lock(tmp_path / "lock").close()
    for cell in ("beta=0,seed=0", "beta=1,seed=0"):
        Lock(tmp_path / "cells" / f"{cell}.lock", wait=10).close()
        step, rows = put_down(tmp_path, cell)
        assert 3 <= step == rows < 500


def faults_of_a_step(keep: bool) -> int:
    """Pages that a process asks the system for while it fills and drops arrays of 8 MB, after three rounds of it."""
    if keep and not pool.keep_memory():
        pytest.skip("this system's allocator cannot be told to keep memory")
    torch.set_num_threads(1)

    def round_() -> None:
        for _ in range(5):
            torch.ones(2, 1 << 20).add(1)

    for _ in range(3):
        round_()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    round_()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(sys.platform != "linux", reason="told to glibc only")
def test_a_cell_keeps_the_memory_that_it_frees() -> None:
    """Five arrays of 8 MB, asked for anew each time, are 10,240 pages of 4 KiB; kept memory is hardly asked for."""
    with fork.Pool(1) as one:
        assert one.apply(faults_of_a_step, (True,)) < 500
