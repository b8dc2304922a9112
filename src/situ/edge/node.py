"""The client library: what an application does with events.

A node publishes, registers for events and listens, over one session with its router. It numbers and queues its events,
connects again by itself, and remembers on disk what it must not do twice.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any

import msgspec

from situ.bus.interface import Bus
from situ.bus.names import consumer_of
from situ.catalogue import NO_SUCH_DECLARATION, NOT_AS_ADVERTISED, NOT_AVAILABLE
from situ.edge.client_files import ClientFiles
from situ.edge.declared import Advertisement, Callback, Installing, Listener, Registration
from situ.edge.event import Event, read_events
from situ.edge.naming import name_of_type, types_in
from situ.edge.receiving import Durable, Page, Stream, history_then_live, live
from situ.edge.sending import Receipt, Sender
from situ.edge.session import Session
from situ.edge.since import begins
from situ.edge.status import Status, Subscribed
from situ.errors import SituError
from situ.event.ingress import own_source
from situ.event.message import Message
from situ.overlay.messages import (
    AdAck,
    Advertise,
    Describe,
    DescribeAck,
    Description,
    FromRouter,
    FullList,
    FullListAck,
    History,
    HistoryAck,
    Nack,
    SubAck,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    Wanted,
)

_log = logging.getLogger("situ.client")
_FLUSH_WITHIN = 10.0
_encode = msgspec.json.Encoder().encode


class Node:
    """A connected client; :func:`situ.connect` makes one."""

    def __init__(self, bus: Bus, client: str, files: ClientFiles, *, queue_timeout: float, queue_events: int) -> None:
        self.client = client
        self._bus = bus
        self._files = files
        self._session = Session(bus, client, files.session, files.incarnation)
        self._sender = Sender(
            client, files.incarnation, self._session.transmit, events=queue_events, patience=queue_timeout
        )
        self._ads: dict[str, Advertisement] = {}
        self._ad_of: dict[str, Advertisement] = {}
        """Type → the advertisement its events go under when none is named."""
        self._registrations: dict[str, Registration] = {}
        self._declared_subs: dict[str, Wanted] = {}
        """Subscriptions of this client that stand in the project, or are left from an earlier life."""
        self._types: dict[str, Description] = {}
        self._listeners: list[Listener] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._streams: set[Stream] = set()
        self._turn = asyncio.Lock()
        self._requests = 0
        self._made_up = 0
        self._duplicates = 0
        self._closed = False
        self._connect_parts()

    def _connect_parts(self) -> None:
        session, sender = self._session, self._sender
        session.listing = self._full_list
        session.on_ready = self._ready
        session.on_lost = sender.suspend
        session.on_up = sender.hurry
        session.on_over = self._over
        session.on_told = self._told
        session.on_events = self._events_came
        sender.on_lost = session.lost
        sender.on_stored = self._stored

    # ── beginning and end ──

    async def open(self, timeout: float) -> None:
        await self._session.open(timeout)
        self._sender.incarnation = self._session.incarnation

    async def close(self) -> None:
        """Store what is queued, then leave."""
        if self._closed:
            return
        if self._session.error is None and not await self._sender.flush(_FLUSH_WITHIN):
            _log.error("%s: %d events could not be stored and are lost", self.client, self._sender.queued)
        self._closed = True
        tasks = [*self._tasks, *(each.task for each in self._listeners if each.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for stream in tuple(self._streams):
            await stream.aclose()
        await self._sender.close()
        await self._session.close()
        self._files.close()

    # ── publishing ──

    async def advertise(
        self,
        type: str,
        *,
        name: str | None = None,
        where: str | None = None,
        scopes: Mapping[str, str] | None = None,
    ) -> Advertisement:
        """Say that this node will publish events of the type, or of types below it."""
        _later(where=where, scopes=scopes)
        name = name or name_of_type(type)
        known = self._ads.get(name)
        if known is not None and known.type == type:
            return known
        answer = await self._ask(Advertise(req=self._req(), ad=name, type=type))
        assert isinstance(answer, AdAck)
        made = Advertisement(self.client, name, type, Installing())
        made.installing.told(answer.state, answer.version, answer.missing)
        self._ads[name] = made
        self._ad_of.clear()
        return made

    async def unadvertise(self, ad: Advertisement | str) -> None:
        """Take an advertisement back, when everything published under it is stored."""
        name = ad if isinstance(ad, str) else ad.name
        await self._sender.flush()
        await self._ask(Unadvertise(req=self._req(), ad=name))
        self._ads.pop(name, None)
        self._ad_of.clear()

    async def publish_event(
        self,
        type: str,
        data: Mapping[str, Any] | None = None,
        *,
        ad: Advertisement | str | None = None,
        id: str | None = None,
        time: datetime | str | None = None,
        source: str | None = None,
        confidence: float | None = None,
        **fields: Any,
    ) -> Receipt:
        """Queue an event, given as ``data`` or as ``fields``; ``await receipt.stored`` to be sure of it."""
        under = self._ad_of.get(type) if ad is None else None
        if under is None:
            under = await self._advertisement(type, ad)
        if not under.held:
            await self._hold(under)
        if id is not None:
            if id in self._files.ids:
                self._duplicates += 1
                return Receipt("", id, None)
            self._files.ids.expect(id)
        event: dict[str, Any] = {
            "specversion": "1.0",
            "id": id,
            "source": self.client if source is None else own_source(source, self.client),
            "type": type,
        }
        if time is not None:
            event["time"] = time
        if confidence is not None:
            event["confidence"] = f"{confidence:g}"
        event["situad"] = under.id
        event["data"] = {**data, **fields} if data else fields
        prefix = f"{self._sender.incarnation}-"

        def text(seq: int) -> bytes:
            if id is None:
                event["id"] = prefix + str(seq)
            return _encode(event)

        try:
            return await self._sender.put(text, id)
        except BaseException:
            if id is not None:
                self._files.ids.discard(id)
            raise

    async def _advertisement(self, type: str, ad: Advertisement | str | None) -> Advertisement:
        if ad is not None:
            return await self._named(type, ad)
        async with self._turn:
            if type in self._ad_of:
                return self._ad_of[type]
            fitting = [each for each in self._ads.values() if each.type == type]
            if not fitting and self._ads:
                above = (await self._describe(type)).above
                fitting = [each for each in self._ads.values() if each.type in above]
            if len(fitting) > 1:
                names = ", ".join(f"`{each.name}`" for each in fitting)
                reason = f"has several advertisements for `{type}`: {names}"
                remedy = f'Say which one: `publish_event(…, ad="{fitting[0].name}")`.'
                raise SituError(NO_SUCH_DECLARATION(client=self.client, reason=reason, remedy=remedy))
            found = fitting[0] if fitting else await self.advertise(type)
            self._ad_of[type] = found
            return found

    async def _named(self, type: str, ad: Advertisement | str) -> Advertisement:
        name = ad if isinstance(ad, str) else ad.name
        found = self._ads.get(name.removeprefix(f"{self.client}/"))
        if found is None:
            reason = f"has no advertisement `{name}`"
            remedy = "Make it with `advertise`, or leave `ad` out."
            raise SituError(NO_SUCH_DECLARATION(client=self.client, reason=reason, remedy=remedy))
        if type != found.type and found.type not in (await self._describe(type)).above:
            raise SituError(NOT_AS_ADVERTISED(type=type, ad=found.id, advertised=found.type))
        return found

    async def _hold(self, under: Advertisement) -> None:
        """Who subscribes already must not miss the first event; but nobody waits for ever."""
        if not await under.installing.wait(self._session.terms.install_timeout):
            _log.warning("%s is not installed everywhere yet; publishing under it all the same", under.id)
        under.held = True

    # ── receiving ──

    async def register_for_events(
        self,
        *types: str,
        where: str | None = None,
        scopes: Mapping[str, str] | None = None,
        durable: str | None = None,
        since: str | datetime | timedelta | None = None,
        context: str | None = None,
        wait: bool = True,
    ) -> Registration:
        """Have events of these types flow to this node; returns when every engine works with that."""
        _later(scopes=scopes, context=context)
        async with self._turn:
            registration = await self._register(tuple(sorted(set(types))), where or "", durable, since)
        if wait:
            await registration.installing.require("subscription", registration.id, self._session.terms.install_timeout)
        return registration

    async def _register(
        self, types: tuple[str, ...], where: str, durable: str | None, since: str | datetime | timedelta | None
    ) -> Registration:
        if durable is None:
            self._made_up += 1
            name = f"live-{self._session.number}-{self._made_up}"
            known = None
        else:
            name, known = durable, self._registrations.get(durable)
        declared = self._declared_subs.get(name)
        if not types and declared is not None:
            types, where = declared.types, declared.filter
        if known is not None and (known.types, known.where) == (types, where):
            return known
        mine = declared is None or (declared.types, declared.filter) != (types, where)
        registration = known or Registration(self.client, name, types, where, durable is not None)
        registration.types, registration.where, registration.mine = types, where, mine
        registration.installing = Installing()
        registration.streaming = self._stream
        if since is not None:
            registration.pages = self._pages(registration, begins(since))
        # Known before it is asked for: events may come before the answer does.
        self._registrations[name] = registration
        try:
            answer = await self._ask(
                Subscribe(req=self._req(), sub=name, types=types, filter=where, durable=durable is not None)
            )
        except BaseException:
            if known is None:
                self._registrations.pop(name, None)
            raise
        assert isinstance(answer, SubAck)
        registration.installing.told(answer.state, answer.version, answer.missing)
        if durable is not None and registration.consumer is None:
            seen = self._files.seen(name)
            registration.consumer = Durable(self._bus, self.client, consumer_of(registration.id), seen)
        return registration

    async def unregister_for_events(self, *what: str | Registration) -> None:
        """Have these types, or all of these registrations, flow no more, unless a listener needs them."""
        types = {each for each in what if isinstance(each, str)}
        for registration in tuple(self._registrations.values()):
            left = tuple(each for each in registration.types if each not in types)
            if registration in what or (not left and not registration.listeners):
                await self._unregister(registration)
            elif left != registration.types and not registration.listeners:
                await self._ask(
                    Subscribe(
                        req=self._req(),
                        sub=registration.name,
                        types=left,
                        filter=registration.where,
                        durable=registration.durable,
                    )
                )
                registration.types = left

    async def unregister_all_events(self) -> None:
        """Receive nothing more. Listeners stay, and starve; the log says which."""
        for listener in self._listeners:
            _log.warning("the listener of %s gets nothing any more", listener.registration.types)
        for registration in tuple(self._registrations.values()):
            await self._unregister(registration)

    async def _unregister(self, registration: Registration) -> None:
        self._registrations.pop(registration.name, None)
        registration.buffer.end()
        if registration.mine and self._session.error is None:
            await self._ask(Unsubscribe(req=self._req(), sub=registration.name))
        if registration.durable:
            self._files.forget(registration.name)

    def events(
        self,
        *types: str,
        where: str | None = None,
        scopes: Mapping[str, str] | None = None,
        durable: str | None = None,
        since: str | datetime | timedelta | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Event]:
        """Events of these types; the step to the next one says that the last one is done with."""
        _later(scopes=scopes)
        stream = self._iterate(types, where, durable, since, limit)
        self._streams.add(stream)
        return stream

    async def _iterate(
        self,
        types: tuple[str, ...],
        where: str | None,
        durable: str | None,
        since: str | datetime | timedelta | None,
        limit: int | None,
    ) -> Stream:
        registration = await self.register_for_events(*types, where=where, durable=durable, since=since)
        given = 0
        try:
            async with aclosing(self._stream(registration, limit)) as events:
                async for event in events:
                    yield event
                    given += 1
                    if given == limit and not registration.durable:
                        break
        finally:
            if durable is None and registration.name in self._registrations and not self._closed:
                await self._unregister(registration)

    async def _stream(self, registration: Registration, limit: int | None = None) -> Stream:
        if registration.reading:
            remedy = "End the other loop or listener first, or register under a name of its own."
            what = f"A second reader of `{registration.id}`"
            raise SituError(NOT_AVAILABLE(what=what, remedy=remedy))
        registration.reading = True
        try:
            await registration.installing.wait(None)
            if registration.consumer is not None:
                events = registration.consumer.stream(registration.pages, limit)
            elif registration.pages is not None:
                events = history_then_live(registration.pages, registration.buffer)
            else:
                events = live(registration.buffer)
            async with aclosing(events):
                async for event in events:
                    yield event
            if self._session.error is not None:
                raise self._session.error
        finally:
            registration.reading = False

    async def add_listener(
        self, what: str | Registration, callback: Callback, *, durable: str | None = None
    ) -> Listener:
        """Call back for each event of a type, of an expression that names types (``type IS T AND …``), or registered.

        The callback may be plain or asynchronous. What it raises is reported and counted, and stops nothing.
        """
        if isinstance(what, Registration):
            registration = what
        else:
            types = types_in(what)
            where = None if types == (what,) else what
            registration = await self.register_for_events(*types, where=where, durable=durable)
        registration.listeners += 1
        listener = Listener(registration, callback)
        self._listeners.append(listener)
        listener.task = asyncio.get_running_loop().create_task(self._listen(listener))
        return listener

    def listener(self, what: str | Registration, *, durable: str | None = None) -> Callable[[Callback], Callback]:
        """:meth:`add_listener` as a decorator."""

        def listen(callback: Callback) -> Callback:
            task = asyncio.get_running_loop().create_task(self._add_later(what, callback, durable))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return callback

        return listen

    async def _add_later(self, what: str | Registration, callback: Callback, durable: str | None) -> None:
        try:
            await self.add_listener(what, callback, durable=durable)
        except SituError as error:
            _log.error("the listener of %s was not added: %s", what, error)

    async def remove_listener(self, listener: Listener) -> None:
        """Call back no more; what only this listener needed flows no more."""
        if listener.task is not None:
            listener.task.cancel()
            await asyncio.gather(listener.task, return_exceptions=True)
        if listener in self._listeners:
            self._listeners.remove(listener)
            listener.registration.listeners -= 1
            if not listener.registration.durable and not listener.registration.listeners:
                await self._unregister(listener.registration)

    async def _listen(self, listener: Listener) -> None:
        async with aclosing(self._stream(listener.registration)) as events:
            async for event in events:
                listener.called += 1
                try:
                    result = listener.callback(event)
                    if inspect.isawaitable(result):
                        await result
                except Exception as error:  # noqa: BLE001 - the application's own: the next event is another matter
                    listener.failed += 1
                    listener.error = f"{type(error).__name__}: {error}"
                    _log.exception("a listener of %s failed", listener.registration.types)

    # ── asking ──

    async def status(self) -> Status:
        """How this node is."""
        session, sender = self._session, self._sender
        return Status(
            client=self.client,
            zone=self._bus.zone,
            router=session.router,
            connected=session.ready and session.error is None and self._bus.connected,
            session=session.number,
            incarnation=sender.incarnation,
            remembers=self._files.on_disk,
            published=sender.seq,
            stored=sender.stored,
            queued=sender.queued,
            resent=sender.resent,
            duplicates=self._duplicates,
            reconnects=session.reconnects,
            advertisements=tuple(sorted(self._ads)),
            subscriptions={
                each.name: Subscribed(
                    types=each.types,
                    durable=each.durable,
                    installed=each.installed,
                    received=each.received,
                    dropped=each.dropped,
                    repeats=each.repeats,
                    waiting=len(each.buffer),
                )
                for each in self._registrations.values()
            },
        )

    async def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything published is stored; False if that takes longer than ``timeout`` seconds."""
        return await self._sender.flush(timeout)

    async def describe(self, *types: str) -> Mapping[str, Description]:
        """What these event types, or all, are: their supertypes and attributes."""
        answer = await self._ask(Describe(req=self._req(), types=types))
        assert isinstance(answer, DescribeAck)
        return answer.types

    async def _describe(self, type: str) -> Description:
        if type not in self._types:
            self._types.update(await self.describe(type))
        return self._types.get(type) or Description(event=False)

    def _pages(self, registration: Registration, since: int | None) -> Page:
        async def page(after: int | None) -> HistoryAck:
            answer = await self._ask(
                History(req=self._req(), sub=registration.name, after_pos=after, since=since if after is None else None)
            )
            assert isinstance(answer, HistoryAck)
            return answer

        return page

    async def _ask(self, message: Any) -> FromRouter:
        if self._session.error is not None:
            raise self._session.error
        return await self._session.ask(message)

    def _req(self) -> int:
        self._requests += 1
        return self._requests

    # ── what the session tells ──

    def _full_list(self) -> FullList:
        return FullList(
            acked=self._sender.stored,
            ads={each.name: each.type for each in self._ads.values() if each.mine},
            subs={
                each.name: Wanted(types=each.types, filter=each.where, durable=each.durable)
                for each in self._registrations.values()
                if each.mine
            },
        )

    def _ready(self, known: FullListAck) -> None:
        for name, type in known.ads.items():
            if name not in self._ads:
                self._ads[name] = Advertisement(self.client, name, type, Installing(installed=True), mine=False)
        self._declared_subs = dict(known.subs)
        self._ad_of.clear()
        self._sender.terms = self._session.terms
        self._sender.resume()

    def _over(self, error: SituError) -> None:
        self._sender.fail(error)
        for registration in self._registrations.values():
            registration.buffer.end()

    def _told(self, message: FromRouter) -> None:
        if isinstance(message, AdAck) and message.ad in self._ads:
            self._ads[message.ad].installing.told(message.state, message.version, message.missing)
        elif isinstance(message, SubAck) and message.sub in self._registrations:
            self._registrations[message.sub].installing.told(message.state, message.version, message.missing)
        elif isinstance(message, Nack):
            _log.error("%s: %s was refused: %s %s", self.client, message.name, message.code, message.message)

    def _events_came(self, message: Message) -> None:
        try:
            events = read_events(message.body)
        except msgspec.DecodeError as error:
            _log.warning("%s: a delivery cannot be read: %s", self.client, error)
            return
        registrations = self._registrations
        for event in events:
            for name in event.subscriptions.split(","):
                registration = registrations.get(name)
                if registration is not None:
                    registration.buffer.put(event)

    def _stored(self, ids: list[str]) -> None:
        for id in ids:
            self._files.ids.add(id)
        self._files.ids.flush()


def _later(**given: object) -> None:
    """Parts that come later have their places in the calls."""
    for name, value in given.items():
        if value is not None:
            raise SituError(NOT_AVAILABLE(what=f"`{name}=`", remedy="Leave it out in this release."))
