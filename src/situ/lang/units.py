"""Units: what a number counts, and how one unit becomes another, exactly.

Physical units come from pint's catalogue and are read once, when declarations are checked; nothing that
runs per event touches pint. Those that people write are in :mod:`situ.lang.unit_table`, since pint takes most of a
second to load. Units that are not physical (``EUR``, ``building_a``) are *labels*: a
project declares them and only a function converts between them.

A :class:`Unit` is a product of powers of atoms. Scales and offsets are rationals. Constants, decimals and whole numbers
are converted with these, exactly, and rounded once; doubles by the operations of :func:`double_steps`, of which every
engine executes the same.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import lcm
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import msgspec

from situ.lang.problems import nearest

if TYPE_CHECKING:
    import pint

_ATOM = re.compile(r"Δ°\w+|[^\W\d]\w*|[%°]\w*")
_FACTOR = re.compile(rf"\s*(?P<atom>{_ATOM.pattern})\s*(?:(?:\^|\*\*)\s*(?P<power>-?\d{{1,2}}))?\s*")
_LONGEST = 100
_DIGITS, _LARGEST_EXPONENT = 53, 1000
_LARGEST_POWER = 9

# Spellings people write that pint's catalogue reads differently or not at all.
_DIFFERENCE = "delta_"
_SPELLINGS = {"°": "degree", "℃": "degC", "℉": "degF", "percent": "%"}


class UnknownUnit(ValueError):
    """The text is no unit; ``nearest`` are names that look like the part that is not understood."""

    def __init__(self, text: str, nearest_names: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.nearest = nearest_names


class IncompatibleUnits(ValueError):
    """The two units measure different things."""


class Atom(msgspec.Struct, frozen=True, kw_only=True):
    """One named unit. In base units a value v is ``v * scale + offset``; a label has itself as base."""

    symbol: str
    base: tuple[tuple[str, Fraction], ...]
    scale: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)
    label: str = ""


class Unit(msgspec.Struct, frozen=True):
    """A product of powers of atoms. Two spellings of one unit are equal; ``m`` and ``km`` are not."""

    factors: tuple[tuple[Atom, Fraction], ...] = ()

    def __str__(self) -> str:
        above = "*".join(_power(atom, power) for atom, power in self.factors if power > 0)
        below = "".join("/" + _power(atom, -power) for atom, power in self.factors if power < 0)
        return (above or "1") + below if self.factors else ""

    @property
    def dimension(self) -> tuple[tuple[str, Fraction], ...]:
        """The powers of base units: two units convert into each other iff these are equal."""
        total: dict[str, Fraction] = {}
        for atom, power in self.factors:
            for base, exponent in atom.base:
                total[base] = total.get(base, Fraction(0)) + exponent * power
        return tuple(sorted((base, exponent) for base, exponent in total.items() if exponent))

    @property
    def scale(self) -> Fraction:
        result = Fraction(1)
        for atom, power in self.factors:
            if power.denominator != 1:
                raise IncompatibleUnits(f"{self} has a fractional power")
            result *= atom.scale**power.numerator
        return result

    @property
    def offset(self) -> Fraction:
        """Non-zero only for a point on a scale, such as a temperature in ``degC`` standing alone."""
        if len(self.factors) == 1 and self.factors[0][1] == 1:
            return self.factors[0][0].offset
        return Fraction(0)

    @property
    def labels(self) -> tuple[str, ...]:
        """The kinds of the labels in it, e.g. ``('currency',)``; empty for a physical unit."""
        return tuple(atom.label for atom, _ in self.factors if atom.label)

    @property
    def is_point(self) -> bool:
        """A point on a scale (``degC``): two of them have a difference, but no sum."""
        return self.offset != 0

    @property
    def is_difference(self) -> bool:
        """The distance of two points (``delta_degC``), which is no point itself. ``K`` can be either."""
        return len(self.factors) == 1 and self.factors[0][0].symbol.startswith(_DIFFERENCE)

    def __mul__(self, other: Unit) -> Unit:
        powers: dict[Atom, Fraction] = dict(self.factors)
        for atom, power in other.factors:
            powers[atom] = powers.get(atom, Fraction(0)) + power
        return Unit(tuple(sorted(((a, p) for a, p in powers.items() if p), key=lambda f: f[0].symbol)))

    def __truediv__(self, other: Unit) -> Unit:
        return self * other.raised(Fraction(-1))

    def raised(self, power: Fraction) -> Unit:
        return Unit(tuple((atom, exponent * power) for atom, exponent in self.factors if power))

    @property
    def difference(self) -> Unit:
        """The unit of the difference of two values: ``delta_degC`` for ``degC``, otherwise itself."""
        if not self.is_point:
            return self
        atom = self.factors[0][0]
        return Unit(((_physical_atom(f"{_DIFFERENCE}{_plain_name(atom.symbol)}"), Fraction(1)),))


NO_UNIT = Unit()


@functools.lru_cache(maxsize=4096)
def conversion(source: Unit, target: Unit) -> tuple[Fraction, Fraction]:
    """The exact (scale, offset) with ``target_value = source_value * scale + offset``."""
    if source.dimension != target.dimension:
        raise IncompatibleUnits(f"{source} does not convert to {target}")
    if (source.is_point and target.is_difference) or (source.is_difference and target.is_point):
        raise IncompatibleUnits(f"one of {source} and {target} is a point on a scale, the other a difference of two")
    scale = source.scale / target.scale
    return scale, (source.offset - target.offset) / target.scale


DoubleStep = tuple[Literal["*", "+", "/"], float]
"""An operation and its constant."""


def double_steps(scale: Fraction, offset: Fraction) -> tuple[DoubleStep, ...]:
    """The operations by which a double becomes ``value * scale + offset``; each rounds its result.

    Where the factor is a double, or divided by one, that is a single operation, hence rounded once: so with all
    prefixes, minutes and hours. Else ``(value * p + r) / q`` with whole numbers p, r and q, which have no error of
    their own as a factor like 0.3048 has: of whole numbers all but the quotient is exact. The three are divided by a
    power of two, which changes no digit, so that the product is not infinite unless the value is.
    """
    if not offset:
        if _is_double(scale):
            return (("*", float(scale)),) if scale != 1 else ()
        if _is_double(1 / scale):
            return (("/", float(1 / scale)),)
    elif scale == 1 and _is_double(offset):
        return (("+", float(offset)),)
    q = Fraction(lcm(scale.denominator, offset.denominator))
    p, r = scale * q, offset * q
    power = Fraction(2) ** abs(p.numerator).bit_length()
    steps: tuple[tuple[Literal["*", "+", "/"], Fraction], ...] = (("*", p / power), ("+", r / power), ("/", q / power))
    if not all(_is_double(constant) for _, constant in steps):
        steps = (("*", scale), ("+", offset))
    changing = ((op, constant) for op, constant in steps if constant != (0 if op == "+" else 1))
    return tuple((op, constant.numerator / constant.denominator) for op, constant in changing)


def _is_double(value: Fraction) -> bool:
    """Whether a double is exactly this, and its neighbours are as close as those of any other."""
    exponent = value.denominator.bit_length() - 1
    if value.denominator != 1 << exponent or exponent > _LARGEST_EXPONENT:
        return False
    significant = abs(value.numerator)
    significant >>= (significant & -significant).bit_length() - 1 if significant else 0
    return significant.bit_length() <= _DIGITS and abs(value) < 1 << _LARGEST_EXPONENT


def convert_double(value: float, steps: Iterable[DoubleStep]) -> float:
    """The slow, obvious way through the steps."""
    for op, constant in steps:
        value = value * constant if op == "*" else value + constant if op == "+" else value / constant
    return value


class Units:
    """The units a project knows: pint's physical ones and the labels it declared."""

    __slots__ = ("labels",)

    def __init__(self, labels: Mapping[str, str] = MappingProxyType({})) -> None:
        self.labels: Mapping[str, str] = MappingProxyType(dict(labels))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Units) and self.labels == other.labels

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.labels.items())))

    def parse(self, text: str) -> Unit:
        """Read ``m``, ``km/h``, ``kg*m^2/s^2``, ``°C``, ``EUR``; :class:`UnknownUnit` if it is none."""
        if len(text) > _LONGEST:
            raise UnknownUnit(text[:_LONGEST])
        result, position, inverse = NO_UNIT, 0, False
        rest = text.strip()
        if rest.startswith("1/"):
            position, inverse = 2, True
        while True:
            match = _FACTOR.match(rest, position)
            if match is None or abs(power := int(match["power"] or 1)) > _LARGEST_POWER:
                raise UnknownUnit(text)
            factor = Unit(((self._atom(match["atom"]), Fraction(power)),))
            result = result / factor if inverse else result * factor
            position = match.end()
            if position == len(rest):
                return result
            if rest[position] not in "*/·":
                raise UnknownUnit(text)
            inverse = rest[position] == "/"
            position += 1

    def _atom(self, name: str) -> Atom:
        if kind := self.labels.get(name):
            return Atom(symbol=name, base=((name, Fraction(1)),), label=kind)
        try:
            return _physical_atom(name)
        except UnknownUnit:
            raise UnknownUnit(name, nearest(name, [*self.labels, *_familiar()])) from None


@functools.cache
def _registry() -> pint.UnitRegistry[Fraction]:
    import pint

    return pint.UnitRegistry(non_int_type=Fraction, cache_folder=None)


@functools.cache
def _physical_atom(name: str) -> Atom:
    row = _table().get(name)
    return atom_from_pint(name) if row is None else _read_row(row)


@functools.cache
def _table() -> Mapping[str, str]:
    """The row of each name in the table."""
    from situ.lang.unit_table import ROWS

    return {name: row for row in ROWS.splitlines() for name in row.rpartition(" | ")[2].split(" ")}


def _read_row(row: str) -> Atom:
    symbol, base, scale, offset, _ = row.split(" | ")
    powers = (part.partition("^") for part in base.split())
    return Atom(
        symbol=symbol,
        base=tuple((unit, Fraction(power or 1)) for unit, _, power in powers),
        scale=Fraction(scale),
        offset=Fraction(offset),
    )


def names_of_pint() -> Iterable[str]:
    """The names of units in pint's catalogue, those with prefixes left out."""
    fresh = _registry.__wrapped__()  # one that has been used lists the prefixed units that it was asked for, too
    return (name for name in dir(fresh) if _ATOM.fullmatch(name))


def atom_from_pint(name: str) -> Atom:
    """What pint's catalogue says of a unit; :class:`UnknownUnit` if it has none of that name."""
    import pint

    registry = _registry()
    spelled = _SPELLINGS.get(name, name)
    try:
        prefix, unit = _one_meaning(registry.parse_unit_name(spelled), name)
        if prefix and any(another for another, _, _ in registry.parse_unit_name(unit)):
            raise UnknownUnit(name)  # two prefixes, which pint takes or not depending on what it was asked before
        canonical = registry.get_name(prefix + unit)
        at = [registry.Quantity(Fraction(n), canonical).to_root_units() for n in range(3)]
    except (pint.errors.PintError, AttributeError, ValueError, KeyError, TypeError):
        raise UnknownUnit(name) from None
    zero, one, two = (Fraction(str(quantity.magnitude)) for quantity in at)
    if two - one != one - zero:  # decibel and its kin: no linear scale, so a project declares them as labels
        raise UnknownUnit(name)
    base = tuple(sorted((str(unit), Fraction(str(power))) for unit, power in at[0].unit_items()))
    return Atom(symbol=_symbol(canonical, registry), base=base, scale=one - zero, offset=zero)


def _one_meaning(candidates: Iterable[tuple[str, str, str]], name: str) -> tuple[str, str]:
    """Prefix and unit. A name can be read in both ways (``mins``: minutes or milli-inches); the plain unit is meant."""
    found = list(candidates)
    plain = [unit for prefix, unit, _ in found if not prefix]
    if plain:
        return "", plain[0]
    if len(found) != 1:
        raise UnknownUnit(name)
    prefix, unit, _ = found[0]
    return prefix, unit


def _symbol(canonical: str, registry: pint.UnitRegistry[Fraction]) -> str:
    """The short form people write, if it reads back as the same unit."""
    plain = _plain_name(canonical)
    if plain != canonical:
        return plain
    symbol = str(registry.get_symbol(canonical))
    if _ATOM.fullmatch(symbol) and registry.get_name(symbol) == canonical:
        return symbol
    return canonical


_PLAIN_NAMES = {
    "degree_Celsius": "degC",
    "degree_Fahrenheit": "degF",
    "delta_degree_Celsius": "delta_degC",
    "delta_degree_Fahrenheit": "delta_degF",
    "degree": "deg",
}


def _plain_name(canonical: str) -> str:
    return _PLAIN_NAMES.get(canonical, canonical)


def _familiar() -> Iterable[str]:
    """Names to suggest: pint knows thousands, most of which nobody means."""
    return (
        "m cm mm km ft in yd mi s ms min h d kg g t deg rad degC degF K % ppm Pa hPa bar V A W kW kWh J N Hz "
        "B KiB MiB GiB lux L km/h mph knot"
    ).split()


def _power(atom: Atom, power: Fraction) -> str:
    return atom.symbol if power == 1 else f"{atom.symbol}^{power}"
