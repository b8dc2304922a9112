"""How fast a query takes a full ingress stream in: when each of its batches ended, and how far it was then.

The first batches, in which workers load the deployment and Java compiles, are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.bench import Bench
from benchmarks.harness import Taken
from benchmarks.processor import processor_seconds
from benchmarks.zones import Ingress
from situ.spark.checkpoint import read_offset
from situ.spark.engine import SparkEngine
from situ.spark.source import BusSource
from situ.storage.state_folder import open_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SKIPPED = 2
CPU = "µs of processor time an event"
_WITHIN = 300.0
Write = Callable[["DataFrame", int], None]


class Marks:
    """The ends of the batches of one query."""

    def __init__(self, last: int, skipped: int) -> None:
        self._last = last
        self._skipped = skipped
        self._ends: list[tuple[float, float, int]] = []

    def add(self, seq: int) -> None:
        self._ends.append((time.perf_counter(), processor_seconds(), seq))

    @property
    def done(self) -> bool:
        return bool(self._ends) and self._ends[-1][2] >= self._last

    @property
    def messages_a_second(self) -> float:
        """Over all batches but the first."""
        (start, _, first), (end, _, last) = self._measured
        return (last - first) / (end - start)

    @property
    def processor_seconds_a_message(self) -> float:
        """Over all batches but the first, of all processes but the bus."""
        (_, start, first), (_, end, last) = self._measured
        return (end - start) / (last - first)

    def taken(self, per_message: int) -> Taken:
        """Events a second, and their processor time, which says more where the machine does other things beside."""
        cpu = self.processor_seconds_a_message / per_message * 1e6
        return Taken(value=self.messages_a_second * per_message, figures={CPU: cpu})

    @property
    def _measured(self) -> tuple[tuple[float, float, int], tuple[float, float, int]]:
        assert len(self._ends) > self._skipped, f"{len(self._ends)} batches are too few to measure"
        return self._ends[self._skipped - 1], self._ends[-1]


def take_by_engine(bench: Bench, ingress: Ingress, *, folder: Path = Path()) -> Marks:
    """What it takes the engine to take everything in; the files of tables are in the folder."""
    zone = ingress.zone
    marks = Marks(ingress.last, bench.some(SKIPPED, 1))
    engine = SparkEngine(
        bench.spark,
        zone.address,
        zone.deployment.settings,
        bench.folder("checkpoints"),
        folder=folder,
        on_batch=lambda batch: marks.add(batch.offset.seq),
    )
    engine.start()
    try:
        _wait(marks, lambda: engine.wait(0.02))
    finally:
        engine.stop()
    return marks


def take_by_query(bench: Bench, ingress: Ingress, *, content: str, write: Write, folder: Path = Path()) -> Marks:
    """What it takes such a query to take everything in."""
    zone, settings = ingress.zone, ingress.zone.deployment.settings
    checkpoint = bench.folder("checkpoint")
    marks = Marks(ingress.last, bench.some(SKIPPED, 1))
    bench.spark.dataSource.register(BusSource)
    stream = (
        bench.spark.readStream.format(BusSource.name())
        .option("address", zone.address.to_json())
        .option("content", content)
        .option("partitions", str(bench.spark.sparkContext.defaultParallelism))
        .option("maxEvents", str(settings.spark.max_events))
        .option("folder", str(folder))
        .load()
    )

    def batch(frame: DataFrame, number: int) -> None:
        write(frame, number)
        marks.add(_end(checkpoint, number))

    query = (
        stream.writeStream.option("checkpointLocation", str(checkpoint))
        .trigger(processingTime=f"{round(settings.spark.trigger.total_seconds() * 1000)} milliseconds")
        .foreachBatch(batch)
        .start()
    )
    try:
        _wait(marks, lambda: query.awaitTermination(0.02))  # type: ignore[arg-type]
    finally:
        query.stop()
    return marks


def _end(checkpoint: Path, number: int) -> int:
    return read_offset(open_folder(checkpoint), number).seq


def _wait(marks: Marks, look: Callable[[], object]) -> None:
    deadline = time.monotonic() + _WITHIN
    while not marks.done:
        look()  # raises if the query has failed
        assert time.monotonic() < deadline, f"not done within {_WITHIN:.0f} s"
