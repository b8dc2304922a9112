"""Rows of databases, through SQLAlchemy: connections that are kept, transactions that only read.

Knows SQLite and PostgreSQL by name, to ask them not to write and not to take for ever; others are read as they are.
Passwords appear nowhere.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import URL, Connection, Engine, column, create_engine, make_url, select, table
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from situ.sources.queries import is_table
from situ.tables.files import Cells, Unreadable, check_columns, check_size

PATIENCE = 5.0
"""How long, in seconds, a database that does not answer is waited for."""
LONGEST = 30.0
"""How long, in seconds, a statement may take."""

_REMEDIES = {
    "unable to open": "Look at the name of the file in `url`; it is relative to the project.",
    "not a database": "Is the file a database of SQLite?",
    "no such table": "Look at the name of the table, and at the database in `url`.",
    "no such column": "Look at the names of the columns.",
    "password": "Look at user and password in `url`, or at the variables they come from.",
    "role": "Look at the user in `url`.",
    "permission": "Let the user in `url` read the table.",
    "does not exist": "Look at the names of the database, the table and its columns.",
    "syntax": "Try the statement in the database's own shell.",
    "timeout": "Read fewer rows, or make the statement faster.",
    "locked": "Somebody writes for long; it is tried again.",
}
_OTHERWISE = "Is the server running, and does `url` name it?"


class Databases:
    """The databases that were read, by address; :meth:`close` ends their connections."""

    def __init__(self, folder: Path, *, patience: float = PATIENCE, longest: float = LONGEST) -> None:
        self._folder = folder
        self._patience = patience
        self._longest = longest
        self._engines: dict[str, Engine] = {}

    def read(self, url: str, place: str, wanted: Sequence[str], most: int) -> Cells:
        """These columns of a table or statement; ``url`` has its secrets put in."""
        engine = self._engine(url)
        try:
            with engine.connect() as connection, connection.begin():
                self._only_read(connection)
                names, rows = _rows(connection, place, wanted, most + 1)
        except DBAPIError as error:
            raise _refused(error.orig) from None
        except engine.dialect.loaded_dbapi.Error as error:
            raise _refused(error) from None
        except SQLAlchemyError as error:
            raise Unreadable(_first_line(error), _OTHERWISE) from None
        check_columns("The table" if is_table(place) else "The statement", wanted, names)
        check_size(len(rows), most)
        return {name: [_plain(row[number]) for row in rows] for number, name in enumerate(names) if name in wanted}

    def close(self) -> None:
        for engine in self._engines.values():
            engine.dispose()
        self._engines.clear()

    def _engine(self, url: str) -> Engine:
        engine = self._engines.get(url)
        if engine is None:
            engine = self._engines[url] = self._open(url)
        return engine

    def _open(self, url: str) -> Engine:
        try:
            address = make_url(url)
        except (ArgumentError, ValueError):
            remedy = "Write `postgresql://user@host/database` or `sqlite:///file.db`."
            raise Unreadable("`url` is no address", remedy) from None
        if address.get_backend_name() == "sqlite":
            return self._sqlite(address)
        options: dict[str, Any] = {}
        if address.get_backend_name() in ("postgresql", "postgres"):
            address = address.set(drivername="postgresql+psycopg")
            options["connect_args"] = {"connect_timeout": max(2, round(self._patience))}
        try:
            return create_engine(address, pool_pre_ping=True, pool_size=1, **options)
        except NoSuchModuleError:
            remedy = "Databases are those that SQLAlchemy knows, such as `postgresql://…` and `sqlite:///…`."
            raise Unreadable(f"there is no kind of database `{address.drivername}`", remedy) from None
        except ModuleNotFoundError as error:
            remedy = 'Install the driver; for PostgreSQL: `pip install "situ[postgresql]"`.'
            raise Unreadable(f"the driver `{error.name}` is not installed", remedy) from None

    def _sqlite(self, address: URL) -> Engine:
        if not address.database or address.database == ":memory:":
            raise Unreadable("`url` names no file", "Write `sqlite:///file.db`, relative to the project.")
        file = self._folder / address.database

        def connect() -> sqlite3.Connection:
            # Not made if it is not there. In WAL mode reading, too, needs the right to write, where there is one.
            place = f"{file.absolute().as_uri()}?mode=rw"
            connection = sqlite3.connect(place, uri=True, timeout=self._patience, check_same_thread=False)
            connection.execute("PRAGMA query_only = ON")
            return connection

        # A connection of its own each time: the file may have been replaced by another.
        return create_engine("sqlite://", creator=connect, poolclass=NullPool)

    def _only_read(self, connection: Connection) -> None:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SET TRANSACTION READ ONLY")
            connection.exec_driver_sql(f"SET LOCAL statement_timeout = {round(self._longest * 1000)}")


def _rows(connection: Connection, place: str, wanted: Sequence[str], most: int) -> tuple[list[str], Sequence[Any]]:
    """By the cursor of the driver: rows that pass through SQLAlchemy cost four times as much."""
    statement = place.strip().rstrip(";")
    if is_table(place):
        schema, _, name = place.strip().rpartition(".")
        query: Any = select(*map(column, wanted)).select_from(table(name, schema=schema or None))
        statement = str(query.compile(dialect=connection.dialect))
    cursor = connection.connection.cursor()
    try:
        # As it is written: without parameters neither `:` nor `%` stands for one.
        cursor.execute(statement)
        names = [each[0] for each in cursor.description or ()]
        return names, cursor.fetchmany(most)
    finally:
        cursor.close()


def _plain(cell: Any) -> Any:
    return str(cell) if isinstance(cell, UUID) else cell


def _refused(error: BaseException | None) -> Unreadable:
    reason = _first_line(error)
    remedy = next((text for sign, text in _REMEDIES.items() if sign in reason.lower()), _OTHERWISE)
    return Unreadable(reason, remedy)


def _first_line(error: BaseException | None) -> str:
    lines = str(error).strip().splitlines() or ["no reason is given"]
    return lines[0].rstrip(".")[:300]
