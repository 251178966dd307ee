"""O-51: labelling, an import, exports and another process reading, all at once: nothing fails and nothing is lost."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from killick.preferences.store import Outcome, Store
from stores import FIRST, SECOND, SKIP, join, pairs, place, said

__all__ = ["place"]

LABELLERS = 20
IMPORTED = 5000


def bustle(place: str, *, seconds: float) -> None:
    """Twenty labellers, one import of 5,000, an export loop, and a process that reads."""
    reader = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent.parent / "store_reader.py"), place],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with Store(place) as store, Store(place) as importing, ThreadPoolExecutor(LABELLERS + 2) as pool:
        assert reader.stdout
        assert reader.stdout.readline() == "ready\n"
        store.add_items(pairs(300), overlap=LABELLERS)
        people = [join(store, f"annotator {n}") for n in range(LABELLERS)]
        end = time.monotonic() + seconds

        def until(work: Callable[[], object]) -> int:
            done = 0
            while time.monotonic() < end:
                work()
                done += 1
            return done

        def labelling(n: int) -> list[Outcome]:
            stored = []

            def one() -> None:
                card = store.next_card(people[n])
                assert card is not None
                assert card.item.id is not None
                ranking = (FIRST, SECOND, SKIP)[card.item.id % 3]
                for _ in range(1 + (card.item.id % 2 == 0)):  # every second click is a double click
                    stored.append(store.label(people[n], card.item.id, judgement=said(ranking), key=f"{card.item.id}"))

            until(one)
            return stored

        labellers = [pool.submit(labelling, n) for n in range(LABELLERS)]
        added = pool.submit(importing.add_items, pairs(IMPORTED, start=300), overlap=LABELLERS)
        exports = pool.submit(until, lambda: list(importing.export()))
        outcomes = [outcome for labeller in labellers for outcome in labeller.result()]
        assert added.result().new == IMPORTED
        assert exports.result() >= 2
        rounds, errors = reader.communicate("\n", timeout=60)
        assert (reader.returncode, errors) == (0, "")
        assert int(rounds) >= 2
        # Every answer is in the database, each label once.
        new = Counter((outcome.label.item, outcome.label.annotator) for outcome in outcomes if outcome.status == "new")
        kept = Counter((item.id, label.annotator) for item, label in store.export(history=True))
        assert new == kept
        assert set(new.values()) == {1}
        assert {outcome.status for outcome in outcomes} == {"new", "same"}
        assert all((outcome.label.item, outcome.label.annotator) in kept for outcome in outcomes)
        assert len(new) >= 2 * LABELLERS


def test_all_at_once_for_six_seconds_o_51(place: str) -> None:
    bustle(place, seconds=6)


@pytest.mark.slow
def test_all_at_once_for_a_minute_o_51(place: str) -> None:
    bustle(place, seconds=60)
