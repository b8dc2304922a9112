"""Costs: what it costs to operate at a value of a property. Abstract numbers, never negative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Cost(Protocol):
    """The cost of operating at a value. The cheapest value at least as good as another is that one or a knot."""

    @property
    def knots(self) -> tuple[float, ...]:
        """Values between which it is a straight line, in ascending order; none, if it does not fall anywhere."""
        ...

    def at(self, value: float) -> float: ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same everywhere."""

    cost: float = 0.0

    @property
    def knots(self) -> tuple[float, ...]:
        return ()

    def at(self, value: float) -> float:  # noqa: ARG002 - the same everywhere
        return self.cost


FREE = Constant()
