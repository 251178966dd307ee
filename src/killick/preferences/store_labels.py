"""Cards out, labels in. Each function runs inside one write transaction, where nobody else writes.

A label is a row of a log and is never changed: an edit and a withdrawal are rows of their own, one revision higher.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Select, func, insert, select, update

from killick.preferences.store_items import inserting, item
from killick.preferences.store_records import Annotator, Card, Item, Judgement, Label, Outcome
from killick.preferences.store_tables import annotators, cards, guidelines, items, keys, labels
from killick.types import Refusal

NOTHING = Judgement(ranking=(), seconds=0.0)
"""What a withdrawal says."""


@dataclass(frozen=True)
class Act:
    """One thing that an annotator does to an item; `key` names this very act, however often it is sent."""

    annotator: Annotator
    item: int
    action: Literal["label", "revise", "withdraw"]
    judgement: Judgement
    key: str
    at: float


def perform(connection: Connection, *, act: Act, reserve: float) -> Outcome:
    """Store what an annotator says, once.

    Args:
        connection: in a write transaction.
        act: what is done.
        reserve: seconds that a withdrawn item stays with its annotator.

    Raises:
        Refusal: an unknown item, a ranking of another number of candidates, or nothing there to revise or withdraw.
    """
    if (sent := by_key(connection, act)) is not None:
        return sent
    found = connection.execute(select(items).where(items.c.id == act.item)).mappings().one_or_none()
    if found is None:
        raise Refusal(f"There is no item {act.item} in this store.")
    asked = item(found)
    named = sum(map(len, act.judgement.ranking))
    if named not in (0, len(asked.candidates)):
        raise Refusal(f"Item {act.item} has {len(asked.candidates)} candidates, and the ranking names {named}.")
    mine = (cards.c.item == act.item) & (cards.c.annotator == act.annotator.id)
    card = connection.execute(select(cards).where(mine)).mappings().one_or_none()
    latest = None if card is None else row_of(connection, act, revision=card["latest"])
    live = latest is not None and card is not None and card["live"]
    if (stored := already(act, latest, live=live)) is not None:
        if stored.status == "same" and latest is not None:
            remember(connection, act, row=latest["id"])
        return stored
    return write(connection, act, asked=asked, card=card, latest=latest if live else None, until=act.at + reserve)


def already(act: Act, latest: Mapping[Any, Any] | None, *, live: bool) -> Outcome | None:
    """What is there and stays; None where the act is to be written."""
    if latest is None or not live:
        if act.action == "withdraw" and latest is not None:
            return Outcome("same", label(latest, act.annotator.name))
        if act.action != "label":
            raise Refusal(f"{act.annotator.name} has no label of item {act.item} to {act.action}.")
        return None
    stored = label(latest, act.annotator.name)
    if act.action != "withdraw" and act.judgement.says(stored.judgement):
        return Outcome("same", stored)
    return Outcome("conflict", stored) if act.action == "label" else None


def write(
    connection: Connection,
    act: Act,
    *,
    asked: Item,
    card: Mapping[Any, Any] | None,
    latest: Mapping[Any, Any] | None,
    until: float,
) -> Outcome:
    """Append the row, and keep the card and the item's count in step with it."""
    shown = act.annotator.order(asked)
    version = current_guidelines(connection) if card is None else card["guidelines"]
    row = {
        "item": act.item, "annotator": act.annotator.id, "revision": 0 if card is None else card["latest"] + 1,
        "action": act.action, "ranking": [list(group) for group in act.judgement.ranking], "order": list(shown),
        "seconds": act.judgement.seconds, "strength": act.judgement.strength, "note": act.judgement.note,
        "flags": list(act.judgement.flags), "guidelines": version, "at": act.at,
    }  # fmt: skip
    number = connection.scalar(insert(labels).values(row).returning(labels.c.id))
    remember(connection, act, row=number)
    live = act.action != "withdraw"
    state = {"latest": row["revision"], "live": live, "until": 0.0 if live else until}
    names = {"item": act.item, "annotator": act.annotator.id, "guidelines": version}
    placing = inserting(connection, cards).values(**names, **state)
    connection.execute(placing.on_conflict_do_update(index_elements=["item", "annotator"], set_=state))
    change = bool(act.judgement.ranking) - bool(latest is not None and latest["ranking"])
    if change:
        connection.execute(update(items).where(items.c.id == act.item).values(done=items.c.done + change))
    return Outcome("new", label(row, act.annotator.name))


def by_key(connection: Connection, act: Act) -> Outcome | None:
    """What an earlier call with this key stored."""
    mine = (keys.c.annotator == act.annotator.id) & (keys.c.key == act.key)
    sent = connection.execute(select(keys.c.action, labels).join(labels).where(mine)).mappings().one_or_none()
    if sent is None:
        return None
    stored = label(row := {**sent, "action": sent[labels.c.action]}, act.annotator.name)
    same = sent[keys.c.action] == act.action and row["item"] == act.item and act.judgement.says(stored.judgement)
    return Outcome("same" if same else "conflict", stored)


def remember(connection: Connection, act: Act, *, row: Any) -> None:
    """This key has its answer."""
    connection.execute(insert(keys).values(annotator=act.annotator.id, key=act.key, label=row, action=act.action))


def row_of(connection: Connection, act: Act, *, revision: int) -> Mapping[Any, Any] | None:
    """The label of a revision."""
    mine = (labels.c.item == act.item) & (labels.c.annotator == act.annotator.id) & (labels.c.revision == revision)
    return connection.execute(select(labels).where(mine)).mappings().one_or_none()


def label(row: Any, name: str) -> Label:
    """Columns as a label."""
    judgement = Judgement(
        ranking=tuple(tuple(group) for group in row["ranking"]), seconds=row["seconds"], strength=row["strength"],
        note=row["note"], flags=tuple(row["flags"]),
    )  # fmt: skip
    return Label(
        item=row["item"], annotator=name, revision=row["revision"], action=row["action"], judgement=judgement,
        order=tuple(row["order"]), guidelines=row["guidelines"], at=row["at"],
    )  # fmt: skip


def current_guidelines(connection: Connection) -> int:
    """The version in force; 0 before there are any."""
    return connection.scalar(select(func.max(guidelines.c.version))) or 0


def hand_out(connection: Connection, *, annotator: Annotator, now: float, reserve: float) -> Card | None:
    """The card that this annotator has, or the next one that is wanted, reserved for a while."""
    held = (
        select(items).join(cards)
        .where(cards.c.annotator == annotator.id, ~cards.c.live, cards.c.until > now)
        .order_by(cards.c.until.desc(), cards.c.item).limit(1)
    )  # fmt: skip
    found = connection.execute(held).mappings().first()
    for choice in () if found else wanted(connection, annotator, now=now):
        found = connection.execute(choice).mappings().first()
        if found:
            break
    if found is None:
        return None
    asked = item(found)
    version = current_guidelines(connection)
    state = {"until": now + reserve, "guidelines": version}
    names = {"item": found["id"], "annotator": annotator.id, "latest": -1, "live": False}
    placing = inserting(connection, cards).values(**names, **state)
    connection.execute(placing.on_conflict_do_update(index_elements=["item", "annotator"], set_=state))
    return Card(item=asked, order=annotator.order(asked), guidelines=version, until=now + reserve)


def wanted(connection: Connection, annotator: Annotator, *, now: float) -> Iterator[Select[Any]]:
    """The first open item that nobody else fills: behind the annotator's last one, and only then from the start."""
    mine = select(cards.c.item).where(cards.c.item == items.c.id, cards.c.annotator == annotator.id, cards.c.live)
    others = (
        select(func.count()).select_from(cards)
        .where(cards.c.item == items.c.id, cards.c.annotator != annotator.id, ~cards.c.live, cards.c.until > now)
        .scalar_subquery()
    )  # fmt: skip
    still = (items.c.done < items.c.overlap) & (items.c.done + others < items.c.overlap) & ~mine.exists()
    latest = select(func.max(cards.c.item)).where(cards.c.annotator == annotator.id, cards.c.live)
    for start in (connection.scalar(latest) or 0, 0):
        yield select(items).where(items.c.id > start, still).order_by(items.c.id).limit(1)


def who(connection: Connection) -> dict[int, str]:
    """Names by number."""
    return {row.id: row.name for row in connection.execute(select(annotators.c.id, annotators.c.name))}
