"""What benchmarks map over the rows of the source instead of all stages.

`decoding` is the pipeline's first stage alone: rows as columns, decoded and checked. `copying` stores the bytes of the
messages as they came: the least that anything costs which passes from the bus to the bus through Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from situ.bus.address import Address
from situ.event.message import COUNT, ID, Message
from situ.event.row import Row
from situ.event.subjects import BusNames
from situ.spark import frames
from situ.spark.dispatch import publish
from situ.spark.partitions import decode
from situ.spark.plans import load_plan

COLUMNS = pa.schema(
    [
        ("pos", pa.int64()),
        ("client", pa.string()),
        ("incarnation", pa.int64()),
        ("seq", pa.int64()),
        ("id", pa.string()),
        ("source", pa.string()),
        ("type", pa.string()),
        ("time", pa.int64()),
        ("ad", pa.string()),
        ("data", pa.binary()),
    ]
)
STORED = pa.schema([("stored", pa.int64())])


def decoding(address: Address, version: int) -> frames.Mapped:
    """What Spark maps over the rows; those of events that fit no type are left out."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = load_plan(address, version)
        for rows in decode(frames.messages_of(batches), plan, {}, lambda _: None):
            good = [row for row in rows if isinstance(row, Row)]
            columns = [pa.array([getattr(row, each.name) for row in good], each.type) for each in COLUMNS]
            yield pa.RecordBatch.from_arrays(columns, schema=COLUMNS)

    return run


def copying(address: Address) -> frames.Mapped:
    """What Spark maps over the rows: each message is stored in the root log, under an id of its own."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        subject = BusNames(address.zone).root("r1", "_")
        messages = (
            Message(
                subject=subject, headers={COUNT: each.headers[COUNT], ID: f"copy+{each.headers[ID]}"}, body=each.body
            )
            for each in frames.messages_of(batches)
        )
        yield pa.RecordBatch.from_pydict({"stored": [publish(address, messages).stored]}, schema=STORED)

    return run
