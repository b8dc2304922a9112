"""Topics of Kafka in a run: deliveries for both engines, and reading for the edge engine; Spark reads by itself."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress

from situ.bus.event_loop import end
from situ.bus.interface import Bus
from situ.edge.engine import EdgeEngine
from situ.event.lines import decode_line
from situ.event.row import BadRow, errors_of
from situ.kafka.connection import KafkaAddress, library
from situ.kafka.delivery import TopicDeliveries
from situ.kafka.ingress import TopicIngress
from situ.kafka.positions import TopicPositions
from situ.kafka.worker_thread import WorkerThread
from situ.lang.problems import SituError
from situ.model import Deployment
from situ.registry.snapshots import fetch_deployment, watch_deployments
from situ.stages.plan import Plan, compile_plan
from situ.stages.root_log import dead_letters

_log = logging.getLogger("situ.host")
_PAUSE = 1.0
_LOOK_EVERY = 5.0
_CLOSING = 2.0
_STAGE = "deliver"


class Topics:
    """All topics of a zone, as the deployment in force says."""

    def __init__(self, bus: Bus, address: KafkaAddress, engine: EdgeEngine | None) -> None:
        """``engine`` is None where it reads topics itself."""
        self._bus = bus
        self._address = address
        self._deliveries = TopicDeliveries(address, bus, self._refuse)
        self._ingress = TopicIngress(address, engine) if engine is not None else None
        self._deployment = Deployment()
        self._plan: Plan | None = None

    async def run(self) -> None:
        """For ever: what needs the bus goes on when it is back."""
        watching = [] if self._ingress is not None else [asyncio.create_task(self._watch_sources())]
        try:
            while True:
                try:
                    await self._adopt(await fetch_deployment(self._bus))
                    async for current in watch_deployments(self._bus):
                        if current.version != self._deployment.version:
                            await self._adopt(await fetch_deployment(self._bus, current.version))
                except SituError as error:
                    _log.warning("%s", error)
                await asyncio.sleep(_PAUSE)
        finally:
            await end(watching)
            if self._ingress is not None:
                await self._ingress.close()
            await self._deliveries.close()

    async def _watch_sources(self) -> None:
        """Tell what keeps Spark from reading topics: the processes that find out only write to the log of Spark."""
        thread, positions = WorkerThread("kafka sources"), TopicPositions(self._address)
        try:
            while True:
                sources = {
                    name: each.kafka for name, each in self._deployment.clients.items() if each.kafka is not None
                }
                for name, source in sources.items():
                    try:
                        await thread.call(positions.partitions, source.topics, name)
                    except SituError as error:
                        _log.warning("%s", error)
                        break
                await asyncio.sleep(_LOOK_EVERY if sources else _PAUSE)
        finally:
            with suppress(Exception):
                await thread.call(positions.close, within=_CLOSING)
            thread.close()

    async def _adopt(self, deployment: Deployment) -> None:
        self._deployment = deployment
        clients = any(each.kafka is not None for each in deployment.clients.values())
        if not clients and all(each.kafka is None for each in deployment.subscriptions.values()):
            return
        with library():
            import confluent_kafka  # noqa: F401 - whether it is there is told before anything waits for it
        if self._ingress is not None:
            await self._ingress.follow(deployment)
        await self._deliveries.follow(deployment)

    async def _refuse(self, refused: Sequence[tuple[bytes, SituError]]) -> None:
        """Events that do not fit the format of a topic are dead letters, each once."""
        if self._plan is None or self._plan.version != self._deployment.version:
            self._plan = await asyncio.to_thread(compile_plan, self._deployment)
        bad = []
        for line, error in refused:
            row = decode_line(line)
            bad.append(BadRow.of(row, _STAGE, errors_of(error.problems), line))
        for letter in dead_letters(bad, time.time_ns() // 1000, self._plan):
            await (await self._bus.store(letter))
