"""Items into the store: all of an import or nothing of it, in transactions short enough to label beside."""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Table, delete, func, insert, literal, select, update
from sqlalchemy.dialects import postgresql, sqlite

from killick.preferences.storing.records import Imported, Item, Unavailable
from killick.preferences.storing.tables import guidelines, items, staged
from killick.preferences.storing.writer import Writer

CHUNK = 500
"""Items in one transaction of the staging (O-51)."""

ABANDONED = 86_400
"""Seconds after which a staged row belongs to an import that died."""

UNSAID = 0
"""Overlap of a staged item where neither it nor its import gives one."""

COLUMNS = ("kind", "prompt", "candidates", "sources", "scores", "metadata", "overlap")


ITEM = (items.c.id, *(items.c[name] for name in COLUMNS))
"""What an item is read from."""


def either(table: Table, settle: Callable[[Any], Any]) -> dict[str, Any]:
    """By dialect, an insert that says what happens when the row is there: both have it, each under its own name."""
    return {"sqlite": settle(sqlite.insert(table)), "postgresql": settle(postgresql.insert(table))}


STAGE = either(staged, lambda adding: adding.on_conflict_do_nothing())


def stage(writer: Writer, given: Iterable[Item], *, overlap: int | None, now: Callable[[], float]) -> Imported:
    """Put items into the staging table chunk by chunk, then all of them among the items at once."""
    batch, place = uuid.uuid4().hex, 0
    try:
        for chunk in chunks(given):
            rows = [row(item, overlap=overlap) for item in chunk]
            rows = [{"batch": batch, "place": place + n, "at": now(), **one} for n, one in enumerate(rows)]
            writer(partial(put, rows=rows))
            place += len(rows)
        return writer(partial(publish, batch=batch, now=now()))
    except BaseException:
        with suppress(Unavailable):  # a later import sweeps it up
            writer(partial(forget, batch=batch))
        raise


def chunks(given: Iterable[Item]) -> Iterator[list[Item]]:
    """Runs of at most CHUNK."""
    rest = iter(given)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk


def row(item: Item, *, overlap: int | None) -> dict[str, Any]:
    """An item as columns; an overlap that nobody gives is `UNSAID` until it is published."""
    return {
        "digest": item.digest,
        "kind": item.kind,
        "prompt": item.prompt,
        "candidates": item.candidates,
        "sources": item.sources,
        "scores": item.scores,
        "metadata": dict(item.metadata),
        "overlap": item.overlap or overlap or UNSAID,
    }


def item(row: Mapping[Any, Any]) -> Item:
    """Columns as an item."""
    return Item(
        prompt=row["prompt"], candidates=tuple(row["candidates"]), kind=row["kind"], sources=tuple(row["sources"]),
        scores=tuple(row["scores"]), metadata=row["metadata"], overlap=row["overlap"], id=row["id"],
    )  # fmt: skip


def put(connection: Connection, *, rows: list[dict[str, Any]]) -> None:
    """Stage one chunk; an item that occurs twice in an import is one."""
    connection.execute(STAGE[connection.dialect.name], rows)


def publish(connection: Connection, *, batch: str, now: float) -> Imported:
    """All staged items of an import become items; one that is there keeps its number and takes the overlap given.

    Where none is given, it keeps its overlap too, and a new one gets 1.
    """
    mine = staged.c.batch == batch
    held = select(items.c.overlap).where(items.c.digest == staged.c.digest).scalar_subquery()
    unsaid = update(staged).where(mine, staged.c.overlap == UNSAID)
    connection.execute(unsaid.values(overlap=func.coalesce(held, 1)))
    total = connection.scalar(select(func.count()).where(mine)) or 0
    known = connection.scalar(select(func.count()).where(mine, staged.c.digest == items.c.digest)) or 0
    names = ["digest", *COLUMNS]
    chosen = select(*(staged.c[name] for name in names), literal(now)).where(mine).order_by(staged.c.place)
    new_overlap = either(items, lambda adding: taking(adding.from_select([*names, "at"], chosen)))
    connection.execute(new_overlap[connection.dialect.name])
    forget(connection, batch=batch)
    last = select(staged.c.batch).group_by(staged.c.batch).having(func.max(staged.c.at) < now - ABANDONED)
    connection.execute(delete(staged).where(staged.c.batch.in_(last)))
    return Imported(new=total - known, known=known)


def taking(adding: Any) -> Any:
    """What is there takes the overlap of what is added."""
    return adding.on_conflict_do_update(index_elements=["digest"], set_={"overlap": adding.excluded.overlap})


def forget(connection: Connection, *, batch: str) -> None:
    """Clear what an import staged."""
    connection.execute(delete(staged).where(staged.c.batch == batch))


def set_guidelines(connection: Connection, *, text: str, at: float) -> int:
    """Version of these guidelines, a new one if the text is another than that in force."""
    held = connection.execute(select(guidelines).order_by(guidelines.c.version.desc()).limit(1)).first()
    if held is not None and held.text == text:
        return held.version
    version = 1 if held is None else held.version + 1
    connection.execute(insert(guidelines).values(version=version, text=text, at=at))
    return version
