"""Bring a database to the format of this release, once, whoever opens it first.

Runs inside a transaction of the caller that no other opener can be in at the same time; that a database of a newer
release is refused is decided here, too. What migrates is imported only when there is something to migrate.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, String, Table, inspect, select

from situ.catalogue import REGISTRY_NEWER
from situ.errors import SituError

FORMATS = ("0001", "0002", "0003", "0004", "0005")
"""The migrations there are, oldest first; the last one makes the tables of this release."""

_VERSION = Table("registry_format", MetaData(), Column("version_num", String(32)))


def is_current(connection: Connection, place: str) -> bool:
    """Whether the database has the format of this release; :class:`SituError` with D106 if it has a newer one."""
    found = format_of(connection)
    if found is not None and found not in FORMATS:
        raise SituError(REGISTRY_NEWER(place=place, found=found, known=FORMATS[-1]))
    return found == FORMATS[-1]


def format_of(connection: Connection) -> str | None:
    """The format of the database; None if it has no tables of ours yet."""
    if not inspect(connection).has_table(_VERSION.name):
        return None
    return connection.execute(select(_VERSION.c.version_num)).scalar_one_or_none()


def upgrade(connection: Connection, to: str = FORMATS[-1]) -> None:
    """Run the migrations that the database lacks."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    # A path may hold a `%`, which the configuration would take for a reference.
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    config.attributes["version_table"] = _VERSION.name
    command.upgrade(config, to)
