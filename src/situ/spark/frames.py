"""What moves between Spark and its Python workers: what a batch is, the rows of a log, and the counters of tasks.

`BatchNote` tells tasks which batch they are of. `row_batches` makes a row of every event of a log, `messages_of` makes
the messages again. `TaskCounts` is all that a task gives back to the driver, as one row; `Totals` sums them over a run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from situ.event.lines import stored_lines
from situ.event.message import StoredMessage, position
from situ.event.row import Origin
from situ.spark.checkpoint import Offset

Mapped = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What Spark maps over the rows of a partition."""

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The batch. A query is planned once, when it starts; what is different from batch to batch goes to the tasks as a local
# property of the job. Spark shows such properties, and nothing in it is secret.

_PROPERTY = "situ.batch"


class BatchNote(msgspec.Struct, frozen=True, kw_only=True):
    """Where a batch begins and ends; of detection, how far each policy is and which ones are expected to publish."""

    begin: Offset
    end: Offset
    reached: dict[str, int] = {}
    expected: tuple[str, ...] = ()
    watermark: int | None = None
    """That of the policy which is furthest behind, in microseconds."""
    state_bytes: int = 0
    """Of what kernels remember, where the batch begins."""
    buckets: int = 1
    """Among which the batch divides what is for policies."""

    def tell(self, context: Any) -> None:
        """Have the jobs that this thread starts from here on know it."""
        context.setLocalProperty(_PROPERTY, msgspec.json.encode(self).decode())


_NOTE = msgspec.json.Decoder(BatchNote)


def batch_of_task() -> tuple[BatchNote, int, int]:
    """In a task: the batch it is of, which of its partitions it has, and how often that was tried before."""
    task = TaskContext.get()
    assert task is not None
    text = task.getLocalProperty(_PROPERTY)
    assert text is not None
    return _NOTE.decode(text), task.partitionId(), task.attemptNumber()


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Counters.


class WorkerSample(msgspec.Struct, frozen=True):
    """The executor that a task ran on, and the share of its cores that is in use."""

    worker: str
    host: str
    cpu: float


class TaskCounts(msgspec.Struct):
    """What one task saw."""

    types: dict[str, int] = msgspec.field(default_factory=dict)
    """Events taken in, by type."""
    groups: dict[str, int] = msgspec.field(default_factory=dict)
    """Events delivered, by delivery group."""
    live: dict[str, int] = msgspec.field(default_factory=dict)
    """Events sent to clients at once, by client and subscription."""
    dead: dict[str, int] = msgspec.field(default_factory=dict)
    """Dead letters, by code."""
    origins: dict[str, int] = msgspec.field(default_factory=dict)
    """Events taken in that came in other terms than root's, as `TYPE CONTEXT`."""
    originals: dict[str, int] = msgspec.field(default_factory=dict)
    """Events that those of their own context got as they were sent, by context."""
    converted: dict[str, int] = msgspec.field(default_factory=dict)
    """Events put in the terms of a context, by context: each once, however many get it."""
    dropped: dict[str, int] = msgspec.field(default_factory=dict)
    """Events that subscriptions did not want to get although they match, as `SUBSCRIPTION REASON`."""
    measured: dict[str, Any] = msgspec.field(default_factory=dict)
    """What was measured of publishers, see :class:`situ.quality.measurement.meter.MeteredPart`."""
    stored: dict[str, Any] = msgspec.field(default_factory=dict)
    """What was stored for readers, where that is counted, see
    :class:`situ.quality.measurement.acknowledgements.StoredBatches`.
    """
    highest: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    """How far each client's events were taken: incarnation and sequence."""
    failures: dict[str, int] = msgspec.field(default_factory=dict)
    """What failed in a way that nobody foresaw and is no event of a client, by what it was."""
    traces: list[str] = msgspec.field(default_factory=list)
    """Some of the tracebacks of that, and of events that failed so."""
    seconds: dict[str, float] = msgspec.field(default_factory=dict)
    """How long each stage took."""
    state_bytes: int = 0
    """Of what shapes and conversions remember, as far as it was written down."""
    worker: WorkerSample | None = None
    """Which executor it was, where somebody asked."""

    def metrics(self) -> dict[str, int | float]:
        """What Spark shows of the stages, by the names of its columns."""
        counted = {
            "events": sum(self.types.values()),
            "deliveries": sum(self.groups.values()) + sum(self.live.values()),
            "dead_letters": sum(self.dead.values()),
            "state_bytes": self.state_bytes,
        }
        return {**counted, **{f"{name}_ms": round(1000 * self.seconds.get(name, 0.0), 3) for name in STAGES}}


_DECODER = msgspec.json.Decoder(TaskCounts)
STAGES = ("read", "decode", "interpret", "log", "route", "deliver", "publish")
"""Whose times are told; *interpret* with stamps, *route* with shapes, *publish* with the wait for the bus."""
COUNTS = pa.schema(
    [
        ("counts", pa.binary()),
        *((name, pa.int64()) for name in ("events", "deliveries", "dead_letters", "state_bytes")),
        *((f"{name}_ms", pa.float64()) for name in STAGES),
    ]
)


def count_batch(counts: TaskCounts) -> pa.RecordBatch:
    """What one task counted."""
    values = {"counts": msgspec.json.encode(counts), **counts.metrics()}
    return pa.RecordBatch.from_pylist([values], schema=COUNTS)


def decode_counts(texts: Iterable[bytes]) -> list[TaskCounts]:
    return [_DECODER.decode(text) for text in texts]


class Totals:
    """The sums over a run."""

    def __init__(self) -> None:
        self.types: Counter[str] = Counter()
        self.groups: Counter[str] = Counter()
        self.live: Counter[str] = Counter()
        self.dead: Counter[str] = Counter()
        self.origins: Counter[str] = Counter()
        self.originals: Counter[str] = Counter()
        self.converted: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self._batch: int | None = None

    def add(self, counts: Iterable[TaskCounts], batch: int | None = None) -> None:
        """Add what the tasks of a batch saw; one that is repeated after it was counted counts once."""
        if batch is not None and batch == self._batch:
            return
        self._batch = batch
        for each in counts:
            self.types.update(each.types)
            self.groups.update(each.groups)
            self.live.update(each.live)
            self.dead.update(each.dead)
            self.origins.update(each.origins)
            self.originals.update(each.originals)
            self.converted.update(each.converted)
            self.dropped.update(each.dropped)
            self.failures.update(each.failures)

    def as_json(self) -> dict[str, Any]:
        names = ("types", "groups", "live", "dead", "origins", "originals", "converted", "dropped", "failures")
        return {name: dict(sorted(getattr(self, name).items())) for name in names}


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Rows. Spark sees every event of a log as one: its text, and with the first of a message what the message says of
# itself. The columns are made without touching single events: a body is cut behind its line breaks, and what stands
# between events stays with the event before it. So the rows of a message, put together again, are its body.

ROWS = pa.schema([("head", pa.string()), ("event", pa.binary())])
EVENTS = pa.schema(
    [
        ("pos", pa.int64()),
        ("client", pa.string()),
        ("incarnation", pa.int64()),
        ("seq", pa.int64()),
        ("context", pa.string()),
        ("recv", pa.int64()),
        ("event", pa.string()),
    ]
)
LOG = pa.schema([("pos", pa.int64()), ("line", pa.binary())])
_SCHEMAS = {"rows": ROWS, "events": EVENTS, "log": LOG, "counts": COUNTS}
_MOST_BYTES = 16 << 20
"""In a batch of rows; offsets in a column are 32 bits."""


def schema(content: str) -> StructType:
    """Spark's schema of a frame of this content."""
    return from_arrow_schema(_SCHEMAS[content])


class _Head(msgspec.Struct, frozen=True, array_like=True):
    """What a message says of itself."""

    seq: int
    subject: str
    at: int
    headers: dict[str, str]


_HEAD = msgspec.json.Decoder(_Head)


def row_batches(messages: Iterable[StoredMessage], most: int) -> Iterator[pa.RecordBatch]:
    """A row for each event, in batches of about ``most``."""
    some: list[StoredMessage] = []
    ends: list[Any] = []
    rows = size = 0
    for message in messages:
        cuts = _cuts(message.body)
        some.append(message)
        ends.append(cuts + size)
        rows += len(cuts)
        size += len(message.body)
        if rows >= most or size >= _MOST_BYTES:
            yield _row_batch(some, ends)
            some, ends, rows, size = [], [], 0, 0
    if some:
        yield _row_batch(some, ends)


def _cuts(body: bytes) -> Any:
    """Where the rows of a body end. The first and the last line break belong to the brackets around all events."""
    breaks = np.flatnonzero(np.frombuffer(body, np.uint8) == _BREAK)
    cuts = breaks[1:] + 1 if len(breaks) > 1 else np.zeros(1, np.int64)
    cuts[-1] = len(body)
    return cuts


_BREAK = ord("\n")


def _row_batch(messages: list[StoredMessage], ends: list[Any]) -> pa.RecordBatch:
    offsets = np.concatenate([np.zeros(1, np.int64), *ends]).astype(np.int32)
    bodies = pa.py_buffer(b"".join([each.body for each in messages]))
    count = len(offsets) - 1
    events = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), bodies])
    firsts = np.zeros(count, bool)
    firsts[np.cumsum([0, *map(len, ends)])[:-1]] = True
    heads = [msgspec.json.encode(_Head(each.seq, each.subject, each.at, dict(each.headers))) for each in messages]
    texts = pa.array([each.decode() for each in heads], pa.string())
    head = texts.take(pa.array(np.cumsum(firsts) - 1, mask=~firsts))
    return pa.RecordBatch.from_arrays([head, events], schema=ROWS)


def messages_of(batches: Iterable[pa.RecordBatch]) -> Iterator[StoredMessage]:
    """The messages again. One may end in the next batch."""
    head: _Head | None = None
    parts: list[memoryview] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        heads, events = batch.column(0), batch.column(1)
        firsts = np.flatnonzero(heads.is_valid().to_numpy(zero_copy_only=False)).tolist()
        offsets, body = _buffers(events)
        begins = [int(offsets[each]) for each in firsts]
        ends = [*begins[1:], int(offsets[-1])]
        parts.append(body[offsets[0] : begins[0] if begins else ends[0]])
        for text, begin, end in zip(heads.drop_null().to_pylist(), begins, ends, strict=False):
            if head is not None:
                yield _message(head, parts)
            head, parts = _HEAD.decode(text), [body[begin:end]]
    if head is not None:
        yield _message(head, parts)


def _buffers(column: pa.BinaryArray) -> tuple[Any, memoryview]:
    """Where the values of a column begin and end, and the bytes of all of them."""
    _, offsets, content = column.buffers()
    places = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return places, memoryview(content or b"")


def _message(head: _Head, parts: list[memoryview]) -> StoredMessage:
    return StoredMessage(seq=head.seq, subject=head.subject, body=b"".join(parts), headers=head.headers, at=head.at)


def event_batches(messages: Iterable[tuple[Origin, list[bytes]]], most: int) -> Iterator[pa.RecordBatch]:
    """The text of events with their keys, in batches of about ``most``."""
    columns: list[list[Any]] = [[] for _ in EVENTS]
    for origin, lines in messages:
        for column, values in zip(columns, _events_of(origin, lines), strict=True):
            column += values
        if len(columns[0]) >= most:
            yield _event_batch(columns)
            columns = [[] for _ in EVENTS]
    if columns[0]:
        yield _event_batch(columns)


def log_batches(messages: Iterable[StoredMessage], most: int) -> Iterator[pa.RecordBatch]:
    """The lines of the root log, in batches of about ``most``."""
    for chunk in _chunks(map(_lines_of, messages), most):
        columns = zip(*chunk, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, LOG, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=LOG)


def _chunks(lists: Iterable[list[Any]], most: int) -> Iterator[list[Any]]:
    chunk: list[Any] = []
    for each in lists:
        chunk.extend(each)
        if len(chunk) >= most:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _lines_of(message: StoredMessage) -> list[tuple[int, bytes]]:
    return [(position(message.seq, place), line) for place, line in enumerate(stored_lines(message))]


def _events_of(origin: Origin, lines: list[bytes]) -> tuple[Iterable[Any], ...]:
    """The columns of the events of a message. A tuple for each event would keep the garbage collector busy."""
    count = len(lines)
    return (
        range(origin.pos, origin.pos + count),
        [origin.client] * count,
        [origin.incarnation] * count,
        range(origin.seq, origin.seq + count),
        [origin.context] * count,
        [origin.received] * count,
        map(bytes.decode, lines),
    )


def _event_batch(columns: list[list[Any]]) -> pa.RecordBatch:
    arrays = [pa.array(column, field.type) for column, field in zip(columns, EVENTS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=EVENTS)
