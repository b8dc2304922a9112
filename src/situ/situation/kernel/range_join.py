"""Joins of rows with equal codes and times in a range: the one way rows find each other.

Key and time are packed into one number, so that the partners of a row lie side by side when these numbers are sorted,
and a binary search finds where they begin and end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from situ.situation.kernel.table import Ints

_ROOM = 1 << 62
_DENSE = 1 << 40


@dataclass(frozen=True, slots=True)
class Found:
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

    def few(self, most: int) -> Found:
        """At most so many for each row."""
        return Found(self.rows, self.starts, np.minimum(self.counts, most), self.order)

    def parts(self, most: int) -> list[Found]:
        """The same in parts of about so many pairs at most."""
        if self.total <= most:
            return [self]
        ends = np.cumsum(self.counts)
        cuts = np.searchsorted(ends, np.arange(most, int(ends[-1]), most), side="right")
        bounds = np.unique(np.concatenate(([0], cuts, [len(self.rows)])))
        return [
            Found(self.rows[start:end], self.starts[start:end], self.counts[start:end], self.order)
            for start, end in pairwise(bounds.tolist())
        ]


def find(keys: Sequence[Ints], first: Ints, last: Ints, right_keys: Sequence[Ints], right_time: Ints) -> Found:
    """The rows of the right with the same keys and a time from ``first`` to ``last``, both included.

    ``right_time`` ascends.
    """
    if not len(first) or not len(right_time):
        nothing = np.empty(0, np.int64)
        return Found(nothing, nothing, nothing, None)
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


def _filled(rows: Ints, starts: Ints, counts: Ints, order: Ints | None) -> Found:
    some = counts > 0
    if some.all():
        return Found(rows, starts, counts, order)
    return Found(rows[some], starts[some], counts[some], order)


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
