"""What the project folder declares → a proposal that replaces what it declared before, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace

from situ.catalogue import POLICY_STOPPED
from situ.deployment import Deployment
from situ.errors import Location, Problems
from situ.interpretation.changing import Allowed, carried
from situ.interpretation.load import context_document
from situ.registry.context_changes import USUAL, carry, settle_contexts
from situ.registry.objects import CLIENT_KINDS, ONTOLOGY, Key, Object, bodies_of, client_of, schema_bodies, with_clients
from situ.registry.proposal import Move, Proposal, State, elsewhere
from situ.registry.revise import Documents, affected_by, check_again, check_settled, revise
from situ.registry.scope_changes import KEY as SCOPES_KEY
from situ.registry.scope_changes import Fit, scopes_beside, scopes_moves, suspend_unfit
from situ.registry.written import NOWHERE, Written, functions_document, sources_document, types_document
from situ.settings import settings_as_json, settings_from_json
from situ.situation.actions.load_actions import actions_document
from situ.situation.domain.load_ontology import ontology_document
from situ.situation.policies.load_policies import check_names
from situ.situation.policies.start import Start, Starts
from situ.subscription import Clients


def propose_folder(
    state: State,
    folder: Deployment,
    written: Mapping[Key, Written],
    allowed: Allowed = USUAL,
    start: Start | None = None,
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
    found = {key: body for key, body in schema_bodies(settled.deployment).items() if key.kind == "context"}
    wanted.update((key, body) for key, body in found.items() if key in wanted)
    moves = _moves(state, wanted, others, written)
    moves |= scopes_moves(state, graph, folder.scopes, written.get(SCOPES_KEY, NOWHERE))
    _suspend(state, fit, wanted, moves)
    for key, body in found.items():
        if key not in wanted and (key not in others or others[key].body != body):
            moves[key] = Move(body=body, origin=others[key].origin if key in others else "api")
    starts = {key: body for key, body in schema_bodies(settled.deployment).items() if key.kind == "start"}
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
    types = [key.name for key in others if key.kind in ("type", "event")]
    units = [key.name for key in others if key.kind == "unit"]
    functions = {key.name: each.value for key, each in others.items() if key.kind == "function"}
    sources, push, actions, policies = (
        {key.name: each.value for key, each in others.items() if key.kind == kind}
        for kind in ("source", "push", "action", "policy")
    )
    ontology = {
        section: {key.name: json.loads(each.body) for key, each in others.items() if key.kind == kind}
        for kind, section in ONTOLOGY.items()
    }
    theirs_now = {key.name: json.loads(each.body) for key, each in others.items() if key.kind == "context"}
    after = carried(current.contexts.as_json(), {**folder.contexts.as_json(), **theirs_now})
    contexts = {id: after[id] for id in theirs_now}
    added = Documents(
        types=(types_document(current.types, types, units, "registry"),) if types or units else (),
        functions=(functions_document(functions, "registry"),) if functions else (),
        sources=(sources_document(sources, push, "registry"),) if sources or push else (),
        ontology=(ontology_document(ontology, "registry"),) if any(ontology.values()) else (),
        actions=(actions_document({"actions": actions}, "registry"),) if actions else (),
        contexts=tuple(context_document(id, body, "registry") for id, body in contexts.items()),
    )
    deployment = revise(folder, (), added, problems, policies=policies)
    deployment = replace(deployment, suspended=current.suspended, shapes=current.shapes)
    theirs = Clients(
        clients={name: each for name, each in current.clients.items() if Key("client", name) in others},
        advertisements={id: a for id, a in current.advertisements.items() if Key("advertisement", id) in others},
        subscriptions={id: s for id, s in current.subscriptions.items() if Key("subscription", id) in others},
    )
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


def _starts(state: State, deployment: Deployment, start: Start | None) -> Starts:
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
    return {client_of(key): key for key in keys if key.kind in CLIENT_KINDS and key.kind != "client"}
