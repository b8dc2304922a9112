"""What the kernel remembers between batches, and how that is stored.

A state is stored as one Arrow stream: a row a part, with the part as a stream of its own. The version stands in its
schema; a state of another version is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from situ.situation.kernel.causes import NAMES, Causes, Chunk
from situ.situation.kernel.identities import Identities
from situ.situation.kernel.table import CODE, Buffer, Ints, Table

VERSION = b"1"
BEGINNING = -(1 << 61)
"""The watermark before anything was decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All of it. Buffers are named by what they hold: rows of leaves, occurrences of relations, of sequences, …"""

    watermark: int = BEGINNING
    due: int | None = None
    """Before a watermark beyond this there is nothing to decide; None: never."""
    identities: Identities = field(default_factory=Identities)
    settled: int = 0
    """How many texts were in use when unused ones were last taken out."""
    buffers: Mapping[str, Buffer] = field(default_factory=dict)
    causes: tuple[Causes, ...] = ()
    numbers: tuple[int, ...] = ()
    """For each leaf: how many rows came."""
    reported: Mapping[str, int] = field(default_factory=dict)
    """The ids of detections that could be found once more, and until when they could."""

    @property
    def rows(self) -> int:
        return sum(buffer.rows for buffer in self.buffers.values())

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        texts = sum(map(len, self.identities.texts)) + 100 * len(self.identities)
        columns = sum(buffer.size for buffer in self.buffers.values())
        return texts + columns + sum(each.size for each in self.causes) + 100 * len(self.reported)

    def pruned(self) -> State:
        """Without texts that no row mentions, once there are as many of them as others."""
        if len(self.identities) < 2 * self.settled + 1024:
            return self
        return self.compacted()

    def compacted(self) -> State:
        """Without texts that no row mentions."""
        unused = np.ones(len(self.identities), bool)
        for column in self._codes():
            unused[column[column >= 0]] = False
        if not unused.any():
            return replace(self, settled=len(self.identities))
        identities, codes = self.identities.without(np.flatnonzero(unused))
        buffers = {name: buffer.changed(lambda table: table.recoded(codes)) for name, buffer in self.buffers.items()}
        return replace(self, identities=identities, buffers=buffers, settled=len(identities))

    def _codes(self) -> Iterator[Ints]:
        for buffer in self.buffers.values():
            for table in (*buffer.decided, buffer.open):
                yield from (column for name, column in table.columns.items() if name.startswith(CODE))


# ── stored ──


def save(state: State, plan: str) -> bytes:
    """A state as bytes, with the digest of the plan it belongs to."""
    state = state.compacted()
    parts = {
        "identities": pa.table({"text": pa.array(state.identities.texts, pa.string())}),
        "reported": pa.table(
            {
                "id": pa.array(list(state.reported), pa.string()),
                "until": pa.array(list(state.reported.values()), pa.int64()),
            }
        ),
        "numbers": pa.table({"rows": pa.array(state.numbers, pa.int64())}),
        **{f"buffer {name} decided": _arrow(buffer.decided) for name, buffer in state.buffers.items()},
        **{f"buffer {name} open": _arrow((buffer.open,)) for name, buffer in state.buffers.items()},
        **{
            f"causes {leaf} {place}": _stored(chunk)
            for leaf, causes in enumerate(state.causes)
            for place, chunk in enumerate(causes.chunks)
        },
    }
    schema = pa.schema(
        [("part", pa.string()), ("stream", pa.large_binary())],
        metadata={
            b"version": VERSION,
            b"plan": plan.encode(),
            b"watermark": b"%d" % state.watermark,
            b"due": b"" if state.due is None else b"%d" % state.due,
        },
    )
    batch = pa.record_batch(
        [pa.array(list(parts)), pa.array([_stream(each) for each in parts.values()], pa.large_binary())], schema=schema
    )
    return _stream(pa.Table.from_batches([batch], schema))


def load(stored: bytes, plan: str, empty: State) -> State | None:
    """A state from its bytes; None if it is of another plan or another version."""
    table = pa.ipc.open_stream(stored).read_all()
    about = table.schema.metadata
    if about[b"version"] != VERSION or about[b"plan"] != plan.encode():
        return None
    parts = dict(zip(table["part"].to_pylist(), map(_read, table["stream"].to_pylist()), strict=True))
    identities = Identities(parts["identities"]["text"].to_pylist())
    reported = dict(zip(parts["reported"]["id"].to_pylist(), parts["reported"]["until"].to_pylist(), strict=True))
    causes: list[list[Chunk]] = [[] for _ in empty.causes]
    for name, part in parts.items():
        if name.startswith("causes "):
            causes[int(name.split()[1])].append(_chunk(part))
    return State(
        watermark=int(about[b"watermark"]),
        due=int(about[b"due"]) if about[b"due"] else None,
        identities=identities,
        settled=len(identities),
        buffers={
            name: Buffer((_table(parts[f"buffer {name} decided"]),), _table(parts[f"buffer {name} open"]))
            for name in empty.buffers
        },
        causes=tuple(Causes(tuple(chunks)) for chunks in causes),
        numbers=tuple(parts["numbers"]["rows"].to_pylist()),
        reported=reported,
    )


def _arrow(tables: tuple[Table, ...]) -> pa.Table:
    columns = {name: np.concatenate([each[name] for each in tables]) for name in tables[0].columns}
    return pa.table({"time": np.concatenate([each.time for each in tables]), **columns})


def _table(stored: pa.Table) -> Table:
    columns = {name: _numpy(stored[name]) for name in stored.column_names}
    return Table(columns.pop("time"), columns)


def _numpy(column: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    found: np.ndarray[tuple[int], np.dtype[np.int64]] = column.to_numpy()
    return found


def _stored(chunk: Chunk) -> pa.Table:
    about = {b"first": b"%d" % chunk.first, b"latest": b"%d" % chunk.latest}
    return pa.table(dict(zip(NAMES, chunk.about, strict=True))).replace_schema_metadata(about)


def _chunk(stored: pa.Table) -> Chunk:
    about = stored.schema.metadata
    columns = tuple(stored[name].combine_chunks() for name in NAMES)
    return Chunk(int(about[b"first"]), int(about[b"latest"]), columns)


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    stored: bytes = sink.getvalue().to_pybytes()
    return stored


def _read(stored: bytes) -> pa.Table:
    return pa.ipc.open_stream(stored).read_all()
