"""How busy the executor of a task is, measured from inside; what is made of it is :mod:`situ.app.worker_events`.

A task runs in a Python process that an executor's Java has started. The executor is that Java with all processes below
it. Each Python process measures for itself, once a second at most.
"""

from __future__ import annotations

import os
import socket
import time

import psutil

from situ.cpu_time import CpuClock
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
