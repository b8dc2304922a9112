"""One run: the process that holds a project folder, with its start-up, its supervision and its shutdown.

`supervise` restarts an engine that lost the bus and ends the run for any other failure. `RunProcess` owns the order.
Up: lock, log, registry, bus, actions, router, engine. Down, whatever ended it: the router takes nothing more, the
engine finishes what it has, then bus and lock are released.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

from situ.app.action_worker import ActionWorker
from situ.app.admission import admitted_principals, serve_admissions
from situ.app.engines import Engine, spark_engine
from situ.app.metrics import MetricsReporter
from situ.app.takeover import take_over
from situ.app.topics import Topics
from situ.archive.archiver import Archiver
from situ.archive.format import archive_of, store_options
from situ.bus.address import Address, resolve_address
from situ.bus.embedded_server import EmbeddedServer
from situ.bus.event_loop import end
from situ.bus.folder_lock import FolderLock
from situ.bus.nats import NatsBus, open_bus
from situ.edge.engine import EdgeEngine
from situ.kafka.connection import KafkaAddress
from situ.lang.catalogue import BUS_UNREACHABLE
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.model import Deployment
from situ.project.state_folder import logging_to, note_applied
from situ.registry import Registry, current_user, open_registry
from situ.registry.run_metrics import RUNNING, STOPPED, STOPPING, WAITING, RunMetrics
from situ.registry.snapshots import keep_published, publish_deployment, restore_deployments
from situ.router.router import Router
from situ.settings import settings_as_json
from situ.storage.state_folder import use_options

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Supervision. An engine that fails because the bus does not answer has lost nothing: it is started again from where it
# was as soon as the bus is back, after a pause that grows with every failure in a row.

log = logging.getLogger("situ.host")

_PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)
_WELL = 60.0  # an engine that ran so long is well again, and the next pause is a short one
_LOOK = 0.2
_TIDYING = 2.0  # seconds that work gets to end in order, before it is cancelled again
_AWAY = re.compile(r"\b(?:B1\d\d|N16[02])\b")
"""The bus, Kafka or a schema registry do not answer."""


async def supervise(
    engine: Engine, bus: NatsBus, pulse: MetricsReporter, router: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Wait until the engine or the router cannot go on; :class:`SituError` with why. Returns if one was stopped.

    ``router`` waits for the end of the router. Without one a run is nothing: nobody could say that it runs.
    """
    works = [asyncio.ensure_future(router()), asyncio.ensure_future(_supervise(engine, bus, pulse))]
    try:
        done, _ = await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        await end(works, again=_TIDYING)


async def _supervise(engine: Engine, bus: NatsBus, pulse: MetricsReporter) -> None:
    pauses = _grow()
    while True:
        began = time.monotonic()
        try:
            await engine.ended()
            return
        except SituError as error:
            if bus.connected and not _AWAY.search(str(error)):
                log.error("%s", error)
                raise
            log.warning("The engine waits: %s", error)
        if time.monotonic() - began > _WELL:
            pauses = _grow()
        pulse.tell(WAITING)
        await asyncio.sleep(next(pauses))
        while not bus.connected:
            await asyncio.sleep(_LOOK)
        await engine.start()
        pulse.tell(RUNNING, restarted=True)
        log.warning("The engine goes on from where it was.")


def _grow() -> Iterator[float]:
    yield from _PAUSES
    while True:
        yield _PAUSES[-1]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Start-up and shutdown. A run that is killed leaves nothing that keeps the next one from starting: locks and child
# processes end with it, and what was stored stays stored.

PATIENCE = 30.0
"""Seconds to wait for a bus that somebody else starts."""

_ATTEMPT = 3.0
_STORE = 5.0  # seconds for which one call to a store is tried again; the archiver tries for ever
_STOP, _STOP_WITHOUT_BUS = 60.0, 3.0  # seconds for each part of the run to end


class RunProcess:
    """``async with RunProcess(folder, deployment) as run`` is up, and goes down in order when the block ends.

    ``deployment`` is what a check of the folder gave, ``digests`` are those of the files it read.
    :class:`SituError` with P120 if the folder is in use, with B-codes if there is no bus, with N-codes if the engine
    does not start.
    """

    def __init__(
        self,
        folder: Path,
        deployment: Deployment,
        *,
        engine: str | None = None,
        patience: float = PATIENCE,
        digests: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.folder = folder
        self.settings = deployment.settings
        self._deployment = deployment
        self._digests = digests
        self._patience = patience
        self._kind = engine or self.settings.engine
        self._pulse = MetricsReporter(self._kind)
        self._stack = AsyncExitStack()
        self._supervised: asyncio.Task[None] | None = None
        self._router: Router | None = None

    @property
    def figures(self) -> RunMetrics:
        """The last look at the run, at most a second old."""
        return replace(self._pulse.figures, at=time.time_ns() // 1000)

    async def ended(self) -> None:
        """Wait until the engine cannot go on; raises why."""
        assert self._supervised is not None, "only what was started can end"
        await asyncio.shield(self._supervised)

    async def __aenter__(self) -> RunProcess:
        async with AsyncExitStack() as stack:
            await self._start(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._pulse.tell(STOPPING)
        await self._stack.aclose()
        self._pulse.tell(STOPPED)

    async def _start(self, stack: AsyncExitStack) -> None:
        # What a run writes is for its user only: registry, logs, journals, checkpoints, and all that its servers keep.
        stack.callback(os.umask, os.umask(0o077))
        lock = stack.enter_context(FolderLock(self.folder, settings_as_json(self.settings)))
        stack.enter_context(logging_to(self.folder))
        stack.callback(log.info, "stopped")
        log.info("starting %s with the %s engine", self.settings.name, self._kind)
        registry = stack.enter_context(await asyncio.to_thread(open_registry, self.folder, self.settings))
        server = await self._start_bus(stack, lock, registry)
        address = resolve_address(self.folder, self.settings)
        bus = await self._connect(address)
        stack.push_async_callback(self._end, bus, "the connection to the bus", bus.close)
        await bus.prepare(self.settings)
        if server is not None:
            await serve_admissions(bus, registry, server)
        await self._apply(bus, registry)
        _begin(stack, keep_published(bus, registry, failed=lambda error: log.warning("%s", error)))
        acting = ActionWorker(bus, registry, self.folder)
        await acting.start()  # before the engine: what that asks for is to be found
        _begin(stack, acting.run())
        self._pulse.failures.append(lambda: acting.mistakes.counts)
        self._begin_archive(stack, bus)
        await take_over(self._kind, bus, self.folder, self.settings, address)
        _raise_if_cancelled()
        engine = await self._start_engine(stack, bus, registry, address)
        assert self._router is not None
        self._supervised = _begin(stack, supervise(engine, bus, self._pulse, self._router.ended))
        await self._pulse.look(bus, engine)
        _raise_if_cancelled()
        self._pulse.tell(RUNNING)
        log.info("running")

    def _begin_archive(self, stack: AsyncExitStack, bus: NatsBus) -> None:
        """The archiver of the root log, if the project has an archive. It depends on no engine, and holds up none."""
        archive = archive_of(self.settings, self.folder, patience=_STORE)
        if archive is None:
            return
        use_options(store_options(self.settings))
        place, every = self.settings.log.archive.written, self.settings.log.archive_every
        archiver = Archiver(bus, archive, project=self.settings.name, place=place, every=every)
        self._pulse.archive = lambda: archiver.metrics
        _begin(stack, archiver.run())

    async def _start_engine(self, stack: AsyncExitStack, bus: NatsBus, registry: Registry, address: Address) -> Engine:
        """Engine and router. On Spark the router comes first: what clients send waits on the bus for the engine."""
        edge = EdgeEngine(bus, self.folder) if self._kind == "edge" else None
        if edge is not None:
            engine: Engine = edge
            router = Router(bus, registry, folder=self.folder, engine=edge)
        else:
            engine = spark_engine(bus, self.folder, self.settings, address)
            router = Router(bus, registry, folder=self.folder)
            engine.on_measured = router.quality.measured
        router.quality.dropped = lambda: engine.counts.dropped
        self._pulse.failures.append(lambda: router.failures)
        self._pulse.refused = lambda: router.reports
        self._router = router
        _begin(stack, self._pulse.beat(bus, engine))

        async def stop() -> None:
            await engine.stop()
            await self._pulse.look(bus, engine)  # what was finished last counts, too

        # The stack ends in reverse: whichever of them starts first, the router is closed before the engine stops.
        stack.push_async_callback(self._end, bus, "the engine", stop)
        if self._kind == "edge":
            await engine.start()
        stack.push_async_callback(self._end, bus, "the router", router.close)
        await router.start()
        if self._kind != "edge":
            await engine.start()
        kafka = KafkaAddress.of(self.settings)
        if kafka is not None:
            _begin(stack, Topics(bus, kafka, edge).run())
        if kafka is not None and edge is None:
            from situ.app.real_time import RealTimeDeliveries  # which needs Spark's part

            real_time = RealTimeDeliveries(bus, self.folder, self.settings, address, kafka)
            self._pulse.real_time = lambda: real_time.queries
            _begin(stack, real_time.run())
        return engine

    async def _start_bus(self, stack: AsyncExitStack, lock: FolderLock, registry: Registry) -> EmbeddedServer | None:
        """The embedded bus, if that is the one; others are there already."""
        if self.settings.bus.kind != "embedded":
            return None
        clients = await asyncio.to_thread(admitted_principals, registry)
        server = await stack.enter_async_context(EmbeddedServer(self.folder, self.settings, admitted=clients))
        lock.announce({"bus": server.port})
        return server

    async def _connect(self, address: Address) -> NatsBus:
        deadline = time.monotonic() + self._patience
        name = f"situ run {self.settings.name}"
        while True:
            left = deadline - time.monotonic()
            try:
                return await open_bus(address, name=name, timeout=max(min(left, _ATTEMPT), 0.5))
            except SituError as error:
                left = deadline - time.monotonic()
                if error.code != BUS_UNREACHABLE.code or left <= 0:
                    raise
                log.warning("%s Trying for another %.0f s.", error.problems[0].message, left)

    async def _apply(self, bus: NatsBus, registry: Registry) -> None:
        await restore_deployments(bus, registry)
        applied = await asyncio.to_thread(registry.apply, self._deployment, current_user(), "situ run")
        await publish_deployment(bus, applied.deployment)
        if self._digests:
            note_applied(self.folder, self._digests)
        log.info("deployment %d is in force, %d changes", applied.version, len(applied.changes))

    async def _end(self, bus: NatsBus, what: str, end: Callable[[], Awaitable[None]]) -> None:
        """End a part of the run, come what may: what it could not put in order, the next run does."""
        limit = _STOP if bus.connected else _STOP_WITHOUT_BUS
        try:
            async with asyncio.timeout(limit):
                await end()
        except TimeoutError:
            log.warning("%s takes longer than %.0f s to end and is left alone", what, limit)
        except (SituError, OSError) as error:
            log.warning("%s did not end in order: %s", what, error)


def _raise_if_cancelled() -> None:
    """Heed a Ctrl-C that was swallowed on the way.

    `asyncio.wait_for`, by which the client of the bus waits for answers, forgets until Python 3.12 that it was
    cancelled if the answer comes at the same moment.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _begin(stack: AsyncExitStack, work: Any) -> asyncio.Task[None]:
    """Work that goes on until the run goes down."""
    task: asyncio.Task[None] = asyncio.create_task(work)

    stack.push_async_callback(end, [task], again=_TIDYING)
    return task
