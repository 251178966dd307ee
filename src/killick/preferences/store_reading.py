"""What the store tells: progress, conflicts, exports, a copy; each of one moment, and waiting for no writer."""

import os
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby, pairwise
from pathlib import Path
from statistics import median
from typing import Any

from sqlalchemy import Connection, Engine, Select, case, func, insert, select
from sqlalchemy.exc import DBAPIError

from killick.preferences.store_engine import address, connect, told, writing
from killick.preferences.store_items import ITEM
from killick.preferences.store_items import item as item_of
from killick.preferences.store_labels import HOLDS, LABEL, VERSION, label
from killick.preferences.store_records import Annotator, Card, Conflict, Item, Label, Progress, Unavailable
from killick.preferences.store_tables import annotators, cards, items, labels, metadata
from killick.refusal import Refusal

RECENT = 50
"""Labels over which the pace is taken."""


def card(connection: Connection, *, annotator: Annotator, item: int) -> Card | None:
    """One item as this annotator sees it."""
    found = connection.execute(select(*ITEM).where(items.c.id == item)).mappings().one_or_none()
    if found is None:
        return None
    asked = item_of(found)
    return Card(item=asked, order=annotator.order(asked), guidelines=connection.scalar(VERSION) or 0, until=0.0)


def holding() -> Select[Any]:
    """The labels that hold, withdrawn ones left out."""
    return select(*LABEL).join(cards, HOLDS).where(cards.c.live)


def last(connection: Connection, *, annotator: Annotator) -> Label | None:
    """The newest label that holds."""
    mine = holding().where(labels.c.annotator == annotator.id).order_by(labels.c.id.desc()).limit(1)
    found = connection.execute(mine).mappings().first()
    return None if found is None else label(found, annotator.name)


def progress(connection: Connection, *, annotator: Annotator | None) -> Progress:
    """How far one annotator is, or all."""
    held = holding()
    if annotator is not None:
        held = held.where(labels.c.annotator == annotator.id)
    rows = held.subquery()
    skips = func.coalesce(func.sum(case((rows.c.ranking == [], 1), else_=0)), 0)
    done, skipped = connection.execute(select(func.count(), skips).select_from(rows)).one()
    recent = connection.execute(select(rows.c.at, rows.c.seconds).order_by(rows.c.row.desc()).limit(RECENT)).all()
    gaps = [later.at - earlier.at for later, earlier in pairwise(recent)]
    gap = max(median(gaps), 1e-3) if gaps else None
    left = connection.scalar(still_wanted(annotator)) or 0
    return Progress(
        done=done, skipped=skipped, left=left, pace=60 / gap if gap else None,
        median_seconds=median(row.seconds for row in recent) if recent else None,
        seconds_left=left * gap if gap else None,
    )  # fmt: skip


def still_wanted(annotator: Annotator | None) -> Select[Any]:
    """How many labels are wanted: of all, those that overlaps lack; of one annotator, open items not answered yet."""
    is_open = items.c.done < items.c.overlap
    if annotator is None:
        return select(func.sum(items.c.overlap - items.c.done)).where(is_open)
    mine = select(cards.c.item).where(cards.c.item == items.c.id, cards.c.annotator == annotator.id, cards.c.live)
    return select(func.count()).select_from(items).where(is_open, ~mine.exists())


def export(connection: Connection, *, history: bool) -> Iterator[tuple[Item, Label]]:
    """Items and labels, sorted by item, annotator, revision."""
    people = connection.execute(select(annotators.c.id, annotators.c.name))
    names = {row.id: row.name for row in people}
    rows = (select(*LABEL) if history else holding()).join(items, items.c.id == labels.c.item).add_columns(*ITEM)
    with connection.execute(rows.order_by(labels.c.item, labels.c.annotator, labels.c.revision)) as found:
        for row in found.mappings():
            yield item_of(row), label(row, names[row["annotator"]])


def conflicts(connection: Connection) -> Iterator[Conflict]:
    """Items with two rankings or more that are not all the same."""
    for _, rows in groupby(export(connection, history=False), key=lambda row: row[0].id):
        pairs = [row for row in rows if not row[1].judgement.skipped]
        if len({given.judgement.ranking for _, given in pairs}) > 1:
            yield Conflict(item=pairs[0][0], labels=tuple(given for _, given in pairs))


def backup(engine: Engine, path: Path) -> None:
    """Copy the store into a new SQLite file, which is there whole or not at all.

    Raises:
        Refusal: where the file is there already, or its folder is not.
        Unavailable: when it cannot be written.
    """
    if path.exists() or not path.parent.is_dir():
        raise Refusal(f"A backup needs a new file in a folder that is there, and overwrites nothing; given was {path}.")
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        if engine.dialect.name == "sqlite":
            copy_file(engine, part)
        else:
            copy_rows(engine, part)
        with part.open("rb") as written:
            os.fsync(written.fileno())
        os.link(part, path)  # unlike a rename, this never replaces
    except sqlite3.Error as error:
        raise Unavailable(f"{path} could not be written ({error}).") from error
    except DBAPIError as error:
        raise told(error) from error
    except FileExistsError as error:
        raise Refusal(f"{path} appeared meanwhile, and a backup overwrites nothing; name another file.") from error
    finally:
        for rest in (part, Path(f"{part}-wal"), Path(f"{part}-shm")):
            rest.unlink(missing_ok=True)


def copy_file(engine: Engine, part: Path) -> None:
    """SQLite's own online copy: one read transaction, beside which others write on."""
    pooled = engine.raw_connection()
    try:
        source = pooled.driver_connection
        assert isinstance(source, sqlite3.Connection)
        with closing(sqlite3.connect(part)) as target:
            source.backup(target)
    finally:
        pooled.close()


def copy_rows(engine: Engine, part: Path) -> None:
    """Every table of one moment, row by row."""
    target = connect(address(part))
    reading = engine.connect().execution_options(isolation_level="REPEATABLE READ", yield_per=500)
    try:
        with reading, writing(target) as into, into.begin():
            metadata.create_all(into)
            for table in metadata.sorted_tables:
                for rows in reading.execute(select(table)).mappings().partitions():
                    into.execute(insert(table), [dict(row) for row in rows])
    finally:
        target.dispose()
