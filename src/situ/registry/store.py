"""Objects and deployments as rows: what a deployment holds, what changed since another, and writing the next one.

Every function works inside a transaction of its caller. Checks nothing: what is written here was judged before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, func, or_, select, tuple_, update

from situ.deployment import canonical
from situ.deployment.numbering import NO_NUMBERING, Numbering
from situ.registry.objects import Key, Object
from situ.registry.tables import CHANGE, DEPLOYMENT, DEPLOYMENT_OBJECT, NUMBER, OBJECT, STATE
from situ.tags import TagSet

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


def numbers(connection: Connection) -> Numbering:
    """The numbers that were ever given."""
    found: dict[str, list[str]] = {FILTERS: [], TAGS: [], SEAL: []}
    for row in connection.execute(select(NUMBER).order_by(NUMBER.c.space, NUMBER.c.number)):
        found[row.space].append(row.text)
    if not found[TAGS]:  # there never were scopes, so nothing is sealed
        return NO_NUMBERING
    tags = (TagSet.from_json(json.loads(text)) for text in found[TAGS])
    return Numbering.of_texts(found[FILTERS], tags, "".join(found[SEAL]))


def seal(connection: Connection) -> str:
    """The secret by which numbers are sealed that clients get to see."""
    asked = select(NUMBER.c.text).where(NUMBER.c.space == SEAL)
    return str(connection.execute(asked).scalar_one())


def add_numbers(connection: Connection, before: Numbering, after: Numbering) -> None:
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
