"""The type system: what types are, how they are written, and what a struct has from its supertypes.

How values are checked against types is :mod:`situ.lang.types.json_codec`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, NoReturn

import msgspec

from situ.lang.catalogue import TYPE_SYNTAX
from situ.lang.problems import Location, SituError
from situ.lang.units import NO_UNIT, Unit

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Types: primitives, named primitives, structs with supertypes, lists.
#
# Types are trees of values, not references: a struct may not contain itself, so a resolved type holds everything below
# it. Subtyping is nominal.


class Primitive(msgspec.Struct, frozen=True):
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


class Decimal(msgspec.Struct, frozen=True):
    """Exact decimal numbers: ``precision`` digits in all, ``scale`` of them after the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


class Named(msgspec.Struct, frozen=True):
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


class ListOf(msgspec.Struct, frozen=True):
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# How types and attributes are written: ``optional [Line]``, ``double km/h``, ``Name(Super, Other)``.
#
# Such text becomes references that nobody has looked up yet, and resolved types are printed back in the one canonical
# spelling. Only the grammar is known here; which types and units exist is for :mod:`situ.lang.types.resolve`.

DEEPEST = 64
"""How deep lists, structs in structs and supertypes may be stacked: a stack of calls must hold them."""

TYPE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)*")
ATTRIBUTE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RESERVED_TYPES = frozenset(PRIMITIVES) | {"decimal", "optional"}
RESERVED_PREFIX = "situ."
ROOT_PREFIX = "root:"
"""``root:Name`` reaches the root type that a context's own type of that name hides."""
LONGEST_NAME = 200

_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"[^\s\[\](),]+")
_DIGITS = re.compile(r"[0-9]{1,4}")

Locate = Callable[[int, int], Location | None]
"""The place of ``length`` characters at ``offset`` of the text being read."""

Place = Callable[[], Location | None]
"""A place that is worked out only when something is wrong there."""


def nowhere(offset: int = 0, length: int = 1) -> None:
    """For text that stands in no document."""


@dataclass(frozen=True, slots=True)
class NameRef:
    """A type by its name, not yet looked up."""

    name: str
    place: Place = field(default=nowhere, compare=False)


@dataclass(frozen=True, slots=True)
class DecimalRef:
    """``decimal(p,s)``, complete in itself."""

    type: Decimal
    place: Place = field(default=nowhere, compare=False)


@dataclass(frozen=True, slots=True)
class ListRef:
    """``[T]``."""

    element: TypeRef
    place: Place = field(default=nowhere, compare=False)


TypeRef = NameRef | DecimalRef | ListRef


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeText:
    """``[optional] TYPE [UNIT]`` as written; an empty unit is none."""

    type: TypeRef
    unit: str = ""
    optional: bool = False
    unit_place: Place = field(default=nowhere, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadText:
    """``Name`` or ``Name(Super, Other)`` as written."""

    name: str
    supers: tuple[NameRef | DecimalRef, ...] = ()
    place: Place = field(default=nowhere, compare=False)


def parse_attribute(text: str, locate: Locate = nowhere) -> AttributeText:
    """Read the shorthand of an attribute; :class:`SituError` with INT109 where it cannot be read."""
    reader = _Reader(text, locate)
    optional = reader.keyword("optional")
    type = reader.type()
    unit, unit_place = reader.rest()
    return AttributeText(type=type, unit=unit, optional=optional, unit_place=unit_place)


def parse_type(text: str, locate: Locate = nowhere) -> TypeRef:
    """Read a type that stands alone, without ``optional`` and unit."""
    reader = _Reader(text, locate)
    type = reader.type()
    reader.end("a type alone")
    return type


def parse_head(text: str, locate: Locate = nowhere) -> HeadText:
    """Read the head of a declaration: a name, and what it is a subtype of."""
    reader = _Reader(text, locate)
    name = reader.new_name("a name of letters, digits and `_`, dotted if need be")
    supers: list[NameRef | DecimalRef] = []
    if reader.take("("):
        while True:
            super_type = reader.simple("a supertype")
            supers.append(super_type)
            if not reader.take(","):
                break
        reader.need(")", "`,` or `)`")
    reader.end("`(` with supertypes, or nothing more")
    return HeadText(name=name.name, supers=tuple(supers), place=name.place)


def format_type(type: Type) -> str:
    """The canonical spelling of a type: what :func:`parse_type` reads back."""
    return f"[{format_type(type.element)}]" if isinstance(type, ListOf) else str(type)


def format_attribute(attribute: Attribute) -> str:
    """The shorthand of an attribute, its default left out: only the long form has one."""
    words = ["optional"] if attribute.optional else []
    words.append(format_type(attribute.type))
    if attribute.unit.factors:
        words.append(str(attribute.unit))
    return " ".join(words)


def format_head(name: str, supers: tuple[str, ...]) -> str:
    return f"{name}({', '.join(supers)})" if supers else name


class _Reader:
    """A cursor over one line of text."""

    def __init__(self, text: str, locate: Locate) -> None:
        self._text = text
        self._locate = locate
        self._at = self._after_space(0)

    def _after_space(self, position: int) -> int:
        match = _SPACE.match(self._text, position)
        return match.end() if match else position

    def take(self, symbol: str) -> bool:
        if self._text.startswith(symbol, self._at):
            self._at = self._after_space(self._at + len(symbol))
            return True
        return False

    def need(self, symbol: str, expected: str) -> None:
        if not self.take(symbol):
            self.fail(expected)

    def end(self, expected: str) -> None:
        if self._at < len(self._text):
            self.fail(expected)

    def keyword(self, word: str) -> bool:
        match = _WORD.match(self._text, self._at)
        if match is None or match[0] != word:
            return False
        self._at = self._after_space(match.end())
        return True

    def type(self) -> TypeRef:
        opened: list[int] = []
        while self._text.startswith("[", self._at):
            opened.append(self._at)
            if len(opened) > DEEPEST:
                self.fail(f"at most {DEEPEST} `[`")
            self.take("[")
        type: TypeRef = self.simple("a type")
        for start in reversed(opened):
            self.need("]", "`]`")
            type = ListRef(type, partial(self._locate, start, self._at - start))
        return type

    def simple(self, expected: str) -> NameRef | DecimalRef:
        name = self.name(expected)
        if name.name != "decimal":
            return name
        self.need("(", "`(` with digits and decimal places, as in `decimal(18,2)`")
        start = self._at
        precision = self.number()
        self.need(",", "`,` and decimal places; between braces, `decimal(18,2)` stands in quotes")
        scale = self.number()
        if not 1 <= precision <= MOST_DIGITS or scale > precision:
            self._at = start
            self.fail(f"1 to {MOST_DIGITS} digits, of which no more are decimal places")
        self.need(")", "`)`")
        return DecimalRef(Decimal(precision, scale), name.place)

    def name(self, expected: str) -> NameRef:
        match = _WORD.match(self._text, self._at)
        name = match[0].removeprefix(ROOT_PREFIX) if match else ""
        if match is None or not TYPE_NAME.fullmatch(name) or len(name) > LONGEST_NAME:
            self.fail(expected)
        self._at = self._after_space(match.end())
        return NameRef(match[0], partial(self._locate, match.start(), len(match[0])))

    def new_name(self, expected: str) -> NameRef:
        """A name that is given here, not referred to."""
        if self._text.startswith(ROOT_PREFIX, self._at):
            self.fail(expected)
        return self.name(expected)

    def number(self) -> int:
        match = _DIGITS.match(self._text, self._at)
        if match is None:
            self.fail("a number of digits")
        self._at = self._after_space(match.end())
        return int(match[0])

    def rest(self) -> tuple[str, Place]:
        start, text = self._at, self._text[self._at :].rstrip()
        if text[:1] in tuple("[](),"):
            self.fail("a unit or nothing more")
        self._at = len(self._text)
        return text, partial(self._locate, start, len(text))

    def fail(self, expected: str) -> NoReturn:
        match = _WORD.match(self._text, self._at)
        found = match[0] if match else self._text[self._at : self._at + 1]
        raise SituError(
            TYPE_SYNTAX(
                self._locate(self._at, max(1, len(found))),
                found=f"`{found}`" if found else "the end",
                expected=expected,
            )
        )


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What a struct has from its supertypes, and what it may change in it.
#
# The attributes of the supertypes come first, in declared order; one that is declared again keeps its place and takes
# the new declaration. That may only narrow: wherever a value of the supertype is expected, one of the subtype must do.


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """An attribute that does not go with the one a supertype has; all in words."""

    attribute: str
    found: str
    above: str
    expected: str
    remedy: str


def combine(supers: Iterable[Struct], own: Iterable[Attribute]) -> tuple[Attribute, ...]:
    """All attributes of a struct with these supertypes and own declarations."""
    attributes: dict[str, Attribute] = {}
    for above in supers:
        for attribute in above.attributes:
            attributes.setdefault(attribute.name, attribute)
    attributes.update((attribute.name, attribute) for attribute in own)
    return tuple(attributes.values())


def own_attributes(struct: Struct) -> tuple[Attribute, ...]:
    """The attributes the struct must declare itself: new ones, and those in which some supertype differs."""
    inherited = _inherited(struct.supers)
    return tuple(
        attribute
        for attribute in struct.attributes
        if attribute.name not in inherited or any(other != attribute for _, other in inherited[attribute.name])
    )


def find_conflicts(name: str, supers: tuple[Struct, ...], own: Mapping[str, Attribute]) -> Iterator[Conflict]:
    """Where own attributes do more than narrow inherited ones, and where supertypes disagree and nothing settles it."""
    inherited = _inherited(supers)
    for attribute in own.values():
        for above, other in inherited.get(attribute.name, ()):
            if remedy := _why_not(attribute, other):
                yield _conflict(f"`{format_attribute(attribute)}`", attribute.name, above, other, remedy)
    if len(supers) < 2:
        return
    for attribute_name, versions in inherited.items():
        first_above, first = versions[0]
        above, other = next(((a, o) for a, o in versions if o != first), (first_above, first))
        if other != first and attribute_name not in own:
            found = f"`{_shown(first)}` from `{first_above.name}`"
            remedy = f"Declare `{attribute_name}` in `{name}` with a type that suits both."
            yield _conflict(found, attribute_name, above, other, remedy)


def _inherited(supers: Iterable[Struct]) -> dict[str, list[tuple[Struct, Attribute]]]:
    result: dict[str, list[tuple[Struct, Attribute]]] = {}
    for above in supers:
        for attribute in above.attributes:
            result.setdefault(attribute.name, []).append((above, attribute))
    return result


def _why_not(attribute: Attribute, inherited: Attribute) -> str:
    if not is_subtype(attribute.type, inherited.type):
        return f"An attribute may be declared again only with a subtype of `{inherited.type}`."
    if attribute.unit != inherited.unit:
        return "An attribute that is declared again keeps its unit."
    if attribute.optional and not inherited.optional:
        return "An attribute that is always there cannot become optional."
    return ""


def _conflict(found: str, attribute: str, above: Struct, other: Attribute, remedy: str) -> Conflict:
    expected = f"`{_shown(other)}`"
    return Conflict(attribute=attribute, found=found, above=f"`{above.name}`", expected=expected, remedy=remedy)


def _shown(attribute: Attribute) -> str:
    text = format_attribute(attribute)
    return text if attribute.default is None else f"{text} with a default"
