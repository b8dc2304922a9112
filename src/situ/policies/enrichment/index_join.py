"""The join of observations with instances: pairs of rows for which a test over two variables holds.

`HashIndex` and `GridIndex` are indexes over one side, `Locator` says by the test where in them partners can be,
`IndexJoin` finds and tests the pairs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from situ.lang.expr.emit.numpy import Mask, Step, compile_mask, compile_vector, outer_reads
from situ.lang.expr.emit.vectors import FAILED, Array, Batch, Bools, Frame, Key, RowsOf, Vector, dtype_of, either
from situ.lang.expr.functions.table import overloads
from situ.lang.expr.runtime import EARTH_RADIUS, FARTHEST, RADIANS
from situ.lang.expr.tree import And, Apply, Compare, Node, Read
from situ.lang.types.model import STRING, plain

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Indexes over one side of a test: where the partners of a row can be, at most. Both kinds put the other side into
# numbered places and say for a row which place to look at. :class:`HashIndex` holds equal values together; a
# :class:`GridIndex` has cells of the line or the plane, and an interval or box lies in every cell it touches. Rows of
# the other side whose values are not known are in no place; ``missing`` are those.

NOWHERE = -1
_MOST_CELLS = 1 << 16
_MOST_ENTRIES = 1 << 22
_EACH_IN = 12
"""Cells that an interval or box may touch on average; more, and cells are made larger."""


class PlaceIndex:
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


class HashIndex(PlaceIndex):
    """One place for each different value."""

    def __init__(self, codes: Array, count: int, values: pa.Array | Array) -> None:
        present = np.flatnonzero(codes >= 0)
        super().__init__(codes[present], present, count, np.flatnonzero(codes < 0))
        self.values = values

    @classmethod
    def of_texts(cls, column: pa.Array) -> HashIndex:
        encoded = column.dictionary_encode()
        codes = encoded.indices.fill_null(NOWHERE).to_numpy(zero_copy_only=False)
        return cls(codes, len(encoded.dictionary), encoded.dictionary)

    @classmethod
    def of_numbers(cls, values: Array, absent: Bools | None) -> HashIndex:
        found = values if absent is None else values[~absent]
        different = np.unique(found)
        return cls(_codes(different, values, absent), len(different), different)

    def codes(self, values: Array, absent: Bools | None) -> Array:
        """The place of each of these numbers."""
        return _codes(self.values, values, absent)


def same_codes(texts: pa.Array, index: HashIndex) -> Array:
    """The place of each of these texts."""
    found = pc.index_in(texts, value_set=index.values, skip_nulls=True)
    return found.fill_null(NOWHERE).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _codes(different: Array, values: Array, absent: Bools | None) -> Array:
    if not len(different):
        return np.full(len(values), NOWHERE)
    places = np.minimum(np.searchsorted(different, values), len(different) - 1)
    codes = np.where(different[places] == values, places, NOWHERE)
    return codes if absent is None else np.where(absent, NOWHERE, codes)


class GridIndex(PlaceIndex):
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What the parts of a test say of where partners can be: equal values, intervals, and areas.
#
# A :class:`Locator` makes an index of the other side, and says for rows at which place of it to look. It may say too
# much, never too little. Rows and others of which something is null, fails, or is where the part fails are not located:
# they partner with nobody, but a test can fail on them.

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
    def index(self, others: Batch) -> PlaceIndex: ...

    @abstractmethod
    def places(self, rows: Batch, index: PlaceIndex) -> tuple[Array, Bools | None]:
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

    def index(self, others: Batch) -> PlaceIndex:
        if self._keys is not None:
            return HashIndex.of_texts(others.array(self._keys[1]))
        return HashIndex.of_numbers(*self._of_other.present(others))

    def places(self, rows: Batch, index: PlaceIndex) -> tuple[Array, Bools | None]:
        assert isinstance(index, HashIndex)
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

    def index(self, others: Batch) -> PlaceIndex:
        bounds = [each.bounds(others) for each in self._ranges]
        return GridIndex([end for low, _ in bounds for end in low], [end for _, high in bounds for end in high])

    def places(self, rows: Batch, index: PlaceIndex) -> tuple[Array, Bools | None]:
        assert isinstance(index, GridIndex)
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The join. A test is an AND of parts. Where parts say plainly that something of the one side equals something of the
# other, or lies between two things of it, as for a point in a box or two points within a distance, pairs are looked for
# by an index over the other side. What it finds is tested as a whole, and what it leaves out cannot hold. Without such
# parts each row meets each, in blocks that bound the memory.

BLOCK = 1 << 19
"""Pairs that are tested at a time."""
_WORTH = 24
"""From so many rows of the other side on, an index is faster than looking at all of them."""


class JoinedRows(NamedTuple):
    """Rows of both sides that belong together, in the order of rows and others; and pairs on which the test failed."""

    rows: Array
    others: Array
    failures: int
    failed: tuple[int, int] | None
    """The first such pair."""


class IndexJoin:
    """A test, with one variable for rows and the other for what they are paired with."""

    def __init__(self, test: Node, rows: str, others: str) -> None:
        self._rows, self._others = rows, others
        self.mask: Mask = compile_mask(test)
        self._can_fail = test.can_fail
        self._locator = locator_of(test, rows, others)

    def index(self, others: Batch) -> PlaceIndex | None:
        """What pairs with these are looked for with; None if each row is to meet each of them."""
        return None if self._locator is None or others.count < _WORTH else self._locator.index(others)

    def pairs(self, rows: Batch, others: Batch, index: PlaceIndex | None) -> JoinedRows:
        """All pairs for which the test holds. ``index`` is that of the others."""
        if index is None or self._locator is None:
            return _joined(self._each_with_each(rows, others))
        places, unsure = self._locator.places(rows, index)
        blocks = self._candidates(rows, others, index, places)
        if self._can_fail:
            return _joined((*blocks, *self._left_out(rows, others, index, unsure)))
        return _joined(blocks)

    def _candidates(self, rows: Batch, others: Batch, index: PlaceIndex, found: Array) -> Iterator[JoinedRows]:
        for places, partners in index.partners(found, BLOCK):
            yield self._tested(rows, others, places, partners)

    def _tested(self, rows: Batch, others: Batch, places: Array, partners: Array) -> JoinedRows:
        batches = {self._rows: RowsOf(rows, places), self._others: RowsOf(others, partners)}
        outcome = self.mask.of(Frame(batches, {self._rows: 0, self._others: 0}, (len(places),)))
        failures, first = 0, None
        if outcome.failed is not None:
            failures = int(outcome.failed.sum())
            place = int(outcome.failed.argmax())
            first = (int(places[place]), int(partners[place]))
        return JoinedRows(places[outcome.holds], partners[outcome.holds], failures, first)

    def _each_with_each(self, rows: Batch, others: Batch) -> Iterator[JoinedRows]:
        if not rows.count or not others.count:
            return
        wide = min(others.count, BLOCK)
        high = max(1, BLOCK // wide)
        for start in range(0, rows.count, high):
            some = rows if high >= rows.count else RowsOf(rows, np.arange(start, min(start + high, rows.count)))
            for first in range(0, others.count, wide):
                these = (
                    others
                    if wide >= others.count
                    else RowsOf(others, np.arange(first, min(first + wide, others.count)))
                )
                yield self._block(some, these, start, first)

    def _block(self, rows: Batch, others: Batch, start: int, first: int) -> JoinedRows:
        outcome = self.mask.of(Frame.of_pairs((self._rows, rows), (self._others, others)))
        places, partners = np.nonzero(outcome.holds)
        failures, failed = 0, None
        if outcome.failed is not None:
            failures = int(outcome.failed.sum())
            place, partner = divmod(int(outcome.failed.argmax()), others.count)
            failed = (start + place, first + partner)
        return JoinedRows(places + start, partners + first, failures, failed)

    def _left_out(self, rows: Batch, others: Batch, index: PlaceIndex, unsure: Bools | None) -> Iterator[JoinedRows]:
        """Pairs that the index does not know because something is null or fails: none holds, but the test may fail."""
        missing = index.missing
        if len(missing):
            for each in self._each_with_each(rows, RowsOf(others, missing)):
                yield _moved(each, None, missing)
        if unsure is not None and unsure.any():
            present = np.setdiff1d(np.arange(others.count), missing)
            places = np.flatnonzero(unsure)
            for each in self._each_with_each(RowsOf(rows, places), RowsOf(others, present)):
                yield _moved(each, places, present)


def _moved(pairs: JoinedRows, places: Array | None, partners: Array) -> JoinedRows:
    """Only the failures, as pairs of the whole."""
    failed = pairs.failed
    if failed is not None:
        failed = (failed[0] if places is None else int(places[failed[0]]), int(partners[failed[1]]))
    return JoinedRows(pairs.rows[:0], pairs.others[:0], pairs.failures, failed)


def _joined(parts: Iterator[JoinedRows] | Sequence[JoinedRows]) -> JoinedRows:
    given = list(parts)
    if not given:
        return JoinedRows(np.empty(0, np.int64), np.empty(0, np.int64), 0, None)
    if len(given) == 1:
        return given[0]
    return JoinedRows(
        np.concatenate([each.rows for each in given]),
        np.concatenate([each.others for each in given]),
        sum(each.failures for each in given),
        min((each.failed for each in given if each.failed is not None), default=None),
    )
