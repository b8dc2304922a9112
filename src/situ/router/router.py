"""The router process: takes messages of clients from the bus, runs the machine of `situ.protocol`, does what it says.

`IngressStore` hands what clients publish to the edge engine in the same process, or stores it unopened in the ingress
stream; `Router` does everything else.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Protocol

from situ.bus.consumer_proxy import TAKE, ConsumerProxy
from situ.bus.event_loop import end
from situ.bus.failure_log import InternalErrors
from situ.bus.interface import Bus, Serving, wall_clock
from situ.bus.measurement import publish_measured
from situ.event.message import (
    CLIENT,
    CONTEXT,
    COUNT,
    DEPLOYMENT,
    ID,
    KEY,
    MESSAGE,
    RECEIVED,
    REPLY,
    EventKey,
    Message,
    message_id,
)
from situ.event.subjects import BusNames, shard_of
from situ.lang.catalogue import ENGINE_FAILED, NAME_OF_POLICY, NO_RIGHT, STORE_UNAVAILABLE, TOO_MUCH_AT_ONCE
from situ.lang.problems import Problem, SituError
from situ.lang.records import replace
from situ.model import Deployment
from situ.protocol.effects import (
    Adopted,
    Answer,
    Declaration,
    Declare,
    Declared,
    Define,
    Defined,
    Deployed,
    Effect,
    Garbled,
    Input,
    Look,
    Negotiate,
    Presence,
    Received,
    Record,
    Refused,
    Report,
    Rescope,
    Rescoped,
    Send,
    SetTimer,
    Start,
    Store,
    Stored,
    StoreFailed,
    Suspended,
    Timer,
    Withdraw,
)
from situ.protocol.messages import Connect, DeadEvent, Disconnect, FromClient, FromRouter, FullList, Loss, Nack, Publish
from situ.protocol.permissions import may_be_answered
from situ.protocol.router_machine import leave, step
from situ.protocol.router_state import RouterState
from situ.protocol.wire import CLIENT_KINDS, ForgedReply, Malformed, encode, read_request
from situ.quality.measurement.meter import MeasuredPublishers
from situ.quality.measurement.panes import Pane
from situ.quality.model.shapes import Shape
from situ.registry import Registry
from situ.registry.snapshots import (
    adopted_versions,
    engine_alive,
    fetch_deployment,
    report_adopted,
    wait_adopted,
    watch_deployments,
)
from situ.router.client_queues import ClientQueues, QueueLimits
from situ.router.declarations import DeclarationQueue, suspended_declarations, terms_of
from situ.router.delivery_guard import DeliveryGuard, DurableConsumers
from situ.router.negotiation import NegotiationHost
from situ.router.queries import ClientQueries
from situ.routing.model import ROOT

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Where what clients publish goes: to the edge engine in the same process, or unopened into the ingress stream, from
# which Spark takes it.


class LocalEngine(Protocol):
    """An engine in the same process, as far as a router knows it."""

    on_measured: Callable[[tuple[Pane, ...], int], None] | None

    async def take(
        self, key: EventKey, count: int, body: bytes, received: int
    ) -> asyncio.Future[tuple[DeadEvent, ...]]:
        """Take a message in; the future is done when it is stored, with those of its events that are dead letters."""

    def offer(self, deployment: Deployment) -> None:
        """A deployment that is about to be in force."""

    def measure(self, whom: MeasuredPublishers) -> None:
        """Measure the events of these publishers."""


class IngressStore:
    """Of one router. What came of it is put to ``tell`` when it is known."""

    def __init__(
        self,
        bus: Bus,
        router: str,
        engine: LocalEngine | None,
        tell: Callable[[Stored | StoreFailed], None],
        clock: Callable[[], int],
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._names = BusNames(bus.zone)
        self._router = router
        self._engine = engine
        self._tell = tell
        self._deployment = Deployment()

    def adopt(self, deployment: Deployment) -> None:
        self._deployment = deployment

    async def store(self, effect: Store) -> None:
        received = self._clock()
        ticket = effect.ticket
        if self._engine is not None:
            taken = await self._engine.take(effect.key, effect.count, effect.body, received)
            taken.add_done_callback(lambda done: self._stored(ticket, done))
            return
        client = effect.key.client
        headers = {
            CLIENT: client,
            **self._stamp_of(client),
            RECEIVED: str(received),
            KEY: str(effect.key),
            COUNT: str(effect.count),
            ID: message_id(effect.key, effect.count),
        }
        message = Message(subject=self._names.raw(self._router, shard_of(client)), headers=headers, body=effect.body)
        stored = await self._bus.store(message, lane=client)
        stored.add_done_callback(lambda done: self._stored(ticket, done))

    def _stamp_of(self, client: str) -> dict[str, str]:
        """In whose terms the client speaks, and which deployment knows them."""
        deployment = self._deployment
        known = deployment.clients.get(client)
        if known is None or known.context == ROOT:
            return {CONTEXT: ROOT}
        return {CONTEXT: deployment.contexts.by_id[known.context].name, DEPLOYMENT: str(deployment.version)}

    def _stored(self, ticket: int, done: asyncio.Future[Any]) -> None:
        if done.cancelled():
            self._tell(StoreFailed(ticket=ticket, reason="the router is ending"))
        elif (error := done.exception()) is not None:
            reason = error.problems[0].message.rstrip(".") if isinstance(error, SituError) else str(error)
            self._tell(StoreFailed(ticket=ticket, reason=reason))
        else:
            result = done.result()
            self._tell(Stored(ticket=ticket, dead=result if isinstance(result, tuple) else ()))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The router. Everything goes through one queue of inputs, so the machine sees one thing at a time; what takes long
# (storing, the registry, history) is under way meanwhile and comes back as an input.

_log = logging.getLogger("situ.router")
_ADOPT_WITHIN = 10.0
_PAUSE = 1.0
_MOMENT = 0.005
_MANY = 1000
"""Objects in a message beyond which others do not wait until it is looked through."""
_DONE = (Stored, StoreFailed, Declared, Defined, Rescoped, Refused)
"""What the machine is told of something that was done for a client."""
_NUMBERED = (Connect, FullList, Disconnect, Publish, Loss)
"""Messages by which a client is known, or its events are numbered."""


class Router:
    """One router of one zone. With an engine it is an edge zone, else Spark takes the events from the bus.

    ``folder`` is the project's. ``clock`` gives microseconds since 1970: when events are received.
    """

    def __init__(
        self,
        bus: Bus,
        registry: Registry,
        *,
        folder: Path = Path(),
        engine: LocalEngine | None = None,
        router: str = "r1",
        limits: QueueLimits | None = None,
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        self.router = router
        self.received = 0
        """Messages of clients."""
        self.reports: dict[str, int] = {}
        """Code → how often something was refused or lost."""
        self._bus = bus
        self._registry = registry
        self._engine = engine
        self._names = BusNames(bus.zone)
        self._state = RouterState(zone=bus.zone, router=router, incarnation=time.time_ns() // 1_000_000)
        self._deployment = Deployment()
        self._fresh: Deployment | None = None
        self._inputs: deque[Input] = deque()
        """What happened here; before anything else of what clients said."""
        self._queues: ClientQueues[Message] = ClientQueues(limits)
        self._open: dict[int, str] = {}
        """Ticket of what is done for a client → the client."""
        self._some = asyncio.Event()
        self._ended_by: asyncio.Future[None] | None = None
        self.mistakes = InternalErrors(_log)
        self._replies: dict[int, str] = {}
        self._tickets = 0
        self._consumers = DurableConsumers(bus)
        self._handing = DeliveryGuard(bus)
        self._desk = ConsumerProxy(bus, self._handing)
        self._storing = IngressStore(bus, router, engine, self._put, clock)
        self._questions = ClientQueries(bus, folder)
        self._declarations = DeclarationQueue(
            bus, registry, self._put, self._declared, self._questions.describing, drains=engine is None
        )
        self.quality = NegotiationHost(bus, registry, self._answer, self._shape, self._measure, clock)
        """Negotiation: told what engines measure, too."""
        self._newest = 0
        self._news = asyncio.Event()
        self._serving: Serving | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stack = AsyncExitStack()
        self._closing = False

    @property
    def clients(self) -> tuple[str, ...]:
        """Who is connected."""
        return tuple(sorted(self._state.children))

    @property
    def name(self) -> str:
        return f"router-{self.router}"

    @property
    def failures(self) -> Mapping[str, int]:
        """What failed in a way that nobody foresaw, by what it was."""
        parts = (self.mistakes, self.quality.mistakes, self.quality.reshaping.mistakes)
        return dict(sum((each.counts for each in parts), Counter[str]()))

    @property
    def waiting(self) -> int:
        """Messages of clients that were not looked at yet."""
        return len(self._queues)

    async def ended(self) -> None:
        """Wait until it cannot go on; raises why."""
        assert self._ended_by is not None, "only what was started can end"
        await asyncio.shield(self._ended_by)

    # ── beginning and end ──

    async def start(self) -> None:
        """Serve. An engine of the same process is started before."""
        self._ended_by = asyncio.get_running_loop().create_future()
        await self._consumers.load()
        self._bus.guard(self._handing)
        if self._engine is not None:
            self._engine.on_measured = self.quality.measured
        await self.quality.start()
        await self._adopt(await fetch_deployment(self._bus))
        await self._stack.enter_async_context(engine_alive(self._bus, self.name))
        await report_adopted(self._bus, self.name, self._deployment.version)
        self._made(self._deployment.version)
        self._put(Start(sessions=await self._sessions(), owned=await self._owned()))
        self._begin(self._run())
        for name, work in self.works.items():
            self._begin(self._keep(name, work))
        self._serving = await self._bus.serve(self._names.ingress(self.router), self._handle)

    async def close(self) -> None:
        """Take nothing more; what is under way is stored and answered."""
        if self._closing:
            return
        self._closing = True
        if self._serving is not None:
            await self._serving.close()
        await self._drain()
        for timer in self._timers.values():
            timer.cancel()
        await end(self._tasks)
        await self.quality.close()
        await self._desk.close()
        await self._questions.close()
        await self._stack.aclose()
        if self._ended_by is not None and not self._ended_by.done():
            self._ended_by.set_result(None)

    async def _drain(self) -> None:
        state = self._state
        deadline = time.monotonic() + 5
        while (state.storing or state.unkeyed or self._inputs or len(self._queues)) and time.monotonic() < deadline:
            await asyncio.sleep(0.005)

    @property
    def works(self) -> Mapping[str, Callable[[], Coroutine[Any, Any, None]]]:
        """What goes on beside the machine from its start to its end."""
        return {
            "follow": self._follow,
            "await engines": self._await_engines,
            "declare": self._declarations.run,
            "release": self._declarations.release,
            "negotiate": self.quality.run,
            "reshape": self.quality.reshaping.run,
        }

    async def _keep(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """For ever: what needs the bus or the registry goes on when they are back."""
        while True:
            try:
                await work()
            except (SituError, OSError) as error:
                _log.warning("%s", error)
            except Exception as error:  # noqa: BLE001 - what it did not do it does when it begins again
                self.mistakes.note(error, f"router {name}")
            await asyncio.sleep(_PAUSE)

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        # What is done for one client notes what it raises itself: what comes here keeps the router from going on.
        _log.error("a part of the router failed", exc_info=error)
        if self._ended_by is not None and not self._ended_by.done():
            reason = f"{type(error).__name__}: {error}"
            problem = ENGINE_FAILED(engine="router", reason=reason, remedy="Start it again: nothing was lost.")
            self._ended_by.set_exception(SituError(problem))

    async def _sessions(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for entry in await self._bus.entries(self._names.clients):
            if entry.value:
                known = json.loads(entry.value)
                if known.get("router") == self.router:
                    found[entry.key] = int(known["session"])
        return found

    async def _owned(self) -> tuple[Declaration, ...]:
        """What clients declared themselves, and the deployment still has."""
        objects = await asyncio.to_thread(self._registry.objects)
        deployment = self._deployment
        tables: dict[str, Any] = {
            "advertisement": deployment.advertisements,
            "subscription": deployment.subscriptions,
            "client": {name: each for name, each in deployment.clients.items() if each.context != ROOT},
        }
        return tuple(
            tables[each.kind][each.name]
            for each in objects
            if each.origin == "client" and each.kind in tables and each.name in tables[each.kind]
        )

    # ── messages in ──

    async def _handle(self, message: Message) -> None:
        """Nothing is done here but to put it where it is looked at in its turn."""
        self.received += 1
        client = message.subject.rpartition(".")[2]
        if not self._queues.put(client, message, len(message.body)):
            await self._refuse(client, message)
        self._some.set()

    async def _refuse(self, client: str, message: Message) -> None:
        problem = TOO_MUCH_AT_ONCE(client=client, waiting="as much as is held for one client waits already")
        count = self.reports[problem.code.code] = self.reports.get(problem.code.code, 0) + 1
        if count == 1 or str(count).strip("0") == "1":
            _log.warning("%s (%d times so far)", problem.message, count)
        reply = message.headers.get(REPLY, "")
        if reply and may_be_answered(client, reply):
            kind = message.headers.get(MESSAGE, "Publish")[:64]
            nack = Nack(of=kind, code=problem.code.code, message=problem.message, hint=problem.hint, retry=True)
            with suppress(SituError):  # who does not hear it hears nothing, and sends it again
                await self._send(reply, nack)

    def _read(self, client: str, message: Message) -> Input | None:
        """A message of a client as the machine takes it; None if there is nothing to be taken."""
        self._tickets += 1
        ticket = self._tickets
        reply = message.headers.get(REPLY)
        if message.headers.get(MESSAGE) == TAKE:
            self._begin_for(client, ticket, "Take", 0, self._desk.serve(client, message), alone=True)
            return None
        kind = message.headers.get(MESSAGE, "Publish")[:64]
        given: Input
        try:
            session, said = read_request(client, message)
            given = Received(client=client, session=session, message=said, ticket=ticket)
        except ForgedReply as error:
            self._note_forged(client, str(error))
            return None
        except Malformed as error:
            given = Garbled(client=client, kind=kind, reason=str(error), ticket=ticket)
        except Exception as error:  # noqa: BLE001 - of this message, and of no other
            problem = self.mistakes.told(error, f"message {_known_kind(kind)}")
            given = Garbled(client=client, kind=kind, reason=problem.message, ticket=ticket)
        if reply:
            self._replies[ticket] = reply
        if client in self._deployment.policies or client in self._deployment.stopped:
            # What policies publish comes from engines: a run does what their events ask for.
            refused = NAME_OF_POLICY(client=client)
            answer = Nack(of=kind, code=refused.code.code, message=refused.message, hint=refused.hint)
            self._begin_for(client, ticket, kind, 0, self._answer(ticket, answer))
            return None
        return given

    def _note_forged(self, client: str, reply: str) -> None:
        """It would have this router write where it may not write itself."""
        problem = NO_RIGHT(client=client, reason=f"its answers cannot be sent to `{reply[:100]}`")
        self.reports[problem.code.code] = self.reports.get(problem.code.code, 0) + 1
        _log.warning("%s", problem.message)

    def _put(self, given: Input) -> None:
        """Something happened: what was waited for is done."""
        if isinstance(given, _DONE) and (client := self._open.pop(given.ticket, None)) is not None:
            self._queues.done(client, given.ticket)
        self._inputs.append(given)
        self._some.set()

    async def _run(self) -> None:
        """The machine: one input at a time. Others get their turn as soon as it has worked for a moment."""
        clock = asyncio.get_running_loop().time
        until = clock() + _MOMENT
        while True:
            given = self._inputs.popleft() if self._inputs else self._next()
            if given is None:
                self._some.clear()
                await self._some.wait()
                until = clock() + _MOMENT
                continue
            await self._take(given, clock())
            if clock() > until:
                await asyncio.sleep(0)
                until = clock() + _MOMENT

    def _next(self) -> Input | None:
        """What a client said that is to be looked at next."""
        while (found := self._queues.next()) is not None:
            given = self._read(*found)
            if given is not None:
                return given
        return None

    async def _take(self, given: Input, now: float) -> None:
        try:
            effects = step(self._state, given, now)
        except Exception as error:  # noqa: BLE001 - of this input: the next is another matter
            effects = self._not_taken(given, self.mistakes.told(error, f"message {_name_of(given)}"))
        for effect in effects:
            try:
                await self._do(effect)
            except (SituError, OSError) as error:
                _log.warning("%s: %s", type(effect).__name__, error)
                self._not_done(effect, _problem(error))
            except Exception as error:  # noqa: BLE001 - of this effect: the next is another matter
                self._not_done(effect, self.mistakes.told(error, f"effect {type(effect).__name__}"))

    def _not_taken(self, given: Input, problem: Problem) -> tuple[Effect, ...]:
        """The machine may have done half of it. Who waits is told; a client whose numbers may be wrong connects anew,
        and tells again what it has."""
        if not isinstance(given, Received | Garbled):
            return ()
        kind = _name_of(given)
        retry = isinstance(given, Received) and isinstance(given.message, _NUMBERED)
        req = getattr(_said(given), "req", 0)
        nack = Nack(of=kind, req=req, code=problem.code.code, message=problem.message, hint=problem.hint, retry=retry)
        answer = Answer(ticket=given.ticket, message=nack)
        if not retry:
            return (answer,)
        return (*leave(self._state, given.client), answer)

    def _not_done(self, effect: Effect, problem: Problem) -> None:
        """What waits for this effect is told that it failed."""
        ticket, code, text, hint = getattr(effect, "ticket", None), problem.code.code, problem.message, problem.hint
        if ticket is None:
            return
        if isinstance(effect, Store):
            self._put(StoreFailed(ticket=ticket, reason=text.rstrip(".")))
        elif isinstance(effect, Declare | Withdraw | Define | Rescope):
            self._put(Refused(ticket=ticket, code=code, message=text, hint=hint))
        elif isinstance(effect, Look | Negotiate):
            self._begin(self._say_no(ticket, type(effect.message).__name__, effect.message.req, problem))

    # ── effects ──

    async def _do(self, effect: Effect) -> None:
        match effect:
            case Answer():
                await self._answer(effect.ticket, effect.message)
            case Send():
                await self._send(self._names.live(effect.client), effect.message)
            case Store():
                client = effect.key.client
                self._opened(effect.ticket, client, len(effect.body))
                if self._engine is None or effect.body.count(b"{") <= _MANY:
                    await self._storing.store(effect)
                else:  # others need not wait until it is looked through
                    self._queues.begin(client, effect, alone=True)
                    self._begin(self._store_long(effect))
            case Declare():
                self._opened(effect.ticket, effect.what.client)
                self._declarations.declare(effect)
            case Withdraw():
                self._declarations.withdraw(effect)
            case Define():
                self._opened(effect.ticket, effect.client, len(effect.text))
                self._begin(self._done_or_refused(effect, self._declarations.define(effect)))
            case Rescope():
                self._opened(effect.ticket, effect.client)
                self._begin(self._done_or_refused(effect, self._declarations.rescope(effect)))
            case Record():
                await self._record(effect)
            case Look():
                client = effect.client if effect.wanted is None else effect.wanted.client
                kind = type(effect.message).__name__
                self._begin_for(client, effect.ticket, kind, effect.message.req, self._look(effect))
            case Negotiate():
                self.quality.take(effect)
            case Presence():
                if not effect.here:
                    self._queues.forget(effect.client)
                self.quality.presence(effect)
            case SetTimer():
                self._set_timer(effect)
            case Report():
                self.reports[effect.code] = self.reports.get(effect.code, 0) + 1
                _log.warning("%s: %s %s", effect.client, effect.code, effect.text)

    async def _store_long(self, effect: Store) -> None:
        """Nothing else of the client is looked at before this is handed over: its messages stay in order."""
        try:
            await self._done_or_refused(effect, self._storing.store(effect))
        finally:
            self._queues.done(effect.key.client, effect)
            self._some.set()

    def _opened(self, ticket: int, client: str, size: int = 0) -> None:
        """Something is done for a client until the machine is told of it."""
        self._open[ticket] = client
        self._queues.begin(client, ticket, size)

    async def _done_or_refused(self, effect: Define | Rescope | Store, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (SituError, OSError) as error:
            self._not_done(effect, _problem(error))
        except Exception as error:  # noqa: BLE001 - of this effect: the next is another matter
            self._not_done(effect, self.mistakes.told(error, f"effect {type(effect).__name__}"))

    def _begin_for(
        self,
        client: str,
        ticket: int,
        kind: str,
        req: int,
        work: Coroutine[Any, Any, None],
        *,
        alone: bool = False,
    ) -> None:
        """Work for a client; whatever becomes of it, whoever asked is answered."""
        what = ("work", ticket)
        self._queues.begin(client, what, alone=alone)

        async def done() -> None:
            try:
                await work
            except (SituError, OSError) as error:
                _log.warning("%s of %s: %s", kind, client, error)
                await self._say_no(ticket, kind, req, _problem(error))
            except Exception as error:  # noqa: BLE001 - of this message: the next is another matter
                await self._say_no(ticket, kind, req, self.mistakes.told(error, f"message {_known_kind(kind)}"))
            finally:
                self._queues.done(client, what)
                self._some.set()

        self._begin(done())

    async def _say_no(self, ticket: int, kind: str, req: int, problem: Problem) -> None:
        nack = Nack(of=kind, req=req, code=problem.code.code, message=problem.message, hint=problem.hint)
        with suppress(SituError):
            await self._answer(ticket, nack)

    async def _answer(self, ticket: int, message: FromRouter) -> None:
        if reply := self._replies.pop(ticket, ""):
            await self._send(reply, message)

    async def _send(self, subject: str, message: FromRouter) -> None:
        headers, body = encode(message)
        await self._bus.send(Message(subject=subject, headers=headers, body=body))

    async def _look(self, effect: Look) -> None:
        await self._answer(effect.ticket, await self._questions.answer(effect))

    async def _record(self, effect: Record) -> None:
        if effect.session is None:
            await self._bus.remove(self._names.clients, effect.client)
        else:
            value = json.dumps({"router": self.router, "session": effect.session}).encode()
            await self._bus.put(self._names.clients, effect.client, value)

    def _set_timer(self, effect: SetTimer) -> None:
        loop = asyncio.get_running_loop()
        if effect.name in self._timers:
            self._timers[effect.name].cancel()
        self._timers[effect.name] = loop.call_later(effect.after, self._put, Timer(name=effect.name))

    async def _shape(self, shapes: Mapping[str, Shape | None]) -> None:
        """Durable subscriptions read where their events will go before anything can go there: what nobody reads is not
        kept, and what was promised must not be lost with it."""
        shaped = {**self._deployment.shapes, **shapes}
        kept = {id: each for id, each in shaped.items() if each is not None}
        await self._consumers.ensure(replace(self._deployment, shapes=kept))
        await self._declarations.shape(shapes)

    async def _measure(self, whom: MeasuredPublishers) -> None:
        """Have engines measure what these publish."""
        await publish_measured(self._bus, whom)
        if self._engine is not None:
            self._engine.measure(whom)

    # ── deployments ──

    async def _adopt(self, deployment: Deployment) -> None:
        suspended = await self._suspended(deployment)
        await self._consumers.ensure(deployment)
        self._deployment = deployment
        self._storing.adopt(deployment)
        self._questions.adopt(deployment)
        self._handing.adopt(deployment)
        self.quality.adopt(deployment)
        self._newest = max(self._newest, deployment.version)
        self._put(
            Deployed(
                version=deployment.version,
                advertisements=deployment.advertisements,
                subscriptions=deployment.subscriptions,
                contexts={
                    name: client.context for name, client in deployment.clients.items() if client.context != ROOT
                },
                terms=terms_of(deployment.settings),
                grace=deployment.settings.overlay.child_grace.total_seconds(),
                suspended=suspended,
                epoch=deployment.epoch,
            )
        )

    async def _suspended(self, deployment: Deployment) -> tuple[Suspended, ...]:
        """What clients have no right to any more; without scopes there is nothing to ask for.

        Who lost the right to a queue does not read it to its end, also if it has the right again by now.
        """
        if not deployment.epoch and not deployment.numbers:
            return ()
        before = self._deployment.version or (await adopted_versions(self._bus)).get(self.name, deployment.version)
        lost = await asyncio.to_thread(self._registry.suspended_between, before, deployment.version)
        await self._consumers.drop(key.name for key in lost if key.kind == "subscription")
        return suspended_declarations(deployment, await asyncio.to_thread(self._registry.suspended))

    async def _follow(self) -> None:
        async for current in watch_deployments(self._bus):
            if current.version > self._deployment.version:
                fresh = self._fresh
                if fresh is None or fresh.version != current.version:
                    fresh = await fetch_deployment(self._bus, current.version)
                await self._adopt(fresh)
                await self._desk.guarded()
                await report_adopted(self._bus, self.name, current.version)
                self._made(current.version)

    def _declared(self, deployment: Deployment) -> None:
        """What this router had declared itself need not be fetched and read again in this process."""
        self._fresh = deployment
        if self._engine is not None:
            self._engine.offer(deployment)
        self._made(deployment.version)

    def _made(self, version: int) -> None:
        self._newest = max(self._newest, version)
        self._news.set()

    async def _await_engines(self) -> None:
        """Tell when all engines work with the newest version."""
        while True:
            await self._news.wait()
            version = self._newest
            while True:
                missing = await wait_adopted(self._bus, version, _ADOPT_WITHIN)
                self._put(Adopted(version=version, missing=missing))
                if not missing:
                    break
            if self._newest == version:
                self._news.clear()
            if self._deployment.version >= version:
                await self._consumers.tidy(self._deployment)


def _problem(error: SituError | OSError) -> Problem:
    if isinstance(error, SituError):
        return error.problems[0]
    return STORE_UNAVAILABLE(reason=error.strerror or type(error).__name__)


def _said(given: Received | Garbled) -> FromClient | None:
    return given.message if isinstance(given, Received) else None


def _name_of(given: Input) -> str:
    if isinstance(given, Received):
        return type(given.message).__name__
    return _known_kind(given.kind) if isinstance(given, Garbled) else type(given).__name__


def _known_kind(kind: str) -> str:
    """The kind of a message, if it is one: whoever makes up names must not fill the counts."""
    return kind if kind in CLIENT_KINDS or kind == TAKE else "unknown"
