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

from sqlalchemy import Connection, Engine, Select, func, insert, select
from sqlalchemy.exc import DBAPIError

from killick.preferences.storing.engine import address, connect, reading, told, writing
from killick.preferences.storing.items import ITEM
from killick.preferences.storing.items import item as item_of
from killick.preferences.storing.labels import HOLDS, LABEL, VERSION, label
from killick.preferences.storing.records import Annotator, Card, Conflict, Item, Label, Progress, Unavailable
from killick.preferences.storing.tables import annotators, cards, items, labels, metadata
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
    """The labels that hold, withdrawn ones left out. (A join would let SQLite begin at the cards and sort them all.)"""
    return select(*LABEL).where(select(cards.c.item).where(HOLDS, cards.c.live).exists())


def last(connection: Connection, *, annotator: Annotator) -> Label | None:
    """The newest label that holds."""
    mine = holding().where(labels.c.annotator == annotator.id).order_by(labels.c.id.desc()).limit(1)
    found = connection.execute(mine).mappings().first()
    return None if found is None else label(found, annotator.name)


def progress(connection: Connection, *, annotator: Annotator | None) -> Progress:
    """How far one annotator is, or all."""
    held, live = holding(), select(func.count()).select_from(cards).where(cards.c.live)
    if annotator is not None:
        held = held.where(labels.c.annotator == annotator.id)
        live = live.where(cards.c.annotator == annotator.id)
    done = connection.scalar(live) or 0
    skips = held.where(labels.c.ranking == []).subquery()
    skipped = connection.scalar(select(func.count()).select_from(skips)) or 0
    recent = connection.execute(
        held.with_only_columns(labels.c.at, labels.c.seconds).order_by(labels.c.id.desc()).limit(RECENT)
    ).all()
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


def export(connection: Connection, *, history: bool, only: Select[Any] | None = None) -> Iterator[tuple[Item, Label]]:
    """Items and labels, sorted by item, annotator, revision; `only` selects the numbers of some items."""
    people = connection.execute(select(annotators.c.id, annotators.c.name))
    names = {row.id: row.name for row in people}
    rows = (select(*LABEL) if history else holding()).join(items, items.c.id == labels.c.item).add_columns(*ITEM)
    if only is not None:
        rows = rows.where(labels.c.item.in_(only))
    with connection.execute(rows.order_by(labels.c.item, labels.c.annotator, labels.c.revision)) as found:
        for row in found.mappings():
            yield item_of(row), label(row, names[row["annotator"]])


def conflicts(connection: Connection) -> Iterator[Conflict]:
    """Items with two rankings or more that are not all the same."""
    ranked = holding().where(labels.c.ranking != []).with_only_columns(labels.c.item).group_by(labels.c.item)
    differing = ranked.having(func.count(labels.c.ranking.distinct()) > 1)  # one meaning has one spelling
    for _, rows in groupby(export(connection, history=False, only=differing), key=lambda row: row[0].id):
        pairs = [row for row in rows if not row[1].judgement.skipped]
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
    try:
        with reading(engine) as source, writing(target) as into, into.begin():
            metadata.create_all(into)
            for table in metadata.sorted_tables:
                for rows in source.execute(select(table)).mappings().partitions():
                    into.execute(insert(table), [dict(row) for row in rows])
    finally:
        target.dispose()
