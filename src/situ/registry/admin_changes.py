"""Proposals of administrators and of the project folder: objects added, altered, removed; the folder applied.

Single objects come first, with contexts that a client defines and policies that somebody suspends or resumes; then the
folder as a whole. Proposals are only made here: :mod:`situ.registry.registry` stores them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from situ.contexts.compatibility import ChangeOptions, carry_kept_rules, some_of
from situ.contexts.load import context_document, load_contexts
from situ.contexts.model import ROOT, former_root
from situ.lang.catalogue import (
    BAD_CONTEXT_NAME,
    CLIENT_IN_USE,
    CODE_FROM_CLIENT,
    DECLARES_OTHER,
    OBJECT_EXISTS,
    POLICY_STOPPED,
    UNKNOWN_OBJECT,
)
from situ.lang.documents import Document, MappingNode
from situ.lang.problems import Location, Problem, Problems, SituError, nearest
from situ.lang.records import replace
from situ.lang.types.table import Types
from situ.model import Deployment
from situ.model.kinds import ALONE, BELOW_CLIENT, CLIENT_KINDS, KINDS
from situ.policies.load import check_names
from situ.policies.model import PolicyStart, PolicyStarts
from situ.policies.ontology.load import ontology_as_file
from situ.registry.changes import Fit, scopes_beside, scopes_moves, suspend_unfit, why_policy_rests
from situ.registry.object_files import (
    NOWHERE,
    Written,
    declared_in,
    sections_document,
    types_document,
)
from situ.registry.objects import (
    SCOPES_KEY,
    SUSPENDED,
    Key,
    Object,
    Origin,
    bodies_of,
    body_of,
    client_of,
    schema_bodies,
    with_clients,
)
from situ.registry.proposal import (
    USUAL,
    Documents,
    Move,
    Proposal,
    State,
    affected_by,
    carry,
    check_again,
    check_settled,
    elsewhere,
    in_use,
    owner_of,
    remedy_for,
    revise,
    settle_contexts,
    some_clients,
)
from situ.settings import settings_as_json, settings_from_json
from situ.stages.type_visibility import TypeVisibility

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Single objects → a proposal each.


def propose_added(
    state: State, key: Key, document: Document, allowed: ChangeOptions = USUAL, start: PolicyStart | None = None
) -> tuple[Proposal, tuple[Problem, ...]]:
    """A new object as the document declares it; a policy may start earlier. With the proposal come warnings."""
    there = state.objects.get(key)
    if there is not None:
        alter = f"Run `situ alter {key.kind} {key.name}` to change it."
        remedy = alter if there.origin == "api" else remedy_for(there)
        raise SituError(OBJECT_EXISTS(kind=key.kind, name=key.name, owner=owner_of(there), remedy=remedy))
    return _declared(state, key, document, allowed, start=start)


def propose_altered(
    state: State, key: Key, document: Document, allowed: ChangeOptions = USUAL
) -> tuple[Proposal, tuple[Problem, ...]]:
    """Another body for an object that is there."""
    _own(state, key, "api")
    return _declared(state, key, document, allowed)


def propose_defined(state: State, key: Key, document: Document, client: str) -> tuple[Proposal, tuple[Problem, ...]]:
    """A context as a client defines it; one of another origin is not its to change."""
    there = state.objects.get(key)
    if there is not None and there.origin != "client":
        raise SituError(elsewhere(there))
    if key.name == ROOT or former_root(key.name):
        raise SituError(BAD_CONTEXT_NAME(name=key.name, reason="root belongs to the project"))
    if code := [CODE_FROM_CLIENT(place, name=name) for name, place in _not_expressions(document)]:
        raise SituError(*code)
    if (showing := TypeVisibility.of(state.deployment)) is not None:
        _check_known(state, key, document, showing.known(client, ROOT))
    return _declared(state, key, document, USUAL, origin="client")


def _check_known(state: State, key: Key, document: Document, types: Types) -> None:
    """Judge a context by the types that there are for whoever defines it: of others nothing is said, not even that
    they are there. What is wrong with other contexts, of which it need not know, counts for nothing."""
    deployment, problems = state.deployment, Problems()
    bodies = {id: body for id, body in deployment.contexts.as_json().items() if id != key.name}
    load_contexts(
        [*(context_document(id, body, f"in force: {id}") for id, body in bodies.items()), document],
        types,
        deployment.functions,
        problems,
        limits=deployment.settings.expression_limits,
        sources={name: source.row for name, source in deployment.sources.items()},
    )
    own = [each for each in problems if each.is_error and each.location is not None]
    if found := [each for each in own if each.location is not None and not each.location.file.startswith("in force")]:
        raise SituError(*found)


def _not_expressions(document: Document) -> Iterator[tuple[str, Location]]:
    """The functions that are more than expressions; what is no function is left to the loader to say."""
    functions = document.root.get("functions") if isinstance(document.root, MappingNode) else None
    for name, body in functions.entries if isinstance(functions, MappingNode) else ():
        if isinstance(body, MappingNode) and any(body.get(part) is not None for part in ("python", "lookup", "state")):
            yield name.text, name.location


def propose_removed(state: State, key: Key) -> Proposal:
    """The object no longer. What a client left behind can be removed, too: it may never come back for it."""
    if key not in state.objects and key in state.suspended:
        return Proposal(deployment=state.deployment, moves={key: None})
    _own(state, key, "api", "client")
    if key.kind == "client" and (below := [str(each) for each in state.below(key.name)]):
        raise SituError(CLIENT_IN_USE(name=key.name, below=some_of(below)))
    if key.kind == "context" and (problem := in_use(key.name, state.deployment)) is not None:
        raise SituError(problem)
    problems = Problems()
    deployment = revise(state.deployment, {key}, Documents(), problems)
    problems.raise_errors()
    moves: dict[Key, Move | None] = {key: None}
    if key.kind == "policy" and key.name in deployment.suspended:
        moves[Key("suspended", key.name)] = None
        deployment = replace(deployment, suspended=deployment.suspended - {key.name})
    if key.kind == "policy" and key.name in deployment.starts:
        moves[Key("start", key.name)] = None
        deployment = replace(deployment, starts=without(deployment.starts, key.name))
    if key.kind in BELOW_CLIENT:
        client = state.objects.get(client_of(key))
        if client is not None and client.origin == "client" and set(state.below(client.name)) == {key}:
            moves[client.key] = None
            deployment = revise(deployment, {client.key}, Documents(), problems)
    return Proposal(deployment=deployment, moves=moves)


def propose_suspended(state: State, name: str, *, resume: bool = False) -> Proposal:
    """The policy is not detected until it is resumed, whoever it belongs to; what is so already is no change."""
    find(state, Key("policy", name))
    current, key = state.deployment, Key("suspended", name)
    if resume and (problem := why_policy_rests(current, name)) is not None:
        raise SituError(problem)
    if resume is not (name in current.suspended):
        return Proposal(deployment=current, moves={})
    names = current.suspended - {name} if resume else current.suspended | {name}
    moves: dict[Key, Move | None] = {key: None if resume else Move(body=SUSPENDED, origin="api")}
    if name in current.starts:
        moves[Key("start", name)] = None  # resumed, it begins anew, with what comes then
    starts = without(current.starts, name)
    return Proposal(deployment=replace(current, suspended=names, starts=starts), moves=moves)


def without(starts: PolicyStarts, *names: str) -> dict[str, PolicyStart]:
    """The others."""
    return {name: start for name, start in starts.items() if name not in names}


def find(state: State, key: Key) -> Object:
    """The object; :class:`SituError` with D108 and names like it if there is none."""
    there = state.objects.get(key)
    if there is None:
        known = [each.name for each in state.objects if each.kind == key.kind]
        raise SituError(UNKNOWN_OBJECT(kind=key.kind, name=key.name, nearest=nearest(key.name, known)))
    return there


def _own(state: State, key: Key, *origins: str) -> None:
    there = find(state, key)
    if there.origin not in origins:
        raise SituError(elsewhere(there))


def _declared(
    state: State,
    key: Key,
    document: Document,
    allowed: ChangeOptions,
    origin: Origin = "api",
    start: PolicyStart | None = None,
) -> tuple[Proposal, tuple[Problem, ...]]:
    written = _only(key, document)
    problems = Problems()
    added = Documents(**{KINDS[key.kind].file: (document,)})
    deployment = revise(state.deployment, {key} & state.objects.keys(), added, problems)
    problems.raise_errors()
    settled = settle_contexts(state.deployment, deployment, allowed, {key: written})
    check_settled(deployment, settled, problems)
    problems.raise_errors()
    deployment = settled.deployment
    if start is not None:
        deployment = replace(deployment, starts={**deployment.starts, key.name: start})
    problems.extend((*settled.refused, *settled.observed))
    bodies = _client_bodies(deployment, key) if key.kind in CLIENT_KINDS else schema_bodies(deployment)
    moves: dict[Key, Move | None] = {}
    for each, body in bodies.items():
        there = state.objects.get(each)
        if there is None or there.body != body:
            of = there.origin if there is not None else origin
            moves[each] = Move(body=body, origin=of, written=written if each == key else NOWHERE)
    return Proposal(deployment=deployment, moves=moves), problems.sorted()


def _client_bodies(deployment: Deployment, key: Key) -> dict[Key, str]:
    """The object, and the client that it needs."""
    return {each: body_of(getattr(deployment, KINDS[each.kind].section)[each.name]) for each in (client_of(key), key)}


def _only(key: Key, document: Document) -> Written:
    """The one declaration of the document; what is no document at all is left to the loaders to say."""
    if document.root is None:
        raise SituError(*document.problems)
    found = dict(declared_in(document))
    if key.kind in BELOW_CLIENT:
        found.pop(client_of(key), None)
    if found.keys() != {key}:
        shown = some_of([f"the {each.kind} `{each.name}`" for each in found]) or "nothing declared"
        place = None if document.file == str(key) else document.root.location
        raise SituError(DECLARES_OTHER(place, kind=key.kind, name=key.name, found=shown))
    # A document that was made from options stands nowhere.
    return NOWHERE if document.file == str(key) else found[key]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The project folder → a proposal that replaces what it declared before, and nothing else.


def propose_folder(
    state: State,
    folder: Deployment,
    written: Mapping[Key, Written],
    allowed: ChangeOptions = USUAL,
    start: PolicyStart | None = None,
) -> Proposal:
    """The folder's declarations beside those of others; :class:`SituError` with all reasons why they cannot be.

    ``start`` is where its policies start that are new.
    """
    # Values from the environment stay outside: a deployment shows the references only.
    folder = replace(folder, settings=settings_from_json(settings_as_json(folder.settings)))
    folder = carry(state.deployment, folder, allowed)
    wanted = bodies_of(folder)
    wanted.pop(SCOPES_KEY, None)  # others change it, too: it is put together, not replaced
    problems = Problems()
    for key, body in wanted.items():
        there = state.objects.get(key)
        if there is not None and there.origin != "folder" and there.body != body:
            place = Location(file=written[key].file) if key in written else None
            problems.add(elsewhere(there, place))
    others = {key: each for key, each in state.objects.items() if each.origin != "folder" and key not in wanted}
    others.pop(SCOPES_KEY, None)
    deployment = _beside(state, folder, others, problems)
    place = Location(file=written[SCOPES_KEY].file) if SCOPES_KEY in written else None
    graph = scopes_beside(state, folder, place, problems)
    problems.raise_errors()
    deployment = replace(deployment, starts=_starts(state, deployment, start), scopes=graph)
    settled = settle_contexts(state.deployment, deployment, allowed, written)
    check_settled(deployment, settled, problems)
    problems.raise_errors()
    fit = suspend_unfit(state, settled.deployment)
    settled = replace(settled, deployment=fit.deployment)
    found = bodies_of(settled.deployment, ["context"])
    wanted.update((key, body) for key, body in found.items() if key in wanted)
    moves = _moves(state, wanted, others, written)
    moves |= scopes_moves(state, graph, folder.scopes, written.get(SCOPES_KEY, NOWHERE))
    _suspend(state, fit, wanted, moves)
    for key, body in found.items():
        if key not in wanted and (key not in others or others[key].body != body):
            moves[key] = Move(body=body, origin=others[key].origin if key in others else "api")
    starts = bodies_of(settled.deployment, ["start"])
    moves |= {key: Move(body=body, origin="api") for key, body in starts.items() if key not in state.objects}
    moves |= {key: None for key in state.objects if key.kind == "start" and key not in starts}
    stopped = tuple(each for each in problems if each.code is POLICY_STOPPED)
    said = (*settled.refused, *settled.observed, *stopped, *fit.problems)
    return Proposal(deployment=settled.deployment, moves=moves, problems=said, folder_scopes=folder.scopes)


def _suspend(state: State, fit: Fit, wanted: Mapping[Key, str], moves: dict[Key, Move | None]) -> None:
    """What nobody has a right to is not in force, whoever declares it; what is suspended already needs no change."""
    for key, move in fit.moves.items():
        there = state.suspended.get(key)
        if move is not None and there is not None and key not in state.objects and there.body == move.body:
            moves.pop(key, None)
        else:
            moves[key] = move
    for key, each in state.suspended.items():
        if each.origin == "folder" and key not in wanted:
            moves[key] = None


def _beside(state: State, folder: Deployment, others: Mapping[Key, Object], problems: Problems) -> Deployment:
    current = state.deployment
    of_kind: dict[str, dict[str, Any]] = {kind: {} for kind in ALONE if kind not in CLIENT_KINDS}
    for key, each in others.items():
        if key.kind in of_kind:
            of_kind[key.kind][key.name] = each.value if key.kind in ("source", "push") else json.loads(each.body)
    types, units, theirs_now = [*of_kind["type"], *of_kind["event"]], of_kind["unit"], of_kind["context"]
    after = carry_kept_rules(current.contexts.as_json(), {**folder.contexts.as_json(), **theirs_now})
    contexts = {id: after[id] for id in theirs_now}
    added = Documents(
        types=(types_document(current.types, types, units, "registry"),) if types or units else (),
        functions=sections_document(_sections("functions", of_kind), "registry"),
        sources=sections_document(_sections("sources", of_kind), "registry"),
        ontology=sections_document(ontology_as_file(_sections("ontology", of_kind)), "registry"),
        actions=sections_document(_sections("actions", of_kind), "registry"),
        contexts=tuple(context_document(id, body, "registry") for id, body in contexts.items()),
    )
    deployment = revise(folder, (), added, problems, policies=of_kind["policy"])
    deployment = replace(deployment, suspended=current.suspended, shapes=current.shapes)
    theirs = some_clients(current, others.__contains__)
    check_again(deployment, affected_by(current, deployment, theirs), problems)
    clients = {**deployment.clients, **theirs.clients}
    clients.update((key.name, current.clients[key.name]) for key in _clients_of(others) if key.name not in clients)
    check_names({**deployment.policies, **deployment.stopped}, clients, problems)
    return with_clients(
        deployment,
        clients,
        {**deployment.advertisements, **theirs.advertisements},
        {**deployment.subscriptions, **theirs.subscriptions},
    )


def _sections(file: str, of_kind: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    return {row.section: of_kind[kind] for kind, row in ALONE.items() if row.file == file}


def _starts(state: State, deployment: Deployment, start: PolicyStart | None) -> PolicyStarts:
    declared = {*deployment.policies, *deployment.stopped}
    new = sorted(each for each in declared if Key("policy", each) not in state.objects) if start is not None else ()
    kept = {name: each for name, each in state.deployment.starts.items() if name in declared}
    return {**kept, **{name: start for name in new if start is not None}}


def _moves(
    state: State, wanted: Mapping[Key, str], others: Mapping[Key, Object], written: Mapping[Key, Written]
) -> dict[Key, Move | None]:
    moves: dict[Key, Move | None] = {}
    for key, body in wanted.items():
        there = state.objects.get(key)
        if there is None or there.body != body or there.origin != "folder":
            moves[key] = Move(body=body, origin="folder", written=written.get(key, NOWHERE))
    heirs = _clients_of(others)
    for key, each in state.objects.items():
        if each.origin == "folder" and key not in wanted and key != SCOPES_KEY:
            # A client that others declare things for stays, now as theirs.
            moves[key] = Move(body=each.body, origin=others[heirs[key]].origin) if key in heirs else None
    return moves


def _clients_of(keys: Collection[Key]) -> dict[Key, Key]:
    """The clients of these advertisements and subscriptions, each with one of them."""
    return {client_of(key): key for key in keys if key.kind in BELOW_CLIENT}
