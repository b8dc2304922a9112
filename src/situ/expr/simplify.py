"""Simplification: the same outcome for every event, in a form that is cheaper and easier to compare and index.

Constants are computed, logic is flattened and negation moved to the comparisons, comparisons get their attribute on the
left and a constant on the right, structs made only to be taken apart disappear. Every rule keeps value, null *and*
failure; none is approximate.
"""

from __future__ import annotations

from dataclasses import replace

from situ.expr.arithmetic import DIVIDED_BY_CONSTANT
from situ.expr.fold import fold
from situ.expr.navigate import stands_alone
from situ.expr.overload import Overflow
from situ.expr.threshold import flip, solve
from situ.expr.tree import (
    FALSE,
    TRUE,
    And,
    Apply,
    Case,
    Coalesce,
    Compare,
    Field,
    In,
    IsNull,
    Literal,
    MakeStruct,
    Node,
    Not,
    Or,
    rebuild,
)
from situ.types.model import BOOLEAN, plain

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def simplify(node: Node) -> Node:
    """The simplest equal expression we know: from the leaves up, each node by its rule until none applies."""
    return _Simplifying().simplest(node)


class _Simplifying:
    """One run; knows what it has seen, for a rule that changes a node leaves most of what is below as it was."""

    def __init__(self) -> None:
        self.seen: dict[int, tuple[Node, Node]] = {}  # by identity; the node is kept so that none other takes it

    def simplest(self, node: Node) -> Node:
        if (found := self.seen.get(id(node))) is not None:
            return found[1]
        result = self._by_rule(fold(rebuild(node, self.simplest)))
        self.seen[id(node)] = (node, result)
        self.seen[id(result)] = (result, result)
        return result

    def _by_rule(self, node: Node) -> Node:
        rule = _RULES.get(type(node))
        if rule is None:
            return node
        simpler = rule(node)
        return node if simpler is node or simpler == node else self.simplest(simpler)


def _connected(node: Node) -> Node:
    """AND and OR: flat, without repetition, without parts that change nothing, decided where a part decides."""
    assert isinstance(node, And | Or)
    kind = type(node)
    neutral, decisive = (TRUE, FALSE) if kind is And else (FALSE, TRUE)
    parts: dict[Node, None] = {}
    for arg in node.args:
        for part in arg.args if isinstance(arg, kind) else (arg,):
            if part == decisive:
                return decisive
            if part != neutral:
                parts.setdefault(part)
    if not parts:
        return neutral
    left = tuple(parts)
    if len(left) == 1:
        return left[0]
    return node if left == node.args else kind(left, span=node.span)


def _negated(node: Node) -> Node:
    assert isinstance(node, Not)
    match node.arg:
        case Not(arg=arg):
            return arg
        case Compare(op=op) as comparison:
            return replace(comparison, op=_OPPOSITE[op])
        case And(args=args):
            return Or(tuple(Not(arg) for arg in args), span=node.span)
        case Or(args=args):
            return And(tuple(Not(arg) for arg in args), span=node.span)
        case _:
            return node


def _compared(node: Node) -> Node:
    assert isinstance(node, Compare)
    if isinstance(node.left, Literal) and not isinstance(node.right, Literal):
        return flip(node)
    if isinstance(node.left, Case) and isinstance(node.right, Literal):
        chosen = _compared_case(node, node.left)
        if chosen is not None:
            return chosen
    return solve(node)


def _compared_case(node: Compare, case: Case) -> Node | None:
    """``CASE … THEN 'a' ELSE 'b' END = 'a'``: compare the constants now and keep the conditions."""
    if not all(isinstance(result, Literal) for result in case.results):
        return None
    compared = [fold(replace(node, left=result)) for result in case.results]
    arms = tuple((condition, result) for (condition, _), result in zip(case.arms, compared[:-1], strict=True))
    return Case(arms, compared[-1], BOOLEAN, span=node.span)


def _chosen(node: Node) -> Node:
    assert isinstance(node, Case)
    arms: list[tuple[Node, Node]] = []
    otherwise = node.otherwise
    for condition, result in node.arms:
        if isinstance(condition, Literal) and not condition.value:
            continue
        if isinstance(condition, Literal):
            otherwise = result
            break
        arms.append((condition, result))
    if isinstance(otherwise, Literal) and all(
        result == otherwise and not condition.can_fail for condition, result in arms
    ):
        return otherwise
    if not arms:
        return otherwise if otherwise.overflow is Overflow.NONE else node
    if len(arms) == 1 and {arms[0][1], otherwise} == {TRUE, FALSE}:
        condition = arms[0][0]
        known: Node = Coalesce((condition, FALSE), BOOLEAN, span=node.span) if condition.nullable else condition
        return known if otherwise == FALSE else Not(known, span=node.span)
    if len(arms) == len(node.arms) and otherwise is node.otherwise:
        return node
    return replace(node, arms=tuple(arms), otherwise=otherwise)


def _first(node: Node) -> Node:
    """coalesce: nothing behind a part that is never null is ever reached."""
    assert isinstance(node, Coalesce)
    kept: list[Node] = []
    for arg in node.args:
        if isinstance(arg, Literal) and arg.value is None:
            continue
        kept.append(arg)
        if not arg.nullable:
            break
    if not kept:
        return Literal(None, plain(node.type), node.unit, span=node.span)
    if len(kept) == 1 and kept[0].overflow is Overflow.NONE and plain(kept[0].type) == plain(node.type):
        return kept[0]
    return node if len(kept) == len(node.args) else replace(node, args=tuple(kept))


def _absent(node: Node) -> Node:
    assert isinstance(node, IsNull)
    sure = not node.arg.nullable and not node.can_fail
    return FALSE if sure else node


def _taken(node: Node) -> Node:
    assert isinstance(node, Field)
    if isinstance(node.of, MakeStruct) and stands_alone(node.name, node.of.fields):
        return dict(node.of.fields)[node.name]
    return node


def _member(node: Node) -> Node:
    assert isinstance(node, In)
    if len(node.values) != 1:
        return node
    return Compare("=", node.item, Literal(node.values[0], plain(node.item.type), node.item.unit), span=node.span)


def _applied(node: Node) -> Node:
    """A division whose divisor turned out to be a constant cannot fail any more."""
    assert isinstance(node, Apply)
    divisor = node.args[-1]
    divides = node.overload.name == "/" and node.overload.parameters == DIVIDED_BY_CONSTANT.parameters
    if divides and node.overload.fails and isinstance(divisor, Literal) and divisor.value:
        return replace(node, overload=DIVIDED_BY_CONSTANT)
    return node


_RULES = {
    And: _connected,
    Or: _connected,
    Not: _negated,
    Compare: _compared,
    Case: _chosen,
    Coalesce: _first,
    IsNull: _absent,
    Field: _taken,
    In: _member,
    Apply: _applied,
}
