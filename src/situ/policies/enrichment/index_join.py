"""What the parts of a test say of where partners can be: equal values, intervals, and areas.

A :class:`Locator` makes an index of the other side, and says for rows at which place of it to look. It may say too
much, never too little. Rows and others of which something is null, fails, or is where the part fails are not located:
they partner with nobody, but a test can fail on them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from situ.expr.by_rows import Step, outer_reads
from situ.expr.emit_numpy import compile_vector
from situ.expr.functions.table import overloads
from situ.expr.runtime_geometry import EARTH_RADIUS, FARTHEST, RADIANS
from situ.expr.tree import And, Apply, Compare, Node, Read
from situ.expr.vectors import FAILED, Array, Batch, Bools, Frame, Key, Vector, dtype_of, either
from situ.situation.enrichment.indexes import Buckets, Grid, Index, same_codes
from situ.types.model import STRING, plain

_DISTANCE, _ON_GLOBE, _IN_POLYGON = (overloads(name)[0] for name in ("distance", "geo_distance", "in_polygon"))
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_UNDERFLOW = 1e-150  # squares of less vanish
_SLACK = 1.0 + 1e-9  # rounding may make a distance a little less than it is along one axis
_METRES_A_DEGREE = EARTH_RADIUS * RADIANS
_SLACK_DEGREES = 1e-4  # near the other end of the Earth the last digit makes metres
_DIMENSIONS = 2


class Locator(ABC):
    """An index of the other side, and the places of rows in it."""

    @abstractmethod
    def index(self, others: Batch) -> Index: ...

    @abstractmethod
    def places(self, rows: Batch, index: Index) -> tuple[Array, Bools | None]:
        """Where to look, and which rows are not located."""


def locator_of(test: Node, rows: str, others: str) -> Locator | None:
    """What a test over these two variables says of where partners are; None if nothing plain."""
    parts = list(_parts(test, rows, others))
    equal = next((part for part in parts if isinstance(part, _Equal)), None)
    if equal is not None:
        return equal
    ranges: list[_Range] = []
    for part in sorted((part for part in parts if isinstance(part, _Range)), key=lambda part: -part.dimensions):
        if sum(each.dimensions for each in ranges) + part.dimensions <= _DIMENSIONS:
            ranges.append(part)
    return _InGrid(ranges) if ranges else None


def _parts(test: Node, rows: str, others: str) -> Iterator[Locator | _Range]:
    """Parts that an index can use, each of which must be true for the whole to be."""
    bounds: dict[Node, tuple[list[Node], list[Node]]] = {}
    for part in test.args if isinstance(test, And) else (test,):
        if isinstance(part, Apply) and part.overload == _IN_POLYGON:
            x, y, corners = part.args
            if _only(x, rows) and _only(y, rows) and not _reads(corners, rows):
                yield _Polygons((x, y), corners, rows, others)
        if not isinstance(part, Compare) or part.op == "<>":
            continue
        for left, op, right in ((part.left, part.op, part.right), (part.right, _MIRRORED[part.op], part.left)):
            if _only(left, rows) and _only(right, others):
                if op != "=" and dtype_of(left.type) is not np.object_:
                    bounds.setdefault(left, ([], []))[op in ("<", "<=")].append(right)
                elif op == "=" and _has_codes(left, right):
                    yield _Equal(left, right, rows, others)
                break
            if op in ("<", "<=") and isinstance(left, Apply) and not _reads(right, rows):
                yield from _around(left, right, rows, others)
                break
    for of, (low, high) in bounds.items():
        if low and high:
            yield _Between(of, low, high, rows, others)


def _around(distance: Apply, most: Node, rows: str, others: str) -> Iterator[_Range]:
    if distance.overload not in (_DISTANCE, _ON_GLOBE):
        return
    a, b, c, d = distance.args
    for here, there in (((a, b), (c, d)), ((c, d), (a, b))):
        if all(_only(each, rows) for each in here) and all(_only(each, others) for each in there):
            kind = _Near if distance.overload == _DISTANCE else _OnGlobe
            yield kind(here, there, most, rows, others)


def _only(node: Node, variable: str) -> bool:
    return {read.variable for read in outer_reads(node)} == {variable}


def _reads(node: Node, variable: str) -> bool:
    return any(read.variable == variable for read in outer_reads(node))


def _has_codes(left: Node, right: Node) -> bool:
    """Whether equal values can be found by numbers: texts as they are read, and numbers of any kind."""
    if plain(left.type) == STRING:
        return isinstance(left, Read) and isinstance(right, Read)
    return dtype_of(left.type) is not np.object_


# ── values of one side ────────────────────────────────────────────────────────────────────────────


class _Of:
    """An expression over one variable."""

    def __init__(self, node: Node, variable: str) -> None:
        self._step: Step = compile_vector(node)
        self._variable = variable

    def vector(self, batch: Batch) -> Vector:
        with np.errstate(all="ignore"):
            found = self._step(Frame({self._variable: batch}, {self._variable: 0}, (batch.count,)))
        parts = (None if each is None else np.broadcast_to(each, (batch.count,)) for each in found)
        return Vector(*parts)  # type: ignore[arg-type]  # values are always there

    def present(self, batch: Batch) -> tuple[Array, Bools | None]:
        """Values, and where there are none: what is no number is none."""
        vector = self.vector(batch)
        strange = np.isnan(vector.values) if vector.values.dtype == np.float64 else None
        return vector.values, either(vector.null, vector.failed, strange)

    def numbers(self, batch: Batch) -> Array:
        """As doubles, NaN where there is none."""
        values, absent = self.present(batch)
        found = values.astype(np.float64)
        if absent is not None:
            found[absent] = np.nan
        return found


class _Equal(Locator):
    """``of_row = of_other``, both texts as they are read, or both numbers."""

    def __init__(self, of_row: Node, of_other: Node, rows: str, others: str) -> None:
        self._keys: tuple[Key, Key] | None = None
        if isinstance(of_row, Read) and isinstance(of_other, Read) and plain(of_row.type) == STRING:
            self._keys = (rows, of_row.path), (others, of_other.path)
        self._of_row, self._of_other = _Of(of_row, rows), _Of(of_other, others)

    def index(self, others: Batch) -> Index:
        if self._keys is not None:
            return Buckets.of_texts(others.array(self._keys[1]))
        return Buckets.of_numbers(*self._of_other.present(others))

    def places(self, rows: Batch, index: Index) -> tuple[Array, Bools | None]:
        assert isinstance(index, Buckets)
        if self._keys is not None:
            array = rows.array(self._keys[0])
            absent = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
            return same_codes(array, index), absent
        values, absent = self._of_row.present(rows)
        return index.codes(values, absent), absent


# ── ranges ────────────────────────────────────────────────────────────────────────────────────────


class _Range(ABC):
    """From where to where something of a row lies, in one dimension or two, for each of the others."""

    def __init__(self, of_row: Sequence[Node], rows: str) -> None:
        self._of_row = [_Of(node, rows) for node in of_row]

    @property
    def dimensions(self) -> int:
        return len(self._of_row)

    def values(self, rows: Batch) -> tuple[list[Array], Bools | None]:
        """What lies there, in each dimension, and which rows have nothing, or something on which the part fails."""
        found = [each.present(rows) for each in self._of_row]
        return [values for values, _ in found], either(*(absent for _, absent in found))

    @abstractmethod
    def bounds(self, others: Batch) -> tuple[list[Array], list[Array]]:
        """The ends in each dimension; NaN where they are not known."""


class _InGrid(Locator):
    """Ranges of two dimensions at most."""

    def __init__(self, ranges: Sequence[_Range]) -> None:
        self._ranges = ranges

    def index(self, others: Batch) -> Index:
        bounds = [each.bounds(others) for each in self._ranges]
        return Grid([end for low, _ in bounds for end in low], [end for _, high in bounds for end in high])

    def places(self, rows: Batch, index: Index) -> tuple[Array, Bools | None]:
        assert isinstance(index, Grid)
        found = [each.values(rows) for each in self._ranges]
        absent = either(*(absent for _, absent in found))
        return index.cells([value for values, _ in found for value in values], absent), absent


class _Between(_Range):
    """``low <= of_row <= high``, whether or not the ends belong to it."""

    def __init__(self, of_row: Node, low: Sequence[Node], high: Sequence[Node], rows: str, others: str) -> None:
        super().__init__([of_row], rows)
        self._low, self._high = ([_Of(node, others) for node in nodes] for nodes in (low, high))

    def bounds(self, others: Batch) -> tuple[list[Array], list[Array]]:
        low = np.maximum.reduce([each.numbers(others) for each in self._low])
        return [low], [np.minimum.reduce([each.numbers(others) for each in self._high])]


class _Near(_Range):
    """Two points of the plane, so far apart at most."""

    def __init__(self, here: Sequence[Node], there: Sequence[Node], most: Node, rows: str, others: str) -> None:
        super().__init__(here, rows)
        self._there, self._most = [_Of(node, others) for node in there], _Of(most, others)

    def bounds(self, others: Batch) -> tuple[list[Array], list[Array]]:
        most = self._most.numbers(others)
        middle = [each.numbers(others) for each in self._there]
        reach = [most * _SLACK + np.abs(each) * 1e-12 + _UNDERFLOW for each in middle]
        with np.errstate(all="ignore"):
            low = [each - far for each, far in zip(middle, reach, strict=True)]
            return low, [each + far for each, far in zip(middle, reach, strict=True)]


class _OnGlobe(_Range):
    """Two places on Earth, so many metres apart at most: so far apart in latitude."""

    def __init__(self, here: Sequence[Node], there: Sequence[Node], most: Node, rows: str, others: str) -> None:
        super().__init__(here[:1], rows)
        self._longitude = _Of(here[1], rows)
        self._there, self._most = [_Of(node, others) for node in there], _Of(most, others)

    def values(self, rows: Batch) -> tuple[list[Array], Bools | None]:
        (latitude,), absent = super().values(rows)
        longitude, nowhere = self._longitude.present(rows)
        return [latitude], either(absent, nowhere, _off(latitude, longitude))

    def bounds(self, others: Batch) -> tuple[list[Array], list[Array]]:
        latitude, longitude = (each.numbers(others) for each in self._there)
        reach = self._most.numbers(others) / _METRES_A_DEGREE * _SLACK + _SLACK_DEGREES
        reach[_off(latitude, longitude) | np.isnan(longitude)] = np.nan
        return [latitude - reach], [latitude + reach]


def _off(latitude: Array, longitude: Array) -> Bools:
    """Where this is no place on Earth."""
    return (np.abs(latitude) > 90.0) | (np.abs(longitude) > 360.0)


class _Polygons(_Range):
    """A point in a polygon: in the box around it."""

    def __init__(self, here: Sequence[Node], corners: Node, rows: str, others: str) -> None:
        super().__init__(here, rows)
        self._corners = _Of(corners, others)

    def values(self, rows: Batch) -> tuple[list[Array], Bools | None]:
        values, absent = super().values(rows)
        return values, either(absent, *(np.abs(each) > FARTHEST for each in values))

    def bounds(self, others: Batch) -> tuple[list[Array], list[Array]]:
        vector = self._corners.vector(others)
        absent = either(vector.null, vector.failed)
        ends = np.full((4, others.count), np.nan)
        for place in range(others.count) if absent is None else np.flatnonzero(~absent):
            found = _box(vector.values[place])
            if found is not None:
                ends[:, place] = found
        slack = (np.abs(ends[0]) + np.abs(ends[1])) * 1e-9  # where an edge crosses a height is rounded
        return [ends[0] - slack, ends[2]], [ends[1] + slack, ends[3]]


def _box(polygon: Any) -> tuple[float, float, float, float] | None:
    """Around these corners; an empty one if there are none, None if the test fails on them."""
    if polygon is FAILED or any(not _is_near(point) for point in polygon):
        return None
    xs, ys = [point["x"] for point in polygon], [point["y"] for point in polygon]
    return (min(xs), max(xs), min(ys), max(ys)) if xs else (1.0, 0.0, 1.0, 0.0)


def _is_near(point: Any) -> bool:
    x, y = (None, None) if point is None else (point.get("x"), point.get("y"))
    return x is not None and y is not None and abs(x) <= FARTHEST and abs(y) <= FARTHEST
