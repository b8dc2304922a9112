"""Costs: what it costs to operate at a value of a property. Abstract numbers, never negative.

A cost is a number, straight lines between points, a table by level, or a formula (:mod:`situ.quality.formula`). All of
them have a value everywhere: beyond its ends a line goes on as it ended, and a formula that fails is not affordable.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Protocol

UNAFFORDABLE = 1e300
"""What a formula costs where it has no value. A number, so that differences of costs are numbers, too."""


class Cost(Protocol):
    """The cost of operating at a value. The cheapest value at least as good as another is that one or a knot."""

    @property
    def knots(self) -> tuple[float, ...]:
        """Values between which it is a straight line, in ascending order; none, if it does not fall anywhere."""
        ...

    def at(self, value: float) -> float: ...

    def moved(self, factor: float, offset: float) -> Cost:
        """The cost that is at every ``y`` what this one is at ``y * factor + offset``."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same everywhere."""

    cost: float = 0.0

    @property
    def knots(self) -> tuple[float, ...]:
        return ()

    def at(self, value: float) -> float:  # noqa: ARG002 - the same everywhere
        return self.cost

    def moved(self, factor: float, offset: float) -> Cost:  # noqa: ARG002 - the same everywhere
        return self


@dataclass(frozen=True, slots=True)
class Points:
    """Straight lines between points (value, cost), in ascending order of values; at least one."""

    points: tuple[tuple[float, float], ...]

    @property
    def knots(self) -> tuple[float, ...]:
        return tuple(value for value, _ in self.points)

    def at(self, value: float) -> float:
        points = self.points
        place = bisect_left(points, (value,)) if len(points) != 2 else (value > points[0][0]) + (value > points[1][0])
        if place == len(points):
            return points[-1][1]
        right, after = points[place]
        if place == 0 or right == value:
            return after
        left, before = points[place - 1]
        part = (value - left) / (right - left)
        # Where the line is level every value costs exactly the same, and none costs more than both ends.
        return min(max(before + (after - before) * part, min(before, after)), max(before, after))

    def moved(self, factor: float, offset: float) -> Cost:
        return Points(tuple(sorted(((value - offset) / factor, cost) for value, cost in self.points)))


@dataclass(frozen=True, slots=True)
class Table:
    """By level: pairs (place on the scale, cost) in ascending order, one for every level of the range."""

    costs: tuple[tuple[float, float], ...]

    @property
    def knots(self) -> tuple[float, ...]:
        return tuple(level for level, _ in self.costs)

    def at(self, value: float) -> float:
        place = bisect_left(self.costs, (value,))
        return self.costs[min(place, len(self.costs) - 1)][1]

    def moved(self, factor: float, offset: float) -> Cost:
        if (factor, offset) != (1.0, 0.0):
            raise ValueError("levels are not moved")
        return self


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A cost that does not fall below a number."""

    cost: Cost
    least: float

    @property
    def knots(self) -> tuple[float, ...]:
        return self.cost.knots

    def at(self, value: float) -> float:
        return max(self.cost.at(value), self.least)

    def moved(self, factor: float, offset: float) -> Cost:
        return AtLeast(self.cost.moved(factor, offset), self.least)


FREE = Constant()
