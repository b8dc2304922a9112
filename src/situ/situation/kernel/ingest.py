"""Rows of leaves, as enrichment makes them, → columns to compute with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from situ.expr.columns import column_type
from situ.situation.kernel.causes import NAMES, Chunk
from situ.situation.kernel.pairing import is_text, scalar_names
from situ.situation.kernel.table import Column, Ints, Table, sorted_table
from situ.situation.policies.leaves import Leaf


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


def texts_of(leaf: Leaf, batch: pa.RecordBatch) -> list[pa.Array]:
    """The columns of a batch that are computed with as codes: identities, then scalars."""
    given = _by_name(batch)
    scalars = batch.columns[batch.num_columns - len(leaf.scalars) :]
    texts = [column for column, scalar in zip(scalars, leaf.scalars, strict=True) if is_text(scalar.type)]
    return [given["identity"], *([given["other"]] if leaf.other else []), *texts]


def _by_name(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """Scalars, the last columns, may have any name, that of another column too: the first of a name counts."""
    return dict(zip(reversed(batch.schema.names), reversed(batch.columns), strict=True))


def ingest(
    leaf: Leaf,
    batch: pa.RecordBatch,
    codes: Sequence[Ints],
    *,
    first: int,
    leaves: int,
    place: int,
    since: int,
    causes: bool,
) -> Ingested:
    """Take in rows that are not before ``since``; ``codes`` are those of :func:`texts_of`.

    They are numbered from ``first``; ``place`` is that of the leaf.
    """
    time = batch.columns[batch.schema.names.index("time")].to_numpy(zero_copy_only=False)
    late = int(np.count_nonzero(time < since))
    if late:
        kept = np.flatnonzero(time >= since)
        batch, time = batch.take(pa.array(kept)), time[kept]
        codes = [each[kept] for each in codes]
    given, coded = _by_name(batch), iter(codes)
    columns: dict[str, Column] = {
        "@identity": next(coded),
        "ref": (first + np.arange(len(time))) * leaves + place,
    }
    if leaf.other:
        columns["@other"] = next(coded)
    for column, scalar in enumerate(leaf.scalars, batch.num_columns - len(leaf.scalars)):
        if is_text(scalar.type):
            columns[scalar_names(scalar.path, text=True)[0]] = next(coded)
        else:
            columns |= _scalar(batch.column(column), scalar.path)
    chunk = None
    if causes and len(time):
        chunk = Chunk(first, int(time.max()), tuple(_plain(given[name]) for name in NAMES))
    return Ingested(sorted_table(time, columns), chunk, late)


def _scalar(column: pa.Array, path: tuple[str, ...]) -> dict[str, Column]:
    value, null = scalar_names(path, text=False)
    if not column.null_count:
        return {value: column.to_numpy(zero_copy_only=False), null: np.zeros(len(column), bool)}
    filled = column.fill_null(False if pa.types.is_boolean(column.type) else 0)
    return {
        value: filled.to_numpy(zero_copy_only=False),
        null: column.is_null().to_numpy(zero_copy_only=False),
    }


def _plain(column: pa.Array) -> pa.Array:
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
