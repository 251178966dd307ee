"""Every statement, commit, write and sync fails once: the old state or the new one, and never something between.

Statements and commits fail inside the process, on both databases. Writes and syncs fail in the operating system, under
SQLite, by a library loaded before the C library; a PostgreSQL server's own disk is its own affair.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import event, func, select, text

from killick.preferences.store import Annotator, Item, Judgement, Store, Unavailable
from killick.preferences.storing.tables import items, labels
from stores import FIRST, SECOND, join, pairs, place, said

__all__ = ["place"]

TESTS = Path(__file__).parent.parent
RANKED = ((2,), (0, 1))


@pytest.mark.skipif(not shutil.which("cc") or sys.platform != "linux", reason="needs Linux and a C compiler")
def test_every_write_and_every_sync_of_the_file_fails_once(tmp_path: Path) -> None:
    shim = tmp_path / "faults.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, TESTS / "store_faults.c", "-ldl"], check=True)
    # In memory, where there is such a place: the faults are the same, and a sync costs nothing.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path) as folder:
        ended = subprocess.run(
            [sys.executable, TESTS / "store_under_faults.py", f"{folder}/labels.db"],
            env={**os.environ, "LD_PRELOAD": str(shim)}, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    tried = json.loads(ended.stdout)
    assert tried["writes"] >= 50  # 137 when this was written
    assert tried["syncs"] >= 12  # 22


class Faults:
    """Counts statements and commits, and lets the k-th fail once: a commit before it is done, or after."""

    def __init__(self, store: Store):
        self.engine = store._engine
        self.left = self.seen = 0
        self.late = False
        self.commit = self.engine.dialect.do_commit

    def due(self) -> bool:
        self.seen += 1
        self.left -= 1
        return self.left == 0

    def broken(self) -> Exception:
        words = "disk I/O error, as the test wants it"
        return (
            sqlite3.OperationalError(words) if self.engine.dialect.name == "sqlite" else psycopg.OperationalError(words)
        )

    def execute(self, *_: object) -> None:
        if not self.late and self.due():
            raise self.broken()

    def committing(self, dbapi_connection: Any) -> None:
        due = self.due()
        if due and not self.late:
            raise self.broken()
        self.commit(dbapi_connection)
        if due:
            raise self.broken()


@contextmanager
def faults(store: Store) -> Iterator[Faults]:
    """Faults in a store's writing."""
    found = Faults(store)
    for name in ("do_execute", "do_executemany"):
        event.listen(store._engine, name, found.execute)
    store._engine.dialect.do_commit = found.committing  # type: ignore[method-assign]
    try:
        yield found
    finally:
        found.left = 0
        store._engine.dialect.do_commit = found.commit  # type: ignore[method-assign]
        for name in ("do_execute", "do_executemany"):
            event.remove(store._engine, name, found.execute)


def numbers(other: Store, k: int) -> list[int]:
    """The two items of a round; PostgreSQL leaves out the numbers of an import that failed."""
    asked = select(items.c.id).where(items.c.prompt.in_([f"pair {k}", f"ranking {k}"])).order_by(items.c.id)
    with other._engine.connect() as connection:
        return list(connection.scalars(asked))


def acts(store: Store, other: Store, *, ada: Annotator, k: int) -> list[Callable[[], object]]:
    """A round of work on two items of its own; each act may be sent again."""
    new = [Item(f"pair {k}", ("a", "b")), Item(f"ranking {k}", ("a", "b", "c"), kind="ranking")]
    return [
        lambda: store.add_items(new),
        lambda: store.set_guidelines(f"version {k}"),
        lambda: store.next_card(ada),
        lambda: store.label(ada, numbers(other, k)[0], judgement=said(FIRST), key=f"{k}-1"),
        lambda: store.label(ada, numbers(other, k)[1], judgement=Judgement(RANKED, 1.0), key=f"{k}-2"),
        lambda: store.revise(ada, numbers(other, k)[0], judgement=said(SECOND), key=f"{k}-3"),
        lambda: store.withdraw(ada, numbers(other, k)[1], key=f"{k}-4"),
    ]


def state(other: Store, k: int) -> tuple[object, ...]:
    """What another client sees of a round."""
    asked = numbers(other, k)
    rows = select(labels.c.item, labels.c.revision, labels.c.action, labels.c.ranking).where(labels.c.item.in_(asked))
    with other._engine.connect() as connection:
        seen = [(asked.index(item) + 1, *row) for item, *row in connection.execute(rows.order_by(labels.c.id))]
        wanted = connection.scalar(select(func.sum(items.c.overlap - items.c.done)).where(items.c.id.in_(asked)))
    return wanted or 0, other.guidelines()[1] == f"version {k}", seen


LOG = [
    (1, 0, "label", [[0], [1]]), (2, 0, "label", [[2], [0, 1]]), (1, 1, "revise", [[1], [0]]), (2, 1, "withdraw", [])
]  # fmt: skip
STATES = [
    (0, False, []), (2, False, []), (2, True, []), (2, True, []), (1, True, LOG[:1]), (0, True, LOG[:2]),
    (0, True, LOG[:3]), (1, True, LOG),
]  # fmt: skip
"""After each act: labels wanted, whether the new guidelines are in force, the log."""


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_every_statement_and_every_commit_fails_once(place: str, late: bool) -> None:
    k, fault, reached = 0, 0, True
    with Store(place) as store, Store(place) as other:
        ada = join(store, "ada")
        while reached:
            k, fault = k + 1, fault + 1
            with faults(store) as found:
                found.left, found.late = fault, late
                for number, act in enumerate(acts(store, other, ada=ada, k=k)):
                    try:
                        act()
                    except Unavailable:
                        assert state(other, k) in (STATES[number], STATES[number + 1])
                        act()
                        assert state(other, k) == STATES[number + 1]
                assert state(other, k) == STATES[-1]
                reached = found.left <= 0
        assert len(list(other.export(history=True))) == 4 * k
        assert fault > (7 if late else 40)  # seven acts, each with its commit


def test_a_full_disk_loses_nothing_and_labelling_goes_on_after(tmp_path: Path) -> None:
    with Store(tmp_path / "a.db") as store:
        limit = [1_000_000]

        @event.listens_for(store._engine, "checkout")
        def bound(connection: Any, *_: object) -> None:
            connection.execute(f"PRAGMA max_page_count={limit[0]}")

        store.add_items(pairs(400))
        ada = join(store, "ada")
        limit[0] = 1  # SQLite takes the present size, where that is more
        stored: list[int] = []

        def fill() -> None:
            for item in range(1, 401):
                store.label(ada, item, judgement=said(note="x" * 500), key=f"{item}")
                stored.append(item)

        with pytest.raises(Unavailable, match="full"):
            fill()
        assert 0 < len(stored) < 400
        with pytest.raises(Unavailable, match="full"):
            store.add_items(pairs(2000, start=400))
        assert [item.id for item, _ in store.export()] == stored
        limit[0] = 1_000_000
        again = len(stored) + 1
        assert store.label(ada, again, judgement=said(note="x" * 500), key=f"{again}").status == "new"
        assert store.progress().left == 400 - again


def test_a_connection_that_the_server_ends_is_made_anew(place: str) -> None:
    if not place.startswith("postgresql"):
        pytest.skip("SQLite has no server")
    with Store(place) as store, Store(place) as other:
        store.add_items(pairs(3))
        ada = join(store, "ada")
        ended: list[int] = []

        def end_once(connection: Any) -> int:
            mine = connection.scalar(text("SELECT pg_backend_pid()"))
            if not ended:
                ended.append(mine)
                with other._engine.connect() as killer:
                    killer.execute(text("SELECT pg_terminate_backend(:mine)"), {"mine": mine})
            return int(connection.scalar(text("SELECT 7")))

        assert store._write(end_once) == 7
        assert len(ended) == 1
        assert store.label(ada, 1, judgement=said(), key="1").status == "new"
        assert store.progress().done == 1
