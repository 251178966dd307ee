"""The store's verbs, on SQLite and on PostgreSQL."""

from dataclasses import replace

import pytest

from killick.preferences.store import Item, Judgement, Store, Unavailable
from killick.refusal import Refusal
from stores import FIRST, SECOND, SKIP, TIE, join, pairs, place, said, store

__all__ = ["place", "store"]  # fixtures


def test_a_label_is_stored_with_all_that_belongs_to_it(store: Store) -> None:
    asked = Item("2+2?", ("4", "5\x00\ud800"), sources=("a", "b"), scores=(1.0, -0.5), metadata={"row": 7})
    store.add_items([asked], overlap=3)
    store.set_guidelines("be kind")
    ada = join(store, "Ada Lovelace")
    card = store.next_card(ada)
    assert card is not None
    assert card.item.id is not None
    given = Judgement(card.ranking(((0,), (1,))), 2.5, strength=2, note="\x00 \ud800 ok", flags=("unsafe", "odd"))
    outcome = store.label(ada, card.item.id, judgement=given, key="k")
    [(item, label)] = store.export()
    assert outcome.status == "new"
    assert outcome.label == label
    assert (item.prompt, item.candidates, item.sources, item.scores, item.metadata, item.overlap) == (
        "2+2?", ("4", "5\x00\ud800"), ("a", "b"), (1.0, -0.5), {"row": 7}, 3,
    )  # fmt: skip
    assert label.judgement == given
    assert label.judgement.flags == ("odd", "unsafe")
    assert (label.annotator, label.order, label.guidelines, label.revision) == ("Ada Lovelace", card.order, 1, 0)


def test_the_same_again_is_the_same_and_another_answer_is_a_conflict(store: Store) -> None:
    store.add_items(pairs(2))
    ada, bob = join(store, "ada"), join(store, "bob")

    def status(key: str, ranking: tuple[tuple[int, ...], ...], item: int = 1) -> str:
        return store.label(ada, item, judgement=said(ranking), key=key).status

    assert status("a", FIRST) == "new"
    assert status("a", FIRST) == "same"  # a retry
    assert status("b", FIRST) == "same"  # a second tab
    assert status("c", SECOND) == status("c", TIE) == status("d", SKIP) == "conflict"
    assert status("a", SECOND) == "conflict"  # a key names one click
    assert status("a", FIRST, item=2) == "conflict"
    assert store.label(bob, 1, judgement=said(SECOND), key="a").status == "new"  # keys are each annotator's own
    assert len(list(store.export(history=True))) == 2


def test_an_edit_and_an_undo_are_rows_of_the_log(store: Store) -> None:
    store.add_items(pairs(3))
    ada = join(store, "ada")
    store.label(ada, 1, judgement=said(FIRST), key="1")
    assert store.revise(ada, 1, judgement=said(SECOND), key="2").status == "new"
    assert store.revise(ada, 1, judgement=said(SECOND), key="2").status == "same"
    assert store.revise(ada, 1, judgement=said(SECOND), key="3").status == "same"
    assert [label.judgement.ranking for _, label in store.export()] == [SECOND]
    assert store.withdraw(ada, 1, key="4").status == "new"
    assert store.withdraw(ada, 1, key="4").status == store.withdraw(ada, 1, key="5").status == "same"
    assert list(store.export()) == []
    assert store.last(ada) is None
    # Late retries of the first clicks do not come back to life.
    assert store.label(ada, 1, judgement=said(FIRST), key="1").status == "same"
    assert list(store.export()) == []
    back = store.next_card(ada)
    assert back is not None
    assert back.item.id == 1
    assert store.label(ada, 1, judgement=said(TIE), key="6").status == "new"
    log = [(label.revision, label.action, label.judgement.ranking) for _, label in store.export(history=True)]
    assert log == [(0, "label", FIRST), (1, "revise", SECOND), (2, "withdraw", ()), (3, "label", TIE)]


def test_what_cannot_be_is_refused_and_leaves_nothing(store: Store) -> None:
    store.add_items([*pairs(1), Item("rank", ("a", "b", "c"), kind="ranking")])
    ada = join(store, "ada")
    for item, ranking in ((3, FIRST), (2, FIRST), (1, ((0,), (1,), (2,)))):
        with pytest.raises(Refusal):
            store.label(ada, item, judgement=said(ranking), key="k")
    with pytest.raises(Refusal, match="to revise"):
        store.revise(ada, 1, judgement=said(), key="k")
    with pytest.raises(Refusal, match="to withdraw"):
        store.withdraw(ada, 1, key="k")
    with pytest.raises(Refusal, match="ASCII"):
        store.label(ada, 1, judgement=said(), key="a\nb")
    assert list(store.export(history=True)) == []
    assert store.label(ada, 2, judgement=said(((2,), (0, 1))), key="k").status == "new"


def test_an_import_is_idempotent_and_whole_or_nothing(store: Store) -> None:
    def broken():
        yield from pairs(1100)
        raise RuntimeError("the file ends here")

    with pytest.raises(RuntimeError):
        store.add_items(broken())
    assert store.progress().left == 0
    first = store.add_items([*pairs(700), *pairs(10)])
    again = store.add_items(pairs(702), overlap=2)
    assert (first.new, first.known, again.new, again.known) == (700, 0, 2, 700)
    assert store.progress().left == 702 * 2
    store.add_items([*pairs(703), replace(pairs(1)[0], overlap=5)])  # an item is one, as it was first given
    assert store.progress().left == 702 * 2 + 1
    store.add_items([replace(pairs(1)[0], overlap=5)])
    assert store.progress().left == 702 * 2 + 4
    with pytest.raises(Refusal, match="overlap"):
        store.add_items(pairs(1), overlap=0)


def test_overlap_is_honoured_by_reservations_and_nobody_is_blocked_for_ever(place: str) -> None:
    now = [1000.0]
    with Store(place, reserve=60, clock=lambda: now[0]) as store:
        store.add_items(pairs(2), overlap=2)
        ada, bob, cyd = (join(store, name) for name in ("ada", "bob", "cyd"))

        def asked(annotator) -> int | None:
            card = store.next_card(annotator)
            return None if card is None else card.item.id

        assert [asked(ada), asked(bob), asked(cyd), asked(ada)] == [1, 1, 2, 1]
        store.label(ada, 1, judgement=said(), key="1")
        store.label(bob, 1, judgement=said(SKIP), key="1")  # a skip is no preference: the item still wants one
        assert [asked(ada), asked(bob)] == [2, None]  # cyd and ada hold the two of item 2
        now[0] += 61
        assert asked(bob) == 2  # their time is over
        late = store.label(cyd, 2, judgement=said(), key="late")
        assert late.status == "new"  # and yet no click is lost
        assert [asked(cyd), store.progress().left] == [1, 2]


def test_annotators_have_names_and_tokens(store: Store) -> None:
    token = store.add_annotator("zoë")
    zoe = store.annotator(token)
    assert zoe is not None
    assert zoe.name == "zoë"
    assert store.annotators() == [zoe]
    assert store.annotator("no") is None
    assert store.annotator("") is None
    with pytest.raises(Refusal, match="already"):
        store.add_annotator("zoe\u0308")  # the same name in another spelling
    renewed = store.renew_token("zoë")
    assert store.annotator(token) is None
    assert store.annotator(renewed) == zoe
    with pytest.raises(Refusal, match="no annotator"):
        store.renew_token("nobody")


def test_labels_keep_the_guidelines_under_which_the_card_was_handed_out(store: Store) -> None:
    store.add_items(pairs(2))
    ada = join(store, "ada")
    assert store.guidelines() == (0, "")
    assert (store.set_guidelines("one"), store.set_guidelines("one")) == (1, 1)
    store.next_card(ada)
    assert store.set_guidelines("two") == 2
    assert store.guidelines() == (2, "two")
    assert store.guidelines(1) == (1, "one")
    assert store.label(ada, 1, judgement=said(), key="1").label.guidelines == 1
    store.next_card(ada)
    assert store.label(ada, 2, judgement=said(), key="2").label.guidelines == 2


def test_a_closed_store_says_so(place: str) -> None:
    store = Store(place)
    store.close()
    store.close()
    with pytest.raises(Unavailable, match="closed"):
        store.add_annotator("ada")


def test_an_answer_and_the_next_card_are_one_commit(store: Store) -> None:
    store.add_items(pairs(2))
    ada = join(store, "ada")
    first = store.next_card(ada)
    assert first is not None
    outcome, card = store.label_then_next(ada, 1, judgement=said(FIRST), key="1")
    again = store.next_card(ada)
    assert card is not None
    assert again is not None
    assert (outcome.status, card.item.id, card.order) == ("new", 2, again.order)
    assert store.label_then_next(ada, 1, judgement=said(SECOND), key="2")[0].status == "conflict"
    outcome, card = store.label_then_next(ada, 2, judgement=said(FIRST), key="3")
    assert (outcome.status, card) == ("new", None)
    with pytest.raises(Refusal):
        store.label_then_next(ada, 9, judgement=said(FIRST), key="4")
