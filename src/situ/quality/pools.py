"""Pools: profiles that are relevant alike, with their two skylines, and what expectations ask of them.

By current values alone somebody who could do more is hidden, by reach alone somebody who satisfies already; so a pool
keeps a skyline of each. A profile that dominates but is invisible to a subscription must not hide a visible one, which
is why there are pools. Floors are a table beside the skylines: what a point meets is found by comparing arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from situ.quality.operating import slope
from situ.quality.profile import Profile
from situ.quality.property import Point
from situ.quality.provided import Points
from situ.quality.rows import Columns, Flags, Matrix, Numbers, Rows, at_least, at_most
from situ.quality.skyline import Key, Skyline


class Floors:
    """What expectations, by their numbers, ask of a pool."""

    def __init__(self, columns: Columns) -> None:
        self._rows: Rows[int] = Rows(columns)
        self._numbers: Numbers = np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def numbers(self) -> Numbers:
        """Of the expectations, in the order of the rows."""
        return self._numbers[: len(self._rows)]

    @property
    def values(self) -> Matrix:
        return self._rows.values

    def of(self, numbers: Iterable[int]) -> Matrix:
        """The floors of some expectations."""
        return self._rows.values[:, [self._rows.place(number) for number in numbers]]

    def put_new(self, numbers: Sequence[int], floors: Matrix) -> None:
        """Write down what expectations ask whose numbers are not here yet, one in each column."""
        first = len(self._rows)
        self._rows.put_new(numbers, floors)
        if len(self._rows) > len(self._numbers):
            grown = np.zeros(2 * len(self._rows), dtype=np.int64)
            grown[:first] = self._numbers[:first]
            self._numbers = grown
        self._numbers[first : len(self._rows)] = numbers

    def places(self, numbers: Iterable[int]) -> list[int | None]:
        """Where the floors of expectations are, of those that have some here."""
        return self._rows.places(numbers)

    def drop(self, number: int) -> None:
        place = self._rows.drop(number)
        self._numbers[place] = self._numbers[len(self._rows)]


class Pool:
    """The profiles of one pool."""

    def __init__(self) -> None:
        self.columns = Columns()
        self.profiles: dict[str, Profile] = {}
        self.now = Skyline(self.columns)
        """By current points."""
        self.able = Skyline(self.columns)
        """By the best points that can be had."""
        self.floors = Floors(self.columns)
        self.rises: Rows[str] = Rows(self.columns)
        """By how much the cost of a free property rises with each unit of goodness; NaN where it does not evenly."""
        self.dearest = 1.0
        """No cost that rises evenly was ever higher."""

    def put(self, profile: Profile) -> bool:
        """Put a profile; whether a point of it is another than before."""
        id = profile.id
        before = self.profiles.get(id)
        self.profiles[id] = profile
        costs = {name: slope(each) for name, each in profile.capabilities.items()}
        self.rises.put(id, self.columns.vector({name: rise for name, (rise, _) in costs.items()}))
        self.dearest = max(self.dearest, *(dearest for _, dearest in costs.values()), 1.0)
        reach = profile.reach()
        changed = self.now.put((id, 0), profile.current())
        for place, point in enumerate(reach):
            changed |= self.able.put((id, place), point)
        for place in range(len(reach), len(before.modes or (None,)) if before is not None else 0):
            self.able.drop((id, place))
            changed = True
        return changed

    def put_new(self, profiles: Mapping[str, Profile], points: Points) -> None:
        """Put many at once, by their ids, that are not here yet; with what they provide in the columns of the pool."""
        self.profiles |= profiles
        self.rises.put_new([*profiles], points.rises)
        self.dearest = max(self.dearest, points.dearest)
        self.now.put_new([(id, 0) for id in profiles], points.now)
        self.able.put_new(points.keys, points.best)

    def drop(self, id: str) -> None:
        profile = self.profiles.pop(id)
        self.rises.drop(id)
        self.now.drop((id, 0))
        for place in range(len(profile.modes) or 1):
            self.able.drop((id, place))

    def met_by(self, profile: Profile) -> tuple[Flags, Flags]:
        """Which floors its current point meets, and which some point that it can reach."""
        now, *reach = [self.columns.vector(point) for point in (profile.current(), *profile.reach())]
        floors = self.floors.values
        able = np.zeros(len(self.floors), dtype=np.bool_)
        for each in reach:
            able |= at_most(floors, each)
        return at_most(floors, now), able

    def candidates(self, asked: Point) -> tuple[frozenset[str], frozenset[str]]:
        """Who of all meets what is asked now, and who does not but could."""
        vector = self.columns.vector(asked)
        now = _ids(self.now.points, at_least(self.now.points.values, vector))
        return now, _ids(self.able.points, at_least(self.able.points.values, vector)) - now


def _ids(points: Rows[Key], chosen: Flags) -> frozenset[str]:
    return frozenset(points.keys[place][0] for place in np.flatnonzero(chosen).tolist())
