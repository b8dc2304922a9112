"""Rows of the source as columns, decoded and checked by the stage: what the pipeline's first stage costs on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from situ.bus.address import Address
from situ.event.row import Row
from situ.spark import frames
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


def decoding(address: Address, version: int) -> frames.Mapped:
    """What Spark maps over the rows; those of events that fit no type are left out."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = load_plan(address, version)
        for rows in decode(frames.messages_of(batches), plan, {}, lambda _: None):
            good = [row for row in rows if isinstance(row, Row)]
            columns = [pa.array([getattr(row, each.name) for row in good], each.type) for each in COLUMNS]
            yield pa.RecordBatch.from_arrays(columns, schema=COLUMNS)

    return run
