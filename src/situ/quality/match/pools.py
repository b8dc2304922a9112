"""Skylines: the points of a pool that no other dominates, kept while points come, change and go.

A point dominates another if it has every property of it, each at least as good; of equal points the one with the
smallest key stands for all. Every other point remembers one *guard*, a member of the skyline that dominates it, and is
its *ward*. Whoever keeps a living guard stays dominated, so when a member goes only its own wards are asked again.

Few points are compared with whatever is asked in less time than it takes to keep their skyline: it is found anew when
somebody wants to know it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from situ.quality.property import Point
from situ.quality.rows import Columns, Matrix, Rows, first_that_meet

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

    def __init__(self, columns: Columns) -> None:
        self.points: Rows[Key] = Rows(columns)
        self._is_known = True
        """Whether the rest is up to date."""
        self._members: Rows[Key] = Rows(columns)
        self._guards: dict[Key, Key] = {}
        self._wards: dict[Key, set[Key]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self.points

    @property
    def members(self) -> Rows[Key]:
        """The points that no other dominates."""
        self._find_out()
        return self._members

    @property
    def guards(self) -> Mapping[Key, Key]:
        """Of every point that is not a member."""
        self._find_out()
        return self._guards

    @property
    def sufficient(self) -> Rows[Key]:
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
            self._members = Rows(self.points.columns)
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
