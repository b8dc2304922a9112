"""What a run and its process of real-time queries tell each other: a line of JSON on its input, many on its output."""

from __future__ import annotations

import msgspec

from situ.kafka.connection import KafkaAddress


class ProcessTask(msgspec.Struct, frozen=True, kw_only=True):
    """What the process has to know, secrets and all: it is passed on its input and shown nowhere."""

    project: str
    zone: str
    bus: str
    kafka: KafkaAddress
    events: str
    """The checkpoint of the query of events."""
    connector: str
    batch: str
    log: str
    conf: dict[str, str] = {}
    drain: bool = False
    """Deliver what was left to open generations, and end."""


class QueryProgress(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of one query."""

    client: str
    generation: int
    rows: float
    """A second, in its last batch."""
    at: int
    """When that ended, in microseconds; 0: it has not ended one."""


class ProcessReport(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the output."""

    current: int = 0
    open: tuple[int, ...] = ()
    queries: tuple[QueryProgress, ...] = ()
    problem: str = ""
