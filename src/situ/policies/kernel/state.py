"""What the kernel remembers between batches, and how that is stored.

A state is stored as Arrow streams one after the other, a part each, with the name of the part in its schema. In the
first of them stand the version and the plan: a state of another version or plan is not read.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from situ.situation.kernel.causes import NAMES, Causes, Chunk
from situ.situation.kernel.identities import Identities
from situ.situation.kernel.table import CODE, Buffer, Ints, Table

VERSION = b"3"
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


def save(state: State, plan: str) -> Generator[None, None, bytes]:
    """A state as bytes, with the digest of the plan it belongs to.

    It pauses between parts of the work, so that others can be done between them.
    """
    state = state.compacted()
    yield
    about = {
        b"version": VERSION,
        b"plan": plan.encode(),
        b"watermark": b"%d" % state.watermark,
        b"due": b"" if state.due is None else b"%d" % state.due,
    }
    # Arrow's own pool takes memory by large pages, and to clear one takes milliseconds: steps would wait for it.
    sink = pa.BufferOutputStream(pa.system_memory_pool())
    _write(sink, "head", pa.table({"rows": pa.array(state.numbers, pa.int64())}), about)
    _write(sink, "identities", pa.table({"text": pa.array(state.identities.texts, pa.string())}))
    known = (pa.array(list(state.reported), pa.string()), pa.array(list(state.reported.values()), pa.int64()))
    _write(sink, "reported", pa.table({"id": known[0], "until": known[1]}))
    yield
    for name, buffer in state.buffers.items():
        _write(sink, f"decided {name}", _arrow(buffer.decided))
        _write(sink, f"open {name}", _arrow((buffer.open,)))
        yield
    for leaf, causes in enumerate(state.causes):
        for chunk in causes.chunks:
            columns = pa.table(dict(zip(NAMES, chunk.about, strict=True)))
            _write(sink, f"causes {leaf}", columns, {b"first": b"%d" % chunk.first, b"latest": b"%d" % chunk.latest})
        yield
    stored: bytes = sink.getvalue().to_pybytes()
    return stored


def load(stored: bytes, plan: str, empty: State) -> State | None:
    """A state from its bytes; None if it is of another plan or another version."""
    parts = _read(stored)
    _, head = next(parts)
    about = head.schema.metadata or {}
    if about.get(b"version") != VERSION or about[b"plan"] != plan.encode():
        return None
    causes: list[list[Chunk]] = [[] for _ in empty.causes]
    found: dict[str, pa.Table] = {}
    for name, part in parts:
        if name.startswith("causes "):
            causes[int(name.split()[1])].append(_chunk(part))
        else:
            found[name] = part
    identities = Identities(found["identities"]["text"].to_pylist())
    reported = zip(found["reported"]["id"].to_pylist(), found["reported"]["until"].to_pylist(), strict=True)
    return State(
        watermark=int(about[b"watermark"]),
        due=int(about[b"due"]) if about[b"due"] else None,
        identities=identities,
        settled=len(identities),
        buffers={
            name: Buffer((_table(found[f"decided {name}"]),), _table(found[f"open {name}"])) for name in empty.buffers
        },
        causes=tuple(Causes(tuple(chunks)) for chunks in causes),
        numbers=tuple(head["rows"].to_pylist()),
        reported=dict(reported),
    )


def _write(sink: pa.NativeFile, name: str, part: pa.Table, about: Mapping[bytes, bytes] = MappingProxyType({})) -> None:
    part = part.replace_schema_metadata({b"part": name.encode(), **about})
    with pa.ipc.new_stream(sink, part.schema) as writer:
        writer.write_table(part)


def _read(stored: bytes) -> Iterator[tuple[str, pa.Table]]:
    source = pa.BufferReader(stored)
    while source.tell() < source.size():
        part = pa.ipc.open_stream(source).read_all()
        yield (part.schema.metadata or {}).get(b"part", b"").decode(), part


def _arrow(tables: tuple[Table, ...]) -> pa.Table:
    columns = {name: np.concatenate([each[name] for each in tables]) for name in tables[0].columns}
    return pa.table({"time": np.concatenate([each.time for each in tables]), **columns})


def _table(stored: pa.Table) -> Table:
    columns = {name: _numpy(stored[name]) for name in stored.column_names}
    return Table(columns.pop("time"), columns)


def _numpy(column: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    found: np.ndarray[tuple[int], np.dtype[np.int64]] = column.to_numpy()
    return found


def _chunk(stored: pa.Table) -> Chunk:
    about = stored.schema.metadata
    columns = tuple(stored[name].combine_chunks() for name in NAMES)
    return Chunk(int(about[b"first"]), int(about[b"latest"]), columns)
