"""How patterns are written: parts between dots, each a name, perhaps with ``[]`` and a type in parentheses.

This module cuts the text into parts and knows nothing of which types and attributes exist; that, and so where the dots
of a type's own name end, is for :mod:`situ.interpretation.patterns`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NoReturn

from situ.catalogue import PATTERN_SYNTAX
from situ.errors import SituError
from situ.types.model import MOST_DIGITS, Decimal
from situ.types.syntax import DEEPEST, LONGEST_NAME, Locate

MOST_PARTS = 4 * DEEPEST
"""No event is deeper than types can be stacked; the rest is room for types that have dots in their names."""

_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)*")
_DECIMAL = re.compile(r"decimal\s*\(\s*([0-9]{1,4})\s*,\s*([0-9]{1,4})\s*\)")
_ROOT = re.compile(r"root\s*:\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeText:
    """A type that is one for certain: in parentheses or brackets, or a decimal. ``lists`` counts its brackets."""

    name: str
    name_at: int
    at: int
    length: int
    lists: int = 0
    in_root: bool = False
    decimal: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What stands between two dots."""

    at: int
    text: str = ""
    length: int = 0
    name: str = ""
    name_at: int = 0
    forced: bool = False
    """``:Name`` or ``root:Name``: a type, whatever the attributes are called."""
    in_root: bool = False
    elements: bool = False
    given: TypeText | None = None
    type: TypeText | None = None

    @property
    def can_be_attribute(self) -> bool:
        return not self.forced and self.type is None

    @property
    def must_be_attribute(self) -> bool:
        return self.elements or self.given is not None

    @property
    def is_bare(self) -> bool:
        """A name and nothing else: attribute or type, or a further word of a type's name."""
        return self.can_be_attribute and not self.must_be_attribute


def split_pattern(text: str, locate: Locate) -> list[Part]:
    """The parts of a pattern, at least one; :class:`SituError` with INT201 where it cannot be read."""
    return _Cutter(text, locate).parts()


class _Cutter:
    """A cursor over the text of one pattern."""

    def __init__(self, text: str, locate: Locate) -> None:
        self._text = text
        self._locate = locate
        self._at = self._after_space(0)

    def parts(self) -> list[Part]:
        parts = [self._part()]
        while self._take("."):
            if len(parts) == MOST_PARTS:
                self._fail(f"at most {MOST_PARTS} parts")
            parts.append(self._part())
        if self._at < len(self._text):
            self._fail("`.` and another part, or nothing more")
        return parts

    def _part(self) -> Part:
        start = self._at
        in_root = self._take_match(_ROOT) is not None
        forced = in_root or self._take(":")
        if not in_root and (self._text.startswith("[", self._at) or _DECIMAL.match(self._text, self._at)):
            return self._finished(Part(at=start, type=self._type()))
        at, name = self._at, self._name("a type" if start == 0 or forced else "an attribute or a type")
        if forced:
            return self._finished(Part(at=start, name=name, name_at=at, forced=True, in_root=in_root))
        elements, given = self._take("["), None
        if elements:
            self._need("]", "`]`")
        if self._take("("):
            given = self._type()
            self._need(")", "`)`")
        return self._finished(Part(at=start, name=name, name_at=at, elements=elements, given=given))

    def _finished(self, part: Part) -> Part:
        text = self._text[part.at : self._at].strip()
        return replace(part, text=text, length=len(text))

    def _type(self) -> TypeText:
        """A type that nothing but a closing bracket can follow, so that all dots belong to its name."""
        start, lists = self._at, 0
        while self._text.startswith("[", self._at):
            if lists == DEEPEST:
                self._fail(f"at most {DEEPEST} `[`")
            lists += self._take("[")
        self._take(":")
        in_root = self._take_match(_ROOT) is not None
        name, name_at, decimal = "", self._at, None
        if found := self._take_match(_DECIMAL):
            decimal = self._decimal(found)
        elif found := self._take_match(_TYPE_NAME):
            name = found[0]
        else:
            self._fail("a type")
        for _ in range(lists):
            self._need("]", "`]`")
        length = len(self._text[start : self._at].rstrip())
        return TypeText(
            name=name, name_at=name_at, at=start, length=length, lists=lists, in_root=in_root, decimal=decimal
        )

    def _decimal(self, found: re.Match[str]) -> Decimal:
        precision, scale = int(found[1]), int(found[2])
        if not 1 <= precision <= MOST_DIGITS or scale > precision:
            self._at = found.start(1)
            self._fail(f"1 to {MOST_DIGITS} digits, of which no more are decimal places")
        return Decimal(precision, scale)

    def _name(self, expected: str) -> str:
        found = self._take_match(_NAME)
        if found is None:
            self._fail(expected)
        if len(found[0]) > LONGEST_NAME:
            self._at = found.start()
            self._fail(f"a name of at most {LONGEST_NAME} characters")
        return found[0]

    def _take(self, symbol: str) -> bool:
        if not self._text.startswith(symbol, self._at):
            return False
        self._at = self._after_space(self._at + len(symbol))
        return True

    def _take_match(self, wanted: re.Pattern[str]) -> re.Match[str] | None:
        found = wanted.match(self._text, self._at)
        if found is not None:
            self._at = self._after_space(found.end())
        return found

    def _need(self, symbol: str, expected: str) -> None:
        if not self._take(symbol):
            self._fail(expected)

    def _after_space(self, position: int) -> int:
        found = _SPACE.match(self._text, position)
        return found.end() if found else position

    def _fail(self, expected: str) -> NoReturn:
        word = _NAME.match(self._text, self._at)
        found = word[0] if word else self._text[self._at : self._at + 1]
        place = self._locate(self._at, max(1, len(found)))
        raise SituError(PATTERN_SYNTAX(place, found=f"`{found}`" if found else "the end", expected=expected))
