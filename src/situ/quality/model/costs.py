"""Costs of operating at a value of a property: constants, straight lines, tables by level, and formulas of ``x``.

`Cost` and its kinds are abstract numbers, never negative. `Formula` is a cost as an expression, `read_formula` reads
it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any, Protocol

import msgspec

from situ.lang.catalogue import BAD_COST
from situ.lang.expr.checker.check import check
from situ.lang.expr.emit.python import compile_value
from situ.lang.expr.format import print_expression
from situ.lang.expr.limits import ExpressionLimits
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.scope import Definition, NameScope, Variable, substitute
from situ.lang.expr.syntax import Locate
from situ.lang.expr.tree import Apply, Case, Coerce, Compare, Literal, Node, Read, walk
from situ.lang.problems import Location, Problem, SituError
from situ.lang.types.model import DOUBLE

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# All costs have a value everywhere: beyond its ends a line goes on as it ended, and a formula that fails is not
# affordable.

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


class ConstantCost(msgspec.Struct, frozen=True):
    """The same everywhere."""

    cost: float = 0.0

    @property
    def knots(self) -> tuple[float, ...]:
        return ()

    def at(self, value: float) -> float:  # noqa: ARG002 - the same everywhere
        return self.cost

    def moved(self, factor: float, offset: float) -> Cost:  # noqa: ARG002 - the same everywhere
        return self


class PiecewiseCost(msgspec.Struct, frozen=True):
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
        return PiecewiseCost(tuple(sorted(((value - offset) / factor, cost) for value, cost in self.points)))


class LevelCost(msgspec.Struct, frozen=True):
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


class AtLeast(msgspec.Struct, frozen=True):
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


FREE = ConstantCost()


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Formulas: read from text, checked, and evaluated in double precision. Here is which part of the expression language
# they may use. What they are to be like over a range (finite, never negative, not falling towards better values) is
# checked by :mod:`situ.quality.parse.values`.

MOST_NODES = 64
LARGEST_POWER = 9
_LIMITS = ExpressionLimits(nodes=MOST_NODES, depth=MOST_NODES, literals=MOST_NODES, characters=1000)
_FUNCTIONS = frozenset("+ - * / negate power least greatest abs sqrt ln exp floor ceil".split())
_NODES = (Apply, Case, Coerce, Compare, Literal, Read)
_HINT = (
    "Costs are made of numbers, `x`, `+ - * /`, `power(x, 2)`, `min`, `max`, `abs`, `sqrt`, `ln`, `exp`, `floor`, "
    "`ceil` and `CASE WHEN … THEN … ELSE … END`."
)
_X = Variable(type=DOUBLE)


class Formula(msgspec.Struct, frozen=True):
    """An expression, at ``value * factor + offset``: what routers do to values is kept apart, so it does not grow."""

    node: Node
    factor: float = 1.0
    offset: float = 0.0

    @property
    def knots(self) -> tuple[float, ...]:
        return ()

    @property
    def text(self) -> str:
        """As it is written."""
        if (self.factor, self.offset) == (1.0, 0.0):
            return print_expression(self.node, "")
        moved = check(f"x * ({self.factor!r}) + ({self.offset!r})", _scope()).tree()
        return print_expression(substitute(self.node, {"x": moved}, _scope()), "")

    def at(self, value: float) -> float:
        found = self.value(value)
        return UNAFFORDABLE if found is None else min(max(found, 0.0), UNAFFORDABLE)

    def value(self, value: float) -> float | None:
        """What the expression says, whatever that is; None if it fails or says nothing."""
        try:
            found: float | None = _compiled(self.node)(value * self.factor + self.offset)
        except FAILURES:
            return None
        return found

    def moved(self, factor: float, offset: float) -> Cost:
        return Formula(self.node, self.factor * factor, self.factor * offset + self.offset)


def read_formula(text: str, place: Location | None = None, locate: Locate | None = None) -> Formula:
    """Read an expression of ``x``; :class:`SituError` with Q106 for each thing that is wrong with it."""
    checked = check(text, _scope(), locate=locate, expected=DOUBLE)
    errors = [each for each in checked.problems if each.is_error]
    if errors or checked.node is None:
        raise SituError(*(_refused(each, place) for each in errors))
    if unfit := tuple(_unfit(checked.node)):
        raise SituError(*(BAD_COST(place, what=what, remedy=_HINT) for what in unfit))
    return Formula(checked.node)


def _refused(problem: Problem, place: Location | None) -> Problem:
    return BAD_COST(problem.location or place, what=_sentence(problem.message), remedy=_HINT)


def _sentence(message: str) -> str:
    return message.removesuffix(".")


def _unfit(node: Node) -> Iterator[str]:
    """What is in the language, and not in costs."""
    for part in walk(node):
        name = part.overload.name if isinstance(part, Apply) else ""
        if not isinstance(part, _NODES) or (name and name not in _FUNCTIONS):
            yield f"It uses `{print_expression(part, '')}`, which costs are not made of"
        elif name == "power" and isinstance(part, Apply) and not _small(part.args[1]):
            yield f"`{print_expression(part, '')}` is no power from 0 to {LARGEST_POWER} that is a whole number"
        elif isinstance(part, Literal) and part.value is None:
            yield "It has no value somewhere: `NULL`, or a `CASE` without `ELSE`"


def _small(node: Node) -> bool:
    return isinstance(node, Literal) and node.value in range(LARGEST_POWER + 1)


@lru_cache(maxsize=4096)
def _compiled(node: Node) -> Callable[[float], Any]:
    return compile_value(node, ["x"]).call


@cache
def _scope() -> NameScope:
    """The language says ``least`` and ``greatest``; of costs people say ``min`` and ``max``."""
    return NameScope(
        variables={"x": _X},
        functions={"min": _two("min", "least"), "max": _two("max", "greatest")},
        with_units=False,
        limits=_LIMITS,
    )


def _two(name: str, meaning: str) -> Definition:
    parameters = (("a", _X), ("b", _X))
    body = check(f"{meaning}(a, b)", NameScope(variables=dict(parameters), with_units=False)).tree()
    return Definition(name=name, parameters=parameters, result=_X, body=body)
