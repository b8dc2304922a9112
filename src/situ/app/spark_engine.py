"""The Spark engine in the process of a run: its session, its restarts, its counts.

Everything of Spark blocks, so it happens on threads. A query that failed is started again in the same session, from its
checkpoint; the session ends with the run.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from situ.app.engines import OnMeasured
from situ.app.worker_events import ExecutorLoads
from situ.bus.address import Address
from situ.bus.event_loop import end
from situ.bus.failure_log import InternalErrors
from situ.bus.folder_lock import STATE
from situ.bus.interface import Bus
from situ.event.subjects import BusNames
from situ.kafka.connection import KafkaAddress
from situ.lang.catalogue import ENGINE_FAILED, NO_SPARK
from situ.lang.problems import SituError
from situ.project.state_folder import SPARK_LOG
from situ.quality.measurement.panes import Pane
from situ.registry.run_metrics import EngineSize, ExecutorLoad
from situ.registry.snapshots import engine_alive, report_adopted
from situ.settings import Settings
from situ.spark.checkpoint import Offset, checkpoints_of, last_batch, owner_of, read_offset
from situ.spark.frames import TaskCounts, Totals
from situ.stages.detect.situation_events import DetectionCounts, DetectionStatus, PolicyMessage

if TYPE_CHECKING:
    from situ.spark.detect_query import DetectBatchReport
    from situ.spark.engine import BatchReport, SparkEngine
    from situ.spark.measure import BatchMeter

log = logging.getLogger("situ.host")

_SCRATCH = STATE / "cache" / "spark"
_GLANCE = 0.05  # seconds between looks whether another deployment is at work: somebody may be waiting for it
_LOOK = 1.0  # seconds a thread waits for the query to end before it looks whether anybody still asks


class SparkHost:
    """See :class:`situ.app.engines.Engine`."""

    name = "spark"

    def __init__(self, bus: Bus, folder: Path, settings: Settings, address: Address) -> None:
        self._bus = bus
        self._folder = folder
        self._settings = settings
        self._address = address
        self._checkpoints = checkpoints_of(settings, folder)
        self._owner = owner_of(settings, self._checkpoints)
        self._make: Callable[[], SparkEngine] | None = None
        self._close: Callable[[], None] = lambda: None
        self._lost: tuple[type[Exception], ...] = ()
        self._engine: SparkEngine | None = None
        self._totals = Totals()
        self._mistakes = InternalErrors(log)
        self._mistakes.counts = self._totals.failures
        self._reached = Offset()
        self._seconds = 0.0
        self._watched = DetectionStatus()
        self._detected: int | None = None
        self._alive = AsyncExitStack()
        self._reporting: asyncio.Task[None] | None = None
        self.on_measured: OnMeasured | None = None
        self._telling: asyncio.Task[None] | None = None
        self._resizing: asyncio.Task[None] | None = None
        self._size = EngineSize()
        self._executors = ExecutorLoads()
        self._panes: queue.SimpleQueue[tuple[TaskCounts, ...]] = queue.SimpleQueue()
        self._turn = threading.Lock()

    @property
    def version(self) -> int:
        return self._reached.version

    @property
    def reached(self) -> int | None:
        return self._reached.seq

    @property
    def batch(self) -> float:
        return self._seconds

    @property
    def counts(self) -> Totals:
        return self._totals

    @property
    def watched(self) -> DetectionStatus:
        return self._watched

    @property
    def size(self) -> EngineSize:
        return self._size

    def executors_at_work(self) -> Sequence[ExecutorLoad]:
        return self._executors.of_now(time.monotonic())

    async def say(self, message: PolicyMessage) -> None:
        """Into the ingress stream, where events of policies go, too."""
        from situ.spark.detect_query import raw_message

        stored = await self._bus.store(raw_message(BusNames(self._bus.zone), message, time.time_ns() // 1000))
        await stored

    async def start(self) -> None:
        await asyncio.to_thread(self._start)
        # The first batch of all says which deployment is at work; it takes the workers a while to load.
        while not self.version and not await self._has_ended(_GLANCE):
            pass
        if self._reporting is None:
            await self._alive.enter_async_context(engine_alive(self._bus, self.name))
            self._reporting = asyncio.create_task(self._report())
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell_measured())
        if self._resizing is None:
            self._resizing = asyncio.create_task(self._resize_on())

    async def ended(self) -> None:
        while not await self._has_ended(_LOOK):
            pass

    async def _has_ended(self, within: float) -> bool:
        engine = self._engine
        return engine is None or await asyncio.to_thread(self._wait, engine, within)

    def _wait(self, engine: SparkEngine, within: float) -> bool:
        try:
            return engine.wait(within)
        except self._lost as error:
            reason = f"Java has ended ({type(error).__name__})"
            remedy = f"See {SPARK_LOG}; it goes on from its last batch when it is started again, and nothing was lost."
            raise SituError(ENGINE_FAILED(engine=self.name, reason=reason, remedy=remedy)) from error

    async def stop(self) -> None:
        await end((self._reporting, self._telling, self._resizing))
        await self._alive.aclose()
        await asyncio.to_thread(self._stop)

    async def _report(self) -> None:
        """Tell whoever waits for it that another deployment is at work."""
        reported = 0
        while True:
            if (version := self.version) != reported:
                # A bus that is away comes back.
                with suppress(SituError, OSError), self._mistakes.noted("engine report"):
                    await report_adopted(self._bus, self.name, version)
                    reported = version
            await asyncio.sleep(_GLANCE)

    async def _tell_measured(self) -> None:
        """Say what publishers do, on this loop: batches end on threads of Spark's."""
        from situ.spark.measure import BatchMeter

        measuring = BatchMeter(self._settings)
        while True:
            await asyncio.sleep(_LOOK)
            with suppress(SituError, OSError), self._mistakes.noted("engine measure"):
                await self._tell_once(measuring)

    async def _resize_on(self) -> None:
        """Have as many executors as there is work for, for ever."""
        while True:
            await asyncio.sleep(_LOOK)
            with suppress(SituError, OSError, *self._lost), self._mistakes.noted("engine resize"):
                await asyncio.to_thread(self._resize)

    def _resize(self) -> None:
        if (engine := self._engine) is not None:
            engine.resize()
            self._size = engine.size()

    async def _tell_once(self, measuring: BatchMeter) -> None:
        panes: list[Pane] = []
        while not self._panes.empty():
            panes += measuring.add(self._panes.get())
        await measuring.look(self._bus)
        until = measuring.until(time.time_ns() // 1000)
        if self.on_measured is not None and until is not None:
            self.on_measured((*panes, *measuring.settled(until)), until)

    def _start(self) -> None:
        with self._turn:
            make = self._make = self._make or self._open()
            engine = make()
            # The counts are those of the run, over all restarts of the query.
            engine.totals = self._totals
            self._engine = engine
            # Before it starts: from then on its batches say themselves how far it is.
            # A batch without a message counts, too: it says which deployment is at work.
            self._reached = max(self._reached, self._last_offset(), key=lambda each: (each.seq, each.version))
            engine.start()

    def _last_offset(self) -> Offset:
        """How far the query is by what it wrote down: if nothing is new since then, no batch will say it."""
        from situ.spark.engine import QUERY

        done = last_batch(self._checkpoints / QUERY, "commits")
        return Offset() if done is None else read_offset(self._checkpoints / QUERY, done)

    def _open(self) -> Callable[[], SparkEngine]:
        """Open the session; gives what makes an engine in it."""
        try:
            from situ.spark.checkpoint import check_checkpoint
            from situ.spark.cluster.remote import is_remote
            from situ.spark.engine import QUERY, SparkEngine
            from situ.spark.session import LOST, open_session
            from situ.spark.tables import check_tables
            from situ.storage.state_folder import environment_of
        except ModuleNotFoundError as error:
            raise SituError(NO_SPARK(reason=f"there is no Python module `{error.name}`")) from error
        # What cannot be gone on from is told before Java is started, which takes a while.
        self._owner.claim()
        check_checkpoint(self._checkpoints / QUERY)
        check_tables(self._address, self._folder)
        self._lost = LOST
        settings = self._settings
        conf = {name: value.value for name, value in settings.spark.conf}
        master = settings.spark.master.value
        # What is in files of this machine goes along where executors may be on others.
        for_tasks, secrets = self._address.without_secrets(files=is_remote(master))
        kafka = KafkaAddress.of(settings)
        if kafka is not None:
            secrets = {**secrets, **kafka.variables(files=is_remote(master))}
        local = {} if is_remote(master) else {"spark.local.dir": str(self._scratch())}
        session = open_session(
            app=f"situ {settings.name}",
            master=master,
            conf={**local, **conf},
            log=self._folder / SPARK_LOG,
            folder=self._folder,
            variables={**secrets, **environment_of(conf)},
            plain_files=self._checkpoints.is_local,
        )
        self._close = session.stop
        return lambda: SparkEngine(
            session,
            self._address,
            settings,
            self._checkpoints,
            for_tasks=for_tasks,
            folder=self._folder,
            on_batch=self._on_batch,
            on_detect=self._on_detect,
            before_batch=self._owner.check,
        )

    def _stop(self) -> None:
        with self._turn:  # a start under way, which cannot be broken off, comes to its end first
            try:
                if self._engine is not None:
                    self._engine.stop()
                self._close()
            except self._lost as error:
                log.warning("Java ended before the engine was stopped (%s); nothing is lost.", type(error).__name__)
            self._engine = None
        self._owner.release()
        shutil.rmtree(self._folder / _SCRATCH, ignore_errors=True)

    def _on_batch(self, batch: BatchReport) -> None:
        self._reached, self._seconds = batch.offset, batch.seconds
        for each in batch.counts:
            if each.worker is not None:
                self._executors.worked(each.worker, sum(each.types.values()), time.monotonic())
        if any(each.measured or each.stored or each.groups for each in batch.counts):
            self._panes.put(batch.counts)

    def _on_detect(self, batch: DetectBatchReport) -> None:
        tally = DetectionCounts()
        tally.add(self._watched.tally)  # who looks at the last one meanwhile sees it whole
        if batch.number != self._detected:  # one that is repeated after it was counted counts once
            self._detected = batch.number
            tally.add(batch.tally)
            self._totals.dead.update(batch.dead)
            self._totals.failures.update(batch.failures)
        self._executors.divided(batch.workers)
        self._watched = DetectionStatus(tally=tally, progress=batch.progress, detecting=batch.detecting)

    def _scratch(self) -> Path:
        """Where Spark puts what does not fit in memory. What a run that was killed left there is taken away."""
        folder = (self._folder / _SCRATCH).resolve()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        return folder
