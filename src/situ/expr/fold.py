"""Constants: computed once, here, instead of for every event."""

from __future__ import annotations

from collections.abc import Iterator

from situ.catalogue import ALWAYS_FAILS
from situ.errors import Problem
from situ.expr.interpret import interpret
from situ.expr.runtime import FAILURES
from situ.expr.syntax import Locate
from situ.expr.tree import Literal, Node, Read, children
from situ.types.model import ListOf, Struct, plain


def is_constant(node: Node) -> bool:
    return not isinstance(node, Read) and all(is_constant(part) for part in children(node))


def fold(node: Node) -> Node:
    """The value of a node whose parts are all constants, else the node; one that fails stays, to fail when reached."""
    if isinstance(node, Literal | Read) or not all(isinstance(part, Literal) for part in children(node)):
        return node
    if isinstance(plain(node.type), Struct | ListOf):
        return node
    try:
        value = interpret(node, {})
    except FAILURES:
        return node
    return Literal(value, plain(node.type), node.unit, span=node.span)


def constant_problems(node: Node, locate: Locate) -> Iterator[Problem]:
    """A problem for each constant part that fails: no event could make it succeed."""
    if isinstance(node, Literal | Read):
        return
    found = False
    for part in children(node):
        for problem in constant_problems(part, locate):
            found = True
            yield problem
    if found or not is_constant(node):
        return
    try:
        interpret(node, {})
    except FAILURES as failure:
        start, end = node.span
        yield ALWAYS_FAILS(locate(start, end - start), reason=str(failure) or "the operation fails")
