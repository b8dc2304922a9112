"""How a value in one unit becomes one in another, where no rule says so.

A function declared from one to the other comes first, that of the nearest context; then, between physical units of one
dimension, arithmetic with exact constants (:mod:`situ.units`). What is not physical converts only by a function.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from situ.expr.linear import linear
from situ.expr.tree import Coerce, Node
from situ.interpretation.model import Context, Conversion
from situ.types.model import DOUBLE, INT, LONG, Decimal, Type, fits, plain
from situ.units import NO_UNIT, IncompatibleUnits, Unit, conversion

_SMALLEST, _LARGEST = Fraction(1, 10**300), Fraction(10**300)


@dataclass(frozen=True, slots=True, kw_only=True)
class Same:
    """The units are equal, or one of them is not known (``one_sided``): the value stays as it is."""

    one_sided: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ByFunction:
    """A context declares a function between the two."""

    function: Conversion


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """``value * scale + offset``."""

    scale: Fraction
    offset: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Incompatible:
    """No way leads from one to the other; between ``physical`` units because they measure different things."""

    physical: bool


Way = Same | ByFunction | Linear | Incompatible


def way_between(source: Unit, target: Unit, type: Type, into: Type, context: Context) -> Way:
    """How a value of ``type`` in ``source`` becomes one of the type ``into`` in ``target``."""
    if source == target:
        return Same()
    if NO_UNIT in (source, target):
        return Same(one_sided=True)
    if (declared := declared_between(source, target, type, into, context)) is not None:
        return ByFunction(function=declared)
    if source.labels or target.labels:
        return Incompatible(physical=False)
    try:
        scale, offset = conversion(source, target)
    except IncompatibleUnits:
        return Incompatible(physical=True)
    if not _SMALLEST < abs(scale) < _LARGEST:
        return Incompatible(physical=True)  # no double expresses the factor
    return Linear(scale=scale, offset=offset)


def declared_between(source: Unit, target: Unit, type: Type, into: Type, context: Context) -> Conversion | None:
    """The function from one unit to the other that takes this type: of the nearest context, there the last.

    Names are bound late: where a nearer context has a function of that name, that one is meant.
    """
    seen: set[str] = set()
    for each in context.chain:
        for name, function in reversed(list(each.functions.items())):
            if name in seen:
                continue
            seen.add(name)
            units = (function.parameter.unit, function.result.unit)
            if units == (source, target) and fits(type, function.parameter.type) and fits(function.result.type, into):
                return function
    return None


class Fractional(Exception):
    """Whole numbers do not stay whole on the way."""


class Unfit(Exception):
    """A number of this type cannot become one of that."""


def convert(node: Node, way: Linear, into: Type, unit: Unit) -> Node:
    """The node in another unit; :class:`Fractional` or :class:`Unfit` where the types do not allow it."""
    given, wanted = plain(node.type), plain(into)
    whole = given in (INT, LONG)
    if wanted == DOUBLE and (whole or given == DOUBLE):
        return Coerce(node, DOUBLE, unit, way.scale, way.offset)
    if isinstance(wanted, Decimal) and (whole or isinstance(given, Decimal)):
        return linear(node, wanted, unit, way.scale, way.offset)
    if wanted in (INT, LONG) and whole and fits(given, wanted):
        if way.scale.denominator != 1 or way.offset.denominator != 1:
            raise Fractional
        return linear(node, wanted, unit, way.scale, way.offset)
    raise Unfit


def rounds(way: Linear, type: Type, into: Type) -> bool:
    """Whether digits are lost: a decimal may need more of them than it has."""
    given, wanted = plain(type), plain(into)
    if not isinstance(wanted, Decimal):
        return False
    scale = given.scale if isinstance(given, Decimal) else 0
    needed = 10**wanted.scale
    return bool(way.scale * needed % 10**scale) or bool((way.offset * needed).denominator != 1)
