"""`killick prefs agreement`: the tables of a file and of a store, and one sentence for what cannot be."""

import json
from pathlib import Path

import pytest

from killick.cli.agreement import agreement
from killick.preferences.store import Store
from killick.types import Refusal
from preferences.test_noise import judged
from stores import SECOND, join, pairs, said


def written(path: Path, *, annotators: bool = True) -> None:
    """Sixty pairs that four annotators of kappa .7, 1.5, 2.5 and 4 judged, as a preference file."""
    rows = [
        {"prompt": each.item, "first": "x", "second": "y", "preference": "first" if each.place == (0, 1) else "second"}
        | ({"annotator": each.annotator} if annotators else {})
        for each in judged(60, 1)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_a_file_gives_a_line_for_each_annotator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Labels, agreement, leaning, kappa and ceiling of four, then of all as one, then each two."""
    written(tmp_path / "labels.jsonl")
    agreement([str(tmp_path / "labels.jsonl")])
    out = capsys.readouterr().out
    assert "60 items, 60 of them judged by two annotators or more" in out
    assert "Krippendorff's alpha 0." in out
    lines = {
        line.split()[0]: line for line in out.splitlines() if line and line.split()[0] in ("ada", "bob", "cy", "di")
    }
    assert sorted(lines) == ["ada", "bob", "cy", "di"]
    assert all(" 60 " in line for line in lines.values())
    assert any(line.startswith("as one") and " 240 " in line and "[" in line for line in out.splitlines())
    assert "  ada, bob: " in out and "(60)" in out


def test_a_store_gives_the_same_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two who agree on two of three; the noise of two is told as one only, if at all."""
    place = str(tmp_path / "labels.db")
    with Store(place) as store:
        store.add_items(pairs(3), overlap=2)
        for name in ("ada", "bob"):
            one = join(store, name)
            for item in (1, 2, 3):
                ranking = SECOND if (name, item) == ("bob", 3) else ((0,), (1,))
                store.label(one, item, judgement=said(ranking), key=f"{name}{item}")
    agreement(["--store", place])
    out = capsys.readouterr().out
    assert "agreement 0.667" in out
    assert "not known" in out and "three annotators or more on the same items" in out


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    """Neither or both, no store, nobody named."""
    for given in ([], ["labels.jsonl", "--store", "labels.db"]):
        with pytest.raises(Refusal, match="a preference file or a --store, one of them"):
            agreement(given)
    with pytest.raises(Refusal, match="There is no store nowhere.db"):
        agreement(["--store", "nowhere.db"])
    written(tmp_path / "nobody.jsonl", annotators=False)
    with pytest.raises(Refusal, match="holds no label of a named annotator"):
        agreement([str(tmp_path / "nobody.jsonl")])
