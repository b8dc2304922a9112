"""Bring a database to the format of this release, once, whoever opens it first.

Runs inside a transaction of the caller that no other opener can be in at the same time; that a database of a newer
release is refused is decided here, too.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from situ.catalogue import REGISTRY_NEWER
from situ.errors import SituError

VERSION_TABLE = "registry_format"


def is_current(connection: Connection, place: str) -> bool:
    """Whether the database has the format of this release; :class:`SituError` with D106 if it has a newer one."""
    script = ScriptDirectory.from_config(_config())
    found = _format_of(connection)
    if found is not None and found not in {revision.revision for revision in script.walk_revisions()}:
        newest = script.get_current_head() or ""
        raise SituError(REGISTRY_NEWER(place=place, found=found, known=newest))
    return found == script.get_current_head()


def upgrade(connection: Connection, to: str = "head") -> None:
    """Run the migrations that the database lacks."""
    config = _config()
    config.attributes["connection"] = connection
    config.attributes["version_table"] = VERSION_TABLE
    command.upgrade(config, to)


def _format_of(connection: Connection) -> str | None:
    return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()


def _config() -> Config:
    config = Config()
    # A path may hold a `%`, which the configuration would take for a reference.
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
