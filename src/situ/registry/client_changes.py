"""What clients declare and withdraw while they run → one proposal for many of them at once.

Each declaration is judged by itself: one that is refused keeps none of the others from being accepted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from situ.errors import Problem
from situ.registry.objects import Key, body_of, client_of, key_of, revised
from situ.registry.proposal import Move, Proposal, State, elsewhere
from situ.registry.revise import load_one
from situ.subscription import Advertisement, Subscription

Declaration = Advertisement | Subscription


@dataclass(slots=True)
class Judged:
    """The proposal, and what is to say about single declarations: errors of those refused, warnings of others."""

    proposal: Proposal
    said: dict[Key, tuple[Problem, ...]] = field(default_factory=dict)


def propose_clients(state: State, declared: Iterable[Declaration], withdrawn: Iterable[Declaration]) -> Judged:
    """Withdrawals come first, so whoever withdraws and declares the same at once has it."""
    said: dict[Key, tuple[Problem, ...]] = {}
    moves: dict[Key, Move | None] = {}
    for thing in withdrawn:
        key = key_of(thing)
        there = state.objects.get(key)
        if there is not None and there.origin == "client":
            moves[key] = None
        elif there is not None:
            said[key] = (elsewhere(there),)
    for thing in declared:
        _declare(state, thing, moves, said)
    _with_clients(state, moves)
    bodies = {key: each.body for key, each in state.objects.items()} if moves else {}
    for key, move in moves.items():
        if move is None:
            del bodies[key]
        else:
            bodies[key] = move.body
    deployment = revised(state.deployment, bodies, moves, state.version)
    return Judged(Proposal(deployment=deployment, moves=moves), said)


def _declare(
    state: State, thing: Declaration, moves: dict[Key, Move | None], said: dict[Key, tuple[Problem, ...]]
) -> None:
    key, body = key_of(thing), body_of(thing)
    there = state.objects.get(key)
    said.pop(key, None)
    if there is None or there.body != body:  # else it was judged when it came
        loaded, problems = load_one(thing, state.deployment)
        if problems:
            said[key] = problems
        if any(problem.is_error for problem in problems):
            return
        body = body_of(loaded.advertisements.get(thing.id) or loaded.subscriptions[thing.id])
    if there is not None and there.body == body:
        moves.pop(key, None)
    elif there is not None and there.origin != "client":
        said[key] = (elsewhere(there),)
    else:
        moves[key] = Move(body=body, origin="client")


def _with_clients(state: State, moves: dict[Key, Move | None]) -> None:
    """A client comes with the first thing it declares, and goes with the last if it came so."""
    left: set[Key] = set()
    if any(move is None for move in moves.values()):
        left = {client_of(key) for key in state.objects if key.kind != "client" and key not in moves}
    for key, move in tuple(moves.items()):
        client = client_of(key)
        there = state.objects.get(client)
        if move is not None:
            left.add(client)
            moves.pop(client, None)
            if there is None:
                moves[client] = Move(body="{}", origin="client")
        elif client not in left and there is not None and there.origin == "client":
            moves[client] = None
