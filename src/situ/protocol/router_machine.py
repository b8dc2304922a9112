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

from collections.abc import Callable
from typing import Any

from situ.lang.catalogue import NO_RIGHT, NOT_CONNECTED, NOT_UNDERSTOOD, OLD_SESSION
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.protocol.declarations import (
    acknowledge_existing,
    add_owned,
    advertisement_of,
    change_scopes,
    current_declaration,
    declare,
    declare_new,
    forget_gone,
    full_list_of,
    is_durable,
    on_adopted,
    on_declared,
    on_defined,
    on_refused,
    on_rescoped,
    remove_owned,
    subscription_of,
    suspend_declarations,
    table_of,
    use_context,
    verb_of,
    withdraw_declaration,
    withdraw_transient,
)
from situ.protocol.effects import (
    Adopted,
    Answer,
    Declaration,
    Declared,
    Define,
    Defined,
    Deployed,
    Effect,
    Garbled,
    Input,
    Link,
    Look,
    Negotiate,
    Presence,
    Received,
    Record,
    Refused,
    Report,
    Rescoped,
    Send,
    SetTimer,
    Start,
    Stored,
    StoreFailed,
    Timer,
    Withdraw,
)
from situ.protocol.messages import (
    Ack,
    Advertise,
    AnswerAdvice,
    AskQuality,
    ChangeExpectation,
    ChangeProfile,
    ChangeScopes,
    Closed,
    Connect,
    ConnectAck,
    DefineContext,
    Describe,
    Disconnect,
    Expect,
    Explain,
    FullList,
    FullListRequest,
    Heartbeat,
    History,
    Loss,
    MoveExpectation,
    Negotiated,
    OfferedAdvertisement,
    Provide,
    Publish,
    RevokeProfile,
    Subscribe,
    Terms,
    Unadvertise,
    Unsubscribe,
    UseContext,
    WantedSubscription,
)
from situ.protocol.publish_sequence import (
    abandon_in_flight,
    on_store_failed,
    on_stored,
    publish,
    publish_plain,
    record_loss,
)
from situ.protocol.router_state import (
    Child,
    Effects,
    PendingContext,
    PendingDeclaration,
    RouterState,
    bad_name,
    next_ticket,
    refuse,
    unknown_declaration,
)
from situ.routing.model import NAME, Advertisement, ClientDeclaration, Subscription

GRACE = "grace"


def step(state: RouterState, given: Input, now: float) -> tuple[Effect, ...]:
    """What follows from an input. The state is the machine's own and changed in place."""
    return tuple(_STEPS[type(given)](state, given, now))


def _start(state: RouterState, given: Start, now: float) -> Effects:
    state.sessions = dict(given.sessions)
    for what in given.owned:
        add_owned(state, what)
    yield SetTimer(name=GRACE, after=state.grace)
    # Those that were here know sooner than by their next heartbeat that they have to come again.
    for client in state.sessions:
        yield Send(client=client, message=FullListRequest(incarnation=state.incarnation))


def _deployed(state: RouterState, given: Deployed, now: float) -> Effects:
    if state.deployed is None or given.version >= state.deployed.version:
        if state.deployed is not None:
            forget_gone(state, state.deployed, given)
        state.deployed, state.grace = given, given.grace
        state.withdrawing = {each for each in state.withdrawing if each[1] in table_of(given, each[0])}
        yield from suspend_declarations(state, given.suspended)


def _timer(state: RouterState, given: Timer, now: float) -> Effects:
    if given.name != GRACE:
        yield Report(client="", code="", text=f"there is no timer {given.name}")
        return
    for client in [client for client, child in state.children.items() if now - child.heard >= state.grace]:
        yield Report(client=client, code="", text=f"silent for {state.grace:g} s, taken to be gone")
        yield from _leave(state, client)
    # Who was here before the router started has had as long to come back.
    for client in list(state.sessions):
        yield Record(client=client, session=None)
        yield Presence(client=client, here=False)
    state.sessions.clear()
    for client in [client for client in {**state.owned, **state.lost} if client not in state.children]:
        yield from withdraw_transient(state, client)
    yield SetTimer(name=GRACE, after=max(state.grace / 6, 0.05))


def _link(state: RouterState, given: Link, now: float) -> Effects:
    child = state.children.get(given.client)
    if child is not None and given.up:
        child.heard = now
    yield from ()


def _garbled(state: RouterState, given: Garbled, now: float) -> Effects:
    problem = NOT_UNDERSTOOD(kind=given.kind, reason=given.reason)
    yield from refuse(given.ticket, given.kind, 0, problem)
    yield Report(client=given.client, code=problem.code.code, text=problem.message)


def _received(state: RouterState, given: Received, now: float) -> Effects:
    message, kind = given.message, type(given.message).__name__
    req = getattr(message, "req", 0)
    if not NAME.fullmatch(given.client):
        reason = "a client's name has letters, digits and `-`, at most 64"
        yield from refuse(given.ticket, kind, req, NO_RIGHT(client=given.client, reason=reason))
        return
    if isinstance(message, Publish) and message.key is None:
        yield from publish_plain(state, given, message)
        return
    child = state.children.get(given.client)
    known = child.session if child is not None else state.sessions.get(given.client, 0)
    if given.session < known:
        problem = OLD_SESSION(client=given.client, session=given.session, known=known)
        yield from refuse(given.ticket, kind, req, problem, expected=known + 1)
        yield Report(client=given.client, code=problem.code.code, text=problem.message)
        return
    if isinstance(message, Connect):
        yield from _connect(state, given, message, now)
        return
    if child is None or given.session > known or not (child.listed or isinstance(message, FullList | Disconnect)):
        yield from refuse(given.ticket, kind, req, NOT_CONNECTED(client=given.client, router=state.router), retry=True)
        return
    child.heard = now
    yield from _MESSAGES[type(message)](state, child, given, message)


def _connect(state: RouterState, given: Received, message: Connect, now: float) -> Effects:
    if given.session < 1 or message.incarnation < 1:
        problem = NOT_UNDERSTOOD(kind="Connect", reason="sessions and incarnations are numbers from 1")
        yield from refuse(given.ticket, "Connect", 0, problem)
        return
    highest = state.incarnations.get(given.client, 0)
    if message.incarnation < highest:
        problem = OLD_SESSION(client=given.client, session=message.incarnation, known=highest)
        yield from refuse(given.ticket, "Connect", 0, problem, expected=highest + 1, name="incarnation")
        return
    state.incarnations[given.client] = message.incarnation
    former = state.children.get(given.client)
    if former is not None:
        yield from abandon_in_flight(state, given.client, former)
        if former.session < given.session:
            yield Send(client=given.client, message=Closed(session=given.session))
    before = state.sessions.pop(given.client, None) if former is None else former.session
    if before != given.session:
        # Another process under the same name: what the one before agreed on ends with it.
        yield Presence(client=given.client, here=False)
    state.children[given.client] = Child(given.session, message.incarnation, now)
    if former is None or former.session != given.session:
        yield Record(client=given.client, session=given.session)
    deployed = state.deployed
    answer = ConnectAck(
        zone=state.zone,
        router=state.router,
        incarnation=state.incarnation,
        epoch=deployed.epoch if deployed else 0,
        version=deployed.version if deployed else 0,
        terms=deployed.terms if deployed else Terms(),
    )
    yield Answer(ticket=given.ticket, message=answer)
    yield Send(client=given.client, message=FullListRequest(incarnation=state.incarnation))


def _full_list(state: RouterState, child: Child, given: Received, message: FullList) -> Effects:
    client = given.client
    listed: list[Declaration] = [ClientDeclaration(name=client, context=message.context)] if message.context else []
    try:
        listed += [advertisement_of(client, name, offered) for name, offered in sorted(message.ads.items())]
        for name, wanted in sorted(message.subs.items()):
            context = wanted.context or message.context
            listed.append(subscription_of(state, client, name, replace(wanted, context=context)))
    except SituError as error:
        yield from refuse(given.ticket, "FullList", 0, error.problems[0])
        return
    if bad := [what.name for what in listed if not NAME.fullmatch(what.name)]:
        yield from refuse(given.ticket, "FullList", 0, bad_name(bad[0]))
        return
    child.listed = True
    child.last = child.stored = max(message.acked, 0)
    yield from abandon_in_flight(state, client, child)
    keys = {(type(what), what.name) for what in listed}
    gone = tuple(what for key, what in state.owned.get(client, {}).items() if key not in keys and not is_durable(what))
    for what in gone:
        remove_owned(state, what)
    yield Answer(ticket=given.ticket, message=full_list_of(state, client))
    yield Presence(client=client, here=True)
    if gone:
        yield Withdraw(ticket=None, what=gone)
    for what in listed:
        pending = PendingDeclaration(client, what, verb_of(what), 0, None)
        if current_declaration(state, what) == what:
            yield Send(client=client, message=acknowledge_existing(state, pending))
        else:
            yield from declare(state, pending)


def _heartbeat(state: RouterState, child: Child, given: Received, message: Heartbeat) -> Effects:
    yield Answer(ticket=given.ticket, message=Ack())


def _disconnect(state: RouterState, child: Child, given: Received, message: Disconnect) -> Effects:
    yield from _leave(state, given.client)
    yield Answer(ticket=given.ticket, message=Ack())


def _advertise(state: RouterState, child: Child, given: Received, message: Advertise) -> Effects:
    offered = OfferedAdvertisement(type=message.type, filter=message.filter, scopes=message.scopes)
    try:
        what = advertisement_of(given.client, message.ad, offered)
    except SituError as error:
        yield from refuse(given.ticket, "Advertise", message.req, error.problems[0])
        return
    yield from declare_new(state, given, what, message.req)


def _subscribe(state: RouterState, child: Child, given: Received, message: Subscribe) -> Effects:
    wanted = WantedSubscription(
        types=message.types,
        filter=message.filter,
        durable=message.durable,
        context=message.context,
        scopes=message.scopes,
    )
    try:
        what = subscription_of(state, given.client, message.sub, wanted)
    except SituError as error:
        yield from refuse(given.ticket, "Subscribe", message.req, error.problems[0])
        return
    yield from declare_new(state, given, what, message.req)


def _use_context(state: RouterState, child: Child, given: Received, message: UseContext) -> Effects:
    yield from use_context(state, given, message.context, message.req)


def _define_context(state: RouterState, child: Child, given: Received, message: DefineContext) -> Effects:
    ticket = next_ticket(state)
    state.defining[ticket] = PendingContext(message.req, given.ticket)
    yield Define(ticket=ticket, client=given.client, context=message.context, text=message.text)


def _unadvertise(state: RouterState, child: Child, given: Received, message: Unadvertise) -> Effects:
    yield from withdraw_declaration(state, given, Advertisement, message.ad, message.req)


def _unsubscribe(state: RouterState, child: Child, given: Received, message: Unsubscribe) -> Effects:
    yield from withdraw_declaration(state, given, Subscription, message.sub, message.req)


def _describe(state: RouterState, child: Child, given: Received, message: Describe) -> Effects:
    yield Look(ticket=given.ticket, message=message, client=given.client)


def _explain(state: RouterState, child: Child, given: Received, message: Explain) -> Effects:
    yield Look(ticket=given.ticket, message=message, client=given.client)


def _history(state: RouterState, child: Child, given: Received, message: History) -> Effects:
    wanted = state.owned.get(given.client, {}).get((Subscription, message.sub))
    if wanted is None and state.deployed is not None:
        wanted = state.deployed.subscriptions.get(f"{given.client}/{message.sub}")
    if not isinstance(wanted, Subscription):
        problem = unknown_declaration(given.client, "subscription", message.sub)
        yield from refuse(given.ticket, "History", message.req, problem)
        return
    yield Look(ticket=given.ticket, message=message, wanted=wanted)


def _negotiate(state: RouterState, child: Child, given: Received, message: Negotiated) -> Effects:
    yield Negotiate(ticket=given.ticket, client=given.client, message=message)


def leave(state: RouterState, client: str) -> tuple[Effect, ...]:
    """What follows when a client is not known any more, for whatever reason."""
    return tuple(_leave(state, client)) if client in state.children else ()


def _leave(state: RouterState, client: str) -> Effects:
    """A client is gone: what it declared for as long as it is there goes with it, what is durable stays."""
    child = state.children.pop(client)
    state.outcomes.pop(client, None)
    yield from abandon_in_flight(state, client, child)
    yield Record(client=client, session=None)
    yield Presence(client=client, here=False)
    yield from withdraw_transient(state, client)


_STEPS: dict[type, Callable[[RouterState, Any, float], Effects]] = {
    Start: _start,
    Received: _received,
    Garbled: _garbled,
    Stored: on_stored,
    StoreFailed: on_store_failed,
    Declared: on_declared,
    Defined: on_defined,
    Rescoped: on_rescoped,
    Refused: on_refused,
    Adopted: on_adopted,
    Deployed: _deployed,
    Link: _link,
    Timer: _timer,
}
_MESSAGES: dict[type, Callable[[RouterState, Child, Received, Any], Effects]] = {
    FullList: _full_list,
    Heartbeat: _heartbeat,
    Disconnect: _disconnect,
    Advertise: _advertise,
    Unadvertise: _unadvertise,
    Subscribe: _subscribe,
    Unsubscribe: _unsubscribe,
    UseContext: _use_context,
    DefineContext: _define_context,
    ChangeScopes: change_scopes,
    Expect: _negotiate,
    ChangeExpectation: _negotiate,
    MoveExpectation: _negotiate,
    Provide: _negotiate,
    ChangeProfile: _negotiate,
    RevokeProfile: _negotiate,
    AnswerAdvice: _negotiate,
    AskQuality: _negotiate,
    Publish: publish,
    Loss: record_loss,
    Describe: _describe,
    Explain: _explain,
    History: _history,
}
