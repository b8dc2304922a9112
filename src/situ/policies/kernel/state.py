"""What the kernel remembers between steps, and how that is stored.

`IdentityCodes` are texts as whole numbers, `LeafCauses` and `Origins` the events behind rows, `KernelState` all of it,
with `save` and `load`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from situ.lang.records import replace
from situ.policies.kernel.table import CODE, LARGE, Ints, SortedTable, WatermarkBuffer

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Texts as whole numbers: identities, and what else of rows is text, are compared as codes. A code is the place of a
# text in a list. New texts are put at its end; those that no row mentions any more are taken out from time to time, and
# the rest numbered anew.

NONE = -1
FEW = 64
"""So few texts are looked up one by one."""
MANY = 4
"""Texts that are not fewer than those known by this factor are looked up in columns."""


class IdentityCodes:
    """The texts of a state, and the code of each."""

    __slots__ = ("_codes", "_column", "texts")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts: list[str] = list(texts)
        self._codes: dict[str, int] = {text: code for code, text in enumerate(self.texts)}
        self._column: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def encode_all(self, columns: Sequence[pa.Array]) -> list[Ints]:
        """As :meth:`encode`, of several columns. Many texts are looked up at once, which costs least."""
        rows = sum(map(len, columns))
        if rows <= FEW:
            return [self.codes(each.to_pylist()) for each in columns]
        if MANY * rows < len(self.texts) or any(pa.types.is_dictionary(each.type) for each in columns):
            return [self.encode(each) for each in columns]
        whole = pa.concat_arrays(columns)
        codes: Ints = pc.index_in(whole, value_set=self._known()).fill_null(NONE).to_numpy().astype(np.int64)
        new = np.flatnonzero(codes == NONE)
        if len(new):
            codes[new] = self.encode(whole.take(pa.array(new)))
        return np.split(codes, np.cumsum([len(each) for each in columns[:-1]]))

    def encode(self, column: pa.Array) -> Ints:
        """The code of each text of a column, -1 for null."""
        encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        codes = self._found(encoded.dictionary)
        indices = encoded.indices
        if indices.null_count:
            places = indices.fill_null(len(codes)).to_numpy(zero_copy_only=False)
            codes = np.append(codes, NONE)
        else:
            places = indices.to_numpy(zero_copy_only=False)
        found: Ints = codes[places]
        return found

    def _found(self, texts: pa.Array) -> Ints:
        """The codes of different texts: looked up one by one if they are few against those that are known."""
        if MANY * len(texts) < len(self.texts):
            return self.codes(texts.to_pylist())
        codes: Ints = pc.index_in(texts, value_set=self._known()).fill_null(NONE).to_numpy().astype(np.int64)
        new = np.flatnonzero(codes == NONE)
        if len(new):
            codes[new] = self.codes(texts.take(pa.array(new)).to_pylist())
        return codes

    def _known(self) -> pa.Array:
        if self._column is None:
            self._column = pa.array(self.texts, pa.string())
        elif len(self._column) < len(self.texts):
            added = pa.array(self.texts[len(self._column) :], pa.string())
            self._column = pa.concat_arrays([self._column, added])
        return self._column

    def codes(self, texts: Sequence[str | None]) -> Ints:
        """The code of each text; new texts get one."""
        known = self._codes
        found = [known.get(text, NONE) for text in texts]  # type: ignore[arg-type]
        if NONE in found:
            for place, code in enumerate(found):
                text = texts[place]
                if code == NONE and text is not None:
                    found[place] = self._add(text)
        return np.array(found, np.int64)

    def _add(self, text: str) -> int:
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self.texts)
            self.texts.append(text)
        return code

    def decode(self, codes: Ints) -> list[str]:
        texts = self.texts
        return [texts[code] for code in codes.tolist()]

    def column(self, codes: Ints) -> pa.Array:
        """The texts as a column, null for -1."""
        known = pa.array(codes, mask=codes < 0) if (codes < 0).any() else pa.array(codes)
        return self._known().take(known)

    def without(self, unused: Ints) -> tuple[IdentityCodes, Ints]:
        """Without these codes; and the new code of each old one. Steps may add texts meanwhile."""
        texts = self.texts[:]
        kept = np.ones(len(texts), bool)
        kept[unused] = False
        renumbered = np.where(kept, np.cumsum(kept) - 1, NONE)
        return IdentityCodes(text for text, keep in zip(texts, kept.tolist(), strict=True) if keep), renumbered


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Which events rows come from: sources and ids, kept apart from what is computed with, looked up only when asked.
#
# Rows of a policy's leaves are numbered; a *reference* is the number of a row and its leaf in one. References of one
# leaf grow in the order rows arrive.

NAMES = ("source", "id", "push", "pos")
FEW_REFERENCES = 16
"""So few references are looked up one by one."""
EventOrigin = tuple[str, str, str, int]
"""Source, id, push source and position in the root log."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows that arrived together, from the number ``first`` on. ``latest`` is the largest of their times."""

    first: int
    latest: int
    about: tuple[pa.Array, ...]
    """Source, id, push source and position in the root log of each."""

    def __len__(self) -> int:
        return len(self.about[0])

    @property
    def end(self) -> int:
        """The number behind that of its last row."""
        return self.first + len(self)


@dataclass(frozen=True, slots=True)
class LeafCauses:
    """The events behind the rows of one leaf."""

    chunks: tuple[Chunk, ...] = ()

    @property
    def size(self) -> int:
        return sum(column.nbytes for chunk in self.chunks for column in chunk.about)

    def extended(self, chunk: Chunk) -> LeafCauses:
        """With one more chunk; small ones become one, unless one between them is forgotten: numbers go on."""
        chunks, parts, rows = list(self.chunks), [chunk], len(chunk)
        while chunks and chunks[-1].end == parts[0].first and len(chunks[-1]) < min(2 * rows, LARGE - rows + 1):
            rows += len(chunks[-1])
            parts.insert(0, chunks.pop())
        if len(parts) > 1:
            about = tuple(pa.concat_arrays(columns) for columns in zip(*(each.about for each in parts), strict=True))
            chunk = Chunk(parts[0].first, max(each.latest for each in parts), about)
        return LeafCauses((*chunks, chunk))

    def since(self, time: int) -> LeafCauses:
        if all(chunk.latest >= time for chunk in self.chunks):
            return self
        return LeafCauses(tuple(chunk for chunk in self.chunks if chunk.latest >= time))

    def about(self, numbers: Ints) -> list[list[Any]]:
        """Source, id, push source and position of rows."""
        found: list[list[Any]] = [[None] * len(numbers) for _ in NAMES]
        if not len(numbers):
            return found
        where = np.searchsorted([chunk.first for chunk in self.chunks], numbers, side="right") - 1
        for place in np.unique(where).tolist():
            chunk, rows = self.chunks[place], np.flatnonzero(where == place)
            taken = pa.array(numbers[rows] - chunk.first)
            for column, known in zip(found, chunk.about, strict=True):
                for row, value in zip(rows.tolist(), known.take(taken).to_pylist(), strict=True):
                    column[row] = value
        return found

    def of(self, number: int) -> EventOrigin:
        """As :meth:`about`, of one row."""
        chunk = self.chunks[bisect_right(self.chunks, number, key=attrgetter("first")) - 1]
        source, id, push, pos = (column[number - chunk.first].as_py() for column in chunk.about)
        return source, id, push, pos


@dataclass(frozen=True, slots=True)
class Origins:
    """The events behind the rows of all leaves."""

    leaves: tuple[LeafCauses, ...]

    def of(self, references: Ints) -> list[EventOrigin]:
        """Source, id, push source and position of each reference."""
        return self._one_by_one(references) if len(references) <= FEW_REFERENCES else self._at_once(references)

    def _one_by_one(self, references: Ints) -> list[EventOrigin]:
        placed = (divmod(reference, len(self.leaves)) for reference in references.tolist())
        return [self.leaves[leaf].of(number) for number, leaf in placed]

    def _at_once(self, references: Ints) -> list[EventOrigin]:
        found: list[EventOrigin] = [("", "", "", 0)] * len(references)
        numbers, leaves = np.divmod(references, len(self.leaves))
        for leaf in np.unique(leaves).tolist():
            rows = np.flatnonzero(leaves == leaf)
            about = zip(*self.leaves[leaf].about(numbers[rows]), strict=True)
            for row, (source, id, push, pos) in zip(rows.tolist(), about, strict=True):
                found[row] = (source, id, push, pos)
        return found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The state. It is stored as Arrow streams one after the other, a part each, with the name of the part in its schema. In
# the first of them stand the version and the plan: a state of another version or plan is not read.

VERSION = b"3"
BEGINNING = -(1 << 61)
"""The watermark before anything was decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelState:
    """All of it. Buffers are named by what they hold: rows of leaves, occurrences of relations, of sequences, …"""

    watermark: int = BEGINNING
    due: int | None = None
    """Before a watermark beyond this there is nothing to decide; None: never."""
    identities: IdentityCodes = field(default_factory=IdentityCodes)
    settled: int = 0
    """How many texts were in use when unused ones were last taken out."""
    buffers: Mapping[str, WatermarkBuffer] = field(default_factory=dict)
    causes: tuple[LeafCauses, ...] = ()
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

    def pruned(self) -> KernelState:
        """Without texts that no row mentions, once there are as many of them as others."""
        if len(self.identities) < 2 * self.settled + 1024:
            return self
        return self.compacted()

    def compacted(self) -> KernelState:
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


def save(state: KernelState, plan: str) -> Generator[None, None, bytes]:
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


def load(stored: bytes, plan: str, empty: KernelState) -> KernelState | None:
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
    identities = IdentityCodes(found["identities"]["text"].to_pylist())
    reported = zip(found["reported"]["id"].to_pylist(), found["reported"]["until"].to_pylist(), strict=True)
    return KernelState(
        watermark=int(about[b"watermark"]),
        due=int(about[b"due"]) if about[b"due"] else None,
        identities=identities,
        settled=len(identities),
        buffers={
            name: WatermarkBuffer((_table(found[f"decided {name}"]),), _table(found[f"open {name}"]))
            for name in empty.buffers
        },
        causes=tuple(LeafCauses(tuple(chunks)) for chunks in causes),
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


def _arrow(tables: tuple[SortedTable, ...]) -> pa.Table:
    columns = {name: np.concatenate([each[name] for each in tables]) for name in tables[0].columns}
    return pa.table({"time": np.concatenate([each.time for each in tables]), **columns})


def _table(stored: pa.Table) -> SortedTable:
    columns = {name: _numpy(stored[name]) for name in stored.column_names}
    return SortedTable(columns.pop("time"), columns)


def _numpy(column: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    found: np.ndarray[tuple[int], np.dtype[np.int64]] = column.to_numpy()
    return found


def _chunk(stored: pa.Table) -> Chunk:
    about = stored.schema.metadata
    columns = tuple(stored[name].combine_chunks() for name in NAMES)
    return Chunk(int(about[b"first"]), int(about[b"latest"]), columns)
