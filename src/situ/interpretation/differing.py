"""Whether events fare otherwise in a context than they did: its ways before and after a change, side by side.

What counts is what comes out, not what is written: a rule that wins nowhere changes nothing, and neither does an
attribute that a type got beside the others, as long as nothing has to be there for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from situ.errors import Problems
from situ.expr.print import print_expression
from situ.expr.tree import Literal, MakeStruct, Node, Read, rebuild, walk
from situ.interpretation.bodies import DATA
from situ.interpretation.model import Context, Direction
from situ.interpretation.steps import Choice, Elements, Filled, Record, Step, Value
from situ.interpretation.transformation import Transformation, own_transformations
from situ.types.model import Attribute, ListOf, Struct, Type, plain

Ways = Mapping[tuple[Direction, str], Transformation]


def ways_of(context: Context) -> Ways:
    """All transformations of a context, from and to what it takes for root, by direction and source event type."""
    found = {direction: own_transformations(context, direction, Problems()) for direction in Direction}
    return {(direction, name): way for direction, ways in found.items() for name, way in ways.items()}


def differing(before: Context, after: Context) -> tuple[str, ...]:
    """The event types that fare otherwise, as ``out PositionUpdate``; those that were not there before do not."""
    old, new = ways_of(before), ways_of(after)
    known = {direction: before.types_of(direction).events for direction in Direction}
    return tuple(
        f"{direction} {name}"
        for direction, name in sorted(old.keys() | new.keys())
        if name in known[direction] and not _alike(old.get((direction, name)), new.get((direction, name)))
    )


def _alike(before: Transformation | None, after: Transformation | None) -> bool:
    if before is None or after is None:
        return before is after
    seen = (before.target, after.target) if before.direction is Direction.OUT else (before.source, after.source)
    if not is_grown(*seen):
        return False
    if before.is_identity and after.is_identity:
        return True
    if not _root_agrees(before, after):
        return False
    return _same_externals(before, after) and same_step(before.step, after.step)


def _root_agrees(before: Transformation, after: Transformation) -> bool:
    """Whether what is read of root, or written there, is what it was: expressions do not say units."""
    if before.direction is Direction.IN:
        return agrees(before.target, after.target)
    nodes = (before.node, *(key for each in before.externals.values() for _, key in each.keys))
    reads = [part for node in nodes for part in walk(node) if isinstance(part, Read) and part.variable == DATA]
    if any(not read.path for read in reads):
        return agrees(before.source, after.source)
    old, new = before.source, after.source
    for name in {read.path[0] for read in reads}:
        was, now = old.attribute(name), new.attribute(name)
        if was is None:
            continue  # which type it is
        if now is None or was.unit != now.unit or not agrees(was.type, now.type):
            return False
    return True


def agrees(before: Type, after: Type) -> bool:
    """Whether the attributes that both have mean the same in both."""
    old, new = plain(before), plain(after)
    if before == after:
        return True
    if isinstance(old, ListOf) and isinstance(new, ListOf):
        return agrees(old.element, new.element)
    if not isinstance(old, Struct) or not isinstance(new, Struct) or old.name != new.name:
        return False
    there = {each.name: each for each in new.attributes}
    common = [(each, there[each.name]) for each in old.attributes if each.name in there]
    return all(was.unit == now.unit and agrees(was.type, now.type) for was, now in common)


def _same_externals(before: Transformation, after: Transformation) -> bool:
    return before.externals.keys() == after.externals.keys() and all(
        each.function == after.externals[name].function
        and print_expression(each.argument) == print_expression(after.externals[name].argument)
        for name, each in before.externals.items()
    )


def same_step(before: Step, after: Step) -> bool:
    """Whether the second makes what the first makes; attributes that are new in the target may get nothing."""
    match before, after:
        case Value(), Value():
            same = print_expression(_filled(before.node)) == print_expression(_filled(after.node))
            return same and is_grown(before.node.type, after.node.type)
        case Record(), Record():
            old, new = dict(before.fields), dict(after.fields)
            return (
                before.type.name == after.type.name
                and old.keys() <= new.keys()
                and all(same_step(step, new[name]) for name, step in old.items())
                and all(_is_from_nowhere(step) for name, step in after.fields if name not in old)
            )
        case Elements(), Elements():
            same = print_expression(before.list) == print_expression(after.list)
            return same and same_step(before.element, after.element)
        case Filled(), Filled():
            return before.default == after.default and same_step(before.of, after.of)
        case Choice(), Choice():
            arms = {(print_expression(condition), when): step for condition, when, step in after.arms}
            return (
                len(arms) == len(before.arms)
                and all(
                    (key := (print_expression(condition), when)) in arms and same_step(step, arms[key])
                    for condition, when, step in before.arms
                )
                and same_step(before.otherwise, after.otherwise)
            )
        case _:
            return False


def _filled(node: Node) -> Node:
    """Structs without the attributes that are always absent."""
    made = rebuild(node, _filled)
    if isinstance(made, MakeStruct):
        there = tuple((name, part) for name, part in made.fields if part != Literal(None, part.type, part.unit))
        return replace(made, fields=there)
    return made


def _is_from_nowhere(step: Step) -> bool:
    return isinstance(step, Value) and not step.source and step.rule is None


def is_grown(before: Type, after: Type) -> bool:
    """Whether values of the first do as values of the second: the same, but for attributes that need not be there."""
    old, new = plain(before), plain(after)
    if before == after:
        return True
    if isinstance(old, ListOf) and isinstance(new, ListOf):
        return is_grown(old.element, new.element)
    if not isinstance(old, Struct) or not isinstance(new, Struct) or old.name != new.name:
        return False
    there = {each.name: each for each in new.attributes}
    grown = all(each.name in there and _is_grown_attribute(each, there[each.name]) for each in old.attributes)
    names = {each.name for each in old.attributes}
    return grown and all(each.optional or each.default is not None for each in new.attributes if each.name not in names)


def _is_grown_attribute(before: Attribute, after: Attribute) -> bool:
    return is_grown(before.type, after.type) and (before.unit, before.optional, before.default) == (
        after.unit,
        after.optional,
        after.default,
    )
