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


def click(place: str, *, labels: int) -> None:
    """Fifty annotators at once, a fifth of their clicks sent twice: exact counts."""
    with Store(place) as store:
        store.add_items(pairs(labels), overlap=50)
        people = [join(store, f"annotator {n}") for n in range(50)]

        def labelling(n: int) -> Counter[str]:
            seen: Counter[str] = Counter()
            for item in range(1, labels + 1):
                for _ in range(1 + ((item + n) % 5 == 0)):
                    seen[store.label(people[n], item, judgement=said(), key=f"{item}").status] += 1
            return seen

        with ThreadPoolExecutor(50) as pool:
            seen = sum(pool.map(labelling, range(50)), Counter[str]())
        assert seen == {"new": 50 * labels, "same": 10 * labels}
        assert len(list(store.export(history=True))) == store.progress().done == 50 * labels
        assert store.progress().left == 0
        assert {store.progress(one).done for one in people} == {labels}


def test_fifty_annotators_who_click_twice_are_counted_exactly(place: str) -> None:
    click(place, labels=5)


@pytest.mark.slow
def test_fifty_annotators_with_a_hundred_labels_each_are_counted_exactly(place: str) -> None:
    click(place, labels=100)


@pytest.mark.slow
def test_twenty_clients_store_150_labels_a_second(tmp_path: Path) -> None:
    """At full sync, with a card handed out before each: 401 a second and 36 ms when this was written."""
    script = Path(__file__).parent.parent.parent / "benchmarks" / "store.py"
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True)
    rate, _, p95 = map(float, done.stdout.splitlines()[1].split()[-3:])
    assert rate >= 150  # labels a second
    assert p95 < 100  # milliseconds
