"""Which events rows come from: sources and ids, kept apart from what is computed with, looked up only when asked.

Rows of a policy's leaves are numbered; a *reference* is the number of a row and its leaf in one. References of one leaf
grow in the order rows arrive.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from situ.situation.kernel.table import LARGE, Ints

NAMES = ("source", "id", "push", "pos")
FEW = 16
"""So few references are looked up one by one."""
Origin = tuple[str, str, str, int]
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
class Causes:
    """The events behind the rows of one leaf."""

    chunks: tuple[Chunk, ...] = ()

    @property
    def size(self) -> int:
        return sum(column.nbytes for chunk in self.chunks for column in chunk.about)

    def extended(self, chunk: Chunk) -> Causes:
        """With one more chunk; small ones become one, unless one between them is forgotten: numbers go on."""
        chunks, parts, rows = list(self.chunks), [chunk], len(chunk)
        while chunks and chunks[-1].end == parts[0].first and len(chunks[-1]) < min(2 * rows, LARGE - rows + 1):
            rows += len(chunks[-1])
            parts.insert(0, chunks.pop())
        if len(parts) > 1:
            about = tuple(pa.concat_arrays(columns) for columns in zip(*(each.about for each in parts), strict=True))
            chunk = Chunk(parts[0].first, max(each.latest for each in parts), about)
        return Causes((*chunks, chunk))

    def since(self, time: int) -> Causes:
        if all(chunk.latest >= time for chunk in self.chunks):
            return self
        return Causes(tuple(chunk for chunk in self.chunks if chunk.latest >= time))

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

    def of(self, number: int) -> Origin:
        """As :meth:`about`, of one row."""
        chunk = self.chunks[bisect_right(self.chunks, number, key=attrgetter("first")) - 1]
        source, id, push, pos = (column[number - chunk.first].as_py() for column in chunk.about)
        return source, id, push, pos


@dataclass(frozen=True, slots=True)
class Origins:
    """The events behind the rows of all leaves."""

    leaves: tuple[Causes, ...]

    def of(self, references: Ints) -> list[Origin]:
        """Source, id, push source and position of each reference."""
        return self._one_by_one(references) if len(references) <= FEW else self._at_once(references)

    def _one_by_one(self, references: Ints) -> list[Origin]:
        placed = (divmod(reference, len(self.leaves)) for reference in references.tolist())
        return [self.leaves[leaf].of(number) for number, leaf in placed]

    def _at_once(self, references: Ints) -> list[Origin]:
        found: list[Origin] = [("", "", "", 0)] * len(references)
        numbers, leaves = np.divmod(references, len(self.leaves))
        for leaf in np.unique(leaves).tolist():
            rows = np.flatnonzero(leaves == leaf)
            about = zip(*self.leaves[leaf].about(numbers[rows]), strict=True)
            for row, (source, id, push, pos) in zip(rows.tolist(), about, strict=True):
                found[row] = (source, id, push, pos)
        return found
