"""What a router knows, and how it refuses.

:class:`RouterState` holds the clients of the router (its children), what they declared, and what is under way: at the
store, at the registry, and until every engine works with it. The functions at the end make the answers that say no.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from situ.lang.catalogue import NO_SUCH_DECLARATION, NOT_UNDERSTOOD, SEQUENCE_GAP
from situ.lang.problems import Problem
from situ.protocol.effects import Answer, Declaration, Deployed, Effect, Received, Report
from situ.protocol.messages import ChangeScopes, FromRouter, Nack

Effects = Iterator[Effect]


@dataclass(slots=True)
class InFlightMessage:
    """A message of events on its way to the store."""

    ticket: int
    first: int
    last: int
    repeats: list[int] = field(default_factory=list)
    """Tickets of the same message, sent again before it was stored."""
    done: bool = False
    dead: tuple[Any, ...] = ()


@dataclass(slots=True)
class Child:
    """A client of this router."""

    session: int
    incarnation: int
    heard: float
    listed: bool = False
    """It has told everything it has."""
    last: int = 0
    """The highest number taken: stored or on its way."""
    stored: int = 0
    flights: deque[InFlightMessage] = field(default_factory=deque)


@dataclass(slots=True)
class PendingDeclaration:
    """A declaration at the registry, and who waits for the outcome."""

    client: str
    what: Declaration
    of: str
    req: int
    answer: int | None
    """Ticket of the request, unless it is answered already."""
    withdrawn: bool = False


@dataclass(slots=True)
class PendingContext:
    """A context at the registry, and who waits for the outcome."""

    req: int
    answer: int


@dataclass(slots=True)
class PendingScopes:
    """A change of scopes at the registry, or on its way into force, and who waits for it."""

    client: str
    session: int
    asked: ChangeScopes
    answer: int

    @property
    def req(self) -> int:
        return self.asked.req


@dataclass(slots=True)
class RouterState:
    """All a router knows."""

    zone: str
    router: str
    incarnation: int
    """Of the keys this router gives to events that come without one."""
    grace: float = 30.0
    children: dict[str, Child] = field(default_factory=dict)
    sessions: dict[str, int] = field(default_factory=dict)
    """Of clients that were here before the router started and have not come back yet."""
    owned: dict[str, dict[tuple[type, str], Declaration]] = field(default_factory=dict)
    """Client → what it declared itself."""
    since: dict[tuple[type, str], int] = field(default_factory=dict)
    """Type and id of what a client declared itself → the version that has it first."""
    incarnations: dict[str, int] = field(default_factory=dict)
    """Client → the highest incarnation of its keys: readers take what is below for repeats."""
    plain: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Client → incarnation and last number of the keys given to its events that came without."""
    storing: dict[int, str] = field(default_factory=dict)
    """Ticket → client, of messages on their way to the store."""
    unkeyed: dict[int, int] = field(default_factory=dict)
    """Ticket → highest number, of messages whose keys this router gave."""
    declaring: dict[int, PendingDeclaration] = field(default_factory=dict)
    defining: dict[int, PendingContext] = field(default_factory=dict)
    waiting: list[tuple[int, PendingDeclaration]] = field(default_factory=list)
    """Accepted declarations, with the version that engines must adopt."""
    withdrawing: set[tuple[type, str]] = field(default_factory=set)
    """Still deployed, but not for long."""
    rescoping: dict[int, PendingScopes] = field(default_factory=dict)
    outcomes: dict[str, tuple[int, ChangeScopes, FromRouter]] = field(default_factory=dict)
    """Client → its session, the last change of scopes that it asked for, and what it was told."""
    rescoped: list[tuple[int, int, PendingScopes]] = field(default_factory=list)
    """Changes of scopes that engines have not adopted, with their version and epoch."""
    lost: dict[str, list[Declaration]] = field(default_factory=dict)
    """Client → what is suspended of it and goes with it, as what it declared for as long as it is there."""
    suspended: frozenset[tuple[type, str, int]] = frozenset()
    """What is suspended, with the version of its object: whoever is here was told."""
    deployed: Deployed | None = None
    adopted: int = 0
    tickets: int = 0


def next_ticket(state: RouterState) -> int:
    state.tickets += 1
    return state.tickets


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Refusals: the answers that say no, each with its code.


def refuse(
    ticket: int,
    of: str,
    req: int,
    problem: Problem,
    *,
    retry: bool = False,
    expected: int | None = None,
    name: str = "",
) -> Effects:
    nack = Nack(
        of=of,
        req=req,
        code=problem.code.code,
        message=problem.message,
        hint=problem.hint,
        retry=retry,
        expected=expected,
        name=name,
    )
    yield Answer(ticket=ticket, message=nack)


def refuse_gap(given: Received, of: str, expected: int, found: int) -> Effects:
    problem = SEQUENCE_GAP(client=given.client, expected=expected, found=found)
    yield from refuse(given.ticket, of, 0, problem, retry=True, expected=expected)
    yield Report(client=given.client, code=problem.code.code, text=problem.message)


def bad_name(name: str) -> Problem:
    return NOT_UNDERSTOOD(kind="declaration", reason=f"`{name[:64]}` is no name: letters, digits and `-`, at most 64")


def unknown_declaration(client: str, kind: str, name: str) -> Problem:
    remedy = "Declare it first; `situ get` lists what is declared."
    return NO_SUCH_DECLARATION(client=client, reason=f"has declared no {kind} `{name[:64]}` itself", remedy=remedy)
