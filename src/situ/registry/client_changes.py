"""What clients declare and withdraw while they run → one proposal for many of them at once.

Each declaration is judged by itself: one that is refused keeps none of the others from being accepted. A client that
goes over to another context takes what it declared along, but for advertisements of types that are not known there. If
a subscription means nothing there, it stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from situ.catalogue import UNKNOWN_CONTEXT
from situ.deployment import Deployment
from situ.deployment.showing import Showing
from situ.deployment.tagging import check_tagged
from situ.deployment.veiling import is_kept_back
from situ.errors import Problem, nearest
from situ.registry.objects import CLIENT_KINDS, Key, body_of, client_of, key_of, revised, with_clients
from situ.registry.proposal import Move, Proposal, State, elsewhere
from situ.registry.revise import load_one
from situ.subscription import Advertisement, Client, Subscription
from situ.subscription.load import nobody_declares

Declaration = Advertisement | Subscription | Client
"""A client itself is one, too: the context it is in."""

_BELOW = ("advertisement", "subscription")
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
        elif there is not None and not isinstance(thing, Client):
            said[key] = (elsewhere(there),)
    deployment = state.deployment
    for thing in declared:
        if isinstance(thing, Client):
            deployment = _enter(state, deployment, thing, moves, said)
    for thing in declared:
        if not isinstance(thing, Client):
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
    client: Client,
    moves: dict[Key, Move | None],
    said: dict[Key, tuple[Problem, ...]],
) -> Deployment:
    """What would be deployed with the client in another context; as it was if the client cannot be there."""
    key, body = key_of(client), body_of(client)
    there = state.objects.get(key)
    before = deployment.clients.get(client.name, Client(name=client.name))
    moves.pop(key, None)
    if there is not None and there.body == body:
        return deployment
    if there is not None and there.origin != "client":
        said[key] = (elsewhere(there),)
        return deployment
    if client.context not in deployment.contexts.by_id or is_kept_back(
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
    state: State, entered: Deployment, client: Client, before: Client, moves: dict[Key, Move | None]
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
        if isinstance(thing, Subscription) and is_kept_back(deployment, thing.client, thing.context, bound=bound):
            said[key] = (nobody_declares(thing.context, ()),)
            return
        loaded, problems = load_one(thing, deployment, Showing.of(deployment))
        found = loaded.advertisements.get(thing.id) or loaded.subscriptions.get(thing.id)
        if found is not None:
            zone = deployment.settings.zone
            problems = (*problems, *check_tagged(deployment.scopes, found, zone=zone))
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
        left = {client_of(key) for key in state.objects if key.kind in _BELOW and key not in moves}
    staying = (key for key, move in moves.items() if move is not None and not move.suspended)
    left |= {client_of(key) for key in staying if key.kind in _BELOW}
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
