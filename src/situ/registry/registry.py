"""The registry: what is declared right now, every version of it since the first, and who changed what.

:class:`Registry` is what others use, :func:`open_registry` opens that of a project. Before it: how proposals become
rows, and rows a state.
"""

from __future__ import annotations

import getpass
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TypeVar

from sqlalchemy import Connection

from situ.contexts.compatibility import ChangeOptions
from situ.lang.catalogue import DEPLOYMENT_DAMAGED, NOTHING_APPLIED, UNKNOWN_DEPLOYMENT
from situ.lang.documents import Document
from situ.lang.problems import Problem, SituError
from situ.lang.records import replace
from situ.model import Deployment, DeploymentChange, canonical, diff_deployments
from situ.model.kinds import Kind
from situ.policies.model import PolicyStart
from situ.quality.model.shapes import Shape
from situ.registry import store
from situ.registry.admin_changes import (
    find,
    propose_added,
    propose_altered,
    propose_defined,
    propose_folder,
    propose_removed,
    propose_suspended,
)
from situ.registry.changes import Declaration, propose_clients, propose_scopes, propose_shapes
from situ.registry.database import Database, open_database
from situ.registry.lookup import PATIENCE
from situ.registry.object_files import Written
from situ.registry.objects import (
    SCOPES_KEY,
    Key,
    Object,
    content_of,
    deployment_of,
    digest_of,
    epoch_of,
    key_of,
    revised,
    versions_of,
)
from situ.registry.proposal import USUAL, Move, Proposal, State
from situ.registry.store import Author, Epoch, KeptState, Principals, Recorded, Version, epochs, suspended_by
from situ.scopes.graph import NO_SCOPES, ScopeGraph
from situ.scopes.json_form import scopes_as_json, scopes_from_json
from situ.scopes.operations import Operation
from situ.scopes.rights import Principal
from situ.settings import Settings

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# From one state of the registry to the next: proposals stored as rows, and rows read as a state.
#
# Works inside a transaction of its caller. Whether a proposal is right was decided before; whether rows are intact is
# decided by whoever reads them.


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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The registry.
#
# Changes are proposed against what is in force, checked as a whole, and stored as the next version in one transaction;
# if another writer was faster, they are proposed and checked once more, now with the database held. An invalid change
# never gets a version. Threads may share a registry.

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What came of a change: the deployment in force, and how it differs from the one before; nothing, if not at all.

    ``problems`` are warnings: what is refused is raised. Errors are among them where a context stays as it is, because
    somebody uses it: the rest is in force.
    """

    deployment: Deployment
    changes: tuple[DeploymentChange, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def version(self) -> int:
        return self.deployment.version


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclarationOutcome:
    """What came of clients' declarations: the deployment in force, and what is to say about single ones."""

    deployment: Deployment
    problems: Mapping[Key, tuple[Problem, ...]] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def version(self) -> int:
        return self.deployment.version

    def refused(self, thing: Declaration) -> tuple[Problem, ...]:
        """Why this one is not in force; empty if it is."""
        return tuple(problem for problem in self.problems.get(key_of(thing), ()) if problem.is_error)


class Registry:
    """An open registry; :func:`situ.registry.open_registry` opens one."""

    def __init__(self, database: Database, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._database = database
        self._clock = clock
        self._state = State()
        self._mutex = threading.RLock()

    def __enter__(self) -> Registry:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return self._database.place

    @property
    def principals(self) -> Principals:
        """Who is let in with keys of their own."""
        return Principals(self._database, self._clock)

    def kept(self, part: str) -> KeptState:
        """What a part of Situ keeps here to go on with."""
        return KeptState(self._database, part)

    # ── what there is ──

    def version(self) -> int:
        """The version in force, 0 if nothing was ever applied. Costs one small question to the database."""
        with self._database.reading() as connection:
            found = store.latest(connection)
        return found.version if found is not None else 0

    def current(self) -> Deployment:
        """What is in force. Read anew only if it changed, and then only what changed."""
        return self._current().deployment

    def at(self, version: int) -> Deployment:
        """The deployment of any version since the first; :class:`SituError` with D112 if there is none."""
        state = self._current()
        if version == state.version:
            return state.deployment
        with self._database.reading() as connection:
            found = store.version(connection, version)
            if found is None:
                remedy = f"It has versions 1 to {state.version}." if state.version else "Run `situ apply` first."
                raise SituError(UNKNOWN_DEPLOYMENT(place=self.place, version=version, remedy=remedy))
            objects = store.objects_at(connection, version)
        bodies = {key: each.body for key, each in objects.items()}
        with self._intact(found, content_of(bodies)):
            deployment = deployment_of(bodies, version, versions_of(objects.values()))
            return replace(deployment, epoch=epoch_of(objects), numbers=state.deployment.numbers)

    def versions(self, limit: int | None = None) -> tuple[Version, ...]:
        """The deployments, newest first."""
        with self._database.reading() as connection:
            return tuple(store.versions(connection, limit))

    def objects(self, kind: Kind | None = None) -> tuple[Object, ...]:
        """What is declared, in the order of kinds and names."""
        found = self._current().objects.values()
        return tuple(sorted((each for each in found if kind in (None, each.kind)), key=lambda each: each.key))

    def find(self, kind: Kind, name: str) -> Object:
        """One object; :class:`SituError` with D108 if there is none of this name."""
        return find(self._current(), Key(kind, name))

    def suspended(self, kind: Kind | None = None) -> tuple[Object, ...]:
        """Declarations whose clients have no right to them any more, in the order of kinds and names."""
        found = self._current().suspended.values()
        return tuple(sorted((each for each in found if kind in (None, each.kind)), key=lambda each: each.key))

    def suspended_between(self, after: int, last: int) -> tuple[Key, ...]:
        """What the deployments behind the one up to the other suspended, also if it was declared anew since."""
        with self._database.reading() as connection:
            found = suspended_by(connection, after + 1)
        return tuple(key for version, keys in found.items() if version <= last for key in keys)

    def epochs(self, limit: int = 100) -> tuple[Epoch, ...]:
        """Every change of the scopes, newest first: who made it, when, and what is different since."""
        with self._database.reading() as connection:
            return tuple(epochs(connection, limit))

    def changes(self, limit: int = 100, *, kind: Kind | None = None, name: str = "") -> tuple[Recorded, ...]:
        """Who changed what, newest first; of one object if it is named."""
        with self._database.reading() as connection:
            return tuple(store.changes(connection, limit=limit, key=Key(kind, name) if kind is not None else None))

    # ── changes ──

    def plan(self, folder: Deployment, allowed: ChangeOptions = USUAL) -> Applied:
        """What :meth:`apply` would change; raises what it would raise."""
        state = self._current()
        proposal = propose_folder(state, folder, {}, allowed)
        changes = diff_deployments(_before(state), proposal.deployment)
        return Applied(deployment=state.deployment, changes=changes, problems=proposal.problems)

    def apply(
        self,
        folder: Deployment,
        who: str,
        reason: str = "",
        *,
        written: Mapping[Key, Written] = MappingProxyType({}),
        allowed: ChangeOptions = USUAL,
        start: PolicyStart | None = None,
    ) -> Applied:
        """Put what the folder declares in force in place of what it declared before; what others declared stays.

        ``start`` is where its policies start that are new; None: with what comes from now on.
        """

        def propose(state: State) -> tuple[Proposal, tuple[Problem, ...]]:
            proposal = propose_folder(state, folder, written, allowed, start)
            return proposal, proposal.problems

        old, new, problems = self._change(propose, who, reason)
        return Applied(deployment=new.deployment, changes=_difference(old, new), problems=problems)

    def declare(
        self,
        declared: Iterable[Declaration] = (),
        *,
        withdraw: Iterable[Declaration] = (),
        who: str,
        reason: str = "",
    ) -> DeclarationOutcome:
        """What clients declare and withdraw themselves, of any number of clients, as one version.

        Each is judged by itself and refused by itself. What is declared the same already is no change, whoever
        declared it.
        """
        declared, withdraw = tuple(declared), tuple(withdraw)

        def propose(state: State) -> tuple[Proposal, Mapping[Key, tuple[Problem, ...]]]:
            judged = propose_clients(self._applied(state), declared, withdraw)
            return judged.proposal, judged.said

        _, new, said = self._change(propose, who, reason)
        return DeclarationOutcome(deployment=new.deployment, problems=MappingProxyType(dict(said)))

    def withdraw(self, withdrawn: Iterable[Declaration], *, who: str, reason: str = "") -> DeclarationOutcome:
        """What clients no longer declare; what is not there any more is no change."""
        return self.declare((), withdraw=withdrawn, who=who, reason=reason)

    def add(
        self,
        kind: Kind,
        name: str,
        document: Document,
        *,
        who: str,
        reason: str = "",
        allowed: ChangeOptions = USUAL,
        start: PolicyStart | None = None,
    ) -> Applied:
        """A new object, as a document in the syntax of the project's files declares it; where a policy starts."""
        return self._single(lambda state: propose_added(state, Key(kind, name), document, allowed, start), who, reason)

    def alter(
        self, kind: Kind, name: str, document: Document, *, who: str, reason: str = "", allowed: ChangeOptions = USUAL
    ) -> Applied:
        """Another body for an object that :meth:`add` made."""
        return self._single(lambda state: propose_altered(state, Key(kind, name), document, allowed), who, reason)

    def define(self, id: str, document: Document, *, who: str, reason: str = "") -> Applied:
        """A context as a client defines it. In use, and changed so that somebody would notice, it is forked."""
        return self._single(lambda state: propose_defined(state, Key("context", id), document, who), who, reason)

    def remove(self, kind: Kind, name: str, *, who: str, reason: str = "") -> Applied:
        """Take out what :meth:`add` made or a client left behind."""
        return self._single(lambda state: (propose_removed(state, Key(kind, name)), ()), who, reason)

    def suspend(self, policy: str, *, who: str, reason: str = "") -> Applied:
        """Let a policy rest until :meth:`resume`. It stays declared, and applying the folder does not wake it."""
        return self._single(lambda state: (propose_suspended(state, policy), ()), who, reason)

    def resume(self, policy: str, *, who: str, reason: str = "") -> Applied:
        """Let a policy that was suspended run again, from now on."""
        return self._single(lambda state: (propose_suspended(state, policy, resume=True), ()), who, reason)

    def change_scopes(
        self, operation: Operation, by: Principal, *, who: str = "", epoch: int | None = None, reason: str = ""
    ) -> Applied:
        """Change scopes by one operation, with the rights of whoever asks; the epoch follows from the deployment.

        ``epoch`` is the one that this was decided in: V015 if it is over. Declarations that lose their right with the
        change are suspended; warnings say which. ``who`` is written down, if not the name of the principal.
        """
        return self._single(lambda state: propose_scopes(state, operation, by, epoch), who or by.name, reason)

    def plan_scopes(self, operation: Operation, by: Principal, *, epoch: int | None = None) -> Applied:
        """What :meth:`change_scopes` would change; raises what it would raise."""
        state = self._applied(self._current())
        proposal, problems = propose_scopes(state, operation, by, epoch)
        changes = diff_deployments(state.deployment, proposal.deployment)
        return Applied(deployment=state.deployment, changes=changes, problems=problems)

    def shape(self, shapes: Mapping[str, Shape | None], *, who: str, reason: str = "") -> Applied:
        """Shape what subscriptions get, by their ids; None: not at all any more."""
        return self._single(lambda state: (propose_shapes(state, shapes), ()), who, reason)

    # ── how a change is made ──

    def _single(
        self, propose: Callable[[State], tuple[Proposal, tuple[Problem, ...]]], who: str, reason: str
    ) -> Applied:
        old, new, problems = self._change(lambda state: propose(self._applied(state)), who, reason)
        return Applied(deployment=new.deployment, changes=_difference(old, new), problems=problems)

    def _change(self, propose: Callable[[State], tuple[Proposal, T]], who: str, reason: str) -> tuple[State, State, T]:
        """The states before and after, and what the proposer had to say."""
        with self._mutex:
            old = self._current()
            proposal, said = propose(old)
            if not is_change(old, proposal):
                return old, old, said
            with self._database.writing() as connection:
                now = self._read(connection, old)
                if now is not old:
                    old = now
                    proposal, said = propose(old)
                if not is_change(old, proposal):
                    return old, old, said
                new = next_state(connection, old, proposal, Author(who=who, at=self._clock(), reason=reason))
            self._state = new
            return old, new, said

    def _applied(self, state: State) -> State:
        if state.version == 0:
            raise SituError(NOTHING_APPLIED(place=self.place))
        return state

    # ── what is in force, kept in memory ──

    def _current(self) -> State:
        with self._mutex:
            with self._database.reading() as connection:
                self._state = self._read(connection, self._state)
            return self._state

    def _read(self, connection: Connection, known: State) -> State:
        """The state in force; the known one itself if that is it."""
        found = store.latest(connection)
        if found is None:
            return known if known.version == 0 else State()
        if (found.version, found.digest) == (known.version, known.digest):
            return known
        if found.version <= known.version:  # another database has been put in its place
            known = State()
        begun, ended = store.changed_between(connection, known.version, found.version)
        changed: dict[Key, Object | None] = {**dict.fromkeys(ended), **begun}
        objects = with_moves(known.objects, changed)
        bodies = {key: each.body for key, each in objects.items()}
        with self._intact(found, content_of(bodies)):
            versions = versions_of(objects.values())
            deployment = revised(known.deployment, bodies, changed, found.version, versions)
            return state_read(connection, found, objects, deployment, known)

    @contextmanager
    def _intact(self, stored: Version, content: str) -> Iterator[None]:
        """What was read is what was stored, and this release can make a deployment of it."""
        if digest_of(content) != stored.digest:
            raise self._damaged(stored.version, "its digest is another")
        try:
            yield
        except ValueError as error:
            raise self._damaged(stored.version, str(error)) from error

    def _damaged(self, version: int, reason: str) -> SituError:
        remedy = "Put a back-up of the registry in its place."
        return SituError(DEPLOYMENT_DAMAGED(version=version, place=self.place, reason=reason, remedy=remedy))


def _before(state: State) -> Deployment | None:
    return state.deployment if state.version else None


def _difference(old: State, new: State) -> tuple[DeploymentChange, ...]:
    return () if old is new else diff_deployments(_before(old), new.deployment)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Opening the registry of a project.


def open_registry(folder: Path, settings: Settings, *, patience: float = PATIENCE) -> Registry:
    """The registry that ``registry:`` in situ.yaml names, brought to the format of this release.

    Waits for other writers and servers, here and later, for ``patience`` seconds. :class:`SituError` with D104 if it
    is locked for longer, D105 if it does not answer, D106 if a newer release wrote it.
    """
    return Registry(open_database(folder, settings, patience))


def current_user() -> str:
    """Who changes something: the user of the operating system."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container may run as a number without a name
        return str(os.getuid())
