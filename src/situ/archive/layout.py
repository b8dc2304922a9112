"""The columns of an archive: messages of the root log as tables, and the messages again.

A row is an event. It has its place in the log and its envelope in columns, its data as a struct in root's terms, and
beside that the line of the log as it was, with subject and headers of its message. The columns are for whoever
computes: detection over months reads only those it needs, and no text. The line is what is right: the messages that are
made of it equal those that were stored, byte for byte, whatever a type looks like by now.

A table has the events of one type and of one day: the day on which the log stored them, in UTC. Nothing is added to a
day that is over, so old days can be moved, and a position says where to look. Event times may be anything; each part of
a segment says which it has.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import groupby

import msgspec
import pyarrow as pa

from situ.archive.format import PartTable
from situ.contexts.model import ROOT
from situ.event.lines import decode_line, stored_lines
from situ.event.message import GENERATION, PLACES, StoredMessage, join_lines, position, split_lines
from situ.event.row import Row
from situ.lang.types.data_column import DataColumn
from situ.lang.types.table import Types
from situ.model import Deployment

_INSTANT = pa.timestamp("us", tz="UTC")
ENVELOPE = pa.schema(
    [
        ("pos", pa.int64()),
        ("id", pa.string()),
        ("source", pa.string()),
        ("time", _INSTANT),
        ("received", _INSTANT),
        ("stored", _INSTANT),
        ("client", pa.string()),
        ("incarnation", pa.int64()),
        ("number", pa.int64()),
        ("context", pa.string()),
        ("ad", pa.string()),
        ("confidence", pa.float64()),
    ]
)
MESSAGE = pa.schema([("line", pa.binary()), ("subject", pa.string()), ("headers", pa.string())])
DATA = "data"
_DAY = 86_400 * 1_000_000
_Keyed = tuple[str, int, int]
"""Type, generation, day."""


class ArchiveTerms:
    """The types in whose terms a log is: those of the root of now, and of former ones as far as they are known."""

    def __init__(self, deployment: Deployment, generation: int) -> None:
        self.generation = generation
        self._deployment = deployment
        self._columns: dict[tuple[str, int], DataColumn | None] = {}

    def column(self, type: str, generation: int) -> DataColumn | None:
        """What makes a column of the data of a type; None: the type is not known."""
        key = (type, generation)
        if key not in self._columns:
            types = self._types(generation)
            struct = None if types is None else types.event(type)
            self._columns[key] = None if struct is None or types is None else DataColumn(struct, types)
        return self._columns[key]

    def _types(self, generation: int) -> Types | None:
        if generation == self.generation:
            return self._deployment.types
        former = self._deployment.contexts.get(f"{ROOT}.v{generation}")
        return None if former is None else former.types


def tables_of(messages: Iterable[StoredMessage], terms: ArchiveTerms) -> list[PartTable]:
    """The tables of these messages of the root log, which are in order."""
    rows: dict[_Keyed, list[Row]] = defaultdict(list)
    texts: dict[_Keyed, list[bytes]] = defaultdict(list)
    about: dict[_Keyed, list[tuple[int, str, str]]] = defaultdict(list)
    for message in messages:
        headers = dict(message.headers)
        generation = int(headers.get(GENERATION, "1"))
        common = (message.at, message.subject, json.dumps(headers, separators=(",", ":")))
        day = message.at // _DAY
        # The text is kept as it stands in the message; what is said once for all its events is put to their rows.
        for place, (text, line) in enumerate(zip(split_lines(message.body), stored_lines(message), strict=True)):
            row = decode_line(line, pos=position(message.seq, place))
            row.pos = position(message.seq, place)
            key = (row.type, generation, day)
            rows[key].append(row)
            texts[key].append(text)
            about[key].append(common)
    return [
        PartTable(
            type=type,
            day=datetime.fromtimestamp(day * 86_400, UTC).date().isoformat(),
            generation=generation,
            table=_table(rows[key], texts[key], about[key], terms.column(type, generation)),
        )
        for key in sorted(rows)
        for type, generation, day in [key]
    ]


def _table(
    rows: Sequence[Row], texts: Sequence[bytes], about: Sequence[tuple[int, str, str]], column: DataColumn | None
) -> pa.Table:
    columns: list[tuple[pa.Field, pa.Array]] = []

    def add(name: str, values: list[object]) -> None:
        field = ENVELOPE.field(name)
        columns.append((field, pa.array(values, field.type)))

    add("pos", [row.pos for row in rows])
    add("id", [row.id for row in rows])
    add("source", [row.source for row in rows])
    add("time", [row.time for row in rows])
    add("received", [row.recv for row in rows])
    add("stored", [at for at, _, _ in about])
    add("client", [row.client for row in rows])
    add("incarnation", [row.incarnation for row in rows])
    add("number", [row.seq for row in rows])
    add("context", [row.context for row in rows])
    add("ad", [row.ad or None for row in rows])
    add("confidence", [row.confidence for row in rows])
    data = None if column is None else _data(column, [row.data for row in rows])
    if data is not None:
        columns.append((pa.field(DATA, data.type), data))
    for place, (field, values) in enumerate(
        zip(MESSAGE, (texts, [each[1] for each in about], [each[2] for each in about]), strict=True)
    ):
        made = pa.array(values, field.type)
        columns.append((field, made.dictionary_encode() if place else made))
    return pa.Table.from_arrays([array for _, array in columns], names=[field.name for field, _ in columns])


def _data(column: DataColumn, texts: Sequence[bytes]) -> pa.Array | None:
    """None where some of it is not as its type is now: the line tells it in any case."""
    try:
        return column.of_texts(texts)
    except (msgspec.DecodeError, pa.ArrowException, ValueError, TypeError, OverflowError):
        return None


# ── back ──────────────────────────────────────────────────────────────────────────────────────────

LINES = ("pos", "stored", *MESSAGE.names)
"""The columns that messages are made of."""


def messages_of(batches: Iterable[pa.RecordBatch]) -> Iterator[StoredMessage]:
    """The messages that these rows are of, which have :data:`LINES`, in the order of the log; whole, if all their
    events are among them."""
    rows: list[tuple[int, int, bytes, str, str]] = []
    for batch in batches:
        columns = [batch.column(name) for name in LINES]
        columns[1] = columns[1].cast(pa.int64())
        rows += zip(*(column.to_pylist() for column in columns), strict=True)
    rows.sort(key=_position)
    for seq, some in groupby(rows, key=lambda row: row[0] // PLACES):
        own = list(some)
        _, at, _, subject, headers = own[0]
        body = join_lines(row[2] for row in own)
        yield StoredMessage(seq=seq, subject=subject, body=body, headers=_headers(headers), at=at)


_position: Callable[[tuple[int, int, bytes, str, str]], int] = lambda row: row[0]  # noqa: E731


@lru_cache(maxsize=1024)
def _headers(text: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(text)
    return found
