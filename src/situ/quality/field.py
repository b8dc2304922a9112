"""Fields: expectations to which the same profiles are relevant, against where these profiles are by a plan.

Everything is kept as matrices of goodness, so that whom a move serves and who could serve somebody is found by
comparing arrays. A profile that is relevant to several fields has a place in each of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from situ.quality.cost import Constant, Points
from situ.quality.expectation import Expectation
from situ.quality.operating import costs_at
from situ.quality.problem import STAY, Target, point_at
from situ.quality.profile import Capability, Profile
from situ.quality.property import Point
from situ.quality.rows import Columns, Flags, Matrix, Numbers, at_least, at_most, first_that_meet

_UNKNOWN = math.nan


class Field:
    """One set of relevant profiles, in the order of their ids."""

    def __init__(
        self, expectations: Sequence[Expectation], profiles: Sequence[Profile], targets: Mapping[str, Target]
    ) -> None:
        self.expectations = expectations
        self.profiles = profiles
        self.places = {each.id: place for place, each in enumerate(profiles)}
        self.alternatives: dict[str, list[int]] = defaultdict(list)
        """Subscription → the numbers of its expectations."""
        for number, each in enumerate(expectations):
            self.alternatives[each.subscription].append(number)
        self._numbers = {each.id: number for number, each in enumerate(expectations)}
        self._columns = Columns()
        self.floors = self._columns.floors(expectations)
        self.now = self._columns.matrix([point_at(each, targets.get(each.id, STAY)) for each in profiles])
        reach = [(place, mode, point) for place, each in enumerate(profiles) for mode, point in enumerate(each.reach())]
        self.best = self._columns.matrix([point for _, _, point in reach])
        self.owners: Numbers = np.asarray([place for place, _, _ in reach], dtype=np.int64)
        self.modes: Numbers = np.asarray([mode for _, mode, _ in reach], dtype=np.int64)
        """Of the rows of ``best``: whose they are, and the place of the mode."""
        self.met: Flags = first_that_meet(self.floors, self.now[: len(self.floors)]) >= 0
        """By somebody; of those that want several publishers it says nothing."""
        self._prices: Matrix = np.asarray(
            [profiles[place].modes[mode].cost if profiles[place].modes else 0.0 for place, mode, _ in reach]
        )
        self._paid: Matrix = np.asarray([_mode_cost(each, targets.get(each.id, STAY)) for each in profiles])
        """What the modes of rows cost, and those in which profiles are."""
        self._steepness: Matrix | None = None

    def number(self, id: str) -> int:
        """The number of an expectation."""
        return self._numbers[id]

    def asked(self, number: int) -> Matrix:
        return np.asarray(self.floors[:, number])

    def is_met(self, number: int) -> bool:
        least = self.expectations[number].publishers
        return bool(self.met[number]) if least == 1 else len(self.publishers(number)) >= least

    def publishers(self, number: int) -> frozenset[str]:
        """Those that meet an expectation as they are by the plan."""
        return frozenset(self.profiles[place].publisher for place in self.meeting(number))

    def meeting(self, number: int) -> list[int]:
        """The places of the profiles that do."""
        found: list[int] = np.flatnonzero(at_least(self.now, self.asked(number))).tolist()
        return found

    def able(self, number: int) -> Numbers:
        """The rows of ``best`` that would meet an expectation."""
        return np.flatnonzero(at_least(self.best, self.asked(number)))

    def move(self, id: str, target: Target) -> None:
        """A profile is to be somewhere else."""
        place = self.places[id]
        profile = self.profiles[place]
        before, after = self._met_before_and_after(place, point := point_at(profile, target))
        self.now[:, place] = self._columns.vector(point)
        self._paid[place] = _mode_cost(profile, target)
        self.met |= after
        for number in np.flatnonzero(before & ~after).tolist():
            self.met[number] = bool(at_least(self.now, self.asked(number)).any())

    def swayed(self, id: str, target: Target) -> tuple[list[int], list[int]]:
        """Expectations that would be lost, and those that would be won, if a profile moved."""
        place = self.places[id]
        before, after = self._met_before_and_after(place, point_at(self.profiles[place], target))
        lost = np.flatnonzero(before & ~after).tolist()
        won = np.flatnonzero(after & ~before).tolist()
        return [each for each in lost if self._depends_on(place, each)], [
            each for each in won if self._waits_for(place, each)
        ]

    def _depends_on(self, place: int, number: int) -> bool:
        """Whether an expectation is met now and would not be without one of the profiles."""
        return self.is_met(number) and not self._is_enough(number, self._others(place, number))

    def _waits_for(self, place: int, number: int) -> bool:
        """Whether an expectation is not met now and would be with one of the profiles."""
        publisher = self.profiles[place].publisher
        return not self.is_met(number) and self._is_enough(number, self._others(place, number) | {publisher})

    def _others(self, place: int, number: int) -> frozenset[str]:
        return frozenset(self.profiles[each].publisher for each in self.meeting(number) if each != place)

    def _is_enough(self, number: int, publishers: frozenset[str]) -> bool:
        return len(publishers) >= self.expectations[number].publishers

    def _met_before_and_after(self, place: int, point: Point) -> tuple[Flags, Flags]:
        width = len(self.floors)
        after = self._columns.vector(point)[:width]
        return at_most(self.floors, self.now[:width, place]), at_most(self.floors, after)

    # ── what it roughly costs ─────────────────────────────────────────────────────────────────────

    def rough_costs(self, number: int, rows: Numbers) -> Matrix:
        """About what it costs more to be at these rows, good enough for an expectation; NaN where only trying tells."""
        owners, asked = self.owners[rows], self.asked(number)
        found = self._prices[rows] - self._paid[owners]
        for place in np.flatnonzero(asked > -np.inf).tolist():
            gap = np.maximum(asked[place] - self.now[place, owners], 0.0)
            found += np.where(gap > 0, self._steepnesses()[place, owners], 0.0) * gap
        return found

    @cached_property
    def magnitude(self) -> float:
        """The largest cost at any end, and at least 1: how much rounding can matter."""
        capabilities = (one for each in self.profiles for one in each.capabilities.values())
        ends = (costs_at(one.cost, value) for one in capabilities for value in (one.cv, one.best))
        return max(1.0, max(ends, default=0.0), float(self._prices.max(initial=0.0)))

    def _steepnesses(self) -> Matrix:
        if self._steepness is None:
            found = np.zeros_like(self.now)
            for place, each in enumerate(self.profiles):
                steep = {id: steepness(one) for id, one in each.capabilities.items()}
                found[:, place] = np.nan_to_num(self._columns.vector(steep), nan=np.nan, neginf=0.0)
            self._steepness = found
        return self._steepness


def _mode_cost(profile: Profile, target: Target) -> float:
    return profile.mode_named(target.mode or profile.mode).cost if profile.modes else 0.0


def steepness(capability: Capability) -> float:
    """By how much the cost rises with each unit of goodness, if it does so evenly; NaN if not."""
    cost = capability.cost
    if isinstance(cost, Constant):
        return 0.0
    if isinstance(cost, Points) and len(cost.points) == 2:
        (left, before), (right, after) = cost.points
        rise = (after - before) / (right - left) if right > left else _UNKNOWN
        rise = rise if capability.about.maximise else -rise
        within = left <= min(capability.lb, capability.cv) and max(capability.ub, capability.cv) <= right
        return rise if rise >= 0 and within else _UNKNOWN
    return _UNKNOWN
