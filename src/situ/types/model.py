"""The type system: primitives, named primitives, structs with supertypes, lists.

Types are trees of values, not references: a struct may not contain itself, so a resolved type holds
everything below it. Subtyping is nominal. This module owns what types *are*; how they are written is
:mod:`situ.types.syntax`, how values are checked against them :mod:`situ.types.decode`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from situ.units import NO_UNIT, Unit


@dataclass(frozen=True, slots=True)
class Primitive:
    """A built-in type of single values, known by its name."""

    name: str

    def __str__(self) -> str:
        return self.name


BOOLEAN = Primitive("boolean")
INT = Primitive("int")  # 32 bits, signed
LONG = Primitive("long")  # 64 bits, signed
DOUBLE = Primitive("double")  # IEEE 754, finite: NaN and infinities are no values
STRING = Primitive("string")  # Unicode text
BYTES = Primitive("bytes")
DATE = Primitive("date")  # of the proleptic Gregorian calendar, years 1 to 9999
TIMESTAMP = Primitive("timestamp")  # an instant, UTC, in microseconds, years 1 to 9999
DURATION = Primitive("duration")  # microseconds, signed

PRIMITIVES: Mapping[str, Primitive] = MappingProxyType(
    {p.name: p for p in (BOOLEAN, INT, LONG, DOUBLE, STRING, BYTES, DATE, TIMESTAMP, DURATION)}
)

MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class Decimal:
    """Exact decimal numbers: ``precision`` digits in all, ``scale`` of them after the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Named:
    """A named primitive such as ``TagId(string)``: a subtype of what it is based on."""

    name: str
    base: Primitive | Decimal | Named

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """A named part of a struct. ``default`` stands in for a missing value; None means there is none."""

    name: str
    type: Type
    unit: Unit = NO_UNIT
    optional: bool = False
    default: Any = field(default=None, hash=False)

    @property
    def nullable(self) -> bool:
        """Whether a checked value may lack it: a default fills the gap before anyone looks."""
        return self.optional and self.default is None


@dataclass(frozen=True, slots=True)
class Struct:
    """Named attributes; those of the supertypes first, in declared order.

    ``name`` is empty for a struct made in an expression.
    """

    name: str
    attributes: tuple[Attribute, ...]
    supers: tuple[Struct, ...] = ()

    def __hash__(self) -> int:
        # Not of all below: a struct reached over many ways would be visited once for each of them. Structs are the
        # keys of many tables, and one with a name is as good as alone with it: its attributes need no looking at.
        return hash((self.name, len(self.attributes) if self.name else tuple(each.name for each in self.attributes)))

    def __str__(self) -> str:
        if self.name:
            return self.name
        return "struct(" + ", ".join(f"{a.name}: {a.type}" for a in self.attributes) + ")"

    def attribute(self, name: str) -> Attribute | None:
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        return None


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list, written ``[T]``."""

    element: Type

    def __str__(self) -> str:
        return f"[{self.element}]"


Type = Primitive | Decimal | Named | Struct | ListOf


def plain(type: Type) -> Primitive | Decimal | Struct | ListOf:
    """The type without its name: what a named primitive is made of."""
    while isinstance(type, Named):
        type = type.base
    return type


def supertypes(type: Type) -> Iterator[Type]:
    """The type itself and all above it, depth first, left to right; one reached twice comes twice."""
    yield type
    match type:
        case Named(base=base):
            yield from supertypes(base)
        case Struct(supers=supers):
            for above in supers:
                yield from supertypes(above)


def is_subtype(type: Type, of: Type) -> bool:
    """``type ⪯ of``: declared, reflexive, transitive; of lists iff of their elements."""
    if isinstance(type, ListOf) and isinstance(of, ListOf):
        return is_subtype(type.element, of.element)
    return any(above == of for above in supertypes(type))


def fits(type: Type, into: Type) -> bool:
    """Whether a value of ``type`` can stand where ``into`` is declared: a subtype, or a number that loses nothing."""
    if is_subtype(type, into):
        return True
    match type, into:
        case ListOf(element=inner), ListOf(element=outer):
            return fits(inner, outer)
        case Primitive(name="int"), Primitive(name="long" | "double"):
            return True
        case Primitive(name="long"), Primitive(name="double"):
            return True
        case Primitive(name="int" | "long"), Decimal(precision=precision, scale=scale):
            return precision - scale >= (10 if type == INT else 19)
        case Decimal(precision=p, scale=s), Decimal(precision=precision, scale=scale):
            return s <= scale and p - s <= precision - scale
        case Struct(name=""), Struct():
            return _fits_by_attribute(type, into)
        case _:
            return False


def _fits_by_attribute(made: Struct, into: Struct) -> bool:
    """A struct made in an expression has no name: it fits by its attributes."""
    given = {attribute.name: attribute for attribute in made.attributes}
    wanted = {attribute.name for attribute in into.attributes}
    return given.keys() <= wanted and all(
        (present := given.get(attribute.name)) is not None and fits(present.type, attribute.type)
        if attribute.name in given
        else attribute.optional or attribute.default is not None
        for attribute in into.attributes
    )


# ── spatial types: built in, recognised by shape ────────────────────────────────────────────────────


def _struct(name: str, unit: Unit, *names: str) -> Struct:
    return Struct(name, tuple(Attribute(name=n, type=DOUBLE, unit=unit) for n in names))


POINT = _struct("Point", NO_UNIT, "x", "y")
BOX = _struct("Box", NO_UNIT, "x1", "y1", "x2", "y2")
POLYGON = Struct("Polygon", (Attribute(name="points", type=ListOf(POINT)),))
PLANAR = (POINT, BOX, POLYGON)


def geographic(degree: Unit) -> tuple[Struct, Struct, Struct]:
    """``GeoPoint``, ``GeoBox`` and ``GeoPolygon``, in degrees."""
    point = _struct("GeoPoint", degree, "lat", "lon")
    box = _struct("GeoBox", degree, "south", "west", "north", "east")
    return point, box, Struct("GeoPolygon", (Attribute(name="points", type=ListOf(point)),))


def unit_below(type: Type, unit: Unit, attribute: Attribute) -> Unit:
    """The unit of ``attribute`` read from a value of ``type`` that carries ``unit``.

    A unit written on a built-in planar type, ``Point m``, is that of its coordinates; on any other struct it is
    a label of the whole. On a list it is that of the elements.
    """
    if attribute.unit != NO_UNIT or type not in PLANAR:
        return attribute.unit
    return unit
