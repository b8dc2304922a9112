"""What somebody wrote for a cost → the cost, or everything that is wrong with it over its range.

A cost has to be finite and not negative at the ends of the range, at 257 places between them and at all its knots. A
formula must not fall towards better values; what falls is written as points or as modes, so that the cheapest target is
the floor or a knot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from situ.catalogue import BAD_COST
from situ.documents import Mapping, Node, Scalar, Sequence
from situ.errors import SituError, nearest
from situ.quality.cost import FREE, Constant, Cost, Points, Table
from situ.quality.formula import Formula, read_formula
from situ.quality.property import Property
from situ.quality.read_value import Values, read_double

SAMPLES = 257
_MOST_POINTS = 1000
_SLACK = 1e-9
"""By how much of itself a cost may seem to fall: what doubles lose on the way."""
_FORMS = "A cost is a number, an expression of `x`, `points: [[x, cost], …]` or, of levels, `{level: cost, …}`."


def read_cost(values: Values, about: Property, node: Node | None, lb: float, ub: float) -> Cost | None:
    """The cost of values from ``lb`` to ``ub``; None if something is wrong, which is said."""
    match node:
        case None:
            return FREE
        case Mapping() if about.levels:
            return _table(values, about, node, lb, ub)
        case Mapping():
            return _points(values, about, node, lb, ub)
        case Scalar() if isinstance(node.value, str):
            return _formula(values, about, node, lb, ub)
        case Scalar() if isinstance(node.value, int | float) and not isinstance(node.value, bool):
            return _constant(values, node)
    _bad(values, node, "It is neither a number nor anything else that a cost can be", _FORMS)
    return None


def read_plain_cost(values: Values, node: Node | None) -> float | None:
    """A cost that depends on nothing; 0, if nobody says one."""
    if node is None:
        return 0.0
    return read_double(values.read, node, least=0)


def _constant(values: Values, node: Scalar) -> Cost | None:
    number = read_double(values.read, node)
    if number is not None and number < 0:
        _bad(values, node, f"It is {number:g}", "Costs are not negative.")
        return None
    return number if number is None else Constant(number) if number else FREE


def _formula(values: Values, about: Property, node: Scalar, lb: float, ub: float) -> Cost | None:
    if about.levels:
        _bad(values, node, "It is an expression, and levels are no numbers", "Write `{level: cost, …}`.")
        return None
    try:
        formula = read_formula(node.text, node.location, node.locate)
    except SituError as error:
        values.read.problems.extend(error.problems)
        return None
    fault = next(_faults(formula, about, lb, ub), None)
    if fault is None:
        return formula
    _bad(values, node, *fault)
    return None


def _faults(formula: Formula, about: Property, lb: float, ub: float) -> Iterator[tuple[str, str]]:
    """What is wrong with an expression over a range, and what to do about it."""
    if not (math.isfinite(lb) and math.isfinite(ub)):
        yield f"Its range, from {lb:g} to {ub:g}, has no end", "Give `lb` and `ub`, or a cost that is a number."
        return
    before: float | None = None
    for place in samples(lb, ub) if about.maximise else reversed(samples(lb, ub)):
        cost = formula.value(place)
        if cost is None or not math.isfinite(cost):
            yield f"At x = {place:g} it has no value", "An expression needs a finite value everywhere in the range."
        elif cost < 0:
            yield f"At x = {place:g} it is {cost:g}", "Costs are not negative."
        elif before is not None and cost < before - _SLACK * max(1.0, abs(before)):
            remedy = "Write what gets cheaper towards better values as `points:` or as `modes:`."
            yield f"Towards better values it falls, at x = {place:g} from {before:g} to {cost:g}", remedy
        before = cost if cost is not None else before


def samples(lb: float, ub: float) -> list[float]:
    """Both ends, and places at equal distances between them."""
    step = (ub - lb) / (SAMPLES + 1)
    return sorted({lb, ub, *(lb + step * place for place in range(1, SAMPLES + 1))})


def _points(values: Values, about: Property, node: Mapping, lb: float, ub: float) -> Cost | None:
    fields = values.read.fields(node, required=("points",))
    items = () if fields is None else fields.items("points")
    if not items or len(items) > _MOST_POINTS:
        _bad(values, node, f"It has {len(items)} points", f"Write from 1 to {_MOST_POINTS}: `points: [[x, cost], …]`.")
        return None
    found = [_point(values, about, each) for each in items]
    points = sorted(each for each in found if each is not None)
    if len(points) < len(items):
        return None
    places = [place for place, _ in points]
    if len(set(places)) < len(places):
        _bad(values, node, "Two of its points are at the same value", "Give each value one cost.")
        return None
    if not (places[0] <= lb and ub <= places[-1]):
        span = f"from {places[0]:g} to {places[-1]:g}"
        _bad(values, node, f"Its points go {span}, the range from {lb:g} to {ub:g}", "Points have to span the range.")
        return None
    return Points(tuple(points))


def _point(values: Values, about: Property, node: Node) -> tuple[float, float] | None:
    if not isinstance(node, Sequence) or len(node.items) != 2:
        _bad(values, node, "This is no point", "Write a value and its cost: `[10, 2.5]`.")
        return None
    place = values.value(about, node.items[0])
    cost = read_double(values.read, node.items[1], least=0)
    return None if place is None or cost is None else (place, cost)


def _table(values: Values, about: Property, node: Mapping, lb: float, ub: float) -> Cost | None:
    costs: dict[float, float] = {}
    for key, below in node.entries:
        cost = read_double(values.read, below, least=0)
        if key.text not in about.levels:
            similar = ", ".join(f"`{each}`" for each in nearest(key.text, about.levels) or about.levels)
            _bad(values, key, f"`{about.id}` has no level `{key.text}`", f"Write {similar}.")
        elif cost is not None:
            costs[float(about.levels.index(key.text))] = cost
    missing = [about.levels[level] for level in range(int(lb), int(ub) + 1) if float(level) not in costs]
    if missing and len(costs) == len(node.entries):
        _bad(values, node, f"It has no cost of {', '.join(missing)}", "Give every level of the range a cost.")
        return None
    return Table(tuple(sorted(costs.items()))) if len(costs) == len(node.entries) else None


def _bad(values: Values, node: Node, what: str, remedy: str) -> None:
    values.read.problems.add(BAD_COST(node.location, what=what, remedy=remedy))
