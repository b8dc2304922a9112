"""Expectations against relevant profiles as numpy matrices: who is met by a plan, who could serve at what rough cost.

`near_cheapest` and `clearly_cheapest` compare rough costs, `CheapestProfile` is who is the cheapest by far. `Lookahead`
works out some expectations that are decided next. `PoolMatrix` is one set of relevant profiles, with where each is by
the plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from situ.quality.match.match_index import MatchIndex
from situ.quality.match.point_matrix import (
    NOWHERE,
    Flags,
    Matrix,
    PropertyColumns,
    any_below,
    at_least,
    at_most,
    count_that_meet,
    first_that_meet,
    floors_of,
)
from situ.quality.match.pools import Key, ProfileMatrix
from situ.quality.model.allocation_problem import STAY, Target
from situ.quality.model.declarations import Expectation, Profile

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Rough costs: what is the cheapest by far, and what is so near to it that only exact costs tell. Costs are infinite
# where something cannot be had.

CLOSE = 1e-9
"""Rough costs that differ by less, as a part of the largest cost, may be in another order in truth."""
_FEW = 32
"""Costs that are compared in less time than it takes numpy to begin."""


def near_cheapest(costs: Matrix, close: float) -> list[int]:
    """The places of what costs least, or hardly more; none if nothing can be had."""
    if len(costs) <= _FEW:
        listed = costs.tolist()
        least = min(listed, default=math.inf)
        return [place for place, cost in enumerate(listed) if cost <= least + close] if least < math.inf else []
    least = costs.item(costs.argmin())
    return (costs <= least + close).nonzero()[0].tolist() if least < math.inf else []


def clearly_cheapest(costs: Matrix, close: float) -> int | None:
    """The place of what costs least, if nothing else is near."""
    near = near_cheapest(costs, close)
    return near[0] if len(near) == 1 else None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The best candidate for an expectation, where rough costs alone tell that it is. Kept as a point, since most are moved
# further by others before anybody wants to know to what in values.


class CheapestProfile(NamedTuple):
    """A profile that is the cheapest by far, at costs that rise evenly, in the mode in which it is by the plan."""

    profile: str
    field: PoolMatrix
    before: Matrix
    after: Matrix
    """Its point by the plan, and the one where it would be good enough."""
    mode: str
    """By the plan, if it is another than now."""
    is_dear: bool
    """Whether it costs anything to get there."""


def target_at(profile: Profile, point: Matrix, columns: PropertyColumns, *, mode: str, start: Target) -> Target:
    """To what a profile is moved that is at a point, by a plan that began with another target."""
    values, goodness = dict(start.values), point.tolist()
    for name, capability in profile.capabilities.items():
        about, there = capability.about, goodness[columns.place(name)]
        if there != about.goodness(values.get(name, capability.cv)):
            values[name] = about.value(there)
    return Target(values=values, mode=mode)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Looking ahead: of some expectations that are decided next, who is met by the plan and what the others roughly cost.
# Worked out for all of them and all rows at once, and after that only for rows that move: deciding on one after the
# other takes no more than comparing the numbers of its row.


class Lookahead:
    """Expectations of one field, in their order. Where its profiles are is the field's, which tells what moves.

    Costs that are beyond all numbers are infinite or NaN here, and nobody wants to be warned of them: whoever moves
    things ignores that (``np.errstate``), once for all its moves.
    """

    def __init__(
        self,
        expectations: Sequence[Expectation],
        asked: Matrix,
        *,
        now: Matrix,
        best: Matrix,
        rising: Matrix,
        surcharges: Matrix,
    ) -> None:
        self.places = {each.id: place for place, each in enumerate(expectations)}
        self.asked = asked
        """What they ask, one in each column."""
        self._now = now
        self._rising = rising
        self._surcharges = surcharges
        self._out_of_reach = any_below(best, asked)
        self._meeting = ~any_below(now, asked)
        """Of expectations by rows, whether it is met there by the plan."""
        self._met: Flags = np.logical_or.reduce(self._meeting, axis=1)
        self._costs: Matrix = self._costs_now()
        """Of expectations by rows."""

    def is_met(self, place: int) -> bool:
        return bool(self._met[place])

    def costs(self, place: int) -> Matrix:
        """About what it costs more to have each row good enough: infinite where that cannot be, NaN where only trying
        tells."""
        costs: Matrix = self._costs[place]
        return costs

    def asked_by(self, expectations: Sequence[Expectation]) -> Matrix | None:
        """What some of them ask; None, if others are among them."""
        places = [place for each in expectations if (place := self.places.get(each.id)) is not None]
        return self.asked.take(places, axis=1) if len(places) == len(expectations) else None

    def improve(self, row: int) -> None:
        """The profile of a row, which has no other, is better than it was in some properties, and worse in none."""
        now = self._now[:, row, None]
        costs = self._rising[:, row].dot(_lacking(self.asked, now))
        costs[self._out_of_reach[:, row]] = np.inf
        self._costs[:, row] = costs
        meeting = np.logical_and.reduce(self.asked <= now)
        self._meeting[:, row] = meeting
        self._met |= meeting

    def change(self, rows: Sequence[int]) -> None:
        """The profile of these rows is somewhere else."""
        now = self._now[:, rows[0], None]
        costs = self._rising[:, rows[0]].dot(_lacking(self.asked, now))[:, None] + self._surcharges.take(rows)
        costs[self._out_of_reach.take(rows, axis=1)] = np.inf
        self._costs[:, rows] = costs
        self._meeting[:, rows] = np.logical_and.reduce(self.asked <= now)[:, None]
        self._met = np.logical_or.reduce(self._meeting, axis=1)

    def _costs_now(self) -> Matrix:
        with np.errstate(over="ignore", invalid="ignore"):
            lacking = _lacking(self.asked[:, :, None], self._now[:, None, :])
            lacking *= self._rising[:, None, :]
            costs: Matrix = np.add.reduce(lacking)
            costs += self._surcharges
        costs[self._out_of_reach] = np.inf
        return costs


def _lacking(asked: Matrix, now: Matrix) -> Matrix:
    """How much better things have to be. What is neither there nor asked for is NaN in between, and lacks nothing."""
    lacking = asked - now
    return np.fmax(lacking, 0.0, out=lacking)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The matrices. A *field* is a set of expectations to which the same profiles are relevant. Everything is kept as
# matrices of goodness, so that whom a move serves, and who could serve somebody at about what cost, is found by
# comparing arrays. A profile has one row for each point that it can reach, which is a column of the arrays (see
# `Matrix`). What a pool keeps is taken from there; a profile that is relevant to several fields has rows in each of
# them.


class PoolMatrix:
    """One set of relevant profiles. Made by :meth:`of_pool` or :meth:`of_all`."""

    def __init__(
        self,
        *,
        profiles: Mapping[str, Profile],
        columns: PropertyColumns,
        keys: Sequence[Key],
        now: Matrix,
        best: Matrix,
        rising: Matrix,
        floors: Matrix,
        places: Callable[[Sequence[Expectation]], Sequence[int | None]],
        expectation: Callable[[int], Expectation],
        several: Sequence[Expectation],
        dearest: float,
    ) -> None:
        self.profiles = profiles
        self.keys = keys
        """Of the rows: whose they are, and the place of the mode."""
        self._columns = columns
        self._now = now.copy()
        """Where the profile of each row is by the plan."""
        self._best = best
        self._rising = np.where(rising == NOWHERE, 0.0, rising)
        self.is_even = not np.isnan(self._rising).any()
        """Whether all costs rise evenly, so that no rough cost is NaN."""
        self._floors = floors
        self._places = places
        """Where the floors of expectations are, if they are here."""
        self._expectation = expectation
        self._several = several
        self._ahead: Lookahead | None = None
        """Of those that are decided next."""
        self.close = CLOSE * dearest
        """Rough costs that differ by less may be in another order in truth."""
        self._rows: dict[str, list[int]] = {}
        for row, (id, _) in enumerate(keys):
            self._rows.setdefault(id, []).append(row)
        self._prices: Matrix = np.zeros(len(keys))
        self._surcharges: Matrix = np.zeros(len(keys))
        """What the modes of rows cost, and how much more than those in which their profiles are by the plan."""
        self._modes: dict[str, str] = {}
        """Of profiles that are in another than now by the plan."""
        self._other_modes: set[int] = set()
        """Rows of modes in which their profiles are not by the plan."""
        for id, rows in self._rows.items():
            if modes := profiles[id].modes:
                self._prices[rows] = [modes[keys[row][1]].cost for row in rows]
                self._note_mode(id, "")

    @classmethod
    def of_pool(cls, standing: MatchIndex, name: str) -> PoolMatrix:
        """Of one pool that is kept."""
        pool = standing.pool(name)
        assert pool is not None
        points, able = pool.now.points, pool.able.points
        numbers = pool.floors.numbers
        return cls(
            profiles=pool.profiles,
            columns=pool.columns,
            keys=able.keys,
            now=points.values.take([points.place((id, 0)) for id, _ in able.keys], axis=1),
            best=able.values,
            rising=pool.rises.values.take([pool.rises.place(id) for id, _ in able.keys], axis=1),
            floors=pool.floors.values,
            places=lambda some: pool.floors.places(standing.numbers(some)),
            expectation=lambda place: standing.expectation(int(numbers[place])),
            several=standing.wanting_several(name),
            dearest=pool.dearest,
        )

    @classmethod
    def of_all(cls, expectations: Sequence[Expectation], profiles: Sequence[Profile]) -> PoolMatrix:
        """Of these profiles, which are relevant to all of these expectations."""
        columns = PropertyColumns()
        single = [each for each in expectations if each.publishers == 1]
        places = {each.id: place for place, each in enumerate(single)}
        (floors,) = floors_of(single).of(range(len(single)), columns)
        by_id = {each.id: each for each in profiles}
        given = ProfileMatrix(by_id).of(range(len(by_id)), columns)
        counts = [len(each.modes) or 1 for each in profiles]
        return cls(
            profiles=by_id,
            columns=columns,
            keys=given.keys,
            now=np.repeat(given.now, counts, axis=1),
            best=given.best,
            rising=np.repeat(given.rises, counts, axis=1),
            floors=columns.widened(floors),
            places=lambda some: [places.get(each.id) for each in some],
            expectation=single.__getitem__,
            several=[each for each in expectations if each.publishers > 1],
            dearest=given.dearest,
        )

    # ── who is served ─────────────────────────────────────────────────────────────────────────────

    def look_ahead(self, expectations: Sequence[Expectation]) -> None:
        """These are decided next, each by one publisher, and no others before this is said again."""
        self._ahead = self._looking_ahead(expectations) if expectations else None

    def is_met(self, expectation: Expectation) -> bool:
        if self._ahead is not None and (place := self._ahead.places.get(expectation.id)) is not None:
            return self._ahead.is_met(place)
        meeting = self._meeting(expectation)
        return bool(meeting.any()) if expectation.publishers == 1 else self._is_enough(expectation, meeting)

    def meeting(self, expectation: Expectation) -> list[str]:
        """The ids of the profiles that meet an expectation as they are by the plan."""
        return sorted({self.keys[row][0] for row in np.flatnonzero(self._meeting(expectation)).tolist()})

    def meets(self, id: str, expectation: Expectation) -> bool:
        """Whether a profile meets an expectation by the plan."""
        return _meets(self._now[:, self._rows[id][0]], self.asked(expectation))

    def firsts_that_meet(self, expectations: Sequence[Expectation], ids: Sequence[str]) -> list[str | None]:
        """For each of some expectations, the first of some profiles that meets it by the plan."""
        points = self._now.take([self._rows[id][0] for id in ids], axis=1)
        firsts = first_that_meet(self._asked_by(expectations), points).tolist()
        return [None if first < 0 else ids[first] for first in firsts]

    def move(self, id: str, before: Target, target: Target) -> None:
        """A profile is to be somewhere else than it was by the plan before."""
        profile, rows = self.profiles[id], self._rows[id]
        if profile.modes:
            after = self.where(id, target)
            self._now[:, rows] = after[:, None]
            self._note_mode(id, target.mode)
            if self._ahead is not None:
                self._ahead.change(rows)
            return
        (row,) = rows
        is_worse = False
        for name in {**before.values, **target.values}:
            place, capability = self._columns.place(name), profile.capabilities[name]
            value = capability.about.goodness(target.values.get(name, capability.cv))
            is_worse = is_worse or value < self._now[place, row]
            self._now[place, row] = value
        if self._ahead is None:
            return
        if is_worse:
            self._ahead.change(rows)
        else:
            self._ahead.improve(row)

    def foremost(self, expectation: Expectation) -> CheapestProfile | None:
        """Who is cheapest for one that is decided next, if it is so by far, at costs that rise evenly, in its mode."""
        ahead = self._ahead
        if ahead is None or not self.is_even or (place := ahead.places.get(expectation.id)) is None:
            return None
        costs = ahead.costs(place)
        row = clearly_cheapest(costs, self.close)
        if row is None or row in self._other_modes:
            return None
        id, _ = self.keys[row]
        before = self._now[:, row].copy()
        after = np.maximum(before, ahead.asked[:, place])
        return CheapestProfile(id, self, before, after, self._modes.get(id, ""), is_dear=costs.item(row) > self.close)

    def raise_to(self, foremost: CheapestProfile) -> None:
        """It is to be where it is good enough."""
        assert self._ahead is not None
        rows = self._rows[foremost.profile]
        if len(rows) == 1:
            self._now[:, rows[0]] = foremost.after
            self._ahead.improve(rows[0])
        else:
            self._now[:, rows] = foremost.after[:, None]
            self._ahead.change(rows)

    def target(self, id: str, start: Target) -> Target:
        """To what a profile is moved by a plan that began with another target."""
        point, mode = self._now[:, self._rows[id][0]], self._modes.get(id, "")
        return target_at(self.profiles[id], point, self._columns, mode=mode, start=start)

    def between(self, foremost: CheapestProfile, start: Target) -> tuple[Target, Target]:
        """From what to what a profile would have been moved."""
        profile, mode = self.profiles[foremost.profile], foremost.mode
        before = target_at(profile, foremost.before, self._columns, mode=mode, start=start)
        return before, target_at(profile, foremost.after, self._columns, mode=mode, start=start)

    def begin_with(self, targets: Mapping[str, Target]) -> None:
        """Many profiles are to be somewhere else than they are."""
        rows: list[int] = []
        places: list[int] = []
        points: list[float] = []
        for id in self.profiles.keys() & targets.keys():
            profile, target = self.profiles[id], targets[id]
            if profile.modes:
                self.move(id, STAY, target)
                continue
            for name, value in target.values.items():
                rows += self._rows[id]
                places.append(self._columns.place(name))
                points.append(profile.capabilities[name].about.goodness(value))
        self._now[places, rows] = points

    def _note_mode(self, id: str, mode: str) -> None:
        profile, rows = self.profiles[id], self._rows[id]
        self._modes[id] = mode
        mode = mode or profile.mode
        there = profile.mode_named(mode)
        self._surcharges[rows] = self._prices[rows] - there.cost
        self._other_modes.update(rows)
        self._other_modes.difference_update(row for row in rows if profile.modes[self.keys[row][1]] is there)

    def lost_without(self, id: str, target: Target) -> list[Expectation]:
        """Expectations that a profile meets, by itself alone, and would not if it were moved."""
        return self._swayed(self.where(id), self.where(id, target), meeting=1)

    def won_with(self, id: str, target: Target) -> list[Expectation]:
        """Expectations that nobody meets, and a profile would if it were moved."""
        return self._swayed(self.where(id, target), self.where(id), meeting=0)

    def _swayed(self, better: Matrix, worse: Matrix, *, meeting: int) -> list[Expectation]:
        """Expectations that one point meets and another does not, and so many profiles by the plan; all of them, of
        those that want several."""
        found = np.flatnonzero(at_most(self._floors, better) & ~at_most(self._floors, worse))
        if len(found):
            points = self._now.take([rows[0] for rows in self._rows.values()], axis=1)
            found = found[count_that_meet(self._floors.take(found, axis=1), points) == meeting]
        asked = ((each, self.asked(each)) for each in self._several)
        several = [each for each, floors in asked if _meets(better, floors) and not _meets(worse, floors)]
        return [*map(self._expectation, found.tolist()), *several]

    def where(self, id: str, target: Target | None = None) -> Matrix:
        """The point of a profile by the plan, or by another target."""
        if target is None:
            return self._now[:, self._rows[id][0]].copy()
        profile = self.profiles[id]
        point = self._best[:, self._row_in(profile, id, target)].copy()
        for name, capability in profile.capabilities.items():
            value = target.values.get(name, capability.cv)
            point[self._columns.place(name)] = capability.about.goodness(value)
        return point

    def _row_in(self, profile: Profile, id: str, target: Target) -> int:
        """The row of a profile that has the values of its mode in a target."""
        rows = self._rows[id]
        if not profile.modes:
            return rows[0]
        name = target.mode or profile.mode
        return next(row for row in rows if profile.modes[self.keys[row][1]].name == name)

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
        if self._ahead is not None and (place := self._ahead.places.get(expectation.id)) is not None:
            return self._ahead.asked[:, place]
        (at,) = self._places([expectation])
        if at is not None:
            return self._floors[:, at]
        found, width = self._columns.vector(expectation.asked), len(self._now)
        return None if (found[width:] > NOWHERE).any() else found[:width]

    def _asked_by(self, expectations: Sequence[Expectation]) -> Matrix:
        """The floors of some expectations; such that nobody meets, if one asks for something that no profile has."""
        if self._ahead is not None and (found := self._ahead.asked_by(expectations)) is not None:
            return found
        places = [each for each in self._places(expectations) if each is not None]
        if len(places) == len(expectations):
            return self._floors.take(places, axis=1)  # along memory, unlike what an index of a list gives
        width = len(self._now)
        asked = [self.asked(each) for each in expectations]
        return np.stack([np.full(width, np.inf) if each is None else each for each in asked], axis=1)

    # ── what it roughly costs ─────────────────────────────────────────────────────────────────────

    def rough_costs(self, expectation: Expectation) -> Matrix:
        """About what it costs more to have each row good enough for an expectation.

        Infinite where that cannot be; NaN where it can be, and only trying tells.
        """
        ahead = self._ahead
        if ahead is None or expectation.id not in ahead.places:
            ahead = self._looking_ahead([expectation])
        return ahead.costs(ahead.places[expectation.id])

    def _looking_ahead(self, expectations: Sequence[Expectation]) -> Lookahead:
        return Lookahead(
            expectations,
            self._asked_by(expectations),
            now=self._now,
            best=self._best,
            rising=self._rising,
            surcharges=self._surcharges,
        )


def _meets(point: Matrix, asked: Matrix | None) -> bool:
    return asked is not None and bool((point >= asked).all())
