"""How busy executors are: measured from inside by `sample_of_task`, put together beside the driver by `ExecutorLoads`.

A task runs in a Python process that an executor's Java has started. The executor is that Java with all processes below
it. Each Python process measures for itself, once a second at most.
"""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from collections.abc import Mapping

import psutil

from situ.cpu_time import CpuClock
from situ.registry.run_metrics import ExecutorLoad
from situ.settings import Settings
from situ.spark.cluster.remote import is_remote
from situ.spark.frames import WorkerSample

_clock: CpuClock | None = None


def sample_of_task(settings: Settings) -> WorkerSample | None:
    """In a task on a cluster: which executor it is on, and how busy that is; None where nobody wants to know.

    Beside the driver the run measures all of it at once.
    """
    global _clock
    if not settings.worker_events or not is_remote(settings.spark.master.value):
        return None
    if _clock is None:
        # Below Java stands the process that Python workers are forked from.
        daemon = psutil.Process(os.getppid())
        _clock = CpuClock(daemon.parent() or daemon, _cores(settings))
    host = socket.gethostname()
    return WorkerSample(f"{host}/{_clock.process.pid}", host, round(_clock.look(time.monotonic()), 3))


def _cores(settings: Settings) -> int:
    """Of an executor; without a word of the project it may have all of its machine."""
    said = {name: value.value for name, value in settings.spark.conf}.get("spark.executor.cores", "")
    return int(said) if said.isdigit() else os.cpu_count() or 1


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
