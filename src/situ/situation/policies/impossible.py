"""Conditions that no values can meet: what they ask of one attribute excludes each other."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from situ.expr.tree import And, Apply, Compare, In, IsNull, Literal, Node, Not, Or, Read, rebuild

_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Path = tuple[str, tuple[str, ...]]
"""A variable, and where an attribute is below it."""

_DISTANCES = ("distance", "geo_distance")
"""Never below zero."""


def is_impossible(node: Node) -> bool:
    """Whether a simplified condition is surely never true; there are impossible ones that are not recognised."""
    match node:
        case Literal(value=value):
            return value is not True
        case Or(args=args):
            return all(is_impossible(arg) for arg in args)
        case And(args=args):
            return any(is_impossible(arg) for arg in args) or _have_nothing_common(args)
        case Compare(right=Literal(value=None)):
            return True
        case Compare(op="<" | "<=" as op, left=Apply(overload=overload), right=Literal(value=most)):
            return overload.name in _DISTANCES and (most < 0 or (most == 0 and op == "<"))
        case _:
            return False


def outside_domain(test: Node) -> tuple[bool, Read, str] | None:
    """Of a simplified comparison that no value of its attribute can decide: what it always is, and why.

    The attribute is the one that is read. Only what holds of every value is known: numbers of so many bits, and that
    nothing is colder than absolute zero.
    """
    match test:
        case Or(args=(Not(arg=IsNull(arg=Read() as read)), Literal(value=None))):
            return True, read, f"it is of type {read.type}"
        case Compare(op=op, left=Read(unit=unit) as read, right=Literal(value=int() | float() as value)) if (
            unit.is_point
        ):
            coldest = -unit.offset / unit.scale
            shown = f"nothing is colder than {float(coldest):g} {unit}"
            if value < coldest or (value == coldest and op in ("<", ">=")):
                return _TESTS[op](coldest + 1, value), read, shown
    return None


def exclude_each_other(conditions: Iterable[Node]) -> bool:
    """Whether simplified conditions over the same variables are surely never true together."""
    asked = [part for each in conditions for part in (each.args if isinstance(each, And) else (each,))]
    return len(asked) > 1 and is_impossible(And(tuple(asked)))


def listed_values(condition: Node) -> dict[Path, tuple[Any, ...]]:
    """For attributes of which a simplified condition lists values: one of these it is, if the condition is true."""
    found: dict[Path, tuple[Any, ...]] = {}
    for part in condition.args if isinstance(condition, And) else (condition,):
        if (read := _attribute(part)) is not None and (values := _listed(part)) is not None:
            found.setdefault((read.variable, read.path), values)
    return found


def renamed(node: Node, variable: str, name: str) -> Node:
    """The same condition, over a variable of another name."""
    if isinstance(node, Read):
        return replace(node, variable=name) if node.variable == variable else node
    return rebuild(node, lambda part: renamed(part, variable, name))


def _have_nothing_common(parts: Iterable[Node]) -> bool:
    """Bounds and lists of one attribute that have no value in common."""
    asked: dict[Path, list[Node]] = {}
    for part in parts:
        if (read := _attribute(part)) is not None:
            asked.setdefault((read.variable, read.path), []).append(part)
    return any(len(together) > 1 and not _have_common(together) for together in asked.values())


def _attribute(part: Node) -> Read | None:
    match part:
        case Compare(left=Read() as read, right=Literal()) | In(item=Read() as read):
            return read
        case _:
            return None


def _have_common(conditions: list[Node]) -> bool:
    """Where values are listed, one of them must meet the rest; else no lower bound may be above an upper one."""
    listed = next((values for each in conditions if (values := _listed(each)) is not None), None)
    if listed is not None:
        return any(all(_meets(each, value) for each in conditions) for value in listed)
    compared = [each for each in conditions if isinstance(each, Compare)]
    lows = [each for each in compared if each.op in (">", ">=")]
    highs = [each for each in compared if each.op in ("<", "<=")]
    return not any(_apart(low, high) for low in lows for high in highs)


def _listed(condition: Node) -> tuple[Any, ...] | None:
    match condition:
        case In(values=values):
            return values
        case Compare(op="=", right=Literal(value=value)):
            return (value,)
        case _:
            return None


def _meets(condition: Node, value: Any) -> bool:
    match condition:
        case In(values=values):
            return value in values
        case Compare(op=op, right=Literal(value=other)):
            return _TESTS[op](value, other)
        case _:
            return True


def _apart(low: Compare, high: Compare) -> bool:
    match low.right, high.right:
        case Literal(value=bottom), Literal(value=top):
            return bool(bottom > top or (bottom == top and (low.op, high.op) != (">=", "<=")))
        case _:
            return False
