"""Patterns that name places in events, such as ``Shipment.crates[].spare``: how they are read, matched and printed.

`split_pattern` cuts the text into parts, `PatternReader` gives each part its meaning, `Traversal` is one place of an
event, `matches` says whether a pattern names it. Which of several matching patterns counts is
:mod:`situ.contexts.resolve_rules`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NoReturn

import msgspec

from situ.contexts.model import Pattern, Qualifier
from situ.lang.catalogue import (
    ATTRIBUTE_AND_TYPE,
    PATTERN_SYNTAX,
    PATTERN_UNKNOWN,
    QUALIFIER_IMPOSSIBLE,
    QUALIFIER_NO_SUBTYPE,
)
from situ.lang.problems import Problems, SituError, nearest
from situ.lang.records import replace
from situ.lang.types.model import (
    DEEPEST,
    LONGEST_NAME,
    MOST_DIGITS,
    Attribute,
    Decimal,
    ListOf,
    Locate,
    Named,
    Struct,
    Type,
    is_subtype,
    nowhere,
)
from situ.lang.types.table import Types

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Syntax: parts between dots, each a name, perhaps with ``[]`` and a type in parentheses. Which types and attributes
# exist, and so where the dots of a type's own name end, is not known here.

MOST_PARTS = 4 * DEEPEST
"""No event is deeper than types can be stacked; the rest is room for types that have dots in their names."""

_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)*")
_DECIMAL = re.compile(r"decimal\s*\(\s*([0-9]{1,4})\s*,\s*([0-9]{1,4})\s*\)")
_ROOT = re.compile(r"root\s*:\s*")


class TypeText(msgspec.Struct, frozen=True, kw_only=True):
    """A type that is one for certain: in parentheses or brackets, or a decimal. ``lists`` counts its brackets."""

    name: str
    name_at: int
    at: int
    length: int
    lists: int = 0
    in_root: bool = False
    decimal: Decimal | None = None


class PatternPart(msgspec.Struct, frozen=True, kw_only=True):
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


def split_pattern(text: str, locate: Locate) -> list[PatternPart]:
    """The parts of a pattern, at least one; :class:`SituError` with INT201 where it cannot be read."""
    return _Cutter(text, locate).parts()


class _Cutter:
    """A cursor over the text of one pattern."""

    def __init__(self, text: str, locate: Locate) -> None:
        self._text = text
        self._locate = locate
        self._at = self._after_space(0)

    def parts(self) -> list[PatternPart]:
        parts = [self._part()]
        while self._take("."):
            if len(parts) == MOST_PARTS:
                self._fail(f"at most {MOST_PARTS} parts")
            parts.append(self._part())
        if self._at < len(self._text):
            self._fail("`.` and another part, or nothing more")
        return parts

    def _part(self) -> PatternPart:
        start = self._at
        in_root = self._take_match(_ROOT) is not None
        forced = in_root or self._take(":")
        if not in_root and (self._text.startswith("[", self._at) or _DECIMAL.match(self._text, self._at)):
            return self._finished(PatternPart(at=start, type=self._type()))
        at, name = self._at, self._name("a type" if start == 0 or forced else "an attribute or a type")
        if forced:
            return self._finished(PatternPart(at=start, name=name, name_at=at, forced=True, in_root=in_root))
        elements, given = self._take("["), None
        if elements:
            self._need("]", "`]`")
        if self._take("("):
            given = self._type()
            self._need(")", "`)`")
        return self._finished(PatternPart(at=start, name=name, name_at=at, elements=elements, given=given))

    def _finished(self, part: PatternPart) -> PatternPart:
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Meaning of the parts, given by the type to the left: a name is an attribute if that type has one, else a type. What
# cannot be is refused with its place.

_MOST_NAMED = 5  # in a hint


class PatternReader:
    """Reads one pattern from left to right; :class:`SituError` where something is wrong with it."""

    def __init__(self, text: str, types: Types, root: Types, problems: Problems, locate: Locate) -> None:
        self._text = text
        self._types = types
        self._root = root
        self._problems = problems
        self._locate = locate
        self._parts = split_pattern(text, locate)

    def pattern(self) -> Pattern:
        head, at = self._type(0)
        if at < len(self._parts) and not isinstance(head, Struct):
            reason = f"the first of several parts is the type of an event, and `{head}` is no struct"
            raise self._impossible(
                self._parts[0], reason, f"Write `{self._parts[-1].text}` alone, or begin with an event type."
            )
        qualifiers: list[Qualifier] = []
        left = head
        while at < len(self._parts):
            qualifier, at = self._qualifier(left, at)
            qualifiers.append(qualifier)
            left = qualifier.type
        return Pattern(head=head, qualifiers=tuple(qualifiers), text=self._text.strip())

    def _qualifier(self, left: Type, at: int) -> tuple[Qualifier, int]:
        part = self._parts[at]
        attributes = left.attributes if isinstance(left, Struct) else ()
        if part.can_be_attribute:
            for attribute in attributes:
                if attribute.name == part.name:
                    return self._attribute(left, attribute, part, last=at + 1 == len(self._parts)), at + 1
        names = tuple(attribute.name for attribute in attributes)
        if part.must_be_attribute:
            raise self._unknown("attribute", part.name, part.name_at, f" in `{left}`", names)
        type, after = self._type(at, left, names)
        self._check_occurs(left, type, part, last=after == len(self._parts))
        return Qualifier(type=type), after

    def _attribute(self, left: Type, attribute: Attribute, part: PatternPart, *, last: bool) -> Qualifier:
        """``attr``, ``attr(Type)``, ``attr[]``, ``attr[](Type)``; not last, one of a list is about its elements."""
        declared = attribute.type
        if part.is_bare and self._types.get(part.name) is not None:
            place = self._locate(part.at, part.length)
            self._problems.add(ATTRIBUTE_AND_TYPE(place, name=part.name, left=str(left), type=str(declared)))
        if part.elements and not isinstance(declared, ListOf):
            reason = f"`{part.name}` of `{left}` is a `{declared}`, and no list"
            raise self._impossible(part, reason, f"Write `{part.name}`, without `[]`.")
        possible = list(_element_types(declared)) if part.elements else [declared]
        type = possible[0] if part.given is None else self._look_up(part.given)
        if part.given is not None and not any(is_subtype(type, each) for each in possible):
            raise self._no_subtype(left, part, part.given, type, possible[0])
        elements = part.elements
        if not last and isinstance(type, ListOf):
            elements, type = True, innermost(type)
        if not last:
            self._check_continues(part, type)
        return Qualifier(type=type, attribute=attribute.name, elements=elements)

    def _type(self, at: int, left: Type | None = None, attributes: tuple[str, ...] = ()) -> tuple[Type, int]:
        """The type that begins with a part, and where it ends: names of types may have dots, the longest counts."""
        part = self._parts[at]
        if part.type is not None:
            return self._look_up(part.type), at + 1
        if part.must_be_attribute:
            raise self._impossible(
                part, "a pattern begins with a type", f"Write `{part.name}` alone, or an event type first."
            )
        table = self._root if part.in_root else self._types
        end = at + 1
        while end < len(self._parts) and self._parts[end].is_bare:
            end += 1
        for stop in range(end, at, -1):
            found = table.get(".".join(each.name for each in self._parts[at:stop]))
            if found is not None:
                return found, stop
        if left is None or part.forced:
            raise self._unknown("type", part.name, part.name_at, "", table.names)
        where = f" in `{left}`, and no type of this name"
        raise self._unknown("attribute", part.name, part.name_at, where, (*attributes, *table.names))

    def _look_up(self, text: TypeText) -> Type:
        table = self._root if text.in_root else self._types
        found: Type | None = text.decimal or table.get(text.name)
        if found is None:
            raise self._unknown("type", text.name, text.name_at, "", table.names)
        for _ in range(text.lists):
            found = ListOf(found)
        return found

    def _check_occurs(self, left: Type, type: Type, part: PatternPart, *, last: bool) -> None:
        """A type must be possible below what stands to its left: directly, or if it is the last at any depth."""
        if not last:
            self._check_continues(part, type)
        if self._occurs(type, _below(left, self._types) if last else _directly_below(left)):
            return
        if last or not self._occurs(type, _below(left, self._types)):
            remedy = "Take this part out, or name another type."
            raise self._impossible(part, f"no value below `{left}` can be a `{type}`", remedy)
        remedy = "Only the last part of a pattern skips levels: name those that lie between."
        raise self._impossible(part, f"no attribute of `{left}` can be a `{type}`", remedy)

    def _occurs(self, type: Type, declared: Iterable[Type]) -> bool:
        return any(is_subtype(each, type) for above in declared for each in self._types.subtypes(above))

    def _check_continues(self, part: PatternPart, type: Type) -> None:
        if not isinstance(type, Struct):
            inner = innermost(type)
            remedy = f"For the elements write `{inner}`." if inner != type else "Make it the last part of the pattern."
            raise self._impossible(part, f"a `{type}` has no attributes, so nothing can follow it", remedy)

    def _impossible(self, part: PatternPart, reason: str, remedy: str) -> SituError:
        place = self._locate(part.at, part.length)
        return SituError(QUALIFIER_IMPOSSIBLE(place, qualifier=part.text, reason=reason, remedy=remedy))

    def _no_subtype(self, left: Type, part: PatternPart, given: TypeText, type: Type, declared: Type) -> SituError:
        return SituError(
            QUALIFIER_NO_SUBTYPE(
                self._locate(given.at, given.length),
                type=str(type),
                declared=str(declared),
                left=str(left),
                attribute=f"{part.name}[]" if part.elements else part.name,
                possible=tuple(map(str, self._types.subtypes(declared)[:_MOST_NAMED])),
            )
        )

    def _unknown(self, what: str, name: str, at: int, where: str, known: tuple[str, ...]) -> SituError:
        place = self._locate(at, len(name))
        return SituError(PATTERN_UNKNOWN(place, what=what, name=name, where=where, nearest=nearest(name, known)))


# ── what lies below a type ────────────────────────────────────────────────────────────────────────


def innermost(type: Type) -> Type:
    while isinstance(type, ListOf):
        type = type.element
    return type


def _element_types(type: Type) -> Iterator[Type]:
    """What the elements of a list are; where those are lists, theirs as well."""
    while isinstance(type, ListOf):
        type = type.element
        yield type


def _directly_below(type: Type) -> Iterator[Type]:
    """The declared types of the values one level down: attributes, and elements of those that are lists."""
    if isinstance(type, Struct):
        for attribute in type.attributes:
            yield attribute.type
            yield from _element_types(attribute.type)


def _below(type: Type, types: Types) -> Iterator[Type]:
    """The declared types of all values further down, where subtypes can stand those of their attributes as well."""
    seen: set[Type] = set()
    waiting = list(_directly_below(type))
    while waiting:
        declared = waiting.pop()
        if declared in seen:
            continue
        seen.add(declared)
        yield declared
        if isinstance(declared, Struct):
            waiting.extend(inner for each in types.subtypes(declared) for inner in _directly_below(each))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Places and patterns. A *traversal* is one place: the event's type, then attribute by attribute, each with the type its
# value has there. A *pattern* stands for many.


class TraversalStep(msgspec.Struct, frozen=True, kw_only=True):
    """From a struct to the value of an attribute, or with ``elements`` to an element of the list that it is.

    ``type`` is the dynamic type of that value. A list and its elements are on the same level.
    """

    attribute: str
    elements: bool = False
    type: Type


class Traversal(msgspec.Struct, frozen=True, kw_only=True):
    """One place in an event of type ``event``: without steps the event itself."""

    event: Struct
    steps: tuple[TraversalStep, ...] = ()

    @property
    def type(self) -> Type:
        """The dynamic type of the value there."""
        return self.steps[-1].type if self.steps else self.event

    @property
    def types(self) -> tuple[Type, ...]:
        """The dynamic types on the way, those of the event and of the place included: one a level."""
        return (self.event, *(step.type for step in self.steps))

    def __str__(self) -> str:
        return ".".join(self._shown())

    def _shown(self) -> Iterator[str]:
        left: Type = self.event
        for step in self.steps:
            declared = left.attribute(step.attribute) if isinstance(left, Struct) else None
            lists = _lists(declared.type) - _lists(step.type) if declared else int(step.elements)
            yield step.attribute + "[]" * lists
            left = step.type


def _lists(type: Type) -> int:
    return 1 + _lists(type.element) if isinstance(type, ListOf) else 0


def matches(pattern: Pattern, path: Traversal) -> bool:
    """Whether the pattern names this place.

    One of a type alone names every value of the type, at any depth. With qualifiers its head is the event, every
    qualifier holds one level further down, and if the last is a type, any number of levels may lie before it.
    """
    if not pattern.qualifiers:
        return is_subtype(path.type, pattern.head)
    *inner, last = pattern.qualifiers
    wanted, found = len(pattern.qualifiers), len(path.steps)
    return (
        (found == wanted if last.attribute else found >= wanted)
        and is_subtype(path.event, pattern.head)
        and holds(last, path.steps[-1])
        and all(map(holds, inner, path.steps))
    )


def holds(qualifier: Qualifier, step: TraversalStep) -> bool:
    if qualifier.attribute and (qualifier.attribute, qualifier.elements) != (step.attribute, step.elements):
        return False
    return is_subtype(step.type, qualifier.type)


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def read_pattern(
    text: str, types: Types, problems: Problems, locate: Locate = nowhere, *, root: Types | None = None
) -> Pattern | None:
    """The pattern in its normal form: every qualifier with its type. None if something is wrong with it.

    ``types`` are those visible where it stands; ``root:Name`` is looked up in ``root``, for names hidden there.
    """
    try:
        return PatternReader(text, types, root or types, problems, locate).pattern()
    except SituError as error:
        problems.extend(error.problems)
        return None


# ── printing ──────────────────────────────────────────────────────────────────────────────────────


def print_pattern(pattern: Pattern, types: Types | None = None) -> str:
    """The shortest text that reads back as this pattern.

    With ``types``, those visible where it is to stand, it reads back there without a warning: hidden types are written
    ``root:Name``, and nothing is left out that tells attributes from types.
    """
    written = [_print_type(pattern.head, types)]
    left = pattern.head
    for number, qualifier in enumerate(pattern.qualifiers, 1):
        last = number == len(pattern.qualifiers)
        if qualifier.attribute:
            clear = types is None or not _can_be_type(written[-1], qualifier.attribute, types)
            written.append(_print_attribute(qualifier, left, types, last=last, clear=clear))
        else:
            written.append(_print_type_qualifier(qualifier.type, left, written[-1], types))
        left = qualifier.type
    return ".".join(written)


def _print_attribute(qualifier: Qualifier, left: Type, types: Types | None, *, last: bool, clear: bool) -> str:
    attribute = left.attribute(qualifier.attribute) if isinstance(left, Struct) else None
    declared = attribute.type if attribute is not None else None
    name = f"{qualifier.attribute}[]" if qualifier.elements else qualifier.attribute
    if not last and declared is not None and clear and innermost(declared) == qualifier.type:
        return qualifier.attribute
    meant = declared.element if isinstance(declared, ListOf) and qualifier.elements else declared
    if meant == qualifier.type and (clear or qualifier.elements):
        return name
    return f"{name}({_print_type(qualifier.type, types)})"


def _print_type_qualifier(type: Type, left: Type, before: str, types: Types | None) -> str:
    written = _print_type(type, types)
    word = written.split(".")[0]
    is_attribute = isinstance(left, Struct) and left.attribute(word) is not None
    runs_on = types is not None and _runs_on(before, word, types)
    return f":{written}" if is_attribute or runs_on else written


def _can_be_type(before: str, attribute: str, types: Types) -> bool:
    """Whether a bare attribute could be taken for a type, or for a further word of the type before it."""
    return types.get(attribute) is not None or _runs_on(before, attribute, types)


def _runs_on(before: str, word: str, types: Types) -> bool:
    if before.startswith("root:"):
        return True
    begins = f"{before.removeprefix(':')}.{word}"
    return any(name == begins or name.startswith(f"{begins}.") for name in types.names)


def _print_type(type: Type, types: Types | None) -> str:
    if isinstance(type, ListOf):
        return f"[{_print_type(type.element, types)}]"
    hidden = types is not None and isinstance(type, Struct | Named) and types.get(type.name) != type
    return f"root:{type}" if hidden else str(type)
