"""Run one cell from where it stands: restore, write its rows, keep its states."""

import shutil
import time
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

from killick.recipes.cells import Cell, Resumable
from killick.recipes.ledger import Note, Row, in_arm
from killick.rundir.durable import DamagedError, load_state, prune, save_state, sweep, whole_states, write_json
from killick.rundir.folder import Lock, cell_file, checkpoints
from killick.rundir.ledger import CellLedger, plain
from killick.stopwatch import stopwatch
from killick.types import Refusal

EVERY = 20
"""Steps between two states on disk; a long cell of cheap steps keeps a tenth of its length between them."""
PATIENCE = 60.0
"""Seconds of dear steps after which a state is put down all the same."""


def run_cell(recipe: ModuleType, config: Any, *, cell: Cell, folder: Path) -> Generator[Note | Row, None, None]:
    """Yield notes and rows while writing them; closed early, it first puts the state down.

    Args:
        recipe: gives `prepare` and `begin`, and `deliver` where a cell leaves more than its ledger.
        config: its settings.
        cell: which one.
        folder: the run's.

    Raises:
        Refusal: where another process still works on the cell, or the disk refuses a state.
    """
    (folder / "cells").mkdir(exist_ok=True)
    try:
        yield from guarded(recipe, config, cell=cell, folder=folder)
    except OSError as error:
        raise Refusal(
            f"{cell.name} cannot be written to {folder} ({error.strerror}); make room, then go on with the same --out."
        ) from error


def guarded(recipe: ModuleType, config: Any, *, cell: Cell, folder: Path) -> Generator[Note | Row, None, None]:
    """`run_cell` behind its lock, with the errors of the disk as they come."""
    with closing(Lock(cell_file(folder, cell.name, kind="lock"), wait=20)), in_arm(cell.arm):
        stopwatch.start()
        prepared, found = yield from recipe.prepare(config, cell.seed)
        write_json(folder / "cells" / f"stages,seed={cell.seed}.json", plain(found))
        state, seen = recipe.begin(config, cell, prepared=prepared)
        kept = checkpoints(folder, cell.name)
        sweep(kept)
        yield from restore(state, kept)
        every = max(EVERY, cell.steps // 10)
        stopwatch.lap("set-up")
        with (
            closing(CellLedger(cell_file(folder, cell.name), state.step)) as ledger,
            closing(CellLedger(cell_file(folder, cell.name, kind="samples.jsonl"), state.step)) as samples,
            closing(CellLedger(cell_file(folder, cell.name, kind="timing.jsonl"), None)) as timing,
        ):
            since = time.monotonic()

            def put_down() -> None:
                nonlocal since
                keep(state, kept)
                since = time.monotonic()
                stopwatch.lap("states")
                tell_time(timing, cell, step=state.step)

            for event in seen:
                stopwatch.lap("gold")
                if event.row is not None:
                    ledger.append(event.row)
                for row in event.samples:
                    samples.append(row)
                stopwatch.lap("ledger")
                late = time.monotonic() - since > PATIENCE
                if late or state.step % every == 0 or state.step == cell.steps:
                    put_down()
                if event.row is None:
                    continue
                try:
                    yield event.row
                except GeneratorExit:
                    put_down()
                    raise
                stopwatch.lap("ledger")
            if hasattr(recipe, "deliver"):
                recipe.deliver(config, cell, state=state, prepared=prepared, folder=folder)
                stopwatch.lap("result")
            tell_time(timing, cell, step=state.step)


def tell_time(timing: CellLedger, cell: Cell, *, step: int) -> None:
    """Append where the time went since the last row: one row a part. A resumed run adds rows and drops none."""
    for part, (cpu, wall) in stopwatch.take().items():
        spent = {"part": part, "cpu_s": round(cpu, 4), "wall_s": round(wall, 4)}
        timing.append({"arm": cell.arm, "seed": cell.seed, "step": step, **spent})


def keep(state: Resumable, folder: Path) -> None:
    """Put a state down, and let go of all but the newest two.

    Raises:
        Refusal: where the disk refuses; the states before it stand.
    """
    try:
        load_state(folder / f"{state.step:08d}")
        return
    except DamagedError:
        pass
    try:
        save_state(folder, f"{state.step:08d}", state=state.state_dict())
    except OSError as error:
        raise Refusal(
            f"No state could be written to {folder} ({error.strerror}); make room, then go on with the same --out."
        ) from error
    prune(folder)


def restore(state: Resumable, folder: Path) -> Generator[Note, None, None]:
    """Load the newest whole state, naming each damaged one that is passed over."""
    for path, saved in whole_states(folder):
        if isinstance(saved, Exception):
            yield Note(f"Passed over a damaged state: {saved}.")
            aside = path.with_name(f"{path.name}.damaged")
            shutil.rmtree(aside, ignore_errors=True)
            path.rename(aside)
            continue
        state.load_state_dict(saved)
        yield Note(f"Going on from step {state.step} ({path.parent.name}).")
        return
