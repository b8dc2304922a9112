"""The tables of the registry, as this release knows them. How a database comes to have them: :mod:`migrations`.

Rows are only ever added, but for one thing: what a deployment holds is kept as spans of versions, and a span that ends
gets its end; so does the key of a principal. So a change costs as many rows as things change, however much is declared.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Dialect,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

METADATA = MetaData()


class Instant(TypeDecorator[datetime]):
    """A time with its zone, also from SQLite, which keeps none: everything stored is UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC)


OBJECT = Table(
    "object",
    METADATA,
    Column("kind", String(32), primary_key=True),
    Column("name", String(512), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("body", Text, nullable=False),  # canonical JSON; empty in a version that says it was removed
    Column("text", Text, nullable=False),  # as somebody wrote it, empty if nobody did
    Column("file", Text, nullable=False),
    Column("origin", String(16), nullable=False),
    Column("state", String(16), nullable=False),
)

DEPLOYMENT = Table(
    "deployment",
    METADATA,
    # The primary key is what makes two writers of the same next version impossible.
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("digest", String(64), nullable=False),
    Column("at", Instant, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("root_version", Integer, nullable=False),
)

DEPLOYMENT_OBJECT = Table(
    "deployment_object",
    METADATA,
    Column("kind", String(32), primary_key=True),
    Column("name", String(512), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("first", Integer, nullable=False),  # the first deployment that holds this version of the object
    Column("ended", Integer, nullable=True),  # the first that no longer does; none while it is in force
    ForeignKeyConstraint(["kind", "name", "version"], ["object.kind", "object.name", "object.version"]),
    ForeignKeyConstraint(["first"], ["deployment.version"]),
    Index("deployment_object_first", "first"),
    Index("deployment_object_ended", "ended"),
)

CHANGE = Table(
    "change",
    METADATA,
    # Plain INTEGER is what SQLite numbers by itself.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("at", Instant, nullable=False),
    Column("who", Text, nullable=False),
    Column("deployment", Integer, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("name", String(512), nullable=False),
    Column("from_version", Integer, nullable=True),
    Column("to_version", Integer, nullable=True),
    Column("reason", Text, nullable=False),
    ForeignKeyConstraint(["deployment"], ["deployment.version"]),
    Index("change_deployment", "deployment"),
    Index("change_object", "kind", "name"),
)

NUMBER = Table(
    "number",
    METADATA,
    Column("space", String(32), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("text", Text, nullable=False),  # each once, which the only writer of the next version sees to
)

STATE = Table(
    "state",
    METADATA,
    Column("part", String(64), primary_key=True),
    Column("key", String(512), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("value", Text, nullable=False),
)

PRINCIPAL = Table(
    "principal",
    METADATA,
    Column("name", String(64), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),  # counts the keys of one name
    Column("key", String(64), nullable=False),  # the public half
    Column("rights", String(32), nullable=False),
    Column("at", Instant, nullable=False),
    Column("who", Text, nullable=False),
    Column("ended", Instant, nullable=True),  # none while the key opens something
    Column("ended_by", Text, nullable=True),
    UniqueConstraint("key", name="principal_key"),
)
