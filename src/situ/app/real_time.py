"""Real-time deliveries in a run on Spark: a process of their own, started when a subscription asks for them, watched.

The process finds out itself what it has to deliver (:mod:`situ.spark.real_time`). Here it is only started, with
secrets on its input, and started again when it ends; what it tells goes to the log, each problem once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from situ.bus.address import Address
from situ.bus.embedded_server import dies_with_parent
from situ.bus.event_loop import end
from situ.bus.interface import Bus
from situ.kafka.connection import KafkaAddress
from situ.lang.catalogue import REAL_TIME_FAILED
from situ.lang.problems import SituError
from situ.project.state_folder import REAL_TIME_LOG
from situ.registry.run_metrics import RealTimeQuery
from situ.registry.snapshots import fetch_deployment, watch_deployments
from situ.settings import Settings
from situ.spark.checkpoint import checkpoints_of
from situ.spark.real_time.generations import Generations
from situ.spark.real_time.task import ProcessReport, ProcessTask
from situ.stages.real_time import wants_real_time

_log = logging.getLogger("situ.host")
_EVENTS = "events"
_PAUSES = (1.0, 2.0, 5.0, 10.0)
_WELL = 60.0
_CLOSING = 5.0
_PAUSE = 1.0
_DRAINED = "5 seconds"
"""A batch that only delivers what was left: its end says how far it is."""
_PROGRAM = "situ.spark.real_time.process"


class RealTimeDeliveries:
    """The process of real-time queries of one zone."""

    def __init__(self, bus: Bus, folder: Path, settings: Settings, address: Address, kafka: KafkaAddress) -> None:
        self._bus = bus
        self._folder = folder
        self._settings = settings
        self._address = address
        self._kafka = kafka
        self._events = checkpoints_of(settings, folder) / _EVENTS
        self._wanted = asyncio.Event()
        self._told = ""
        self.report = ProcessReport()

    async def run(self) -> None:
        """For ever: there is a process whenever one is needed."""
        watching = asyncio.create_task(self._watch())
        try:
            while True:
                await self._wanted.wait()
                await self._supervise()
        finally:
            await end([watching])

    @property
    def queries(self) -> tuple[RealTimeQuery, ...]:
        """What runs, for whoever looks at the run."""
        return tuple(
            RealTimeQuery(
                client=each.client, rows=each.rows, at=each.at, delivers=each.generation == self.report.current
            )
            for each in self.report.queries
        )

    async def _watch(self) -> None:
        """Learn whether a subscription asks for it."""
        while True:
            with suppress(SituError, OSError):
                await self._look()
                async for current in watch_deployments(self._bus):
                    if wants_real_time(await fetch_deployment(self._bus, current.version)):
                        self._wanted.set()
            await asyncio.sleep(_PAUSE)

    async def _look(self) -> None:
        """What was left to queries before is delivered in any case."""
        left = await asyncio.to_thread(Generations(self._events).numbers)
        if left or wants_real_time(await fetch_deployment(self._bus)):
            self._wanted.set()

    async def _supervise(self) -> None:
        """Until the process ends because there is nothing to do."""
        failures = 0
        while True:
            began = time.monotonic()
            if await self._one(self._task(drain=False)) == 0:
                self._wanted.clear()
                with suppress(SituError, OSError):
                    await self._look()  # something may have come just now
                return
            failures = 0 if time.monotonic() - began > _WELL else failures + 1
            self._tell(str(SituError(REAL_TIME_FAILED(reason="their process ended"))))
            await asyncio.sleep(_PAUSES[min(failures, len(_PAUSES)) - 1])

    def _task(self, *, drain: bool) -> ProcessTask:
        settings = self._settings
        conf = {name: value.value for name, value in settings.spark.conf}
        return ProcessTask(
            project=settings.name,
            zone=settings.zone,
            bus=self._address.to_json(),
            kafka=self._kafka,
            events=str(self._events),
            connector=settings.spark.connector.value,
            batch=_DRAINED if drain else f"{round(settings.spark.real_time_batch.total_seconds() * 1000)} milliseconds",
            log=str((self._folder / REAL_TIME_LOG).resolve()),
            conf=conf,
            drain=drain,
        )

    async def _one(self, task: ProcessTask) -> int:
        """Run the process once, to its end."""
        process = await start_process(self._folder, task)
        try:
            assert process.stdout is not None
            while line := await process.stdout.readline():
                with suppress(msgspec.MsgspecError):
                    self.report = msgspec.json.decode(line, type=ProcessReport)
                    self._tell(self.report.problem)
            return await process.wait()
        finally:
            self.report = ProcessReport()
            await _close(process)

    def _tell(self, problem: str) -> None:
        if problem and problem != self._told:
            _log.warning("%s", problem)
        self._told = problem or self._told


async def drain(folder: Path, settings: Settings, address: Address, tell: Callable[[str], None]) -> None:
    """Have everything delivered that Spark left to real-time queries, before another engine takes over."""
    kafka = KafkaAddress.of(settings)
    deliveries = RealTimeDeliveries(None, folder, settings, address, kafka) if kafka is not None else None  # type: ignore[arg-type]  # it asks the bus nothing
    if deliveries is None or not await asyncio.to_thread(Generations(deliveries._events).numbers):
        return
    tell("what was left to real-time queries is delivered first")
    while await deliveries._one(deliveries._task(drain=True)):
        await asyncio.sleep(_PAUSE)


async def start_process(folder: Path, task: ProcessTask) -> asyncio.subprocess.Process:
    log = folder / REAL_TIME_LOG
    with log.with_name("real-time-process.log").open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            _PROGRAM,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            preexec_fn=dies_with_parent(os.getpid()),
        )
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(task) + b"\n")
    await process.stdin.drain()
    return process


async def _close(process: asyncio.subprocess.Process) -> None:
    """It ends when its input does."""
    if process.stdin is not None:
        process.stdin.close()
    if process.returncode is None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING):
                await process.wait()
                return
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
