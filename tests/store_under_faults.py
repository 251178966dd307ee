"""Run with store_faults.c loaded before the C library: each write and each sync of a store fails once.

For every k it imports, labels, edits and undoes, the k-th write (or sync) failing. What was acknowledged must be there
afterwards, the act that failed must be there wholly or not at all, and must go through when it is sent again.
"""

import ctypes
import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import event

from killick.preferences.store import Annotator, Item, Judgement, Store, Unavailable

FIRST, SECOND = ((0,), (1,)), ((1,), (0,))
RANKED = ((2,), (0, 1))
SHIM = ctypes.CDLL(None)


def script(store: Store, ada: Annotator, k: int) -> list[Callable[[], object]]:
    """What one round does, each step to be sent again after a failure; items are numbered on from round to round."""
    new = [Item(f"pair {k}", ("a", "b")), Item(f"ranking {k}", ("a", "b", "c"), kind="ranking")]
    pair, ranking = 2 * k - 1, 2 * k
    return [
        lambda: store.add_items(new),
        lambda: store.next_card(ada),
        lambda: store.label(ada, pair, judgement=Judgement(FIRST, 1.0), key=f"{k}-1"),
        lambda: store.label(ada, ranking, judgement=Judgement(RANKED, 1.0), key=f"{k}-2"),
        lambda: store.revise(ada, pair, judgement=Judgement(SECOND, 1.0), key=f"{k}-3"),
        lambda: store.withdraw(ada, ranking, key=f"{k}-4"),
    ]


def state(place: str, k: int) -> tuple[int, list[tuple[int, int, str, str]]]:
    """What is in the file of a round's items, read by a connection of its own."""
    with sqlite3.connect(f"file:{place}?mode=ro", uri=True, timeout=30) as connection:
        count = connection.execute("SELECT count(*) FROM items WHERE id > ?", (2 * k - 2,)).fetchone()[0]
        rows = "SELECT item - ?, revision, action, ranking FROM labels WHERE item > ? ORDER BY id"
        labels = connection.execute(rows, (2 * k - 2, 2 * k - 2)).fetchall()
    connection.close()
    return count, labels


LOG = [
    (1, 0, "label", "[[0],[1]]"), (2, 0, "label", "[[2],[0,1]]"), (1, 1, "revise", "[[1],[0]]"),
    (2, 1, "withdraw", "[]"),
]  # fmt: skip
STATES = [(0, []), (2, []), (2, []), (2, LOG[:1]), (2, LOG[:2]), (2, LOG[:3]), (2, LOG)]
"""After each step."""


def round_of(place: str, k: int, *, kind: int, fault: int) -> bool:
    """One round with a fault; whether it came to that fault."""
    with Store(place) as store:

        @event.listens_for(store._engine, "connect")
        def often(connection: Any, _: Any) -> None:  # copy the log back with nearly every commit: more to go wrong
            connection.execute("PRAGMA wal_autocheckpoint=4")

        store._engine.dispose()
        [ada] = store.annotators()
        SHIM.faults_arm(kind, fault)
        for number, step in enumerate(script(store, ada, k)):
            try:
                step()
            except Unavailable:
                seen = state(place, k)
                assert seen in (STATES[number], STATES[number + 1]), (kind, fault, number, seen)
                step()
            assert state(place, k) == STATES[number + 1], (kind, fault, number, state(place, k))
        reached = SHIM.faults_seen(kind) >= fault
        SHIM.faults_arm(kind, 0)
    return reached


def main(place: str) -> None:
    """Every k of both kinds, until a round ends before its fault."""
    with Store(place) as store:
        store.add_annotator("ada")
    k, counts = 0, []
    for kind in (0, 1):
        fault, reached = 0, True
        while reached:
            fault, k = fault + 1, k + 1
            reached = round_of(place, k, kind=kind, fault=fault)
        counts.append(fault - 1)
    with sqlite3.connect(place) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    with Store(place) as store:
        kept = [(label.item, label.action) for _, label in store.export(history=True)]
    assert len(kept) == 4 * k
    print(json.dumps({"writes": counts[0], "syncs": counts[1]}))


if __name__ == "__main__":
    main(sys.argv[1])
    assert Path(sys.argv[1]).exists()
