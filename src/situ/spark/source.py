"""The root log as detection reads it: a source of Spark, ``readStream.format("situ-detect")``.

Options: ``address``, ``checkpoint``, ``partitions``, ``buckets``, ``maxEvents``, ``folder``, as of
:mod:`situ.pipeline.source`; ``begins``, the offset at which the first batch begins; and ``events``, the checkpoint
of the query that writes the log. A batch ends where the log does, or at the same message a moment later: while
something is to be decided, the clock brings batches, too, up to the time of what is not in the log yet.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from situ.pipeline.offsets import Offset
from situ.pipeline.source_options import SMALL, SourceOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from situ.pipeline.planned_tables import PlannedTables

TICK = 200_000
"""Microseconds between batches that only the clock brings."""
SCHEMA = StructType([StructField("bucket", IntegerType()), StructField("blob", BinaryType())])


class DetectSource(DataSource):
    """Rows of policies' leaves, by bucket."""

    @classmethod
    def name(cls) -> str:
        return "situ-detect"

    def schema(self) -> StructType:
        return SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's signature
        return DetectReader(self.options)


@dataclass
class Part(InputPartition):
    """Messages of the root log, with all that a task needs to make rows of them."""

    first: int
    last: int
    version: int
    tables: dict[str, str]
    reached: dict[str, int] = field(default_factory=dict)
    """How far each policy has decided."""
    marked: tuple[str, ...] = ()
    """Policies that something is expected of."""
    wakes: bool = False
    """Whether this one makes every bucket take a step."""


class DetectReader(DataSourceStreamReader):
    """Cuts the root log into batches beside the driver; ``read`` runs in the tasks."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = SourceOptions.read(options)
        self._begins = Offset.from_json(json.loads(options["begins"])) if "begins" in options else Offset()
        self._events = Path(options["events"])
        self._buckets = int(options["buckets"])
        self._tables: PlannedTables | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return self._begins.as_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._options.max_events)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return self._next(Offset.from_json(start), limit).as_json()

    def _next(self, begin: Offset, limit: ReadLimit) -> Offset:
        from situ.bus.blocking import shared_bus
        from situ.pipeline.cutting import fitting
        from situ.pipeline.ends import Ends, whole
        from situ.pipeline.kept import ProgressStore
        from situ.pipeline.looking_up import DETECT
        from situ.pipeline.planned_tables import PlannedTables, for_detection
        from situ.pipeline.plans import current_version
        from situ.pipeline.present import present, taken_of

        options, now = self._options, time.time_ns() // 1000
        bus = shared_bus(options.address)
        taken = taken_of(self._events)  # before the end of the log is looked up: what was taken is in it then
        ends = Ends(self._events).load()
        state = bus.state(options.log)
        behind = max(begin.seq, state.first - 1)
        last = whole(ends, behind, fitting(bus, options, behind, state, limit), state.last)
        version = current_version(options.address)
        assert options.checkpoint is not None
        # What another engine left is no batch: Spark would take its end for that of the first one, if it were repeated.
        goes_on = begin == self._begins and bool(begin.version)
        quiet = last <= begin.seq and version == begin.version and not goes_on
        if quiet and (now - begin.clock < TICK or not ProgressStore(options.checkpoint).is_due(begin)):
            return begin
        # A batch decides with what those before it have seen: what it brings itself is no silence.
        now = present(bus, options.names, now, taken=taken, last=begin.seq)
        if quiet and now - begin.clock < TICK:
            return begin
        if self._tables is None:
            self._tables = PlannedTables(options.address, options.folder, for_detection, query=DETECT)
        version, tables = self._tables.plan(version, begin)
        small = (last - begin.seq) * state.size <= SMALL * max(state.messages, 1)
        return Offset(
            seq=max(last, begin.seq),
            version=version,
            partitions=1 if small else options.partitions,
            clock=max(now, begin.clock + 1),
            tables=tables,
        )

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Part]:
        from situ.pipeline.kept import ProgressStore

        begin, until = Offset.from_json(start), Offset.from_json(end)
        assert self._options.checkpoint is not None
        progress = ProgressStore(self._options.checkpoint).load(begin)
        kept = progress.policies if progress is not None else {}
        reached = {name: each.reached for name, each in kept.items() if each.reached is not None}
        first, last = begin.seq + 1, until.seq
        step = max(-(-(last - first + 1) // until.partitions), 1)
        starts = range(first, last + 1, step) or range(first, first + 1)
        marked = tuple(progress.marks) if progress is not None else ()
        return [
            Part(at, min(at + step - 1, last), until.version, until.tables, reached, marked, wakes=at == first)
            for at in starts
        ]

    def read(self, partition: Part) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        from situ.bus.blocking import shared_bus
        from situ.pipeline.enrich import enrich, every_bucket
        from situ.pipeline.looking_up import known_instances
        from situ.pipeline.plans import load_plan

        options = self._options
        if partition.wakes:
            yield every_bucket(self._buckets)
        plan = load_plan(options.address, partition.version)
        if partition.last < partition.first or plan.detecting.is_empty:
            return
        messages = shared_bus(options.address).read(options.log, partition.first, partition.last)
        instances = known_instances(plan, options.address, partition.tables)
        yield from enrich(messages, plan, instances, partition.reached, self._buckets, partition.marked)

    def stop(self) -> None:
        if self._tables is not None:
            self._tables.close()
