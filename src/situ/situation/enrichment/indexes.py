"""Indexes over one side of a test: where the partners of a row can be, at most.

Both kinds put the other side into numbered places and say for a row which place to look at. :class:`Buckets` hold equal
values together; a :class:`Grid` has cells of the line or the plane, and an interval or box lies in every cell it
touches. Rows of the other side whose values are not known are in no place; ``missing`` are those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from situ.expr.vectors import Array, Bools

NOWHERE = -1
_MOST_CELLS = 1 << 16
_MOST_ENTRIES = 1 << 22
_EACH_IN = 12
"""Cells that an interval or box may touch on average; more, and cells are made larger."""


class Index:
    """Places 0, 1, …, each with rows of the other side in their order."""

    def __init__(self, places: Array, rows: Array, count: int, missing: Array) -> None:
        """``rows[i]`` is in ``places[i]``; rows ascend within a place if they do where they are given."""
        order = np.argsort(places, kind="stable")
        self._rows = rows[order]
        self._ends = np.cumsum(np.bincount(places, minlength=count))
        self.missing = missing

    def partners(self, places: Array, most: int) -> Iterator[tuple[Array, Array]]:
        """Rows of the one side, by the place each looks at, with all rows of the other there; so many at a time."""
        looking = np.flatnonzero(places >= 0)
        at = places[looking]
        starts = np.where(at > 0, self._ends[at - 1], 0)
        counts = self._ends[at] - starts
        some = counts > 0
        looking, starts, counts = looking[some], starts[some], counts[some]
        if not len(looking):
            return
        ends = np.cumsum(counts)
        begin = 0
        while begin < len(looking):
            before = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + most, side="right")))
            number = counts[begin:end]
            offsets = np.arange(int(ends[end - 1]) - before) - np.repeat(ends[begin:end] - number - before, number)
            yield np.repeat(looking[begin:end], number), self._rows[np.repeat(starts[begin:end], number) + offsets]
            begin = end


class Buckets(Index):
    """One place for each different value."""

    def __init__(self, codes: Array, count: int, values: pa.Array | Array) -> None:
        present = np.flatnonzero(codes >= 0)
        super().__init__(codes[present], present, count, np.flatnonzero(codes < 0))
        self.values = values

    @classmethod
    def of_texts(cls, column: pa.Array) -> Buckets:
        encoded = column.dictionary_encode()
        codes = encoded.indices.fill_null(NOWHERE).to_numpy(zero_copy_only=False)
        return cls(codes, len(encoded.dictionary), encoded.dictionary)

    @classmethod
    def of_numbers(cls, values: Array, absent: Bools | None) -> Buckets:
        found = values if absent is None else values[~absent]
        different = np.unique(found)
        return cls(_codes(different, values, absent), len(different), different)

    def codes(self, values: Array, absent: Bools | None) -> Array:
        """The place of each of these numbers."""
        return _codes(self.values, values, absent)


def same_codes(texts: pa.Array, index: Buckets) -> Array:
    """The place of each of these texts."""
    found = pc.index_in(texts, value_set=index.values, skip_nulls=True)
    return found.fill_null(NOWHERE).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _codes(different: Array, values: Array, absent: Bools | None) -> Array:
    if not len(different):
        return np.full(len(values), NOWHERE)
    places = np.minimum(np.searchsorted(different, values), len(different) - 1)
    codes = np.where(different[places] == values, places, NOWHERE)
    return codes if absent is None else np.where(absent, NOWHERE, codes)


class Grid(Index):
    """Intervals of one dimension, or boxes of two: ``low[d][i]`` to ``high[d][i]``, infinite where there is no end."""

    def __init__(self, low: Sequence[Array], high: Sequence[Array]) -> None:
        unknown = np.logical_or.reduce([np.isnan(low[d]) | np.isnan(high[d]) for d in range(len(low))])
        empty = np.logical_or.reduce([low[d] > high[d] for d in range(len(low))])
        rows = np.flatnonzero(~unknown & ~empty)
        low, high = [each[rows] for each in low], [each[rows] for each in high]
        size = _MOST_CELLS if len(low) == 1 else int(_MOST_CELLS**0.5)
        size = max(1, min(size, int((4 * len(rows)) ** (1 / len(low))) + 1))
        self._axes = [_Axis(low[d], high[d], size) for d in range(len(low))]
        while size > 1:
            touched = np.multiply.reduce([self._axes[d].span(low[d], high[d]) for d in range(len(low))])
            if touched.sum() <= min(_MOST_ENTRIES, _EACH_IN * len(rows) + 1024):
                break
            size = (size + 1) // 2
            self._axes = [_Axis(low[d], high[d], size) for d in range(len(low))]
        places, numbers = self._touched(low, high)
        super().__init__(places, rows[numbers], size ** len(low), np.flatnonzero(unknown))

    def _touched(self, low: Sequence[Array], high: Sequence[Array]) -> tuple[Array, Array]:
        """Cells and, for each, the number of a box that touches it; boxes in their order within a cell."""
        numbers, places = np.arange(len(low[0])), np.zeros(len(low[0]), np.int64)
        for d, axis in enumerate(self._axes):
            span = axis.span(low[d], high[d])[numbers]
            first = axis.cells(low[d])[numbers]
            ends = np.cumsum(span)
            steps = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - span, span)
            numbers = np.repeat(numbers, span)
            places = np.repeat(places, span) * axis.size + np.repeat(first, span) + steps
        return places, numbers

    def cells(self, values: Sequence[Array], absent: Bools | None) -> Array:
        """The cell in which each of these points is."""
        places = np.zeros(len(values[0]), np.int64)
        for axis, coordinates in zip(self._axes, values, strict=True):
            places = places * axis.size + axis.cells(coordinates)
        return places if absent is None else np.where(absent, NOWHERE, places)


class _Axis:
    """A line cut into cells; whatever lies beyond its ends is in the first or last."""

    def __init__(self, low: Array, high: Array, size: int) -> None:
        ends = np.concatenate((low, high))
        ends = ends[np.isfinite(ends)]
        self.start = float(ends.min()) if len(ends) else 0.0
        width = float(ends.max()) - self.start if len(ends) else 0.0
        self.size = size
        self.scale = size / width if 0.0 < width < np.inf and size / width < np.inf else 0.0

    def cells(self, values: Array) -> Array:
        """Grows with the value and never falls: what lies between two values lies between their cells."""
        with np.errstate(all="ignore"):
            found = (values - self.start) * self.scale
        # Zero times infinity: there is one cell.
        found = np.nan_to_num(found, nan=0.0, posinf=self.size, neginf=0.0)
        return np.clip(found, 0, self.size - 1).astype(np.int64)

    def span(self, low: Array, high: Array) -> Array:
        return self.cells(high) - self.cells(low) + 1
