"""Values by property of many things, listed one thing after the other, and laid out for some of them from there.

Expectations and profiles are many small objects all over memory. Those of a pool are anywhere among them, so to visit
them pool by pool takes several times as long as to visit all of them once, in the order in which they come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from situ.quality.expectation import Expectation
from situ.quality.rows import NOWHERE, Columns, Matrix, Places, as_goodness


class Listed:
    """Some values of each property that things have, by the places of these things."""

    def __init__(self, things: Sequence[Mapping[str, object]], *values: Sequence[float] | Matrix) -> None:
        """Things by their properties; the values are in the same order, those of one thing after those of another."""
        names = Places()
        self._properties = np.asarray(list(map(names.__getitem__, chain.from_iterable(things))), dtype=np.int64)
        """Of which property each value is, by its place among the names."""
        self._names = list(names)
        self._values = np.asarray(values, dtype=np.float64)
        self._counts = np.asarray(list(map(len, things)), dtype=np.int64)
        self._ends = np.cumsum(self._counts)

    def of(self, places: Sequence[int], columns: Columns) -> Sequence[Matrix]:
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


def asked_by(expectations: Sequence[Expectation]) -> Listed:
    """What expectations ask: :attr:`Expectation.asked` of each."""
    needs = [each.needs for each in expectations]
    floors = [need.lb if need.about.maximise else -need.ub for each in needs for need in each.values()]
    return Listed(needs, as_goodness(floors))
