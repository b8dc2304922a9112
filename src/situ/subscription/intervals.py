"""Intervals: which of many ranges does a value lie in? A segment tree, built once, searched for one value or many.

The bounds that occur divide all values into places: each bound itself, and the gaps before, between and behind them.
A range covers a run of places and is filed under the few nodes of a binary tree that make up this run, so a value is
found by walking from its place up to the root: a logarithm of steps, whatever the ranges overlap.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")

Low = tuple[Any, bool] | None
"""A bound and whether it is open; None: there is none."""


class Intervals(Generic[T]):
    """Ranges of ordered values, each with something filed under it.

    ``dtype`` says that bounds and values are numbers numpy can hold: then many are searched at once.
    """

    def __init__(self, ranges: Iterable[tuple[Low, Low, T]], dtype: type[np.float64] | type[np.int64] | None) -> None:
        ranges = list(ranges)
        self._bounds = sorted({bound[0] for low, high, _ in ranges for bound in (low, high) if bound is not None})
        places = 2 * len(self._bounds) + 1
        self._size = 1 << (places - 1).bit_length() if places > 1 else 1
        filed: dict[int, list[T]] = {}
        for low, high, item in ranges:
            first = 0 if low is None else 2 * self._index(low[0]) + (2 if low[1] else 1)
            last = places - 1 if high is None else 2 * self._index(high[0]) + (0 if high[1] else 1)
            for node in self._nodes(first, last):
                filed.setdefault(node, []).append(item)
        self._filed = {node: tuple(items) for node, items in filed.items()}
        self._dtype = dtype
        if dtype is not None:
            self._array: npt.NDArray[Any] = np.array(self._bounds, dtype=dtype)
            self._occupied = np.zeros(2 * self._size, dtype=np.bool_)
            self._occupied[list(filed)] = True

    def items(self) -> Iterable[T]:
        """All that is filed here; some of it several times."""
        return (item for items in self._filed.values() for item in items)

    def at(self, value: Any) -> list[T]:
        """What is filed under the ranges the value lies in."""
        index = bisect_left(self._bounds, value)
        exact = index < len(self._bounds) and self._bounds[index] == value
        node = self._size + 2 * index + exact
        found: list[T] = []
        filed = self._filed
        while node:
            if node in filed:
                found += filed[node]
            node >>= 1
        return found

    def at_each(self, values: Sequence[Any]) -> Iterable[tuple[int, tuple[T, ...]]]:
        """The same for many values, as pairs of a place in ``values`` and what was found there, in pieces."""
        if self._dtype is None:
            for place, value in enumerate(values):
                if found := self.at(value):
                    yield place, tuple(found)
            return
        given = np.array(values, dtype=self._dtype)
        index = np.searchsorted(self._array, given)
        node = self._size + 2 * index
        if len(self._bounds):
            last = len(self._bounds) - 1
            node += (index <= last) & (self._array[np.minimum(index, last)] == given)
        filed = self._filed
        for _ in range(self._size.bit_length()):
            places = np.flatnonzero(self._occupied[node])
            for place, found in zip(places.tolist(), node[places].tolist(), strict=True):
                yield place, filed[found]
            node >>= 1

    def _index(self, bound: Any) -> int:
        return bisect_left(self._bounds, bound)

    def _nodes(self, first: int, last: int) -> Iterable[int]:
        """The nodes that together cover the places from ``first`` to ``last``; none if there are no such places."""
        left, right = first + self._size, last + self._size + 1
        while left < right:
            if left & 1:
                yield left
                left += 1
            if right & 1:
                right -= 1
                yield right
            left >>= 1
            right >>= 1
