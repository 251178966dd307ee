"""One thread that writes: it gathers what waits, commits once, and answers after the commit (group commit).

A commit at full sync costs one wait for the disk, however many labels are in it. So twenty annotators at once wait for
one or two commits, not for twenty.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from killick.preferences.storing.engine import BUSY, told, transient, writing
from killick.preferences.storing.records import Unavailable

T = TypeVar("T")

GATHER = 128
"""The most calls in one transaction, so that the first never waits long for the last."""

ATTEMPTS = 6
"""How often a transaction is tried that another one was in the way of; the waits double from 10 ms. No try begins
later than BUSY seconds after the first: who waited that long for a lock is told so."""


@dataclass(frozen=True)
class Task:
    """A call that waits. `work` may run more than once, each time in a transaction that sees nothing of the last."""

    work: Callable[[Connection], Any]
    future: "Future[Any]"


class Writer:
    """Every write of one process goes through here.

    Args:
        engine: where write transactions come one after the other (`engine.connect`).
    """

    def __init__(self, engine: Engine):
        self._engine = engine
        self._queue: SimpleQueue[Task | None] = SimpleQueue()
        self._lock = Lock()
        self._closed = False
        self._thread = Thread(target=self._serve, name="killick-store", daemon=True)
        self._thread.start()

    def __call__(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a write transaction and return its result once that is on the disk.

        Raises:
            Unavailable: when it could not be stored; nothing of it was, or (a connection lost during a commit) all.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise Unavailable("The store is closed.")
            self._queue.put(Task(work, future))
        return future.result()

    def close(self) -> None:
        """Finish what waits, take nothing more."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (first := self._queue.get()) is not None:
            batch, more = [first], True
            while more and len(batch) < GATHER:
                try:
                    task = self._queue.get_nowait()
                except Empty:
                    break
                if task is None:
                    self._queue.put(None)  # close() put the last word, so it stays the last
                    more = False
                else:
                    batch.append(task)
            self._settle(batch)

    def _settle(self, batch: list[Task]) -> None:
        """Commit a batch and answer it. Where any call fails or refuses, nothing is stored, and each is tried alone."""
        deadline = time.monotonic() + BUSY
        passing = False
        for attempt in range(ATTEMPTS):
            try:
                answers = self._commit(batch)
            except Exception as error:
                failure = error
                passing = isinstance(error, DBAPIError) and transient(error)
                if not passing or time.monotonic() > deadline:
                    break
                time.sleep(0.01 * 2**attempt)
            else:
                for task, answer in zip(batch, answers, strict=True):
                    task.future.set_result(answer)
                return
        if len(batch) > 1 and not passing:
            for task in batch:
                self._settle([task])
            return
        for task in batch:
            task.future.set_exception(told(failure) if isinstance(failure, DBAPIError) else failure)

    def _commit(self, batch: list[Task]) -> list[Any]:
        """One transaction for all of them."""
        with writing(self._engine) as connection, connection.begin():
            return [task.work(connection) for task in batch]
