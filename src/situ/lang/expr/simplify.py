"""Exact thresholds: a comparison of a monotone function of one attribute, as a comparison of the attribute.

``distance * 1.09 > 109`` holds from some double on. Dividing 109 by 1.09 finds it only nearly; here it is exact, by
bisection over all doubles (or all integers) with the very operations the engines execute, rounding included. The
rewritten comparison therefore agrees with the original on every value there is.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from situ.expr.interpret import COMPARISONS
from situ.expr.overload import Overflow
from situ.expr.runtime import LONG_MAX, LONG_MIN
from situ.expr.tree import FALSE, TRUE, UNKNOWN, And, Apply, Coerce, Compare, IsNull, Literal, Node, Not, Or, Read
from situ.types.model import DOUBLE, INT, LONG, plain
from situ.units import convert_double

Step = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Chain:
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


@dataclass(frozen=True, slots=True)
class _Domain:
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
