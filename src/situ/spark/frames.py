"""What moves between Spark and its Python workers: the counters of tasks, and the columns of rows and messages.

`TaskCounts` is all that a task gives back to the driver, as one row; `Totals` sums them over a run. The schemas and the
functions behind them turn rows into Arrow batches and back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from situ.event.lines import stored_lines
from situ.event.message import PLACES, StoredMessage, position
from situ.event.row import BadRow, Origin, Row


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

    def encode(self) -> bytes:
        return msgspec.json.encode(self)


_DECODER = msgspec.json.Decoder(TaskCounts)


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
# Columns. ``rows`` are those of the stages: a row's key and envelope, its data as text, and for what is no event the
# reasons. ``events`` are the keys with the text of each event as it was sent, ``log`` the lines of the root log with
# their positions. ``counts`` is what a task that took events through all stages has counted.

_KEY = [
    ("pos", pa.int64()),
    ("client", pa.string()),
    ("incarnation", pa.int64()),
    ("seq", pa.int64()),
    ("context", pa.string()),
    ("recv", pa.int64()),
]
_ENVELOPE = [
    ("id", pa.string()),
    ("source", pa.string()),
    ("type", pa.string()),
    ("time", pa.int64()),
    ("ad", pa.string()),
    ("confidence", pa.float64()),
    ("ext", pa.string()),
    ("data", pa.binary()),
]
# Stamps of what a situation comes from, which its policy brings along.
_PARTS = ("parts", pa.string())
# Of what is no event, `data` is what was sent, as it was sent.
_FAULT = [("stage", pa.string()), ("errors", pa.string()), ("size", pa.int64())]

ROWS = pa.schema([*_KEY, *_ENVELOPE, _PARTS, *_FAULT])
EVENTS = pa.schema([*_KEY, ("event", pa.string())])
COUNTS = pa.schema([("counts", pa.binary())])
LOG = pa.schema([("pos", pa.int64()), ("line", pa.binary())])
_SCHEMAS = {"rows": ROWS, "events": EVENTS, "log": LOG, "counts": COUNTS}
_ROW_FIELDS = tuple(name for name, _ in (*_KEY, *_ENVELOPE))
_FAULTS = msgspec.json.Decoder(list[tuple[str, str, str, str]])
_ENCODE = msgspec.json.encode


def schema(content: str) -> StructType:
    """Spark's schema of a frame of this content."""
    return from_arrow_schema(_SCHEMAS[content])


def row_batches(rows: Iterable[list[Row | BadRow]], most: int) -> Iterator[pa.RecordBatch]:
    """Rows in batches of about ``most``; those of one message stay together."""
    fields = (*_KEY, *_ENVELOPE)
    for chunk in _chunks(rows, most):
        if any(type(row) is BadRow for row in chunk):
            columns: Iterable[Any] = ([_mixed_field(row, name) for row in chunk] for name, _ in fields)
            faults = [pa.array([_fault(row, name) for row in chunk], type_) for name, type_ in _FAULT]
        else:
            columns = (list(map(attrgetter(name), chunk)) for name, _ in fields)
            faults = [pa.nulls(len(chunk), type_) for _, type_ in _FAULT]
        arrays = [pa.array(column, type_) for column, (_, type_) in zip(columns, fields, strict=True)]
        parts = pa.array([row.parts or None if type(row) is Row else None for row in chunk], pa.string())
        yield pa.RecordBatch.from_arrays([*arrays, parts, *faults], schema=ROWS)


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[list[Row | BadRow]]:
    """The rows again, a list for each message they came in. A message may end in the next batch."""
    for _, rows in groupby(_each_row(batches), key=_message_of):
        yield list(rows)


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


def count_batch(counts: TaskCounts) -> pa.RecordBatch:
    """What one task counted."""
    return pa.RecordBatch.from_arrays([pa.array([counts.encode()], pa.binary())], schema=COUNTS)


def _chunks(lists: Iterable[list[Any]], most: int) -> Iterator[list[Any]]:
    chunk: list[Any] = []
    for each in lists:
        chunk.extend(each)
        if len(chunk) >= most:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _mixed_field(row: Row | BadRow, name: str) -> Any:
    """A field of a row; of what is no event, what it has of them."""
    return getattr(row, "original" if name == "data" and isinstance(row, BadRow) else name, None)


def _fault(row: Row | BadRow, name: str) -> Any:
    if isinstance(row, Row):
        return None
    return _ENCODE(row.errors).decode() if name == "errors" else getattr(row, name)


def _each_row(batches: Iterable[pa.RecordBatch]) -> Iterator[Row | BadRow]:
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in _ROW_FIELDS]
        if batch.column("parts").null_count < batch.num_rows:
            yield from _with_parts(_each_row([_without_parts(batch)]), batch.column("parts").to_pylist())
            continue
        if batch.column("errors").null_count == batch.num_rows:
            yield from map(Row, *columns)
            continue
        faults = zip(*(batch.column(name).to_pylist() for name, _ in _FAULT), strict=True)
        for fields, (stage, errors, size) in zip(zip(*columns, strict=True), faults, strict=True):
            yield Row(*fields) if errors is None else _bad(fields, stage, errors, size)


def _without_parts(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index("parts"), "parts", pa.nulls(batch.num_rows, pa.string()))


def _with_parts(rows: Iterable[Row | BadRow], parts: Iterable[str | None]) -> Iterator[Row | BadRow]:
    for row, each in zip(rows, parts, strict=True):
        if isinstance(row, Row) and each:
            row.parts = each
        yield row


def _bad(fields: tuple[Any, ...], stage: str, errors: str, size: int | None) -> BadRow:
    pos, client, incarnation, seq, context, recv = fields[:6]
    return BadRow(
        pos=pos,
        client=client,
        incarnation=incarnation,
        seq=seq,
        context=context,
        recv=recv,
        ad=fields[10],
        stage=stage,
        errors=tuple(_FAULTS.decode(errors)),
        original=fields[13],
        size=size,
    )


def _message_of(row: Row | BadRow) -> int:
    return row.pos // PLACES


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
