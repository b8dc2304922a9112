"""Names that a registry holds, for commands that ask for them and end.

To open a registry is to load everything that can be declared, and the library of databases. Who asks for names needs
neither: a file of SQLite in the format of this release is read as it is. Where there is another database, another
format or something wrong, the database is opened as the registry opens it, and asked the same.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from situ.settings import Settings

FILE = Path(".situ") / "registry.db"
"""Where the registry of a project is, unless ``registry:`` in situ.yaml names another place."""

FORMATS = ("0001", "0002", "0003", "0004", "0005")
"""The migrations there are, oldest first; the last one makes the tables of this release."""

PATIENCE = 5.0
"""How long, in seconds, another writer is waited for, and a server that does not answer."""

_FORMAT = "SELECT version_num FROM registry_format"
_SUSPENDED = """
    SELECT kind, name FROM object AS this WHERE state = 'suspended' AND NOT EXISTS (
        SELECT 1 FROM object AS later
        WHERE later.kind = this.kind AND later.name = this.name AND later.version > this.version
    )
"""
_ADMITTED = "SELECT name FROM principal WHERE ended IS NULL"


class SuspendedDeclaration(NamedTuple):
    """A declaration that is not in force, for its client has no right to it any more."""

    kind: str
    name: str


def suspended_names(
    folder: Path, settings: Settings, *, patience: float = PATIENCE
) -> tuple[SuspendedDeclaration, ...]:
    """What is suspended, in the order of kinds and names; :class:`SituError` as ``open_registry`` has it."""
    return tuple(sorted(SuspendedDeclaration(*row) for row in _ask(folder, settings, _SUSPENDED, patience)))


def admitted_names(folder: Path, settings: Settings, *, patience: float = PATIENCE) -> frozenset[str]:
    """Who is let in with a key of their own; :class:`SituError` as ``open_registry`` has it."""
    return frozenset(name for (name,) in _ask(folder, settings, _ADMITTED, patience))


def _ask(folder: Path, settings: Settings, question: str, patience: float) -> Iterable[tuple[str, ...]]:
    if settings.registry.value == "embedded":
        file = (folder / FILE).absolute().as_uri()
        try:
            with closing(sqlite3.connect(f"{file}?mode=ro", uri=True, timeout=patience)) as connection:
                if connection.execute(_FORMAT).fetchall() == [(FORMATS[-1],)]:
                    return connection.execute(question).fetchall()
        except sqlite3.Error:
            pass  # whoever opens the database below says what is wrong with it
    from situ.registry.database import ask_database

    return ask_database(folder, settings, question, patience)
