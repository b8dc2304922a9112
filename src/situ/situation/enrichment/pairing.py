"""Pairs of rows for which a test over two variables holds: which instances an observation relates to.

A test is an AND of parts. Where parts say plainly that something of the one side equals something of the other, or lies
between two things of it, as for a point in a box or two points within a distance, pairs are looked for by an index over
the other side: :mod:`situ.situation.enrichment.locating`. What it finds is tested as a whole, and what it leaves out
cannot hold. Without such parts each row meets each, in blocks that bound the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from situ.expr.emit_numpy import Mask, compile_mask
from situ.expr.tree import Node
from situ.expr.vectors import Array, Batch, Bools, Frame, RowsOf
from situ.situation.enrichment.indexes import Index
from situ.situation.enrichment.locating import locator_of

BLOCK = 1 << 19
"""Pairs that are tested at a time."""
_WORTH = 24
"""From so many rows of the other side on, an index is faster than looking at all of them."""


class Pairs(NamedTuple):
    """Rows of both sides that belong together, in the order of rows and others; and pairs on which the test failed."""

    rows: Array
    others: Array
    failures: int
    failed: tuple[int, int] | None
    """The first such pair."""


class Pairing:
    """A test, with one variable for rows and the other for what they are paired with."""

    def __init__(self, test: Node, rows: str, others: str) -> None:
        self._rows, self._others = rows, others
        self.mask: Mask = compile_mask(test)
        self._can_fail = test.can_fail
        self._locator = locator_of(test, rows, others)

    def index(self, others: Batch) -> Index | None:
        """What pairs with these are looked for with; None if each row is to meet each of them."""
        return None if self._locator is None or others.count < _WORTH else self._locator.index(others)

    def pairs(self, rows: Batch, others: Batch, index: Index | None) -> Pairs:
        """All pairs for which the test holds. ``index`` is that of the others."""
        if index is None or self._locator is None:
            return _joined(self._each_with_each(rows, others))
        places, unsure = self._locator.places(rows, index)
        blocks = self._candidates(rows, others, index, places)
        if self._can_fail:
            return _joined((*blocks, *self._left_out(rows, others, index, unsure)))
        return _joined(blocks)

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
