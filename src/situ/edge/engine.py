"""The edge engine: decode, stamp, root log, route and deliver in one process, message by message.

A message is acknowledged when its events are in the root log, and those that are none in the dead letters; then they
are routed, in the order of the log.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from situ.bus.event_loop import end
from situ.bus.failure_log import InternalErrors
from situ.bus.interface import Bus, StoreAck, wall_clock
from situ.bus.measurement import measured_publishers
from situ.edge.detect import END_WITHIN, EdgeDetection
from situ.edge.detect_checkpoint import plan_of
from situ.edge.dispatcher import DEAD, NOTHING, Dispatcher, EdgeCounts, EdgeCursor
from situ.edge.measure import EdgeMeter, OnMeasured
from situ.edge.tables import EdgeTables
from situ.event.failures import failed_by
from situ.event.lines import decode_line, stored_lines
from situ.event.message import COUNT, DEPLOYMENT, OWN, EventKey, Message, StoredMessage, join_lines, lane_of
from situ.event.row import BadRow, Error, Origin, Row
from situ.event.subjects import BusNames, pack_root
from situ.lang.catalogue import ENGINE_FAILED
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.model import Deployment
from situ.protocol.messages import DeadEvent, Notice
from situ.quality.measurement.meter import MeasuredPublishers
from situ.registry.run_metrics import EngineSize, ExecutorLoad
from situ.registry.snapshots import engine_alive, fetch_deployment, report_adopted, watch_deployments
from situ.stages.decode import texts_of
from situ.stages.detect.situation_events import DetectionStatus, PolicyMessage
from situ.stages.interpret import Interpretation
from situ.stages.plan import Plan, compile_plan
from situ.stages.root_log import (
    RootBatch,
    accept,
    accept_rows,
    dead_letters,
    ingest,
    ingress_rows,
    origin_of,
    pack,
    read_lines,
    refused,
    upgrade_message,
)
from situ.stages.takeover import EngineHandover

_log = logging.getLogger("situ.edge")
_SAVE_EVERY = 0.5
_LOOK = 0.02
_MOST_WAITING = 256
"""Messages of the ingress stream that are under way to the logs at a time."""
_MARGIN = timedelta(seconds=1)
"""Clocks of bus and engine may differ."""
_TRY_EVERY = 2.0
_PAUSE = 0.2
_MOST_TOLD = 50  # reasons why one event is dead that its publisher is told at once
_MANY = 1000
"""Events of a message beyond which it is worked in parts."""
_REMEDY = "It goes on from its cursor when it is started again; nothing was lost."


@dataclass(slots=True)
class _Logged:
    """A message handed to the logs: its events and its dead letters, each with where it will be."""

    key: EventKey
    last: int
    """Number of its last event, whatever became of it."""
    plan: Plan
    rows: list[Row]
    lines: list[bytes]
    stored: asyncio.Future[StoreAck] | None
    letters: list[tuple[Message, asyncio.Future[StoreAck]]]
    own: bool = False
    """Whether a policy said it."""

    @property
    def stores(self) -> list[asyncio.Future[StoreAck]]:
        letters = [future for _, future in self.letters]
        return letters if self.stored is None else [*letters, self.stored]


class EdgeEngine:
    """One zone's events in this process. The router of the zone hands it what clients send.

    ``clock`` gives microseconds since 1970: policies decide by it.
    """

    name = "edge"

    def __init__(
        self, bus: Bus, folder: Path | None, *, router: str = "r1", clock: Callable[[], int] = wall_clock
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._router = router
        own = folder / ".situ" / "edge" if folder is not None else None
        self._cursor = EdgeCursor(own / "cursor.json" if own is not None else None)
        self._measuring = EdgeMeter(bus)
        self.mistakes = InternalErrors(_log)
        shaping = own / "shaping.json" if own is not None else None
        self._dispatcher = Dispatcher(bus, self._cursor, shaping, self._measuring, self.mistakes)
        self._tables = EdgeTables(bus, folder or Path())
        self.on_measured: OnMeasured | None = None
        """Who is told what publishers do, every second, if anybody is to be."""
        self._detection = EdgeDetection(
            bus, folder, lambda: self._tables.snapshot, self._dispatcher.refuse, self.mistakes, clock
        )
        self._plan: Plan | None = None
        self._routing: Plan | None = None
        """By which messages are routed that were not taken by a newer one."""
        self._next: Plan | None = None
        """What is to be adopted, and waits for its tables."""
        self._hindered = ""
        self._adopting = asyncio.Lock()
        self._in_order = asyncio.Lock()
        """Of whoever hands messages to the logs."""
        self._offered: Deployment | None = None
        self._reported = 0
        self._evicted = 0
        self._logged: asyncio.Queue[_Logged | Plan | None] = asyncio.Queue()
        """Messages under way to the log; a plan: all behind it are worked by that one; None: the end."""
        self._routes = False
        """Whether a message is being routed."""
        self._gaps: dict[str, EventKey] = {}
        """Of each lane the first message that was not stored, until it comes again."""
        self._tasks: list[asyncio.Task[None]] = []
        self._stack = AsyncExitStack()
        self._failed: asyncio.Future[None] | None = None

    @property
    def version(self) -> int:
        """Of the deployment it works with."""
        return self._reported

    @property
    def reached(self) -> int | None:
        """None: it does not read the ingress stream."""
        return None

    @property
    def batch(self) -> float:
        """0: events are taken message by message."""
        return 0.0

    @property
    def counts(self) -> EdgeCounts:
        return self._dispatcher.counts

    @property
    def size(self) -> EngineSize:
        """It works in this process, on one core, and keeps what policies remember in one place."""
        return EngineSize(cores=1)

    def executors_at_work(self) -> Sequence[ExecutorLoad]:
        """None: it works in this process."""
        return ()

    async def say(self, message: PolicyMessage) -> None:
        """Take events of Situ's own in. What cannot be stored now is not worth being told later."""
        await (await self.take(message.key, message.count, message.body, self._clock(), own=True))

    @property
    def watched(self) -> DetectionStatus:
        return self._detection.watched

    # ── beginning and end ──

    async def start(self) -> None:
        """Load what is in force, route what a process before this one left, then take messages.

        After a failure it may be started again: what it had in hand is in the log, behind the cursor.
        """
        await self._end_work()
        loop = asyncio.get_running_loop()
        self._failed = loop.create_future()
        deployment = await fetch_deployment(self._bus)
        self._plan = self._routing = await asyncio.to_thread(compile_plan, deployment)
        await self._tables.adopt(self._plan)
        await self._take_waiting(self._plan)
        await self._dispatcher.recover(self._plan)
        self._measuring.adopt(self._plan)
        self._measuring.tell(await measured_publishers(self._bus))
        await self._detection.start(self._plan, self._publish, self._cursor.highest)
        await self._stack.enter_async_context(engine_alive(self._bus, self.name))
        await report_adopted(self._bus, self.name, deployment.version)
        self._reported = deployment.version
        for name, work in self.works.items():
            task = loop.create_task(self._keep(name, work))
            task.add_done_callback(self._ended)
            self._tasks.append(task)

    @property
    def works(self) -> Mapping[str, Callable[[], Coroutine[Any, Any, None]]]:
        """What goes on from its start to its end; the first comes to an end by itself when it is stopped, and the last
        is detection."""
        return {
            "route": self._route_on,
            "follow": self._follow,
            "save": self._save,
            "measure": self._measuring.look_on,
            "tables": self._tables.refresh_on,
            "adopt": self._try_again,
            "detect": lambda: self._detection.run(self._publish),
        }

    async def _keep(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """For as long as there is work: what nobody foresaw ends nothing, what the bus or the disk lack does."""
        while True:
            try:
                await work()
                return
            except Exception as error:  # noqa: BLE001 - it begins again where it was
                self.mistakes.note(error, f"engine {name}")
            await asyncio.sleep(_PAUSE)

    async def ended(self) -> None:
        """Wait until it ends; raises why, if it was not stopped."""
        assert self._failed is not None, "only what was started can end"
        await asyncio.shield(self._failed)

    async def stop(self, *, patient: bool = False) -> None:
        """Route what is in the log, and end; ``patient``: however long it takes to write down what is remembered."""
        if not self._tasks:
            return
        self._logged.put_nowait(None)
        await asyncio.gather(self._tasks[0], return_exceptions=True)
        try:
            await self._dispatcher.settle(most=0)
        finally:
            self._cursor.save()
            self._dispatcher.keep()
            await self._detection.close(None if patient else END_WITHIN)
            await self._end_work()
            if self._failed is not None and not self._failed.done():
                self._failed.set_result(None)

    async def hand_over(self) -> EngineHandover:
        """Finish what a process before this one left, and give all that another engine needs to go on from there.

        Nobody else may put anything into the logs meanwhile.
        """
        await self.start()
        assert self._plan is not None
        while not (self._logged.empty() and not self._routes and self._detection.is_idle):
            if self._failed is not None and self._failed.done():
                await self._failed  # raises why
            await asyncio.sleep(_LOOK)
        # From here on time tells nothing more: it would be in the log, and neither delivered nor taken by policies.
        self._detection.cease()
        await self.stop(patient=True)
        interpretation = self._plan.interpretation
        left = EngineHandover(
            root=self._cursor.root or 0,
            dead=self._cursor.dead or 0,
            highest=dict(self._cursor.highest),
            incoming=interpretation.incoming.as_text() if interpretation.remembers else b"",
            outgoing=interpretation.outgoing.as_text() if interpretation.remembers else b"",
            detection=await asyncio.to_thread(self._detection.left),
        )
        return self._dispatcher.leave(left)

    async def _end_work(self) -> None:
        await end(self._tasks)
        self._tasks = []
        await self._tables.close()
        await self._stack.aclose()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or self._failed is None or self._failed.done():
            return
        error = task.exception()
        if isinstance(error, SituError):
            self._failed.set_exception(error)
        elif error is not None:
            _log.error("the edge engine failed", exc_info=error)
            reason = f"{type(error).__name__}: {error}"
            self._failed.set_exception(SituError(ENGINE_FAILED(engine="edge", reason=reason, remedy=_REMEDY)))

    # ── taking messages ──

    async def take(
        self, key: EventKey, count: int, body: bytes, received: int, *, own: bool = False
    ) -> asyncio.Future[tuple[DeadEvent, ...]]:
        """Take a message in; the future is done when it is stored, with those of its events that are dead letters.

        Messages of a client are stored in the order of these calls. What detection here says is ``own``: nobody asks
        whether it may, since policies that are gone tell what becomes of what they have open.
        """
        plan = self._plan
        assert plan is not None, "a router starts after its engine"
        batch = await self._ingest(body, key, count, received, plan, own=own)
        logged, told = await self._store(key, count, batch, plan, self._logged.put_nowait, own=own)
        return _together([store for each in logged for store in each.stores], told)

    async def refuse(
        self, key: EventKey, original: bytes, received: int, errors: tuple[Error, ...]
    ) -> asyncio.Future[tuple[DeadEvent, ...]]:
        """Take in what was to be an event and is none, for the reasons that are given: it is a dead letter."""
        plan = self._plan
        assert plan is not None, "what reads topics starts after the engine"
        origin = Origin(
            client=key.client,
            incarnation=key.incarnation,
            seq=key.seq,
            received=received,
            pos=0,
            context=plan.interpretation.stamped(key.client),
        )
        taken = (key.incarnation, key.seq) <= self.last_taken(key.client, key.incarnation)
        bad = [] if taken else [refused(original, origin, errors)]
        batch = RootBatch(bad=bad, last=key.seq if bad else 0)
        logged, told = await self._store(key, 1, batch, plan, self._logged.put_nowait)
        return _together([store for each in logged for store in each.stores], told)

    def last_taken(self, client: str, incarnation: int) -> tuple[int, int]:
        """Incarnation and number of the last event of this client, or of this partition of a topic, that was taken."""
        return self._cursor.highest.get(lane_of(client, incarnation), NOTHING)

    async def _store(
        self,
        key: EventKey,
        count: int,
        batch: RootBatch,
        plan: Plan,
        then: Callable[[_Logged], None] = lambda logged: None,
        *,
        own: bool = False,
    ) -> tuple[list[_Logged], tuple[DeadEvent, ...]]:
        """Hand what became of a message to the logs, and then to who is named; nothing if all of it was taken before.

        Several messages may be on their way here at a time; what is handed on comes in the order of the logs. Of an
        ``own`` message all is handed on: policies may wait for it, and it may be dead letters.
        """
        good, lines, bad, packed = batch.good, batch.lines, batch.bad, batch.messages
        if not plan.interpretation.incoming.is_empty:
            plan.interpretation.incoming.note(good)
        made: list[Message] = []
        if bad:
            self.mistakes.of_events(bad)
            for begin in range(0, len(bad), _MANY):
                made += self._letters(bad[begin : begin + _MANY], plan)
                if len(bad) > _MANY:
                    await asyncio.sleep(0)
        async with self._in_order:
            letters = [(letter, await self._bus.store(letter)) for letter in made]
            stored = [await self._bus.store(message, lane=key.client) for _, message in packed]
            logged: list[_Logged] = []
            for (some, _), store in zip(packed[:-1], stored, strict=False):
                first, last = good[some.start], good[some.stop - 1]
                at = replace(key, seq=first.seq)
                logged.append(_Logged(at, last.seq, plan, good[some], lines[some], store, []))
            if batch.last or own:
                final = batch.last or key.seq + count - 1
                rest = packed[-1][0] if packed else slice(0, 0)
                at = replace(key, seq=good[rest.start].seq) if len(packed) > 1 else key
                last_store = stored[-1] if stored else None
                logged.append(_Logged(at, final, plan, good[rest], lines[rest], last_store, letters, own))
            for each in logged:
                then(each)
        told = tuple(_told(each) for each in bad)
        self.counts.dead.update(each.code for each in told)
        return logged, told

    def _letters(self, bad: Sequence[BadRow], plan: Plan) -> list[Message]:
        now = self._clock()
        try:
            return dead_letters(bad, now, plan)
        except Exception as error:  # noqa: BLE001 - which of them it was is found out one by one
            self.mistakes.note(error, "dead letter")
        found: list[Message] = []
        for each in bad:
            with self.mistakes.noted("dead letter lost"):
                found += dead_letters([each], now, plan)
        return found

    async def _ingest(
        self, body: bytes, key: EventKey, count: int, received: int, plan: Plan, *, own: bool
    ) -> RootBatch:
        """What becomes of the events of a message; a long one is worked some at a time, so that others get theirs in
        between."""
        texts = texts_of(body) if body.count(b"{") > _MANY else []
        if len(texts) <= _MANY or len(texts) > plan.interpretation.most:
            above = self._cursor.highest.get(key.lane, NOTHING)
            return ingest(body, key, count, received, plan, self._router, own=own, above=above)
        batch = RootBatch()
        for begin in range(0, len(texts), _MANY):
            some = join_lines(texts[begin : begin + _MANY])
            at, above = replace(key, seq=key.seq + begin), self._cursor.highest.get(key.lane, NOTHING)
            batch.add(accept(some, at, received, plan, own=own, above=above))
            await asyncio.sleep(0)
        pack(batch, plan, self._router, (key, count))
        return batch

    async def _take_waiting(self, plan: Plan) -> None:
        """Put into the logs what another engine left in the ingress stream, and what it had policies say there.

        What is there already is known by the keys of its events; so this may be cut off anywhere and done again.
        """
        stream = BusNames(plan.zone).in_stream
        state = await self._bus.state(stream)
        if not state.messages:
            return
        await self._know_logged(plan, stream, state.first)
        some: list[_Logged] = []
        count = 0
        async for message in self._bus.read(stream, state.first, state.last):
            origin = origin_of(message)
            former = await self._former(message, origin.context, plan)
            rows = ingress_rows(message, origin, plan.interpretation, partial(_given, former), bare=True)
            for row in rows:
                row.pos = 0
            key = EventKey(origin.client, origin.incarnation, origin.seq)
            if any(each.key.lane == key.lane and each.last >= key.seq for each in some):
                await self._reach_all(some)  # a repeat is known by what was stored before it
            above = self._cursor.highest.get(key.lane, NOTHING)
            batch = accept_rows(rows, plan, own=OWN in message.headers, above=above)
            number = int(message.headers.get(COUNT, "1"))
            pack(batch, plan, self._router, (key, number))
            logged, _ = await self._store(key, number, batch, plan)
            some += logged
            if batch.good:
                self._dispatcher.count(batch.good)
                count += len(batch.good)
            if len(some) >= _MOST_WAITING:
                await self._reach_all(some)
        await self._reach_all(some)
        await self._bus.purge(stream, state.last + 1)
        _log.info("%d events that were waiting in the ingress stream are in the root log", count)

    async def _reach_all(self, some: list[_Logged]) -> None:
        """Wait until all of these are stored; only then do they count as taken."""
        for each in some:
            for store in each.stores:
                await store
        for each in some:
            self._cursor.reach(each.key.lane, each.key.incarnation, each.last)
        some.clear()

    async def _know_logged(self, plan: Plan, ingress: str, first: int) -> None:
        """Learn from the logs how far each client is, as far as the cursor does not say it."""
        names = BusNames(plan.zone)
        since = datetime.now(UTC)
        async for message in self._bus.read(ingress, first, first):
            since = datetime.fromtimestamp(message.at / 1_000_000, UTC) - _MARGIN
        for stream, reached in ((names.root_stream, self._cursor.root), (names.dead_stream, self._cursor.dead)):
            last = (await self._bus.state(stream)).last
            behind = reached if reached is not None and reached <= last else await self._bus.find(stream, since) - 1
            async for message in self._bus.read(stream, behind + 1, last):
                for line in stored_lines(message):
                    row = decode_line(line)
                    key = EventKey(row.client, row.incarnation, row.seq)
                    if stream == names.dead_stream:
                        key = EventKey.parse(json.loads(row.data)["key"])
                    self._cursor.reach(key.lane, key.incarnation, key.seq)

    async def _former(self, message: StoredMessage, context: str, plan: Plan) -> Interpretation | None:
        """What contexts did in the deployment by which a message came in, if its context is not there any more."""
        if OWN in message.headers or plan.interpretation.knows(context):
            return None
        version = int(message.headers.get(DEPLOYMENT, "0"))
        then = await plan_of(self._bus, version, plan)
        sources, now = then.deployment.sources, plan.deployment.sources
        tables = plan.interpretation.rows.tables
        then.interpretation.rows.tables = {
            name: each for name, each in tables.items() if sources.get(name) == now.get(name)
        }
        plan.interpretation.resume()
        return then.interpretation

    # ── routing ──

    async def _route_on(self) -> None:
        while (logged := await self._logged.get()) is not None:
            if isinstance(logged, Plan):
                self._routing = logged
                await self._dispatcher.adopt(logged)
                self._measuring.adopt(logged)
                self._detection.adopt(logged)
                self._reported = logged.version
                await report_adopted(self._bus, self.name, logged.version)
                continue
            self._routes = True
            try:
                stored = await self._route_logged(logged)
            except Exception as error:  # noqa: BLE001 - of this message: what comes behind it is routed
                stored = True
                failure = self.mistakes.note(error, "route")
                with self.mistakes.noted("route"):
                    bad = [failed_by(failure, row) for row in logged.rows]
                    await self._dispatcher.refuse(bad, logged.plan)
            if logged.own and stored:
                self._detection.settle(replace(logged.key, seq=logged.last), logged.plan)
            if self._logged.empty():
                await self._dispatcher.settle()
            self._routes = False

    async def _route_logged(self, logged: _Logged) -> bool:
        """Whether all of it is in the logs."""
        self._bring_up(logged)
        stored = []
        for number, (letter, future) in enumerate(logged.letters, 1):
            stored.append(await self._route_letter(letter, future, logged.plan))
            if number % _MANY == 0:
                await asyncio.sleep(0)
        if logged.stored is not None:
            stored.append(await self._route(logged, logged.stored))
        self._reach(logged, whole=all(stored))
        return all(stored)

    def _bring_up(self, logged: _Logged) -> None:
        """A message that had to wait for the bus on its way here may have been taken by an older plan than the one it
        came behind. It is worked by that one: others were told that nothing is done by the one before any more."""
        plan, former = self._routing, logged.plan
        if plan is None or former.version >= plan.version:
            return
        logged.plan = plan
        if logged.rows and former.interpretation.generation != plan.interpretation.generation:
            names, generation = BusNames(plan.zone), former.interpretation.generation
            packed = pack_root(names, self._router, logged.rows, logged.lines, generation=generation)
            logged.rows, logged.lines = [], []
            for _, message in packed:
                stored = StoredMessage(seq=0, subject=message.subject, body=message.body, headers=message.headers, at=0)
                rows, lines = read_lines(upgrade_message(stored, plan.interpretation))
                logged.rows += rows
                logged.lines += lines

    def _reach(self, logged: _Logged, *, whole: bool) -> None:
        """Dead letters are behind the cursor, too: come again, they are not for those who subscribed since.

        Not so while a message before them is missing. It comes again, and would not be told from what was routed.
        """
        key, lane = logged.key, logged.key.lane
        gap = self._gaps.get(lane)
        if not whole:
            self._gaps.setdefault(lane, key)
        elif gap is None or key.incarnation > gap.incarnation or key.seq <= gap.seq:
            self._gaps.pop(lane, None)
            self._cursor.reach(key.lane, key.incarnation, logged.last)

    async def _route(self, logged: _Logged, stored: asyncio.Future[StoreAck]) -> bool:
        """Whether it is in the log."""
        try:
            ack = await stored
        except SituError:
            return False  # its client is told and sends it again
        rows = logged.rows
        # What was stored before may not have been routed: that its first sending failed is all that was known here.
        if not await self._dispatcher.dispatch_stored(ack.seq, rows, logged.lines, logged.plan):
            return True
        if self.on_measured is not None:
            self._measuring.take(rows, self._clock())
        self._detection.take(ack.seq, rows, logged.plan)
        return True

    async def _publish(self, message: PolicyMessage) -> None:
        """Take a message of a policy in; it is in the log when this returns."""
        while True:
            try:
                stored = await self.take(message.key, message.count, message.body, self._clock(), own=True)
                for dead in await stored:
                    _log.error("an event of the policy %s is a dead letter: %s", message.policy, dead.message)
                return
            except SituError as error:
                _log.warning("situations of %s cannot be stored: %s", message.policy, error)
                await asyncio.sleep(_TRY_EVERY)
            except Exception as error:  # noqa: BLE001 - of this message: what is told behind it is published
                self.mistakes.note(error, "publish situations")
                return

    async def _route_letter(self, letter: Message, stored: asyncio.Future[StoreAck], plan: Plan) -> bool:
        """Dead letters are events themselves."""
        try:
            ack = await stored
        except SituError:
            return False
        rows, lines = read_lines(letter)
        await self._dispatcher.dispatch(DEAD, ack.seq, rows, lines, plan, live=not ack.duplicate)
        return True

    async def _save(self) -> None:
        while True:
            await asyncio.sleep(_SAVE_EVERY)
            await self._dispatcher.tick(self._clock())
            await self._dispatcher.settle()
            self._cursor.save()
            self._dispatcher.keep()
            self._tell_evicted()
            self._tell_measured()

    def measure(self, whom: MeasuredPublishers) -> None:
        """These have told what they can do: their events are measured, and of those that the deployment knows."""
        self._measuring.tell(whom)

    def _tell_measured(self) -> None:
        measured = self._measuring.drain(self._clock()) if self.on_measured is not None else None
        if measured is not None and self.on_measured is not None:
            self.on_measured(*measured)

    def _tell_evicted(self) -> None:
        """Say that more keys came than are remembered: conversions may lack them."""
        assert self._plan is not None
        interpretation = self._plan.interpretation
        evicted = interpretation.incoming.evicted + interpretation.outgoing.evicted
        if evicted > self._evicted:
            _log.warning("%d keys were forgotten, because there are more than `max_keys`", evicted - self._evicted)
        self._evicted = evicted

    # ── adopting deployments ──

    def offer(self, deployment: Deployment) -> None:
        """A deployment that is about to be in force, from the same process."""
        self._offered = deployment
        self._learn()

    def _learn(self) -> None:
        """A client that was told that an advertisement is accepted publishes under it, however long a plan takes."""
        plan, offered = self._plan, self._offered
        if plan is None or offered is None or offered.version <= plan.version:
            return
        plan.learn(offered)

    async def _follow(self) -> None:
        async for current in watch_deployments(self._bus):
            plan = self._plan
            assert plan is not None
            if current.version <= plan.version:
                continue
            deployment = self._offered
            if deployment is None or deployment.version != current.version:
                deployment = await fetch_deployment(self._bus, current.version)
            self._next = await asyncio.to_thread(compile_plan, deployment, plan)
            await self._adopt_next()

    async def _adopt_next(self) -> None:
        """Work with the next plan from here on; if a table that it needs cannot be read, that is tried again."""
        async with self._adopting:
            plan, self._next = self._next, None
            if plan is None:
                return
            try:
                await self._tables.adopt(plan)
            except SituError as error:
                if str(error) != self._hindered:
                    _log.warning("Version %d is not at work yet: %s", plan.version, error)
                self._hindered = str(error)
                if self._next is None:
                    self._next = plan
                return
            self._plan, self._hindered = plan, ""
            self._learn()
            # What was taken before is worked to its end by the plan it was taken with.
            self._logged.put_nowait(plan)

    async def _try_again(self) -> None:
        while True:
            await asyncio.sleep(_TRY_EVERY)
            await self._adopt_next()


def _given(former: Interpretation | None, _: int) -> Interpretation | None:
    return former


def _told(bad: BadRow) -> DeadEvent:
    (code, _, message, hint), *others = bad.errors[:_MOST_TOLD]
    more = tuple(Notice(code=code, message=message, hint=hint) for code, _, message, hint in others)
    return DeadEvent(seq=bad.seq, code=code, message=message, hint=hint, others=more)


def _together(
    stores: list[asyncio.Future[StoreAck]], told: tuple[DeadEvent, ...]
) -> asyncio.Future[tuple[DeadEvent, ...]]:
    """Done when all are stored; failed with the first that is not."""
    outcome: asyncio.Future[tuple[DeadEvent, ...]] = asyncio.get_running_loop().create_future()
    left = len(stores)
    if not left:
        outcome.set_result(told)

    def stored(store: asyncio.Future[StoreAck]) -> None:
        nonlocal left
        left -= 1
        error = store.exception() if not store.cancelled() else asyncio.CancelledError()
        if outcome.done():
            return
        if isinstance(error, asyncio.CancelledError):
            outcome.cancel()
        elif error is not None:
            outcome.set_exception(error)
        elif left == 0:
            outcome.set_result(told)

    for store in stores:
        store.add_done_callback(stored)
    return outcome
