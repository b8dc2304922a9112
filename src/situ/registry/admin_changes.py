"""Single objects that an administrator adds, alters and removes → a proposal each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from situ.catalogue import (
    BAD_CONTEXT_NAME,
    CLIENT_IN_USE,
    CODE_FROM_CLIENT,
    DECLARES_OTHER,
    OBJECT_EXISTS,
    UNKNOWN_OBJECT,
)
from situ.deployment import Deployment
from situ.deployment.showing import Showing
from situ.documents import Document, Mapping
from situ.errors import Location, Problem, Problems, SituError, nearest
from situ.interpretation.changing import Allowed, some_of
from situ.interpretation.load import context_document, load_contexts
from situ.interpretation.model import ROOT, former_root
from situ.registry.context_changes import USUAL, in_use, settle_contexts
from situ.registry.objects import (
    CLIENT_KINDS,
    ONTOLOGY,
    SUSPENDED,
    Key,
    Object,
    Origin,
    body_of,
    client_of,
    schema_bodies,
)
from situ.registry.proposal import Move, Proposal, State, elsewhere, owner_of, remedy_for
from situ.registry.revise import Documents, check_settled, revise
from situ.registry.scope_changes import why_policy_rests
from situ.registry.written import NOWHERE, Written, declared_in
from situ.situation.policies.start import Start, Starts
from situ.types.table import Types

_SECTION = {
    "unit": "types",
    "type": "types",
    "event": "types",
    "function": "functions",
    "source": "sources",
    "push": "sources",
    **dict.fromkeys(ONTOLOGY, "ontology"),
    "action": "actions",
    "policy": "policies",
    "context": "contexts",
}


def propose_added(
    state: State, key: Key, document: Document, allowed: Allowed = USUAL, start: Start | None = None
) -> tuple[Proposal, tuple[Problem, ...]]:
    """A new object as the document declares it; a policy may start earlier. With the proposal come warnings."""
    there = state.objects.get(key)
    if there is not None:
        alter = f"Run `situ alter {key.kind} {key.name}` to change it."
        remedy = alter if there.origin == "api" else remedy_for(there)
        raise SituError(OBJECT_EXISTS(kind=key.kind, name=key.name, owner=owner_of(there), remedy=remedy))
    return _declared(state, key, document, allowed, start=start)


def propose_altered(
    state: State, key: Key, document: Document, allowed: Allowed = USUAL
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
    if (showing := Showing.of(state.deployment)) is not None:
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
    functions = document.root.get("functions") if isinstance(document.root, Mapping) else None
    for name, body in functions.entries if isinstance(functions, Mapping) else ():
        if isinstance(body, Mapping) and any(body.get(part) is not None for part in ("python", "lookup", "state")):
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
    if key.kind in CLIENT_KINDS and key.kind != "client":
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


def without(starts: Starts, *names: str) -> dict[str, Start]:
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
    allowed: Allowed,
    origin: Origin = "api",
    start: Start | None = None,
) -> tuple[Proposal, tuple[Problem, ...]]:
    written = _only(key, document)
    problems = Problems()
    added = Documents(**{_SECTION.get(key.kind, "clients"): (document,)})
    deployment = revise(state.deployment, {key} & state.objects.keys(), added, problems)
    problems.raise_errors()
    settled = settle_contexts(state.deployment, deployment, allowed, {key: written})
    check_settled(deployment, settled, problems)
    problems.raise_errors()
    deployment = settled.deployment
    if start is not None:
        deployment = replace(deployment, starts={**deployment.starts, key.name: start})
    problems.extend((*settled.refused, *settled.observed))
    bodies = {**schema_bodies(deployment)} if key.kind in _SECTION else _client_bodies(deployment, key)
    moves: dict[Key, Move | None] = {}
    for each, body in bodies.items():
        there = state.objects.get(each)
        if there is None or there.body != body:
            of = there.origin if there is not None else origin
            moves[each] = Move(body=body, origin=of, written=written if each == key else NOWHERE)
    return Proposal(deployment=deployment, moves=moves), problems.sorted()


def _client_bodies(deployment: Deployment, key: Key) -> dict[Key, str]:
    """The object, and the client that it needs."""
    client = client_of(key)
    found = {client: body_of(deployment.clients[client.name])}
    if key.kind == "advertisement":
        found[key] = body_of(deployment.advertisements[key.name])
    elif key.kind == "subscription":
        found[key] = body_of(deployment.subscriptions[key.name])
    return found


def _only(key: Key, document: Document) -> Written:
    """The one declaration of the document; what is no document at all is left to the loaders to say."""
    if document.root is None:
        raise SituError(*document.problems)
    found = dict(declared_in(document))
    if key.kind in CLIENT_KINDS and key.kind != "client":
        found.pop(client_of(key), None)
    if found.keys() != {key}:
        shown = some_of([f"the {each.kind} `{each.name}`" for each in found]) or "nothing declared"
        place = None if document.file == str(key) else document.root.location
        raise SituError(DECLARES_OTHER(place, kind=key.kind, name=key.name, found=shown))
    # A document that was made from options stands nowhere.
    return NOWHERE if document.file == str(key) else found[key]
