"""Pools: profiles that are relevant alike, with the skylines of what they do now and what they could do.

`Skyline` keeps the undominated points, `ProfileMatrix` has many profiles as matrices, `Pool` puts two skylines together
with the `Floors` that expectations ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from situ.quality.match.point_matrix import (
    Flags,
    Matrix,
    Numbers,
    PointMatrix,
    PropertyColumns,
    ValueColumns,
    as_goodness,
    at_least,
    at_most,
    first_that_meet,
)
from situ.quality.model.allocation_problem import slope
from situ.quality.model.declarations import Point, Profile

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Skylines. A point dominates another if it has every property of it, each at least as good; of equal points the one
# with the smallest key stands for all. Every other point remembers one *guard*, a member of the skyline that dominates
# it, and is its *ward*. Whoever keeps a living guard stays dominated, so when a member goes only its own wards are
# asked again.
#
# Few points are compared with whatever is asked in less time than it takes to keep their skyline: it is found anew when
# somebody wants to know it.

Key = tuple[str, int]
"""A profile and one of its points: the place of a mode, or 0."""

_BLOCK = 256
"""Points that are compared with each other at once."""
_FEW = 32
"""Points, up to which their skyline is not kept."""


def dominates(above: Point, below: Point) -> bool:
    """Whether a point has every property of another, each at least as good. Equal points dominate each other."""
    return all(id in above and above[id] >= value for id, value in below.items())


class Skyline:
    """All points of a pool, and which of them are undominated."""

    def __init__(self, columns: PropertyColumns) -> None:
        self.points: PointMatrix[Key] = PointMatrix(columns)
        self._is_known = True
        """Whether the rest is up to date."""
        self._members: PointMatrix[Key] = PointMatrix(columns)
        self._guards: dict[Key, Key] = {}
        self._wards: dict[Key, set[Key]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self.points

    @property
    def members(self) -> PointMatrix[Key]:
        """The points that no other dominates."""
        self._find_out()
        return self._members

    @property
    def sufficient(self) -> PointMatrix[Key]:
        """Points that meet whatever any point does: the members, or all while those are not known."""
        return self._members if self._is_known else self.points

    def put(self, key: Key, point: Point) -> bool:
        """Insert a point, or change it; whether anything was changed."""
        vector = self.points.columns.vector(point)
        if key in self.points:
            if np.array_equal(self.points.vector(key), vector):
                return False
            self.drop(key)
        self.put_new([key], vector[:, None])
        return True

    def put_new(self, keys: Sequence[Key], matrix: Matrix) -> None:
        """Insert many points whose keys are new, one in each column."""
        first = len(self.points)
        self.points.put_new(keys, matrix)
        if self._is_kept():
            self._admit(keys, self.points.values[:, first:])

    def drop(self, key: Key) -> None:
        """Take a point out. If it was a member, its wards are inserted again, in the order of their keys."""
        self.points.drop(key)
        if not self._is_kept():
            return
        guard = self._guards.pop(key, None)
        if guard is not None:
            self._wards[guard].remove(key)
            return
        self._members.drop(key)
        wards = sorted(self._wards.pop(key, ()))
        if wards:
            for ward in wards:
                del self._guards[ward]
            self._admit(wards, self.points.values[:, [self.points.place(ward) for ward in wards]])

    def _is_kept(self) -> bool:
        """Whether a skyline that is known is to be changed with the points, as there are many."""
        if len(self.points) <= _FEW:
            self._is_known = False
        elif not self._is_known:
            self._find_out()
            return False
        return self._is_known

    def _find_out(self) -> None:
        if not self._is_known:
            self._is_known = True
            self._members = PointMatrix(self.points.columns)
            self._guards.clear()
            self._wards.clear()
            self._admit(self.points.keys, self.points.values)

    def _admit(self, keys: Sequence[Key], matrix: Matrix) -> None:
        """Give each of these points a guard, or make it a member.

        From the best to the worst in lexical order, equal ones by key: so a point is dominated by earlier ones only.
        """
        if len(keys) > 1:
            by_key = sorted(range(len(keys)), key=keys.__getitem__)
            if len(matrix):
                by_key = np.asarray(by_key)[np.lexsort(-matrix[::-1].take(by_key, axis=1))].tolist()
            keys, matrix = [keys[place] for place in by_key], matrix.take(by_key, axis=1)
        for start in range(0, len(keys), _BLOCK):
            self._admit_block(keys[start : start + _BLOCK], matrix[:, start : start + _BLOCK])

    def _admit_block(self, keys: Sequence[Key], matrix: Matrix) -> None:
        free = self._unguarded(keys, matrix)
        if len(free) < len(keys):
            keys, matrix = [keys[place] for place in free], matrix.take(free, axis=1)
        if len(keys) > 1:
            # The first that is at least as good is the point itself, or one that is itself undominated.
            firsts = first_that_meet(matrix, matrix).tolist()
            for place, first in enumerate(firsts):
                if first != place:
                    self._guard(keys[place], keys[first])
            new = [place for place, first in enumerate(firsts) if first == place]
            keys, matrix = [keys[place] for place in new], matrix.take(new, axis=1)
        if keys:
            self._join(keys, matrix)

    def _unguarded(self, keys: Sequence[Key], matrix: Matrix) -> list[int]:
        """The places of those that no member dominates; the others become its wards."""
        members = self._members.values
        if not self._members.keys:
            return list(range(len(keys)))
        found: list[int] = []
        for place, first in enumerate(first_that_meet(matrix, members).tolist()):
            if first < 0:
                found.append(place)
                continue
            member = self._members.keys[first]
            if keys[place] < member and np.array_equal(members[:, first], matrix[:, place]):
                found.append(place)
            else:
                self._guard(keys[place], member)
        return found

    def _join(self, keys: Sequence[Key], matrix: Matrix) -> None:
        """Take in members; those that they dominate leave, and they and their wards get a new guard."""
        if self._members.keys:
            former = list(self._members.keys)
            for member, first in zip(former, first_that_meet(self._members.values, matrix).tolist(), strict=True):
                if first >= 0:
                    self._members.drop(member)
                    for ward in self._wards.pop(member, ()):
                        self._guard(ward, keys[first])
                    self._guard(member, keys[first])
        self._members.put_new(keys, matrix)

    def _guard(self, ward: Key, guard: Key) -> None:
        self._guards[ward] = guard
        self._wards.setdefault(guard, set()).add(ward)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What many profiles provide: where each is, where it could be, and how its costs rise on the way.


class ProfilePoints(NamedTuple):
    """Some profiles as matrices: one column for each, but for what they can reach one for each of their modes."""

    now: Matrix
    """:meth:`Profile.current`."""
    keys: list[Key]
    """Whose the points are that can be reached, and the places of modes."""
    best: Matrix
    """:meth:`Profile.reach`."""
    rises: Matrix
    """By how much the cost of a free property rises with each unit of goodness; NaN where it does not evenly."""
    dearest: float
    """The highest cost of those that do, or 1."""


class ProfileMatrix:
    """Profiles, by their ids and by their places among these."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self._ids = [*profiles]
        self._profiles = [*profiles.values()]
        free = [each.capabilities for each in self._profiles]
        capabilities = [capability for each in free for capability in each.values()]
        costs = [slope(each) for each in capabilities]
        self._free = ValueColumns(
            free,
            as_goodness([each.cv if each.about.maximise else -each.cv for each in capabilities]),
            as_goodness([each.ub if each.about.maximise else -each.lb for each in capabilities]),
            [rise for rise, _ in costs],
            [dearest for _, dearest in costs],
        )

    def of(self, places: Sequence[int], columns: PropertyColumns) -> ProfilePoints:
        """Some of the profiles."""
        now, best, rises, dearest = self._free.of(places, columns)
        chosen = [self._profiles[place] for place in places]
        keys: list[Key] = [
            (self._ids[place], mode) for place in places for mode in range(len(self._profiles[place].modes) or 1)
        ]
        if any(each.modes for each in chosen):
            now, best, rises = _with_modes(chosen, columns, now, best, rises)
        return ProfilePoints(now, keys, best, rises, float(np.max(dearest, initial=1.0)))


def _with_modes(
    profiles: Sequence[Profile], columns: PropertyColumns, now: Matrix, best: Matrix, rises: Matrix
) -> tuple[Matrix, Matrix, Matrix]:
    """The same, with the properties that are in modes."""
    for each in profiles:
        for id in each.moded:
            columns.place(id)
    now, best, rises = (columns.widened(each) for each in (now, best, rises))
    best = np.repeat(best, [len(each.modes) or 1 for each in profiles], axis=1)
    point = 0
    for place, profile in enumerate(profiles):
        for mode in profile.modes:
            for id, about in profile.moded.items():
                best[columns.place(id), point] = value = about.goodness(mode.values[id])
                if mode.name == profile.mode:
                    now[columns.place(id), place] = value
            point += 1
        point += not profile.modes
    return now, best, rises


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Pools. By current values alone somebody who could do more is hidden, by reach alone somebody who satisfies already; so
# a pool keeps a skyline of each. A profile that dominates but is invisible to a subscription must not hide a visible
# one, which is why there are pools. Floors are a table beside the skylines: what a point meets is found by comparing
# arrays.


class Floors:
    """What expectations, by their numbers, ask of a pool."""

    def __init__(self, columns: PropertyColumns) -> None:
        self._rows: PointMatrix[int] = PointMatrix(columns)
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
        self.columns = PropertyColumns()
        self.profiles: dict[str, Profile] = {}
        self.now = Skyline(self.columns)
        """By current points."""
        self.able = Skyline(self.columns)
        """By the best points that can be had."""
        self.floors = Floors(self.columns)
        self.rises: PointMatrix[str] = PointMatrix(self.columns)
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

    def put_new(self, profiles: Mapping[str, Profile], points: ProfilePoints) -> None:
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


def _ids(points: PointMatrix[Key], chosen: Flags) -> frozenset[str]:
    return frozenset(points.keys[place][0] for place in np.flatnonzero(chosen).tolist())
