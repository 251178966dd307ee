"""Group commit: what waits goes into one transaction, and is answered after it."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, inspect, text
from sqlalchemy.exc import DBAPIError

from killick.preferences.storing import engine as store_engine
from killick.preferences.storing import writer as store_writer
from killick.preferences.storing.engine import address, connect, writing
from killick.preferences.storing.records import Unavailable
from killick.preferences.storing.writer import GATHER, Writer
from killick.refusal import Refusal
from stores import place

__all__ = ["place"]


@pytest.fixture
def engine(place: str) -> Iterator[Engine]:
    made = connect(address(place))
    with writing(made) as connection, connection.begin():
        connection.execute(text("CREATE TABLE t (x INTEGER PRIMARY KEY)"))
    yield made
    made.dispose()


def add(number: int) -> Any:
    def work(connection: Connection) -> int:
        connection.execute(text("INSERT INTO t VALUES (:x)"), {"x": number})
        return number

    return work


def there(engine: Engine) -> list[int]:
    with engine.connect() as connection:
        return list(connection.scalars(text("SELECT x FROM t ORDER BY x")))


def test_what_waits_together_is_committed_together_and_in_order(engine: Engine) -> None:
    commits: list[object] = []
    event.listen(engine, "commit", commits.append)
    writer, gate = Writer(engine), threading.Event()
    with ThreadPoolExecutor(51) as pool:
        first = pool.submit(writer, lambda _: gate.wait(10))  # while this one is written, fifty come to wait
        time.sleep(0.05)
        rest = [pool.submit(writer, add(number)) for number in range(50)]
        time.sleep(0.3)
        gate.set()
        assert first.result(10)
        assert [future.result(10) for future in rest] == list(range(50))
    writer.close()
    assert there(engine) == list(range(50))
    assert len(commits) == 2
    assert GATHER >= 50


def test_one_that_refuses_or_fails_spoils_no_other(engine: Engine) -> None:
    def refuse(connection: Connection) -> None:
        add(100)(connection)
        raise Refusal("no")

    def broken(connection: Connection) -> None:
        add(101)(connection)
        connection.execute(text("INSERT INTO nothing VALUES (1)"))

    writer, gate = Writer(engine), threading.Event()
    with ThreadPoolExecutor(8) as pool:
        pool.submit(writer, lambda _: gate.wait(10))
        time.sleep(0.05)
        good = [pool.submit(writer, add(number)) for number in range(2)]
        bad = pool.submit(writer, refuse), pool.submit(writer, broken), pool.submit(writer, add(1))
        time.sleep(0.2)
        gate.set()
        assert [future.result(10) for future in good] == [0, 1]
        with pytest.raises(Refusal, match="no"):
            bad[0].result(10)
        with pytest.raises(Unavailable, match=r"(?s)database failed.*nothing.*try again"):
            bad[1].result(10)
        with pytest.raises(Unavailable, match=r"(?i)unique"):
            bad[2].result(10)
    assert writer(add(2)) == 2  # and goes on
    writer.close()
    assert there(engine) == [0, 1, 2]


def test_what_passes_is_tried_again_and_not_for_ever(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_writer, "transient", lambda error: True)
    tried = [0]

    def work(connection: Connection) -> int:
        tried[0] += 1
        add(tried[0])(connection)
        if tried[0] % 4:
            connection.execute(text("SELECT * FROM nothing"))
        return tried[0]

    def never(connection: Connection) -> None:
        tried[0] += 1
        connection.execute(text("SELECT * FROM nothing"))

    writer = Writer(engine)
    assert writer(work) == 4
    assert there(engine) == [4]  # nothing of the first three
    tried[0] = 0
    with pytest.raises(Unavailable, match="database failed"):
        writer(never)
    assert tried[0] == store_writer.ATTEMPTS
    writer.close()


def test_closing_finishes_what_waits_and_takes_nothing_more(engine: Engine) -> None:
    writer = Writer(engine)
    with ThreadPoolExecutor(20) as pool:
        futures = [pool.submit(writer, add(number)) for number in range(20)]
        time.sleep(0.01)
        writer.close()
        ended = [future.exception(10) for future in futures]
    stored = there(engine)
    assert stored == [number for number, error in enumerate(ended) if error is None]
    assert all(isinstance(error, Unavailable) for error in ended if error is not None)
    with pytest.raises(Unavailable, match="closed"):
        writer(add(99))


def test_a_lock_that_does_not_come_is_told_to_all_that_wait(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    holding = connect(address(place))
    monkeypatch.setattr(store_engine, "BUSY", 1)
    monkeypatch.setattr(store_writer, "BUSY", 0.5)
    waiting = connect(address(place))
    writer = Writer(waiting)
    with writing(holding) as connection, connection.begin(), ThreadPoolExecutor(5) as pool:
        connection.execute(text("CREATE TABLE t (x INTEGER PRIMARY KEY)"))
        began = time.monotonic()
        futures = [pool.submit(writer, add(number)) for number in range(5)]
        assert all(isinstance(future.exception(20), Unavailable) for future in futures)
        assert time.monotonic() - began < 10  # seconds: at most two waits of one, not five and more
    assert writer(add(7)) == 7
    writer.close()
    assert there(holding) == [7]
    holding.dispose()
    waiting.dispose()


def test_a_client_that_hangs_does_not_hold_the_others_up_for_ever(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not place.startswith("postgresql"):
        pytest.skip("a process that hangs while it writes SQLite must be ended; a server ends its transaction itself")
    patient = connect(address(place))
    monkeypatch.setattr(store_engine, "BUSY", 1)
    hanging = connect(address(place))
    writer = Writer(patient)

    def hang() -> None:
        with writing(hanging) as connection, connection.begin():
            connection.execute(text("CREATE TABLE t (x INTEGER PRIMARY KEY)"))
            assert writer(lambda other: other.scalar(text("SELECT 7"))) == 7  # after a second

    with pytest.raises(DBAPIError):
        hang()  # its own commit comes too late
    with patient.connect() as connection:
        assert inspect(connection).get_table_names() == []
    writer.close()
    patient.dispose()
    hanging.dispose()
