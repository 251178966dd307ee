"""A cell in one go, and put down and taken up again: the same bytes, whatever happened in between."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import toy
from killick.algorithms.leash import Leash
from killick.algorithms.ppo_config import PPOConfig
from killick.algorithms.reinforce import ReinforceConfig
from killick.models.transformer import TransformerConfig
from killick.recipes import running
from killick.recipes.answers import recipe as answers
from killick.recipes.arithmetic import recipe as arithmetic
from killick.recipes.cells import Cell
from killick.recipes.emphasis import recipe as emphasis
from killick.recipes.ledger import Note
from killick.recipes.running import run_cell
from killick.rewards.fit import FitConfig
from killick.rundir.durable import DamagedError, load_state, numbered, whole_states
from killick.rundir.folder import Lock
from killick.rundir.ledger import read_rows
from killick.stopwatch import moment
from killick.types import NonFinite, Refusal

WALK = Cell("beta=0", 0, steps=13)
SMALL = TransformerConfig(14, 14, context=10, hidden=8, layers=1, heads=2, feed_forward=8)
SUMS = replace(
    arithmetic.Config(device="cpu").quick(), target_kl=0.01, rankings=20, network=SMALL,
    sft=replace(arithmetic.Config().sft, steps=4, batch=16), fit=FitConfig(steps=5),
    ppo=PPOConfig(iterations=9, batch=8, epochs=2, decay=True),
)  # fmt: skip
TABLE = replace(
    answers.Config(device="cpu"), comparisons=40, draws=0, every=1, fit=FitConfig(steps=5),
    reinforce=ReinforceConfig(iterations=9), ppo=replace(answers.Config().ppo, iterations=9),
    ascent=ReinforceConfig(iterations=9, optimiser="sgd"),
)  # fmt: skip
WORDS = replace(
    emphasis.Config(device="cpu"), seeds=(0,), pairs=30, validation=20, hidden=4, fit=FitConfig(steps=5, batch=16),
    sft=replace(emphasis.Config().sft, steps=3, batch=16), ppo=replace(emphasis.Config().ppo, iterations=9, batch=8),
    network=TransformerConfig(25, 24, context=13, hidden=8, layers=1, heads=2, feed_forward=8, final_norm=False),
)  # fmt: skip


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state every four steps."""
    monkeypatch.setattr(running, "EVERY", 4)


def go(folder: Path, rows: int | None = None, recipe: ModuleType = toy, **given: Any) -> list[str]:
    """Run a cell, or only so many rows of it; gives the notes it said."""
    folder.mkdir(exist_ok=True)
    cell = given.get("cell", WALK)
    loop, notes, seen = run_cell(recipe, given.get("config", toy.Config()), cell=cell, folder=folder), [], 0
    with closing(loop):
        for event in loop:
            if isinstance(event, Note):
                notes.append(event.text)
            else:
                seen += 1
            if seen == rows:
                break
    return notes


def left(folder: Path, cell: Cell = WALK) -> dict[str, bytes]:
    """Ledger, samples, stages and the last state of a cell, in bytes; not its timing, which holds a clock."""
    files = [
        path for path in (folder / "cells").iterdir() if not path.name.endswith((".lock", ".partial", ".timing.jsonl"))
    ]
    files += numbered(folder / "checkpoints" / cell.name)[0].iterdir()
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def states(folder: Path, cell: Cell = WALK) -> list[int]:
    return [int(path.name) for path in numbered(folder / "checkpoints" / cell.name)]


@pytest.fixture
def whole(tmp_path: Path) -> dict[str, bytes]:
    """What a walk in one go leaves."""
    go(tmp_path / "whole")
    return left(tmp_path / "whole")


# In parts


def test_a_cell_leaves_a_row_a_step_its_samples_its_stages_and_its_two_newest_states(tmp_path: Path) -> None:
    """States every fourth step and at the end: of 4, 8, 12 and 13, the last two are kept."""
    assert go(tmp_path) == ["Prepared seed 0."]
    assert states(tmp_path) == [13, 12]
    found = left(tmp_path)
    assert len(found["cells/beta=0,seed=0.jsonl"].splitlines()) == 13
    assert len(found["cells/beta=0,seed=0.samples.jsonl"].splitlines()) == 9
    assert found["cells/stages,seed=0.json"] == b'{\n  "start": 0.0,\n  "odd": null\n}\n'
    assert b'"reason": "entropy is nan"' in found["cells/beta=0,seed=0.jsonl"]


@pytest.mark.parametrize("cut", range(1, 14))
def test_a_cell_closed_after_any_step_goes_on_to_the_same_bytes(
    tmp_path: Path, whole: dict[str, bytes], cut: int
) -> None:
    """It is put down at that very step."""
    go(tmp_path / "cut", cut)
    assert states(tmp_path / "cut")[0] == cut
    notes = go(tmp_path / "cut")
    assert notes[1:] == [f"Going on from step {cut} (beta=0,seed=0)."]
    assert left(tmp_path / "cut") == whole


def test_a_cell_taken_up_again_and_again_still_comes_to_the_same_bytes(tmp_path: Path, whole: dict[str, bytes]) -> None:
    """One row at a time."""
    for _ in range(12):
        go(tmp_path / "cut", 1)
    go(tmp_path / "cut")
    assert left(tmp_path / "cut") == whole


def test_a_cell_that_is_done_does_nothing_more(tmp_path: Path, whole: dict[str, bytes]) -> None:
    go(tmp_path / "whole")
    assert left(tmp_path / "whole") == whole


def timing(folder: Path, cell: Cell) -> list[dict[str, Any]]:
    return read_rows(folder / "cells" / f"{cell.name}.timing.jsonl")


def test_where_the_time_went_is_told_at_every_state_and_a_resumed_cell_adds_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """States at 4, 8 and 9, and at 2, where it is put down; stages are built once and then come from the cache. No
    row is dropped, and a last line that was cut is mended."""
    monkeypatch.setenv("KILLICK_CACHE", str(tmp_path / "cache"))
    (cell, *_), began = arithmetic.cells(SUMS), moment()
    go(tmp_path, 2, arithmetic, config=SUMS, cell=cell)
    first = timing(tmp_path, cell)
    loop = ["sampling", "proxy", "old log-probs", "reference", "update", "gold", "ledger", "states"]
    stages = ["arithmetic-sft, built", "arithmetic-reward, built"]
    assert [row["part"] for row in first] == ["set-up", "waiting", *stages, *loop]
    assert all(list(row) == ["arm", "seed", "step", "part", "cpu_s", "wall_s"] for row in first)
    assert {(row["arm"], row["seed"], row["step"]) for row in first} == {("beta=0", 0, 2)}
    with (tmp_path / "cells" / f"{cell.name}.timing.jsonl").open("a") as file:
        file.write('{"arm": "beta=0", "se')
    go(tmp_path, None, arithmetic, config=SUMS, cell=cell)
    found, spent = timing(tmp_path, cell), moment()
    assert found[: len(first)] == first
    assert [row["step"] for row in found if row["part"] == "update"] == [2, 4, 8, 9]
    assert {f"{stage.split(',')[0]}, from the cache" for stage in stages} <= {row["part"] for row in found}
    assert 0 < sum(row["cpu_s"] for row in found) <= spent.cpu - began.cpu + 0.01
    assert 0 < sum(row["wall_s"] for row in found) <= spent.wall - began.wall + 0.01


@pytest.mark.parametrize("keep", [0, 1, 7, 12])
def test_rows_after_the_last_state_are_written_again(tmp_path: Path, whole: dict[str, bytes], keep: int) -> None:
    """As after kill -9: the ledger is ahead of the states, its last line is cut, and a partial state lies about."""
    go(tmp_path / "cut", keep + 1)
    folder = tmp_path / "cut" / "checkpoints" / WALK.name
    for path in numbered(folder):
        if int(path.name) > keep - keep % 4:
            shutil.rmtree(path)
    (folder / ".00000099.99.partial").mkdir()
    with (tmp_path / "cut" / "cells" / f"{WALK.name}.jsonl").open("a") as ledger:
        ledger.write('{"arm": "beta=0", "se')
    go(tmp_path / "cut")
    assert left(tmp_path / "cut") == whole
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize(
    ("recipe", "config", "arm"),
    [
        (arithmetic, SUMS, "beta=0"),
        (arithmetic, SUMS, "beta=0.1+ptx"),
        (arithmetic, SUMS, "beta=0.1+target=0.01"),
        (arithmetic, replace(SUMS, critic=False), "beta=0.1"),
        (answers, TABLE, "beta=0.5+reinforce"),
        (answers, TABLE, "beta=0.5+ppo"),
        (answers, TABLE, "beta=0.5+thin+moving"),
        (answers, TABLE, "beta=0+thin+ascent"),
        (emphasis, WORDS, "beta=0"),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", "").split(".")[-1],
)
def test_every_kind_of_arm_goes_on_to_the_same_bytes(tmp_path: Path, recipe: ModuleType, config: Any, arm: str) -> None:
    """Optimiser moments, adaptive beta, decaying rate, imitation, table and streams of numpy: put down after three
    rows, after one more, and killed two rows past the state of step 4 (O-45)."""
    cell = next(cell for cell in recipe.cells(config) if cell.arm == arm)
    given: dict[str, Any] = {"recipe": recipe, "config": config, "cell": cell}
    go(tmp_path / "whole", **given)
    for rows in (3, 1, 2):
        go(tmp_path / "cut", rows, **given)
    shutil.rmtree(tmp_path / "cut" / "checkpoints" / cell.name / "00000006")
    go(tmp_path / "cut", **given)
    assert left(tmp_path / "cut", cell) == left(tmp_path / "whole", cell)


# Damage and refusal


def damage(path: Path) -> None:
    """Cut a state's tensors in half."""
    os.truncate(path / "state.safetensors", (path / "state.safetensors").stat().st_size // 2)


def test_a_damaged_newest_state_is_passed_over_with_a_note(tmp_path: Path, whole: dict[str, bytes]) -> None:
    """And the rest is byte for byte the same."""
    go(tmp_path / "cut", 10)
    assert states(tmp_path / "cut") == [10, 8]
    damage(tmp_path / "cut" / "checkpoints" / WALK.name / "00000010")
    notes = go(tmp_path / "cut")
    assert len(notes) == 3
    assert notes[1].startswith("Passed over a damaged state: ")
    assert "00000010" in notes[1]
    assert notes[2] == "Going on from step 8 (beta=0,seed=0)."
    assert left(tmp_path / "cut") == whole


def test_where_every_state_is_damaged_the_cell_begins_again_and_its_new_states_are_kept(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    """The damaged ones have higher numbers; they must not push the whole ones out."""
    go(tmp_path / "cut", 10)
    for path in numbered(tmp_path / "cut" / "checkpoints" / WALK.name):
        damage(path)
    notes = go(tmp_path / "cut", 6)
    assert sum("Passed over" in note for note in notes) == 2
    readable = [int(path.name) for path, found in whole_states(tmp_path / "cut" / "checkpoints" / WALK.name)
                if not isinstance(found, DamagedError)]  # fmt: skip
    assert readable == [6, 4]
    assert go(tmp_path / "cut")[-1] == "Going on from step 6 (beta=0,seed=0)."
    assert left(tmp_path / "cut") == whole


def test_two_whole_states_are_kept_beside_a_damaged_one(tmp_path: Path) -> None:
    go(tmp_path, 7)
    damage(tmp_path / "checkpoints" / WALK.name / "00000007")
    go(tmp_path, 1)
    found = whole_states(tmp_path / "checkpoints" / WALK.name)
    assert [int(path.name) for path, state in found if not isinstance(state, DamagedError)] == [5, 4]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_refuses_a_state_ends_the_cell_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: dict[str, bytes], number: int
) -> None:
    """The states before it stand, nothing half written is left, and with room it goes on to the same bytes."""
    go(tmp_path / "cut", 5)

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    loop = run_cell(toy, toy.Config(), cell=WALK, folder=tmp_path / "cut")
    assert [isinstance(event, Note) for event in islice(loop, 3)] == [True, True, False]
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(Refusal, match=rf"{os.strerror(number)}.*; .*go on with the same --out") as refusal:
            list(loop)
    assert "\n" not in str(refusal.value)
    assert WALK.name in str(refusal.value)
    folder = tmp_path / "cut" / "checkpoints" / WALK.name
    assert sorted(path.name for path in folder.iterdir()) == ["00000004", "00000005"]
    assert load_state(folder / "00000005")["step"] == 5
    go(tmp_path / "cut")
    assert left(tmp_path / "cut") == whole


def test_a_disk_that_refuses_the_ledger_ends_the_cell_in_one_sentence_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: dict[str, bytes]
) -> None:
    """Full before the first row of a cell that is taken up: what to do, and where, and nothing is lost."""
    go(tmp_path / "cut", 5)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(Refusal, match=r"No space left on device.*go on with the same --out"):
            go(tmp_path / "cut")
    go(tmp_path / "cut")
    assert left(tmp_path / "cut") == whole


def test_putting_down_where_a_state_was_just_written_does_not_risk_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped right after step 4, with a disk that then refuses a second copy: there still is a state to go on from."""
    whole = os.rename

    def refuse(source: Any, target: Any) -> None:
        if Path(target).name == "00000004" and Path(target).parent.name == WALK.name and numbered_before:
            raise OSError(errno.EIO, "Input/output error")
        whole(source, target)
        numbered_before.append(target)

    numbered_before: list[Any] = []
    monkeypatch.setattr(os, "rename", refuse)
    try:
        go(tmp_path, 4)
    except Refusal:
        assert numbered_before
    monkeypatch.undo()
    assert load_state(tmp_path / "checkpoints" / WALK.name / "00000004")["step"] == 4


def test_a_cell_that_another_process_works_on_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a wait in which an orphan of a killed run would have noticed."""
    waits = []

    def impatient(path: Path, wait: float = 0.0) -> Lock:
        waits.append(wait)
        return Lock(path)

    monkeypatch.setattr(running, "Lock", impatient)
    (tmp_path / "cells").mkdir()
    with (
        closing(Lock(tmp_path / "cells" / f"{WALK.name}.lock")),
        pytest.raises(Refusal, match=f"in use by process {os.getpid()}"),
    ):
        go(tmp_path)
    assert waits[0] >= 5


def test_the_arm_in_which_a_number_broke_is_named_and_what_came_before_stays(tmp_path: Path) -> None:
    with pytest.raises(NonFinite, match=r"arm beta=0.*The walk broke"):
        go(tmp_path, config=toy.Config(breaks="beta=0"))
    assert len((tmp_path / "cells" / f"{WALK.name}.jsonl").read_bytes().splitlines()) == 3


def test_whatever_ends_a_cell_lets_its_lock_and_its_files_go(tmp_path: Path) -> None:
    """Closed at a note, before there is a state; failed; done."""

    def held() -> Iterator[str]:
        for link in Path("/proc/self/fd").iterdir():
            try:
                yield os.readlink(link)
            except OSError:
                continue

    loop = run_cell(toy, toy.Config(), cell=WALK, folder=tmp_path)
    next(loop)
    loop.close()
    assert not (tmp_path / "checkpoints").exists()
    with pytest.raises(NonFinite):
        go(tmp_path, config=toy.Config(breaks="beta=0"))
    go(tmp_path, 2)
    if Path("/proc/self/fd").exists():
        assert not [name for name in held() if name.startswith(str(tmp_path))]
    Lock(tmp_path / "cells" / f"{WALK.name}.lock").close()


def test_a_leash_that_adapts_is_part_of_a_state(tmp_path: Path) -> None:
    """The arm with a target has moved its beta off the start when it is put down, and the state holds it (O-45)."""
    cell = next(cell for cell in arithmetic.cells(SUMS) if "target" in cell.arm)
    go(tmp_path, 3, recipe=arithmetic, config=SUMS, cell=cell)
    saved = load_state(tmp_path / "checkpoints" / cell.name / "00000003")["beta"]
    assert saved != arithmetic.ADAPTIVE_START
    assert saved != Leash(arithmetic.ADAPTIVE_START).beta
