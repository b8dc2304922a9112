"""Scopes that somebody changes while events flow → a proposal, with everything that follows from it.

Who may do what is decided by :mod:`situ.visibility.change`. Advertisements and subscriptions whose tags their clients
have no right to any more are suspended: they leave the deployment, and stay out of it until they are declared anew.
Policies rest as those do that somebody suspended. The folder is applied beside such changes: what it did not change
itself stays as it is in force.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from situ.catalogue import CHANGED_ELSEWHERE, DECLARATION_SUSPENDED, NO_RIGHT_TO_SCOPE
from situ.deployment import Deployment, canonical
from situ.deployment.tagging import check_source, check_tagged
from situ.errors import Location, Problem, Problems, SituError
from situ.registry.client_changes import with_their_clients
from situ.registry.objects import SCOPES, SUSPENDED, Key, Origin, body_of, epoch_of, key_of, with_clients
from situ.registry.proposal import Move, Proposal, State
from situ.registry.written import NOWHERE, Written
from situ.subscription import Advertisement, Subscription
from situ.visibility.change import Known, change
from situ.visibility.check_filters import check_filters
from situ.visibility.check_graph import Around, check_graph
from situ.visibility.difference import diff
from situ.visibility.filters import Filters
from situ.visibility.graph import ScopeGraph
from situ.visibility.json_form import scopes_as_json
from situ.visibility.merging import merge
from situ.visibility.operations import Operation
from situ.visibility.rights import Principal, Tagging, check_tags

KEY = Key("scopes", SCOPES)


def propose_scopes(
    state: State, operation: Operation, by: Principal, epoch: int | None = None
) -> tuple[Proposal, tuple[Problem, ...]]:
    """Scopes after an operation; :class:`SituError` with all reasons why it cannot be carried out.

    ``epoch`` is the one that it was made for; None: the one in force.
    """
    deployment, current = state.deployment, epoch_of(state.objects)
    before = deployment.scopes
    known = Known(filters=_filters(deployment), clients=_names(deployment))
    changed = change(before, operation, by, known, epoch=current if epoch is None else epoch, current=current)
    errors = [problem for problem in changed.problems if problem.is_error]
    if not errors and changed.graph is not before:
        errors = list(_no_longer_allowed(changed.graph, deployment))
    if errors:
        raise SituError(*errors)
    if changed.graph is before:
        return Proposal(deployment=deployment, moves={}), changed.problems
    there = state.objects.get(KEY)
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
    return next((found for found in check_tagged(deployment.scopes, each, zone=zone) if found.is_error), None)


def why_policy_rests(deployment: Deployment, name: str) -> Problem | None:
    """What a policy lacks for the tags that it has."""
    tags = deployment.scopes.tags_of(name)
    for side, publishes in ((tags.reads, False), (tags.publishes, True)):
        by = Tagging(who=name, publishes=publishes, zone=deployment.settings.zone, knows_all=True)
        for problem in check_tags(deployment.scopes, side, by):
            return problem
    return None


def scopes_beside(state: State, folder: Deployment, place: Location | None, problems: Problems) -> ScopeGraph:
    """What the folder says of scopes, with what others changed since it was applied last and it did not change."""
    merged = merge(state.folder_scopes, state.deployment.scopes, folder.scopes)
    for each in merged.conflicts:
        problems.add(CHANGED_ELSEWHERE(place, what=each.what, folder=_said(each.folder), in_force=_said(each.in_force)))
    if merged.graph == folder.scopes:
        return folder.scopes
    if not merged.conflicts and merged.graph != state.deployment.scopes:
        check_graph(merged.graph, problems, Around(clients=_names(folder)))
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
        return {KEY: None} if KEY in state.objects else {}
    origin: Origin = "folder" if graph == folder else "api"
    return {KEY: Move(body=canonical(body), origin=origin, written=written)}


def _said(value: object) -> str:
    return "not there" if value is None else "there" if value is True else f"`{value}`"


def _suspended(kind: str, name: str, problem: Problem) -> Problem:
    return DECLARATION_SUSPENDED(kind=kind, name=name, reason=problem.message.rstrip("."))


def _filters(deployment: Deployment) -> Filters:
    return Filters(deployment.types, deployment.settings.expression_limits)


def _names(deployment: Deployment) -> frozenset[str]:
    return frozenset({*deployment.clients, *deployment.policies, *deployment.stopped})


def _touched(before: ScopeGraph, after: ScopeGraph) -> frozenset[str] | None:
    """Whose rights to tags may be others; None: everybody's."""
    found = set()
    for each in diff(before, after).changes:
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
        check_graph(graph, problems, Around(clients=_names(deployment)))
        yield from (each for each in problems if each.code is NO_RIGHT_TO_SCOPE)
    yield from _unfit_sources(graph, deployment)


def _unfit_sources(graph: ScopeGraph, deployment: Deployment) -> Iterator[Problem]:
    """A table that lost its tags would be read as one that everybody may see: what it needs cannot be taken from it."""
    for source in deployment.sources.values():
        found = check_source(graph, source, zone=deployment.settings.zone)
        yield from (each for each in found if each.is_error)


def _without_clients(deployment: Deployment, moves: Mapping[Key, Move | None]) -> Deployment:
    """Without the clients that go with the last thing they declared."""
    gone = {key.name for key, move in moves.items() if key.kind == "client" and move is None}
    if not gone:
        return deployment
    clients = {name: each for name, each in deployment.clients.items() if name not in gone}
    return with_clients(deployment, clients, deployment.advertisements, deployment.subscriptions)
