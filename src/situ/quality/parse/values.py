"""What somebody wrote for a value of a property → the value in the property's unit, levels by their places."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from situ.catalogue import BOUNDS_SWAPPED, OUTSIDE_DOMAIN, UNIT_NOT_CONVERTIBLE, UNKNOWN_UNIT
from situ.documents import Fields, Node, Reader, Scalar
from situ.errors import SituError, nearest
from situ.quality.property import Property
from situ.quantities import Quantity, parse_duration, parse_quantity
from situ.units import NO_UNIT, IncompatibleUnits, Unit, Units, UnknownUnit, conversion

LARGEST = 1e300
_PER = re.compile(r"(?P<number>[-+]?[0-9][0-9.eE+-]{0,40})\s*/\s*(?P<unit>[A-Za-z]+)")
"""``10/min`` and ``10 / min``, as people write rates; quantities have a unit of their own."""
_INFINITE = {"inf": math.inf, ".inf": math.inf, "∞": math.inf, "-inf": -math.inf, "-.inf": -math.inf, "-∞": -math.inf}


@dataclass(frozen=True, slots=True)
class Values:
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

    def value(self, about: Property, node: Node) -> float | None:
        """The value, within the domain; what is wrong with it goes to the reader's problems."""
        found = self._level(about, node) if about.levels else self._number(about, node)
        if found is None or about.lo <= found <= about.hi:
            return found
        self._outside(about, node)
        return None

    def bounds(self, about: Property, fields: Fields) -> tuple[float, float] | None:
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

    def _level(self, about: Property, node: Node) -> float | None:
        text = self.read.text(node)
        if text is None:
            return None
        if text in about.levels:
            return float(about.levels.index(text))
        self._outside(about, node, nearest(text, about.levels) or about.levels)
        return None

    def _number(self, about: Property, node: Node) -> float | None:
        if isinstance(node, Scalar) and isinstance(node.value, str) and not node.substituted:
            return self._quantity(about, node)
        number = read_double(self.read, node)
        if number is None or self.unit is None:
            return number
        return self._converted(about, node, Quantity(Fraction(str(number)), self.unit))

    def _quantity(self, about: Property, node: Scalar) -> float | None:
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

    def _converted(self, about: Property, node: Node, quantity: Quantity) -> float | None:
        target = _unit(about.unit, self.units)
        # Of an attribute in °C an imprecision is a difference, however it is written.
        given = quantity.unit.difference if about.of else quantity.unit
        try:
            scale, offset = conversion(given, target)
        except IncompatibleUnits:
            written = node.text if isinstance(node, Scalar) else ""
            if self.unit is not None and isinstance(node, Scalar) and not isinstance(node.value, str):
                written = f"{written} {self.unit}"
            shown = about.unit or "a plain number"
            self.read.problems.add(UNIT_NOT_CONVERTIBLE(node.location, value=written, name=about.id, unit=shown))
            return None
        found = quantity.number * scale + offset
        if abs(found) > LARGEST:
            self._outside(about, node)
            return None
        return float(found)

    def _outside(self, about: Property, node: Node, similar: tuple[str, ...] = ()) -> None:
        written = node.text if isinstance(node, Scalar) and not node.substituted else "…"
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
    if isinstance(node, Scalar) and node.value is None:
        return missing
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.text in _INFINITE:
        return _INFINITE[node.text]
    return read_double(read, node)


@lru_cache(maxsize=256)
def _unit(text: str, units: Units) -> Unit:
    return units.parse(text) if text else NO_UNIT
