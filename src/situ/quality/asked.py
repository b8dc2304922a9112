"""What many expectations ask, as columns: gone through once, in their order, and laid out for each pool from there.

Expectations are many small objects all over memory. Those of a pool are anywhere among them, so to visit them pool by
pool takes several times as long as to visit all in the order in which they come.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from situ.quality.expectation import Expectation
from situ.quality.rows import NOWHERE, Columns, Matrix, Places, as_goodness


class Asked:
    """The floors of some expectations, by their places among these."""

    def __init__(self, expectations: Sequence[Expectation]) -> None:
        needs = [each.needs for each in expectations]
        every = chain.from_iterable([each.values() for each in needs])
        values = [need.lb if need.about.maximise else -need.ub for need in every]
        names = Places()
        self._values = as_goodness(values)
        """The goodness of each floor; those of one expectation after those of another."""
        self._properties = np.asarray(list(map(names.__getitem__, chain.from_iterable(needs))), dtype=np.int64)
        """Of which property it is, by its place among the names."""
        self._names = list(names)
        self._counts = np.asarray(list(map(len, needs)), dtype=np.int64)
        self._ends = np.cumsum(self._counts)

    def of(self, places: Sequence[int], columns: Columns) -> Matrix:
        """:attr:`Expectation.asked` of some, one in each column of the result."""
        counts = self._counts[places]
        ends = np.cumsum(counts)
        floors = np.repeat(self._ends[places] - ends, counts) + np.arange(ends[-1] if len(ends) else 0)
        properties = self._properties[floors]
        rows = np.zeros(len(self._names), dtype=np.int64)
        for each in dict.fromkeys(properties.tolist()):
            rows[each] = columns.place(self._names[each])
        found = np.full((len(columns), len(places)), NOWHERE)
        found[rows[properties], np.repeat(np.arange(len(places)), counts)] = self._values[floors]
        return found


def floors_of(expectations: Sequence[Expectation], columns: Columns) -> Matrix:
    """:attr:`Expectation.asked` of all of them."""
    return Asked(expectations).of(range(len(expectations)), columns)
