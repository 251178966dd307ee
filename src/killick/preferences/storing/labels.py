"""Cards out, labels in. Each function runs inside one write transaction, where nobody else writes.

A label is a row of a log and is never changed: an edit and a withdrawal are rows of their own, one revision higher.
Every check comes before the first write, so a refusal leaves the transaction as it was. The statements are built once:
putting them together costs several times what running them does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import BindParameter, Connection, bindparam, func, insert, select, update

from killick.preferences.storing.items import ITEM, either, item
from killick.preferences.storing.records import Annotator, Card, Judgement, Label, Outcome
from killick.preferences.storing.tables import cards, guidelines, items, keys, labels
from killick.refusal import Refusal

Row = Mapping[Any, Any]

NOTHING = Judgement(ranking=(), seconds=0.0)
"""What a withdrawal says."""

LABEL = (labels.c.id.label("row"), *(column for column in labels.c if column.name != "id"))
"""A label's columns, none of which is named like one of an item's."""

HOLDS = (
    (labels.c.item == cards.c.item) & (labels.c.annotator == cards.c.annotator) & (labels.c.revision == cards.c.latest)
)
"""A label is the newest of its annotator and item."""

ME: BindParameter[int] = bindparam("me")
SENT = (
    select(*LABEL, keys.c.action.label("sent"))
    .join(labels, labels.c.id == keys.c.label)
    .where(keys.c.annotator == ME, keys.c.key == bindparam("key"))
)
STATE = (
    select(*ITEM, *LABEL, cards.c.latest, cards.c.live, cards.c.guidelines.label("handed"))
    .outerjoin_from(items, cards, (cards.c.item == items.c.id) & (cards.c.annotator == ME))
    .outerjoin(labels, HOLDS)
    .where(items.c.id == bindparam("what"))
)
ADD_LABEL = insert(labels).returning(labels.c.id)
ADD_KEY = insert(keys)
COUNT = update(items).where(items.c.id == bindparam("what")).values(done=items.c.done + bindparam("change"))
ANSWERED = either(
    cards, lambda adding: adding.on_conflict_do_update(
        index_elements=["item", "annotator"], set_={name: adding.excluded[name] for name in ("latest", "live", "until")}
    )
)  # fmt: skip
HANDED = either(
    cards, lambda adding: adding.on_conflict_do_update(
        index_elements=["item", "annotator"], set_={name: adding.excluded[name] for name in ("until", "guidelines")}
    )
)  # fmt: skip
VERSION = select(func.coalesce(func.max(guidelines.c.version), 0))


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
    me = act.annotator.id
    sent = connection.execute(SENT, {"me": me, "key": act.key}).mappings().first()
    if sent is not None:
        stored = label(sent, act.annotator.name)
        same = (sent["sent"], sent["item"]) == (act.action, act.item) and act.judgement.says(stored.judgement)
        return Outcome("same" if same else "conflict", stored)
    state = connection.execute(STATE, {"me": me, "what": act.item}).mappings().first()
    if state is None:
        raise Refusal(f"There is no item {act.item} in this store.")
    there, named = len(state["candidates"]), sum(map(len, act.judgement.ranking))
    if named not in (0, there):
        raise Refusal(f"Item {act.item} has {there} candidates, and the ranking names {named}.")
    standing = stands(act, state)
    if standing is None:
        return append(connection, act, state=state, until=act.at + reserve)
    if standing.status == "same":
        connection.execute(ADD_KEY, {"annotator": me, "key": act.key, "label": state["row"], "action": act.action})
    return standing


def stands(act: Act, state: Row) -> Outcome | None:
    """The label that is there and stays; None where this act is to be written.

    Raises:
        Refusal: where there is nothing to revise or withdraw.
    """
    stored = None if state["row"] is None else label(state, act.annotator.name)
    if stored is None or not state["live"]:
        if stored is not None and act.action == "withdraw":
            return Outcome("same", stored)
        if act.action != "label":
            raise Refusal(f"{act.annotator.name} has no label of item {act.item} to {act.action}.")
        return None
    if act.action != "withdraw" and act.judgement.says(stored.judgement):
        return Outcome("same", stored)
    return Outcome("conflict", stored) if act.action == "label" else None


def append(connection: Connection, act: Act, *, state: Row, until: float) -> Outcome:
    """Write the row, and keep the card and the item's count in step with it."""
    me, live = act.annotator.id, act.action != "withdraw"
    version = connection.scalar(VERSION) if state["handed"] is None else state["handed"]
    row = {
        "item": act.item, "annotator": me, "revision": 0 if state["latest"] is None else state["latest"] + 1,
        "action": act.action, "ranking": act.judgement.ranking, "order": act.annotator.order(item(state)),
        "seconds": act.judgement.seconds, "strength": act.judgement.strength, "note": act.judgement.note,
        "flags": act.judgement.flags, "guidelines": version, "at": act.at,
    }  # fmt: skip
    number = connection.scalar(ADD_LABEL, row)
    connection.execute(ADD_KEY, {"annotator": me, "key": act.key, "label": number, "action": act.action})
    card = {"item": act.item, "annotator": me, "guidelines": version, "latest": row["revision"], "live": live}
    connection.execute(ANSWERED[connection.dialect.name], {**card, "until": 0.0 if live else until})
    change = bool(act.judgement.ranking) - bool(state["live"] and state["ranking"])
    if change:
        connection.execute(COUNT, {"what": act.item, "change": change})
    return Outcome("new", label(row, act.annotator.name))


def label(row: Row, name: str) -> Label:
    """Columns as a label."""
    judgement = Judgement(
        ranking=tuple(tuple(group) for group in row["ranking"]), seconds=row["seconds"], strength=row["strength"],
        note=row["note"], flags=tuple(row["flags"]),
    )  # fmt: skip
    return Label(
        item=row["item"], annotator=name, revision=row["revision"], action=row["action"], judgement=judgement,
        order=tuple(row["order"]), guidelines=row["guidelines"], at=row["at"],
    )  # fmt: skip


NOW: BindParameter[float] = bindparam("now")
UNANSWERED = (cards.c.annotator == ME) & ~cards.c.live
HELD = (
    select(*ITEM)
    .join(cards, cards.c.item == items.c.id)
    .where(UNANSWERED, cards.c.until > NOW)
    .order_by(cards.c.until.desc(), items.c.id)
    .limit(1)
)
LATEST = select(func.max(cards.c.item)).where(cards.c.annotator == ME, cards.c.live)
MINE = select(cards.c.item).where(cards.c.item == items.c.id, cards.c.annotator == ME, cards.c.live).exists()
OTHERS = (
    select(func.count())
    .select_from(cards)
    .where(cards.c.item == items.c.id, cards.c.annotator != ME, ~cards.c.live, cards.c.until > NOW)
    .scalar_subquery()
)
WANTED = (
    select(*ITEM)
    .where(items.c.done < items.c.overlap, ~MINE, items.c.done + OTHERS < items.c.overlap)
    .where(items.c.id > bindparam("after"))
    .order_by(items.c.id)
    .limit(1)
)


def hand_out(connection: Connection, *, annotator: Annotator, now: float, reserve: float) -> Card | None:
    """The card that this annotator has, or the next one that is wanted, reserved for a while.

    A new one is the first open item that nobody else fills: behind the annotator's last one, which is quick to find,
    and only then from the start.
    """
    mine = {"me": annotator.id, "now": now}
    found = connection.execute(HELD, mine).mappings().first()
    if found is None:
        latest = connection.scalar(LATEST, mine) or 0
        found = connection.execute(WANTED, {**mine, "after": latest}).mappings().first()
        if found is None and latest:
            found = connection.execute(WANTED, {**mine, "after": 0}).mappings().first()
    if found is None:
        return None
    asked, version, until = item(found), connection.scalar(VERSION) or 0, now + reserve
    card = {"item": asked.id, "annotator": annotator.id, "guidelines": version, "latest": -1, "live": False}
    connection.execute(HANDED[connection.dialect.name], {**card, "until": until})
    return Card(item=asked, order=annotator.order(asked), guidelines=version, until=until)
