"""What rules do, worked out the slow way: every place is tried with every rule, and every rule with every other.

Written from the definitions, sentence by sentence, and sharing nothing with the product but the classes that hold
types, patterns and rules; tests hold the product equal to it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from situ.contexts.model import Context, Direction, Pattern, Qualifier, Rule
from situ.lang.types.model import ListOf, Named, Struct, Type


@dataclass(frozen=True)
class Level:
    """One level of a path: the attribute that leads there (none to the event), and the dynamic type found."""

    attribute: str
    elements: bool
    type: Type


Way = tuple[Level, ...]
"""A traversal path, the level of the event first."""


# ── types ─────────────────────────────────────────────────────────────────────────────────────────


def directly_above(type: Type) -> Sequence[Type]:
    if isinstance(type, Named):
        return [type.base]
    return type.supers if isinstance(type, Struct) else []


def below_or_same(type: Type, other: Type) -> bool:
    """Declared, reflexive, transitive; of lists if it is of their elements."""
    if isinstance(type, ListOf) and isinstance(other, ListOf):
        return below_or_same(type.element, other.element)
    return type == other or any(below_or_same(above, other) for above in directly_above(type))


def longest_chain(type: Type, other: Type) -> int:
    if isinstance(type, ListOf) and isinstance(other, ListOf):
        return longest_chain(type.element, other.element)
    if type == other:
        return 0
    return 1 + max(longest_chain(above, other) for above in directly_above(type) if below_or_same(above, other))


def walk_up(type: Type) -> Iterator[Type]:
    """Depth first, left to right."""
    if isinstance(type, ListOf):
        yield from (ListOf(above) for above in walk_up(type.element))
        return
    yield type
    for above in directly_above(type):
        yield from walk_up(above)


def dynamic_types(declared: Type, table: Iterable[Type]) -> list[Type]:
    """Its declared type, unless it is a struct, which may be any subtype."""
    if not isinstance(declared, Struct):
        return [declared]
    return [declared, *(type for type in table if type != declared and below_or_same(type, declared))]


# ── matching ──────────────────────────────────────────────────────────────────────────────────────


def holds(qualifier: Qualifier, level: Level) -> bool:
    if qualifier.attribute == "":
        return below_or_same(level.type, qualifier.type)
    return (
        qualifier.attribute == level.attribute
        and qualifier.elements == level.elements
        and below_or_same(level.type, qualifier.type)
    )


def is_match(pattern: Pattern, way: Way) -> bool:
    m, n = len(pattern.qualifiers), len(way) - 1
    if m == 0:
        return below_or_same(way[n].type, pattern.head)
    if not below_or_same(way[0].type, pattern.head):
        return False
    if n < m:
        return False
    for i in range(1, m):
        if not holds(pattern.qualifiers[i - 1], way[i]):
            return False
    last = pattern.qualifiers[m - 1]
    if last.attribute != "":
        return n == m and holds(last, way[m])
    return below_or_same(way[n].type, last.type)


# ── precedence ────────────────────────────────────────────────────────────────────────────────────


def said(pattern: Pattern, way: Way, level: int) -> Qualifier | None:
    """What the pattern says about a level: its last part about the target, the others about 0, 1, … in order."""
    parts = [Qualifier(type=pattern.head), *pattern.qualifiers]
    if level == len(way) - 1:
        return parts[-1]
    return parts[level] if level < len(parts) - 1 else None


def more_specific(p: Pattern, q: Pattern, way: Way) -> int:
    """Negative if p comes before q, positive if after, 0 if no level tells them apart."""
    n = len(way) - 1
    for level in [n, *range(n)]:
        of_p, of_q = said(p, way, level), said(q, way, level)
        if of_p is None and of_q is None:
            continue
        if of_p is None or of_q is None:
            return 1 if of_p is None else -1
        found = way[level].type
        by_distance = longest_chain(found, of_p.type) - longest_chain(found, of_q.type)
        if by_distance:
            return by_distance
        by_kind = (of_p.attribute == "") - (of_q.attribute == "")
        if by_kind:
            return by_kind
        up = list(walk_up(found))
        by_order = up.index(of_p.type) - up.index(of_q.type)
        if by_order:
            return by_order
    return 0


def ranked(rules: Iterable[Rule], way: Way, depths: Mapping[str, int]) -> list[Rule]:
    """The rules that match, the winner first."""

    def compare(a: Rule, b: Rule) -> int:
        by_pattern = more_specific(a.pattern, b.pattern, way)
        if by_pattern:
            return by_pattern
        if a.context != b.context:
            return depths[b.context] - depths[a.context]
        return b.order - a.order

    left = sorted((rule for rule in rules if is_match(rule.pattern, way)), key=functools.cmp_to_key(compare))
    result: list[Rule] = []
    while left:
        first = left[0]
        same = [rule for rule in left if more_specific(rule.pattern, first.pattern, way) == 0]
        left = [rule for rule in left if rule not in same]
        if first.function != "keep":
            result.extend(same)
    return result


# ── traversal ─────────────────────────────────────────────────────────────────────────────────────


def visible_rules(context: Context, direction: Direction) -> list[Rule]:
    own = [rule for rule in context.rules if rule.direction == direction]
    return own if context.parent is None else own + visible_rules(context.parent, direction)


def depth(context: Context) -> dict[str, int]:
    above = {} if context.parent is None else depth(context.parent)
    return {**above, context.id: len(above)}


def visit(
    event: Struct, rules: Sequence[Rule], depths: Mapping[str, int], table: Sequence[Type]
) -> dict[Way, list[Rule]]:
    """Every place that is visited, with the rules that match there, the winner first."""
    result: dict[Way, list[Rule]] = {}

    def at(way: Way) -> None:
        result[way] = ranked(rules, way, depths)
        if result[way]:
            return
        type = way[-1].type
        if isinstance(type, Struct):
            for attribute in type.attributes:
                for found in dynamic_types(attribute.type, table):
                    at((*way, Level(attribute.name, False, found)))
        if isinstance(type, ListOf):
            for found in dynamic_types(type.element, table):
                at((*way[:-1], Level(way[-1].attribute, True, found)))

    at((Level("", False, event),))
    return result
