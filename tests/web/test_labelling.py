"""The labelling page without scripts: what each form stores, once, and what it refuses."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from desks import BASE, Hand, alone, client, fields, labels, ranking, undo_fields
from killick.preferences.store import Item, Judgement, Store, Unavailable
from killick.web.people import PART, Desk
from stores import pairs


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Five pairs, and somebody alone."""
    with Store(tmp_path / "labels.db") as store:
        store.add_items(pairs(5))
        yield Desk(store, alone=alone(store))


@pytest.mark.parametrize(
    ("choice", "shown"), [("1", ((0,), (1,))), ("2", ((1,), (0,))), ("=", ((0, 1),)), ("skip", ())]
)
def test_a_plain_form_stores_what_was_chosen_as_it_was_shown(desk: Desk, choice: str, shown: Any) -> None:
    """Post, redirect, get: the choice is of places on the card, the label of the item's own candidates."""
    web = client(desk)
    sent = web.post("/label/answer", data={**fields(web.get("/label")), "choice": choice})
    assert (sent.status_code, sent.headers["location"]) == (303, "/label")
    ((item, label),) = labels(desk.store)
    assert desk.alone is not None
    order = desk.alone.order(item)
    assert label.order == order
    assert label.judgement.ranking == tuple(tuple(sorted(order[at] for at in group)) for group in shown)
    assert label.judgement.seconds >= 0
    assert fields(web.get("/label"))["item"] != str(item.id)


def test_strength_flag_and_note_go_with_the_answer(desk: Desk) -> None:
    hand = Hand(client(replace(desk, strength=True)))
    hand.open()
    assert "slightly" in hand.page
    hand.say("2", strength="3", flag="true", note="  one\r\ntwo ", seconds="2.5")
    hand.say("=", strength="2")
    said = [label.judgement for _, label in labels(desk.store)]
    assert (said[0].strength, said[0].flags, said[0].note, said[0].seconds) == (3, ("flagged",), "one\ntwo", 2.5)
    assert (said[1].strength, said[1].flags) == (None, ())  # a tie has no strength


def test_a_ranking_is_told_by_places_with_ties(desk: Desk) -> None:
    desk.store.add_items([ranking(4)])
    hand = Hand(client(desk))
    hand.open()
    for _ in range(5):
        hand.say("1")
    # Shown third first; second and fourth share the next place; shown first is last. Gaps in the places are no matter.
    assert hand.say("rank", number=["1", "2", "3", "4"], place=["4", "2", "1", "2"]).status_code == 200
    item, label = labels(desk.store)[-1]
    order = label.order
    assert label.judgement.ranking == ((order[2],), tuple(sorted((order[1], order[3]))), (order[0],))
    assert item.kind == "ranking"
    assert "All done" in hand.page


@pytest.mark.parametrize(
    ("number", "place"),
    [([], []), (["1", "2"], ["1", "2"]), (["1", "2", "2"], ["1", "2", "3"]), (["1", "2", "3"], ["1", "", "2"]),
     (["1", "2", "3"], ["1", "2", "4"]), (["1", "2", "3"], ["1", "2", "x"]), (["0", "1", "2"], ["1", "2", "3"])],
)  # fmt: skip
def test_a_ranking_with_a_hole_is_asked_again(tmp_path: Path, number: list[str], place: list[str]) -> None:
    with Store(tmp_path / "labels.db") as store:
        store.add_items([ranking(3)])
        hand = Hand(client(Desk(store, alone=alone(store))))
        hand.open()
        before = fields(hand.page)["item"]
        assert hand.say("rank", number=number, place=place).status_code == 400
        assert 'role="alert"' in hand.page
        assert fields(hand.page)["item"] == before
        assert labels(store) == []


def test_the_same_click_is_stored_once_and_another_answer_is_told(desk: Desk) -> None:
    """O-50: a retry sends the same key; another tab shows the same card under another key."""
    web = client(desk)
    first, second = fields(web.get("/label")), fields(web.get("/label"))
    assert (first["item"], first["key"] != second["key"]) == (second["item"], True)
    for _ in range(3):
        assert web.post("/label/answer", data={**first, "choice": "1"}).status_code == 303
    assert web.post("/label/answer", data={**second, "choice": "1"}).status_code == 303  # the same content
    other = web.post("/label/answer", data={**second, "key": "new", "choice": "2"})
    assert other.status_code == 409
    assert "answered that card before" in other.text
    assert len(labels(desk.store)) == 1


def test_undo_takes_back_one_label_however_often_it_is_sent(desk: Desk) -> None:
    hand = Hand(client(desk))
    hand.open()
    hand.say("1")
    hand.say("2", note="so so", flag="true")
    last = undo_fields(hand.page)
    for _ in range(2):
        hand.page = hand.client.post("/label/undo", data=last, headers={PART: "card"}).text
        assert len(labels(desk.store)) == 1
        assert fields(hand.page)["item"] == last["item"]
    assert hand.client.post("/label/undo", data={"item": "5", "key": "one"}).status_code == 400
    plain = hand.client.post("/label/undo", data={"item": "1", "key": "other"})
    assert (plain.status_code, labels(desk.store)) == (200, [])


@pytest.mark.parametrize("headers", [{PART: "card"}, {}])
def test_after_an_undo_the_card_comes_as_it_was_answered(desk: Desk, headers: dict[str, str]) -> None:
    hand = Hand(client(replace(desk, strength=True)))
    hand.open()
    hand.say("2", note="so <so>", flag="true", strength="2")
    shown = hand.client.post("/label/undo", data=undo_fields(hand.page), headers=headers).text
    assert shown.startswith("<!doctype html>") != bool(headers)
    assert 'value="so &lt;so&gt;"' in shown
    assert 'name="flag" value="true" checked' in shown
    assert 'name="strength" value="2" checked' in shown
    assert fields(shown)["item"] == "1"


def test_a_card_of_another_store_is_not_answered_here(desk: Desk, tmp_path: Path) -> None:
    """A tab that was left open, and another file on the same port."""
    hand = Hand(client(desk))
    hand.open()
    with Store(tmp_path / "other.db") as other:
        other.add_items([Item("Another question", ("yes", "no"))])
        elsewhere = Hand(client(Desk(other, alone=alone(other))))
        elsewhere.page = hand.page
        said = elsewhere.say("1")
        assert said.status_code == 400
        assert "another store" in said.text
        assert "Another question" in said.text
        assert labels(other) == []


def test_progress_pace_and_the_end_are_told(desk: Desk) -> None:
    hand = Hand(client(desk))
    hand.open()
    assert "<b>0</b> of 5" in hand.page
    hand.say("1")
    hand.say("skip")
    hand.say("1")
    assert "<b>3</b> of 5" in hand.page
    assert "a minute" in hand.page
    assert "min left" in hand.page
    hand.say("1")
    hand.say("1")
    assert "All done" in hand.page
    assert "5 cards, 1 of them by a skip" in hand.page


def test_what_others_hold_is_waited_for(tmp_path: Path) -> None:
    with Store(tmp_path / "labels.db") as store:
        store.add_items(pairs(1))
        ada, bob = (client(Desk(store), store.add_annotator(name)) for name in ("ada", "bob"))
        ada.get("/label")
        assert "Nothing free just now" in bob.get("/label").text


def test_guidelines_are_shown_as_text(desk: Desk) -> None:
    desk.store.set_guidelines("Be <b>kind</b>\nand short.")
    assert "Be &lt;b&gt;kind&lt;/b&gt;\nand short." in client(desk).get("/label").text


def test_sources_are_never_shown(tmp_path: Path) -> None:
    with Store(tmp_path / "labels.db") as store:
        store.add_items([Item("Which?", ("a", "b"), sources=("secret-model", "plain"), metadata={"place": ["secret"]})])
        assert "secret" not in client(Desk(store, alone=alone(store))).get("/label").text


def test_a_store_that_cannot_write_is_told_and_nothing_is_lost(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    hand = Hand(client(desk))
    hand.open()
    sent = fields(hand.page)

    def full(*_: object, **__: object) -> None:
        raise Unavailable("The store could not write (disk full); send it again.")

    with monkeypatch.context() as broken:
        broken.setattr(Store, "label_then_next", full)
        said = hand.say("1")
        assert said.status_code == 503
        assert "disk full" in said.text
    hand.page = hand.client.get("/label").text
    assert hand.client.post("/label/answer", data={**sent, "choice": "1"}).status_code == 303
    assert len(labels(desk.store)) == 1


@pytest.mark.parametrize(
    "wrong",
    [{"item": "x"}, {"item": "-1"}, {"item": str(2**63)}, {"key": ""}, {"key": "a b"}, {"key": "x" * 201},
     {"choice": "3"}, {"choice": ""}, {"strength": "4"}, {"seconds": "NaN"}, {"seconds": "-1"}, {"shown": "inf"},
     {"note": "x" * 10_001}, {"number": "1" * 5000}, {"place": "1" * 5000}],
)  # fmt: skip
def test_what_no_form_sends_is_refused_by_field(desk: Desk, wrong: dict[str, str]) -> None:
    web = client(desk)
    said = web.post("/label/answer", data={**fields(web.get("/label")), "choice": "1", **wrong})
    assert said.status_code == 422
    assert next(iter(wrong)) in said.json()["errors"][0]["field"]
    assert labels(desk.store) == []


def test_a_choice_of_another_kind_of_card_is_refused(desk: Desk) -> None:
    web = client(desk)
    assert web.post("/label/answer", data={**fields(web.get("/label")), "choice": "rank"}).status_code == 400
    gone = {**fields(web.get("/label")), "item": "99", "choice": "1"}
    assert web.post("/label/answer", data=gone).status_code == 400
    assert labels(desk.store) == []


def test_pages_of_other_origins_and_names_are_refused(desk: Desk) -> None:
    web = client(desk)
    data = {**fields(web.get("/label")), "choice": "1"}
    for origin in ("http://elsewhere", "null", "http://127.0.0.1:9"):
        assert web.post("/label/answer", data=data, headers={"origin": origin}).status_code == 403
    for host in ("elsewhere", "127.0.0.1.elsewhere:8000", ""):  # a name that was pointed at this machine
        assert web.get("/label", headers={"host": host}).status_code == 421
    assert labels(desk.store) == []
    assert web.post("/label/answer", data=data, headers={"origin": BASE}).status_code == 303


def test_a_long_body_is_refused_before_it_is_read(desk: Desk) -> None:
    web = client(desk)
    assert web.post("/label/answer", content=b"note=" + b"x" * 200_000).status_code == 413
    longest = {**fields(web.get("/label")), "choice": "1", "note": "語" * 10_000}
    assert web.post("/label/answer", data=longest).status_code == 303


def test_pages_let_nothing_foreign_in(desk: Desk) -> None:
    headers = client(desk).get("/label").headers
    assert "script-src 'self'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


def test_bytes_that_are_no_text_do_no_harm(desk: Desk, tmp_path: Path) -> None:
    hand = Hand(client(desk))
    hand.open()
    sent = "&".join(f"{name}={value}" for name, value in {**fields(hand.page), "choice": "1"}.items())
    raw = f"{sent}&note=%ff%ed%a0%80%00".encode()
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert hand.client.post("/label/answer", content=raw, headers=form).status_code == 303
    with Store(tmp_path / "odd.db") as store:
        store.add_items([Item("half \ud800 a pair", ("\x00", "\u202edrow"))])
        assert client(Desk(store, alone=alone(store))).get("/label").status_code == 200


def test_seconds_are_bounded(desk: Desk) -> None:
    hand = Hand(client(desk))
    hand.open()
    hand.say("1", seconds="1e300")
    hand.say("1", seconds="", shown="1e300")
    assert [label.judgement for _, label in labels(desk.store)] == [
        Judgement(label.judgement.ranking, seconds) for (_, label), seconds in zip(labels(desk.store), (86400.0, 0.0),
                                                                                  strict=True)
    ]  # fmt: skip
