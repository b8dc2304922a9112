"""Proposals of what changes while events flow: declarations of clients, shapes of subscriptions, scopes.

Proposals are only made here: :mod:`situ.registry.registry` stores them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from situ.lang.catalogue import CHANGED_ELSEWHERE, DECLARATION_SUSPENDED, NO_RIGHT_TO_SCOPE, UNKNOWN_CONTEXT
from situ.lang.problems import Location, Problem, Problems, SituError, nearest
from situ.lang.records import replace
from situ.model import Deployment, canonical
from situ.model.kinds import BELOW_CLIENT, CLIENT_KINDS
from situ.quality.model.shapes import UNSHAPED, Shape
from situ.registry.object_files import NOWHERE, Written
from situ.registry.objects import (
    SCOPES_KEY,
    SUSPENDED,
    Key,
    Origin,
    body_of,
    client_of,
    epoch_of,
    key_of,
    revised,
    shape_body,
    with_clients,
)
from situ.registry.proposal import Move, Proposal, State, elsewhere, load_one
from situ.routing import Advertisement, ClientDeclaration, Subscription
from situ.routing.load import nobody_declares
from situ.scopes.change import ScopeChangeEnvironment, change
from situ.scopes.diff import diff_scopes, merge_scopes
from situ.scopes.filters import FilterMeanings, check_filters
from situ.scopes.graph import ScopeGraph
from situ.scopes.json_form import scopes_as_json
from situ.scopes.load_scopes import ScopeEnvironment, check_graph
from situ.scopes.operations import Operation
from situ.scopes.rights import Principal, TagRequest, check_tags
from situ.stages.check_tags import check_declaration_tags, check_source_tags
from situ.stages.type_visibility import TypeVisibility, is_context_withheld

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Declarations of clients → one proposal for many of them at once.
#
# Each declaration is judged by itself: one that is refused keeps none of the others from being accepted. A client that
# goes over to another context takes what it declared along, but for advertisements of types that are not known there.
# If a subscription means nothing there, the client stays where it is.

Declaration = Advertisement | Subscription | ClientDeclaration
"""A client itself is one, too: the context it is in."""

_PLAIN = "{}"
"""The body of a client that says nothing of itself."""


@dataclass(slots=True)
class Judged:
    """The proposal, and what is to say about single declarations: errors of those refused, warnings of others."""

    proposal: Proposal
    said: dict[Key, tuple[Problem, ...]] = field(default_factory=dict)


def propose_clients(state: State, declared: Iterable[Declaration], withdrawn: Iterable[Declaration]) -> Judged:
    """Withdrawals come first, so whoever withdraws and declares the same at once has it."""
    declared, withdrawn = tuple(declared), tuple(withdrawn)
    said: dict[Key, tuple[Problem, ...]] = {}
    moves: dict[Key, Move | None] = {}
    for thing in withdrawn:
        key = key_of(thing)
        there = state.objects.get(key) or state.suspended.get(key)
        if there is not None and there.origin == "client":
            moves[key] = None
        elif there is not None and not isinstance(thing, ClientDeclaration):
            said[key] = (elsewhere(there),)
    deployment = state.deployment
    for thing in declared:
        if isinstance(thing, ClientDeclaration):
            deployment = _enter(state, deployment, thing, moves, said)
    for thing in declared:
        if not isinstance(thing, ClientDeclaration):
            _declare(state, deployment, thing, moves, said)
    with_their_clients(state, moves)
    bodies = {key: each.body for key, each in state.objects.items()} if moves else {}
    for key, move in moves.items():
        if move is None:
            bodies.pop(key, None)
        else:
            bodies[key] = move.body
    deployment = revised(state.deployment, bodies, moves, state.version)
    return Judged(Proposal(deployment=deployment, moves=moves), said)


def _enter(
    state: State,
    deployment: Deployment,
    client: ClientDeclaration,
    moves: dict[Key, Move | None],
    said: dict[Key, tuple[Problem, ...]],
) -> Deployment:
    """What would be deployed with the client in another context; as it was if the client cannot be there."""
    key, body = key_of(client), body_of(client)
    there = state.objects.get(key)
    before = deployment.clients.get(client.name, ClientDeclaration(name=client.name))
    moves.pop(key, None)
    if there is not None and there.body == body:
        return deployment
    if there is not None and there.origin != "client":
        said[key] = (elsewhere(there),)
        return deployment
    if client.context not in deployment.contexts.by_id or is_context_withheld(
        deployment, client.name, client.context, bound=False
    ):
        near, remedy = nearest(client.context, deployment.contexts.by_id), "Define it first, or name another."
        reason = "there is none of this name"
        said[key] = (UNKNOWN_CONTEXT(name=client.context, reason=reason, nearest=near, remedy=remedy),)
        return deployment
    clients = {**deployment.clients, client.name: client}
    entered = with_clients(deployment, clients, deployment.advertisements, deployment.subscriptions)
    taken, problems = _taken_along(state, entered, client, before, moves)
    if problems:
        said[key] = problems
        return deployment
    moves[key] = Move(body=body, origin="client")
    moves.update(taken)
    return entered


def _taken_along(
    state: State,
    entered: Deployment,
    client: ClientDeclaration,
    before: ClientDeclaration,
    moves: dict[Key, Move | None],
) -> tuple[dict[Key, Move | None], tuple[Problem, ...]]:
    """What the client declared in its old context, in the new one; and what is wrong with that there."""
    taken: dict[Key, Move | None] = {}
    problems: list[Problem] = []
    for key in state.below(client.name):
        if key in moves:
            continue
        thing: Advertisement | Subscription
        if key.kind == "advertisement":
            thing = entered.advertisements[key.name]
        else:
            thing = entered.subscriptions[key.name]
            if thing.context != before.context or state.objects[key].origin != "client":
                continue
            thing = replace(thing, context=client.context)
        loaded, found = load_one(thing, entered)
        errors = [problem for problem in found if problem.is_error]
        if errors and isinstance(thing, Advertisement) and state.objects[key].origin == "client":
            taken[key] = None  # what has no name there cannot be published there
            continue
        problems.extend(errors)
        if isinstance(thing, Subscription) and thing.id in loaded.subscriptions:
            taken[key] = Move(body=body_of(loaded.subscriptions[thing.id]), origin="client")
    return taken, tuple(problems)


def _declare(
    state: State,
    deployment: Deployment,
    thing: Advertisement | Subscription,
    moves: dict[Key, Move | None],
    said: dict[Key, tuple[Problem, ...]],
) -> None:
    key, body = key_of(thing), body_of(thing)
    there = state.objects.get(key)
    said.pop(key, None)
    if there is None or there.body != body:  # else it was judged when it came
        client = state.objects.get(client_of(key))
        bound = client is not None and client.origin != "client"
        if isinstance(thing, Subscription) and is_context_withheld(
            deployment, thing.client, thing.context, bound=bound
        ):
            said[key] = (nobody_declares(thing.context, ()),)
            return
        loaded, problems = load_one(thing, deployment, TypeVisibility.of(deployment))
        found = loaded.advertisements.get(thing.id) or loaded.subscriptions.get(thing.id)
        if found is not None:
            zone = deployment.settings.zone
            problems = (*problems, *check_declaration_tags(deployment.scopes, found, zone=zone))
        if problems:
            said[key] = problems
        if found is None or any(problem.is_error for problem in problems):
            return
        body = body_of(found)
    if there is not None and there.body == body:
        moves.pop(key, None)
    elif there is not None and there.origin != "client":
        said[key] = (elsewhere(there),)
    else:
        moves[key] = Move(body=body, origin="client")


def with_their_clients(state: State, moves: dict[Key, Move | None]) -> None:
    """A client comes with the first thing it declares, and goes with the last if it came so.

    One that is in a context by itself stays until it leaves that, too.
    """
    left: set[Key] = set()
    if any(move is None or move.suspended for move in moves.values()):
        left = {client_of(key) for key in state.objects if key.kind in BELOW_CLIENT and key not in moves}
    staying = (key for key, move in moves.items() if move is not None and not move.suspended)
    left |= {client_of(key) for key in staying if key.kind in BELOW_CLIENT}
    for client in {client_of(key) for key in moves if key.kind in CLIENT_KINDS}:
        there = state.objects.get(client)
        is_plain = there is not None and there.body == _PLAIN
        if client in moves:
            if moves[client] is None and client in left:  # it leaves its context, and has more than that
                moves[client] = Move(body=_PLAIN, origin="client")
                if is_plain:
                    del moves[client]
        elif there is None and client in left:
            moves[client] = Move(body=_PLAIN, origin="client")
        elif there is not None and is_plain and there.origin == "client" and client not in left:
            moves[client] = None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Shapes: what negotiation makes of subscriptions is part of what is in force.


def propose_shapes(state: State, shapes: Mapping[str, Shape | None]) -> Proposal:
    """These subscriptions are shaped like this from now on, or not at all; others stay as they are."""
    result = dict(state.deployment.shapes)
    moves: dict[Key, Move | None] = {}
    for id, shape in shapes.items():
        key = Key("shape", id)
        if shape is None or shape == UNSHAPED:
            if key in state.objects:
                moves[key] = None
            result.pop(id, None)
        elif key not in state.objects or state.objects[key].body != shape_body(shape):
            moves[key] = Move(body=shape_body(shape), origin="api")
            result[id] = shape
    ordered = MappingProxyType({id: result[id] for id in sorted(result)})
    return Proposal(deployment=replace(state.deployment, shapes=ordered), moves=moves)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Scopes that somebody changes while events flow → a proposal, with everything that follows from it.
#
# Who may do what is decided by :mod:`situ.scopes.change`. Advertisements and subscriptions whose tags their clients
# have no right to any more are suspended: they leave the deployment, and stay out of it until they are declared anew.
# Policies rest as those do that somebody suspended. The folder is applied beside such changes: what it did not change
# itself stays as it is in force.


def propose_scopes(
    state: State, operation: Operation, by: Principal, epoch: int | None = None
) -> tuple[Proposal, tuple[Problem, ...]]:
    """Scopes after an operation; :class:`SituError` with all reasons why it cannot be carried out.

    ``epoch`` is the one that it was made for; None: the one in force.
    """
    deployment, current = state.deployment, epoch_of(state.objects)
    before = deployment.scopes
    known = ScopeChangeEnvironment(filters=_filters(deployment), clients=_names(deployment))
    changed = change(before, operation, by, known, epoch=current if epoch is None else epoch, current=current)
    errors = [problem for problem in changed.problems if problem.is_error]
    if not errors and changed.graph is not before:
        errors = list(_no_longer_allowed(changed.graph, deployment))
    if errors:
        raise SituError(*errors)
    if changed.graph is before:
        return Proposal(deployment=deployment, moves={}), changed.problems
    there = state.objects.get(SCOPES_KEY)
    written = NOWHERE if there is None else Written(there.file, "")
    moves = scopes_moves(state, changed.graph, state.folder_scopes, written)
    fit = suspend_unfit(state, replace(deployment, scopes=changed.graph), _touched(before, changed.graph))
    moves |= fit.moves
    with_their_clients(state, moves)
    after = _without_clients(fit.deployment, moves)
    return Proposal(deployment=after, moves=moves), (*changed.problems, *fit.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A deployment of which everything is left out that nobody has a right to; what that is, and why."""

    deployment: Deployment
    moves: Mapping[Key, Move | None]
    problems: tuple[Problem, ...] = ()


def suspend_unfit(state: State, deployment: Deployment, touched: frozenset[str] | None = None) -> Fit:
    """Leave out what its client has no right to by these scopes.

    Only what ``touched`` clients declare is looked at, if others cannot have lost anything.
    """
    unfit = {key_of(each): (each, problem) for each, problem in _unfit(deployment, touched)}
    policies = dict(_unfit_policies(deployment))
    if not unfit and not policies:
        return Fit(deployment=deployment, moves={})
    moves: dict[Key, Move | None] = {}
    problems = []
    for key, (each, problem) in unfit.items():
        there = state.objects.get(key) or state.suspended.get(key)
        origin = there.origin if there is not None else "folder"
        moves[key] = Move(body=body_of(each), origin=origin, suspended=True)
        problems.append(_suspended(key.kind, key.name, problem))
    for name, problem in policies.items():
        moves[Key("suspended", name)] = Move(body=SUSPENDED, origin="api")
        if Key("start", name) in state.objects:
            moves[Key("start", name)] = None  # resumed, it begins anew, with what comes then
        problems.append(_suspended("policy", name, problem))
    left = with_clients(
        deployment,
        deployment.clients,
        {id: each for id, each in deployment.advertisements.items() if Key("advertisement", id) not in unfit},
        {id: each for id, each in deployment.subscriptions.items() if Key("subscription", id) not in unfit},
    )
    starts = {name: start for name, start in left.starts.items() if name not in policies}
    left = replace(left, suspended=left.suspended | policies.keys(), starts=starts)
    return Fit(deployment=left, moves=moves, problems=tuple(problems))


def why_suspended(deployment: Deployment, each: Advertisement | Subscription) -> Problem | None:
    """What its client lacks for it; None if it could be declared anew."""
    zone = deployment.settings.zone
    return next((found for found in check_declaration_tags(deployment.scopes, each, zone=zone) if found.is_error), None)


def why_policy_rests(deployment: Deployment, name: str) -> Problem | None:
    """What a policy lacks for the tags that it has."""
    tags = deployment.scopes.tags_of(name)
    for side, publishes in ((tags.reads, False), (tags.publishes, True)):
        by = TagRequest(who=name, publishes=publishes, zone=deployment.settings.zone, knows_all=True)
        for problem in check_tags(deployment.scopes, side, by):
            return problem
    return None


def scopes_beside(state: State, folder: Deployment, place: Location | None, problems: Problems) -> ScopeGraph:
    """What the folder says of scopes, with what others changed since it was applied last and it did not change."""
    merged = merge_scopes(state.folder_scopes, state.deployment.scopes, folder.scopes)
    for each in merged.conflicts:
        problems.add(CHANGED_ELSEWHERE(place, what=each.what, folder=_said(each.folder), in_force=_said(each.in_force)))
    if merged.graph == folder.scopes:
        return folder.scopes
    if not merged.conflicts and merged.graph != state.deployment.scopes:
        check_graph(merged.graph, problems, ScopeEnvironment(clients=_names(folder)))
        problems.extend(_unfit_sources(merged.graph, folder))
    problems.extend(each for each in check_filters(merged.graph, _filters(folder)) if each.is_error)
    return merged.graph


def scopes_moves(
    state: State, graph: ScopeGraph, folder: ScopeGraph, written: Written = NOWHERE
) -> dict[Key, Move | None]:
    """How the object of the scopes changes, if they do: another epoch for what is the same would mean nothing."""
    if graph == state.deployment.scopes:
        return {}
    body = scopes_as_json(graph)
    if not body:
        return {SCOPES_KEY: None} if SCOPES_KEY in state.objects else {}
    origin: Origin = "folder" if graph == folder else "api"
    return {SCOPES_KEY: Move(body=canonical(body), origin=origin, written=written)}


def _said(value: object) -> str:
    return "not there" if value is None else "there" if value is True else f"`{value}`"


def _suspended(kind: str, name: str, problem: Problem) -> Problem:
    return DECLARATION_SUSPENDED(kind=kind, name=name, reason=problem.message.rstrip("."))


def _filters(deployment: Deployment) -> FilterMeanings:
    return FilterMeanings(deployment.types, deployment.settings.expression_limits)


def _names(deployment: Deployment) -> frozenset[str]:
    return frozenset({*deployment.clients, *deployment.policies, *deployment.stopped})


def _touched(before: ScopeGraph, after: ScopeGraph) -> frozenset[str] | None:
    """Whose rights to tags may be others; None: everybody's."""
    found = set()
    for each in diff_scopes(before, after).changes:
        of, name, *rest = each.what
        if of == "dimension" or (of == "scope" and (each.kind == "removed" or rest == ["carriers"])):
            return None
        if of in ("client", "grant"):
            found.add(name)
    return frozenset(found)


def _unfit(
    deployment: Deployment, touched: frozenset[str] | None
) -> Iterator[tuple[Advertisement | Subscription, Problem]]:
    declared: tuple[Advertisement | Subscription, ...] = (
        *deployment.advertisements.values(),
        *deployment.subscriptions.values(),
    )
    for each in declared:
        if touched is not None and each.client not in touched:
            continue
        tagged = bool(each.scopes.named) or each.scopes.rest
        if tagged and (problem := why_suspended(deployment, each)) is not None:
            yield each, problem


def _unfit_policies(deployment: Deployment) -> Iterator[tuple[str, Problem]]:
    for name in deployment.scopes.policies:
        known = name in deployment.policies or name in deployment.stopped
        if known and name not in deployment.suspended and (problem := why_policy_rests(deployment, name)) is not None:
            yield name, problem


def _no_longer_allowed(graph: ScopeGraph, deployment: Deployment) -> Iterator[Problem]:
    """Releases hold as long as whoever wrote them administers what they release, tables as long as their tags do."""
    if graph.releases:
        problems = Problems()
        check_graph(graph, problems, ScopeEnvironment(clients=_names(deployment)))
        yield from (each for each in problems if each.code is NO_RIGHT_TO_SCOPE)
    yield from _unfit_sources(graph, deployment)


def _unfit_sources(graph: ScopeGraph, deployment: Deployment) -> Iterator[Problem]:
    """A table that lost its tags would be read as one that everybody may see: what it needs cannot be taken from it."""
    for source in deployment.sources.values():
        found = check_source_tags(graph, source, zone=deployment.settings.zone)
        yield from (each for each in found if each.is_error)


def _without_clients(deployment: Deployment, moves: Mapping[Key, Move | None]) -> Deployment:
    """Without the clients that go with the last thing they declared."""
    gone = {key.name for key, move in moves.items() if key.kind == "client" and move is None}
    if not gone:
        return deployment
    clients = {name: each for name, each in deployment.clients.items() if name not in gone}
    return with_clients(deployment, clients, deployment.advertisements, deployment.subscriptions)
