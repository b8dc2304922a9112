"""Reads values of properties (in the property's unit, levels by their places), durations, and costs.

`Values` reads values and bounds, `read_cost` a cost with everything that is wrong with it over its range.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import msgspec

from situ.lang.catalogue import BAD_COST, BOUNDS_SWAPPED, OUTSIDE_DOMAIN, UNIT_NOT_CONVERTIBLE, UNKNOWN_UNIT
from situ.lang.documents import Fields, MappingNode, Node, Reader, ScalarNode, SequenceNode
from situ.lang.problems import SituError, nearest
from situ.lang.quantities import Quantity, parse_duration, parse_quantity
from situ.lang.records import replace
from situ.lang.units import NO_UNIT, IncompatibleUnits, Unit, Units, UnknownUnit, conversion
from situ.quality.model.costs import FREE, ConstantCost, Cost, Formula, LevelCost, PiecewiseCost, read_formula
from situ.quality.model.declarations import QualityProperty

LARGEST = 1e300
_PER = re.compile(r"(?P<number>[-+]?[0-9][0-9.eE+-]{0,40})\s*/\s*(?P<unit>[A-Za-z]+)")
"""``10/min`` and ``10 / min``, as people write rates; quantities have a unit of their own."""
_INFINITE = {"inf": math.inf, ".inf": math.inf, "∞": math.inf, "-inf": -math.inf, "-.inf": -math.inf, "-∞": -math.inf}


class Values(msgspec.Struct, frozen=True):
    """Reads values of properties. ``unit`` is that of plain numbers, if it is not the property's."""

    read: Reader
    units: Units
    unit: Unit | None = None

    def in_unit(self, fields: Fields) -> Values:
        """What reads the values beside a ``unit:``."""
        scalar = fields.scalar("unit")
        if scalar is None:
            return self
        try:
            return replace(self, unit=self.units.parse(scalar.text))
        except UnknownUnit as error:
            self.read.problems.add(UNKNOWN_UNIT(scalar.location, unit=scalar.text, nearest=error.nearest))
            return self

    def value(self, about: QualityProperty, node: Node) -> float | None:
        """The value, within the domain; what is wrong with it goes to the reader's problems."""
        found = self._level(about, node) if about.levels else self._number(about, node)
        if found is None or about.lo <= found <= about.hi:
            return found
        self._outside(about, node)
        return None

    def bounds(self, about: QualityProperty, fields: Fields) -> tuple[float, float] | None:
        """``lb`` and ``ub``; one that is left out is that end of the domain."""
        ends = []
        for name, end in (("lb", about.lo), ("ub", about.hi)):
            node = fields.node(name)
            ends.append(end if node is None else self.value(about, node))
        lb, ub = ends
        if lb is None or ub is None:
            return None
        if lb <= ub:
            return lb, ub
        place = fields.node("lb") or fields.mapping
        self.read.problems.add(BOUNDS_SWAPPED(place.location, name=about.id, lb=about.shown(lb), ub=about.shown(ub)))
        return None

    def _level(self, about: QualityProperty, node: Node) -> float | None:
        text = self.read.text(node)
        if text is None:
            return None
        if text in about.levels:
            return float(about.levels.index(text))
        self._outside(about, node, nearest(text, about.levels) or about.levels)
        return None

    def _number(self, about: QualityProperty, node: Node) -> float | None:
        if isinstance(node, ScalarNode) and isinstance(node.value, str) and not node.substituted:
            return self._quantity(about, node)
        number = read_double(self.read, node)
        if number is None or self.unit is None:
            return number
        return self._converted(about, node, Quantity(Fraction(str(number)), self.unit))

    def _quantity(self, about: QualityProperty, node: ScalarNode) -> float | None:
        per = _PER.fullmatch(node.text.strip())
        text = f"{per['number']} Hz" if per else node.text
        try:
            quantity = parse_quantity(text, self.units, node.location)
            if per:
                quantity = Quantity(quantity.number, self.units.parse(f"1/{per['unit']}"))
        except SituError as error:
            self.read.problems.extend(error.problems)
            return None
        except UnknownUnit as error:
            self.read.problems.add(UNKNOWN_UNIT(node.location, unit=node.text, nearest=error.nearest))
            return None
        return self._converted(about, node, quantity)

    def _converted(self, about: QualityProperty, node: Node, quantity: Quantity) -> float | None:
        target = _unit(about.unit, self.units)
        # Of an attribute in °C an imprecision is a difference, however it is written.
        given = quantity.unit.difference if about.of else quantity.unit
        try:
            scale, offset = conversion(given, target)
        except IncompatibleUnits:
            written = node.text if isinstance(node, ScalarNode) else ""
            if self.unit is not None and isinstance(node, ScalarNode) and not isinstance(node.value, str):
                written = f"{written} {self.unit}"
            shown = about.unit or "a plain number"
            self.read.problems.add(UNIT_NOT_CONVERTIBLE(node.location, value=written, name=about.id, unit=shown))
            return None
        found = quantity.number * scale + offset
        if abs(found) > LARGEST:
            self._outside(about, node)
            return None
        return float(found)

    def _outside(self, about: QualityProperty, node: Node, similar: tuple[str, ...] = ()) -> None:
        written = node.text if isinstance(node, ScalarNode) and not node.substituted else "…"
        ends = (about.shown(about.lo), about.shown(about.hi))
        lo, hi = (f"{each} {about.unit}".strip() for each in ends)
        self.read.problems.add(
            OUTSIDE_DOMAIN(node.location, value=written[:60], name=about.id, lo=lo, hi=hi, nearest=similar)
        )


def read_double(read: Reader, node: Node | None, *, least: float = -LARGEST) -> float | None:
    """A number that a double can hold, with room to compute with it."""
    found = None if node is None else read.number(node, least=least, most=LARGEST)
    return None if found is None else float(found)


def read_microseconds(read: Reader, node: Node | None) -> int | None:
    """A duration of more than nothing, in µs."""
    scalar = None if node is None else read.scalar(node)
    if scalar is None:
        return None
    try:
        found = parse_duration(scalar.text, scalar.location)
    except SituError as error:
        read.problems.extend(error.problems)
        return None
    microseconds = round(found.total_seconds() * 1_000_000)
    if microseconds:
        return microseconds
    read.wrong(scalar, "a duration of more than nothing")
    return None


def read_end(read: Reader, node: Node, missing: float) -> float | None:
    """An end of a domain: a number, or nothing or ``inf`` for none."""
    if isinstance(node, ScalarNode) and node.value is None:
        return missing
    if isinstance(node, ScalarNode) and isinstance(node.value, str) and node.text in _INFINITE:
        return _INFINITE[node.text]
    return read_double(read, node)


@lru_cache(maxsize=256)
def _unit(text: str, units: Units) -> Unit:
    return units.parse(text) if text else NO_UNIT


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Costs. A cost has to be finite and not negative at the ends of the range, at 257 places between them and at all its
# knots. A formula must not fall towards better values; what falls is written as points or as modes, so that the
# cheapest target is the floor or a knot.

SAMPLES = 257
_MOST_POINTS = 1000
_SLACK = 1e-9
"""By how much of itself a cost may seem to fall: what doubles lose on the way."""
_FORMS = "A cost is a number, an expression of `x`, `points: [[x, cost], …]` or, of levels, `{level: cost, …}`."


def read_cost(values: Values, about: QualityProperty, node: Node | None, lb: float, ub: float) -> Cost | None:
    """The cost of values from ``lb`` to ``ub``; None if something is wrong, which is said."""
    match node:
        case None:
            return FREE
        case MappingNode() if about.levels:
            return _table(values, about, node, lb, ub)
        case MappingNode():
            return _points(values, about, node, lb, ub)
        case ScalarNode() if isinstance(node.value, str):
            return _formula(values, about, node, lb, ub)
        case ScalarNode() if isinstance(node.value, int | float) and not isinstance(node.value, bool):
            return _constant(values, node)
    _bad(values, node, "It is neither a number nor anything else that a cost can be", _FORMS)
    return None


def read_plain_cost(values: Values, node: Node | None) -> float | None:
    """A cost that depends on nothing; 0, if nobody says one."""
    if node is None:
        return 0.0
    return read_double(values.read, node, least=0)


def _constant(values: Values, node: ScalarNode) -> Cost | None:
    number = read_double(values.read, node)
    if number is not None and number < 0:
        _bad(values, node, f"It is {number:g}", "Costs are not negative.")
        return None
    return number if number is None else ConstantCost(number) if number else FREE


def _formula(values: Values, about: QualityProperty, node: ScalarNode, lb: float, ub: float) -> Cost | None:
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


def _faults(formula: Formula, about: QualityProperty, lb: float, ub: float) -> Iterator[tuple[str, str]]:
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


def _points(values: Values, about: QualityProperty, node: MappingNode, lb: float, ub: float) -> Cost | None:
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
    return PiecewiseCost(tuple(points))


def _point(values: Values, about: QualityProperty, node: Node) -> tuple[float, float] | None:
    if not isinstance(node, SequenceNode) or len(node.items) != 2:
        _bad(values, node, "This is no point", "Write a value and its cost: `[10, 2.5]`.")
        return None
    place = values.value(about, node.items[0])
    cost = read_double(values.read, node.items[1], least=0)
    return None if place is None or cost is None else (place, cost)


def _table(values: Values, about: QualityProperty, node: MappingNode, lb: float, ub: float) -> Cost | None:
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
    return LevelCost(tuple(sorted(costs.items()))) if len(costs) == len(node.entries) else None


def _bad(values: Values, node: Node, what: str, remedy: str) -> None:
    values.read.problems.add(BAD_COST(node.location, what=what, remedy=remedy))
