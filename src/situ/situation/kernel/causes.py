"""Which events rows come from: sources and ids, kept apart from what is computed with, looked up only when asked.

Rows of a policy's leaves are numbered; a *reference* is the number of a row and its leaf in one. References of one leaf
grow in the order rows arrive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from situ.situation.kernel.table import Ints

NAMES = ("source", "id", "push")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows that arrived together, from the number ``first`` on. ``latest`` is the largest of their times."""

    first: int
    latest: int
    texts: tuple[pa.Array, ...]

    def __len__(self) -> int:
        return len(self.texts[0])


@dataclass(frozen=True, slots=True)
class Causes:
    """The events behind the rows of one leaf."""

    chunks: tuple[Chunk, ...] = ()

    @property
    def size(self) -> int:
        return sum(text.nbytes for chunk in self.chunks for text in chunk.texts)

    def extended(self, chunk: Chunk) -> Causes:
        """With one more chunk; those of about the same size become one."""
        chunks, parts = list(self.chunks), [chunk]
        while chunks and len(chunks[-1]) < 2 * sum(map(len, parts)) and _next(chunks[-1]) == parts[0].first:
            parts.insert(0, chunks.pop())
        if len(parts) > 1:
            texts = tuple(pa.concat_arrays(columns) for columns in zip(*(each.texts for each in parts), strict=True))
            chunk = Chunk(parts[0].first, max(each.latest for each in parts), texts)
        return Causes((*chunks, chunk))

    def since(self, time: int) -> Causes:
        if all(chunk.latest >= time for chunk in self.chunks):
            return self
        return Causes(tuple(chunk for chunk in self.chunks if chunk.latest >= time))

    def texts(self, numbers: Ints) -> list[list[str]]:
        """Source, id and push source of rows."""
        found: list[list[str]] = [[""] * len(numbers) for _ in NAMES]
        if not len(numbers):
            return found
        where = np.searchsorted([chunk.first for chunk in self.chunks], numbers, side="right") - 1
        for place in np.unique(where).tolist():
            chunk, rows = self.chunks[place], np.flatnonzero(where == place)
            taken = pa.array(numbers[rows] - chunk.first)
            for column, texts in zip(found, chunk.texts, strict=True):
                for row, text in zip(rows.tolist(), texts.take(taken).to_pylist(), strict=True):
                    column[row] = text
        return found


def _next(chunk: Chunk) -> int:
    return chunk.first + len(chunk)


@dataclass(frozen=True, slots=True)
class Origins:
    """The events behind the rows of all leaves."""

    leaves: tuple[Causes, ...]

    def of(self, references: Ints) -> list[tuple[str, str, str]]:
        """Source, id and push source of each reference."""
        found: list[tuple[str, str, str]] = [("", "", "")] * len(references)
        numbers, leaves = np.divmod(references, len(self.leaves))
        for leaf in np.unique(leaves).tolist():
            rows = np.flatnonzero(leaves == leaf)
            texts = zip(*self.leaves[leaf].texts(numbers[rows]), strict=True)
            for row, (source, id, push) in zip(rows.tolist(), texts, strict=True):
                found[row] = (source, id, push)
        return found
