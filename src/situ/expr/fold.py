"""Constants: computed once, here, instead of for every event."""

from __future__ import annotations

from collections.abc import Iterator

from situ.catalogue import ALWAYS_FAILS
from situ.errors import Problem
from situ.expr.interpret import interpret
from situ.expr.runtime import FAILURES
from situ.expr.syntax import Locate
from situ.expr.tree import Literal, Node, Read, children, rebuild
from situ.types.model import ListOf, Struct, plain

_LONGEST_TEXT = 4096


def fold(node: Node) -> Node:
    """The value of a node whose parts are all constants, else the node; one that fails stays, to fail when reached.

    So does a text that would be much longer than what was written.
    """
    if isinstance(node, Literal | Read) or not all(isinstance(part, Literal) for part in children(node)):
        return node
    if isinstance(plain(node.type), Struct | ListOf):
        return node
    try:
        value = interpret(node, {})
    except FAILURES:
        return node
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return node
    return Literal(value, plain(node.type), node.unit, span=node.span)


def constant_problems(node: Node, locate: Locate) -> Iterator[Problem]:
    """A problem for each constant part that fails: no event could make it succeed."""
    return iter(_Constants(locate).problems_of(node))


class _Constants:
    """Computes each constant part once, from the values of its parts."""

    def __init__(self, locate: Locate) -> None:
        self.locate = locate
        self.problems: list[Problem] = []
        self.known: dict[int, Node] = {}

    def problems_of(self, node: Node) -> list[Problem]:
        self._value(node)
        return self.problems

    def _value(self, node: Node) -> Node:
        if isinstance(node, Literal | Read):
            return node
        if id(node) not in self.known:
            self.known[id(node)] = self._computed(rebuild(node, self._value))
        return self.known[id(node)]

    def _computed(self, node: Node) -> Node:
        result = fold(node)
        if result is node and all(isinstance(part, Literal) for part in children(node)):
            try:
                interpret(node, {})
            except FAILURES as failure:
                start, end = node.span
                reason = str(failure) or "the operation fails"
                self.problems.append(ALWAYS_FAILS(self.locate(start, end - start), reason=reason))
        return result
