"""The database of a registry: its tables, the migrations to their format, and connections to SQLite or PostgreSQL.

What rows mean is in :mod:`situ.registry.store`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    DateTime,
    Dialect,
    Engine,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    create_engine,
    event,
    inspect,
    make_url,
    select,
    text,
)
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, NoSuchModuleError, ProgrammingError

from situ.bus.folder_lock import private_folder
from situ.lang.catalogue import REGISTRY_BUSY, REGISTRY_NEWER, REGISTRY_UNREACHABLE
from situ.lang.problems import SituError
from situ.registry.lookup import FILE, FORMATS, PATIENCE

if TYPE_CHECKING:
    from situ.settings import Settings

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Tables, as this release knows them; :mod:`situ.registry.migrations` makes them.
#
# Rows of objects, deployments and principals are only ever added, but for one thing: what a deployment holds is kept as
# spans of versions, and a span that ends gets its end; so does the key of a principal. So a change costs as many rows
# as things change, however much is declared. Rows of ``state`` are replaced.

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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Formats: whoever opens a database first brings it to that of this release.
#
# Runs inside a transaction of the caller that no other opener can be in at the same time. A database of a newer release
# is refused. Alembic is imported only when there is something to migrate.

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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Connections: SQLite in the project's own folder, or PostgreSQL. One writer at a time.
#
# Owns transactions, waiting for other writers, and what a database that does not answer is called.

_WRITES = "situ_writes"
_LOCK = 0x5349_5455  # any number will do, as long as every writer takes the same
_BUSY_STATES = ("55P03", "57014", "40P01", "40001")  # lock not available, cancelled, deadlock, serialisation


class Database:
    """An open database of this release's format."""

    def __init__(self, engine: Engine, place: str, patience: float) -> None:
        self._engine = engine
        self._place = place
        self._patience = patience

    @property
    def place(self) -> str:
        """Where it is, for people: without the password."""
        return self._place

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the database."""
        with self._explained(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that no other writer is in; committed at the end, or nothing of it stays."""
        with self._explained(), self._engine.connect() as connection:
            connection = connection.execution_options(**{_WRITES: True})
            with connection.begin():
                # On SQLite `BEGIN IMMEDIATE` keeps other writers out, here a lock that ends with the transaction.
                if connection.dialect.name == "postgresql":
                    connection.execute(text(f"SET LOCAL lock_timeout = {int(self._patience * 1000)}"))
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
                yield connection

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        with explained(self._place, self._patience):
            yield


def open_database(folder: Path, settings: Settings, patience: float = PATIENCE) -> Database:
    """The database that ``registry:`` in situ.yaml names."""
    address = settings.registry.value
    if address == "embedded":
        return open_sqlite(folder / FILE, patience=patience)
    return open_postgresql(address, patience=patience)


def ask_database(folder: Path, settings: Settings, question: str, patience: float) -> list[tuple[str, ...]]:
    """The rows that answer a question in SQL."""
    database = open_database(folder, settings, patience)
    try:
        with database.reading() as connection:
            return [tuple(row) for row in connection.execute(text(question))]
    finally:
        database.close()


def open_sqlite(file: Path, *, patience: float = PATIENCE) -> Database:
    """The database in this file, which is made if need be."""
    place = str(file)
    try:
        private_folder(file.parent)
        file.touch(mode=0o600)  # what SQLite keeps beside it gets the same rights
    except OSError as error:
        raise _unreachable(place, error.strerror or str(error), _RIGHTS) from None
    engine = create_engine(f"sqlite:///{file}", connect_args={"timeout": patience})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        # The driver must not open transactions by itself: whether one writes is said when it begins.
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    database = Database(engine, place, patience)
    return _opened(database, lambda: _use_wal(engine, patience))


def open_postgresql(url: str, *, patience: float = PATIENCE) -> Database:
    """The database at this URL, ``postgresql+psycopg://…``."""
    try:
        parsed = make_url(url)
        place = parsed.render_as_string(hide_password=True)
        options = {"connect_timeout": max(2, round(patience))}
        engine = create_engine(parsed, pool_pre_ping=True, connect_args=options)
    except (ArgumentError, NoSuchModuleError, ValueError):
        remedy = "Write `postgresql+psycopg://user@host/database`."
        raise _unreachable("registry", "its address is none", remedy) from None
    except ModuleNotFoundError:
        remedy = 'Install the driver: `pip install "situ[postgresql]"`.'
        raise _unreachable(place, "the driver for PostgreSQL is not installed", remedy) from None
    return _opened(Database(engine, place, patience), lambda: None)


def _opened(database: Database, prepare: Any) -> Database:
    try:
        with explained(database.place, database._patience):
            prepare()
        with database.reading() as connection:
            current = is_current(connection, database.place)
        if not current:
            with database.writing() as connection:
                if not is_current(connection, database.place):  # another opener may have been faster
                    upgrade(connection)
    except BaseException:
        database.close()
        raise
    return database


def _use_wal(engine: Engine, patience: float) -> None:
    """Readers must not wait for the writer. To get there SQLite wants to be alone, and does not wait for it."""
    deadline = time.monotonic() + patience
    connection = engine.raw_connection()
    try:
        while True:
            try:
                connection.cursor().execute("PRAGMA journal_mode = WAL")
                return
            except engine.dialect.loaded_dbapi.DatabaseError as error:
                if "locked" not in str(error) or time.monotonic() >= deadline:
                    raise DBAPIError.instance("PRAGMA", None, error, engine.dialect.loaded_dbapi.Error) from error
                time.sleep(0.02)
    finally:
        connection.close()


# ── what a database that does not answer is called ────────────────────────────────────────────────

_RIGHTS = "Look at the rights of the folder, and at the room on the disk."
_REMEDIES = {
    "unable to open": _RIGHTS,
    "readonly": _RIGHTS,
    "read-only": _RIGHTS,
    "full": "Make room on the disk, then try again.",
    "not a database": "Put a back-up of the file in its place, or move it away and run `situ apply`.",
    "malformed": "Put a back-up of the file in its place, or move it away and run `situ apply`.",
    "password": "Look at user and password in `registry:` of situ.yaml, or at the variables they come from.",
    "role": "Look at the user in `registry:` of situ.yaml.",
    "does not exist": "Look at the name of the database in `registry:` of situ.yaml, or make it with `createdb`.",
}
_OTHERWISE = "Is the server running, and does `registry:` in situ.yaml name it?"


@contextmanager
def explained(place: str, patience: float) -> Iterator[None]:
    """What the database complains about, as problems with a remedy."""
    try:
        yield
    except (IntegrityError, ProgrammingError, DataError):
        raise  # a mistake of ours, not of the database
    except DBAPIError as error:
        reason = _first_line(error.orig)
        busy = "locked" in reason or getattr(error.orig, "sqlstate", None) in _BUSY_STATES
        if busy:
            raise SituError(REGISTRY_BUSY(place=place, seconds=f"{patience:g}")) from error
        remedy = next((text for sign, text in _REMEDIES.items() if sign in reason.lower()), _OTHERWISE)
        raise _unreachable(place, reason, remedy) from error


def _first_line(error: BaseException | None) -> str:
    lines = str(error).strip().splitlines() or ["no reason is given"]
    return lines[0].rstrip(".")


def _unreachable(place: str, reason: str, remedy: str) -> SituError:
    return SituError(REGISTRY_UNREACHABLE(place=place, reason=reason, remedy=remedy))
