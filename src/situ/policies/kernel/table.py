"""Tables sorted by time, buffers that the watermark cuts in two, and the join of rows in a range of time.

`SortedTable` has columns of equal length, `WatermarkBuffer` remembers tables for as long as they are needed,
`range_join` is the one way rows find each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# A buffer is cut in two by the watermark. What lies before it is *decided*: no event will come in between any more. It
# is kept as a few tables one after the other in time, which are never changed. What lies behind it is *open*. Buffers
# are values: moving on makes a new one.

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Column = npt.NDArray[Any]

LARGE = 1 << 17
"""Of so many rows together tables are not put together any more."""

CODE = "@"
"""Columns whose names begin so hold codes of texts, -1 for none."""


@dataclass(frozen=True, slots=True)
class SortedTable:
    """``time``, ascending, and what else is known of each row."""

    time: Ints
    columns: Mapping[str, Column]

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def take(self, rows: Ints | Bools) -> SortedTable:
        """These rows; their times must ascend."""
        return SortedTable(self.time[rows], {name: column[rows] for name, column in self.columns.items()})

    def slice(self, start: int, end: int) -> SortedTable:
        if start == 0 and end == len(self):
            return self
        return SortedTable(self.time[start:end], {name: column[start:end] for name, column in self.columns.items()})

    def between(self, first: int, last: int) -> SortedTable:
        """Rows from the time ``first`` to before the time ``last``."""
        if not len(self):
            return self
        start, end = np.searchsorted(self.time, (first, last))
        return self.slice(int(start), int(end))

    def copy(self) -> SortedTable:
        return SortedTable(self.time.copy(), {name: column.copy() for name, column in self.columns.items()})

    def recoded(self, codes: Ints) -> SortedTable:
        """With other codes for texts: ``codes`` has the new one at the place of each old one."""
        return SortedTable(
            self.time,
            {
                name: np.where(column >= 0, codes[column], -1) if name.startswith(CODE) else column
                for name, column in self.columns.items()
            },
        )


def sort_by_time(time: Ints, columns: Mapping[str, Column]) -> SortedTable:
    """Rows put in the order of time."""
    if len(time) < 2 or bool((time[1:] >= time[:-1]).all()):
        return SortedTable(time, columns)
    order = np.argsort(time, kind="stable")
    return SortedTable(time[order], {name: column[order] for name, column in columns.items()})


def concat_tables(tables: Sequence[SortedTable]) -> SortedTable:
    """Tables one below the other; their times must ascend."""
    if len(tables) == 1:
        return tables[0]
    return SortedTable(
        np.concatenate([each.time for each in tables]),
        {name: np.concatenate([each.columns[name] for each in tables]) for name in tables[0].columns},
    )


def merge_tables(tables: Iterable[SortedTable]) -> SortedTable:
    """Tables of the same columns with times in any order."""
    full = list(tables)
    filled = [each for each in full if len(each)] or full[:1]
    whole = concat_tables(filled)
    return whole if len(filled) == 1 else sort_by_time(whole.time, whole.columns)


@dataclass(frozen=True, slots=True)
class WatermarkBuffer:
    """What is remembered. ``decided`` has no empty table but perhaps the first, which says what the columns are."""

    decided: tuple[SortedTable, ...]
    open: SortedTable

    @property
    def rows(self) -> int:
        return sum(map(len, self.decided)) + len(self.open)

    @property
    def size(self) -> int:
        """Bytes of all columns."""
        return sum(
            table.time.nbytes + sum(column.nbytes for column in table.columns.values())
            for table in (*self.decided, self.open)
        )

    def extended(self, new: SortedTable, watermark: int) -> tuple[WatermarkBuffer, SortedTable]:
        """With new rows, none of them before the last watermark; and what is decided now that was not."""
        waiting = new if not len(self.open) else self.open if not len(new) else merge_tables((self.open, new))
        if not len(waiting):
            return self, waiting
        cut = int(np.searchsorted(waiting.time, watermark))
        decided, waiting = waiting.slice(0, cut), waiting.slice(cut, len(waiting))
        return WatermarkBuffer(_with(self.decided, decided), waiting), decided

    def since(self, time: int) -> WatermarkBuffer:
        """Without what is older."""
        if len(self.open) and self.open.time[0] < time:
            return WatermarkBuffer(self.decided, self.open.between(time, int(self.open.time[-1]) + 1).copy()).since(
                time
            )
        first = self.decided[0]
        if not len(first) or first.time[0] >= time:
            return self
        kept = [each for each in self.decided if len(each) and each.time[-1] >= time]
        if not kept:
            return WatermarkBuffer((first.slice(0, 0).copy(),), self.open)
        if kept[0].time[0] < time:
            start = int(np.searchsorted(kept[0].time, time))
            # A part of an array keeps all of it in memory: not worth it if little is left.
            rest = kept[0].slice(start, len(kept[0]))
            kept[0] = rest.copy() if start > len(rest) else rest
        return WatermarkBuffer(tuple(kept), self.open)

    def between(self, first: int, last: int) -> list[SortedTable]:
        """What is decided from the time ``first`` to before the time ``last``, as tables one after the other."""
        found = [
            each.between(first, last)
            for each in self.decided
            if len(each) and each.time[0] < last and each.time[-1] >= first
        ]
        return [each for each in found if len(each)] or [self.decided[0].slice(0, 0)]

    def changed(self, change: Callable[[SortedTable], SortedTable]) -> WatermarkBuffer:
        return WatermarkBuffer(tuple(change(each) for each in self.decided), change(self.open))


def empty_buffer(columns: Mapping[str, type]) -> WatermarkBuffer:
    table = SortedTable(np.empty(0, np.int64), {name: np.empty(0, kind) for name, kind in columns.items()})
    return WatermarkBuffer((table,), table)


def _with(decided: tuple[SortedTable, ...], new: SortedTable) -> tuple[SortedTable, ...]:
    """Small tables become one, so that there are never many; large ones stay as they are, for moving takes time."""
    if not len(new):
        return decided
    tables = [each for each in decided if len(each)]
    parts = [new]
    rows = len(new)
    while tables and len(tables[-1]) < 2 * rows and len(tables[-1]) + rows <= LARGE:
        rows += len(tables[-1])
        parts.insert(0, tables.pop())
    return (*tables, concat_tables(parts))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Joins of rows with equal codes and times in a range. Key and time are packed into one number, so that the partners of
# a row lie side by side when these numbers are sorted, and a binary search finds where they begin and end.

_ROOM = 1 << 62
_DENSE = 1 << 40


@dataclass(frozen=True, slots=True)
class RangeMatches:
    """For row ``rows[i]`` of the left: ``counts[i]`` rows of the right, ``order[starts[i]]`` the first of them.

    Rows without a partner are left out; ``order`` is None if it is that of the right.
    """

    rows: Ints
    starts: Ints
    counts: Ints
    order: Ints | None

    def some(self) -> Ints:
        """The rows of the left that have a partner, in their order."""
        return np.sort(self.rows)

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def pairs(self) -> tuple[Ints, Ints]:
        """All pairs: the place of the row on the left, and on the right."""
        if not len(self.rows):
            return self.rows, self.rows
        ends = np.cumsum(self.counts)
        total = int(ends[-1])
        rows = np.repeat(self.rows, self.counts)
        places = np.arange(total) + np.repeat(self.starts - (ends - self.counts), self.counts)
        return rows, places if self.order is None else self.order[places]

    def few(self, most: int) -> RangeMatches:
        """At most so many for each row."""
        return RangeMatches(self.rows, self.starts, np.minimum(self.counts, most), self.order)

    def parts(self, most: int) -> list[RangeMatches]:
        """The same in parts of about so many pairs at most."""
        if self.total <= most:
            return [self]
        ends = np.cumsum(self.counts)
        cuts = np.searchsorted(ends, np.arange(most, int(ends[-1]), most), side="right")
        bounds = np.unique(np.concatenate(([0], cuts, [len(self.rows)])))
        return [
            RangeMatches(self.rows[start:end], self.starts[start:end], self.counts[start:end], self.order)
            for start, end in pairwise(bounds.tolist())
        ]


def range_join(
    keys: Sequence[Ints], first: Ints, last: Ints, right_keys: Sequence[Ints], right_time: Ints
) -> RangeMatches:
    """The rows of the right with the same keys and a time from ``first`` to ``last``, both included.

    ``right_time`` ascends.
    """
    if not len(first) or not len(right_time):
        nothing = np.empty(0, np.int64)
        return RangeMatches(nothing, nothing, nothing, None)
    start, span = int(right_time[0]), int(right_time[-1]) - int(right_time[0]) + 1
    if not keys:
        begins = np.searchsorted(right_time, first)
        counts = np.maximum(np.searchsorted(right_time, last, side="right") - begins, 0)
        return _filled(np.arange(len(first)), begins, counts, None)
    left, right, most = _one_key(keys, right_keys)
    if (most + 1) * (span + 1) < _ROOM:
        time = right_time - start
        begins, ends = (
            np.clip(first, start, start + span) - start,
            np.clip(last, start - 1, start + span - 1) - start + 1,
        )
    else:
        moments, time = np.unique(right_time, return_inverse=True)
        begins, ends = np.searchsorted(moments, first), np.searchsorted(moments, last, side="right")
        span = len(moments)
    packed = right * (span + 1) + time
    order = np.argsort(packed)
    packed = packed[order]
    left = left * (span + 1)
    begins, ends = left + begins, left + ends
    rows = np.argsort(begins)  # a search for one value after the other in their order is many times faster
    starts = np.searchsorted(packed, begins[rows])
    counts = np.maximum(np.searchsorted(packed, ends[rows]) - starts, 0)
    return _filled(rows, starts, counts, order)


def _filled(rows: Ints, starts: Ints, counts: Ints, order: Ints | None) -> RangeMatches:
    some = counts > 0
    if some.all():
        return RangeMatches(rows, starts, counts, order)
    return RangeMatches(rows[some], starts[some], counts[some], order)


def _one_key(left: Sequence[Ints], right: Sequence[Ints]) -> tuple[Ints, Ints, int]:
    """Several columns of whole numbers from 0 as one; and its largest value."""
    one, other = left[0], right[0]
    most = int(max(one.max(), other.max()))
    for add_left, add_right in zip(left[1:], right[1:], strict=True):
        width = int(max(add_left.max(), add_right.max())) + 1
        if (most + 1) * width >= _DENSE:
            together, numbered = np.unique(np.concatenate((one, other)), return_inverse=True)
            one, other, most = numbered[: len(one)], numbered[len(one) :], len(together) - 1
        one, other = one * width + add_left, other * width + add_right
        most = (most + 1) * width - 1
    return one, other, most


def each_once(rows: Ints, count: int) -> Ints:
    """Which of so many rows are named, in their order."""
    named = np.zeros(count, bool)
    named[rows] = True
    return np.flatnonzero(named)


def distinct(columns: Sequence[Ints]) -> Ints:
    """The places of one of each of the rows that are equal in these columns."""
    if not len(columns[0]):
        return np.empty(0, np.int64)
    key, _, _ = _one_key([each - each.min() for each in columns], [each - each.min() for each in columns])
    return np.unique(key, return_index=True)[1]
