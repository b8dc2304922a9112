"""Points of quality in numpy matrices, and comparisons of many of them at once.

`PointMatrix` holds points by key, `at_least`, `first_that_meet` and the like compare them. `ValueColumns` lays values
of many expectations or profiles out as matrices.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from situ.quality.model.declarations import Expectation

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Points. Names speak of a property as a column and of a point as a row; in the arrays it is the other way round (see
# `Matrix`). The place of a property is shared by all matrices of a pool; minus infinity says "not there" in a point and
# "not asked" in a floor. Goodness is always finite, so neither is taken for a value. Points are kept without gaps: the
# last one moves to where one was taken out.

Matrix = NDArray[np.float64]
"""One row for each property, one column for each point: comparisons run along memory."""
Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]
K = TypeVar("K", bound=Hashable)

NOWHERE = -np.inf
_MOST = np.finfo(np.float64).max
_AT_ONCE = 4_000_000
"""Comparisons that are made at once: what is in between must stay small."""


class PlaceCounter(dict[str, int]):
    """Whoever is asked for gets the next place, if it has none."""

    def __missing__(self, id: str) -> int:
        self[id] = place = len(self)
        return place


class PropertyColumns:
    """Which property is in which column. They are never taken back."""

    def __init__(self) -> None:
        self._places = PlaceCounter()

    def __len__(self) -> int:
        return len(self._places)

    def place(self, id: str) -> int:
        """Where a property is; from now on, if it is new."""
        return self._places[id]

    def vector(self, point: Mapping[str, float]) -> Matrix:
        """A point as an array."""
        return self.matrix([point])[:, 0]

    def matrix(self, points: Sequence[Mapping[str, float]]) -> Matrix:
        """Points as arrays, one in each column of the result."""
        values = chain.from_iterable([point.values() for point in points])
        (found,) = self.filled(points, list(values))
        return found

    def filled(self, ids: Sequence[Mapping[str, object]], *values: Sequence[float] | Matrix) -> Sequence[Matrix]:
        """Values of these properties, one after the other, as matrices: in each column those of one mapping."""
        places = list(map(self._places.__getitem__, chain.from_iterable(ids)))
        owners = np.repeat(np.arange(len(ids)), list(map(len, ids)))
        found = np.full((len(values), len(self._places), len(ids)), NOWHERE)
        found[:, places, owners] = values
        return list(found)

    def widened(self, matrix: Matrix) -> Matrix:
        """The same points, as long as all properties by now."""
        missing = len(self._places) - len(matrix)
        return np.concatenate([matrix, np.full((missing, matrix.shape[1]), NOWHERE)]) if missing else matrix


_NO_ROWS: Matrix = np.zeros((0, 0))


class PointMatrix(Generic[K]):
    """Points by key. What it gives out as an array holds until the next change."""

    def __init__(self, columns: PropertyColumns) -> None:
        self.columns = columns
        self.keys: list[K] = []
        self._places: dict[K, int] = {}
        self._values: Matrix = _NO_ROWS

    def __len__(self) -> int:
        return len(self.keys)

    def __contains__(self, key: K) -> bool:
        return key in self._places

    @property
    def values(self) -> Matrix:
        self._grow(len(self.keys))
        return self._values[:, : len(self.keys)]

    def place(self, key: K) -> int:
        return self._places[key]

    def places(self, keys: Iterable[K]) -> list[int | None]:
        """Where points are, of those that are here."""
        return list(map(self._places.get, keys))

    def vector(self, key: K) -> Matrix:
        return self.values[:, self._places[key]]

    def put(self, key: K, vector: Matrix) -> int:
        """Put a point where it was or behind all others, and tell where."""
        place = self._places.get(key, len(self.keys))
        if place == len(self.keys):
            self._grow(place + 1)
            self._places[key] = place
            self.keys.append(key)
        self._grow(len(self.keys))
        self._values[:, place] = NOWHERE
        self._values[: len(vector), place] = vector
        return place

    def put_new(self, keys: Sequence[K], matrix: Matrix) -> None:
        """Put points with new keys behind all others."""
        first, last = len(self.keys), len(self.keys) + len(keys)
        self._grow(last)
        self._values[:, first:last] = NOWHERE
        self._values[: len(matrix), first:last] = matrix
        self.keys += keys
        self._places.update(zip(keys, range(first, last), strict=True))

    def drop(self, key: K) -> int:
        """Take a point out, and tell the place to which the last one moved."""
        place, last = self._places.pop(key), self.keys.pop()
        if last != key:
            self.keys[place] = last
            self._places[last] = place
            self._values[:, place] = self._values[:, len(self.keys)]
        return place

    def _grow(self, count: int) -> None:
        width, capacity = self._values.shape
        if count <= capacity and width == len(self.columns):
            return
        grown = np.full((len(self.columns), capacity if count <= capacity else max(4, 2 * count)), NOWHERE)
        grown[:width, :capacity] = self._values
        self._values = grown


def as_goodness(values: Sequence[float]) -> Matrix:
    """Values of which more is better, or the negatives of others: always finite, so that none is taken for another."""
    return np.minimum(np.maximum(np.asarray(values, dtype=np.float64), -_MOST), _MOST)


def at_least(points: Matrix, asked: Matrix) -> Flags:
    """Which of the points are at least as good as what is asked, in every property."""
    return np.asarray(np.logical_and.reduce(points >= asked[:, None]))


def at_most(points: Matrix, given: Matrix) -> Flags:
    """Which of the points a given one is at least as good as, in every property."""
    return np.asarray(np.logical_and.reduce(points <= given[:, None]))


def first_that_meet(floors: Matrix, points: Matrix) -> Numbers:
    """For each of the floors, the place of the first point that is at least as good; −1 if there is none."""
    found = np.full(floors.shape[1], -1, dtype=np.int64)
    if points.shape[1]:
        for start, met in _meeting(floors, points):
            first = met.argmax(axis=1)
            found[start : start + len(met)] = np.where(met[np.arange(len(first)), first], first, -1)
    return found


def count_that_meet(floors: Matrix, points: Matrix) -> Numbers:
    """For each of the floors, how many points are at least as good."""
    found = np.zeros(floors.shape[1], dtype=np.int64)
    for start, met in _meeting(floors, points):
        found[start : start + len(met)] = np.count_nonzero(met, axis=1)
    return found


def _meeting(floors: Matrix, points: Matrix) -> Iterator[tuple[int, Flags]]:
    """For some of the floors after the other, from which on, which of the points meet each."""
    step = max(1, _AT_ONCE // max(1, points.size))
    for start in range(0, floors.shape[1], step):
        yield start, ~any_below(points, floors[:, start : start + step])


def any_below(points: Matrix, asked: Matrix) -> Flags:
    """For each of those who ask and each of the points, whether any property is not good enough."""
    return np.asarray(np.logical_or.reduce(asked[:, :, None] > points[:, None, :]))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Values by property of many things, listed one thing after the other, and laid out for some of them from there.
# Expectations and profiles are many small objects all over memory. Those of a pool are anywhere among them, so to visit
# them pool by pool takes several times as long as to visit all of them once, in the order in which they come.


class ValueColumns:
    """Some values of each property that things have, by the places of these things."""

    def __init__(self, things: Sequence[Mapping[str, object]], *values: Sequence[float] | Matrix) -> None:
        """Things by their properties; the values are in the same order, those of one thing after those of another."""
        names = PlaceCounter()
        self._properties = np.asarray(list(map(names.__getitem__, chain.from_iterable(things))), dtype=np.int64)
        """Of which property each value is, by its place among the names."""
        self._names = list(names)
        self._values = np.asarray(values, dtype=np.float64)
        self._counts = np.asarray(list(map(len, things)), dtype=np.int64)
        self._ends = np.cumsum(self._counts)

    def of(self, places: Sequence[int], columns: PropertyColumns) -> Sequence[Matrix]:
        """A matrix for each kind of value, with one of these things in each column."""
        counts = self._counts.take(places)
        ends = np.cumsum(counts)
        chosen = np.repeat(self._ends.take(places) - ends, counts) + np.arange(ends[-1] if len(ends) else 0)
        properties = self._properties.take(chosen)
        rows = np.zeros(len(self._names), dtype=np.int64)
        for each in dict.fromkeys(properties.tolist()):
            rows[each] = columns.place(self._names[each])
        found = np.full((len(self._values), len(columns), len(places)), NOWHERE)
        found[:, rows.take(properties), np.repeat(np.arange(len(places)), counts)] = self._values.take(chosen, axis=1)
        return list(found)


def floors_of(expectations: Sequence[Expectation]) -> ValueColumns:
    """What expectations ask: :attr:`Expectation.asked` of each."""
    needs = [each.needs for each in expectations]
    floors = [need.lb if need.about.maximise else -need.ub for each in needs for need in each.values()]
    return ValueColumns(needs, as_goodness(floors))
