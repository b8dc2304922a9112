"""Rows as Arrow record batches, the form in which they cross between Python and Spark.

Not imported with the rest of :mod:`situ.event`: clients and the edge need no Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import pyarrow as pa

from situ.event.row import Row

ROW_SCHEMA = pa.schema(
    [
        pa.field("pos", pa.int64(), nullable=False),
        pa.field("client", pa.string(), nullable=False),
        pa.field("incarnation", pa.int64(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("context", pa.string(), nullable=False),
        pa.field("recv", pa.int64(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("time", pa.int64(), nullable=False),
        pa.field("ad", pa.string(), nullable=False),
        pa.field("confidence", pa.float64()),
        pa.field("ext", pa.string(), nullable=False),
        pa.field("data", pa.string(), nullable=False),
    ]
)
"""The columns of a row; ``data`` is JSON text."""

_NAMES = tuple(ROW_SCHEMA.names)


def rows_to_arrow(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = zip(*map(attrgetter(*_NAMES), rows), strict=True) if rows else [()] * len(ROW_SCHEMA)
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, ROW_SCHEMA, strict=True)]
    return pa.record_batch(arrays, schema=ROW_SCHEMA)


def arrow_to_rows(batch: pa.RecordBatch) -> list[Row]:
    columns = [batch.column(name) for name in _NAMES]
    columns[-1] = columns[-1].cast(pa.binary())
    return [Row(*values) for values in zip(*(column.to_pylist() for column in columns), strict=True)]
