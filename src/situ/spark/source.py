"""The sources of both Spark queries: ``situ-bus`` reads a log of the bus, ``situ-detect`` the root log for detection.

`SourceOptions` reads the options, `BusSource` is ``spark.read`` and ``spark.readStream.format("situ-bus")``. `present`
says up to which time detection may decide; `DetectSource` is ``spark.readStream.format("situ-detect")``. Spark loads
this module in several processes of its own before the first batch, most of which only ask what the source is, so what
does the work is imported in the functions that do it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from situ.bus.address import Address
from situ.bus.sync_bus import BlockingBus
from situ.event.message import RECEIVED
from situ.event.subjects import BusNames
from situ.spark import frames
from situ.spark.checkpoint import Offset, last_batch, read_offset
from situ.spark.elastic.sizes import SizeStore, WantedSizes
from situ.storage.state_folder import StateFolder

if TYPE_CHECKING:
    import pyarrow as pa

    from situ.spark.partitions import Batches, LogPartition
    from situ.spark.tables import PlannedTables


SMALL = 256 * 1024
"""Bytes of messages that one task is done with before another would have begun."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What is to be read, and how; see :mod:`situ.spark.source`."""

    address: Address
    stream: str
    content: str
    checkpoint: StateFolder | None
    partitions: int
    max_events: int
    folder: Path = Path()
    """Of the project: where the files of its tables are."""
    version: int = 0
    """Of the deployment whose terms the root log is read in."""

    @classmethod
    def read(cls, options: Mapping[str, str]) -> SourceOptions:
        checkpoint = options.get("checkpoint")
        return cls(
            address=Address.from_json(options["address"]),
            stream=options.get("stream", "IN"),
            content=options.get("content", "events"),
            checkpoint=StateFolder(checkpoint) if checkpoint else None,
            partitions=int(options.get("partitions", "2")),
            max_events=int(options.get("maxEvents", "200000")),
            folder=Path(options.get("folder", ".")),
            version=int(options.get("version", "0")),
        )

    @property
    def names(self) -> BusNames:
        return BusNames(self.address.zone)

    @property
    def log(self) -> str:
        return self.names.in_stream if self.stream == "IN" else self.names.root_stream


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ-bus``. Options: ``address`` (JSON, see :class:`situ.bus.address.Address`), ``stream`` (``IN`` or ``ROOT``),
# ``content``: ``events``, the text of each event with its key; ``rows``, which the stages take, see
# :mod:`situ.spark.frames`; ``log``, the lines of the root log in the terms of ``version``; ``checkpoint``, where what
# passes between batches is kept.


class BusSource(DataSource):
    """Events of a zone's logs."""

    @classmethod
    def name(cls) -> str:
        return "situ-bus"

    def schema(self) -> StructType:
        return frames.schema(SourceOptions.read(self.options).content)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's signature
        return BusReader(SourceOptions.read(self.options), self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's signature
        return BusStreamReader(SourceOptions.read(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: ARG002 - Spark's signature
        from situ.spark.dispatch import BusWriter

        return BusWriter(Address.from_json(self.options["address"]))


class BusStreamReader(DataSourceStreamReader):
    """Cuts the log into batches. Lives in one process beside the driver; ``read`` runs in the tasks."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._made: Batches | None = None

    @property
    def _batches(self) -> Batches:
        from situ.spark.partitions import Batches

        if self._made is None:
            self._made = Batches(self._options)
        return self._made

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return self._batches.first().as_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._options.max_events)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return self._batches.next(Offset.from_json(start), limit).as_json()

    def stop(self) -> None:
        if self._made is not None:
            self._made.close()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        from situ.spark.partitions import partitions_of_batch

        return partitions_of_batch(self._options, Offset.from_json(start), Offset.from_json(end))

    def read(self, partition: LogPartition) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        from situ.spark.partitions import read_partition

        return read_partition(self._options, partition)


class BusReader(DataSourceReader):
    """A range of the log, read once: options ``first`` and ``last``, else all there is now."""

    def __init__(self, options: SourceOptions, given: Mapping[str, str]) -> None:
        self._options = options
        self._range = (given.get("first"), given.get("last"))

    def partitions(self) -> Sequence[InputPartition]:
        from situ.spark.partitions import partitions_of_range

        return partitions_of_range(self._options, *self._range)

    def read(self, partition: LogPartition) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        from situ.spark.partitions import read_partition

        return read_partition(self._options, partition)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The present as detection may count on it: nothing that came before it is still on its way into the batch. What comes
# in passes through the event query before detection can see it. While all is silent the clock alone moves the
# watermark, and it must not move past what waits there: it would be late on its arrival.


def taken_of(events: StateFolder) -> int:
    """The last message of what came in that the query of events, with this checkpoint, has put into the root log."""
    done = last_batch(events, "commits")
    return read_offset(events, done).seq if done is not None else 0


def present(bus: BlockingBus, names: BusNames, now: int, *, taken: int, last: int) -> int:
    """The time of now, or when the first message came that batches up to ``last`` of the root log do not have.

    All that came in up to ``taken`` is in the root log.
    """
    waiting = (_received(bus, names.in_stream, taken), _received(bus, names.root_stream, last))
    return min([now, *(each for each in waiting if each is not None)])


def _received(bus: BlockingBus, log: str, behind: int) -> int | None:
    """When the first message behind this one was received; None if there is none."""
    state = bus.state(log)
    place = max(behind + 1, state.first)
    if not state.messages or place > state.last:
        return None
    message = next(iter(bus.read(log, place, place)), None)
    if message is None:
        return 0  # it was taken and removed meanwhile: what is behind it, the next look will tell
    return int(message.headers.get(RECEIVED, message.at))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ-detect``. Options: ``address``, ``checkpoint``, ``partitions``, ``maxEvents``, ``folder``, as of
# ``situ-bus``; ``begins``, the offset at which the first batch begins; and ``events``, the checkpoint of the query that
# writes the log. A batch ends where the log does, or at the same message a moment later: while something is to be
# decided, the clock brings batches, too, up to the time of what is not in the log yet.

TICK = 200_000
"""Microseconds between batches that only the clock brings."""


class DetectSource(DataSource):
    """Rows of policies' leaves, by bucket, see :data:`situ.spark.frames.ENRICHED`.

    No row for each event: nobody but detection has these, and Java would make every event a row and columns of it
    again. How many were read is one of the columns.
    """

    @classmethod
    def name(cls) -> str:
        return "situ-detect"

    def schema(self) -> StructType:
        return frames.schema("enriched")

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's signature
        return DetectReader(self.options)


class DetectReader(DataSourceStreamReader):
    """Cuts the root log into batches beside the driver; ``read`` runs in the tasks."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = SourceOptions.read(options)
        self._begins = Offset.from_json(json.loads(options["begins"])) if "begins" in options else Offset()
        self._events = StateFolder(options["events"])
        self._sizes = SizeStore(self._options.checkpoint) if self._options.checkpoint is not None else None
        self._tables: PlannedTables | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return self._begins.as_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._options.max_events)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return self._next(Offset.from_json(start), limit).as_json()

    def _next(self, begin: Offset, limit: ReadLimit) -> Offset:
        from situ.bus.sync_bus import shared_bus
        from situ.spark.checkpoint import BatchEnds, whole
        from situ.spark.partitions import fitting
        from situ.spark.plans import DETECT, current_version
        from situ.spark.state_store import ProgressStore
        from situ.spark.tables import PlannedTables, for_detection

        options, now = self._options, time.time_ns() // 1000
        bus = shared_bus(options.address)
        taken = taken_of(self._events)  # before the end of the log is looked up: what was taken is in it then
        ends = BatchEnds(self._events).load()
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
        wanted = self._sizes.load() if self._sizes is not None else WantedSizes()
        return Offset(
            seq=max(last, begin.seq),
            version=version,
            partitions=1 if small else wanted.partitions or options.partitions,
            buckets=wanted.buckets or begin.buckets,
            # Spark begins no batch whose offset is that of the one before, and states are stored by message and clock.
            clock=max(now, begin.clock + 1),
            tables=tables,
            # The clock says nothing of this: messages of policies may stand behind later ones.
            settled=taken + 1 if last >= (ends[-1] if ends else state.last) else begin.settled,
        )

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        from situ.spark.partitions import LogPartition

        begin, until = Offset.from_json(start), Offset.from_json(end)
        first, last = begin.seq + 1, until.seq
        step = max(-(-(last - first + 1) // until.partitions), 1)
        # The first one is there in any case: its task wakes the buckets.
        starts = range(first, last + 1, step) or range(first, first + 1)
        return [LogPartition(self._options.log, at, min(at + step - 1, last)) for at in starts]

    def read(self, partition: LogPartition) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        from situ.spark.detect import read_enriched

        return read_enriched(self._options.address, partition)

    def stop(self) -> None:
        if self._tables is not None:
            self._tables.close()
