"""The client: one session with a router, over which an application publishes, registers for events and listens.

`Client` has all calls. Before it stands what some of them answer: the status of a client, why an event is visible, and
changes of scopes. A client numbers and queues its events, connects again by itself, and remembers on disk what it must
not do twice.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from situ.bus.event_loop import end
from situ.bus.interface import Bus
from situ.client.capabilities import CapabilityHandler
from situ.client.contexts import ClientContext, DefinedContext
from situ.client.declarations import AdvertisementHandle, Callback, Installation, Listener, Registration, Scopes
from situ.client.events import Event
from situ.client.expectations import ExpectationHandler
from situ.client.publish_queue import PublishQueue, Receipt
from situ.client.publisher import Publications, listener_target
from situ.client.session import Session
from situ.client.state_files import ClientFiles
from situ.client.subscriptions import Subscriptions
from situ.lang.problems import SituError
from situ.protocol.messages import (
    AdAck,
    ChangeScopes,
    ContextAck,
    Description,
    Explain,
    ExplainAck,
    FromRouter,
    FullList,
    FullListAck,
    Nack,
    Notice,
    ScopeAck,
    SubAck,
)
from situ.protocol.wire import error_from_nack

if TYPE_CHECKING:
    from situ.scopes.operations import Operation

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Status: the connection of a client, its queue, what flows to it.


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionStatus:
    """One registration. ``dropped``: too much came at once; ``repeats``: came again and were not given again."""

    types: tuple[str, ...]
    durable: bool
    installed: bool
    received: int
    dropped: int
    repeats: int
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientStatus:
    """How a client is: its connection, its queue, what flows to it.

    >>> status = await gate.status()
    >>> status.client, status.connected, status.queued
    ('gate', True, 0)
    """

    client: str
    zone: str
    router: str
    connected: bool
    session: int
    incarnation: int
    remembers: bool
    """What it must not forget is on disk."""
    published: int
    stored: int
    queued: int
    resent: int
    """Messages that were sent again."""
    duplicates: int
    """Events whose id was published before."""
    reconnects: int
    advertisements: tuple[str, ...]
    subscriptions: Mapping[str, SubscriptionStatus]
    suspended: tuple[str, ...] = ()
    """Names of advertisements and registrations that this client has lost its right to."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """What failed here in a way that nobody foresaw, by what it was; the log has how."""


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Visibility: what a client asks its router about why an event is seen by a subscription, or is not.


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyVisible:
    """Why an event is visible to a subscription, in words and as data: all of it, or what this client may know.

    >>> trucks = await gate.register_for_events("TruckSeen")
    >>> receipt = await gate.publish_event("TruckSeen", truck="LY-204", speed=12.0)
    >>> why = await gate.explain_visibility(await receipt.stored, to=trucks.id)
    >>> why.visible
    True
    """

    visible: bool
    text: str
    answer: Mapping[str, Any]


async def ask_why(session: Session, event: str, to: str, ad: str, sample: str | Mapping[str, Any]) -> WhyVisible:
    """Of an event, or of a sample of what an advertisement would publish; the subscription is ``client/name``."""
    text = sample if isinstance(sample, str) else json.dumps(sample)
    answer = await session.ask(Explain(req=session.request(), event=event, to=to, ad=ad, sample=text))
    assert isinstance(answer, ExplainAck)
    return WhyVisible(visible=answer.visible, text=answer.text, answer=json.loads(answer.answer))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Scopes as a client changes them: who joins and leaves, and every other operation, for those who administer them. The
# router knows who asks. A change is answered when the registry has it; when every engine works with it is told later.

_CHANGE_WITHIN = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeChangeReceipt:
    """Scopes as they were asked to be. ``missing`` are engines that did not work with them yet after a while.

    >>> receipt = await office.join_scope("gate", "north", "place")
    >>> receipt.complete, receipt.missing
    (True, ())
    """

    epoch: int
    version: int
    """Of the deployment that has them."""
    complete: bool
    missing: tuple[str, ...] = ()
    said: tuple[Notice, ...] = ()
    """What is worth knowing, such as declarations that are suspended by the change."""


class ScopeChanges:
    """Changes of scopes of one client."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._awaited: dict[int, Installation] = {}

    async def change(self, operation: Operation, epoch: int | None) -> ScopeChangeReceipt:
        """Have scopes changed; what the registry refuses is raised."""
        from situ.scopes.operations import operation_as_json

        req = self._session.request()
        installing = self._awaited[req] = Installation()
        try:
            message = ChangeScopes(req=req, operation=operation_as_json(operation), epoch=epoch)
            answer = await self._session.ask(message, timeout=_CHANGE_WITHIN)
            assert isinstance(answer, ScopeAck)
            self.told(answer)
            complete = await installing.wait(self._session.terms.install_timeout)
        finally:
            del self._awaited[req]
        return ScopeChangeReceipt(
            epoch=answer.epoch,
            version=answer.version,
            complete=complete,
            missing=() if complete else installing.missing,
            said=answer.said,
        )

    def told(self, message: ScopeAck) -> None:
        if message.req in self._awaited:
            word = "installed" if message.state == "complete" else message.state
            self._awaited[message.req].told(word, message.version, message.missing)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The client itself.

_log = logging.getLogger("situ.client")
_FLUSH_WITHIN = 10.0


class Client:
    """A connected client: it publishes, registers for events, listens, and asks. :func:`situ.connect` makes one.

    >>> async with situ.connect(client="kiosk") as client:
    ...     trucks = await client.register_for_events("TruckSeen", where="truck = 'LY-300'")
    ...     receipt = await gate.publish_event("TruckSeen", truck="LY-300", speed=31.0)
    ...     async for event in trucks:
    ...         print(event.data.truck, event.data.speed)
    ...         break
    LY-300 31.0
    """

    def __init__(self, bus: Bus, client: str, files: ClientFiles, *, queue_timeout: float, queue_events: int) -> None:
        self.client = client
        self._bus = bus
        self._files = files
        self._session = session = Session(bus, client, files.session, files.incarnation)
        self._sender = sender = PublishQueue(
            client, files.incarnation, session.transmit, events=queue_events, patience=queue_timeout
        )
        self._publications = Publications(session, sender, files)
        self._subscriptions = Subscriptions(bus, session, files)
        self._speaking = ClientContext(session)
        self._rescoping = ScopeChanges(session)
        self.expectations = ExpectationHandler(bus, session)
        self.capabilities = CapabilityHandler(bus, session, self._publications.advertised)
        self._turn = asyncio.Lock()
        self._listeners: list[Listener] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False
        session.listing = self._full_list
        session.on_ready = self._ready
        session.on_lost = sender.suspend
        session.on_up = self._up
        session.on_over = self._over
        session.on_told = self._told
        session.on_events = self._subscriptions.came
        sender.on_lost = session.lost
        sender.on_stored = self._publications.stored
        sender.on_mistake = lambda error: session.mistakes.note(error, "client publish")

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
        await end(tasks)
        await self.expectations.close()
        await self.capabilities.close()
        await self._subscriptions.close()
        await self._sender.close()
        await self._session.close()
        self._files.close()

    # ── contexts ──

    async def use_context(self, id: str) -> None:
        """Speak and hear in the terms of this context from here on.

        What was published before is stored first, in the terms it was published in; what is published meanwhile waits.
        Registrations go along; if one means nothing in the new context, that is refused and nothing changes. So do
        advertisements, but for those of types that the new context does not have.
        """
        async with self._turn:
            await self._sender.flush()
            self._sender.suspend()
            try:
                self._publications.went_over(await self._speaking.use(id))
            finally:
                if self._session.ready:
                    self._sender.resume()

    async def define_context(self, id: str, definition: object) -> DefinedContext:
        """Define a context, or change one that a client defined: by the text of a file, by a dictionary that says the
        same, or by classes that are decorated with ``situ.context``.

        If somebody uses the context and would notice the change, a fork of it has what is new: the answer names it.
        """
        return await self._speaking.define(id, definition)

    # ── scopes ──

    async def join_scope(
        self, member: str, scope: str, dimension: str, *, epoch: int | None = None
    ) -> ScopeChangeReceipt:
        """Let a client or a scope be directly in a scope; V014 for who does not administer what is joined.

        ``epoch`` is the one that this was decided in: V015 if scopes have changed since. What is so already is no
        change.
        """
        from situ.scopes.operations import JoinScope

        return await self.change_scopes(JoinScope(member=member, scope=scope, dimension=dimension), epoch=epoch)

    async def leave_scope(
        self, member: str, scope: str, dimension: str, *, epoch: int | None = None
    ) -> ScopeChangeReceipt:
        """Let a client or a scope be directly in a scope no more; a client may leave by itself."""
        from situ.scopes.operations import LeaveScope

        return await self.change_scopes(LeaveScope(member=member, scope=scope, dimension=dimension), epoch=epoch)

    async def change_scopes(
        self, operation: Operation | Mapping[str, Any], *, epoch: int | None = None
    ) -> ScopeChangeReceipt:
        """Have scopes changed by any operation, with the rights of this client.

        A mapping says what to ``do`` and with what, as ``situ scopes history --json`` shows it:
        ``{"do": "filter", "dimension": "place", "scope": "north", "side": "output", "text": "speed > 30"}``.
        """
        if isinstance(operation, Mapping):
            from situ.scopes.operations import operation_from_json

            operation = operation_from_json(operation)
        return await self._rescoping.change(operation, epoch)

    # ── publishing ──

    async def advertise(
        self,
        type: str,
        *,
        name: str | None = None,
        where: str | None = None,
        scopes: Scopes | None = None,
    ) -> AdvertisementHandle:
        """Say that this client will publish events of the type, or of types below it, that ``where`` is true of.

        ``scopes`` says where: in each dimension one scope that this client is directly in, or ``any``; ``rest`` stands
        for all dimensions that are not named. Without them it has those that the project gives this client.
        """
        return await self._publications.advertise(type, name, where or "", scopes)

    async def unadvertise(self, ad: AdvertisementHandle | str) -> None:
        """Take an advertisement back, when everything published under it is stored."""
        await self._publications.unadvertise(ad)

    async def publish_event(
        self,
        /,
        type: str,
        data: Mapping[str, Any] | None = None,
        *,
        ad: AdvertisementHandle | str | None = None,
        id: str | None = None,
        time: datetime | str | None = None,
        source: str | None = None,
        confidence: float | None = None,
        **fields: Any,
    ) -> Receipt:
        """Queue an event, given as ``data`` or as ``fields``; ``await receipt.stored`` to be sure of it.

        It goes under the advertisement of its type, or the one that is named; if there is none, one is made. An
        ``id`` that was published before is not published again.
        """
        content = {**data, **fields} if data else fields
        return await self._publications.publish(
            type, content, ad=ad, id=id, time=time, source=source, confidence=confidence
        )

    async def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything published is stored; False if that takes longer than ``timeout`` seconds."""
        return await self._sender.flush(timeout)

    # ── receiving ──

    async def register_for_events(
        self,
        *types: str,
        where: str | None = None,
        scopes: Scopes | None = None,
        durable: str | None = None,
        since: str | datetime | timedelta | None = None,
        context: str | None = None,
        wait: bool = True,
    ) -> Registration:
        """Have events of these types flow to this client; returns when every engine works with that.

        ``durable`` names a subscription that outlives this client: what comes while nobody listens waits. ``scopes``
        says where they are wanted from, as of :meth:`advertise`.
        """
        registration = await self._subscriptions.register(types, where or "", durable, since, context or "", scopes)
        if wait:
            await registration.require(self._session.terms.install_timeout)
        return registration

    async def unregister_for_events(self, *what: str | Registration) -> None:
        """Have these types, or all of these registrations, flow no more; types that a listener needs stay."""
        for each in what:
            if isinstance(each, Registration):
                await self._subscriptions.drop(each)
        await self._subscriptions.drop_types({each for each in what if isinstance(each, str)})

    async def unregister_all_events(self) -> None:
        """Receive nothing more. Listeners stay, and starve; the log says which."""
        for listener in self._listeners:
            _log.warning("the listener of %s gets nothing any more", ", ".join(listener.registration.types))
        for registration in tuple(self._subscriptions.registrations.values()):
            await self._subscriptions.drop(registration)

    def events(
        self,
        *types: str,
        where: str | None = None,
        scopes: Scopes | None = None,
        durable: str | None = None,
        since: str | datetime | timedelta | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Events of these types; the step to the next one says that the last one is done with.

        The stream ends with V006 or its like when this client loses the right to the scopes that it names.
        """
        return self._subscriptions.events(types, where or "", durable, since, limit, scopes)

    async def add_listener(
        self, what: str | Registration, callback: Callback, *, durable: str | None = None
    ) -> Listener:
        """Call back for each event of a type, of an expression that names types (``type IS T AND …``), or registered.

        ``policy NAME`` stands for what a policy finds: situations that are opened, continued and closed.
        The callback may be plain or asynchronous. What it raises is reported and counted, and stops nothing.
        """
        if isinstance(what, Registration):
            registration = what
        else:
            types, where = listener_target(what)
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
        await end([listener.task])
        if listener in self._listeners:
            self._listeners.remove(listener)
            listener.registration.listeners -= 1
            if not listener.registration.durable and not listener.registration.listeners:
                await self._subscriptions.drop(listener.registration)

    async def _listen(self, listener: Listener) -> None:
        try:
            async with self._subscriptions.reading(listener.registration) as events:
                async for event in events:
                    listener.called += 1
                    try:
                        result = listener.callback(event)
                        if result is not None and inspect.isawaitable(result):
                            await result
                    except Exception as error:  # noqa: BLE001 - the application's own: the next event is another matter
                        listener.note(error)
            self._subscriptions.raise_if_over(listener.registration)
        except Exception as error:  # noqa: BLE001 - whoever waits for events must be told that there are none
            if not isinstance(error, SituError | OSError):
                self._session.mistakes.note(error, "client listen")
            _log.error("the listener of %s ends: %s", ", ".join(listener.registration.types), error)
            listener.error = str(error)

    # ── asking ──

    async def status(self) -> ClientStatus:
        """How this client is."""
        session, sender = self._session, self._sender
        return ClientStatus(
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
            duplicates=self._publications.duplicates,
            reconnects=session.reconnects,
            advertisements=tuple(sorted(self._publications.ads)),
            subscriptions={name: _subscribed(each) for name, each in self._subscriptions.registrations.items()},
            suspended=tuple(sorted({*self._publications.suspended, *self._subscriptions.suspended})),
            failures=dict(session.mistakes.counts),
        )

    async def describe(self, *types: str) -> Mapping[str, Description]:
        """What these event types, or all, are: their supertypes and attributes."""
        return await self._publications.describe(types)

    async def explain_visibility(
        self, event: str = "", *, to: str, ad: str = "", sample: str | Mapping[str, Any] = ""
    ) -> WhyVisible:
        """Why an event, named by id, key or position, is visible to a subscription ``client/name``, or why not.

        Instead of an event: a ``sample`` of the data that an advertisement ``ad`` would publish. A client may ask about
        its own events and subscriptions; R011 for others.
        """
        return await ask_why(self._session, event, to, ad, sample)

    # ── what the session tells ──

    def _full_list(self) -> FullList:
        return FullList(
            acked=self._sender.stored,
            ads=self._publications.listed(),
            subs=self._subscriptions.listed(),
            context=self._speaking.context,
        )

    def _ready(self, known: FullListAck) -> None:
        self._publications.known(known.ads)
        self._subscriptions.known(known.subs)
        self._sender.terms = self._session.terms
        self._sender.resume()
        self.expectations.back()
        self.capabilities.back()

    def _up(self) -> None:
        self._sender.hurry()
        self.expectations.back()
        self.capabilities.back()

    def _over(self, error: SituError) -> None:
        self._sender.fail(error)
        self._subscriptions.over()

    def _told(self, message: FromRouter) -> None:
        if isinstance(message, AdAck):
            self._publications.told(message)
        elif isinstance(message, SubAck):
            self._subscriptions.told(message)
        elif isinstance(message, ContextAck):
            self._speaking.told(message)
        elif isinstance(message, ScopeAck):
            self._rescoping.told(message)
        elif isinstance(message, Nack):
            if message.code.startswith("V"):
                declared = self._subscriptions if message.of == "Subscribe" else self._publications
                declared.suspend(message.name, error_from_nack(message))
            _log.error("%s: %s was refused: %s %s", self.client, message.name, message.code, message.message)


def _subscribed(registration: Registration) -> SubscriptionStatus:
    return SubscriptionStatus(
        types=registration.types,
        durable=registration.durable,
        installed=registration.installed,
        received=registration.received,
        dropped=registration.dropped,
        repeats=registration.repeats,
        waiting=len(registration.buffer),
    )
