"""Who is let in: clients with keys of their own, added, given new keys, and removed.

The registry keeps public keys only, and every one there ever was: who made it, when, and who ended it. It does not say
what a client sees; scopes do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Row, func, select, update

from situ.bus.permissions import CLIENT, Principal
from situ.catalogue import NAME_NOT_POSSIBLE, PRINCIPAL_EXISTS, UNKNOWN_PRINCIPAL
from situ.errors import SituError
from situ.registry.database import Database
from situ.registry.tables import PRINCIPAL
from situ.subscription.model import NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A client that is let in, by this key since then; ``version`` counts its keys."""

    principal: Principal
    version: int
    at: datetime
    who: str

    @property
    def name(self) -> str:
        return self.principal.name


class Principals:
    """The principals of a registry, which opened the database."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock

    def list(self) -> tuple[Admitted, ...]:
        """Who is let in now, by name."""
        with self._database.reading() as connection:
            asked = select(PRINCIPAL).where(PRINCIPAL.c.ended.is_(None)).order_by(PRINCIPAL.c.name)
            return tuple(_admitted(row) for row in connection.execute(asked))

    def add(self, name: str, key: str, *, who: str) -> Admitted:
        """A new client; D115 if there is one of this name, D117 if none can have it."""
        if not NAME.fullmatch(name):
            raise SituError(NAME_NOT_POSSIBLE(name=name[:100], reason="it is part of a subject on the bus"))
        with self._database.writing() as connection:
            if _current(connection, name) is not None:
                raise SituError(PRINCIPAL_EXISTS(name=name))
            return self._insert(connection, name, key, who)

    def rotate(self, name: str, key: str, *, who: str) -> Admitted:
        """Another key for a client: the one before opens nothing any more. D116 if there is no such client."""
        with self._database.writing() as connection:
            self._end(connection, name, who)
            return self._insert(connection, name, key, who)

    def remove(self, name: str, *, who: str) -> None:
        """Let a client in no more. D116 if there is no such client."""
        with self._database.writing() as connection:
            self._end(connection, name, who)

    def _insert(self, connection: Connection, name: str, key: str, who: str) -> Admitted:
        highest = select(func.max(PRINCIPAL.c.version)).where(PRINCIPAL.c.name == name)
        version = (connection.execute(highest).scalar_one() or 0) + 1
        at = self._clock()
        row = {"name": name, "version": version, "key": key, "rights": CLIENT, "at": at, "who": who}
        connection.execute(PRINCIPAL.insert().values(**row))
        return Admitted(principal=Principal(name=name, key=key), version=version, at=at, who=who)

    def _end(self, connection: Connection, name: str, who: str) -> None:
        there = _current(connection, name)
        if there is None:
            known = tuple(connection.execute(select(PRINCIPAL.c.name).where(PRINCIPAL.c.ended.is_(None))).scalars())
            raise SituError(UNKNOWN_PRINCIPAL(name=name, known=tuple(sorted(known))[:8]))
        row = (PRINCIPAL.c.name == name) & (PRINCIPAL.c.version == there.version)
        connection.execute(update(PRINCIPAL).where(row).values(ended=self._clock(), ended_by=who))


def _current(connection: Connection, name: str) -> Admitted | None:
    asked = select(PRINCIPAL).where(PRINCIPAL.c.name == name, PRINCIPAL.c.ended.is_(None))
    row = connection.execute(asked).one_or_none()
    return None if row is None else _admitted(row)


def _admitted(row: Row[tuple[object, ...]]) -> Admitted:
    principal = Principal(name=row.name, key=row.key, rights=row.rights)
    return Admitted(principal=principal, version=row.version, at=row.at, who=row.who)
