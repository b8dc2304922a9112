"""What the registry reads from its database and writes to it: objects, deployments, epochs, kept state, principals.

The tables are those of :mod:`situ.registry.database`. Functions work inside a transaction of their caller;
:class:`KeptState` and :class:`Principals` open their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, bindparam, delete, func, or_, select, tuple_, update

from situ.lang.catalogue import NAME_NOT_POSSIBLE, PRINCIPAL_EXISTS, UNKNOWN_PRINCIPAL
from situ.lang.problems import SituError
from situ.lang.tags import TagSet
from situ.model import canonical
from situ.protocol.permissions import CLIENT, BusPrincipal
from situ.registry.database import CHANGE, DEPLOYMENT, DEPLOYMENT_OBJECT, NUMBER, OBJECT, PRINCIPAL, STATE, Database
from situ.registry.objects import SCOPES_KEY, Key, Object
from situ.routing.model import NAME
from situ.scopes.diff import ScopeDifference, diff_scopes
from situ.scopes.graph import NO_SCOPES, ScopeGraph
from situ.scopes.json_form import scopes_from_json
from situ.scopes.stamp_codec import NO_NUMBERING, StampNumbers

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Objects and deployments as rows: what a deployment holds, what changed since another, and writing the next one.
#
# Nothing is checked: what is written was judged before.

FILTERS, TAGS, SEAL = "filter", "tags", "seal"
"""What is numbered: filters of scopes by their texts, tag sets by their canonical form; and the one secret that numbers
are sealed by."""
ACTIVE, SUSPENDED, REMOVED = "active", "suspended", "removed"
_SCOPES, _FOLDER = "scopes", "folder"  # where the table of states has what the folder said of scopes
_CHUNK = 300  # how many names fit into one statement, whatever the database


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A deployment that the registry holds, and since when."""

    version: int
    digest: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Who changed what when: an object from one of its versions to another, with a new deployment. None: not there."""

    at: datetime
    who: str
    deployment: int
    key: Key
    before: int | None
    after: int | None
    reason: str
    state: str = ACTIVE
    """Of the object after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who changes something, when and why."""

    who: str
    at: datetime
    reason: str = ""


def latest(connection: Connection) -> Version | None:
    """The newest deployment."""
    return next(iter(versions(connection, 1)), None)


def versions(connection: Connection, limit: int | None = None) -> list[Version]:
    """The deployments, newest first."""
    asked = select(DEPLOYMENT.c.version, DEPLOYMENT.c.digest, DEPLOYMENT.c.at).order_by(DEPLOYMENT.c.version.desc())
    rows = connection.execute(asked if limit is None else asked.limit(limit))
    return [Version(version=row.version, digest=row.digest, at=row.at) for row in rows]


def version(connection: Connection, number: int) -> Version | None:
    asked = select(DEPLOYMENT.c.version, DEPLOYMENT.c.digest, DEPLOYMENT.c.at).where(DEPLOYMENT.c.version == number)
    row = connection.execute(asked).one_or_none()
    return None if row is None else Version(version=row.version, digest=row.digest, at=row.at)


def objects_at(connection: Connection, number: int) -> dict[Key, Object]:
    """What the deployment of this version holds."""
    return _objects(connection, _held().where(_holds(number)))


def changed_between(connection: Connection, base: int, number: int) -> tuple[dict[Key, Object], set[Key]]:
    """What the second deployment holds that the first did not, and which objects of the first are gone or replaced."""
    begun = _objects(connection, _held().where(and_(_holds(number), DEPLOYMENT_OBJECT.c.first > base)))
    span = DEPLOYMENT_OBJECT.c
    ended = select(span.kind, span.name).where(span.first <= base, span.ended > base, span.ended <= number)
    return begun, {Key(row.kind, row.name) for row in connection.execute(ended)}


def changes(connection: Connection, *, limit: int, key: Key | None = None) -> list[Recorded]:
    """The latest changes, newest first; of one object, or of all."""
    same = and_(OBJECT.c.kind == CHANGE.c.kind, OBJECT.c.name == CHANGE.c.name, OBJECT.c.version == CHANGE.c.to_version)
    asked = (
        select(CHANGE, OBJECT.c.state)
        .select_from(CHANGE.outerjoin(OBJECT, same))
        .order_by(CHANGE.c.id.desc())
        .limit(limit)
    )
    if key is not None:
        asked = asked.where(CHANGE.c.kind == key.kind, CHANGE.c.name == key.name)
    return [
        Recorded(
            at=row.at,
            who=row.who,
            deployment=row.deployment,
            key=Key(row.kind, row.name),
            before=row.from_version,
            after=row.to_version,
            reason=row.reason,
            state=row.state or REMOVED,
        )
        for row in connection.execute(asked)
    ]


def bodies(connection: Connection, key: Key) -> dict[int, str]:
    """All that an object ever was, by version; empty where it was removed."""
    asked = select(OBJECT.c.version, OBJECT.c.body).where(OBJECT.c.kind == key.kind, OBJECT.c.name == key.name)
    return {row.version: row.body for row in connection.execute(asked)}


def suspended(connection: Connection) -> dict[Key, Object]:
    """What is suspended, and was neither declared anew nor removed since."""
    later = OBJECT.alias()
    newer = select(later.c.version).where(
        later.c.kind == OBJECT.c.kind, later.c.name == OBJECT.c.name, later.c.version > OBJECT.c.version
    )
    return _objects(connection, select(OBJECT).where(OBJECT.c.state == SUSPENDED, ~newer.exists()))


def folder_scopes(connection: Connection) -> str | None:
    """What the folder said of scopes when it was applied last; None if that is not known."""
    asked = select(STATE.c.value).where(STATE.c.part == _SCOPES, STATE.c.key == _FOLDER)
    return connection.execute(asked).scalar_one_or_none()


def keep_folder_scopes(connection: Connection, version: int, body: str) -> None:
    """Note what the folder says of scopes, as of this deployment."""
    place = and_(STATE.c.part == _SCOPES, STATE.c.key == _FOLDER)
    if connection.execute(update(STATE).where(place).values(version=version, value=body)).rowcount:
        return
    connection.execute(STATE.insert(), {"part": _SCOPES, "key": _FOLDER, "version": version, "value": body})


def next_versions(connection: Connection, keys: Sequence[Key]) -> dict[Key, int]:
    """The version that each of these objects gets next; names that were used before go on counting."""
    highest: dict[Key, int] = {}
    for some in _chunks(keys):
        asked = (
            select(OBJECT.c.kind, OBJECT.c.name, func.max(OBJECT.c.version))
            .where(tuple_(OBJECT.c.kind, OBJECT.c.name).in_([tuple(key) for key in some]))
            .group_by(OBJECT.c.kind, OBJECT.c.name)
        )
        highest.update((Key(kind, name), most) for kind, name, most in connection.execute(asked))
    return {key: highest.get(key, 0) + 1 for key in keys}


def write_next(
    connection: Connection,
    number: int,
    digest: str,
    before: Mapping[Key, Object],
    moves: Mapping[Key, Object | None],
    author: Author,
    epoch: int = 0,
) -> None:
    """Store a deployment that differs from the one before it by these moves: objects with new versions, or None."""
    connection.execute(
        DEPLOYMENT.insert(), {"version": number, "digest": digest, "at": author.at, "epoch": epoch, "root_version": 0}
    )
    ended = [key for key in moves if key in before]
    for some in _chunks(ended):
        connection.execute(
            update(DEPLOYMENT_OBJECT)
            .where(
                tuple_(DEPLOYMENT_OBJECT.c.kind, DEPLOYMENT_OBJECT.c.name).in_([tuple(key) for key in some]),
                DEPLOYMENT_OBJECT.c.ended.is_(None),
            )
            .values(ended=number)
        )
    gone = next_versions(connection, [key for key, after in moves.items() if after is None])
    connection.execute(OBJECT.insert(), [_row(key, before.get(key), after, gone) for key, after in moves.items()])
    held = [
        {"kind": key.kind, "name": key.name, "version": after.version, "first": number, "ended": None}
        for key, after in moves.items()
        if after is not None and not after.suspended
    ]
    if held:
        connection.execute(DEPLOYMENT_OBJECT.insert(), held)
    recorded = [
        {
            "at": author.at,
            "who": author.who,
            "deployment": number,
            "kind": key.kind,
            "name": key.name,
            "from_version": before[key].version if key in before else None,
            "to_version": after.version if after is not None else None,
            "reason": author.reason,
        }
        for key, after in moves.items()
    ]
    connection.execute(CHANGE.insert(), recorded)


def numbers(connection: Connection) -> StampNumbers:
    """The numbers that were ever given."""
    found: dict[str, list[str]] = {FILTERS: [], TAGS: [], SEAL: []}
    for row in connection.execute(select(NUMBER).order_by(NUMBER.c.space, NUMBER.c.number)):
        found[row.space].append(row.text)
    if not found[TAGS]:  # there never were scopes, so nothing is sealed
        return NO_NUMBERING
    tags = (TagSet.from_json(json.loads(text)) for text in found[TAGS])
    return StampNumbers.of_texts(found[FILTERS], tags, "".join(found[SEAL]))


def seal(connection: Connection) -> str:
    """The secret by which numbers are sealed that clients get to see."""
    asked = select(NUMBER.c.text).where(NUMBER.c.space == SEAL)
    return str(connection.execute(asked).scalar_one())


def add_numbers(connection: Connection, before: StampNumbers, after: StampNumbers) -> None:
    """Store the numbers that were given since."""
    texts = after.filters.texts()
    given = [
        {"space": FILTERS, "number": number, "text": texts[number]}
        for number in range(len(before.filters), len(after.filters))
    ]
    given += [
        {"space": TAGS, "number": number, "text": canonical(after.tags[number].as_json())}
        for number in range(len(before.tags), len(after.tags))
    ]
    if given:
        connection.execute(NUMBER.insert(), given)


def _row(key: Key, before: Object | None, after: Object | None, gone: Mapping[Key, int]) -> dict[str, Any]:
    if after is None:  # a version of its own says that it was removed
        origin = before.origin if before is not None else ""
        row = {"version": gone[key], "body": "", "text": "", "file": "", "origin": origin, "state": REMOVED}
    else:
        row = {
            "version": after.version,
            "body": after.body,
            "text": after.text,
            "file": after.file,
            "origin": after.origin,
            "state": SUSPENDED if after.suspended else ACTIVE,
        }
    return {"kind": key.kind, "name": key.name, **row}


def _held() -> Select[Any]:
    return select(OBJECT).join(
        DEPLOYMENT_OBJECT,
        and_(
            DEPLOYMENT_OBJECT.c.kind == OBJECT.c.kind,
            DEPLOYMENT_OBJECT.c.name == OBJECT.c.name,
            DEPLOYMENT_OBJECT.c.version == OBJECT.c.version,
        ),
    )


def _holds(number: int) -> Any:
    span = DEPLOYMENT_OBJECT.c
    return and_(span.first <= number, or_(span.ended.is_(None), span.ended > number))


def _objects(connection: Connection, asked: Select[Any]) -> dict[Key, Object]:
    return {each.key: each for each in map(_object, connection.execute(asked))}


def _object(row: Row[Any]) -> Object:
    return Object(
        key=Key(row.kind, row.name),
        version=row.version,
        body=row.body,
        origin=row.origin,
        text=row.text,
        file=row.file,
        suspended=row.state == SUSPENDED,
    )


def _chunks(keys: Sequence[Key]) -> Iterator[Sequence[Key]]:
    for start in range(0, len(keys), _CHUNK):
        yield keys[start : start + _CHUNK]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The audit record of scopes: every epoch there was, who made it, when, and what was different since.
#
# What changed is worked out from the documents themselves, all of which the registry keeps.


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One change of the scopes. ``epoch`` is None where it took all of them away."""

    epoch: int | None
    before: int | None
    at: datetime
    who: str
    deployment: int
    reason: str
    difference: ScopeDifference
    suspended: tuple[Key, ...] = ()
    """The declarations that lost their right with it."""

    def as_json(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            "before": self.before,
            "at": self.at.isoformat(),
            "who": self.who,
            "deployment": self.deployment,
            "reason": self.reason,
            "narrows": self.difference.narrows,
            "changes": [
                {"kind": each.kind, "what": list(each.what), "before": each.before, "after": each.after}
                | {"narrows": each.narrows}
                for each in self.difference.changes
            ],
            "suspended": [{"kind": key.kind, "name": key.name} for key in self.suspended],
        }


def epochs(connection: Connection, limit: int) -> list[Epoch]:
    """The latest changes, newest first."""
    recorded = changes(connection, limit=limit, key=SCOPES_KEY)
    if not recorded:
        return []
    documents = bodies(connection, SCOPES_KEY)
    lost = suspended_by(connection, min(each.deployment for each in recorded))
    return [
        Epoch(
            epoch=each.after,
            before=each.before,
            at=each.at,
            who=each.who,
            deployment=each.deployment,
            reason=each.reason,
            difference=diff_scopes(_graph(documents, each.before), _graph(documents, each.after)),
            suspended=tuple(lost.get(each.deployment, ())),
        )
        for each in recorded
    ]


def _graph(documents: dict[int, str], version: int | None) -> ScopeGraph:
    body = "" if version is None else documents.get(version, "")
    return scopes_from_json(json.loads(body)) if body else NO_SCOPES


def suspended_by(connection: Connection, since: int) -> dict[int, list[Key]]:
    """Deployment, from this one on → what it suspended."""
    same = and_(OBJECT.c.kind == CHANGE.c.kind, OBJECT.c.name == CHANGE.c.name, OBJECT.c.version == CHANGE.c.to_version)
    asked = (
        select(CHANGE.c.deployment, CHANGE.c.kind, CHANGE.c.name)
        .select_from(CHANGE.join(OBJECT, same))
        .where(OBJECT.c.state == SUSPENDED, CHANGE.c.deployment >= since)
        .order_by(CHANGE.c.kind, CHANGE.c.name)
    )
    found: dict[int, list[Key]] = {}
    for row in connection.execute(asked):
        found.setdefault(row.deployment, []).append(Key(row.kind, row.name))
    return found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What a part of Situ writes down to go on with after a restart: values by key, all of one step or none.

_FORMAT = 1


class KeptState:
    """The values of one part. A value is JSON."""

    def __init__(self, database: Database, part: str) -> None:
        self._database = database
        self._part = part

    def read(self) -> dict[str, Any]:
        """Everything that is kept."""
        with self._database.reading() as connection:
            asked = select(STATE.c.key, STATE.c.value).where(STATE.c.part == self._part, STATE.c.version == _FORMAT)
            return {key: json.loads(value) for key, value in connection.execute(asked)}

    def keep(self, values: Mapping[str, Any]) -> None:
        """It is there for the next process when this returns; None: there is nothing under the key any more."""
        if not values:
            return
        rows = [
            {"part": self._part, "key": key, "version": _FORMAT, "value": canonical(value)}
            for key, value in values.items()
            if value is not None
        ]
        with self._database.writing() as connection:
            gone = delete(STATE).where(STATE.c.part == self._part, STATE.c.key == bindparam("gone"))
            connection.execute(gone, [{"gone": key} for key in values])
            if rows:
                connection.execute(STATE.insert(), rows)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Principals: who is let in, as clients with keys of their own, added, given new keys, and removed.
#
# The registry keeps public keys only, and every one there ever was: who made it, when, and who ended it. It does not
# say what a client sees; scopes do.


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A client that is let in, by this key since then; ``version`` counts its keys."""

    principal: BusPrincipal
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
        return Admitted(principal=BusPrincipal(name=name, key=key), version=version, at=at, who=who)

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
    principal = BusPrincipal(name=row.name, key=row.key, rights=row.rights)
    return Admitted(principal=principal, version=row.version, at=row.at, who=row.who)
