"""The router: a state machine without I/O, for one zone and one router.

``step`` takes what happened and gives what to do. It is total: whatever is unknown, stale or malformed changes nothing,
is answered where somebody waits for an answer, and reported. Nothing in here reads a clock or draws a number, so the
same inputs give the same effects.

A client connects, is asked for everything it has, and tells it; from then on it publishes and declares. Its events are
numbered without gap: each message must begin where the last one ended, and is acknowledged when it is stored, in order.
Storing is pipelined; where one message fails, those behind it count as failed, too, whatever becomes of them: stored
once more under the same id they are stored once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from situ.catalogue import (
    NO_RIGHT,
    NO_SUCH_DECLARATION,
    NOT_CONNECTED,
    NOT_UNDERSTOOD,
    OLD_SESSION,
    SEQUENCE_GAP,
    STORE_UNAVAILABLE,
)
from situ.errors import Problem
from situ.event.message import EventKey
from situ.overlay.effects import (
    Adopted,
    Answer,
    Declaration,
    Declare,
    Declared,
    Deployed,
    Effect,
    Garbled,
    Input,
    Link,
    Look,
    Received,
    Record,
    Refused,
    Report,
    Send,
    SetTimer,
    Start,
    Store,
    Stored,
    StoreFailed,
    Timer,
    Withdraw,
)
from situ.overlay.messages import (
    Ack,
    AdAck,
    Advertise,
    Closed,
    Connect,
    ConnectAck,
    Describe,
    Disconnect,
    FromRouter,
    FullList,
    FullListAck,
    FullListRequest,
    Heartbeat,
    History,
    Loss,
    Nack,
    Publish,
    PublishAck,
    SubAck,
    Subscribe,
    Terms,
    Unadvertise,
    Unsubscribe,
    Wanted,
)
from situ.subscription.model import NAME, Advertisement, Subscription

ACCEPTED, INSTALLED = "accepted", "installed"
GRACE = "grace"

Effects = Iterator[Effect]
T = TypeVar("T")


@dataclass(slots=True)
class Flight:
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
    flights: deque[Flight] = field(default_factory=deque)


@dataclass(slots=True)
class Pending:
    """A declaration at the registry, and who waits for the outcome."""

    client: str
    what: Declaration
    of: str
    req: int
    answer: int | None
    """Ticket of the request, unless it is answered already."""
    withdrawn: bool = False


@dataclass(slots=True)
class State:
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
    incarnations: dict[str, int] = field(default_factory=dict)
    """Client → the highest incarnation of its keys: readers take what is below for repeats."""
    plain: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Client → incarnation and last number of the keys given to its events that came without."""
    storing: dict[int, str] = field(default_factory=dict)
    """Ticket → client, of messages on their way to the store."""
    unkeyed: dict[int, int] = field(default_factory=dict)
    """Ticket → highest number, of messages whose keys this router gave."""
    declaring: dict[int, Pending] = field(default_factory=dict)
    waiting: list[tuple[int, Pending]] = field(default_factory=list)
    """Accepted declarations, with the version that engines must adopt."""
    withdrawing: set[tuple[type, str]] = field(default_factory=set)
    """Still deployed, but not for long."""
    deployed: Deployed | None = None
    adopted: int = 0
    tickets: int = 0


def step(state: State, given: Input, now: float) -> tuple[Effect, ...]:
    """What follows from an input. The state is the machine's own and changed in place."""
    return tuple(_STEPS[type(given)](state, given, now))


# ── what happens around ───────────────────────────────────────────────────────────────────────────


def _start(state: State, given: Start, now: float) -> Effects:
    state.sessions = dict(given.sessions)
    for what in given.owned:
        _own(state, what)
    yield SetTimer(name=GRACE, after=state.grace)
    # Those that were here know sooner than by their next heartbeat that they have to come again.
    for client in state.sessions:
        yield Send(client=client, message=FullListRequest(incarnation=state.incarnation))


def _deployed(state: State, given: Deployed, now: float) -> Effects:
    if state.deployed is None or given.version >= state.deployed.version:
        state.deployed = given
        state.withdrawing = {each for each in state.withdrawing if each[1] in _table(given, each[0])}
    yield from ()


def _adopted(state: State, given: Adopted, now: float) -> Effects:
    state.adopted = max(state.adopted, given.version) if not given.missing else state.adopted
    held: list[tuple[int, Pending]] = []
    for version, pending in state.waiting:
        if version > given.version:
            held.append((version, pending))
            continue
        if given.missing:
            held.append((version, pending))
        if pending.client in state.children:
            word = ACCEPTED if given.missing else INSTALLED
            yield Send(client=pending.client, message=_acknowledged(pending, word, version, given.missing))
    state.waiting = held


def _timer(state: State, given: Timer, now: float) -> Effects:
    if given.name != GRACE:
        yield Report(client="", code="", text=f"there is no timer {given.name}")
        return
    for client in [client for client, child in state.children.items() if now - child.heard >= state.grace]:
        yield Report(client=client, code="", text=f"silent for {state.grace:g} s, taken to be gone")
        yield from _leave(state, client)
    # Who was here before the router started has had as long to come back.
    for client in list(state.sessions):
        yield Record(client=client, session=None)
    state.sessions.clear()
    for client in [client for client in state.owned if client not in state.children]:
        yield from _withdraw_passing(state, client)
    yield SetTimer(name=GRACE, after=max(state.grace / 6, 0.05))


def _link(state: State, given: Link, now: float) -> Effects:
    child = state.children.get(given.client)
    if child is not None and given.up:
        child.heard = now
    yield from ()


def _garbled(state: State, given: Garbled, now: float) -> Effects:
    problem = NOT_UNDERSTOOD(kind=given.kind, reason=given.reason)
    yield from _refuse(given.ticket, given.kind, 0, problem)
    yield Report(client=given.client, code=problem.code.code, text=problem.message)


# ── what clients say ──────────────────────────────────────────────────────────────────────────────


def _received(state: State, given: Received, now: float) -> Effects:
    message, kind = given.message, type(given.message).__name__
    req = getattr(message, "req", 0)
    if not NAME.fullmatch(given.client):
        reason = "a client's name has letters, digits and `-`, at most 64"
        yield from _refuse(given.ticket, kind, req, NO_RIGHT(client=given.client, reason=reason))
        return
    if isinstance(message, Publish) and message.key is None:
        yield from _publish_plain(state, given, message)
        return
    child = state.children.get(given.client)
    known = child.session if child is not None else state.sessions.get(given.client, 0)
    if given.session < known:
        problem = OLD_SESSION(client=given.client, session=given.session, known=known)
        yield from _refuse(given.ticket, kind, req, problem, expected=known + 1)
        yield Report(client=given.client, code=problem.code.code, text=problem.message)
        return
    if isinstance(message, Connect):
        yield from _connect(state, given, message, now)
        return
    if child is None or given.session > known or not (child.listed or isinstance(message, FullList | Disconnect)):
        yield from _refuse(given.ticket, kind, req, NOT_CONNECTED(client=given.client, router=state.router), retry=True)
        return
    child.heard = now
    yield from _MESSAGES[type(message)](state, child, given, message)


def _connect(state: State, given: Received, message: Connect, now: float) -> Effects:
    if given.session < 1 or message.incarnation < 1:
        problem = NOT_UNDERSTOOD(kind="Connect", reason="sessions and incarnations are numbers from 1")
        yield from _refuse(given.ticket, "Connect", 0, problem)
        return
    highest = state.incarnations.get(given.client, 0)
    if message.incarnation < highest:
        problem = OLD_SESSION(client=given.client, session=message.incarnation, known=highest)
        yield from _refuse(given.ticket, "Connect", 0, problem, expected=highest + 1, name="incarnation")
        return
    state.incarnations[given.client] = message.incarnation
    former = state.children.get(given.client)
    if former is not None:
        for flight in former.flights:
            state.storing.pop(flight.ticket, None)
        if former.session < given.session:
            yield Send(client=given.client, message=Closed(session=given.session))
    state.sessions.pop(given.client, None)
    state.children[given.client] = Child(given.session, message.incarnation, now)
    if former is None or former.session != given.session:
        yield Record(client=given.client, session=given.session)
    deployed = state.deployed
    answer = ConnectAck(
        zone=state.zone,
        router=state.router,
        incarnation=state.incarnation,
        version=deployed.version if deployed else 0,
        terms=deployed.terms if deployed else Terms(),
    )
    yield Answer(ticket=given.ticket, message=answer)
    yield Send(client=given.client, message=FullListRequest(incarnation=state.incarnation))


def _full_list(state: State, child: Child, given: Received, message: FullList) -> Effects:
    client = given.client
    listed: list[Declaration] = [
        Advertisement(client=client, name=name, type=type) for name, type in sorted(message.ads.items())
    ]
    listed += [_subscription(client, name, wanted) for name, wanted in sorted(message.subs.items())]
    if bad := [what.name for what in listed if not NAME.fullmatch(what.name)]:
        yield from _refuse(given.ticket, "FullList", 0, _bad_name(bad[0]))
        return
    child.listed = True
    child.last = child.stored = max(message.acked, 0)
    for flight in child.flights:
        state.storing.pop(flight.ticket, None)
    child.flights.clear()
    keys = {(type(what), what.name) for what in listed}
    gone = tuple(what for key, what in state.owned.get(client, {}).items() if key not in keys and not _is_durable(what))
    for what in gone:
        _disown(state, what)
    yield Answer(ticket=given.ticket, message=_known_of(state, client))
    if gone:
        yield Withdraw(ticket=None, what=gone)
    for what in listed:
        if _standing(state, what) != what:
            yield from _declare(state, Pending(client, what, _verb(what), 0, None))


def _heartbeat(state: State, child: Child, given: Received, message: Heartbeat) -> Effects:
    yield Answer(ticket=given.ticket, message=Ack())


def _disconnect(state: State, child: Child, given: Received, message: Disconnect) -> Effects:
    yield from _leave(state, given.client)
    yield Answer(ticket=given.ticket, message=Ack())


def _advertise(state: State, child: Child, given: Received, message: Advertise) -> Effects:
    what = Advertisement(client=given.client, name=message.ad, type=message.type)
    yield from _new_declaration(state, given, what, message.req)


def _subscribe(state: State, child: Child, given: Received, message: Subscribe) -> Effects:
    wanted = Wanted(types=message.types, filter=message.filter, durable=message.durable)
    yield from _new_declaration(state, given, _subscription(given.client, message.sub, wanted), message.req)


def _unadvertise(state: State, child: Child, given: Received, message: Unadvertise) -> Effects:
    yield from _take_back(state, given, Advertisement, message.ad, message.req)


def _unsubscribe(state: State, child: Child, given: Received, message: Unsubscribe) -> Effects:
    yield from _take_back(state, given, Subscription, message.sub, message.req)


def _describe(state: State, child: Child, given: Received, message: Describe) -> Effects:
    yield Look(ticket=given.ticket, message=message)


def _history(state: State, child: Child, given: Received, message: History) -> Effects:
    wanted = state.owned.get(given.client, {}).get((Subscription, message.sub))
    if wanted is None and state.deployed is not None:
        wanted = state.deployed.subscriptions.get(f"{given.client}/{message.sub}")
    if not isinstance(wanted, Subscription):
        problem = _unknown(given.client, "subscription", message.sub)
        yield from _refuse(given.ticket, "History", message.req, problem)
        return
    yield Look(ticket=given.ticket, message=message, wanted=wanted)


def _loss(state: State, child: Child, given: Received, message: Loss) -> Effects:
    if message.from_seq != child.last + 1 or message.to_seq < message.from_seq:
        yield from _gap(given, "Loss", child.last + 1, message.from_seq)
        return
    child.last = message.to_seq
    if not child.flights:
        child.stored = child.last
    text = f"lost {message.from_seq} to {message.to_seq}: {message.reason or 'no reason given'}"
    yield Report(client=given.client, code="", text=text)
    yield Answer(ticket=given.ticket, message=Ack())


# ── events ────────────────────────────────────────────────────────────────────────────────────────


def _publish(state: State, child: Child, given: Received, message: Publish) -> Effects:
    key = message.key
    if key is None or key.client != given.client:
        reason = f"its events have keys of `{key.client if key else ''}`"
        yield from _refuse(given.ticket, "Publish", 0, NO_RIGHT(client=given.client, reason=reason))
        return
    if key.incarnation != child.incarnation:
        problem = OLD_SESSION(client=given.client, session=key.incarnation, known=child.incarnation)
        yield from _refuse(given.ticket, "Publish", 0, problem)
        return
    first, last = key.seq, key.seq + message.count - 1
    if first == child.last + 1:
        child.last = last
        ticket = _ticket(state)
        child.flights.append(Flight(ticket, first, last, [given.ticket]))
        state.storing[ticket] = given.client
        yield Store(ticket=ticket, key=key, count=message.count, body=message.body)
    elif last <= child.stored:
        yield Answer(ticket=given.ticket, message=PublishAck(up_to=child.stored))
    elif flight := next((each for each in child.flights if (each.first, each.last) == (first, last)), None):
        flight.repeats.append(given.ticket)
    else:
        yield from _gap(given, "Publish", child.last + 1, first)


def _publish_plain(state: State, given: Received, message: Publish) -> Effects:
    """Events of somebody who numbers nothing: the router does."""
    if given.client in state.children:
        reason = "it is connected and numbers its events itself"
        yield from _refuse(given.ticket, "Publish", 0, NO_RIGHT(client=given.client, reason=reason))
        return
    incarnation, last = state.plain.get(given.client, (0, 0))
    highest = state.incarnations.get(given.client, 0)
    if incarnation < max(highest, state.incarnation):
        incarnation, last = max(highest + 1, state.incarnation), 0
    state.incarnations[given.client] = incarnation
    key = EventKey(given.client, incarnation, last + 1)
    state.plain[given.client] = incarnation, last + message.count
    ticket = _ticket(state)
    state.unkeyed[ticket] = given.ticket
    yield Store(ticket=ticket, key=key, count=message.count, body=message.body)


def _stored(state: State, given: Stored, now: float) -> Effects:
    if (waits := state.unkeyed.pop(given.ticket, None)) is not None:
        yield Answer(ticket=waits, message=PublishAck(up_to=0, dead=given.dead))
        return
    child = state.children.get(state.storing.pop(given.ticket, ""))
    if child is None:
        return
    for flight in child.flights:
        if flight.ticket == given.ticket:
            flight.done, flight.dead = True, given.dead
            break
    while child.flights and child.flights[0].done:
        flight = child.flights.popleft()
        child.stored = flight.last
        for ticket in flight.repeats:
            yield Answer(ticket=ticket, message=PublishAck(up_to=flight.last, dead=flight.dead))
    if not child.flights:
        child.stored = child.last


def _store_failed(state: State, given: StoreFailed, now: float) -> Effects:
    problem = STORE_UNAVAILABLE(reason=given.reason)
    if (waits := state.unkeyed.pop(given.ticket, None)) is not None:
        yield from _refuse(waits, "Publish", 0, problem, retry=True)
        return
    client = state.storing.pop(given.ticket, "")
    child = state.children.get(client)
    if child is None:
        return
    yield Report(client=client, code=problem.code.code, text=problem.message)
    kept: deque[Flight] = deque()
    while child.flights and child.flights[0].ticket != given.ticket:
        kept.append(child.flights.popleft())
    if child.flights:
        child.last = child.flights[0].first - 1
    for flight in child.flights:
        state.storing.pop(flight.ticket, None)
        for ticket in flight.repeats:
            yield from _refuse(ticket, "Publish", 0, problem, retry=True, expected=child.last + 1)
    child.flights = kept


# ── declarations ──────────────────────────────────────────────────────────────────────────────────


def _new_declaration(state: State, given: Received, what: Declaration, req: int) -> Effects:
    if not NAME.fullmatch(what.name):
        yield from _refuse(given.ticket, _verb(what), req, _bad_name(what.name))
        return
    pending = Pending(given.client, what, _verb(what), req, given.ticket)
    if _standing(state, what) == what and not any(_same(each.what, what) for each in state.declaring.values()):
        version = max([state.adopted, *(each[0] for each in state.waiting if each[1].what == what)])
        word = INSTALLED if version <= state.adopted else ACCEPTED
        if word == ACCEPTED:
            state.waiting.append((version, pending))
        yield Answer(ticket=given.ticket, message=_acknowledged(pending, word, version))
        return
    yield from _declare(state, pending)


def _declare(state: State, pending: Pending) -> Effects:
    ticket = _ticket(state)
    state.declaring[ticket] = pending
    yield Declare(ticket=ticket, what=pending.what)


def _take_back(state: State, given: Received, of: type[Declaration], name: str, req: int) -> Effects:
    what = state.owned.get(given.client, {}).get((of, name))
    verb = "Unadvertise" if of is Advertisement else "Unsubscribe"
    if what is None:
        kind = "advertisement" if of is Advertisement else "subscription"
        problem = _unknown(given.client, kind, name)
        yield from _refuse(given.ticket, verb, req, problem)
        return
    ticket = _ticket(state)
    state.declaring[ticket] = Pending(given.client, what, verb, req, given.ticket, withdrawn=True)
    yield Withdraw(ticket=ticket, what=(what,))


def _declared(state: State, given: Declared, now: float) -> Effects:
    pending = state.declaring.pop(given.ticket, None)
    if pending is None:
        return
    if pending.withdrawn:
        _disown(state, pending.what)
        state.waiting = [each for each in state.waiting if not _same(each[1].what, pending.what)]
        if pending.answer is not None:
            yield Answer(ticket=pending.answer, message=Ack(req=pending.req))
        return
    _own(state, pending.what)
    installed = given.version <= state.adopted
    message = _acknowledged(pending, INSTALLED if installed else ACCEPTED, given.version)
    if not installed:
        state.waiting.append((given.version, pending))
    if pending.answer is not None:
        yield Answer(ticket=pending.answer, message=message)
    elif pending.client in state.children:
        yield Send(client=pending.client, message=message)
    # Who left in the meantime cannot take it back any more.
    if pending.client not in state.children and not _is_durable(pending.what):
        yield from _withdraw_passing(state, pending.client)


def _refused(state: State, given: Refused, now: float) -> Effects:
    pending = state.declaring.pop(given.ticket, None)
    if pending is None:
        return
    nack = Nack(
        of=pending.of,
        req=pending.req,
        code=given.code,
        message=given.message,
        hint=given.hint,
        name=pending.what.name,
    )
    if pending.answer is not None:
        yield Answer(ticket=pending.answer, message=nack)
    else:
        yield Send(client=pending.client, message=nack)


def _leave(state: State, client: str) -> Effects:
    """A client is gone: what it declared for as long as it is there goes with it, what is durable stays."""
    child = state.children.pop(client)
    for flight in child.flights:
        state.storing.pop(flight.ticket, None)
    yield Record(client=client, session=None)
    yield from _withdraw_passing(state, client)


def _withdraw_passing(state: State, client: str) -> Effects:
    gone = tuple(what for what in state.owned.get(client, {}).values() if not _is_durable(what))
    for what in gone:
        _disown(state, what)
    if gone:
        state.waiting = [each for each in state.waiting if not any(_same(each[1].what, what) for what in gone)]
        yield Withdraw(ticket=None, what=gone)


# ── small things ──────────────────────────────────────────────────────────────────────────────────


def _refuse(
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


def _gap(given: Received, of: str, expected: int, found: int) -> Effects:
    problem = SEQUENCE_GAP(client=given.client, expected=expected, found=found)
    yield from _refuse(given.ticket, of, 0, problem, retry=True, expected=expected)
    yield Report(client=given.client, code=problem.code.code, text=problem.message)


def _bad_name(name: str) -> Problem:
    return NOT_UNDERSTOOD(kind="declaration", reason=f"`{name[:64]}` is no name: letters, digits and `-`, at most 64")


def _unknown(client: str, kind: str, name: str) -> Problem:
    remedy = "Declare it first; `situ get` lists what is declared."
    return NO_SUCH_DECLARATION(client=client, reason=f"has declared no {kind} `{name[:64]}` itself", remedy=remedy)


def _ticket(state: State) -> int:
    state.tickets += 1
    return state.tickets


def _subscription(client: str, name: str, wanted: Wanted) -> Subscription:
    types = tuple(sorted(set(wanted.types)))
    return Subscription(client=client, name=name, types=types, where=wanted.filter, durable=wanted.durable)


def _standing(state: State, what: Declaration) -> Declaration | None:
    """What is declared under this name, by the client or by the project."""
    own = state.owned.get(what.client, {}).get((type(what), what.name))
    if own is not None or state.deployed is None or (type(what), what.id) in state.withdrawing:
        return own
    return _table(state.deployed, type(what)).get(what.id)


def _table(deployed: Deployed, of: type) -> Mapping[str, Declaration]:
    return deployed.advertisements if of is Advertisement else deployed.subscriptions


def _known_of(state: State, client: str) -> FullListAck:
    deployed = state.deployed
    if deployed is None:
        return FullListAck()
    left = state.withdrawing
    ads = _of_client(deployed.advertisements, client)
    subs = _of_client(deployed.subscriptions, client)
    return FullListAck(
        version=deployed.version,
        ads={ad.name: ad.type for ad in ads if (Advertisement, ad.id) not in left},
        subs={
            sub.name: Wanted(types=sub.types, filter=sub.where, durable=sub.durable)
            for sub in subs
            if (Subscription, sub.id) not in left
        },
    )


def _of_client(table: Mapping[str, T], client: str) -> list[T]:
    return [what for id, what in table.items() if id.startswith(client + "/")]


def _acknowledged(pending: Pending, word: str, version: int, missing: tuple[str, ...] = ()) -> FromRouter:
    what = pending.what
    if isinstance(what, Advertisement):
        return AdAck(req=pending.req, ad=what.name, state=word, version=version, missing=missing)
    return SubAck(req=pending.req, sub=what.name, state=word, version=version, missing=missing)


def _verb(what: Declaration) -> str:
    return "Advertise" if isinstance(what, Advertisement) else "Subscribe"


def _same(one: Declaration, other: Declaration) -> bool:
    return type(one) is type(other) and one.id == other.id


def _is_durable(what: Declaration) -> bool:
    return isinstance(what, Subscription) and what.durable


def _own(state: State, what: Declaration) -> None:
    state.withdrawing.discard((type(what), what.id))
    state.owned.setdefault(what.client, {})[type(what), what.name] = what


def _disown(state: State, what: Declaration) -> None:
    state.withdrawing.add((type(what), what.id))
    own = state.owned.get(what.client, {})
    own.pop((type(what), what.name), None)
    if not own:
        state.owned.pop(what.client, None)


_STEPS: dict[type, Callable[[State, Any, float], Effects]] = {
    Start: _start,
    Received: _received,
    Garbled: _garbled,
    Stored: _stored,
    StoreFailed: _store_failed,
    Declared: _declared,
    Refused: _refused,
    Adopted: _adopted,
    Deployed: _deployed,
    Link: _link,
    Timer: _timer,
}
_MESSAGES: dict[type, Callable[[State, Child, Received, Any], Effects]] = {
    FullList: _full_list,
    Heartbeat: _heartbeat,
    Disconnect: _disconnect,
    Advertise: _advertise,
    Unadvertise: _unadvertise,
    Subscribe: _subscribe,
    Unsubscribe: _unsubscribe,
    Publish: _publish,
    Loss: _loss,
    Describe: _describe,
    History: _history,
}
