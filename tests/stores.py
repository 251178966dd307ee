"""Stores for tests: an SQLite file, and a schema of its own on the server that KILLICK_TEST_POSTGRES names."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from killick.preferences.store import Annotator, Item, Judgement, Store

FIRST, SECOND, TIE, SKIP = ((0,), (1,)), ((1,), (0,)), ((0, 1),), ()
"""Rankings of a pair."""


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where a store may be made: each test with it runs on both databases."""
    if request.param == "sqlite":
        yield str(tmp_path / "labels.db")
        return
    server = os.environ.get("KILLICK_TEST_POSTGRES")
    if not server:
        pytest.skip("no PostgreSQL server: .ci/services starts one, or name one in KILLICK_TEST_POSTGRES")
    url = make_url(server).set(drivername="postgresql+psycopg")
    schema = f"t{uuid.uuid4().hex}"
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
    own = url.update_query_dict({"options": f"-c search_path={schema}"})
    yield own.set(drivername="postgresql").render_as_string(hide_password=False)
    with engine.connect() as connection:
        connection.execute(text(f"DROP SCHEMA {schema} CASCADE"))
    engine.dispose()


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    """An empty store."""
    with Store(place) as opened:
        yield opened


def pairs(count: int, *, start: int = 0) -> list[Item]:
    """Items that differ."""
    return [Item(f"prompt {n}", (f"first {n}", f"second {n}")) for n in range(start, start + count)]


def join(store: Store, name: str) -> Annotator:
    """A new annotator."""
    found = store.annotator(store.add_annotator(name))
    assert found is not None
    return found


def said(ranking: tuple[tuple[int, ...], ...] = FIRST, *, seconds: float = 1.0, note: str = "") -> Judgement:
    """A judgement of a pair."""
    return Judgement(ranking, seconds, note=note)
