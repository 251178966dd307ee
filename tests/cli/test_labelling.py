"""`killick label` as a user gives it: what needs only the store."""

import json
import sqlite3
from pathlib import Path

import pytest

from commands import Command, command
from killick.cli.labelling import short
from killick.preferences.store import Item, Store
from stores import FIRST, SECOND, SKIP, TIE, join, pairs, said

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
    assert not list(tmp_path.iterdir())


def test_progress_is_a_table(killick: Command, labels: Path) -> None:
    rows = [line.split() for line in killick("label", "progress").out.splitlines()]
    assert rows[1][:4] == ["ada", "2", "0", "1"]  # item 2 wants one more label, but not of ada; so item 3 is left
    assert rows[2][:4] == ["bob", "2", "1", "1"]
    assert rows[3][:4] == ["together", "4", "1", "3"]  # 6 wanted, 3 preferences
    assert rows[4] == ["items", "in", "conflict:", "1"]


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (4.987, "4.99"), (0.0123, "0.0123"), (99.96, "100"), (4987.4, "4987")]
)
def test_a_pace_is_three_digits_and_never_a_power_of_ten(value: float | None, text: str) -> None:
    assert short(value) == text


def test_a_backup_is_a_store_and_overwrites_nothing(killick: Command, labels: Path, tmp_path: Path) -> None:
    assert killick("label", "backup", "copy.db").status == 0
    with Store(tmp_path / "copy.db") as copy, Store(labels) as store:
        assert list(copy.export(history=True)) == list(store.export(history=True))
    again = killick("label", "backup", "copy.db")
    assert again.status == 2
    assert "overwrites nothing" in again.err
    assert not list(tmp_path.glob("*.part*"))


def test_an_export_is_a_preference_file_as_the_cards_showed_it(killick: Command, labels: Path, tmp_path: Path) -> None:
    seen = killick("label", "export", "--out", "labels.jsonl")
    assert seen.status == 0
    assert seen.out.splitlines() == [
        "labels.jsonl: 3 rows of the form comparison.", "  skips hold no preference and stay out: 1",
    ]  # fmt: skip
    rows = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text().splitlines()]
    with Store(labels) as store:
        kept = [(item, label) for item, label in store.export() if not label.judgement.skipped]
    for row, (item, label) in zip(rows, kept, strict=True):
        assert (row["prompt"], row["annotator"]) == (item.prompt, label.annotator)
        assert [row["first"], row["second"]] == [item.candidates[number] for number in label.order]
        chosen = item.candidates[label.judgement.ranking[0][0]]
        assert row[row["preference"]] == chosen
    assert killick("prefs", "check", "labels.jsonl").status == 0
    assert killick("label", "export", "--out", "labels.csv", "--form", "pairs").status == 0
    taken = killick("label", "export", "--out", "labels.csv", "--form", "pairs")
    assert (taken.status, "--force" in taken.err) == (2, True)


def test_an_export_leaves_out_what_no_preference_file_holds(killick: Command, labels: Path, tmp_path: Path) -> None:
    with Store(labels) as store:
        store.add_items([Item("p", ("", "b"))])
        store.label(store.annotators()[0], 4, judgement=said(FIRST), key="4")
    seen = killick("label", "export", "--out", "labels.jsonl")
    assert seen.out.splitlines() == [
        "labels.jsonl: 3 rows of the form comparison.", "  skips hold no preference and stay out: 1",
        "  labels that no preference file can hold stay out (this row is empty): 1",
    ]  # fmt: skip
    assert killick("label", "export", "--out", "log.jsonl", "--history").status == 0
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 5


def test_the_history_is_the_whole_log(killick: Command, labels: Path, tmp_path: Path) -> None:
    with Store(labels) as store:
        store.set_guidelines("be kind")
        ada = store.annotators()[0]
        store.revise(ada, 1, judgement=said(TIE, seconds=5, note="hm\x00"), key="edit")
        store.withdraw(ada, 2, key="undo")
    assert killick("label", "export", "--out", "log.jsonl", "--history").status == 0
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [(row["annotator"], row["item"], row["revision"], row["action"], row["ranking"]) for row in rows] == [
        ("ada", 1, 0, "label", [[0], [1]]), ("ada", 1, 1, "revise", [[0, 1]]), ("bob", 1, 0, "label", [[1], [0]]),
        ("ada", 2, 0, "label", [[0], [1]]), ("ada", 2, 1, "withdraw", []), ("bob", 2, 0, "label", []),
    ]  # fmt: skip
    edit = rows[1]
    assert (edit["seconds"], edit["note"], edit["prompt"], edit["candidates"]) == (
        5,
        "hm\x00",
        "prompt 0",
        ["first 0", "second 0"],
    )
    assert {"order", "guidelines", "at", "strength", "flags", "kind", "sources", "scores", "metadata"} <= set(edit)


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
        (["export", "--out", "x.jsonl", "--store", "none.db"], "no store none.db"),
        (["export"], "Missing"),
        (["export", "--out", "x.csv", "--history"], "JSON lines"),
        (["export", "--out", "x.jsonl", "--history", "--form", "pairs"], "no form"),
        (["export", "--out", "x.jsonl", "--store", "good.db", "--form", "pear"], "no form 'pear'"),
        (["export", "--out", "x.txt", "--store", "good.db"], "x.txt"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(killick: Command, words: list[str], part: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<p>no database</p>" * 100)
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE x (y)").connection.close()
    before = (tmp_path / "other.db").read_bytes()
    Store(tmp_path / "good.db").close()
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
