"""Fields: expectations to which the same profiles are relevant, against where these profiles are by a plan.

Everything is kept as matrices of goodness, so that whom a move serves, and who could serve somebody at about what cost,
is found by comparing arrays. A profile has one row for each point that it can reach. What a pool keeps is taken from
there; a profile that is relevant to several fields has rows in each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from situ.quality.expectation import Expectation
from situ.quality.operating import slopes
from situ.quality.problem import Target, point_at
from situ.quality.profile import Profile
from situ.quality.rows import NOWHERE, Columns, Flags, Matrix, at_least, at_most, first_that_meet
from situ.quality.skyline import Key
from situ.quality.standing import Standing


class Field:
    """One set of relevant profiles. Made by :meth:`of_pool` or :meth:`of_all`."""

    def __init__(
        self,
        *,
        profiles: Mapping[str, Profile],
        columns: Columns,
        keys: Sequence[Key],
        now: Matrix,
        best: Matrix,
        rising: Matrix,
        floors: Matrix,
        place: Callable[[Expectation], int | None],
        expectation: Callable[[int], Expectation],
        several: Sequence[Expectation],
        served: Callable[[], Flags],
        dearest: float,
    ) -> None:
        self.profiles = profiles
        self.keys = keys
        """Of the rows: whose they are, and the place of the mode."""
        self._columns = columns
        self._start = now
        """Where the profile of each row is."""
        self._now = now.copy()
        """Where the profile of each row is by the plan."""
        self._levels = np.where(now == NOWHERE, 0.0, now)
        self._best = best
        self._rising = np.where(rising == NOWHERE, 0.0, rising)
        self.is_even = not np.isnan(self._rising).any()
        """Whether all costs rise evenly, so that no rough cost is NaN."""
        self._floors = floors
        self._place = place
        """Where the floors of an expectation are, if they are here."""
        self._expectation = expectation
        self._several = several
        self._places: dict[str, int] = {}
        self._initially = served
        self._served: Flags | None = None
        """Whose floors are met by the plan, if that is kept."""
        self.dearest = dearest
        """No cost that rises evenly is higher: how much rounding can matter."""
        self._rows: dict[str, list[int]] = {}
        for row, (id, _) in enumerate(keys):
            self._rows.setdefault(id, []).append(row)
        self._prices: Matrix = np.asarray([_price(profiles[id], place) for id, place in keys], dtype=np.float64)
        self._paid = np.asarray([_price(profiles[id], None) for id, _ in keys], dtype=np.float64)
        """What the modes of rows cost, and those in which their profiles are."""

    @classmethod
    def of_pool(cls, standing: Standing, name: str) -> Field:
        """Of one pool that is kept."""
        pool = standing.pool(name)
        assert pool is not None
        points, able = pool.now.points, pool.able.points
        numbers = pool.floors.numbers.tolist()
        return cls(
            profiles=pool.profiles,
            columns=pool.columns,
            keys=able.keys,
            now=points.values[:, [points.place((id, 0)) for id, _ in able.keys]],
            best=able.values,
            rising=pool.rises.values[:, [pool.rises.place(id) for id, _ in able.keys]],
            floors=pool.floors.values,
            place=lambda each: None if each.publishers > 1 else pool.floors.place(standing.number(each.id)),
            expectation=lambda place: standing.expectation(numbers[place]),
            several=standing.wanting_several(name),
            served=lambda: standing.are_satisfied(pool.floors.numbers),
            dearest=pool.dearest,
        )

    @classmethod
    def of_all(cls, expectations: Sequence[Expectation], profiles: Sequence[Profile]) -> Field:
        """Of these profiles, which are relevant to all of these expectations."""
        columns = Columns()
        keys = [(each.id, place) for each in profiles for place in range(len(each.modes) or 1)]
        counts = [len(each.modes) or 1 for each in profiles]
        single = [each for each in expectations if each.publishers == 1]
        places = {each.id: place for place, each in enumerate(single)}
        floors = columns.floors(single)
        costs = [slopes(each) for each in profiles]
        now = columns.matrix([each.current() for each in profiles])
        every = np.concatenate([floors, np.full((len(now) - len(floors), len(single)), NOWHERE)])
        return cls(
            profiles={each.id: each for each in profiles},
            columns=columns,
            keys=keys,
            now=np.repeat(now, counts, axis=1),
            best=columns.matrix([point for each in profiles for point in each.reach()]),
            rising=np.repeat(columns.matrix([each.rises for each in costs]), counts, axis=1),
            floors=every,
            place=lambda each: places.get(each.id),
            expectation=single.__getitem__,
            several=[each for each in expectations if each.publishers > 1],
            served=lambda: first_that_meet(every, now) >= 0,
            dearest=max((each.dearest for each in costs), default=1.0),
        )

    # ── who is served ─────────────────────────────────────────────────────────────────────────────

    def is_met(self, expectation: Expectation) -> bool:
        if self._served is not None and (place := self._places.get(expectation.id)) is not None:
            return bool(self._served[place])
        meeting = self._meeting(expectation)
        return bool(meeting.any()) if expectation.publishers == 1 else self._is_enough(expectation, meeting)

    def meeting(self, expectation: Expectation) -> list[str]:
        """The ids of the profiles that meet an expectation as they are by the plan."""
        return sorted({self.keys[row][0] for row in np.flatnonzero(self._meeting(expectation)).tolist()})

    def meets(self, id: str, expectation: Expectation) -> bool:
        """Whether a profile meets an expectation by the plan."""
        asked = self.asked(expectation)
        return asked is not None and bool((self._now[:, self._rows[id][0]] >= asked).all())

    def firsts_that_meet(self, expectations: Sequence[Expectation], ids: Sequence[str]) -> list[str | None]:
        """For each of some expectations, the first of some profiles that meets it by the plan."""
        points = self._now[:, [self._rows[id][0] for id in ids]]
        asked = [self.asked(each) for each in expectations]
        floors = np.stack([_beyond(len(points)) if each is None else each for each in asked], axis=1)
        return [None if first < 0 else ids[first] for first in first_that_meet(floors, points).tolist()]

    def move(self, id: str, target: Target) -> None:
        """A profile is to be somewhere else."""
        profile = self.profiles[id]
        before = self.where(id)
        if profile.modes:
            rows, after = self._rows[id], self.where(id, target)
            self._now[:, rows] = after[:, None]
            self._levels[:, rows] = np.where(after == NOWHERE, 0.0, after)[:, None]
            self._paid[rows] = profile.mode_named(target.mode or profile.mode).cost
        else:
            (row,) = self._rows[id]
            after = self._now[:, row]
            after[:] = self._start[:, row]
            for name, value in target.values.items():
                place = self._columns.place(name)
                after[place] = self._levels[place, row] = profile.capabilities[name].about.goodness(value)
            for name in profile.capabilities.keys() - target.values.keys():
                place = self._columns.place(name)
                self._levels[place, row] = after[place]
        if self._served is not None:
            self._serve(before, after)

    def begin_with(self, targets: Mapping[str, Target]) -> None:
        """Many profiles are to be somewhere else than they are."""
        rows: list[int] = []
        places: list[int] = []
        points: list[float] = []
        for id in self.profiles.keys() & targets.keys():
            profile, target = self.profiles[id], targets[id]
            if profile.modes:
                self.move(id, target)
                continue
            for name, value in target.values.items():
                rows += self._rows[id]
                places.append(self._columns.place(name))
                points.append(profile.capabilities[name].about.goodness(value))
        self._now[places, rows] = points
        self._levels[places, rows] = points

    def keep_served(self) -> None:
        """From now on keep who is served, instead of finding out."""
        self._served = self._initially()
        self._places = {self._expectation(place).id: place for place in range(len(self._served))}

    def _serve(self, before: Matrix, after: Matrix) -> None:
        served = self._served
        assert served is not None
        met = at_most(self._floors, after)
        served |= met
        if (after < before).any():
            for place in np.flatnonzero(at_most(self._floors, before) & ~met).tolist():
                served[place] = at_least(self._now, self._floors[:, place]).any()

    def met_only_by(self, better: Matrix, worse: Matrix) -> Iterator[Expectation]:
        """Expectations that one point meets and another does not."""
        found = at_most(self._floors, better) & ~at_most(self._floors, worse)
        yield from map(self._expectation, np.flatnonzero(found).tolist())
        for each in self._several:
            asked = self.asked(each)
            if asked is not None and (better >= asked).all() and not (worse >= asked).all():
                yield each

    def where(self, id: str, target: Target | None = None) -> Matrix:
        """The point of a profile by the plan, or by another target."""
        if target is None:
            return self._now[:, self._rows[id][0]].copy()
        profile = self.profiles[id]
        if target.mode or profile.modes:
            return self._columns.vector(point_at(profile, target))[: len(self._now)]
        point = self._start[:, self._rows[id][0]].copy()
        for name, value in target.values.items():
            point[self._columns.place(name)] = profile.capabilities[name].about.goodness(value)
        return point

    def depends_on(self, id: str, expectation: Expectation) -> bool:
        """Whether an expectation is met now and would not be without one of the profiles."""
        meeting = self._meeting(expectation)
        if not self._is_enough(expectation, meeting):
            return False
        meeting[self._rows[id]] = False
        return not self._is_enough(expectation, meeting)

    def waits_for(self, id: str, expectation: Expectation) -> bool:
        """Whether an expectation is not met now and would be with one of the profiles."""
        meeting = self._meeting(expectation)
        if self._is_enough(expectation, meeting):
            return False
        meeting[self._rows[id]] = True
        return self._is_enough(expectation, meeting)

    def _is_enough(self, expectation: Expectation, meeting: Flags) -> bool:
        if expectation.publishers == 1:
            return bool(meeting.any())
        found = {self.profiles[self.keys[row][0]].publisher for row in np.flatnonzero(meeting).tolist()}
        return len(found) >= expectation.publishers

    def _meeting(self, expectation: Expectation) -> Flags:
        asked = self.asked(expectation)
        return np.zeros(len(self.keys), dtype=np.bool_) if asked is None else at_least(self._now, asked)

    def asked(self, expectation: Expectation) -> Matrix | None:
        """The floors of an expectation; None, if it asks for something that no profile has."""
        place = self._places.get(expectation.id)
        if place is None:
            place = self._place(expectation)
        if place is not None:
            return self._floors[:, place]
        found, width = self._columns.vector(expectation.asked), len(self._now)
        return None if (found[width:] > NOWHERE).any() else found[:width]

    # ── what it roughly costs ─────────────────────────────────────────────────────────────────────

    def rough_costs(self, expectation: Expectation) -> Matrix:
        """About what it costs more to have each row good enough for an expectation.

        Infinite where that cannot be; NaN where it can be, and only trying tells.
        """
        asked = self.asked(expectation)
        if asked is None:
            return np.full(len(self.keys), np.inf)
        column = asked[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            costs = np.add.reduce(self._rising * np.maximum(column - self._levels, 0.0), axis=0)
        costs += self._prices - self._paid
        costs[np.logical_or.reduce(self._best < column, axis=0)] = np.inf
        return np.asarray(costs)


def _price(profile: Profile, place: int | None) -> float:
    """What a mode costs; without a place, the current one."""
    if not profile.modes:
        return 0.0
    return profile.mode_named(profile.mode).cost if place is None else profile.modes[place].cost


def _beyond(width: int) -> Matrix:
    """Floors that nobody meets."""
    return np.full(width, np.inf)
