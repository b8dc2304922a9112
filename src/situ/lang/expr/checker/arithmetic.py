"""Arithmetic: which overload two operands take, and the unit of the result."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from situ.lang.catalogue import ALWAYS_FAILS, WRONG_TYPE, WRONG_UNIT
from situ.lang.expr.checker.coerce import Meeting, Mismatch, decimal_type, exact_value, is_number, widen
from situ.lang.expr.functions.table import overloads
from situ.lang.expr.functions.time import TIME_ARITHMETIC
from situ.lang.expr.overload import Arithmetic, Overload
from situ.lang.expr.tree import NULL, Apply, Literal, Node, Span
from situ.lang.types.model import DOUBLE, DURATION, INT, LONG, MOST_DIGITS, PRIMITIVES, TIMESTAMP, Decimal, Type, plain
from situ.lang.units import NO_UNIT, Unit

_MOST_FACTORS = 32
_LARGEST_POWER = 200

DIVIDED_BY_CONSTANT = Overload(
    name="/",
    parameters=("double", "double"),
    result="double",
    spark="({0} / {1})",
    python="({0} / {1})",
    arithmetic=Arithmetic.QUOTIENT,
)
"""A divisor that is known not to be zero: nothing to check, nothing to fail."""


def combine(op: str, left: Node, right: Node, span: Span, meeting: Meeting) -> Node:
    """``left op right`` for one of ``+ - * / %``; :class:`Mismatch` if they have no such result."""
    if _is_time(left) or _is_time(right):
        return _with_time(op, left, right, span, meeting)
    for node in (left, right):
        if not is_number(node.type) and node.type != NULL:
            raise meeting.wrong_type(node, DOUBLE)
    if op in "/%" and isinstance(right, Literal) and right.value == 0:
        raise Mismatch(ALWAYS_FAILS(meeting.at(right), reason="it divides by zero"))
    if op in "+-%":
        return _additive(op, left, right, span, meeting)
    unit = _combined_unit(op, left, right, meeting)
    type = meeting.common_type((left, right))
    if isinstance(plain(type), Decimal):
        return apply(op, [_as_decimal(node) for node in (left, right)], span, unit)
    if op == "/" or type == NULL:
        type = DOUBLE
    if op == "/" and isinstance(right, Literal) and right.value:
        args = tuple(meeting.coerce(node, DOUBLE, node.unit) for node in (left, right))
        return Apply(DIVIDED_BY_CONSTANT, args, DOUBLE, unit, span=span)
    return apply(op, [meeting.coerce(node, type, node.unit) for node in (left, right)], span, unit)


def _combined_unit(op: str, left: Node, right: Node, meeting: Meeting) -> Unit:
    unit = left.unit * right.unit if op == "*" else left.unit / right.unit
    if len(unit.factors) > _MOST_FACTORS or any(abs(power) > _LARGEST_POWER for _, power in unit.factors):
        raise Mismatch(
            WRONG_UNIT(
                meeting.at(right),
                what=meeting.what,
                found=f"a value in {left.unit}",
                expected=f"one in {right.unit}",
                remedy=f"No quantity has so many units: at most {_MOST_FACTORS}, in powers up to {_LARGEST_POWER}.",
            )
        )
    return unit


def _as_decimal(node: Node) -> Node:
    """A factor keeps its own digits: a common scale would only waste them."""
    if isinstance(plain(node.type), Decimal):
        return node
    if isinstance(node, Literal) and node.value is not None and (exact := decimal_type(exact_value(node))):
        return widen(node, exact)
    return widen(node, Decimal(10 if plain(node.type) == INT else 19, 0))


def _additive(op: str, left: Node, right: Node, span: Span, meeting: Meeting) -> Node:
    unit = meeting.common_unit((left, right))
    result = _point_arithmetic(op, left, right, unit, meeting)
    if result is not None:
        common, unit = result
        nodes = [meeting.coerce(left, DOUBLE, common[0]), meeting.coerce(right, DOUBLE, common[1])]
    else:
        nodes = list(meeting.meet((left, right)))
    if nodes[0].type == NULL:
        nodes = [meeting.coerce(node, DOUBLE) for node in nodes]
    return apply(op, nodes, span, unit)


def _point_arithmetic(
    op: str, left: Node, right: Node, unit: Unit, meeting: Meeting
) -> tuple[tuple[Unit, Unit], Unit] | None:
    """Temperatures are points on a scale: their difference is a delta, and only a delta can be added to one."""
    points = [node.unit.is_point or (node.unit == NO_UNIT and isinstance(node, Literal)) for node in (left, right)]
    if not (left.unit.is_point or right.unit.is_point):
        return None
    if op == "-" and all(points):
        return (unit, unit), unit.difference
    if op in "+-" and left.unit.is_point and not right.unit.is_point:
        return (left.unit, left.unit.difference), left.unit
    if op == "+" and right.unit.is_point and not left.unit.is_point:
        return (right.unit.difference, right.unit), right.unit
    raise Mismatch(
        WRONG_UNIT(
            meeting.at(right),
            what=meeting.what,
            found=f"a point in {left.unit}",
            expected=f"one in {right.unit}",
            remedy=f"Points on a scale have a difference but no sum; add a difference: `5 [{unit.difference}]`.",
        )
    )


def apply(name: str, nodes: Sequence[Node], span: Span, unit: Unit = NO_UNIT) -> Apply:
    """The operator on operands of one type already."""
    type = plain(nodes[0].type)
    if isinstance(type, Decimal) and isinstance(other := plain(nodes[1].type), Decimal):
        overload, result = _decimal_overload(name, type, other)
        return Apply(overload, tuple(nodes), result, unit, span=span)
    for overload in overloads(name):
        if all(parameter == str(type) for parameter in overload.parameters):
            return Apply(overload, tuple(nodes), PRIMITIVES[overload.result], unit, span=span)
    wide = LONG if type == INT else DOUBLE
    return apply(name, [widen(node, wide) for node in nodes], span, unit)


def _is_time(node: Node) -> bool:
    return plain(node.type) in (TIMESTAMP, DURATION)


def _with_time(op: str, left: Node, right: Node, span: Span, meeting: Meeting) -> Node:
    def role(node: Node, other: Node) -> Type:
        if isinstance(node, Literal) and is_number(node.type):
            return DURATION if op in "+-" or (op == "/" and node.unit != NO_UNIT) else DOUBLE
        return DOUBLE if is_number(node.type) else plain(node.type)

    a, b = role(left, right), role(right, left)
    if (op, str(a), str(b)) == ("*", "double", "duration"):
        left, right, a, b = right, left, b, a
    if (op, str(a), str(b)) == ("/", "duration", "double"):
        return _with_time("*", left, combine("/", Literal(1.0, DOUBLE), right, span, meeting), span, meeting)
    overload = TIME_ARITHMETIC.get((op, str(a), str(b)))
    if overload is None:
        raise Mismatch(
            WRONG_TYPE(
                meeting.at(right),
                what=meeting.what,
                found=f"{left.type} {op} {right.type}",
                expected="timestamp ± duration, timestamp - timestamp, duration ± duration, or duration * number",
                remedy="",
            )
        )
    args = (
        meeting.coerce(left, a, left.unit if a == DOUBLE else NO_UNIT),
        meeting.coerce(right, b, right.unit if b == DOUBLE else NO_UNIT),
    )
    return Apply(overload, args, PRIMITIVES[overload.result], span=span)


# ── decimals: results as Spark types them, so that both engines round at the same place ─────────────

_TRY = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}
_RUNTIME = {"+": "_decimal_add", "-": "_decimal_subtract", "*": "_decimal_multiply", "/": "_decimal_divide"}


@cache
def _decimal_overload(op: str, a: Decimal, b: Decimal) -> tuple[Overload, Decimal]:
    if op == "%":
        result = Decimal(
            min(a.precision - a.scale, b.precision - b.scale) + max(a.scale, b.scale), max(a.scale, b.scale)
        )
        python = "_decimal_remainder({0}, {1})"
    else:
        result = decimal_result(op, a, b)
        python = f"{_RUNTIME[op]}({{0}}, {{1}}, {result.precision}, {result.scale})"
    spark = f"try_cast({_TRY[op]}({{0}}, {{1}}) AS DECIMAL({result.precision},{result.scale}))"
    return Overload(
        name=op, parameters=(str(a), str(b)), result=str(result), spark=spark, python=python, fails=True
    ), result


def decimal_result(op: str, a: Decimal, b: Decimal) -> Decimal:
    """Precision and scale of a sum, difference, product or quotient of decimals."""
    if op in "+-":
        scale = max(a.scale, b.scale)
        precision = max(a.precision - a.scale, b.precision - b.scale) + scale + 1
    elif op == "*":
        precision, scale = a.precision + b.precision + 1, a.scale + b.scale
    else:
        scale = max(6, a.scale + b.precision + 1)
        precision = a.precision - a.scale + b.scale + scale
    if precision <= MOST_DIGITS:
        return Decimal(precision, scale)
    # Digits before the point are kept as long as six after it remain.
    whole = precision - scale
    return Decimal(MOST_DIGITS, max(MOST_DIGITS - whole, min(scale, 6)))
