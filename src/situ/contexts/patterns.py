"""From the parts of a written pattern to types and attributes, and what can stand where.

This module gives each part its meaning by the type to its left: a name is an attribute if that type has one, else a
type. What cannot be is refused with its place. What patterns are good for is :mod:`situ.interpretation.patterns`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from situ.catalogue import (
    ATTRIBUTE_AND_TYPE,
    PATTERN_UNKNOWN,
    QUALIFIER_IMPOSSIBLE,
    QUALIFIER_NO_SUBTYPE,
)
from situ.errors import Problems, SituError, nearest
from situ.interpretation.model import Pattern, Qualifier
from situ.interpretation.pattern_syntax import Part, TypeText, split_pattern
from situ.types.model import Attribute, ListOf, Struct, Type, is_subtype
from situ.types.syntax import Locate
from situ.types.table import Types

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

    def _attribute(self, left: Type, attribute: Attribute, part: Part, *, last: bool) -> Qualifier:
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

    def _check_occurs(self, left: Type, type: Type, part: Part, *, last: bool) -> None:
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

    def _check_continues(self, part: Part, type: Type) -> None:
        if not isinstance(type, Struct):
            inner = innermost(type)
            remedy = f"For the elements write `{inner}`." if inner != type else "Make it the last part of the pattern."
            raise self._impossible(part, f"a `{type}` has no attributes, so nothing can follow it", remedy)

    def _impossible(self, part: Part, reason: str, remedy: str) -> SituError:
        place = self._locate(part.at, part.length)
        return SituError(QUALIFIER_IMPOSSIBLE(place, qualifier=part.text, reason=reason, remedy=remedy))

    def _no_subtype(self, left: Type, part: Part, given: TypeText, type: Type, declared: Type) -> SituError:
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
