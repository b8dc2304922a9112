"""How a log of the bus is cut into batches, a batch into partitions, and what a task reads of its partition.

`Batches` says where batches end, `partitions_of_batch` cuts one, `read_partition` gives its rows in Arrow batches.
`decode` is the stage decode on the messages of a partition.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from situ.bus.address import Address
from situ.bus.interface import StreamState
from situ.bus.sync_bus import BlockingBus, shared_bus
from situ.event.message import COUNT, StoredMessage, lane_of, split_lines
from situ.event.row import BadRow, Origin, Row
from situ.event.subjects import SHARDS, BusNames, shards_of
from situ.spark import frames
from situ.spark.checkpoint import ClientOffsetStore, Highest, Offset
from situ.spark.elastic.sizes import SizeStore, WantedSizes
from situ.spark.plans import current_version, load_plan
from situ.spark.real_time.generations import Generations
from situ.spark.real_time.leave_out import planned
from situ.spark.source import SMALL, SourceOptions
from situ.spark.state_store import PendingDeliveryStore, ShapeCheckpoint
from situ.spark.topics import TopicPlanner, TopicRange, Topics, ranges_of, topic_messages
from situ.stages.plan import Plan
from situ.stages.root_log import Former, ingress_rows, origin_of, upgrade_message
from situ.storage.state_folder import StateFolder

if TYPE_CHECKING:
    from situ.spark.tables import PlannedTables


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Stage decode: messages of the log → rows, each an event of its declared type or the reasons why it is none. A message
# whose events were all taken before is a repeat; of one that overlaps what was taken, only the rest is.


def decode(
    messages: Iterable[StoredMessage], plan: Plan, highest: Highest, former: Former, *, bare: bool = False
) -> Iterator[list[Row | BadRow]]:
    """The rows of each message, without those whose keys are not above the highest of their lane.

    Those of a version of a context that is not in force are in root's terms already: that one put them there. ``bare``
    rows may have no text before they are in root's terms.
    """
    reached = dict(highest)
    for message in messages:
        origin = origin_of(message)
        rows = ingress_rows(message, origin, plan.interpretation, former, bare=bare)
        lane = lane_of(origin.client, origin.incarnation)
        if lane != origin.client:
            for row in rows:
                row.pos = 0  # they are known by their keys: a record has no place in what came in over the bus
        taken = reached.get(lane, (0, 0))
        if (origin.incarnation, origin.seq) <= taken:
            rows = [row for row in rows if (row.incarnation, row.seq) > taken]
        if rows:
            reached[lane] = (rows[-1].incarnation, rows[-1].seq)
            yield rows


def take_events(messages: Iterable[StoredMessage]) -> Iterator[tuple[Origin, list[bytes]]]:
    """The events of each message as they were sent, once, for those who decode them in their own way."""
    reached: dict[str, tuple[int, int]] = {}
    for message in messages:
        origin = origin_of(message)
        lines = split_lines(message.body)
        if (origin.incarnation, origin.seq) > reached.get(origin.client, (0, 0)):
            reached[origin.client] = (origin.incarnation, origin.seq + len(lines) - 1)
            yield origin, lines


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Batches and partitions. What comes in is cut by client, so that every task has all events of its clients in their
# order and nothing need be sorted again; the root log, whose order is made, by position.

_SAMPLES = 8
_FEW = 64
_LEAST = 60  # bytes of an event on the bus: a CloudEvent that says anything has more
_ROWS = 8192
_LOOK_AFTER = 5_000_000
_FEW_RECORDS = 1000
"""Records of topics that one task is done with before another would have begun."""
_ALL = 10**9


@dataclass
class LogPartition(InputPartition):
    """What one task reads: messages from ``first`` to ``last``, of these subjects if any are named."""

    log: str
    first: int
    last: int
    subjects: tuple[str, ...] = ()
    shards: tuple[int, ...] = ()
    """Of clients; none: all of them."""
    topics: tuple[TopicRange, ...] = ()
    """What is read of topics, by the declarations of this version, as received at this time."""
    version: int = 0
    clock: int = 0

    def messages(self, address: Address) -> Iterable[StoredMessage]:
        if self.first <= self.last:
            yield from shared_bus(address).read(self.log, self.first, self.last, subjects=self.subjects)
        yield from topic_messages(address, self.topics, self.version, self.clock)


class Batches:
    """Says where the batches of a stream end."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._tables: PlannedTables | None = None
        checkpoint = options.checkpoint
        kept = checkpoint is not None and (options.stream, options.content) == ("IN", "rows")
        carries = ClientOffsetStore(checkpoint) if kept and checkpoint is not None else None
        self._topics = TopicPlanner(lambda at: carries.load(at.mark).highest) if carries is not None else None
        """None: only the query of events reads topics."""
        self._sizes = SizeStore(options.checkpoint) if options.checkpoint is not None else None
        self._generations = Generations(checkpoint) if kept and checkpoint is not None else None

    def first(self) -> Offset:
        """Where the first batch begins."""
        return Offset(version=current_version(self._options.address), partitions=self._options.partitions)

    def next(self, begin: Offset, limit: ReadLimit) -> Offset:
        """Where the batch that begins here ends; here, if nothing is new."""
        options = self._options
        bus = shared_bus(options.address)
        state = bus.state(options.log)
        last, version = state.last, current_version(options.address)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else _ALL
        # What waits on both sides shares a batch; the log alone has all of it, as there are mostly no topics.
        topics = self._read_topics(version, begin, most if last <= begin.seq else max(most // 2, 1))
        if not isinstance(limit, ReadAllAvailable):
            behind = max(begin.seq, state.first - 1)  # what was purged is not there to fill a batch
            left = ReadMaxRows(max(most - _records(topics), 1)) if topics and most != _ALL else limit
            last = min(last, behind + fitting(bus, options, behind, state, left))
        # Read before the clock is: whoever named another generation before a batch's time knows that it sees that.
        real_time = self._real_time(version)
        if self._is_nothing_new(begin, last, version, topics, real_time):
            return begin
        small = (last - begin.seq) * state.size <= SMALL * state.messages and _records(topics) <= _FEW_RECORDS
        wanted = self._sizes.load() if self._sizes is not None else WantedSizes()
        partitions = 1 if small else wanted.partitions or options.partitions
        planned, tables = self._planned(version, begin)
        if planned != version:
            version, topics = planned, self._read_topics(planned, begin, most)
        if version and partitions > 1 and self._remembers(version, begin):
            partitions = 1  # what came before what is the same for all
        # Asked again, as the version may be the old one by now: one whose tables cannot be read has to wait.
        if self._is_nothing_new(begin, last, version, topics, real_time):
            return begin
        return Offset(
            seq=max(last, begin.seq),
            version=version,
            partitions=partitions,
            clock=time.time_ns() // 1000,
            tables=tables,
            topics=topics,
            spread=bool(topics) and not self._is_shaped(version, begin),
            real_time=real_time,
        )

    def _real_time(self, version: int) -> int:
        """The generation that this batch leaves deliveries to."""
        if self._generations is None or not version:
            return 0
        plan = load_plan(self._options.address, version)
        return self._generations.current() if planned(plan).ordinary else 0

    def _is_nothing_new(self, begin: Offset, last: int, version: int, topics: Topics, real_time: int) -> bool:
        read = _records(topics) or topics.keys() != begin.topics.keys() or real_time != begin.real_time
        return not read and last <= begin.seq and version == begin.version and not self._is_waited_for(begin)

    def _read_topics(self, version: int, begin: Offset, most: int) -> Topics:
        if self._topics is None or not version:
            return {}
        return self._topics.next(load_plan(self._options.address, version).deployment, begin, most)

    def _is_shaped(self, version: int, begin: Offset) -> bool:
        """Whether filters remember something of clients: then a task has all events of its clients."""
        checkpoint = self._options.checkpoint
        return checkpoint is not None and (
            ShapeCheckpoint(checkpoint, begin).is_there or bool(load_plan(self._options.address, version).shapes.by_id)
        )

    def _remembers(self, version: int, begin: Offset) -> bool:
        options = self._options
        left = (
            options.checkpoint is not None
            and PendingDeliveryStore(options.checkpoint, begin.mark, begin.mark).is_left_behind
        )
        left = left or (options.checkpoint is not None and ShapeCheckpoint(options.checkpoint, begin).is_across)
        plan = load_plan(options.address, version)
        return left or plan.interpretation.remembers or plan.shapes.goes_across

    def _is_waited_for(self, begin: Offset) -> bool:
        """Whether something waits that the clock lets go, and it is time to look: by a batch without events."""
        checkpoint = self._options.checkpoint
        if checkpoint is None or time.time_ns() // 1000 - begin.clock < _LOOK_AFTER:
            return False
        return ShapeCheckpoint(checkpoint, begin).holds

    def _planned(self, version: int, begin: Offset) -> tuple[int, dict[str, str]]:
        if not version:
            return version, {}
        if self._tables is None:
            from situ.spark.tables import PlannedTables

            self._tables = PlannedTables(self._options.address, self._options.folder)
        return self._tables.plan(version, begin)

    def close(self) -> None:
        if self._tables is not None:
            self._tables.close()
        if self._topics is not None:
            self._topics.close()


def partitions_of_range(options: SourceOptions, first: str | None, last: str | None) -> list[LogPartition]:
    """The parts of a range of the log, which is read once; of all there is now where nothing is said."""
    state = shared_bus(options.address).state(options.log)
    end = Offset(seq=min(int(last) if last else state.last, state.last), partitions=options.partitions)
    begin = Offset(seq=max(int(first) if first else 0, state.first) - 1)
    return partitions_of_batch(options, begin, end)


def partitions_of_batch(options: SourceOptions, begin: Offset, end: Offset) -> list[LogPartition]:
    """The parts of a batch."""
    first, last = begin.seq + 1, end.seq
    if last < first and not end.records:
        # Without events there is still something to do where filters hold something back.
        kept = options.checkpoint if (options.stream, options.content) == ("IN", "rows") else None
        shaped = kept is not None and is_shaped(options.address, kept, begin, end)
        return [LogPartition(options.log, first, last)] if shaped else []
    if options.stream != "IN":
        step = -(-(last - first + 1) // end.partitions)
        return [LogPartition(options.log, at, min(at + step - 1, last)) for at in range(first, last + 1, step)]
    return [part_of_batch(options.names, begin, end, number) for number in range(min(end.partitions, SHARDS))]


def part_of_batch(names: BusNames, begin: Offset, end: Offset, number: int) -> LogPartition:
    """One part of a batch of what comes in: that of some clients."""
    first, last = begin.seq + 1, end.seq
    some = first <= last or bool(end.records)
    shards = shards_of(number, end.partitions) if end.partitions > 1 and some else ()
    subjects = tuple(names.raw("*", shard) for shard in shards)
    topics = ranges_of(end, number) if some else ()
    return LogPartition(names.in_stream, first, last, subjects, shards, topics, end.version, end.clock)


def _records(topics: Topics) -> int:
    return sum(end - begin for begin, end in topics.values())


def is_shaped(address: Address, checkpoint: StateFolder, begin: Offset, end: Offset) -> bool:
    """Whether filters remember something, or begin to."""
    left = ShapeCheckpoint(checkpoint, begin).is_there
    return left or bool(end.version and load_plan(address, end.version).shapes.by_id)


def read_partition(options: SourceOptions, part: LogPartition) -> Iterator[pa.RecordBatch]:
    """The rows of one part, in Arrow batches."""
    messages = part.messages(options.address)
    if options.content == "rows":
        yield from frames.row_batches(messages, _ROWS)
    elif options.content == "log":
        now = load_plan(options.address, options.version).interpretation
        yield from frames.log_batches((upgrade_message(message, now) for message in messages), _ROWS)
    else:
        yield from frames.event_batches(take_events(messages), _ROWS)


def fitting(bus: BlockingBus, options: SourceOptions, behind: int, state: StreamState, limit: ReadLimit) -> int:
    """How many of the next messages hold no more events than the limit allows; one at least, if there is one.

    Where that may be many, it is judged by some of them, and is about so many.
    """
    there = state.last - behind
    if there <= 0 or not isinstance(limit, ReadMaxRows):
        return max(there, 0)
    if there * state.size <= limit.max_rows * _LEAST * max(state.messages, 1):
        return there  # most batches are small: to look at messages for that would cost more than it tells
    if there > _FEW:
        places = range(behind + 1, state.last + 1, max(there // _SAMPLES, 1))
        found = [message for place in places for message in _some(bus, options.log, place)]
        events = sum(map(_events_in, found))
        there = min(there, max(limit.max_rows * max(len(found), 1) // max(events, 1), 1))
    return there if there > _FEW else _counted(bus, options, behind, there, limit.max_rows)


def _counted(bus: BlockingBus, options: SourceOptions, behind: int, there: int, most: int) -> int:
    taken = events = 0
    for message in bus.read(options.log, behind + 1, behind + there):
        events += _events_in(message)
        if taken and events > most:
            return taken
        taken = message.seq - behind
    return there


def _events_in(message: StoredMessage) -> int:
    return int(message.headers.get(COUNT, "1"))


def _some(bus: BlockingBus, log: str, place: int) -> list[StoredMessage]:
    return list(bus.read(log, place, place))
