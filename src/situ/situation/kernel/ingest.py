"""Rows of leaves, as enrichment makes them, → columns to compute with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from situ.expr.columns import column_type
from situ.situation.kernel.causes import NAMES, Chunk
from situ.situation.kernel.identities import Identities
from situ.situation.kernel.pairing import is_text, scalar_names
from situ.situation.kernel.table import Column, Table, sorted_table
from situ.situation.leaves import Leaf


@dataclass(frozen=True, slots=True)
class Ingested:
    """The rows of a batch in the order of time; the events behind them, if they are kept; how many were late."""

    table: Table
    chunk: Chunk | None
    late: int


def columns_of(leaf: Leaf) -> dict[str, type]:
    """What is kept of each row of a leaf, besides its time."""
    columns: dict[str, type] = {"@identity": np.int64, "ref": np.int64}
    if leaf.other:
        columns["@other"] = np.int64
    for scalar in leaf.scalars:
        text = is_text(scalar.type)
        value, null = scalar_names(scalar.path, text=text)
        columns[value] = np.int64 if text else column_type(scalar.type).to_pandas_dtype()
        if null:
            columns[null] = np.bool_
    return columns


def ingest(
    leaf: Leaf,
    batch: pa.RecordBatch,
    identities: Identities,
    *,
    first: int,
    leaves: int,
    place: int,
    since: int,
    causes: bool,
) -> Ingested:
    """Take in rows that are not before ``since``. They are numbered from ``first``; ``place`` is that of the leaf."""
    time = batch.columns[batch.schema.names.index("time")].to_numpy(zero_copy_only=False)
    late = int(np.count_nonzero(time < since))
    if late:
        kept = np.flatnonzero(time >= since)
        batch, time = batch.take(pa.array(kept)), time[kept]
    # Scalars, the last columns, may have any name, that of another column too: the first of a name counts.
    given = dict(zip(reversed(batch.schema.names), reversed(batch.columns), strict=True))
    columns: dict[str, Column] = {
        "@identity": identities.encode(given["identity"]),
        "ref": (first + np.arange(len(time))) * leaves + place,
    }
    if leaf.other:
        columns["@other"] = identities.encode(given["other"])
    for column, scalar in enumerate(leaf.scalars, batch.num_columns - len(leaf.scalars)):
        columns |= _scalar(batch.column(column), scalar.path, identities, text=is_text(scalar.type))
    chunk = None
    if causes and len(time):
        chunk = Chunk(first, int(time.max()), tuple(_plain(given[name]) for name in NAMES))
    return Ingested(sorted_table(time, columns), chunk, late)


def _scalar(column: pa.Array, path: tuple[str, ...], identities: Identities, *, text: bool) -> dict[str, Column]:
    value, null = scalar_names(path, text=text)
    if text:
        return {value: identities.encode(column)}
    unknown = column.is_null().to_numpy(zero_copy_only=False)
    filled = column.fill_null(False if pa.types.is_boolean(column.type) else 0) if column.null_count else column
    return {value: filled.to_numpy(zero_copy_only=False), null: unknown}


def _plain(column: pa.Array) -> pa.Array:
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
