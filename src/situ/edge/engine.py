"""The edge engine: decode, stamp, root log, route and deliver in one process, message by message.

A message is acknowledged when its events are in the root log; then they are routed, in the order of the log. How far
that has come is a cursor on disk: what a process that died left unrouted behind it is routed when the next one starts.
Repeats that this makes end at the ids of messages and in the windows of clients; volatile subscriptions, which promise
nothing over a crash, get none of it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter, deque
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from situ.bus.interface import Ack, Bus
from situ.catalogue import ENGINE_FAILED
from situ.edge import deliver
from situ.edge.decode import decode
from situ.edge.plans import Plan, compile_plan
from situ.edge.root_log import dead_letters, lines_of, place, root_message
from situ.edge.route import route
from situ.edge.stamp import stamp
from situ.errors import SituError
from situ.event.lines import decode_line, encode_row
from situ.event.message import EventKey, message_id
from situ.event.row import Row
from situ.overlay.messages import Dead
from situ.registry.engines import engine_alive, report_adopted
from situ.registry.snapshots import fetch_deployment, watch_deployments

_log = logging.getLogger("situ.edge")
_SAVE_EVERY = 0.5


@dataclass(slots=True)
class Counts:
    """What the engine has done since it started."""

    types: Counter[str] = field(default_factory=Counter)
    groups: Counter[str] = field(default_factory=Counter)
    live: Counter[str] = field(default_factory=Counter)
    dead: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _Logged:
    """A message handed to the root log; ``stored`` says where it is."""

    rows: list[Row]
    lines: list[bytes]
    plan: Plan
    stored: asyncio.Future[Ack]


class EdgeEngine:
    """One zone's events in this process. The router of the zone hands it what clients send."""

    name = "edge"

    def __init__(self, bus: Bus, folder: Path | None, *, router: str = "r1") -> None:
        self.counts = Counts()
        self._bus = bus
        self._router = router
        self._cursor = Cursor(folder / ".situ" / "edge" / "cursor.json" if folder is not None else None)
        self._plan: Plan | None = None
        self._reported = 0
        self._logged: asyncio.Queue[_Logged | int | None] = asyncio.Queue()
        """Messages under way to the log; a number is a version all messages behind it are worked by; None: the end."""
        self._highest: dict[str, tuple[int, int]] = {}
        self._delivering: deque[tuple[int, list[asyncio.Future[Ack]]]] = deque()
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
    def ready(self) -> bool:
        return self._plan is not None

    # ── beginning and end ──

    async def start(self) -> None:
        """Load what is in force, route what a process before this one left, then take messages.

        After a failure it may be started again: what it had in hand is in the log, behind the cursor.
        """
        await self._end_work()
        self._delivering.clear()
        loop = asyncio.get_running_loop()
        self._failed = loop.create_future()
        deployment = await fetch_deployment(self._bus)
        self._plan = await asyncio.to_thread(compile_plan, deployment)
        await self._recover(self._plan)
        await self._stack.enter_async_context(engine_alive(self._bus, self.name))
        await report_adopted(self._bus, self.name, deployment.version)
        self._reported = deployment.version
        for work in (self._route_on(), self._follow(), self._save()):
            task = loop.create_task(work)
            task.add_done_callback(self._ended)
            self._tasks.append(task)

    async def ended(self) -> None:
        """Wait until it ends; raises why, if it was not stopped."""
        assert self._failed is not None, "only what was started can end"
        await asyncio.shield(self._failed)

    async def stop(self) -> None:
        """Route what is in the log, and end."""
        if not self._tasks:
            return
        self._logged.put_nowait(None)
        await asyncio.gather(self._tasks[0], return_exceptions=True)
        await self._settle(everything=True)
        self._cursor.save()
        await self._end_work()
        if self._failed is not None and not self._failed.done():
            self._failed.set_result(None)

    async def _end_work(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        await self._stack.aclose()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or self._failed is None or self._failed.done():
            return
        if (error := task.exception()) is not None:
            if isinstance(error, SituError):
                self._failed.set_exception(error)
            else:
                _log.error("the edge engine failed", exc_info=error)
                reason, remedy = (
                    f"{type(error).__name__}: {error}",
                    "It goes on from its cursor when it is started again.",
                )
                self._failed.set_exception(SituError(ENGINE_FAILED(engine="edge", reason=reason, remedy=remedy)))

    # ── taking messages ──

    async def take(self, key: EventKey, count: int, body: bytes, received: int) -> asyncio.Future[tuple[Dead, ...]]:
        """Take a message in; the future is done when it is stored, with those of its events that are dead letters.

        Messages are stored in the order of these calls.
        """
        plan = self._plan
        assert plan is not None, "a router starts after its engine"
        outcome: asyncio.Future[tuple[Dead, ...]] = asyncio.get_running_loop().create_future()
        rows = decode(body, key, received, plan)
        reached = self._highest.get(key.client)
        if reached is not None and (key.incarnation, key.seq) <= reached:
            rows = [row for row in rows if (row.incarnation, row.seq) > reached]
        good, bad = stamp(rows, plan)
        told = tuple(
            Dead(seq=each.seq, code=each.errors[0][0], message=each.errors[0][2], hint=each.errors[0][3])
            for each in bad
        )
        letters = dead_letters(bad, time.time_ns() // 1000, plan) if bad else ()
        stores = [await self._bus.store(letter) for letter in letters]
        if good:
            lines = [encode_row(row) for row in good]
            message = root_message(good, lines, message_id(key, count), self._router, plan)
            stored = await self._bus.store(message, lane=key.client)
            stores.append(stored)
            self._logged.put_nowait(_Logged(good, lines, plan, stored))
        _Outcome(outcome, stores, told)
        self.counts.dead.update(each.code for each in told)
        return outcome

    # ── routing ──

    async def _route_on(self) -> None:
        while (logged := await self._logged.get()) is not None:
            if isinstance(logged, int):
                self._reported = logged
                await report_adopted(self._bus, self.name, logged)
                continue
            try:
                ack = await logged.stored
            except SituError:
                continue  # its client is told and sends it again
            last = logged.rows[-1]
            reached = self._highest.get(last.client, (0, 0))
            if ack.duplicate or (last.incarnation, last.seq) <= reached:
                continue
            self._highest[last.client] = (last.incarnation, last.seq)
            await self._deliver(logged.rows, place(logged.rows, logged.lines, ack.seq), ack.seq, logged.plan, live=True)
            if self._logged.empty() or len(self._delivering) > 256:
                await self._settle()

    async def _deliver(self, rows: list[Row], lines: list[bytes], seq: int, plan: Plan, *, live: bool) -> None:
        routed = route(rows, plan)
        counts = self.counts
        if live:
            counts.types.update(row.type for row in rows)
        if routed.live and live:
            for message in deliver.live(lines, routed, plan):
                with suppress(SituError):  # nobody promised
                    await self._bus.send(message)
            counts.live.update(f"{client}/{name}" for _, client, names in routed.live for name in names.split(","))
        stores: list[asyncio.Future[Ack]] = []
        if routed.durable:
            stores = [await self._bus.store(message) for message in deliver.durable(rows, lines, routed, plan)]
            counts.groups.update(group for _, group in routed.durable)
        self._delivering.append((seq, stores))

    async def _settle(self, *, everything: bool = False) -> None:
        """Move the cursor over what is delivered."""
        while self._delivering:
            seq, stores = self._delivering[0]
            for store in stores:
                if not everything and not store.done():
                    return
                await store
            self._delivering.popleft()
            self._cursor.seq = seq

    async def _recover(self, plan: Plan) -> None:
        """Route what is in the log behind the cursor."""
        stream = plan.names.root_stream
        state = await self._bus.state(stream)
        if self._cursor.seq is None or self._cursor.seq > state.last:
            # Nothing was ever routed from this log, or it is another log: what comes is routed.
            self._cursor.seq = state.last
            self._cursor.save()
            return
        count = 0
        async for stored in self._bus.read(stream, self._cursor.seq + 1, state.last):
            lines = lines_of(stored)
            rows = [decode_line(line) for line in lines]
            await self._deliver(rows, place(rows, lines, stored.seq), stored.seq, plan, live=False)
            last = rows[-1]
            self._highest[last.client] = max(self._highest.get(last.client, (0, 0)), (last.incarnation, last.seq))
            count += len(rows)
            await self._settle(everything=len(self._delivering) > 256)
        await self._settle(everything=True)
        self._cursor.save()
        if count:
            _log.info("routed %d events that were stored and not routed before", count)

    async def _save(self) -> None:
        while True:
            await asyncio.sleep(_SAVE_EVERY)
            await self._settle()
            self._cursor.save()

    # ── adopting deployments ──

    async def _follow(self) -> None:
        async for current in watch_deployments(self._bus):
            plan = self._plan
            assert plan is not None
            if current.version <= plan.version:
                continue
            deployment = await fetch_deployment(self._bus, current.version)
            self._plan = await asyncio.to_thread(compile_plan, deployment, plan)
            # What was taken before is worked to its end by the plan it was taken with.
            self._logged.put_nowait(current.version)


class _Outcome:
    """All of a message is stored, or the first reason why not."""

    __slots__ = ("_future", "_left", "_told")

    def __init__(
        self, future: asyncio.Future[tuple[Dead, ...]], stores: list[asyncio.Future[Ack]], told: tuple[Dead, ...]
    ) -> None:
        self._future, self._left, self._told = future, len(stores), told
        if not stores:
            future.set_result(told)
        for store in stores:
            store.add_done_callback(self._stored)

    def _stored(self, store: asyncio.Future[Ack]) -> None:
        self._left -= 1
        if self._future.done():
            return
        if (error := store.exception()) is not None:
            self._future.set_exception(error)
        elif self._left == 0:
            self._future.set_result(self._told)


class Cursor:
    """Up to which message of the root log everything is routed; on disk, if there is a file."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self.seq: int | None = None
        self._saved: int | None = None
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            with suppress(OSError, ValueError, KeyError, TypeError):
                self.seq = int(json.loads(file.read_text())["root"])

    def save(self) -> None:
        if self._file is None or self.seq is None or self.seq == self._saved:
            return
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps({"version": 1, "root": self.seq}))
        new.replace(self._file)
        self._saved = self.seq
