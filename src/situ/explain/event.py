"""What became of an event: where it is, who wanted it and why the others did not, or why it is a dead letter.

An event is named by its id, its key (``client.incarnation.seq``) or its position. Its key and position are looked up;
an id is searched for in everything the bus holds.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Annotated, Any

import msgspec

from situ.bus.interface import Bus
from situ.event.instants import print_instant
from situ.event.message import COUNT, KEY, PLACES, EventKey, StoredMessage
from situ.event.row import Row
from situ.event.seal import seal_of
from situ.event.subjects import BusNames
from situ.explain.dead_letters import StoredDeadLetter, read_dead_letters
from situ.explain.subscription import SubscriptionMatch, explain_filter_match, routing_of
from situ.lang.catalogue import UNKNOWN_EVENT
from situ.lang.json_form import TEXT_ONLY, Explanation
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.model import Deployment
from situ.registry.snapshots import fetch_scopes
from situ.router.explain_visibility import EventReference, Progress, search_log
from situ.routing.routing_table import RoutingTable
from situ.stages.visibility import EventVisibility


class EventExplanation(Explanation, frozen=True, kw_only=True):
    """What became of an event. One that waits for an engine, or is a dead letter, has only what is known of it."""

    key: str
    stream: str
    """Where the event is: the root log, what waits for an engine, or the dead letters."""
    sequence: int
    """The number of its message there."""
    stored: str
    deployment: int
    """The version of what is declared by which its subscriptions are explained."""
    position: int | None
    id: str | None
    source: str | None
    type: str | None
    time: str | None
    received: str | None
    advertisement: str | None
    data: Any
    dead_letter: StoredDeadLetter | None
    """Why it is no event."""
    subscriptions: tuple[SubscriptionMatch, ...]
    """Those to its type: that get it, then to which it is not visible, then that do not want it."""
    elsewhere: Annotated[int, TEXT_ONLY] = 0
    """How many subscriptions are to other types."""
    sent: Annotated[str, TEXT_ONLY] = ""
    """The data as the log has it."""

    @property
    def matched(self) -> tuple[SubscriptionMatch, ...]:
        return tuple(each for each in self.subscriptions if each.matched and each.visible)

    @property
    def hidden(self) -> tuple[SubscriptionMatch, ...]:
        return tuple(each for each in self.subscriptions if not each.visible)

    @property
    def others(self) -> tuple[SubscriptionMatch, ...]:
        return tuple(each for each in self.subscriptions if not each.matched)


async def explain_event(
    name: str, bus: Bus, deployment: Deployment, progress: Progress | None = None
) -> EventExplanation:
    """Find it and explain it; :class:`SituError` with P169 if it is nowhere."""
    wanted = EventReference.parse(name, seal_of(deployment.numbers.seal))
    found = await _in_log(wanted, bus, progress) or await _in_ingress(wanted, bus)
    if found is not None:
        stored, row, stream = found
        if row is None:
            key = str(wanted.key) if wanted.key is not None else stored.headers[KEY]
            return _without_row(key, stream, stored.seq, stored.at, deployment)
        seeing = EventVisibility.of(deployment.numbered())
        if seeing is not None:
            for epoch in seeing.missing([row]):
                seeing.know(epoch, await fetch_scopes(bus, epoch))
        return _explained(stored, row, stream, deployment, seeing)
    letter = await _in_letters(wanted, bus)
    if letter is None:
        raise SituError(UNKNOWN_EVENT(name=name))
    return _without_row(letter.key, BusNames(bus.zone).dead_stream, letter.seq, letter.at, deployment, letter)


async def _in_log(wanted: EventReference, bus: Bus, progress: Progress | None) -> tuple[StoredMessage, Row, str] | None:
    found = await search_log(wanted, bus, progress)
    return None if found is None else (*found, BusNames(bus.zone).root_stream)


async def _in_ingress(wanted: EventReference, bus: Bus) -> tuple[StoredMessage, None, str] | None:
    """Still waiting for an engine, unopened: it is known by the keys on its message, or by its id in the text."""
    stream = BusNames(bus.zone).in_stream
    state = await bus.state(stream)
    async with aclosing(bus.read(stream, state.first, state.last)) as messages:
        async for message in messages:
            if _is_in(wanted, message):
                return message, None, stream
    return None


def _is_in(wanted: EventReference, message: StoredMessage) -> bool:
    if wanted.key is not None:
        first, count = EventKey.parse(message.headers[KEY]), int(message.headers.get(COUNT, "1"))
        same = (first.client, first.incarnation) == (wanted.key.client, wanted.key.incarnation)
        return same and first.seq <= wanted.key.seq < first.seq + count
    if wanted.pos is not None:
        return message.seq == wanted.pos // PLACES and wanted.pos % PLACES < int(message.headers.get(COUNT, "1"))
    return wanted.needle in message.body


async def _in_letters(wanted: EventReference, bus: Bus) -> StoredDeadLetter | None:
    async for letter in read_dead_letters(bus, client=wanted.key.client if wanted.key is not None else ""):
        if wanted.key is not None:
            if letter.key == str(wanted.key):
                return letter
        elif wanted.id and (letter.id == wanted.id or (letter.event or {}).get("id") == wanted.id):
            return letter
    return None


def _without_row(
    key: str, stream: str, seq: int, at: int, deployment: Deployment, letter: StoredDeadLetter | None = None
) -> EventExplanation:
    return EventExplanation(
        key=key,
        stream=stream,
        sequence=seq,
        stored=print_instant(at),
        deployment=deployment.version,
        position=None,
        id=None,
        source=None,
        type=None,
        time=None,
        received=None,
        advertisement=None,
        data=None,
        dead_letter=letter,
        subscriptions=(),
    )


def _explained(
    stored: StoredMessage, row: Row, stream: str, deployment: Deployment, seeing: EventVisibility | None
) -> EventExplanation:
    routing = routing_of(deployment)
    asked = [id for id in sorted(routing.subscriptions) if routing.filters_for(id, row.type)]
    explained = [_for_addressee(explain_filter_match(routing, id, row), row, routing) for id in asked]
    wanting = [each for each in explained if each.matched]
    seen: list[SubscriptionMatch] = []
    hidden: list[SubscriptionMatch] = []
    for each in wanting:
        sees = seeing is None or seeing.sees(seeing.look(row), routing.subscriptions[each.subscription].scopes)
        (seen if sees else hidden).append(replace(each, visible=sees))
    return EventExplanation(
        key=f"{row.client}.{row.incarnation}.{row.seq}",
        stream=stream,
        sequence=stored.seq,
        stored=print_instant(stored.at),
        deployment=deployment.version,
        position=row.pos,
        id=row.id,
        source=row.source,
        type=row.type,
        time=print_instant(row.time),
        received=print_instant(row.recv),
        advertisement=row.ad,
        data=msgspec.json.decode(row.data),
        dead_letter=None,
        subscriptions=(*seen, *hidden, *(each for each in explained if not each.matched)),
        elsewhere=len(routing.subscriptions) - len(asked),
        sent=row.data.decode(),
    )


def _for_addressee(explained: SubscriptionMatch, row: Row, routing: RoutingTable) -> SubscriptionMatch:
    """A client is not sent what it sent, whatever its filter says."""
    own = routing.subscriptions[explained.subscription].client == row.client
    if not own or not explained.matched:
        return explained
    return replace(explained, matched=False, parts=())
