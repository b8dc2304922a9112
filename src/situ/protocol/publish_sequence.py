"""Events on their way into the store: numbered without gap, stored in a pipeline, acknowledged in order.

Each message must begin where the last one ended. Where one fails, those behind it count as failed, too, whatever
becomes of them: stored once more under the same id they are stored once.
"""

from __future__ import annotations

from collections import deque

from situ.event.message import EventKey
from situ.lang.catalogue import NO_RIGHT, NOT_CONNECTED, OLD_SESSION, STORE_UNAVAILABLE
from situ.lang.tags import NO_TAGS
from situ.protocol.effects import Answer, Received, Report, Store, Stored, StoreFailed
from situ.protocol.messages import Ack, Loss, Publish, PublishAck
from situ.protocol.router_state import Child, Effects, InFlightMessage, RouterState, next_ticket, refuse, refuse_gap

MOST_TOLD = 10_000
"""Dead letters that an answer names: one of very many would be larger than the bus takes, and nobody was told."""


def publish(state: RouterState, child: Child, given: Received, message: Publish) -> Effects:
    key = message.key
    if key is None or key.client != given.client:
        reason = f"its events have keys of `{key.client if key else ''}`"
        yield from refuse(given.ticket, "Publish", 0, NO_RIGHT(client=given.client, reason=reason))
        return
    if key.incarnation != child.incarnation:
        problem = OLD_SESSION(client=given.client, session=key.incarnation, known=child.incarnation)
        yield from refuse(given.ticket, "Publish", 0, problem)
        return
    first, last = key.seq, key.seq + message.count - 1
    if first == child.last + 1:
        child.last = last
        ticket = next_ticket(state)
        child.flights.append(InFlightMessage(ticket, first, last, [given.ticket]))
        state.storing[ticket] = given.client
        yield Store(ticket=ticket, key=key, count=message.count, body=message.body)
    elif last <= child.stored:
        yield Answer(ticket=given.ticket, message=PublishAck(up_to=child.stored))
    elif flight := next((each for each in child.flights if (each.first, each.last) == (first, last)), None):
        flight.repeats.append(given.ticket)
    else:
        yield from refuse_gap(given, "Publish", child.last + 1, first)


def abandon_in_flight(state: RouterState, client: str, child: Child) -> Effects:
    """What is on its way for this child no longer counts: it will be sent again, and who waits is told so."""
    for flight in child.flights:
        state.storing.pop(flight.ticket, None)
        for ticket in flight.repeats:
            yield from refuse(ticket, "Publish", 0, NOT_CONNECTED(client=client, router=state.router), retry=True)
    child.flights.clear()


def publish_plain(state: RouterState, given: Received, message: Publish) -> Effects:
    """Events of somebody who numbers nothing: the router does."""
    if given.client in state.children:
        reason = "it is connected and numbers its events itself"
        yield from refuse(given.ticket, "Publish", 0, NO_RIGHT(client=given.client, reason=reason))
        return
    incarnation, last = state.plain.get(given.client, (0, 0))
    highest = state.incarnations.get(given.client, 0)
    if incarnation < max(highest, state.incarnation):
        incarnation, last = max(highest + 1, state.incarnation), 0
    state.incarnations[given.client] = incarnation
    key = EventKey(given.client, incarnation, last + 1)
    state.plain[given.client] = incarnation, last + message.count
    ticket = next_ticket(state)
    state.unkeyed[ticket] = given.ticket
    yield Store(ticket=ticket, key=key, count=message.count, body=message.body)


def on_stored(state: RouterState, given: Stored, now: float) -> Effects:
    if (waits := state.unkeyed.pop(given.ticket, None)) is not None:
        yield Answer(ticket=waits, message=PublishAck(up_to=0, dead=given.dead[:MOST_TOLD]))
        return
    child = state.children.get(state.storing.pop(given.ticket, ""))
    if child is None:
        return
    for flight in child.flights:
        if flight.ticket == given.ticket:
            flight.done, flight.dead = True, given.dead[:MOST_TOLD]
            break
    while child.flights and child.flights[0].done:
        flight = child.flights.popleft()
        child.stored = flight.last
        for ticket in flight.repeats:
            yield Answer(ticket=ticket, message=PublishAck(up_to=flight.last, dead=flight.dead))
    if not child.flights:
        child.stored = child.last


def on_store_failed(state: RouterState, given: StoreFailed, now: float) -> Effects:
    problem = STORE_UNAVAILABLE(reason=given.reason)
    if (waits := state.unkeyed.pop(given.ticket, None)) is not None:
        yield from refuse(waits, "Publish", 0, problem, retry=True)
        return
    client = state.storing.pop(given.ticket, "")
    child = state.children.get(client)
    if child is None:
        return
    yield Report(client=client, code=problem.code.code, text=problem.message)
    kept: deque[InFlightMessage] = deque()
    while child.flights and child.flights[0].ticket != given.ticket:
        kept.append(child.flights.popleft())
    if child.flights:
        child.last = child.flights[0].first - 1
    for flight in child.flights:
        state.storing.pop(flight.ticket, None)
        for ticket in flight.repeats:
            yield from refuse(ticket, "Publish", 0, problem, retry=True, expected=child.last + 1)
    child.flights = kept


def record_loss(state: RouterState, child: Child, given: Received, message: Loss) -> Effects:
    if message.from_seq != child.last + 1 or message.to_seq < message.from_seq:
        yield from refuse_gap(given, "Loss", child.last + 1, message.from_seq)
        return
    child.last = message.to_seq
    if not child.flights:
        child.stored = child.last
    lost = f"lost {message.from_seq} to {message.to_seq}{_where(state, given.client, message)}"
    yield Report(client=given.client, code="", text=f"{lost}: {message.reason or 'no reason given'}")
    yield Answer(ticket=given.ticket, message=Ack())


def _where(state: RouterState, client: str, loss: Loss) -> str:
    """The tags under which something was lost: whoever reads of it must know whose it was."""
    ads = state.deployed.advertisements if state.deployed is not None else {}
    lost = [ad for name in sorted(loss.counts) if (ad := ads.get(f"{client}/{name}")) is not None]
    tags = {
        ", ".join(f"{dimension} {tag}" for dimension, tag in ad.scopes.as_json().items()): None
        for ad in lost
        if ad.scopes != NO_TAGS
    }
    return f" in {'; '.join(tags)}" if tags else ""
