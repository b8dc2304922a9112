"""How types and attributes are written: ``optional [Line]``, ``double km/h``, ``Name(Super, Other)``.

This module turns such text into references that nobody has looked up yet, and prints resolved types back in
the one canonical spelling. It knows the grammar and nothing of which types or units exist; that is
:mod:`situ.types.resolve`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn

from situ.catalogue import TYPE_SYNTAX
from situ.errors import Location, SituError
from situ.types.model import MOST_DIGITS, PRIMITIVES, Attribute, Decimal, ListOf, Type

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
