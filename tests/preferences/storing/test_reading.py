"""What the store tells, beside those who write."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from killick.preferences.store import Item, Progress, Store
from killick.refusal import Refusal
from stores import FIRST, SECOND, SKIP, TIE, join, pairs, place, said, store

__all__ = ["place", "store"]


def test_progress_by_hand(place: str) -> None:
    now = [0.0]
    with Store(place, clock=lambda: now[0]) as store:
        store.add_items(pairs(6), overlap=2)
        ada, bob = join(store, "ada"), join(store, "bob")
        assert store.progress(ada) == Progress(0, 0, 6, None, None, None)
        # Labels at 10, 14, 20 and 1000 s: gaps of 4, 6 and a long lunch; their median is 6 s, ten labels a minute.
        for item, (at, ranking, seconds) in enumerate([(10, FIRST, 3), (14, SKIP, 2), (20, TIE, 8), (1000, FIRST, 4)]):
            now[0] = float(at)
            store.label(ada, item + 1, judgement=said(ranking, seconds=seconds), key=f"{item}")
        # Seconds 2, 3, 4, 8: median 3.5. Two items are left of six, at 6 s each.
        assert store.progress(ada) == Progress(4, 1, 2, 10.0, 3.5, 12.0)
        assert store.progress(bob) == Progress(0, 0, 6, None, None, None)
        together = store.progress()
        assert (together.done, together.skipped, together.left) == (4, 1, 12 - 3)


def test_conflicts_are_items_ranked_differently(store: Store) -> None:
    store.add_items(pairs(4), overlap=3)
    people = [join(store, name) for name in ("ada", "bob", "cyd")]
    for item, rankings in enumerate([(FIRST, FIRST, FIRST), (FIRST, SECOND, SKIP), (TIE, TIE, SKIP), (FIRST, TIE)]):
        for person, ranking in zip(people, rankings, strict=False):
            store.label(person, item + 1, judgement=said(ranking), key=f"{item}")
    found = [(conflict.item.id, [label.annotator for label in conflict.labels]) for conflict in store.conflicts()]
    assert found == [(2, ["ada", "bob"]), (4, ["ada", "bob"])]
    store.revise(people[1], 2, judgement=said(FIRST), key="edit")
    assert [conflict.item.id for conflict in store.conflicts()] == [4]
    assert next(store.conflicts()).item.prompt == "prompt 3"  # one may stop reading at any time
    store.withdraw(people[1], 4, key="undo")
    assert list(store.conflicts()) == []


def test_an_export_is_of_one_moment(store: Store) -> None:
    store.add_items(pairs(1200))
    ada = join(store, "ada")
    for item in range(1, 41):
        store.label(ada, item, judgement=said(), key=f"{item}")
    rows = store.export()
    first = next(rows)
    for item in range(41, 61):  # writers do not wait for a reader
        store.label(ada, item, judgement=said(), key=f"{item}")
    store.withdraw(ada, 5, key="undo")
    assert [first[0].id, *(item.id for item, _ in rows)] == list(range(1, 41))
    assert len(list(store.export())) == 59


def test_what_one_sees_on_the_card_decides_the_position_in_the_export(store: Store) -> None:
    store.add_items(pairs(40))
    ada = join(store, "ada")
    while (card := store.next_card(ada)) is not None:
        assert card.item.id is not None
        assert store.card(ada, card.item.id) is not None
        store.label(ada, card.item.id, judgement=said(card.ranking(((0,), (1,)))), key=f"{card.item.id}")
    rows = list(store.export())
    # Ada always took what stood first: by position it is 40 of 40, by candidate about half.
    assert all(label.order[0] == label.judgement.ranking[0][0] for _, label in rows)
    assert 8 <= sum(label.judgement.ranking == FIRST for _, label in rows) <= 32
    assert store.card(ada, 41) is None


def test_a_backup_while_others_write_is_a_store_of_one_moment(place: str, tmp_path: Path) -> None:
    with Store(place) as store:
        store.add_items([*pairs(300), Item("r\x00\ud800", ("a", "b", "c"), kind="ranking")])
        store.set_guidelines("be kind")
        token = store.add_annotator("ada")
        ada = store.annotator(token)
        assert ada is not None
        stored: list[int] = []
        go_on = threading.Event()

        def labelling() -> None:
            for item in range(1, 301):
                store.label(ada, item, judgement=said(), key=f"{item}")
                stored.append(item)
                if go_on.is_set():
                    return

        thread = threading.Thread(target=labelling)
        thread.start()
        while len(stored) < 20:
            pass
        before = len(stored)
        store.backup(tmp_path / "copy.db")
        after = len(stored)
        go_on.set()
        thread.join()
        with Store(tmp_path / "copy.db") as copy:
            labels = [label.item for _, label in copy.export()]
            assert labels == list(range(1, len(labels) + 1))
            assert before <= len(labels) <= after + 1
            assert copy.annotator(token) == ada
            assert copy.guidelines() == (1, "be kind")
            assert copy.progress().left == 301 - len(labels)
            assert copy.label(ada, 301, judgement=said(((2,), (0, 1))), key="new").status == "new"  # numbers go on
        assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.db"]


@pytest.mark.parametrize("name", ["taken.db", "no/such/folder.db"])
def test_a_backup_that_cannot_be_leaves_nothing(store: Store, tmp_path: Path, name: str) -> None:
    (tmp_path / "taken.db").write_bytes(b"mine")
    before = sorted(tmp_path.iterdir())
    with pytest.raises((Refusal, OSError)):
        store.backup(tmp_path / name)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "taken.db").read_bytes() == b"mine"


def test_reading_on_goes_while_somebody_holds_the_write_lock(place: str) -> None:
    with Store(place) as store, Store(place) as other:
        store.add_items(pairs(3))
        ada = join(store, "ada")
        store.label(ada, 1, judgement=said(), key="1")
        inside, leave = threading.Event(), threading.Event()

        def hold(connection: object) -> None:
            inside.set()
            leave.wait(10)

        thread = threading.Thread(target=lambda: other._write(hold))
        thread.start()
        assert inside.wait(10)
        seen: Iterator[object] = iter(
            [store.progress().done, len(list(store.export())), len(store.annotators()), store.guidelines()[0]]
        )
        assert list(seen) == [1, 1, 1, 0]
        leave.set()
        thread.join()
