"""What became of an event: where it is, who wanted it and why the others did not, or why it is a dead letter.

An event is named by its id, its key (``client.incarnation.seq``) or its position. Its key and position are looked up;
an id is searched for in everything the bus holds.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

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
from situ.lang.problems import SituError
from situ.model import Deployment
from situ.registry.snapshots import fetch_scopes
from situ.router.explain_visibility import EventReference, Progress, search_log
from situ.routing.routing_table import RoutingTable
from situ.stages.visibility import EventVisibility


@dataclass(frozen=True, slots=True, kw_only=True)
class EventExplanation:
    """``stream`` says where the event is, ``letter`` why it is no event; a waiting one has neither row nor matches."""

    key: str
    stream: str
    seq: int
    at: int
    version: int
    row: Row | None = None
    letter: StoredDeadLetter | None = None
    matched: tuple[SubscriptionMatch, ...] = ()
    hidden: tuple[SubscriptionMatch, ...] = ()
    """Those that want it, and to which it is not visible."""
    others: tuple[SubscriptionMatch, ...] = ()
    """Subscriptions to its type that do not want it."""
    elsewhere: int = 0
    """How many subscriptions are to other types."""

    def as_json(self) -> dict[str, Any]:
        row = self.row
        return {
            "key": self.key,
            "stream": self.stream,
            "sequence": self.seq,
            "stored": print_instant(self.at),
            "deployment": self.version,
            "position": row.pos if row else None,
            "id": row.id if row else None,
            "source": row.source if row else None,
            "type": row.type if row else None,
            "time": print_instant(row.time) if row else None,
            "received": print_instant(row.recv) if row else None,
            "advertisement": row.ad if row else None,
            "data": msgspec.json.decode(row.data) if row else None,
            "dead_letter": self.letter.as_json() if self.letter else None,
            "subscriptions": [
                *(_as_json(each) for each in self.matched),
                *({**_as_json(each), "visible": False} for each in self.hidden),
                *(_as_json(each) for each in self.others),
            ],
        }


def _as_json(explained: SubscriptionMatch) -> dict[str, Any]:
    return {
        "subscription": explained.subscription,
        "matched": explained.matched,
        "joined": explained.joined or None,
        "parts": [
            {"text": part.text, "outcome": part.outcome, "values": dict(part.values)} for part in explained.parts
        ],
    }


async def explain_event(
    name: str, bus: Bus, deployment: Deployment, progress: Progress | None = None
) -> EventExplanation:
    """Find it and explain it; :class:`SituError` with P169 if it is nowhere."""
    wanted = EventReference.parse(name, seal_of(deployment.numbers.seal))
    found = await _in_log(wanted, bus, progress) or await _in_ingress(wanted, bus)
    if found is not None:
        stored, row, stream = found
        if row is None:
            return _waiting(wanted, stored, stream, deployment)
        seeing = EventVisibility.of(deployment.numbered())
        if seeing is not None:
            for epoch in seeing.missing([row]):
                seeing.know(epoch, await fetch_scopes(bus, epoch))
        return _explained(stored, row, stream, deployment, seeing)
    letter = await _in_letters(wanted, bus)
    if letter is None:
        raise SituError(UNKNOWN_EVENT(name=name))
    return EventExplanation(
        key=letter.key,
        stream=BusNames(bus.zone).dead_stream,
        seq=letter.seq,
        at=letter.at,
        version=deployment.version,
        letter=letter,
    )


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


def _waiting(wanted: EventReference, stored: StoredMessage, stream: str, deployment: Deployment) -> EventExplanation:
    key = str(wanted.key) if wanted.key is not None else stored.headers[KEY]
    return EventExplanation(key=key, stream=stream, seq=stored.seq, at=stored.at, version=deployment.version)


def _explained(
    stored: StoredMessage, row: Row, stream: str, deployment: Deployment, seeing: EventVisibility | None
) -> EventExplanation:
    routing = routing_of(deployment)
    asked = [id for id in sorted(routing.subscriptions) if routing.filters_for(id, row.type)]
    explained = [_for_addressee(explain_filter_match(routing, id, row), row, routing) for id in asked]
    wanting = [each for each in explained if each.matched]
    seen = {
        each.subscription
        for each in wanting
        if seeing is None or seeing.sees(seeing.look(row), routing.subscriptions[each.subscription].scopes)
    }
    return EventExplanation(
        key=f"{row.client}.{row.incarnation}.{row.seq}",
        stream=stream,
        seq=stored.seq,
        at=stored.at,
        version=deployment.version,
        row=row,
        matched=tuple(each for each in wanting if each.subscription in seen),
        hidden=tuple(each for each in wanting if each.subscription not in seen),
        others=tuple(each for each in explained if not each.matched),
        elsewhere=len(routing.subscriptions) - len(asked),
    )


def _for_addressee(explained: SubscriptionMatch, row: Row, routing: RoutingTable) -> SubscriptionMatch:
    """A client is not sent what it sent, whatever its filter says."""
    own = routing.subscriptions[explained.subscription].client == row.client
    if not own or not explained.matched:
        return explained
    return replace(explained, matched=False, parts=())
