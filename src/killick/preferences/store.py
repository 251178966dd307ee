"""Labels of people, kept so that no click is lost or counted twice: SQLite in a file, or PostgreSQL by URL.

    store = Store("labels.db")
    store.add_items(items, overlap=2)
    token = store.add_annotator("ada")
    ada = store.annotator(token)
    card = store.next_card(ada)
    store.label(ada, card.item.id, Judgement(card.ranking(((0,), (1,))), seconds=4.2), key="a-new-one-each-click")

Every verb that writes returns after its commit is on the disk, and may be called from many threads and processes at
once. What it cannot store raises `Unavailable` and may be sent again: the same key or the same content is stored once.
"""

import hashlib
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import TracebackType

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import DBAPIError

from killick.preferences.storing import items as store_items
from killick.preferences.storing import labels as store_labels
from killick.preferences.storing import reading as store_reading
from killick.preferences.storing.engine import address, connect, reading
from killick.preferences.storing.labels import NOTHING, Act
from killick.preferences.storing.records import (
    Annotator,
    Card,
    Conflict,
    Imported,
    Item,
    Judgement,
    Label,
    Outcome,
    Progress,
    Unavailable,
    valid_key,
    valid_name,
)  # fmt: skip
from killick.preferences.storing.tables import annotators, guidelines, prepare
from killick.preferences.storing.writer import Writer
from killick.refusal import Refusal

__all__ = [
    "Annotator", "Card", "Conflict", "Imported", "Item", "Judgement", "Label", "Outcome", "Progress", "Store",
    "Unavailable",
]  # fmt: skip

PERSON = select(annotators.c.id, annotators.c.name, annotators.c.seed)


class Store:
    """Items, annotators and labels in a database, which is made when it is not there.

    Args:
        place: an SQLite file, or a `postgresql://` URL.
        reserve: seconds that a card stays with whom it was handed to.
        clock: seconds since 1970.

    Raises:
        Refusal: at what is no store, one of a newer killick, or a database that cannot be opened.
    """

    def __init__(self, place: str | Path, *, reserve: float = 600.0, clock: Callable[[], float] = time.time):
        self._url = address(place)
        self._engine = connect(self._url)
        self._reserve, self._clock = reserve, clock
        self._write = Writer(self._engine)
        try:
            self._write(prepare)
        except Exception as error:
            self.close()
            if isinstance(error, Unavailable):
                reason = str(error.__cause__.orig) if isinstance(error.__cause__, DBAPIError) else str(error)
                shown = self._url.render_as_string()
                raise Refusal(f"The store {shown} cannot be opened: {reason.strip().splitlines()[0]}.") from error
            raise

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Finish what is being written and let go of the database."""
        self._write.close()
        self._engine.dispose()

    # Items and guidelines

    def add_items(self, items: Iterable[Item], *, overlap: int | None = None) -> Imported:
        """Add all of these or none; the same item again only takes the overlap that is given.

        Args:
            items: read once, in chunks; an exception while reading leaves the store as it was.
            overlap: how many annotators each item gets, where it does not say so itself; None leaves that of known
                items as it is, and gives 1 to new ones.

        Raises:
            Refusal: at an overlap below 1.
            Unavailable: when the database does not take them.
        """
        if overlap is not None and overlap < 1:
            raise Refusal(f"overlap is the number of annotators an item gets, 1 or more, not {overlap}.")
        return store_items.stage(self._write, items, overlap=overlap, now=self._clock)

    def set_guidelines(self, text: str) -> int:
        """Put guidelines into force and return their version, from 1; the same text again is the same version."""
        return self._write(partial(store_items.set_guidelines, text=text, at=self._clock()))

    def guidelines(self, version: int | None = None) -> tuple[int, str]:
        """Version and text of the guidelines in force, or of an older version; (0, "") where there are none."""
        with reading(self._engine) as connection:
            wanted = select(guidelines.c.version, guidelines.c.text).order_by(guidelines.c.version.desc()).limit(1)
            if version is not None:
                wanted = wanted.where(guidelines.c.version == version)
            found = connection.execute(wanted).first()
            return (0, "") if found is None else (found.version, found.text)

    # Annotators

    def add_annotator(self, name: str) -> str:
        """Add one and return the token, which is shown this once and stored only as a hash.

        Raises:
            Refusal: at a name that is taken, or that is none.
        """
        one, token = valid_name(name), secrets.token_urlsafe(24)
        values = {"name": one, "token": hashed(token), "seed": secrets.token_hex(16), "at": self._clock()}

        def work(connection: Connection) -> None:
            if connection.scalar(select(annotators.c.id).where(annotators.c.name == one)) is not None:
                raise Refusal(f"There is an annotator {one!r} already; renew the token, or take another name.")
            connection.execute(insert(annotators).values(values))

        self._write(work)
        return token

    def renew_token(self, name: str) -> str:
        """A new token for an annotator who lost the old one, which ends.

        Raises:
            Refusal: where there is nobody of this name.
        """
        token = secrets.token_urlsafe(24)
        change = update(annotators).where(annotators.c.name == valid_name(name)).values(token=hashed(token))
        if self._write(lambda connection: connection.execute(change).rowcount) != 1:
            raise Refusal(f"There is no annotator {name!r} in this store.")
        return token

    def annotator(self, token: str) -> Annotator | None:
        """Whose token this is; None where it is nobody's."""
        with reading(self._engine) as connection:
            found = connection.execute(PERSON.where(annotators.c.token == hashed(token))).first()
            return None if found is None else Annotator(*found)

    def annotators(self) -> list[Annotator]:
        """Everybody, in the order of joining."""
        with reading(self._engine) as connection:
            return [Annotator(*row) for row in connection.execute(PERSON.order_by(annotators.c.id))]

    # Labelling

    def next_card(self, annotator: Annotator) -> Card | None:
        """The card this annotator has and has not answered, or a new one; None where nothing can be had now.

        A card is reserved: meanwhile the item counts as one of its overlap. Nothing waits for whoever left: after
        `reserve` seconds the item is handed to another.
        """
        now = self._clock()
        return self._write(partial(store_labels.hand_out, annotator=annotator, now=now, reserve=self._reserve))

    def card(self, annotator: Annotator, item: int) -> Card | None:
        """One item as this annotator sees it, without a reservation; None where there is no such item."""
        with reading(self._engine) as connection:
            return store_reading.card(connection, annotator=annotator, item=item)

    def label(self, annotator: Annotator, item: int, *, judgement: Judgement, key: str) -> Outcome:
        """Store a judgement, once: "new", "same" (this key or this content is there), or "conflict" (another is).

        Args:
            annotator: who says it.
            item: which item; the card need not be reserved, so no answer is lost because it took long.
            judgement: what is said.
            key: names this click; a retry sends it again.

        Raises:
            Refusal: at an item or a ranking that cannot be.
            Unavailable: when the database does not take it.
        """
        return self._act(Act(annotator, item, "label", judgement, valid_key(key), self._clock()))

    def label_then_next(
        self, annotator: Annotator, item: int, *, judgement: Judgement, key: str
    ) -> tuple[Outcome, Card | None]:
        """`label`, then `next_card`, in one commit: what a page does at each answer. Errors as in both."""
        act = Act(annotator, item, "label", judgement, valid_key(key), self._clock())

        def work(connection: Connection) -> tuple[Outcome, Card | None]:
            outcome = store_labels.perform(connection, act=act, reserve=self._reserve)
            card = store_labels.hand_out(connection, annotator=annotator, now=act.at, reserve=self._reserve)
            return outcome, card

        return self._write(work)

    def revise(self, annotator: Annotator, item: int, *, judgement: Judgement, key: str) -> Outcome:
        """Change an own label: a new revision, beside the old one. Arguments and errors as in `label`."""
        return self._act(Act(annotator, item, "revise", judgement, valid_key(key), self._clock()))

    def withdraw(self, annotator: Annotator, item: int, *, key: str) -> Outcome:
        """Take an own label back (undo): a new revision; the item is this annotator's next card. Errors as above."""
        return self._act(Act(annotator, item, "withdraw", NOTHING, valid_key(key), self._clock()))

    def _act(self, act: Act) -> Outcome:
        return self._write(partial(store_labels.perform, act=act, reserve=self._reserve))

    def last(self, annotator: Annotator) -> Label | None:
        """The newest label of this annotator that holds: what an undo would take back."""
        with reading(self._engine) as connection:
            return store_reading.last(connection, annotator=annotator)

    # Looking on

    def progress(self, annotator: Annotator | None = None) -> Progress:
        """How far one annotator is, or all together."""
        with reading(self._engine) as connection:
            return store_reading.progress(connection, annotator=annotator)

    def conflicts(self) -> Iterator[Conflict]:
        """Items whose annotators rank them differently."""
        with reading(self._engine) as connection:
            yield from store_reading.conflicts(connection)

    def export(self, *, history: bool = False) -> Iterator[tuple[Item, Label]]:
        """Labels with their items, by item, annotator and revision, as they stood when the reading began.

        Args:
            history: every revision and withdrawal; without, only what holds (skips are among it).
        """
        with reading(self._engine) as connection:
            yield from store_reading.export(connection, history=history)

    def backup(self, path: str | Path) -> None:
        """Copy the whole store into a new SQLite file, of one moment, while others write.

        Raises:
            Refusal: where the file is there already, or its folder is not.
            Unavailable: when it cannot be written.
        """
        store_reading.backup(self._engine, Path(path))


def hashed(token: str) -> str:
    """What is kept of a token. It has 192 random bits, so a plain hash cannot be guessed back."""
    return hashlib.sha256(token.encode()).hexdigest()
