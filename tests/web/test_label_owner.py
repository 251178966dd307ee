"""The owner's view: numbers by hand, both answers of a conflict, and a file that can be read again."""

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from desks import alone, client, ranking
from killick.preferences.files import read_preferences
from killick.preferences.store import Item, Judgement, Store
from killick.web.label_owner import letter
from killick.web.people import Desk
from stores import FIRST, SECOND, SKIP, TIE, join, pairs


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Ada and Bob on five pairs: they agree on one, differ on two, and each skips one."""
    with Store(tmp_path / "labels.db") as opened:
        opened.add_items(pairs(5), overlap=2)
        ada, bob = join(opened, "ada"), join(opened, "bob")
        said: dict[Any, list[Any]] = {ada: [FIRST, FIRST, TIE, SKIP, FIRST], bob: [FIRST, SECOND, FIRST, FIRST, SKIP]}
        for annotator, rankings in said.items():
            for item, given in enumerate(rankings, 1):
                judgement = Judgement(given, 2.0, strength=1 if given == SECOND else None,
                                      flags=("flagged",) if given == SKIP else ())  # fmt: skip
                opened.label(annotator, item, judgement=judgement, key=str(item))
        yield opened


def rows(text: str) -> list[list[str]]:
    """The tables of a page, cell by cell."""
    lines = re.findall(r"<tr>(.*?)</tr>", text, re.DOTALL)
    return [
        [unescape(re.sub("<[^>]*>", "", cell)) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line)]
        for line in lines
    ]


def test_the_numbers_of_everybody(store: Store) -> None:
    text = client(Desk(store, alone=alone(store))).get("/label/owner").text
    table = {row[0]: row[1:] for row in rows(text)}
    assert table["ada"][:4] == ["5", "1", "1", "1"]  # labels, skips, ties, flags
    assert table["bob"][:4] == ["5", "1", "0", "1"]
    assert table["ada"][5] == table["bob"][5] == "0.33"  # three pairs met, one answer the same
    shown = [store.annotators()[0].order(item) for item, _ in store.export() if item.id in (1, 2, 5)]
    firsts = [order[0] == 0 for order in dict.fromkeys(shown)]
    assert 0.0 <= float(table["ada"][4]) <= 1.0
    assert (float(table["ada"][4]) in (0.0, 1.0)) == (len(set(firsts)) == 1)
    # Values of the three shared pairs: 1 1, 1 -1, 0 1. Coincidences: 1-1 2, 1 with -1 one each way, 0 with 1 one each
    # way; n = 6, shares 1: 4, 0: 1, -1: 1. Observed 4/6; expected (36 - 16 - 1 - 1) / 30 = 18/30; alpha = 1 - 10/9.
    assert table["Krippendorff's alpha, nominal"][0] == "-0.11"
    assert table["Percent agreement"][0] == "0.33"
    assert table["Items judged by two or more"][0] == "3"
    assert table["Cohen's kappa of ada and bob"][1] == "on 3 pairs that both judged"


def test_both_answers_of_a_conflict_stand_side_by_side(store: Store) -> None:
    text = client(Desk(store, alone=alone(store))).get("/label/owner").text
    conflicts = text[text.index("In conflict") :]
    assert conflicts.count('class="card conflict"') == 2
    assert re.findall(r"<li><bdi>(\w+)</bdi>: (.*?)</li>", conflicts) == [
        ("ada", "A &gt; B"), ("bob", "B &gt; A"), ("ada", "A = B"), ("bob", "A &gt; B")
    ]  # fmt: skip
    assert "first 1" in conflicts


def test_without_labels_there_is_nothing_to_compare(tmp_path: Path) -> None:
    with Store(tmp_path / "new.db") as store:
        text = client(Desk(store, alone=alone(store))).get("/label/owner").text
    assert "No item has two answers yet" in text
    assert "0 labels" in text


def test_the_export_is_a_preference_file(store: Store, tmp_path: Path) -> None:
    said = client(Desk(store, alone=alone(store))).get("/label/export.jsonl")
    assert said.headers["content-disposition"] == 'attachment; filename="labels.jsonl"'
    path = tmp_path / "labels.jsonl"
    path.write_text(said.text, encoding="utf-8")
    read, bad = read_preferences(path)
    assert (len(read), bad) == (8, [])  # ten labels, two of them skips
    assert {row.annotator for row in read} == {"ada", "bob"}
    for row, record in zip(read, map(json.loads, said.text.splitlines()), strict=True):
        best = row.responses[row.place.index(0)][0].content
        label = next(label for item, label in store.export()
                     if item.id == record["item"] and label.annotator == record["annotator"])  # fmt: skip
        assert [r[0].content.split()[0] for r in row.responses] == [("first", "second")[n] for n in label.order]
        assert best.startswith(("first", "second")[label.judgement.ranking[0][0]]) or label.judgement.ranking == TIE
        assert record["seconds"] == 2.0


def test_what_no_preference_file_can_hold_stays_out_and_is_told(tmp_path: Path) -> None:
    """A response may be empty (a policy that ended at once), texts may be markup or half a character pair."""
    with Store(tmp_path / "odd.db") as store:
        odd = [Item("p", ("", "x")), Item("</script>", ("\ud800", "b")), Item("q", ("x\u2028y", "<b>")), ranking(3)]
        store.add_items(odd)
        me = alone(store)
        for item, given in enumerate((FIRST, SECOND, SECOND, ((2,), (0, 1))), 1):
            store.label(me, item, judgement=Judgement(given, 1.0), key=str(item))
        web = client(Desk(store, alone=me))
        page, text = web.get("/label/owner").text, web.get("/label/export.jsonl").text
    records = [json.loads(line) for line in text.split("\n") if line]
    assert [(record["item"], len(record["responses"])) for record in records] == [(3, 2), (4, 3)]
    assert "Labels that no preference file can hold stay out (this row is empty): 1." in page
    assert "half of a surrogate pair, which is no character): 1." in page


def test_an_export_keeps_the_strength_beside_rankings(tmp_path: Path) -> None:
    with Store(tmp_path / "both.db") as store:
        store.add_items([Item("p", ("a", "b")), Item("q", ("a", "b")), ranking(3)])
        me = alone(store)
        for item, strength in ((1, 3), (2, None)):
            store.label(me, item, judgement=Judgement(FIRST, 1.0, strength=strength), key=str(item))
        store.label(me, 3, judgement=Judgement(((2,), (0, 1)), 1.0), key="3")
        text = client(Desk(store, alone=me)).get("/label/export.jsonl").text
    path = tmp_path / "labels.jsonl"
    path.write_text(text, encoding="utf-8")
    first, *others = map(json.loads, text.splitlines())
    assert first["strength"] == (-3 if first["responses"][0] == "a" else 3)  # below 0: that shown first is better
    assert not any("strength" in record for record in others)
    read, bad = read_preferences(path)
    assert ([len(row.responses) for row in read], bad) == ([2, 2, 3], [])


def test_letters_go_on_behind_z() -> None:
    assert [letter(place) for place in (0, 25, 26, 51, 52)] == ["A", "Z", "AA", "AZ", "BA"]
