"""A connection to the store's database, set up so that many may read and write at once."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, TimeoutError

from killick.preferences.storing.records import Unavailable
from killick.refusal import Refusal

BUSY = 30
"""Seconds that a writer waits for another one before it gives up."""

LOCK = 0x6B696C6C
"""PostgreSQL's number for the store's one write lock."""


def address(given: str | Path) -> URL:
    """The database meant by a path or a URL.

    Raises:
        Refusal: at another kind of database, and at one in memory (it would not survive).
    """
    if isinstance(given, Path) or "://" not in given:
        if str(given) in ("", ":memory:"):
            raise Refusal("A store needs a file or a postgresql:// URL; one in memory would lose every label.")
        return URL.create("sqlite", database=str(given))
    try:
        url = make_url(given)
    except ArgumentError as error:
        raise Refusal(f"{given!r} is no database URL; use a file name or postgresql://user@host/database.") from error
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername == "sqlite" and url.database not in (None, "", ":memory:"):
        return url
    raise Refusal(f"A store is an SQLite file or a PostgreSQL database, not {url.render_as_string()}.")


def connect(url: URL) -> Engine:
    """An engine whose write transactions come one after the other.

    Raises:
        Refusal: where the driver of PostgreSQL is missing.
    """
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, connect_args={"timeout": BUSY}, pool_size=8, max_overflow=64)
        event.listen(engine, "connect", set_up_sqlite)
    else:
        # A client that hangs must not hold the others up for ever: the server ends its transaction.
        options = f"-c lock_timeout={BUSY}s -c idle_in_transaction_session_timeout={BUSY}s"
        options = " ".join(filter(None, [url.query.get("options"), options]))  # type: ignore[list-item]
        try:
            engine = create_engine(
                url.update_query_dict({"options": options}), pool_size=8, max_overflow=24, pool_pre_ping=True
            )
        except ImportError as error:
            raise Refusal(
                f"PostgreSQL needs the extra postgres ({error.name} is missing): pip install 'killick[postgres]'."
            ) from error
    event.listen(engine, "begin", begin)
    return engine


def writing(engine: Engine) -> Connection:
    """A connection whose transactions write."""
    return engine.connect().execution_options(killick_write=True)


def set_up_sqlite(connection: Any, _: Any) -> None:
    """Write-ahead log, every commit on the disk, foreign keys held; transactions begin where we say."""
    connection.isolation_level = None  # sqlite3 would begin late, as a reader, and could not become a writer then
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if tables and "about" not in tables:
        return  # somebody else's file: `prepare` refuses it, and it stays as it is
    deadline = time.monotonic() + BUSY
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:  # SQLite does not wait here by itself
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def begin(connection: Connection) -> None:
    """A writer takes the one write lock before it reads, so that what it checks stays true until it commits."""
    write = connection.get_execution_options().get("killick_write", False)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
    elif write:
        connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))


def transient(error: DBAPIError) -> bool:
    """Whether the same again may well succeed: a lock, a deadlock, a lost connection, a race for a unique value."""
    if error.connection_invalidated or isinstance(error, IntegrityError):
        return True
    if isinstance(error.orig, sqlite3.Error):
        code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
        return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    # serialization_failure, deadlock_detected, lock_not_available, idle_in_transaction_session_timeout
    return getattr(error.orig, "sqlstate", "") in ("40001", "40P01", "55P03", "25P03")


def told(error: DBAPIError | TimeoutError) -> Unavailable:
    """What a caller sees of a database that failed."""
    said = str(error.orig if isinstance(error, DBAPIError) else error).strip().splitlines()
    unavailable = Unavailable(f"The store's database failed ({said[0] if said else 'without a word'}); try again.")
    unavailable.__cause__ = error
    return unavailable


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection that reads one moment and waits for no writer; rows come as they are asked for.

    Raises:
        Unavailable: where the database does not answer.
    """
    options = {"isolation_level": "REPEATABLE READ"} if engine.dialect.name == "postgresql" else {}
    try:
        with engine.connect().execution_options(yield_per=500, **options) as connection:
            yield connection
    except (DBAPIError, TimeoutError) as error:
        raise told(error) from error
