"""The schema and its versions."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import inspect, select, text

from killick.preferences.store import Judgement, Store, hashed
from killick.preferences.storing import tables as store_tables
from killick.preferences.storing.engine import address, connect, writing
from killick.preferences.storing.tables import UPGRADES, VERSION, items
from killick.refusal import Refusal
from store_version_1 import write
from stores import FIRST, SECOND, TIE, pairs, place, said

__all__ = ["place"]


def shape(where: str):
    """Tables with their columns, indexes and constraints."""
    engine = connect(address(where))
    with engine.connect() as connection:
        seen = inspect(connection)
        found = {
            table: (
                sorted((column["name"], str(column["type"]), column["nullable"]) for column in seen.get_columns(table)),
                sorted((str(index["name"]), str(index["column_names"])) for index in seen.get_indexes(table)),
                sorted(str(check["name"]) for check in seen.get_check_constraints(table)),
            )
            for table in seen.get_table_names()
        }
    engine.dispose()
    return found


def version_1(where: str) -> None:
    """A store of the first version, with labels."""
    engine = connect(address(where))
    with writing(engine) as connection, connection.begin():
        write(connection, token=hashed("ada's token"))
    engine.dispose()


def test_a_store_of_version_1_is_upgraded_and_nothing_is_lost(place: str) -> None:
    version_1(place)
    with Store(place) as store:
        ada = store.annotator("ada's token")
        assert ada is not None
        log = [(*label.judgement.ranking,) for _, label in store.export(history=True)]
        assert log == [FIRST, TIE, SECOND, FIRST, (), ()]
        assert [(item.id, label.annotator, label.revision) for item, label in store.export()] == [
            (1, "ada", 1), (1, "bob", 0), (3, "ada", 0),
        ]  # fmt: skip
        first = next(store.export(history=True))[1]
        assert first.judgement == Judgement(FIRST, 2.5, strength=2, note="n\x00", flags=("odd",))
        assert store.label(ada, 1, judgement=first.judgement, key="k1").label == first  # its keys still answer
        # Item 1 has its two; item 2 was withdrawn and item 3 skipped, so each wants its one.
        assert store.progress().left == 2
        assert store.next_card(ada) is not None
        assert store.label(ada, 2, judgement=said(), key="k3").status == "new"
        assert store.progress().left == 1
        assert store.guidelines() == (1, "be kind")
        assert [conflict.item.id for conflict in store.conflicts()] == [1]


def test_an_upgraded_store_has_the_shape_of_a_new_one(place: str, tmp_path: Path) -> None:
    version_1(place)
    Store(place).close()
    upgraded = shape(place)
    if place.startswith("postgresql"):
        engine = connect(address(place))
        with writing(engine) as connection, connection.begin():
            for table in upgraded:
                connection.execute(text(f"DROP TABLE {table} CASCADE"))
        engine.dispose()
        other = place
    else:
        other = str(tmp_path / "new.db")
    Store(other).close()
    assert shape(other) == upgraded
    assert set(UPGRADES) == set(range(1, VERSION))  # from every version there is a step


def test_a_step_that_fails_leaves_the_old_version(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(connection) -> None:
        store_tables.count_done(connection)
        raise RuntimeError("in the middle")

    version_1(place)
    before = shape(place)
    monkeypatch.setitem(UPGRADES, 1, half)
    with pytest.raises(RuntimeError, match="middle"):
        Store(place)
    assert shape(place) == before
    monkeypatch.undo()
    with Store(place) as store:
        assert len(list(store.export(history=True))) == 6


def test_a_store_of_a_newer_killick_is_refused_and_left_alone(place: str) -> None:
    Store(place).close()
    engine = connect(address(place))
    with writing(engine) as connection, connection.begin():
        connection.execute(text(f"UPDATE about SET value = '{VERSION + 1}'"))
    engine.dispose()
    before = shape(place)
    with pytest.raises(Refusal, match=f"schema {VERSION + 1}.*upgrade killick"):
        Store(place)
    assert shape(place) == before


def test_a_database_of_somebody_else_is_refused(place: str) -> None:
    engine = connect(address(place))
    with writing(engine) as connection, connection.begin():
        connection.execute(text("CREATE TABLE users (name VARCHAR)"))
    engine.dispose()
    with pytest.raises(Refusal, match="no label store"):
        Store(place)
    assert list(shape(place)) == ["users"]


def test_many_may_open_a_new_store_at_once(place: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(Store, [place] * 8))
    stores[0].add_items(pairs(3))
    assert [store.progress().left for store in stores] == [3] * 8
    for store in stores:
        store.close()


def test_the_count_of_an_item_cannot_leave_its_bounds(place: str) -> None:
    with Store(place) as store:
        store.add_items(pairs(1))
        engine = connect(address(place))
        for change in ("done = -1", "overlap = 0"):
            with pytest.raises(Exception, match=r"(?i)constraint"), writing(engine) as connection, connection.begin():
                connection.execute(text(f"UPDATE items SET {change}"))
        with engine.connect() as connection:
            assert connection.execute(select(items.c.done, items.c.overlap)).one() == (0, 1)
        engine.dispose()
