"""Why an event is visible to a subscription, or not, for a client that asks its router.

`EventReference`, `search_log` and `search_dead_letters` find the event that somebody names, `VisibilityExplainer`
answers what this client may know.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from situ.bus.interface import Bus
from situ.event.lines import dead_client, decode_line, stored_lines
from situ.event.message import PLACES, EventKey, StoredMessage, position
from situ.event.row import Row
from situ.event.seal import Seal
from situ.event.subjects import BusNames
from situ.lang.catalogue import NO_RIGHT, NO_SUCH_DECLARATION, NOT_AVAILABLE, UNKNOWN_EVENT, UNKNOWN_SUBSCRIPTION
from situ.lang.documents.strict_json import JSON_LIMITS, read_json, to_text
from situ.lang.problems import Problem, SituError
from situ.lang.tags import NO_TAGS, TagSet
from situ.lang.types.json_codec import decode
from situ.model import Deployment
from situ.protocol.messages import Explain, ExplainAck
from situ.registry.snapshots import fetch_scopes
from situ.routing.model import Subscription
from situ.scopes.explanation import may_know_all
from situ.scopes.rights import Principal
from situ.stages.explain_visibility import (
    EventVisibilityExplanation,
    Side,
    VisibilityAnswer,
    about_event,
    about_sample,
    explain_row,
    explain_sample,
    explanation_lines,
    may_know,
    of_one_side,
    sample_event,
    without_scopes,
)
from situ.stages.visibility import EventVisibility

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Search for one event by its id, its key or its position, in the root log or among dead letters. Key and position are
# looked up; an id is searched for in everything the log holds.

Progress = Callable[[str, int, int], None]
Accept = Callable[[Row], Awaitable[bool]]
"""Whether somebody may find it: what he may not find is looked past, as if it were not there."""

_SLACK = timedelta(minutes=10)
_CLOCK = range(10**12, 10**14)
"""Incarnations that begin at the clock are milliseconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventReference:
    """What to look for: a key, a position or an id."""

    key: EventKey | None = None
    pos: int | None = None
    id: str = ""

    @classmethod
    def parse(cls, text: str, seal: Seal | None = None) -> EventReference:
        """As people write it: as the log has it, or as clients get it, sealed by this seal."""
        client, dot, rest = text.partition(".")
        token, more, stage = (rest if dot else text).partition(".")
        if seal is not None and (numbers := seal.opened(token)) is not None:
            key = EventKey(client, *numbers)
            if not dot:
                return cls(id=f"{numbers[0]}-{numbers[1]}")
            return cls(id=f"{key}.{stage}") if more else cls(key=key)
        try:
            return cls(key=EventKey.parse(text))
        except ValueError:
            pass
        return cls(pos=int(text)) if text.isascii() and text.isdigit() and int(text) >= PLACES else cls(id=text)

    @property
    def needle(self) -> bytes:
        """What the line of the event has in it."""
        if self.key is not None:
            return b'"situkey":' + msgspec.json.encode(str(self.key))
        if self.pos is not None:
            return b'"situpos":' + msgspec.json.encode(str(self.pos))
        return b'"id":' + msgspec.json.encode(self.id)

    def fits(self, row: Row) -> bool:
        if self.key is not None:
            return (row.client, row.incarnation, row.seq) == (self.key.client, self.key.incarnation, self.key.seq)
        return row.pos == self.pos if self.pos is not None else row.id == self.id


async def search_log(
    wanted: EventReference, bus: Bus, progress: Progress | None = None, accept: Accept | None = None
) -> tuple[StoredMessage, Row] | None:
    """The event, with the message of the root log that it is in."""
    stream = BusNames(bus.zone).root_stream
    state = await bus.state(stream)
    if wanted.pos is not None and state.first <= (seq := wanted.pos // PLACES) <= state.last:
        found = await _among(wanted, bus, stream, seq, seq, needle=b"", accept=accept)
        if found is not None:
            return found
    first = state.first
    if wanted.key is not None and wanted.key.incarnation in _CLOCK:
        began = datetime.fromtimestamp(wanted.key.incarnation / 1000, UTC) - _SLACK
        first = max(first, await bus.find(stream, began))
    return await _among(wanted, bus, stream, first, state.last, needle=wanted.needle, progress=progress, accept=accept)


async def search_dead_letters(wanted: EventReference, bus: Bus, accept: Accept | None = None) -> Row | None:
    """The dead letter of this id, as the event that it is."""
    if not wanted.id:
        return None
    stream = BusNames(bus.zone).dead_stream
    state = await bus.state(stream)
    found = await _among(wanted, bus, stream, state.first, state.last, needle=wanted.needle, accept=accept)
    return found[1] if found is not None else None


async def _among(
    wanted: EventReference,
    bus: Bus,
    stream: str,
    first: int,
    last: int,
    *,
    needle: bytes,
    progress: Progress | None = None,
    accept: Accept | None = None,
) -> tuple[StoredMessage, Row] | None:
    async with aclosing(bus.read(stream, first, last)) as messages:
        async for message in messages:
            if progress is not None:
                progress(stream, message.seq - first + 1, max(last - first + 1, 1))
            if needle not in message.body:
                continue
            for place, line in enumerate(stored_lines(message)):
                row = decode_line(line, pos=position(message.seq, place))
                if wanted.fits(row) and (accept is None or await accept(row)):
                    return message, row
    return None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The answer. Who observes or administers every closed dimension is told everything. Others may ask about their own
# events and about their own subscriptions, and are told the answer and what they said themselves. What they may not see
# is looked past: whether it is there makes no difference, neither to the answer nor to the search for it.

_LONGEST = 10.0
_NUMBERED = re.compile(r"(?:[A-Za-z0-9-]+\.)?[0-9]{1,20}[.-][0-9]{1,20}(?:\..+)?")
"""A key, an id made of one, or that of a dead letter, as publishers count."""
_About = Mapping[str, str | None]


class VisibilityExplainer:
    """What one router answers."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._deployment: Deployment | None = None
        self._seeing: EventVisibility | None = None
        self._compiling = asyncio.Lock()

    async def answer(self, client: str, asked: Explain, deployment: Deployment) -> ExplainAck:
        """What this client, whose name was proved, may know; :class:`SituError` for what it may not ask."""
        question = _Question(self._bus, client, asked, deployment, await self._seen(deployment))
        about, why = question.of_sample() if asked.ad else await question.of_event()
        answer = why.about(about, asked.to)
        text = explanation_lines(answer)
        return ExplainAck(req=asked.req, visible=why.visible, text=text, answer=json.dumps(answer.as_json()))

    async def _seen(self, deployment: Deployment) -> EventVisibility | None:
        """What is in force, compiled when somebody asks, and not where others would have to wait for it."""
        async with self._compiling:
            if deployment is not self._deployment:
                self._seeing = await asyncio.to_thread(EventVisibility.of, deployment.numbered(), self._seeing)
                self._deployment = deployment
            return self._seeing


class _Question:
    """One question of one client."""

    def __init__(
        self, bus: Bus, client: str, asked: Explain, deployment: Deployment, seeing: EventVisibility | None
    ) -> None:
        self.bus = bus
        self.asked = asked
        self.client = client
        self.by = Principal(name=client)
        self.deployment = deployment
        self.seeing = seeing
        self.own_only = False
        """Whether it asked in a way in which it finds its own events only, and those that it may know all about."""
        self.everything = seeing is None or may_know_all(seeing.graph, self.by, NO_TAGS, NO_TAGS)
        """Whether it may know all there is."""
        self.subscription = deployment.subscriptions.get(asked.to)
        self.is_consumer = asked.to.partition("/")[0] == client
        if self.subscription is None and (self.is_consumer or self.everything):
            raise SituError(UNKNOWN_SUBSCRIPTION(name=asked.to, nearest=()))

    # ── a sample ──

    def of_sample(self) -> tuple[_About, VisibilityAnswer]:
        """Only of its own advertisement: others' filters are not to be tried out."""
        owner, _, name = self.asked.ad.partition("/")
        if owner != self.client and not self.everything:
            raise SituError(self._not_its_own())
        ad = self.deployment.advertisements.get(self.asked.ad)
        if ad is None:
            remedy = "Name one that is declared."
            raise SituError(NO_SUCH_DECLARATION(client=owner, reason=f"has no advertisement `{name}`", remedy=remedy))
        type, data = self._read_sample(ad.type)
        about = about_sample(ad.id, type)
        if self.seeing is None:
            return about, without_scopes()
        if self.subscription is None:
            return about, of_one_side(False, "producer", ad.scopes)
        event = sample_event(self.seeing, type, {"source": owner}, data)
        why = explain_sample(self.seeing, event, ad.scopes, self.subscription.scopes)
        return about, self._as_allowed(why, "producer", self.subscription, ad.scopes)

    def _read_sample(self, advertised: str) -> tuple[str, Mapping[str, Any]]:
        value = read_json(to_text(self.asked.sample.encode(), JSON_LIMITS.event), JSON_LIMITS.depth)
        type = advertised
        if isinstance(value, dict) and "specversion" in value:
            type, value = str(value.get("type", advertised)), value.get("data")
        payload, wanted = self.deployment.types.event(type), self.deployment.types.event(advertised)
        if payload is None or wanted is None or payload not in self.deployment.types.subtypes(wanted):
            remedy = f"Give the data of an event of `{advertised}`, in the terms of root."
            raise SituError(NOT_AVAILABLE(what=f"A sample of `{type[:64]}`", remedy=remedy))
        return type, decode(payload, value, self.deployment.types)

    # ── an event ──

    async def of_event(self) -> tuple[_About, VisibilityAnswer]:
        wanted = self._wanted(self.asked.event)
        try:
            async with asyncio.timeout(_LONGEST):
                found = await search_log(wanted, self.bus, accept=self._may_find)
                row = found[1] if found is not None else await search_dead_letters(wanted, self.bus, self._may_find)
        except TimeoutError:
            remedy = "Name the event by its position: that needs no search."
            raise SituError(NOT_AVAILABLE(what="A search that takes so long", remedy=remedy)) from None
        if row is None:
            return self._nothing_found(wanted)
        if self.seeing is None:
            return about_event(row), without_scopes()
        tags = self.seeing.numbers.tag_set(row.tags) or NO_TAGS
        if self.subscription is None:
            return about_event(row), of_one_side(False, "producer", tags)
        why = explain_row(self.seeing, row, self.subscription.scopes)
        if self._is_own(row):
            return about_event(row), self._as_allowed(why, "producer", self.subscription, tags)
        shown = self._as_allowed(why, "consumer", self.subscription, self.subscription.scopes)
        return self._named() if shown.side is not None else self._about(row), shown

    def _about(self, row: Row) -> _About:
        """An event of others, as it is delivered to those who may see it."""
        assert self.seeing is not None
        if not self.everything:
            key = self.seeing.seal.key(row.key)
            own = row.id == f"{row.incarnation}-{row.seq}"
            return {**about_event(row), "event": key.rpartition(".")[2] if own else row.id, "key": key}
        return about_event(row)

    def _wanted(self, text: str) -> EventReference:
        """What somebody means who knows events by what was delivered to him, or by what he published himself.

        Numbers that others counted are not for him to try: one that is there and one that is not would tell him how
        many there are in between. So he finds by them only what is his own or what he administers, and by positions
        nothing at all.
        """
        if self.seeing is None:
            return EventReference.parse(text)
        if not self.everything:
            self.own_only = _NUMBERED.fullmatch(text) is not None
            if text.isascii() and text.isdigit():
                return EventReference(id=text)
        return EventReference.parse(text, self.seeing.seal)

    def _nothing_found(self, wanted: EventReference) -> tuple[_About, VisibilityAnswer]:
        """What is not there, and what it may not know to be there."""
        if self.everything or (wanted.key is not None and wanted.key.client == self.client):
            raise SituError(UNKNOWN_EVENT(name=self.asked.event))
        if not self.is_consumer or self.subscription is None:
            raise SituError(self._not_its_own())
        return self._named(), of_one_side(False, "consumer", self.subscription.scopes)

    async def _may_find(self, row: Row) -> bool:
        if self.seeing is None or self._is_own(row):
            await self._learn(row)
            return True
        if self.subscription is None or self.seeing.numbers.tag_set(row.tags) is None:
            return False  # what came under no known advertisement is for operators
        await self._learn(row)
        if self.is_consumer and not self.own_only and self.seeing.sees(self.seeing.look(row), self.subscription.scopes):
            return True
        why = explain_row(self.seeing, row, self.subscription.scopes)
        return may_know(self.seeing, self.by, why, self.subscription.scopes)

    async def _learn(self, row: Row) -> None:
        if self.seeing is not None:
            for epoch in self.seeing.missing([row]):
                self.seeing.know(epoch, await fetch_scopes(self.bus, epoch))

    def _is_own(self, row: Row) -> bool:
        return row.client in (self.client, dead_client(self.client))

    # ── rights ──

    def _as_allowed(
        self, why: EventVisibilityExplanation, side: Side, subscription: Subscription, own: TagSet
    ) -> VisibilityAnswer:
        assert self.seeing is not None
        if may_know(self.seeing, self.by, why, subscription.scopes):
            return why
        return of_one_side(why.visible, side, own)

    def _named(self) -> _About:
        return {"event": self.asked.event}

    def _not_its_own(self) -> Problem:
        reason = "only what it published and what it subscribed to itself can be explained to it"
        return NO_RIGHT(client=self.client, reason=reason)
