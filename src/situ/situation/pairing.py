"""Pairs of rows for which a test over two variables holds: which instances an observation relates to.

A test is an AND of parts. Where parts say plainly that something of the one side equals something of the other, or lies
between two things of it, as for a point in a box or two points within a distance, pairs are looked for by an index over
the other side: :mod:`situ.situation.indexes`. What it finds is tested as a whole, and what it leaves out cannot hold.
Without such parts each row meets each, in blocks that bound the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from situ.expr.by_rows import Step, outer_reads
from situ.expr.emit_numpy import Mask, compile_mask, compile_vector
from situ.expr.functions.table import overloads
from situ.expr.tree import And, Apply, Compare, Node, Read
from situ.expr.vectors import Array, Batch, Bools, Frame, Key, RowsOf, Vector, dtype_of, either
from situ.situation.indexes import Buckets, Grid, Index, same_codes
from situ.types.model import STRING, plain

BLOCK = 1 << 19
"""Pairs that are tested at a time."""
_WORTH = 24
"""From so many rows of the other side on, an index is faster than looking at all of them."""
_DISTANCE = overloads("distance")[0]
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_UNDERFLOW = 1e-150  # squares of less vanish
_SLACK = 1.0 + 1e-9


class Pairs(NamedTuple):
    """Rows of both sides that belong together, in the order of rows and others; and pairs on which the test failed."""

    rows: Array
    others: Array
    failures: int
    failed: tuple[int, int] | None
    """The first such pair."""


@dataclass(frozen=True, slots=True)
class _Equal:
    """``of_row = of_other``, both texts as they are read, or both numbers."""

    of_row: Node
    of_other: Node


@dataclass(frozen=True, slots=True)
class _Between:
    """``low <= of_row <= high``, whether or not the borders belong to it; ``around``: the middle and the distance."""

    of_row: Node
    low: tuple[Node, ...] = ()
    high: tuple[Node, ...] = ()
    around: tuple[Node, Node] | None = None


class Pairing:
    """A test, with one variable for rows and the other for what they are paired with."""

    def __init__(self, test: Node, rows: str, others: str) -> None:
        self._rows, self._others = rows, others
        self.mask: Mask = compile_mask(test)
        self._can_fail = test.can_fail
        parts = _parts(test, rows, others)
        equal = [part for part in parts if isinstance(part, _Equal)]
        between = [part for part in parts if isinstance(part, _Between)]
        self._equal = _CompiledEqual(equal[0], rows, others) if equal else None
        self._between = [_CompiledBetween(part, rows, others) for part in between[:2]]

    def index(self, others: Batch) -> Index | None:
        """What pairs with these are looked for with; None if each row is to meet each of them."""
        if others.count < _WORTH:
            return None
        if self._equal is not None:
            return self._equal.index(others)
        if self._between:
            bounds = [each.bounds(others) for each in self._between]
            return Grid([low for low, _ in bounds], [high for _, high in bounds])
        return None

    def pairs(self, rows: Batch, others: Batch, index: Index | None) -> Pairs:
        """All pairs for which the test holds. ``index`` is that of the others."""
        if index is None:
            return _joined(self._each_with_each(rows, others))
        if self._equal is not None:
            found, unsure = self._equal.places(rows, index)
        else:
            found, unsure = self._in_grid(rows, index)
        blocks = self._candidates(rows, others, index, found)
        if self._can_fail:
            return _joined((*blocks, *self._left_out(rows, others, index, unsure)))
        return _joined(blocks)

    def _in_grid(self, rows: Batch, index: Index) -> tuple[Array, Bools | None]:
        assert isinstance(index, Grid)
        vectors = [each.of_row(rows) for each in self._between]
        absent = either(*(mask for vector in vectors for mask in (vector.null, vector.failed)))
        return index.cells([vector.values for vector in vectors], absent), absent

    def _candidates(self, rows: Batch, others: Batch, index: Index, found: Array) -> Iterator[Pairs]:
        for places, partners in index.partners(found, BLOCK):
            yield self._tested(rows, others, places, partners)

    def _tested(self, rows: Batch, others: Batch, places: Array, partners: Array) -> Pairs:
        batches = {self._rows: RowsOf(rows, places), self._others: RowsOf(others, partners)}
        outcome = self.mask.of(Frame(batches, {self._rows: 0, self._others: 0}, (len(places),)))
        failures, first = 0, None
        if outcome.failed is not None:
            failures = int(outcome.failed.sum())
            place = int(outcome.failed.argmax())
            first = (int(places[place]), int(partners[place]))
        return Pairs(places[outcome.holds], partners[outcome.holds], failures, first)

    def _each_with_each(self, rows: Batch, others: Batch) -> Iterator[Pairs]:
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

    def _block(self, rows: Batch, others: Batch, start: int, first: int) -> Pairs:
        outcome = self.mask.of(Frame.of_pairs((self._rows, rows), (self._others, others)))
        places, partners = np.nonzero(outcome.holds)
        failures, failed = 0, None
        if outcome.failed is not None:
            failures = int(outcome.failed.sum())
            place, partner = divmod(int(outcome.failed.argmax()), others.count)
            failed = (start + place, first + partner)
        return Pairs(places + start, partners + first, failures, failed)

    def _left_out(self, rows: Batch, others: Batch, index: Index, unsure: Bools | None) -> Iterator[Pairs]:
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


def _moved(pairs: Pairs, places: Array | None, partners: Array) -> Pairs:
    """Only the failures, as pairs of the whole."""
    failed = pairs.failed
    if failed is not None:
        failed = (failed[0] if places is None else int(places[failed[0]]), int(partners[failed[1]]))
    return Pairs(pairs.rows[:0], pairs.others[:0], pairs.failures, failed)


def _joined(parts: Iterator[Pairs] | Sequence[Pairs]) -> Pairs:
    given = list(parts)
    if not given:
        return Pairs(np.empty(0, np.int64), np.empty(0, np.int64), 0, None)
    if len(given) == 1:
        return given[0]
    return Pairs(
        np.concatenate([each.rows for each in given]),
        np.concatenate([each.others for each in given]),
        sum(each.failures for each in given),
        min((each.failed for each in given if each.failed is not None), default=None),
    )


# ── what parts of a test say ──────────────────────────────────────────────────────────────────────


def _parts(test: Node, rows: str, others: str) -> list[_Equal | _Between]:
    """Parts that an index can use, each of which must be true for the whole to be."""
    found: list[_Equal | _Between] = []
    bounds: dict[Node, tuple[list[Node], list[Node]]] = {}
    for part in test.args if isinstance(test, And) else (test,):
        if not isinstance(part, Compare) or part.op == "<>":
            continue
        for left, op, right in (
            (part.left, part.op, part.right),
            (part.right, _MIRRORED[part.op], part.left),
        ):
            if _only(left, rows) and _only(right, others):
                if op == "=":
                    if _has_codes(left, right):
                        found.append(_Equal(left, right))
                elif dtype_of(left.type) is not np.object_:
                    bounds.setdefault(left, ([], []))[op in ("<", "<=")].append(right)
                break
            if op in ("<", "<=") and isinstance(left, Apply) and left.overload == _DISTANCE and not _reads(right, rows):
                found += _around(left, right, rows, others)
                break
    found += [_Between(of, tuple(low), tuple(high)) for of, (low, high) in bounds.items() if low and high]
    return found


def _around(distance: Apply, most: Node, rows: str, others: str) -> list[_Between]:
    x1, y1, x2, y2 = distance.args
    for here, there in (((x1, y1), (x2, y2)), ((x2, y2), (x1, y1))):
        if all(_only(each, rows) for each in here) and all(_only(each, others) for each in there):
            return [_Between(one, around=(other, most)) for one, other in zip(here, there, strict=True)]
    return []


def _only(node: Node, variable: str) -> bool:
    return {read.variable for read in outer_reads(node)} == {variable}


def _reads(node: Node, variable: str) -> bool:
    return any(read.variable == variable for read in outer_reads(node))


def _has_codes(left: Node, right: Node) -> bool:
    """Whether equal values can be found by numbers: texts as they are read, and numbers of any kind."""
    if plain(left.type) == STRING:
        return isinstance(left, Read) and isinstance(right, Read)
    return dtype_of(left.type) is not np.object_


def _over(step: Step, variable: str, batch: Batch) -> Vector:
    with np.errstate(all="ignore"):
        found = step(Frame({variable: batch}, {variable: 0}, (batch.count,)))
    return Vector(*(None if each is None else np.broadcast_to(each, (batch.count,)) for each in found))  # type: ignore[arg-type]  # values are always there


class _CompiledEqual:
    def __init__(self, part: _Equal, rows: str, others: str) -> None:
        self._rows, self._others = rows, others
        self._keys: tuple[Key, Key] | None = None
        if isinstance(part.of_row, Read) and isinstance(part.of_other, Read) and plain(part.of_row.type) == STRING:
            self._keys = (rows, part.of_row.path), (others, part.of_other.path)
        self._steps = compile_vector(part.of_row), compile_vector(part.of_other)

    def index(self, others: Batch) -> Index:
        if self._keys is not None:
            return Buckets.of_texts(others.array(self._keys[1]))
        return Buckets.of_numbers(*_present(_over(self._steps[1], self._others, others)))

    def places(self, rows: Batch, index: Index) -> tuple[Array, Bools | None]:
        assert isinstance(index, Buckets)
        if self._keys is not None:
            array = rows.array(self._keys[0])
            absent = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
            return same_codes(array, index), absent
        values, absent = _present(_over(self._steps[0], self._rows, rows))
        return index.codes(values, absent), absent


def _present(vector: Vector) -> tuple[Array, Bools | None]:
    """Values, and where there are none; what is no number equals nothing."""
    strange = np.isnan(vector.values) if vector.values.dtype == np.float64 else None
    return vector.values, either(vector.null, vector.failed, strange)


class _CompiledBetween:
    def __init__(self, part: _Between, rows: str, others: str) -> None:
        self._others, self._variable = others, rows
        self._step = compile_vector(part.of_row)
        self._low = [compile_vector(node) for node in part.low]
        self._high = [compile_vector(node) for node in part.high]
        self._around = None if part.around is None else [compile_vector(node) for node in part.around]

    def of_row(self, rows: Batch) -> Vector:
        found = _over(self._step, self._variable, rows)
        if found.values.dtype == np.float64:
            strange = np.isnan(found.values)
            return found._replace(failed=either(found.failed, strange)) if strange.any() else found
        return found

    def bounds(self, others: Batch) -> tuple[Array, Array]:
        """From where to where; NaN where that is not known."""
        if self._around is not None:
            middle, most = (_number(_over(step, self._others, others)) for step in self._around)
            # Rounding may make a distance a little less than it is along one axis.
            reach = most * _SLACK + np.abs(middle) * 1e-12 + _UNDERFLOW
            return middle - reach, middle + reach
        lows = [_number(_over(step, self._others, others)) for step in self._low]
        highs = [_number(_over(step, self._others, others)) for step in self._high]
        return np.maximum.reduce(lows), np.minimum.reduce(highs)


def _number(vector: Vector) -> Array:
    """As doubles, NaN where there is none."""
    values = vector.values.astype(np.float64)
    absent = either(vector.null, vector.failed)
    if absent is not None:
        values[absent] = np.nan
    return values
