"""Typed tree → simplified tree with the same outcome for every event: constants, exact thresholds, rules for each node.

:func:`simplify` at the end is what others call; :func:`constant_problems` says which constant parts always fail.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from situ.lang.catalogue import ALWAYS_FAILS
from situ.lang.expr.checker.arithmetic import DIVIDED_BY_CONSTANT
from situ.lang.expr.interpret import COMPARISONS, interpret
from situ.lang.expr.overload import Overflow
from situ.lang.expr.runtime import FAILURES, LONG_MAX, LONG_MIN
from situ.lang.expr.scope import stands_alone
from situ.lang.expr.syntax import Locate
from situ.lang.expr.tree import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Apply,
    Case,
    Coalesce,
    Coerce,
    Compare,
    Field,
    In,
    IsNull,
    Literal,
    MakeStruct,
    Node,
    Not,
    Or,
    Read,
    children,
    rebuild,
)
from situ.lang.problems import Problem
from situ.lang.records import replace
from situ.lang.types.model import BOOLEAN, DOUBLE, INT, LONG, ListOf, Struct, plain
from situ.lang.units import convert_double

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Constants: computed once, here, instead of for every event.

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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Exact thresholds: a comparison of a monotone function of one attribute, as a comparison of the attribute.
#
# ``distance * 1.09 > 109`` holds from some double on. Dividing 109 by 1.09 finds it only nearly; here it is exact, by
# bisection over all doubles (or all integers) with the very operations the engines execute, rounding included. The
# rewritten comparison therefore agrees with the original on every value there is.

Step = Callable[[Any], Any]


class Chain(msgspec.Struct, frozen=True):
    """A read and the operations on it, each monotone; ``rising`` says whether the whole is."""

    read: Read
    steps: tuple[Step, ...]
    rising: bool

    def __call__(self, value: Any) -> Any:
        for step in self.steps:
            value = step(value)
        return value

    def then(self, step: Step, rising: bool = True) -> Chain:
        return Chain(self.read, (*self.steps, step), self.rising == rising)


def solve(comparison: Compare) -> Node:
    """The comparison as one of the attribute itself with a constant, if its left side is such a function of one."""
    chain = chain_of(comparison.left)
    if (
        chain is None
        or chain.read is comparison.left
        or not isinstance(comparison.right, Literal)
        or comparison.right.value is None
    ):
        return comparison
    if not chain.read.trusted or comparison.left.can_fail or comparison.left.overflow is Overflow.NAN:
        return comparison
    bound = comparison.right.value
    domain = _DOUBLES if plain(chain.read.type) == DOUBLE else _INTS if plain(chain.read.type) == INT else _LONGS
    holds = COMPARISONS
    match comparison.op:
        case ">" | ">=" | "<" | "<=":
            upward = (comparison.op in (">", ">=")) == chain.rising
            first = domain.first(lambda value: holds[comparison.op](chain(value), bound), upward)
            return _side(chain, first, upward, domain, comparison)
        case "=" | "<>":
            return _equal(comparison, chain, domain, bound)
        case _:
            return comparison


def chain_of(node: Node) -> Chain | None:
    """The node as monotone operations on one number read from the event, or None."""
    match node:
        case Read() if plain(node.type) in (DOUBLE, INT, LONG):
            return Chain(node, (), True)
        case Coerce(arg=arg, type=type, scale=scale, steps=steps) if type in (DOUBLE, LONG):
            inner = chain_of(arg)
            if inner is None or scale <= 0:
                return None
            if type == DOUBLE and plain(arg.type) != DOUBLE:
                inner = inner.then(float)
            return inner.then(lambda value: convert_double(value, steps)) if steps else inner
        case Apply(overload=overload, args=(left, Literal(value=constant))) if constant is not None:
            return _operate(overload.name, chain_of(left), constant)
        case Apply(overload=overload, args=(Literal(value=constant), right)) if constant is not None:
            return _operate_left(overload.name, constant, chain_of(right))
        case Apply(overload=overload, args=(arg,)) if overload.name == "negate":
            inner = chain_of(arg)
            return inner and inner.then(lambda value: -value, rising=False)
        case _:
            return None


def _operate(op: str, inner: Chain | None, constant: Any) -> Chain | None:
    if inner is None or not isinstance(constant, int | float):
        return None
    match op:
        case "+":
            return inner.then(lambda value: value + constant)
        case "-":
            return inner.then(lambda value: value - constant)
        case "*" if constant != 0:
            return inner.then(lambda value: value * constant, rising=constant > 0)
        case "/" if constant != 0:
            return inner.then(lambda value: value / constant, rising=constant > 0)
        case _:
            return None


def _operate_left(op: str, constant: Any, inner: Chain | None) -> Chain | None:
    if inner is not None and op == "-" and isinstance(constant, int | float):
        return inner.then(lambda value: constant - value, rising=False)
    return _operate(op, inner, constant) if op in "+*" else None


# ── results ───────────────────────────────────────────────────────────────────────────────────────


def _side(chain: Chain, first: Any, upward: bool, domain: _Domain, at: Compare) -> Node:
    read = chain.read
    if first is None:
        return _never(read)
    if first == (domain.lowest if upward else domain.highest):
        return _always(read)
    before = domain.neighbour(first, -1 if upward else 1)
    if at.op in ("<", ">") and chain(before) == at.right.value:  # type: ignore[union-attr]  # `solve` saw a literal
        return Compare(">" if upward else "<", read, _constant(before, read), span=at.span)
    return Compare(">=" if upward else "<=", read, _constant(first, read), span=at.span)


def _equal(comparison: Compare, chain: Chain, domain: _Domain, bound: Any) -> Node:
    """The values that reach the bound and do not pass it: a range, for several may round to it; perhaps empty."""
    low = domain.first(lambda value: chain(value) >= bound if chain.rising else chain(value) <= bound, True)
    high = domain.first(lambda value: chain(value) <= bound if chain.rising else chain(value) >= bound, False)
    read, equal = chain.read, comparison.op == "="
    if low is None or high is None or low > high:
        return _never(read) if equal else _always(read)
    if low == high:
        return Compare(comparison.op, read, _constant(low, read), span=comparison.span)
    from_low = Compare(">=" if equal else "<", read, _constant(low, read), span=comparison.span)
    to_high = Compare("<=" if equal else ">", read, _constant(high, read), span=comparison.span)
    return And((from_low, to_high), span=comparison.span) if equal else Or((from_low, to_high), span=comparison.span)


def _constant(value: Any, read: Read) -> Literal:
    return Literal(value, plain(read.type), read.unit, span=read.span)


def _never(read: Read) -> Node:
    """False; but null where the attribute is null, as the comparison was."""
    return And((IsNull(read), UNKNOWN)) if read.nullable else FALSE


def _always(read: Read) -> Node:
    return Or((Not(IsNull(read)), UNKNOWN)) if read.nullable else TRUE


# ── ordered domains ───────────────────────────────────────────────────────────────────────────────


class _Domain(msgspec.Struct, frozen=True):
    """All values of a type in order, as integers from ``-size`` to ``size``."""

    low: int
    high: int
    value: Callable[[int], Any]
    place: Callable[[Any], int]

    @property
    def lowest(self) -> Any:
        return self.value(self.low)

    @property
    def highest(self) -> Any:
        return self.value(self.high)

    def neighbour(self, value: Any, step: int) -> Any:
        return self.value(self.place(value) + step)

    def first(self, holds: Callable[[Any], bool], upward: bool) -> Any | None:
        """Where ``holds`` begins: the smallest value from which it is true upward, or the largest downward."""
        start, end = (self.low, self.high) if upward else (self.high, self.low)
        if not holds(self.value(end)):
            return None
        while start != end:
            middle = (start + end) // 2 if upward else -((-start - end) // 2)
            if holds(self.value(middle)):
                end = middle
            else:
                start = middle + 1 if upward else middle - 1
        return self.value(end)


def _double_at(place: int) -> float:
    """Doubles in order: their bit patterns, taken as sign and magnitude, are in the order of their values."""
    magnitude: float = struct.unpack("<d", struct.pack("<q", abs(place)))[0]
    return math.copysign(magnitude, place) if place else 0.0


def _place_of(value: float) -> int:
    magnitude: int = struct.unpack("<q", struct.pack("<d", abs(value)))[0]
    return magnitude if value >= 0 else -magnitude


_LARGEST_BITS = 0x7FEFFFFFFFFFFFFF
_DOUBLES = _Domain(-_LARGEST_BITS, _LARGEST_BITS, _double_at, _place_of)
_INTS = _Domain(-(2**31), 2**31 - 1, lambda place: place, int)
_LONGS = _Domain(LONG_MIN, LONG_MAX, lambda place: place, int)


def flip(comparison: Compare) -> Compare:
    """``5 < x`` as ``x > 5``."""
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(comparison.op, comparison.op)
    return replace(comparison, op=mirrored, left=comparison.right, right=comparison.left)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The rules: each gives the same outcome for every event, in a form that is cheaper and easier to compare and index.
#
# Constants are computed, logic is flattened and negation moved to the comparisons, comparisons get their attribute on
# the left and a constant on the right, structs made only to be taken apart disappear. Every rule keeps value, null
# *and* failure; none is approximate.

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
