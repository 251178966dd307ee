"""Cards and labels when many come at once: one click is one label (O-50), and overlaps hold."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryDirectory
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from killick.preferences.store import Item, Outcome, Store
from killick.refusal import Refusal
from stores import FIRST, SECOND, SKIP, TIE, join, pairs, place, said

__all__ = ["place"]

T = TypeVar("T")


def at_once(count: int, work: Callable[[int], T]) -> list[T]:
    """Results of `count` threads that start together."""
    gate = threading.Barrier(count)

    def one(n: int) -> T:
        gate.wait()
        return work(n)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_one_click_is_one_label_o_50(place: str) -> None:
    """O-50: 50 at once, half say A and half B; again the next day; then another annotator."""
    with Store(place) as store, Store(place) as other:  # as two servers on one database
        store.add_items(pairs(1), overlap=2)
        ada, bob = join(store, "ada"), join(store, "bob")

        def post(n: int) -> tuple[str, tuple[tuple[int, ...], ...]]:
            through = (store, other)[n // 2 % 2]
            outcome = through.label(ada, 1, judgement=said((FIRST, SECOND)[n % 2]), key=f"click-{n}")
            return outcome.status, outcome.label.judgement.ranking

        answers = at_once(50, post)
        [(_, kept)] = store.export(history=True)
        assert Counter(status for status, _ in answers) == {"new": 1, "same": 24, "conflict": 25}
        assert {ranking for _, ranking in answers} == {kept.judgement.ranking}
        again = store.label(ada, 1, judgement=kept.judgement, key="next-day")
        assert (again.status, again.label) == ("same", kept)
        assert store.label(bob, 1, judgement=said(TIE), key="click-0").status == "new"
        assert len(list(store.export())) == len(list(other.export(history=True))) == store.progress().done == 2
        assert (store.progress(ada).done, store.progress(bob).done, store.progress().left) == (1, 1, 0)
        assert store.revise(ada, 1, judgement=said(SKIP), key="edit").status == "new"  # an edit is a row of its own
        assert len(list(store.export(history=True))) == 3
        assert len(list(store.export())) == store.progress().done == 2


def test_a_hundred_retries_of_one_edit_are_one_edit(place: str) -> None:
    with Store(place) as store:
        store.add_items(pairs(1))
        ada = join(store, "ada")
        store.label(ada, 1, judgement=said(FIRST), key="label")
        edits = at_once(50, lambda _: store.revise(ada, 1, judgement=said(SECOND), key="edit").status)
        assert Counter(edits) == {"new": 1, "same": 49}
        undone = at_once(50, lambda n: store.withdraw(ada, 1, key=f"undo-{n % 2}").status)
        assert Counter(undone) == {"new": 1, "same": 49}
        assert [label.action for _, label in store.export(history=True)] == ["label", "revise", "withdraw"]


def test_annotators_at_once_do_not_exceed_the_overlap(place: str) -> None:
    with Store(place) as store, Store(place) as other:
        store.add_items(pairs(12), overlap=2)
        people = [join(store, f"a{n}") for n in range(8)]

        def work(n: int) -> int:
            through, done = (store, other)[n % 2], 0
            while (card := through.next_card(people[n])) is not None:
                assert card.item.id is not None
                assert through.label(people[n], card.item.id, judgement=said(), key=f"{card.item.id}").status == "new"
                done += 1
            return done

        assert sum(at_once(8, work)) == 24
        assert set(Counter(item.id for item, _ in store.export()).values()) == {2}
        assert store.progress().left == 0


def test_labels_of_one_annotator_in_two_tabs_are_one_card(place: str) -> None:
    with Store(place) as store:
        store.add_items(pairs(5))
        ada = join(store, "ada")
        cards = at_once(10, lambda _: store.next_card(ada))
        assert {card.item.id for card in cards if card} == {1}
        assert len({card.order for card in cards if card}) == 1


class Log(RuleBasedStateMachine):
    """Any sequence of labels, edits and undos, against a plain dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.store = Store(f"{self.folder.name}/a.db")
        self.store.add_items([*pairs(2), Item("r", ("a", "b", "c"), kind="ranking")], overlap=2)
        self.people = [join(self.store, name) for name in ("ada", "bob", "cyd")]
        self.held: dict[tuple[int, int], tuple[tuple[int, ...], ...]] = {}
        self.rows = 0
        self.keys = 0

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def act(self, verb: Callable[..., Outcome], person: int, item: int, **given: object) -> str:
        self.keys += 1
        try:
            status = verb(self.people[person], item, key=str(self.keys), **given).status
        except Refusal:
            return "refused"
        self.rows += status == "new"
        return status

    @rule(person=st.integers(0, 2), item=st.integers(1, 2), ranking=st.sampled_from([FIRST, SECOND, TIE, SKIP]))
    def label(self, person: int, item: int, ranking: tuple[tuple[int, ...], ...]) -> None:
        held = self.held.setdefault((person, item), ranking)
        before = self.rows
        status = self.act(self.store.label, person, item, judgement=said(ranking))
        assert status in (("new", "same") if held == ranking else ("conflict",))
        assert (status == "new") == (self.rows > before)

    @rule(person=st.integers(0, 2), item=st.integers(1, 2), ranking=st.sampled_from([FIRST, SECOND, TIE, SKIP]))
    def revise(self, person: int, item: int, ranking: tuple[tuple[int, ...], ...]) -> None:
        held = self.held.get((person, item))
        expected = "refused" if held is None else "same" if held == ranking else "new"
        assert self.act(self.store.revise, person, item, judgement=said(ranking)) == expected
        if held is not None:
            self.held[person, item] = ranking

    @rule(person=st.integers(0, 2), item=st.integers(1, 2))
    def withdraw(self, person: int, item: int) -> None:
        status = self.act(self.store.withdraw, person, item)
        assert (status == "new") == (self.held.pop((person, item), None) is not None)

    @rule(person=st.integers(0, 2))
    def card(self, person: int) -> None:
        card = self.store.next_card(self.people[person])
        assert card is None or (person, card.item.id) not in self.held

    @invariant()
    def counts_agree(self) -> None:
        seen = {(label.annotator, item.id): label.judgement.ranking for item, label in self.store.export()}
        assert seen == {(self.people[who].name, item): ranking for (who, item), ranking in self.held.items()}
        assert len(list(self.store.export(history=True))) == self.rows
        assert self.store.progress().done == len(self.held)
        done = Counter(item for (_, item), ranking in self.held.items() if ranking)
        assert self.store.progress().left == sum(max(2 - done[item], 0) for item in (1, 2, 3))


TestLog = Log.TestCase
TestLog.settings = settings(max_examples=8, stateful_step_count=15, deadline=None)
