"""`killick prefs agreement`: the tables of a file and of a store, and one sentence for what cannot be."""

import json
from pathlib import Path

import pytest

from commands import Command, command
from killick.preferences.store import Store
from preferences.test_noise import judged
from stores import FIRST, SECOND, TIE, join, pairs, said

killick = pytest.fixture(command, name="killick")


def written(path: Path, *, annotators: bool = True) -> None:
    """Sixty pairs that four annotators of kappa .7, 1.5, 2.5 and 4 judged, as a preference file."""
    rows = [
        {"prompt": each.item, "first": "x", "second": "y", "preference": "first" if each.place == (0, 1) else "second"}
        | ({"annotator": each.annotator} if annotators else {})
        for each in judged(60, 1)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_a_file_gives_a_line_for_each_annotator(killick: Command, tmp_path: Path) -> None:
    """Labels, agreement, leaning, kappa and ceiling of four, then of all as one, then each two."""
    written(tmp_path / "labels.jsonl")
    out = killick("prefs", "agreement", "labels.jsonl").out
    assert "60 items, 60 of them judged by two annotators or more" in out
    assert "Krippendorff's alpha 0." in out
    lines = {
        line.split()[0]: line for line in out.splitlines() if line and line.split()[0] in ("ada", "bob", "cy", "di")
    }
    assert sorted(lines) == ["ada", "bob", "cy", "di"]
    assert all(" 60 " in line for line in lines.values())
    assert any(line.startswith("as one") and " 240 " in line and "[" in line for line in out.splitlines())
    assert "  ada, bob: " in out


def test_a_store_gives_the_same_table(killick: Command, tmp_path: Path) -> None:
    """Two who agree on three of four, both tie the last; the noise of two is told as one only, if at all."""
    place = str(tmp_path / "labels.db")
    with Store(place) as store:
        store.add_items(pairs(4), overlap=2)
        for name in ("ada", "bob"):
            one = join(store, name)
            for item in (1, 2, 3, 4):
                ranking = TIE if item == 4 else SECOND if (name, item) == ("bob", 3) else FIRST
                store.label(one, item, judgement=said(ranking), key=f"{name}{item}")
    out = killick("prefs", "agreement", "--store", "labels.db").out
    assert "agreement 0.750" in out
    assert "ties, left out of them: 2." in out
    assert "not known" in out
    assert "three annotators or more on the same items" in out


def test_what_cannot_be_compared_is_refused(killick: Command, tmp_path: Path) -> None:
    """Neither or both, no store, nobody named, a bad row: one sentence each."""
    for given in ([], ["labels.jsonl", "--store", "labels.db"]):
        found = killick("prefs", "agreement", *given)
        assert (found.status, found.err) == (2, "killick: Name a preference file or a --store, one of them.\n")
    assert "There is no store nowhere.db" in killick("prefs", "agreement", "--store", "nowhere.db").err
    written(tmp_path / "nobody.jsonl", annotators=False)
    found = killick("prefs", "agreement", "nobody.jsonl")
    assert "rows without an annotator left out: 240" in found.out
    assert "holds no label of a named annotator" in found.err
    written(tmp_path / "bad.jsonl")
    with (tmp_path / "bad.jsonl").open("a") as file:
        file.write("no row\n")
    assert "1 bad row" in killick("prefs", "agreement", "bad.jsonl").err
    assert "bad rows left out: 1" in killick("prefs", "agreement", "bad.jsonl", "--skip-bad").out


def test_help_says_what_kappa_is(killick: Command) -> None:
    """And the word stands among those of prefs."""
    assert "1 / noise" in killick("prefs", "agreement", "--help").out
    assert "killick prefs agreement FILE" in killick("prefs", "--help").out
