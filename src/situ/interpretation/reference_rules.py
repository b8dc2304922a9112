"""Which rule counts at a place of an event, in the words of the definition: all are tried, and the smallest key wins.

Part of :mod:`situ.interpretation.reference`, and like that written apart from what engines run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from situ.interpretation.model import KEEP, Context, Direction, Pattern, Qualifier, Rule
from situ.types.model import ListOf, Named, Struct, Type, is_subtype

_Step = tuple[str, bool, Type]
"""Attribute, whether an element of it, dynamic type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place of an event: the event's type, and the steps to it."""

    event: Struct
    steps: tuple[_Step, ...] = ()

    @property
    def types(self) -> tuple[Type, ...]:
        return (self.event, *(type for _, _, type in self.steps))

    def ending_in(self, type: Type) -> Place:
        if not self.steps:
            return Place(event=type) if isinstance(type, Struct) else self
        attribute, elements, _ = self.steps[-1]
        return Place(event=self.event, steps=(*self.steps[:-1], (attribute, elements, type)))

    def below(self, attribute: str, type: Type) -> Place:
        return Place(event=self.event, steps=(*self.steps, (attribute, False, type)))

    def element(self, type: Type) -> Place:
        attribute, _, _ = self.steps[-1]
        return Place(event=self.event, steps=(*self.steps[:-1], (attribute, True, type)))


def winner(context: Context, direction: Direction, place: Place) -> Rule | None:
    """The rule that converts this place, whatever lies above it."""
    found = [rule for rule in _visible_rules(context, direction) if matches(rule.pattern, place)]
    return min(found, key=lambda rule: key(rule.pattern, place), default=None)


def _visible_rules(context: Context, direction: Direction) -> list[Rule]:
    in_force: dict[Pattern, Rule] = {}
    for each in reversed(list(context.chain)):
        for rule in sorted(each.rules, key=lambda rule: rule.order):
            if rule.direction is direction:
                in_force[rule.pattern] = rule
    return [rule for rule in in_force.values() if rule.function != KEEP]


def matches(pattern: Pattern, place: Place) -> bool:
    types = place.types
    length = len(place.steps)
    if not pattern.qualifiers:
        return is_subtype(types[-1], pattern.head)
    if not is_subtype(types[0], pattern.head):
        return False
    last = len(pattern.qualifiers)
    if last > length or not all(_holds(pattern.qualifiers[i - 1], place.steps[i - 1]) for i in range(1, last)):
        return False
    if pattern.qualifiers[-1].attribute:
        return length == last and _holds(pattern.qualifiers[-1], place.steps[-1])
    return is_subtype(types[-1], pattern.qualifiers[-1].type)


def _holds(qualifier: Qualifier, step: _Step) -> bool:
    attribute, elements, type = step
    named = not qualifier.attribute or (qualifier.attribute, qualifier.elements) == (attribute, elements)
    return named and is_subtype(type, qualifier.type)


def key(pattern: Pattern, place: Place) -> tuple[tuple[float, int, int], ...]:
    types = place.types
    said: dict[int, tuple[Type, int]] = {}
    if pattern.qualifiers:
        said[0] = (pattern.head, 1)
        for level, qualifier in enumerate(pattern.qualifiers[:-1], 1):
            said[level] = (qualifier.type, 0 if qualifier.attribute else 1)
    last = pattern.qualifiers[-1] if pattern.qualifiers else None
    said[len(types) - 1] = (pattern.head, 1) if last is None else (last.type, 0 if last.attribute else 1)
    keys = [
        (float(_distance(type, said[level][0])), said[level][1], _order(type, said[level][0]))
        if level in said
        else (math.inf, 0, 0)
        for level, type in enumerate(types)
    ]
    return (keys[-1], *keys[:-1])


def _above(type: Type) -> tuple[Type, ...]:
    if isinstance(type, ListOf):
        return tuple(ListOf(each) for each in _above(type.element))
    return type.supers if isinstance(type, Struct) else (type.base,) if isinstance(type, Named) else ()


def _distance(type: Type, up_to: Type) -> int:
    if type == up_to:
        return 0
    return max((1 + _distance(each, up_to) for each in _above(type) if is_subtype(each, up_to)), default=0)


def _order(type: Type, wanted: Type) -> int:
    return next(number for number, each in enumerate(_walk_up(type)) if each == wanted)


def _walk_up(type: Type) -> Iterator[Type]:
    yield type
    for each in _above(type):
        yield from _walk_up(each)
