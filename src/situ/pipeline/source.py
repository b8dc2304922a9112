"""The bus as a source of Spark: ``spark.read`` and ``spark.readStream.format("situ-bus")``.

Options: ``address`` (JSON, see :class:`situ.bus.address.Address`), ``stream`` (``IN`` or ``ROOT``),
``content``: ``events``, the text of each event with its key; ``rows``, decoded and checked against the types of the
deployment; ``counts``, decoded and taken through all stages, the deliveries published by the task that made them, and
what was counted; ``log``, the lines of the root log; ``checkpoint``, where what passes between batches is kept. What
comes in is cut by client, so that every task has all events of its clients in their order and nothing need be sorted
again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from situ.bus.address import Address
from situ.bus.blocking import BlockingBus, shared_bus
from situ.bus.names import SHARDS, Names
from situ.event.message import COUNT, Stored
from situ.pipeline import frames
from situ.pipeline.carry import Carry, CarryStore, Highest
from situ.pipeline.decode import decode, take_events
from situ.pipeline.dispatch import Dispatch, dispatched
from situ.pipeline.looking_up import PlannedTables, former, use_tables
from situ.pipeline.offsets import Offset
from situ.pipeline.plans import current_version, load_plan
from situ.pipeline.sink import BusWriter

_SAMPLES = 8
_FEW = 64
_ROWS = 8192
_SMALL = 256 * 1024
"""Bytes of messages that one task is done with before another would have begun."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The options, read."""

    address: Address
    stream: str
    content: str
    checkpoint: Path | None
    partitions: int
    max_events: int
    folder: Path = Path()
    """Of the project: where the files of its tables are."""

    @classmethod
    def read(cls, options: Mapping[str, str]) -> Settings:
        checkpoint = options.get("checkpoint")
        return cls(
            address=Address.from_json(options["address"]),
            stream=options.get("stream", "IN"),
            content=options.get("content", "events"),
            checkpoint=Path(checkpoint) if checkpoint else None,
            partitions=int(options.get("partitions", "2")),
            max_events=int(options.get("maxEvents", "200000")),
            folder=Path(options.get("folder", ".")),
        )

    @property
    def names(self) -> Names:
        return Names(self.address.zone)

    @property
    def log(self) -> str:
        return self.names.in_stream if self.stream == "IN" else self.names.root_stream


@dataclass
class Part(InputPartition):
    """What one task reads: messages from ``first`` to ``last``, of these subjects if any are named."""

    first: int
    last: int
    subjects: tuple[str, ...]
    version: int
    clock: int = 0
    highest: Highest = field(default_factory=dict)
    stored: frozenset[str] = frozenset()
    tables: dict[str, str] = field(default_factory=dict)


class BusSource(DataSource):
    """Events of a zone's logs."""

    @classmethod
    def name(cls) -> str:
        return "situ-bus"

    def schema(self) -> StructType:
        return frames.schema(Settings.read(self.options).content)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's signature
        return BusReader(Settings.read(self.options), self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's signature
        return BusStreamReader(Settings.read(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: ARG002 - Spark's signature
        return BusWriter(Address.from_json(self.options["address"]))


class BusStreamReader(DataSourceStreamReader):
    """Cuts the log into batches. Lives in one process beside the driver; ``read`` runs in the tasks."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._tables: PlannedTables | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        settings = self._settings
        return Offset(version=current_version(settings.address), partitions=settings.partitions).as_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._settings.max_events)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        begin, settings = Offset.from_json(start), self._settings
        bus = shared_bus(settings.address)
        state = bus.state(settings.log)
        last = state.last
        if not isinstance(limit, ReadAllAvailable):
            behind = max(begin.seq, state.first - 1)  # what was purged is not there to fill a batch
            last = min(last, behind + _fitting(bus, settings, behind, last, limit))
        version = current_version(settings.address)
        if last <= begin.seq and version == begin.version:
            return start
        small = (last - begin.seq) * state.size <= _SMALL * state.messages
        partitions = 1 if small else settings.partitions
        version, tables = self._planned(version, begin)
        if last <= begin.seq and version == begin.version:
            return start
        return Offset(
            seq=max(last, begin.seq),
            version=version,
            partitions=partitions,
            clock=time.time_ns() // 1000,
            tables=tables,
        ).as_json()

    def _planned(self, version: int, begin: Offset) -> tuple[int, dict[str, str]]:
        if not version:
            return version, {}
        if self._tables is None:
            self._tables = PlannedTables(self._settings.address, self._settings.folder)
        return self._tables.plan(version, begin)

    def stop(self) -> None:
        if self._tables is not None:
            self._tables.close()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        begin, stop = Offset.from_json(start), Offset.from_json(end)
        return cut(self._settings, begin.seq + 1, stop)

    def read(self, partition: Part) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        return read_part(self._settings, partition)


class BusReader(DataSourceReader):
    """A range of the log, read once: options ``first`` and ``last``, else all there is now."""

    def __init__(self, settings: Settings, options: Mapping[str, str]) -> None:
        self._settings = settings
        self._range = (options.get("first"), options.get("last"))
        self._version = options.get("version")

    def partitions(self) -> Sequence[InputPartition]:
        settings = self._settings
        state = shared_bus(settings.address).state(settings.log)
        first, last = self._range
        end = Offset(
            seq=min(int(last) if last else state.last, state.last),
            version=int(self._version) if self._version else current_version(settings.address),
            partitions=settings.partitions,
            clock=time.time_ns() // 1000,
        )
        return cut(settings, max(int(first) if first else 0, state.first), end)

    def read(self, partition: Part) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        return read_part(self._settings, partition)


def cut(settings: Settings, first: int, end: Offset) -> list[Part]:
    """What comes in is cut by client, with what was carried to here; the root log, whose order is made, by position."""
    last, version, clock = end.seq, end.version, end.clock
    if last < first:
        return []
    if settings.stream != "IN":
        step = -(-(last - first + 1) // end.partitions)
        return [Part(at, min(at + step - 1, last), (), version, clock) for at in range(first, last + 1, step)]
    carry = CarryStore(settings.checkpoint).load(first - 1) if settings.checkpoint else Carry()
    if end.partitions == 1:
        return [Part(first, last, (), version, clock, carry.highest, carry.stored, end.tables)]
    parts = []
    for number in range(min(end.partitions, SHARDS)):
        shards = range(number, SHARDS, end.partitions)
        subjects = tuple(settings.names.raw("*", shard) for shard in shards)
        parts.append(Part(first, last, subjects, version, clock, carry.share(shards), carry.stored, end.tables))
    return parts


def read_part(settings: Settings, part: Part) -> Iterator[pa.RecordBatch]:
    """The rows of one part, in Arrow batches."""
    messages = shared_bus(settings.address).read(settings.log, part.first, part.last, subjects=part.subjects)
    if settings.content == "log":
        yield from frames.log_batches(messages, _ROWS)
    elif settings.content == "events":
        yield from frames.event_batches(take_events(messages, part.highest), _ROWS)
    else:
        plan = load_plan(settings.address, part.version)
        rows = decode(messages, plan, part.highest, lambda version: former(settings.address, version, part.tables))
        if settings.content == "rows":
            yield from frames.row_batches(rows, _ROWS)
        else:
            use_tables(plan, settings.address, part.tables)
            yield dispatched(settings.address, Dispatch(plan, part.clock), rows, part.stored)


def _fitting(bus: BlockingBus, settings: Settings, behind: int, last: int, limit: ReadLimit) -> int:
    """About how many of the next messages hold as many events as the limit allows, judged by a few of them."""
    if last - behind <= _FEW or not isinstance(limit, ReadMaxRows):
        return max(last - behind, 0)
    step = max((last - behind) // _SAMPLES, 1)
    places = range(behind + 1, last + 1, step)
    found = [message for place in places for message in _some(bus, settings.log, place)]
    events = sum(int(message.headers.get(COUNT, "1")) for message in found)
    return max(_FEW, limit.max_rows * max(len(found), 1) // max(events, 1))


def _some(bus: BlockingBus, log: str, place: int) -> list[Stored]:
    return list(bus.read(log, place, place))
