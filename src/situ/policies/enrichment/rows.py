"""Rows of leaves: what enrichment hands to the kernel, as columns.

Every row says when, from which event, through which push source and of which identity it is: ``time``, ``source``,
``id``, ``push``, ``identity``; and where in the root log its event is, ``pos``, 0 if that is not known. Rows of a leaf
whose test has another side have ``other``, the identity there.
Observations have what correlations look at, a column for each scalar, in the form of
:mod:`situ.lang.expr.emit.vectors`, named by its path. Columns are found by their places, in this order: an attribute
may have the name of another column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from situ.lang.expr.emit.vectors import column, column_type
from situ.policies.plan import Leaf, LeafScalar

BASE = pa.schema(
    [
        pa.field("time", pa.int64(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("push", pa.string(), nullable=False),
        pa.field("pos", pa.int64(), nullable=False),
        pa.field("identity", pa.string(), nullable=False),
    ]
)
"""What every row of a leaf, and every observation, has."""
_OTHER = pa.field("other", pa.string(), nullable=False)


def column_name(path: Iterable[str]) -> str:
    """The name of the column of a scalar: ``position.x``."""
    return ".".join(path)


def scalar_fields(scalars: Iterable[LeafScalar]) -> list[pa.Field]:
    return [pa.field(column_name(each.path), column_type(each.type)) for each in scalars]


@lru_cache(maxsize=4096)
def row_schema(leaf: Leaf) -> pa.Schema:
    """The columns of a leaf's rows."""
    return pa.schema([*BASE, *([_OTHER] if leaf.other else []), *scalar_fields(leaf.scalars)])


def no_rows(leaf: Leaf) -> pa.RecordBatch:
    return make_rows(leaf, ())


def make_rows(leaf: Leaf, rows: Iterable[Sequence[Any]]) -> pa.RecordBatch:
    """Rows given one by one, scalars as values of Python."""
    schema, rows = row_schema(leaf), list(rows)
    first = len(schema) - len(leaf.scalars)
    arrays = []
    for place, field in enumerate(schema):
        values = [row[place] for row in rows]
        arrays.append(
            pa.array(values, field.type) if place < first else column(values, leaf.scalars[place - first].type)
        )
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def concat(leaf: Leaf, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows in one batch, in this order."""
    full = [batch for batch in batches if batch.num_rows]
    if len(full) == 1:
        return full[0]
    if not full:
        return no_rows(leaf)
    return pa.concat_batches(full)


# ── as bytes ──────────────────────────────────────────────────────────────────────────────────────

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def to_blob(rows: Mapping[int, pa.RecordBatch]) -> bytes:
    """Rows of several leaves, by their numbers, as bytes: one Arrow stream after the other."""
    sink = pa.BufferOutputStream()
    for number, batch in rows.items():
        if batch.num_rows:
            marked = batch.replace_schema_metadata({_LEAF: str(number).encode()})
            with pa.ipc.new_stream(sink, marked.schema, options=_OPTIONS) as writer:
                writer.write_batch(marked)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def from_blob(blob: bytes | memoryview) -> dict[int, list[pa.RecordBatch]]:
    """What :func:`to_blob` made; the rows lie in the blob itself where they are not compressed."""
    found: dict[int, list[pa.RecordBatch]] = {}
    source = pa.BufferReader(blob)
    while source.tell() < source.size():
        with pa.ipc.open_stream(source) as reader:
            number = int(reader.schema.metadata[_LEAF])
            found.setdefault(number, []).extend(batch.replace_schema_metadata(None) for batch in reader)
    return found


_LEAF = b"situ.leaf"
