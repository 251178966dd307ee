"""The store's tables, the same in SQLite and PostgreSQL, and the steps from one schema version to the next."""

import json
from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    insert,
    inspect,
    select,
    text,
    update,
)  # fmt: skip

from killick.preferences.storing.records import dumps
from killick.refusal import Refusal

VERSION = 2
"""Of the schema below. A change of a table raises it and adds a step to UPGRADES."""


class Json(TypeDecorator[Any]):
    """JSON as text, in ASCII."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:  # noqa: ARG002
        """From Python to the column."""
        return dumps(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002
        """From the column to Python."""
        return None if value is None else json.loads(value)


metadata = MetaData()

about = Table("about", metadata, Column("name", String, primary_key=True), Column("value", String, nullable=False))

guidelines = Table(
    "guidelines",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("text", Json, nullable=False),
    Column("at", Float, nullable=False),
)

annotators = Table(
    "annotators",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("token", String, nullable=False, unique=True),  # its SHA-256; the token itself is never written
    Column("seed", String, nullable=False),
    Column("at", Float, nullable=False),
)


def content() -> list[Column[Any]]:
    """The columns that an item and a staged item share."""
    plain = [Column(name, Json, nullable=False) for name in ("prompt", "candidates", "sources", "scores", "metadata")]
    return [Column("kind", String, nullable=False), *plain, Column("overlap", Integer, nullable=False)]


items = Table(
    "items",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("digest", String, nullable=False, unique=True),
    *content(),
    Column("done", Integer, nullable=False, server_default="0"),  # preferences that hold: kept with every label
    Column("at", Float, nullable=False),
    CheckConstraint("overlap >= 1", name="overlap_is_positive"),
    CheckConstraint("done >= 0", name="done_is_a_count"),
)
Index(
    "items_open", items.c.id, sqlite_where=items.c.done < items.c.overlap,
    postgresql_where=items.c.done < items.c.overlap,
)  # fmt: skip
# What is still wanted, so that finding a card does not walk over what is done.

staged = Table(
    "staged",
    metadata,
    Column("batch", String, primary_key=True),
    Column("digest", String, primary_key=True),
    Column("place", Integer, nullable=False),
    *content(),
    Column("at", Float, nullable=False),
)

cards = Table(
    "cards",
    metadata,
    Column("item", ForeignKey("items.id"), primary_key=True),
    Column("annotator", ForeignKey("annotators.id"), primary_key=True),
    Column("until", Float, nullable=False),  # the end of the reservation
    Column("guidelines", Integer, nullable=False),
    Column("latest", Integer, nullable=False),  # revision of the last label; -1 before there is one
    Column("live", Boolean, nullable=False),  # whether a label holds, a skip included
    Index("cards_of_annotator", "annotator", "live", "item"),
)

labels = Table(
    "labels",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("item", ForeignKey("items.id"), nullable=False),
    Column("annotator", ForeignKey("annotators.id"), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("action", String, nullable=False),
    Column("ranking", Json, nullable=False),
    Column("order", Json, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("strength", Integer),
    Column("note", Json, nullable=False),
    Column("flags", Json, nullable=False),
    Column("guidelines", Integer, nullable=False),
    Column("at", Float, nullable=False),
    UniqueConstraint("item", "annotator", "revision", name="one_label_a_revision"),
    CheckConstraint("action IN ('label', 'revise', 'withdraw')", name="known_action"),
    Index("labels_of_annotator", "annotator", "id"),
)

keys = Table(
    "keys",
    metadata,
    Column("annotator", ForeignKey("annotators.id"), primary_key=True),
    Column("key", String, primary_key=True),
    Column("label", ForeignKey("labels.id"), nullable=False),
    Column("action", String, nullable=False),
)


def prepare(connection: Connection) -> None:
    """Make the tables, or bring an older store up to date, inside the caller's write transaction.

    Raises:
        Refusal: at a newer schema, and at a database that is not a store.
    """
    there = set(inspect(connection).get_table_names())
    if not there:
        metadata.create_all(connection)
        connection.execute(insert(about).values(name="schema", value=str(VERSION)))
        return
    found = None
    if {"about", "items", "labels"} <= there:
        found = connection.scalar(select(about.c.value).where(about.c.name == "schema"))
    if found is None:
        raise Refusal("This database holds other tables and is no label store; name a new file or an empty database.")
    if int(found) > VERSION:
        raise Refusal(f"This store has schema {found}, and this killick knows up to {VERSION}; upgrade killick.")
    for version in range(int(found), VERSION):
        UPGRADES[version](connection)
        connection.execute(update(about).where(about.c.name == "schema").values(value=str(version + 1)))


def count_done(connection: Connection) -> None:
    """From 1 to 2: each item keeps the number of its preferences, and what is open has an index."""
    for statement in (
        "ALTER TABLE items ADD COLUMN done INTEGER DEFAULT 0 NOT NULL CONSTRAINT done_is_a_count CHECK (done >= 0)",
        "UPDATE items SET done = (SELECT count(*) FROM cards JOIN labels ON labels.item = cards.item"
        " AND labels.annotator = cards.annotator AND labels.revision = cards.latest"
        " WHERE cards.item = items.id AND cards.live AND labels.ranking <> '[]')",
        "CREATE INDEX items_open ON items (id) WHERE done < overlap",
    ):
        connection.execute(text(statement))


UPGRADES: dict[int, Callable[[Connection], None]] = {1: count_done}
"""From this version to the next."""
