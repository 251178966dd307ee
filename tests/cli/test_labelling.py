"""`killick label` as a user gives it: what needs only the store."""

import sqlite3
from pathlib import Path

import pytest

from commands import Command, command
from killick.preferences.store import Store
from stores import FIRST, SECOND, SKIP, join, pairs, said

killick = pytest.fixture(command)


@pytest.fixture
def labels(killick: Command, tmp_path: Path) -> Path:
    """Two annotators, three items, one of them in conflict."""
    with Store(tmp_path / "labels.db") as store:
        store.add_items(pairs(3), overlap=2)
        ada, bob = join(store, "ada"), join(store, "bob")
        store.label(ada, 1, judgement=said(FIRST, seconds=2), key="1")
        store.label(ada, 2, judgement=said(FIRST, seconds=4), key="2")
        store.label(bob, 1, judgement=said(SECOND, seconds=3), key="1")
        store.label(bob, 2, judgement=said(SKIP, seconds=9), key="2")
    return tmp_path / "labels.db"


def test_a_token_is_shown_once_and_kept_as_a_hash(killick: Command, tmp_path: Path) -> None:
    seen = killick("label", "add-annotator", "ada", "--store", "new.db")
    token = seen.out.split()[0]
    assert seen.status == 0
    with Store(tmp_path / "new.db") as store:
        ada = store.annotator(token)
        assert ada is not None
        assert ada.name == "ada"
    assert token.encode() not in (tmp_path / "new.db").read_bytes()
    again = killick("label", "add-annotator", "ada", "--store", "new.db")
    assert (again.status, again.out) == (2, "")
    assert "already" in again.err
    renewed = killick("label", "add-annotator", "ada", "--store", "new.db", "--renew").out.split()[0]
    with Store(tmp_path / "new.db") as store:
        assert store.annotator(token) is None
        assert store.annotator(renewed) == ada


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "a\\b", "..", "", " ", "a\nb", "a\x00", "x" * 65])
def test_a_name_is_never_a_path(killick: Command, name: str, tmp_path: Path) -> None:
    said = killick("label", "add-annotator", name, "--store", "new.db")
    assert said.status == 2
    assert len(said.err.splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} <= {"new.db", "new.db-wal", "new.db-shm"}


def test_progress_is_a_table(killick: Command, labels: Path) -> None:
    rows = [line.split() for line in killick("label", "progress").out.splitlines()]
    assert rows[1][:4] == ["ada", "2", "0", "1"]  # item 2 wants one more label, but not of ada; so item 3 is left
    assert rows[2][:4] == ["bob", "2", "1", "1"]
    assert rows[3][:4] == ["together", "4", "1", "3"]  # 6 wanted, 3 preferences
    assert rows[4] == ["items", "in", "conflict:", "1"]


def test_a_backup_is_a_store_and_overwrites_nothing(killick: Command, labels: Path, tmp_path: Path) -> None:
    assert killick("label", "backup", "copy.db").status == 0
    with Store(tmp_path / "copy.db") as copy, Store(labels) as store:
        assert list(copy.export(history=True)) == list(store.export(history=True))
    again = killick("label", "backup", "copy.db")
    assert again.status == 2
    assert "overwrites nothing" in again.err
    assert not list(tmp_path.glob("*.part*"))


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["progress"], "no store labels.db"),
        (["progres"], "did you mean progress"),
        (["progress", "--sotre", "x"], "--store"),
        (["progress", "--store", "mysql://host/db"], "not mysql"),
        (["progress", "--store", "page.html"], "not a database"),
        (["progress", "--store", "other.db"], "no label store"),
        (["backup", "copy.db", "--store", "none.db"], "no store none.db"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(killick: Command, words: list[str], part: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<p>no database</p>" * 100)
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE x (y)").connection.close()
    before = (tmp_path / "other.db").read_bytes()
    said = killick("label", *words)
    assert said.status == 2
    assert part in said.err
    assert len(said.err.splitlines()) == 1
    assert (tmp_path / "other.db").read_bytes() == before


def test_help_teaches(killick: Command) -> None:
    said = killick("label", "--help")
    assert said.status == 0
    assert "postgresql://" in said.out
    assert "add-annotator" in said.out
    assert "the old one ends" in killick("label", "add-annotator", "--help").out
