"""Events of the type ``situ.worker``: how busy the processes of a run are, published as any client's events are.

`WorkerLoads` decides what is worth an event: it knows what was last told of each worker, and is silent as long as
nothing has moved by more than it tells as the imprecision. `WorkerPublisher` measures this process, takes what
executors said of themselves, and has the engine publish it.
"""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import psutil

from situ.app.engines import Engine
from situ.cpu_time import CpuClock
from situ.event.message import join_lines
from situ.lang.types.table import WORKER, WORKER_PUBLISHER
from situ.policies.actions.action_events import ActionEvent, line_of
from situ.registry.run_metrics import ExecutorLoad, RunMetrics
from situ.stages.detect.situation_events import PolicyMessage

if TYPE_CHECKING:
    from situ.spark.frames import WorkerSample

CPU_IMPRECISION = 0.05
"""A share of the cores; of the other values as much of themselves."""
_FEW = 20
"""Below this rows a second and waiting messages do not count as having moved."""
_AT_LEAST_EVERY = 10_000_000
"""Microseconds after which it is told in any case: whoever listens knows that the worker is there."""
_GONE_AFTER = 30_000_000


class WorkerLoad(msgspec.Struct, frozen=True, kw_only=True):
    """Of one worker, as an event tells it."""

    worker: str
    host: str
    engine: str
    cpu: float
    rows: float
    lag: int
    buckets: int
    imprecision: float = CPU_IMPRECISION


def has_moved(before: WorkerLoad, now: WorkerLoad) -> bool:
    """Whether what was told is off by more than it says."""
    if abs(now.cpu - before.cpu) > before.imprecision or now.buckets != before.buckets:
        return True
    pairs = ((before.rows, now.rows), (before.lag, now.lag))
    return any(abs(new - old) > max(before.imprecision * abs(old), _FEW) for old, new in pairs)


class WorkerLoads:
    """What was told of workers."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[int, WorkerLoad]] = {}

    def due(self, loads: Iterable[WorkerLoad], now: int) -> list[WorkerLoad]:
        """Those of which something has to be told now; they count as told."""
        found = []
        for each in loads:
            at, before = self._told.get(each.worker, (0, None))
            if before is None or has_moved(before, each) or now - at >= _AT_LEAST_EVERY:
                found.append(each)
                self._told[each.worker] = (now, each)
        self._told = {name: told for name, told in self._told.items() if now - told[0] < _GONE_AFTER}
        return found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Executors of Spark, from what their tasks say when they end.

_WINDOW = 5.0
"""Seconds over which events are counted, and for which an executor that has no task is still told of."""


class ExecutorLoads:
    """What tasks said of the executors they ran on."""

    def __init__(self) -> None:
        self._samples: dict[str, WorkerSample] = {}
        self._events: dict[str, deque[tuple[float, int]]] = {}
        self._buckets: Mapping[str, int] = {}

    def worked(self, sample: WorkerSample, events: int, now: float) -> None:
        """A task has ended that took so many events."""
        self._samples[sample.worker] = sample
        self._events.setdefault(sample.worker, deque()).append((now, events))

    def divided(self, buckets: Mapping[str, int]) -> None:
        """So many buckets each had in a batch of detection."""
        if buckets:
            self._buckets = buckets

    def of_now(self, now: float) -> list[ExecutorLoad]:
        """Those that had a task lately."""
        found = []
        for worker, events in list(self._events.items()):
            while events and now - events[0][0] > _WINDOW:
                events.popleft()
            if not events:
                del self._events[worker], self._samples[worker]
                continue
            sample = self._samples[worker]
            rows = sum(count for _, count in list(events)) / _WINDOW
            buckets = self._buckets.get(worker, 0)
            found.append(ExecutorLoad(worker=worker, host=sample.host, cpu=sample.cpu, rows=rows, buckets=buckets))
        return found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Measuring and publishing.


@dataclass(slots=True)
class WorkerPublisher:
    """Tells of the workers of one engine, once a second."""

    engine: Engine
    cpu: CpuClock = field(default_factory=lambda: CpuClock(psutil.Process(), os.cpu_count() or 1))
    _loads: WorkerLoads = field(default_factory=WorkerLoads)
    _incarnation: int = field(default_factory=lambda: time.time_ns() // 1000)
    _number: int = 0
    _taken: int | None = None
    _at: float = 0.0

    async def tell(self, figures: RunMetrics) -> int:
        """Publish what is due; how many events that was."""
        now = time.time_ns() // 1000
        due = self._loads.due(self._of_now(figures), now)
        if not due:
            return 0
        first, self._number = self._number + 1, self._number + len(due)
        lines = [_line(load, number, now) for number, load in enumerate(due, first)]
        await self.engine.say(
            PolicyMessage(
                policy=WORKER_PUBLISHER,
                incarnation=self._incarnation,
                first=first,
                count=len(lines),
                body=join_lines(lines),
            )
        )
        return len(due)

    def _of_now(self, figures: RunMetrics) -> list[WorkerLoad]:
        host = socket.gethostname()
        # What this very thing publishes is no work: it would keep itself busy for ever.
        own = figures.types.get(WORKER.name, 0)
        taken, at = figures.taken - own, time.monotonic()
        rows = 0.0 if self._taken is None else max(taken - self._taken, 0) / max(at - self._at, 0.001)
        self._taken, self._at = taken, at
        size = self.engine.size
        load = WorkerLoad(
            worker=f"{host}/{os.getpid()}",
            host=host,
            engine=self.engine.name,
            cpu=round(self.cpu.look(at, 0.0), 3),
            rows=round(rows, 1),
            lag=figures.waiting,
            buckets=0 if size.executors else size.buckets,
        )
        return [
            load,
            *(
                WorkerLoad(
                    worker=each.worker,
                    host=each.host,
                    engine=self.engine.name,
                    cpu=round(each.cpu, 3),
                    rows=round(each.rows, 1),
                    lag=figures.waiting,
                    buckets=each.buckets,
                )
                for each in self.engine.executors_at_work()
            ),
        ]


def _line(load: WorkerLoad, number: int, now: int) -> bytes:
    return line_of(WORKER_PUBLISHER, now, ActionEvent(type=WORKER.name, id=f"{number}", data=msgspec.json.encode(load)))
