"""What a run reports about itself every second: deliveries by subscription, its state, every few memory by process.

`memory` measures the processes, `SubscriptionCounts` turns the engines' counts of delivery groups into counts of
subscriptions, `MetricsReporter` collects it all and publishes it on the bus.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

import psutil

from situ.app.engines import Engine, EngineCounts
from situ.app.worker_events import WorkerPublisher
from situ.bus.failure_log import InternalErrors
from situ.bus.interface import Bus
from situ.contexts.model import ROOT
from situ.event.subjects import BusNames
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.model import Deployment
from situ.registry.run_metrics import (
    METRICS_PREFIX,
    RUNNING,
    STARTING,
    ArchiveMetrics,
    EventRates,
    RealTimeQuery,
    RunMetrics,
    detection_metrics,
)
from situ.registry.snapshots import fetch_deployment
from situ.routing import Subscription
from situ.routing.delivery_groups import group_of

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Memory: the resident set of this process and of those it started. Workers are forked from one another and share pages,
# so each counts its part of what is shared, where the system tells it.

HOST, JAVA, WORKERS, BUS, OTHER = "situ", "java", "workers", "bus", "other"


def memory() -> Mapping[str, int]:
    """Bytes by kind of process; kinds of which there is none are left out."""
    found: dict[str, int] = {}
    for kind, size in _sizes():
        found[kind] = found.get(kind, 0) + size
    return found


def _sizes() -> Iterator[tuple[str, int]]:
    me = psutil.Process()
    yield HOST, me.memory_info().rss
    for child in me.children(recursive=True):
        try:
            kind = kind_of(child.name())
            yield kind, _share(child) if kind == WORKERS else child.memory_info().rss
        except psutil.Error:
            continue  # it has ended meanwhile


def _share(process: psutil.Process) -> int:
    try:
        full = process.memory_full_info()
    except psutil.AccessDenied:
        return process.memory_info().rss
    return int(getattr(full, "pss", 0) or full.rss)


def kind_of(name: str) -> str:
    """Of a process of this name that a run started."""
    if name.startswith("nats-server"):
        return BUS
    if name.startswith("java"):
        return JAVA
    return WORKERS if name.startswith("python") else OTHER


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Deliveries by subscription: engines count delivery groups, people ask about subscriptions.
#
# Durable subscriptions with the same types and filter share a group, and each is delivered all of it. Groups of
# subscriptions that are gone keep their names until the run ends, and a subscription that changes its group keeps what
# it had got, so that sums never fall.


class SubscriptionCounts:
    """Delivery groups of the deployments of a run."""

    def __init__(self) -> None:
        self._version = 0
        self._groups: dict[str, str] = {}
        self._known: dict[str, Subscription] = {}
        self._terms: dict[str, str] = {}
        self._counted: Mapping[str, int] = {}
        """Group → events, when somebody asked last."""
        self._offsets: dict[str, int] = {}
        """Subscription → what it got in other groups, less what its own had before it came."""

    def learn(self, deployment: Deployment) -> None:
        """Durable subscriptions as this deployment declares them; only what changed is worked out."""
        if deployment.version <= self._version:
            return
        self._version = deployment.version
        for id, subscription in deployment.routed.items():
            if subscription.context != ROOT:
                self._terms[id] = subscription.context
            else:
                self._terms.pop(id, None)
            if subscription.durable and self._known.get(id) != subscription:
                self._known[id] = subscription
                self._go_over(id, group_of(subscription))

    def _go_over(self, id: str, group: str) -> None:
        before = self._groups.get(id, group)
        self._groups[id] = group
        moved = self._counted.get(before, 0) - self._counted.get(group, 0)
        if moved:
            self._offsets[id] = self._offsets.get(id, 0) + moved

    def by_subscription(self, counts: EngineCounts) -> Mapping[str, int]:
        """Events delivered, by subscription; those that got none are left out."""
        self._counted = dict(counts.groups)
        numbers = {id: self._counted.get(group, 0) + self._offsets.get(id, 0) for id, group in self._groups.items()}
        return {**{id: number for id, number in numbers.items() if number}, **counts.live}

    def terms(self, subscriptions: Iterable[str]) -> Mapping[str, str]:
        """The contexts of those of the subscriptions that are not in root's terms."""
        return {id: self._terms[id] for id in subscriptions if id in self._terms}


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The reporter: looks at engine, bus and memory, and publishes what it saw.

log = logging.getLogger("situ.host")

REPORT_EVERY = 1.0
MEASURE_EVERY = 5.0
"""Seconds between two looks at memory: to ask what processes share, the system goes through all of their pages."""

_PATIENCE = 2.0


class MetricsReporter:
    """Looks at one run. ``state`` and ``restarts`` are told by whoever runs it."""

    def __init__(self, engine: str) -> None:
        now = _now()
        self.figures = RunMetrics(engine=engine, pid=os.getpid(), started=now, at=now, state=STARTING)
        self._delivered = SubscriptionCounts()
        self._rates = EventRates()
        self._learnt = Deployment()
        self._used: Mapping[str, int] = {}
        self._measured = -MEASURE_EVERY
        self.mistakes = InternalErrors(log)
        self.failures: list[Callable[[], Mapping[str, int]]] = [lambda: self.mistakes.counts]
        """What parts of the run beside the engine count of these."""
        self.refused: Callable[[], Mapping[str, int]] = dict
        self.archive: Callable[[], ArchiveMetrics | None] = lambda: None
        self.real_time: Callable[[], tuple[RealTimeQuery, ...]] = tuple

    def tell(self, state: str, *, restarted: bool = False) -> None:
        """The run is in another state now."""
        self.figures = replace(self.figures, state=state, restarts=self.figures.restarts + restarted)

    async def beat(self, bus: Bus, engine: Engine) -> None:
        """For ever."""
        key, workers = f"{METRICS_PREFIX}{engine.name}", WorkerPublisher(engine)
        try:
            while True:
                # A bus that is away comes back, and others see the silence.
                with suppress(SituError, OSError), self.mistakes.noted("pulse"):
                    async with asyncio.timeout(_PATIENCE):
                        found = await self.look(bus, engine)
                        await bus.put(BusNames(bus.zone).metrics, key, found.encode())
                        if self._learnt.settings.worker_events and found.state == RUNNING:
                            await workers.tell(found)
                await asyncio.sleep(REPORT_EVERY)
        finally:
            with suppress(SituError, TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    await bus.remove(BusNames(bus.zone).metrics, key)

    async def look(self, bus: Bus, engine: Engine) -> RunMetrics:
        """The figures of now."""
        await self._learn(bus, engine.version)
        counts = engine.counts
        subscriptions = self._delivered.by_subscription(counts)
        taken, delivered = sum(counts.types.values()), sum(subscriptions.values())
        taken_rate, delivered_rate = self._rates.add(time.monotonic(), taken, delivered)
        names = BusNames(bus.zone)
        last = (await bus.state(names.in_stream)).last
        clients = len(await bus.entries(names.clients))
        if time.monotonic() - self._measured >= MEASURE_EVERY:
            self._used, self._measured = await asyncio.to_thread(memory), time.monotonic()
        # Nothing is waited for from here on: what is told meanwhile, that the run is up above all, would be lost.
        self.figures = replace(
            self.figures,
            at=_now(),
            version=engine.version,
            taken=taken,
            delivered=delivered,
            dead=sum(counts.dead.values()),
            taken_rate=taken_rate,
            delivered_rate=delivered_rate,
            waiting=max(last - engine.reached, 0) if engine.reached is not None else 0,
            batch=round(engine.batch, 3),
            size=engine.size,
            clients=clients,
            types=dict(counts.types),
            subscriptions=subscriptions,
            codes=dict(counts.dead),
            origins=dict(counts.origins),
            terms=self._delivered.terms(subscriptions),
            originals=dict(counts.originals),
            converted=dict(counts.converted),
            dropped=dict(counts.dropped),
            failures=dict(sum((Counter(each()) for each in self.failures), Counter(counts.failures))),
            refused={code: number for code, number in self.refused().items() if code},
            memory=self._used,
            situations=detection_metrics(self._learnt, engine.watched, _now()),
            archive=self.archive(),
            real_time=self.real_time(),
        )
        return self.figures

    async def _learn(self, bus: Bus, version: int) -> None:
        """Whose deliveries the engine counts since it works with this deployment."""
        if version != self._learnt.version:
            deployment = await fetch_deployment(bus, version)
            await asyncio.to_thread(self._delivered.learn, deployment)
            self._learnt = deployment


def _now() -> int:
    return time.time_ns() // 1000
