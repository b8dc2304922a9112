"""The database behind a registry: SQLite in the project's own folder, or PostgreSQL. One writer at a time.

Owns connections, transactions, waiting for other writers, and what a database that does not answer is called. Knows
nothing of what is stored.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, NoSuchModuleError, ProgrammingError

from situ.bus.folder_lock import private_folder
from situ.catalogue import REGISTRY_BUSY, REGISTRY_UNREACHABLE
from situ.errors import SituError
from situ.registry.upgrade import is_current, upgrade

PATIENCE = 5.0
"""How long, in seconds, another writer is waited for, and a server that does not answer."""

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
