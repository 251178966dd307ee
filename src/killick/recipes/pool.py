"""Cells side by side, each worker a process with one thread; stopped together, taken up alone."""

import ctypes
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, cast

import torch

from killick.recipes import load
from killick.recipes.cells import Cell
from killick.recipes.ledger import Note, Row
from killick.recipes.running import run_cell
from killick.types import Refusal

STOPS = {signal.SIGINT, signal.SIGTERM}
KEPT = {-1: 256 << 20, -3: 32 << 20}
"""glibc's settings by number: bytes at the top of the heap before any go back to the system (M_TRIM_THRESHOLD), and the
size from which an array is a mapping of its own (M_MMAP_THRESHOLD, at its most)."""
GLANCE = 0.2
"""Seconds between two looks of an idle worker at whether it is to stop."""
PATIENCE = 8.0
"""Seconds that a process has to put its state down before it is ended."""


def run_cells(
    name: str, config: Any, *, cells: Sequence[Cell], folder: Path, workers: int, lock: int
) -> Generator[tuple[Cell, Note | Row | None], None, None]:
    """Run all cells, yielding what each says as it comes; None says that a cell is done.

    Closed or interrupted, it lets every process put its state down first.

    Args:
        name: the recipe's.
        config: its settings.
        cells: in the order in which they start.
        folder: the run's.
        workers: processes at once.
        lock: the run's lock, which a child gives up: it must end with the parent, however that ends.

    Raises:
        Exception: what stopped a cell; the others are then stopped too.
        Refusal: where a process ended without a word.
    """
    # A forked child needs no import of torch, which takes seconds; elsewhere forking is not safe.
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    waiting = list(cells)
    active: dict[Any, tuple[Any, Cell]] = {}
    try:
        while waiting and len(active) < workers:
            with held_signals():
                ours, theirs = context.Pipe()
                given = {"config": config, "folder": folder, "lock": lock}
                child = context.Process(target=work, args=(theirs, name), kwargs=given)
                child.start()
                theirs.close()
                active[ours] = (child, hand(ours, child, cell=waiting.pop(0)))
        while active:
            ready: Any
            for ready in wait(list(active)):
                child, cell = active[ready]
                message = heard(ready, child)
                yield cell, message
                if message is None and waiting:
                    active[ready] = (child, hand(ready, child, cell=waiting.pop(0)))
                elif message is None:
                    with suppress(ConnectionError):
                        ready.send(None)
                    child.join()
                    del active[ready]
    finally:
        stop([child for child, _ in active.values()])


def hand(line: Connection, child: Any, *, cell: Cell) -> Cell:
    """Give a worker its next cell, and its process that cell's name. One that has died is found out by `heard`."""
    child.name = cell.name
    with suppress(ConnectionError):
        line.send(cell)
    return cell


@contextmanager
def held_signals() -> Iterator[None]:
    """Let no stop fall between the birth of a child and its entry in the list: it would be lost with the child."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def heard(ready: Connection, child: Any) -> Note | Row | None:
    """One message of a child.

    Raises:
        Exception: the one that stopped it.
        Refusal: where it ended without a word, as a process does that the system killed.
    """
    try:
        message = ready.recv()
    except (EOFError, ConnectionError):
        child.join()
        raise Refusal(f"The process of {child.name} ended by itself (status {child.exitcode}).") from None
    if isinstance(message, BaseException):
        raise message
    return cast(Note | Row | None, message)


def stop(children: Sequence[Any]) -> None:
    """Ask all to put their states down, wait for them together, end those that do not."""
    for child in children:
        child.terminate()
    until = time.monotonic() + PATIENCE
    for child in children:
        child.join(max(0, until - time.monotonic()))
        if child.is_alive():
            child.kill()


def keep_memory() -> bool:
    """Let this process keep what one step frees for the next: handed back and asked for anew, page by page, it costs a
    twentieth of the emphasis recipe. True where the system's allocator can be told so (glibc's can).
    """
    tell = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    return tell is not None and all(tell(name, value) for name, value in KEPT.items())


def work(line: Connection, name: str, *, config: Any, folder: Path, lock: int) -> None:
    """Run cell after cell in a child: stop at SIGTERM or when the parent is gone, between two steps."""
    signals: list[int] = []
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    if multiprocessing.get_start_method(allow_none=True) != "spawn" and sys.platform == "linux":
        os.close(lock)
    torch.set_num_threads(1)
    keep_memory()
    parent, recipe = os.getppid(), load(name)

    def stopped() -> bool:
        return bool(signals) or os.getppid() != parent

    while (cell := next_cell(line, stopped)) is not None:
        events = run_cell(recipe, config, cell=cell, folder=folder)
        try:
            for event in events:
                line.send(event)
                if stopped():
                    events.close()
                    return
            line.send(None)
        except ConnectionError:
            events.close()
            return
        except Exception as error:
            line.send(error)
            return


def next_cell(line: Connection, stopped: Callable[[], bool]) -> Cell | None:
    """The cell that the parent hands on; None where there is no more, or where this process is to stop.

    The end of the line alone would not tell: siblings that were forked later hold the parent's end open.
    """
    while not stopped():
        if line.poll(GLANCE):
            try:
                return cast(Cell | None, line.recv())
            except (EOFError, ConnectionError):
                return None
    return None
