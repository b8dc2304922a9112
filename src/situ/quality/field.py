"""Fields: expectations to which the same profiles are relevant, against where these profiles are by a plan.

Everything is kept as matrices of goodness, so that whom a move serves, and who could serve somebody at about what cost,
is found by comparing arrays. A profile has one row for each point that it can reach, all of them next to each other;
one that is relevant to several fields has rows in each of them.
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
from situ.quality.rows import NOWHERE, Columns, Flags, Matrix, Numbers, at_most, first_that_meet


class Field:
    """One set of relevant profiles, in the order of their ids."""

    def __init__(
        self, expectations: Sequence[Expectation], profiles: Sequence[Profile], targets: Mapping[str, Target]
    ) -> None:
        self.expectations = expectations
        self.profiles = profiles
        self.places = {each.id: place for place, each in enumerate(profiles)}
        self.numbers = {each.id: number for number, each in enumerate(expectations)}
        counts = [len(each.modes) or 1 for each in profiles]
        self.owners: Numbers = np.repeat(np.arange(len(profiles)), counts)
        self.firsts: list[int] = [0, *np.cumsum(counts).tolist()]
        """Where the rows of a profile begin; the row of a mode is so much further as its place."""
        self._columns = Columns()
        self.floors = self._columns.floors(expectations)
        points = [point_at(each, targets.get(each.id, STAY)) for each in profiles]
        now = self._columns.matrix(points)
        self._width = len(now)
        self.best = self._columns.matrix([point for each in profiles for point in each.reach()])
        self.now = np.repeat(now, counts, axis=1)
        if len(self.floors) < self._width:
            lower = np.full((self._width - len(self.floors), len(expectations)), NOWHERE)
            self.floors = np.concatenate([self.floors, lower])
        self._levels = np.where(self.now == NOWHERE, 0.0, self.now)
        self.met: Flags = first_that_meet(self.floors, now) >= 0
        """By somebody. Of those that want several publishers it says nothing."""
        self._paid: Matrix = np.repeat([_mode_cost(each, targets.get(each.id, STAY)) for each in profiles], counts)

    # ── who is served ─────────────────────────────────────────────────────────────────────────────

    @cached_property
    def alternatives(self) -> Mapping[str, list[int]]:
        """Subscription → the numbers of its expectations."""
        found: dict[str, list[int]] = defaultdict(list)
        for number, each in enumerate(self.expectations):
            found[each.subscription].append(number)
        return found

    def is_met(self, number: int) -> bool:
        least = self.expectations[number].publishers
        return bool(self.met[number]) if least == 1 else len(self.publishers(number)) >= least

    def publishers(self, number: int) -> frozenset[str]:
        """Those that meet an expectation as they are by the plan."""
        return frozenset(self.profiles[place].publisher for place in self.meeting(number))

    def meeting(self, number: int) -> list[int]:
        """The places of the profiles that do."""
        found: list[int] = np.unique(self.owners[self._meeting(number)]).tolist()
        return found

    def has_other(self, number: int) -> bool:
        """Whether another alternative of the same subscription is met."""
        some = self.alternatives[self.expectations[number].subscription]
        return len(some) > 1 and any(self.is_met(each) for each in some if each != number)

    def move(self, id: str, target: Target) -> None:
        """A profile is to be somewhere else."""
        place = self.places[id]
        rows = slice(self.firsts[place], self.firsts[place + 1])
        before, after, point = self._before_and_after(place, target)
        self.now[:, rows] = point[:, None]
        self._levels[:, rows] = np.where(point == NOWHERE, 0.0, point)[:, None]
        self._paid[rows] = _mode_cost(self.profiles[place], target)
        self.met |= after
        for number in np.flatnonzero(before & ~after).tolist():
            self.met[number] = self._meeting(number).any()

    def swayed(self, id: str, target: Target) -> tuple[list[int], list[int]]:
        """Expectations that would be lost, and those that would be won, if a profile moved."""
        place = self.places[id]
        before, after, _ = self._before_and_after(place, target)
        lost = np.flatnonzero(before & ~after).tolist()
        won = np.flatnonzero(after & ~before).tolist() if lost else []
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

    def _meeting(self, number: int) -> Flags:
        return np.asarray((self.now >= self.floors[:, number, None]).all(axis=0))

    def _before_and_after(self, place: int, target: Target) -> tuple[Flags, Flags, Matrix]:
        """What a profile meets as it is and after a move, and where it is then."""
        point = self._columns.vector(point_at(self.profiles[place], target))
        return at_most(self.floors, self.now[:, self.firsts[place]]), at_most(self.floors, point), point

    # ── what it roughly costs ─────────────────────────────────────────────────────────────────────

    def rough_costs(self, number: int) -> Matrix:
        """About what it costs more to have each row good enough for an expectation.

        Infinite where that cannot be; NaN where it can be, and only trying tells.
        """
        asked = self.floors[:, number, None]
        with np.errstate(over="ignore", invalid="ignore"):
            gaps = np.maximum(asked - self._levels, 0.0)
            costs = (self._steepness * gaps).sum(axis=0) + self._prices - self._paid
        return np.where((self.best >= asked).all(axis=0), costs, np.inf)

    @cached_property
    def magnitude(self) -> float:
        """The largest cost at any end, and at least 1: how much rounding can matter."""
        capabilities = (one for each in self.profiles for one in each.capabilities.values())
        ends = (costs_at(one.cost, value) for one in capabilities for value in (one.cv, one.best))
        return max(1.0, max(ends, default=0.0), float(self._prices.max(initial=0.0)))

    @cached_property
    def _prices(self) -> Matrix:
        """What the modes of the rows cost."""
        modes = ([mode.cost for mode in each.modes] or [0.0] for each in self.profiles)
        return np.asarray([cost for some in modes for cost in some], dtype=np.float64)

    @cached_property
    def _steepness(self) -> Matrix:
        rises = [{id: steepness(one) for id, one in each.capabilities.items()} for each in self.profiles]
        found = self._columns.matrix(rises)
        found[found == NOWHERE] = 0.0
        return found[:, self.owners]


def steepness(capability: Capability) -> float:
    """By how much the cost rises with each unit of goodness, if it does so evenly; NaN if not."""
    cost = capability.cost
    if isinstance(cost, Constant):
        return 0.0
    if not isinstance(cost, Points) or len(cost.points) != 2:
        return math.nan
    (left, before), (right, after) = cost.points
    if not left <= capability.lb <= capability.ub <= right or left == right:
        return math.nan
    rise = (after - before) / (right - left) * (1.0 if capability.about.maximise else -1.0)
    return rise if rise >= 0 else math.nan


def _mode_cost(profile: Profile, target: Target) -> float:
    return profile.mode_named(target.mode or profile.mode).cost if profile.modes else 0.0
