"""Putting expressions in the place of variables: how functions of a project and transformations are inlined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from situ.expr.navigate import attribute_of
from situ.expr.scope import Scope
from situ.expr.tree import ForEach, Node, Read, Span, rebuild, walk

Reach = Callable[[Node, str, Scope, Span], Node | None]
"""How an attribute of what is put in is reached: the node that reads it; None if there is no such attribute."""


def substitute(
    node: Node,
    given: Mapping[str, Node],
    scope: Scope,
    span: Span | None = None,
    *,
    reach: Reach = attribute_of,
) -> Node:
    """The node with every read of a variable in ``given`` replaced by reading the same path from its node.

    ``span`` places the result where the call stands: problems point there, not into the function.
    """
    taken = {read.variable.lower() for value in given.values() for read in walk(value) if isinstance(read, Read)}

    def change(part: Node) -> Node:
        if isinstance(part, Read) and part.variable in given:
            found: Node = given[part.variable]
            for step in part.path:
                reached = reach(found, step, scope, span or part.span)
                if reached is None:
                    raise KeyError(step)  # the caller checked that the argument's type has the parameter's attributes
                found = reached
            return found
        if isinstance(part, ForEach) and part.variable.lower() in taken:
            part = _renamed(part, taken)
        below = rebuild(part, change)
        return replace(below, span=span) if span is not None else below

    return change(node)


def _renamed(each: ForEach, taken: set[str]) -> ForEach:
    """A lambda's variable must not capture a variable of the same name in what is put in, nor meet another below.

    Names are the same if they differ in capitals only: to Spark they are.
    """
    used = taken | {below.variable.lower() for below in walk(each.body) if isinstance(below, ForEach | Read)}
    number = 2
    while f"{each.variable}_{number}".lower() in used:
        number += 1
    fresh = f"{each.variable}_{number}"

    def change(part: Node) -> Node:
        if isinstance(part, Read) and part.variable == each.variable:
            return replace(part, variable=fresh)
        return rebuild(part, change)

    return replace(each, variable=fresh, body=change(each.body))
