"""Rewriting of trees that are put into one another: what is made only to be taken apart again disappears.

Each function gives an expression with the same values. That what is no longer made could have failed is not theirs to
see: :mod:`situ.interpretation.obligations` is for that.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from situ.expr.tree import (
    FALSE,
    Case,
    Each,
    Field,
    ForEach,
    IsNull,
    Literal,
    MakeStruct,
    Node,
    Read,
    rebuild,
    walk,
)
from situ.interpretation.obligations import fails
from situ.types.encode import TYPE_KEY
from situ.types.model import STRING, Struct, Type, plain
from situ.types.table import Types


def put_in(node: Node, variable: str, made: Node, types: Types) -> Node:
    """The node with ``made`` in the place of a variable; ``types`` are those that what is made is of."""

    def change(part: Node) -> Node:
        if isinstance(part, Read) and part.variable == variable:
            return _reach(made, part, 0, types)
        return rebuild(part, change)

    return change(node)


def _reach(found: Node, read: Read, place: int, types: Types) -> Node:
    """What stands at the path of a read, from this place of it on, below what was found so far."""
    if place == len(read.path):
        return found
    name = read.path[place]
    match found:
        case Read():
            path, optional = (*found.path, *read.path[place:]), (*found.optional, *read.optional[place + 1 :])
            return Read(found.variable, path, read.type, read.unit, optional, found.trusted)
        case MakeStruct(fields=fields):
            part = dict(fields).get(name)
            return Literal(None, read.type, read.unit) if part is None else _reach(part, read, place + 1, types)
        case Case(arms=arms, otherwise=otherwise):
            chosen = tuple((condition, _reach(result, read, place, types)) for condition, result in arms)
            return Case(chosen, _reach(otherwise, read, place, types), read.type, read.unit)
        case Literal(value=None):
            return Literal(None, read.type, read.unit)
    last = place == len(read.path) - 1
    type = read.type if last else _attribute_type(found.type, name, types)
    step = Field(found, name, type, read.unit if last else found.unit, read.optional[place + 1])
    return _reach(step, read, place + 1, types)


def _attribute_type(type: Type, name: str, types: Types) -> Type:
    """Of a struct or, where the path asks for more than it has, of one below it."""
    if name == TYPE_KEY:
        return STRING
    struct = plain(type)
    assert isinstance(struct, Struct)
    below = (each for each in (struct, *types.subtypes(struct)) if isinstance(each, Struct))
    return next(found.type for each in below if (found := each.attribute(name)) is not None)


def renamed_loops(node: Node, taken: Iterable[str]) -> Node:
    """The node with other names for the variables of its loops: what is put in has loops of its own."""
    used = {name.lower() for name in taken}  # names that differ in capitals only are the same to Spark
    used |= {part.variable.lower() for part in walk(node) if isinstance(part, Read | ForEach)}

    def fresh(name: str) -> str:
        number = 1
        while f"{name}_{number}".lower() in used:
            number += 1
        used.add(f"{name}_{number}".lower())
        return f"{name}_{number}"

    def change(part: Node, names: Mapping[str, str]) -> Node:
        match part:
            case ForEach(list=of, variable=variable, body=body):
                new = fresh(variable)
                return replace(part, list=change(of, names), variable=new, body=change(body, {**names, variable: new}))
            case Read(variable=variable):
                return replace(part, variable=names[variable]) if variable in names else part
        return rebuild(part, lambda each: change(each, names))

    return change(node, {})


def join_loops(node: Node, types: Types) -> Node:
    """A list that is made to make another of it is not made: each element becomes at once what it becomes."""
    below = rebuild(node, lambda part: join_loops(part, types))
    match below:
        case ForEach(kind=Each.TRANSFORM, list=ForEach(kind=Each.TRANSFORM) as inner):
            body = put_in(below.body, below.variable, inner.body, types)
            return replace(below, list=inner.list, variable=inner.variable, body=join_loops(body, types))
    return below


def known(node: Node, checked: Container[Node], not_true: frozenset[Node] = frozenset()) -> Node:
    """Without choices that are made already: behind a condition that does not hold it is not asked again.

    ``checked`` are expressions of which somebody else sees whether they fail.
    """
    match node:
        case IsNull(arg=arg) if node in not_true or (not arg.nullable and _is_checked(arg, checked)):
            return FALSE
        case IsNull(arg=Case(arms=((IsNull() as absent, Literal(value=None)),), otherwise=otherwise)) if (
            not otherwise.nullable and _is_checked(node.arg, checked)
        ):
            return known(absent, checked, not_true)  # whether the one is there is whether the other is
        case Case(arms=arms, otherwise=otherwise):
            left: list[tuple[Node, Node]] = []
            seen = not_true
            for condition, result in arms:
                asked = known(condition, checked, seen)
                if asked not in seen and asked != FALSE:
                    left.append((asked, known(result, checked, seen)))
                    seen |= {asked}
            rest = known(otherwise, checked, seen)
            if not left and not _is_checked(rest, checked):
                left.append((FALSE, rest))  # a choice sees to it that what comes out is finite
            return replace(node, arms=tuple(left), otherwise=rest) if left else rest
        case ForEach(variable=variable, body=body):
            inside = frozenset(each for each in not_true if not _reads(each, variable))
            return replace(node, list=known(node.list, checked, not_true), body=known(body, checked, inside))
    return rebuild(node, lambda part: known(part, checked, not_true))


def _is_checked(node: Node, checked: Container[Node]) -> bool:
    if not fails(node) or node in checked:
        return True
    return isinstance(node, MakeStruct) and all(_is_checked(part, checked) for _, part in node.fields)


def _reads(node: Node, variable: str) -> bool:
    return any(isinstance(part, Read) and part.variable == variable for part in walk(node))
