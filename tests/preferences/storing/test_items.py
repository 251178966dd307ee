"""Imports: all or nothing, in short transactions, whatever becomes of them."""

from collections.abc import Iterator

import pytest
from sqlalchemy import event, func, select

from killick.preferences.store import Imported, Item, Store
from killick.preferences.storing import items as store_items
from killick.preferences.storing.engine import address, connect
from killick.preferences.storing.tables import items, staged
from stores import join, pairs, place, said

__all__ = ["place"]


def counts(where: str) -> tuple[int, int]:
    """Items, and staged rows."""
    engine = connect(address(where))
    with engine.connect() as connection:
        found = tuple(connection.scalar(select(func.count()).select_from(table)) or 0 for table in (items, staged))
    engine.dispose()
    return found[0], found[1]


def test_an_import_takes_five_hundred_rows_a_transaction_and_is_seen_at_once(place: str) -> None:
    with Store(place) as store:
        sizes: list[int] = []
        seen: list[int] = []

        @event.listens_for(store._engine, "before_cursor_execute")
        def count(connection, cursor, statement, parameters, context, executemany) -> None:
            if statement.startswith("INSERT INTO staged"):
                sizes.append(len(context.compiled_parameters))

        def watched() -> Iterator[Item]:
            for n, item in enumerate(pairs(1250)):
                if n % 400 == 0:
                    seen.append(store.progress().left)
                yield item

        store.add_items(watched())
        assert sizes == [500, 500, 250]
        assert seen == [0, 0, 0, 0]
        assert store.progress().left == 1250
        assert counts(place) == (1250, 0)
        first = store.next_card(join(store, "ada"))
        assert first is not None
        assert first.item.prompt == "prompt 0"  # in the order given


def test_labels_go_on_between_the_chunks_of_an_import(place: str) -> None:
    with Store(place) as store:
        store.add_items(pairs(3))
        ada = join(store, "ada")
        stored: list[str] = []

        def watched() -> Iterator[Item]:
            for n, item in enumerate(pairs(1500, start=3)):
                if n % 600 == 100:
                    stored.append(store.label(ada, len(stored) + 1, judgement=said(), key=str(n)).status)
                yield item

        store.add_items(watched())
        assert stored == ["new"] * 3
        assert store.progress().left == 1500


def test_an_import_that_died_is_swept_up_by_a_later_one(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    with Store(place, clock=lambda: now[0]) as store:
        with monkeypatch.context() as killed:  # as kill -9 leaves it: nobody clears up
            killed.setattr(store_items, "forget", lambda *_, **__: None)
            with pytest.raises(RuntimeError, match="died"):
                store.add_items(dying())
        assert counts(place) == (0, 500)
        store.add_items(pairs(1, start=5000))
        assert counts(place) == (1, 500)  # it might be alive
        now[0] += store_items.ABANDONED + 1
        store.add_items(pairs(700))
        assert counts(place) == (701, 0)


def dying() -> Iterator[Item]:
    yield from pairs(600)
    raise RuntimeError("died")


def test_items_keep_what_came_first_and_take_the_new_overlap(place: str) -> None:
    with Store(place) as store:
        store.add_items([Item("p", ("a", "b"), sources=("x", "y"), overlap=3), Item("q", ("a", "b"))], overlap=2)
        assert store.progress().left == 5
        store.add_items([Item("p", ("a", "b"), sources=("z", "z"))])
        assert store.progress().left == 5
        store.add_items([Item("p", ("a", "b"), sources=("z", "z"))], overlap=1)
        assert store.progress().left == 3
        card = store.next_card(join(store, "ada"))
        assert card is not None
        assert card.item.sources == ("x", "y")


def test_an_empty_import_is_nothing(place: str) -> None:
    with Store(place) as store:
        assert store.add_items([]) == Imported(0, 0)
