"""What flows to a client: its registrations, and the streams of their events.

`history_start` reads since when history is asked for; `Subscriptions` has the registrations.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from copy import copy
from datetime import UTC, datetime, timedelta
from weakref import WeakSet

import msgspec

from situ.bus.interface import Bus
from situ.client.declarations import Installation, Registration, Scopes, problem_remarks, tags_of
from situ.client.events import DurableStream, Page, Stream, history_then_live, live, read_events
from situ.client.session import Session
from situ.client.state_files import ClientFiles
from situ.event.instants import microseconds
from situ.event.message import Message
from situ.event.subjects import consumer_of
from situ.lang.catalogue import NO_SUCH_DECLARATION, NOT_AVAILABLE, NOT_ON_BUS
from situ.lang.problems import SituError
from situ.lang.quantities import parse_moment
from situ.protocol.messages import History, HistoryAck, SubAck, Subscribe, Tags, Unsubscribe, WantedSubscription

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Since when: ``begin``, ``1 h ago``, a date or time, a ``datetime`` or a ``timedelta`` → microseconds since 1970.


def history_start(since: str | datetime | timedelta, now: datetime | None = None) -> int:
    """When history begins; 0: with the first event there is."""
    now = now or datetime.now(UTC)
    if isinstance(since, str):
        since = parse_moment(since, now)
    if isinstance(since, timedelta):
        since = now - since
    return max(microseconds(since if since.tzinfo is not None else since.astimezone()), 0)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Registrations.

Since = str | datetime | timedelta | None

_log = logging.getLogger("situ.client")
_ASK_AGAIN = 2.0
_TOLD_WITHIN = 5.0


class Subscriptions:
    """The registrations of one client."""

    def __init__(self, bus: Bus, session: Session, files: ClientFiles) -> None:
        self.client = session.client
        self.registrations: dict[str, Registration] = {}
        self._bus = bus
        self._session = session
        self._files = files
        self.suspended: dict[str, SituError] = {}
        """Registrations that this client has no right to any more, by name, and why."""
        self._known: Mapping[str, WantedSubscription] = {}
        """Subscriptions of this client that stand in the project, or are left from an earlier life."""
        self._streams: WeakSet[Stream] = WeakSet()
        self._turns: dict[str, asyncio.Lock] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._made_up = 0
        self._closed = False

    # ── registering ──

    async def register(
        self,
        types: tuple[str, ...],
        where: str,
        durable: str | None,
        since: Since,
        context: str = "",
        scopes: Scopes | None = None,
    ) -> Registration:
        """The registration, accepted; the same as before if it is asked for again."""
        types, tags = tuple(sorted(set(types))), tags_of(scopes)
        if durable is None:
            self._made_up += 1
            name = f"live-{self._session.number}-{self._made_up}"
            return await self._register(name, types, where, since, context, tags, durable=False)
        async with self._turns.setdefault(durable, asyncio.Lock()):
            return await self._register(durable, types, where, since, context, tags, durable=True)

    async def _register(
        self, name: str, types: tuple[str, ...], where: str, since: Since, context: str, tags: Tags, *, durable: bool
    ) -> Registration:
        known, declared = self.registrations.get(name), self._known.get(name)
        if not types and name in self.suspended:
            raise self.suspended[name]
        if not types and declared is not None:
            types, where = declared.types, declared.filter
        if declared is not None and not tags and (declared.types, declared.filter) == (types, where):
            tags = declared.scopes  # what it has from the project, or from an earlier life, it keeps
        same = (types, where, context, tags)
        if known is not None and (known.types, known.where, known.context, known.scopes) == same:
            return known
        before = None if known is None else copy(known)
        made = known or Registration(self.client, name, types, where, durable)
        made.types, made.where, made.scopes, made.installing = types, where, tags, Installation()
        made.mine = declared is None or (declared.types, declared.filter, declared.scopes) != (types, where, tags)
        made.context = context or (declared.context if declared is not None and not made.mine else "")
        made.streaming = self.stream
        if since is not None:
            made.pages = self._pages(name, history_start(since))
        # Known before it is asked for: events may come before the answer does.
        self.registrations[name] = made
        try:
            answer = await self._subscribe(made, types)
        except BaseException:
            if before is None:
                self.registrations.pop(name, None)
            else:
                made.become(before)  # what was refused changes nothing
            raise
        if made.error is not None:  # it was lost as soon as it was there
            raise made.error
        made.installing.told(answer.state, answer.version, answer.missing)
        made.said = problem_remarks(answer.said)
        self.suspended.pop(name, None)
        if made.durable and made.consumer is None:
            made.consumer = DurableStream(self._bus, self.client, consumer_of(made.id), self._files.seen(name))
        return made

    async def _subscribe(self, registration: Registration, types: tuple[str, ...]) -> SubAck:
        message = Subscribe(
            req=self._session.request(),
            sub=registration.name,
            types=types,
            filter=registration.where,
            durable=registration.durable,
            context=registration.context,
            scopes=registration.scopes,
        )
        answer = await self._session.ask(message)
        assert isinstance(answer, SubAck)
        return answer

    async def _ask_installed(self, registration: Registration) -> None:
        answer = await self._subscribe(registration, registration.types)
        registration.installing.told(answer.state, answer.version, answer.missing)

    async def drop_types(self, types: set[str]) -> None:
        """Have these types flow no more, unless a listener needs them."""
        for registration in tuple(self.registrations.values()):
            left = tuple(each for each in registration.types if each not in types)
            if registration.listeners or left == registration.types:
                continue
            if left:
                await self._subscribe(registration, left)
                registration.types = left
            else:
                await self.drop(registration)

    async def drop(self, registration: Registration) -> None:
        """Have nothing of this registration flow any more."""
        self.registrations.pop(registration.name, None)
        registration.buffer.end()
        if self._session.error is None:
            try:
                await self._session.ask(Unsubscribe(req=self._session.request(), sub=registration.name))
            except SituError as error:
                # What the project declares is not this client's to take back. A volatile registration may be gone with
                # a session that broke off: then it is as it was asked to be.
                if error.code != NO_SUCH_DECLARATION.code or (registration.mine and registration.durable):
                    raise
        if registration.consumer is not None:
            registration.consumer.close()
            self._files.forget(registration.name)

    # ── streams ──

    def events(
        self,
        types: tuple[str, ...],
        where: str,
        durable: str | None,
        since: Since,
        limit: int | None,
        scopes: Scopes | None = None,
    ) -> Stream:
        """A stream of its own, registered at its first step; a volatile one is dropped at its end."""
        stream = self._events(types, where, durable, since, limit, scopes)
        self._streams.add(stream)
        return stream

    async def _events(
        self,
        types: tuple[str, ...],
        where: str,
        durable: str | None,
        since: Since,
        limit: int | None,
        scopes: Scopes | None,
    ) -> Stream:
        registration = await self.register(types, where, durable, since, scopes=scopes)
        try:
            await registration.require(self._session.terms.install_timeout)
            given = 0
            async with self.reading(registration, limit) as events:
                async for event in events:
                    yield event
                    given += 1
                    if given == limit and not registration.durable:
                        break
                else:
                    self.raise_if_over(registration)
        finally:
            if durable is None and registration.name in self.registrations and not self._closed:
                await self.drop(registration)

    async def stream(self, registration: Registration) -> Stream:
        """The events of a registration; one reader at a time."""
        async with self.reading(registration) as events:
            async for event in events:
                yield event
        self.raise_if_over(registration)

    @asynccontextmanager
    async def reading(self, registration: Registration, limit: int | None = None) -> AsyncIterator[Stream]:
        """The stream of a registration for as long as somebody reads it; one reader at a time."""
        if registration.reading:
            remedy = "End the other loop or listener first, or register under a name of its own."
            raise SituError(NOT_AVAILABLE(what=f"A second reader of `{registration.id}`", remedy=remedy))
        registration.reading = True
        try:
            while not await registration.installing.wait(_ASK_AGAIN):
                # The word that it is may have been lost with a connection.
                await self._ask_installed(registration)
            if registration.error is not None:
                raise registration.error
            if registration.consumer is not None:
                events = registration.consumer.stream(registration.pages, limit)
            elif registration.pages is not None:
                events = history_then_live(registration.pages, registration.buffer)
            else:
                events = live(registration.buffer)
            async with aclosing(events):
                yield events
        except SituError as error:
            # With the right to it the consumer goes; the word why may come a moment later.
            if error.code != NOT_ON_BUS.code or not registration.durable:
                raise
            with suppress(TimeoutError):
                async with asyncio.timeout(_TOLD_WITHIN):
                    await registration.ended.wait()
            raise registration.error or error from None
        finally:
            registration.reading = False

    def raise_if_over(self, registration: Registration) -> None:
        """A stream that ended by itself may have done so because the session did, or the right to it."""
        if self._session.error is not None:
            raise self._session.error
        if registration.error is not None:
            raise registration.error

    def _pages(self, name: str, since: int) -> Page:
        async def page(after: str | None) -> HistoryAck:
            message = History(req=self._session.request(), sub=name, after=after, since=since)
            answer = await self._session.ask(message)
            assert isinstance(answer, HistoryAck)
            return answer

        return page

    # ── what the session tells ──

    def listed(self) -> dict[str, WantedSubscription]:
        """What this client asks for itself."""
        return {
            each.name: WantedSubscription(
                types=each.types, filter=each.where, durable=each.durable, context=each.context, scopes=each.scopes
            )
            for each in self.registrations.values()
            if each.mine
        }

    def known(self, subs: Mapping[str, WantedSubscription]) -> None:
        """What is declared for this client, by itself or in the project."""
        self._known = dict(subs)

    def told(self, message: SubAck) -> None:
        if message.sub in self.registrations:
            self.registrations[message.sub].installing.told(message.state, message.version, message.missing)

    def suspend(self, name: str, error: SituError) -> None:
        """The client has no right to a registration any more: who reads it is told, and nothing declares it again."""
        registration = self.registrations.pop(name, None)
        if registration is None:
            return
        self.suspended[name] = registration.error = error
        self._known = {each: wanted for each, wanted in self._known.items() if each != name}
        registration.buffer.clear()
        registration.buffer.end()
        registration.ended.set()
        registration.installing.end()
        if registration.consumer is not None:
            task = asyncio.get_running_loop().create_task(registration.consumer.end())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def came(self, message: Message) -> None:
        """A delivery of volatile events."""
        try:
            events = read_events(message.body)
        except msgspec.DecodeError as error:
            _log.warning("%s: a delivery cannot be read: %s", self.client, error)
            return
        registrations = self.registrations
        for event in events:
            for name in event.subscriptions.split(","):
                registration = registrations.get(name)
                if registration is not None:
                    registration.buffer.put(event)

    def over(self) -> None:
        """The session is over: who waits for events is told."""
        for registration in self.registrations.values():
            registration.buffer.end()

    async def close(self) -> None:
        self._closed = True
        self.over()
        for stream in tuple(self._streams):
            with suppress(RuntimeError):  # somebody waits in it: he is told that there is nothing more
                await stream.aclose()
        for registration in self.registrations.values():
            if registration.consumer is not None:
                registration.consumer.close()
