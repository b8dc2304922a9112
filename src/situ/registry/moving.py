"""From one state of the registry to the next: proposals stored as rows, and rows read as a state.

Works inside a transaction of its caller. Whether a proposal is right was decided before, and whether rows are intact is
decided by who reads them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from sqlalchemy import Connection

from situ.deployment import Deployment, canonical
from situ.registry import store
from situ.registry.objects import Key, Object, content_of, digest_of, epoch_of, versions_of
from situ.registry.proposal import Move, Proposal, State
from situ.registry.scope_changes import KEY as SCOPES_KEY
from situ.registry.store import Author, Version
from situ.visibility.graph import NO_SCOPES, ScopeGraph
from situ.visibility.json_form import scopes_as_json, scopes_from_json


def next_state(connection: Connection, old: State, proposal: Proposal, author: Author) -> State:
    """Store a proposal; the state after it. What the folder says of scopes is noted also where nothing else changes."""
    scopes = old.folder_scopes if proposal.folder_scopes is None else proposal.folder_scopes
    number = old.version + 1 if proposal.moves else old.version
    if scopes != old.folder_scopes:
        store.keep_folder_scopes(connection, number, canonical(scopes_as_json(scopes)))
    if not proposal.moves:
        return replace(old, folder_scopes=scopes)
    versions = store.next_versions(connection, [key for key, move in proposal.moves.items() if move is not None])
    moves = {key: None if move is None else _object(key, move, versions[key]) for key, move in proposal.moves.items()}
    objects = with_moves(old.objects, moves)
    digest = digest_of(content_of({key: each.body for key, each in objects.items()}))
    deployment = replace(
        proposal.deployment.at_version(number, versions_of(objects.values())),
        epoch=epoch_of(objects),
        numbers=old.deployment.numbers,
    ).numbered()
    if deployment.numbers and not deployment.numbers.seal:  # the first scopes that there are
        deployment = replace(deployment, numbers=replace(deployment.numbers, seal=store.seal(connection)))
    store.write_next(connection, number, digest, old.objects, moves, author, deployment.epoch)
    store.add_numbers(connection, old.deployment.numbers, deployment.numbers)
    return State(
        version=number,
        digest=digest,
        objects=objects,
        deployment=deployment,
        suspended=_with_suspended(old.suspended, moves),
        folder_scopes=scopes,
    )


def state_read(
    connection: Connection, found: Version, objects: Mapping[Key, Object], deployment: Deployment, known: State
) -> State:
    """The state of rows that were read; what only scopes need is asked for only if there are some, or were."""
    deployment = _numbered(connection, deployment, objects, known)
    scoped = bool(deployment.epoch or deployment.numbers)
    return State(
        version=found.version,
        digest=found.digest,
        objects=objects,
        deployment=deployment,
        suspended=MappingProxyType(store.suspended(connection)) if scoped else MappingProxyType({}),
        folder_scopes=_folder_scopes(connection, objects) if scoped else NO_SCOPES,
    )


def _object(key: Key, move: Move, version: int) -> Object:
    file, text = move.written
    return Object(
        key=key,
        version=version,
        body=move.body,
        origin=move.origin,
        text=text,
        file=file,
        suspended=move.suspended,
    )


def with_moves(objects: Mapping[Key, Object], moves: Mapping[Key, Object | None]) -> Mapping[Key, Object]:
    """What is in force after moves: without what is gone or suspended."""
    result = dict(objects)
    for key, after in moves.items():
        if after is None or after.suspended:
            result.pop(key, None)
        else:
            result[key] = after
    return MappingProxyType(result)


def _with_suspended(suspended: Mapping[Key, Object], moves: Mapping[Key, Object | None]) -> Mapping[Key, Object]:
    kept = {key: each for key, each in suspended.items() if key not in moves}
    new = {key: after for key, after in moves.items() if after is not None and after.suspended}
    return MappingProxyType({**kept, **new}) if kept or new else MappingProxyType({})


def is_change(state: State, proposal: Proposal) -> bool:
    """Whether there is anything to store."""
    said = proposal.folder_scopes
    return bool(proposal.moves) or (said is not None and said != state.folder_scopes)


def _folder_scopes(connection: Connection, objects: Mapping[Key, Object]) -> ScopeGraph:
    """What the folder said of scopes; an older release did not write that down, and let nobody else say anything."""
    body = store.folder_scopes(connection)
    if body is None:
        there = objects.get(SCOPES_KEY)
        body = there.body if there is not None else "{}"
    return scopes_from_json(json.loads(body))


def _numbered(
    connection: Connection, deployment: Deployment, objects: Mapping[Key, Object], known: State
) -> Deployment:
    """With epoch and numbers. Whoever knows that there never were scopes need not ask for numbers."""
    epoch = epoch_of(objects)
    if not epoch and known.version and not known.deployment.numbers:
        return deployment
    return replace(deployment, epoch=epoch, numbers=store.numbers(connection))
