"""A database set up for many at once, and what is told of one that is not there."""

import sqlite3
import threading
import time
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError, OperationalError

from killick.preferences.store import Store
from killick.preferences.storing.engine import BUSY, address, connect, transient, writing
from killick.refusal import Refusal
from stores import place

__all__ = ["place"]


def test_sqlite_writes_ahead_and_syncs_every_commit(tmp_path: Path) -> None:
    engine = connect(address(tmp_path / "a.db"))
    with engine.connect() as connection:
        read = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    engine.dispose()
    assert read == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 1000 * BUSY}
    assert BUSY >= 10  # seconds


@pytest.mark.parametrize(
    ("given", "part"),
    [
        (":memory:", "in memory"),
        ("", "in memory"),
        ("sqlite://", "not sqlite"),
        ("mysql://root:secret@host/db", "not mysql"),
        ("://", "no database URL"),
    ],
)
def test_what_is_no_place_for_a_store_is_refused(given: str, part: str) -> None:
    with pytest.raises(Refusal, match=part) as refused:
        address(given)
    assert "secret" not in str(refused.value)


def test_a_path_and_both_urls_are_places() -> None:
    assert address(Path("a/b.db")).database == "a/b.db"
    assert address("we?ird#na%me.db").database == "we?ird#na%me.db"
    assert address("sqlite:///x.db").database == "x.db"
    assert address("postgresql://u@h/db").drivername == "postgresql+psycopg"


def test_a_database_that_does_not_answer_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="cannot be opened") as refused:
        Store(f"postgresql://u:secret@/db?host={tmp_path}")
    assert "secret" not in str(refused.value)
    with pytest.raises(Refusal, match="cannot be opened"):
        Store(tmp_path / "no" / "such" / "folder.db")


def test_writers_come_one_after_the_other_and_readers_do_not_wait(place: str) -> None:
    Store(place).close()
    engine = connect(address(place))
    order: list[str] = []

    def second() -> None:
        with writing(engine) as connection, connection.begin():
            order.append("second writes")

    with writing(engine) as connection, connection.begin():
        connection.execute(text("INSERT INTO about VALUES ('a', 'b')"))
        thread = threading.Thread(target=second)
        thread.start()
        with engine.connect() as reader:  # of the state before
            assert reader.scalar(text("SELECT count(*) FROM about")) == 1
        time.sleep(0.2)
        order.append("first commits")
    thread.join()
    engine.dispose()
    assert order == ["first commits", "second writes"]


def test_only_what_may_pass_is_tried_again(tmp_path: Path) -> None:
    holder = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    holder.execute("CREATE TABLE t (x PRIMARY KEY)")
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None, timeout=0)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError) as busy:
        other.execute("BEGIN IMMEDIATE")
    assert transient(OperationalError("s", None, busy.value))
    holder.execute("ROLLBACK")
    holder.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(sqlite3.IntegrityError) as double:
        holder.execute("INSERT INTO t VALUES (1)")
    assert transient(IntegrityError("s", None, double.value))  # somebody else was first: look again
    with pytest.raises(sqlite3.OperationalError) as unknown:
        holder.execute("SELECT * FROM nothing")
    assert not transient(OperationalError("s", None, unknown.value))
    holder.close()
    other.close()


@pytest.mark.parametrize(("state", "again"), [("40001", True), ("40P01", True), ("55P03", True), ("53100", False)])
def test_what_postgresql_calls_passing_is_tried_again(state: str, again: bool) -> None:
    class Told(Exception):
        sqlstate = state

    assert transient(OperationalError("s", None, Told())) is again
