"""What transformations need of expressions beyond the language: exact numbers in other units, structs with gaps."""

from __future__ import annotations

import decimal
from fractions import Fraction
from typing import Any

import pytest

from situ.lang.expr.checker.coerce import linear, nothing_there
from situ.lang.expr.emit.python import compile_value
from situ.lang.expr.emit.spark import emit_spark
from situ.lang.expr.interpret import interpret
from situ.lang.expr.tree import Coalesce, Each, ForEach, Literal, MakeStruct, Node, Read
from situ.lang.problems import SituError
from situ.lang.types.model import DOUBLE, INT, LONG, STRING, Attribute, Decimal, ListOf, Struct, Type
from situ.lang.units import NO_UNIT


def both(node: Node, value: Any) -> Any:
    """What the reference and the generated Python say, which must be the same."""
    expected = interpret(node, {"value": value})
    assert compile_value(node, ("value",)).call(value) == expected
    return expected


def fail(node: Node, value: Any) -> None:
    with pytest.raises(ArithmeticError):
        interpret(node, {"value": value})
    with pytest.raises(ArithmeticError):
        compile_value(node, ("value",)).call(value)


def read(type: Type, *, optional: bool = False) -> Read:
    return Read("value", (), type, NO_UNIT, (optional,))


@pytest.mark.parametrize(
    ("given", "expected"), [("1.25", "12"), ("1.35", "14"), ("-1.25", "-12"), ("0.00", "0"), ("99999.99", "1000000")]
)
def test_decimals_are_rounded_half_to_even(given: str, expected: str) -> None:
    node = linear(read(Decimal(7, 2)), Decimal(7, 0), NO_UNIT, Fraction(10), Fraction(0))
    assert both(node, decimal.Decimal(given)) == decimal.Decimal(expected)


def test_decimals_that_do_not_fit_fail() -> None:
    node = linear(read(Decimal(7, 2)), Decimal(5, 2), NO_UNIT, Fraction(100), Fraction(0))
    assert both(node, decimal.Decimal("9.99")) == decimal.Decimal("999.00")
    fail(node, decimal.Decimal("10.00"))


def test_whole_numbers_stay_in_their_range() -> None:
    node = linear(read(INT), INT, NO_UNIT, Fraction(100), Fraction(-5))
    assert both(node, 3) == 295
    fail(node, 2**31 - 1)
    assert both(linear(read(INT), LONG, NO_UNIT, Fraction(100), Fraction(0)), 2**31 - 1) == 214748364700


def test_spark_computes_them_exactly_or_not_at_all() -> None:
    half = linear(read(Decimal(7, 2)), Decimal(9, 1), NO_UNIT, Fraction(9, 5), Fraction(32))
    assert emit_spark(half).value == (
        "try_cast(bround((CAST(`value` AS DECIMAL(7,2)) * CAST('1.8' AS DECIMAL(2,1)) + "
        "CAST('32.0' AS DECIMAL(2,0))), 1) AS DECIMAL(9,1))"
    )
    whole = linear(read(INT), INT, NO_UNIT, Fraction(100), Fraction(0))
    assert emit_spark(whole).value == "try_cast((CAST(`value` AS DECIMAL(19,0)) * CAST(100 AS DECIMAL(17,0))) AS INT)"
    assert emit_spark(whole).fails == f"({emit_spark(whole).value} IS NULL)"
    for node in (
        linear(read(Decimal(7, 2)), Decimal(9, 4), NO_UNIT, Fraction(1, 3), Fraction(0)),
        linear(read(Decimal(38, 2)), Decimal(38, 2), NO_UNIT, Fraction(9, 5), Fraction(0)),
        linear(read(LONG), LONG, NO_UNIT, Fraction(10**20), Fraction(0)),
    ):
        with pytest.raises(SituError):
            emit_spark(node)


def test_structs_leave_out_what_is_not_there() -> None:
    struct = Struct("T", (Attribute(name="a", type=INT), Attribute(name="b", type=INT, optional=True)))
    fields = (
        ("$type", Literal("T", STRING)),
        ("a", Literal(1, INT)),
        ("b", read(INT, optional=True)),
        ("c", Literal(None, INT)),
    )
    node = MakeStruct(fields, struct, sparse=True)
    assert both(node, 2) == {"$type": "T", "a": 1, "b": 2}
    assert both(node, None) == {"$type": "T", "a": 1}
    assert list(both(node, 2)) == ["$type", "a", "b"]
    assert both(MakeStruct(fields, struct), None) == {"$type": "T", "a": 1, "b": None, "c": None}
    assert emit_spark(node).value == ("named_struct('\\u0024type', 'T', 'a', 1, 'b', `value`, 'c', CAST(NULL AS INT))")


def test_nothing_there_fails_where_it_is_reached() -> None:
    node = Coalesce((read(DOUBLE, optional=True), nothing_there(DOUBLE)), DOUBLE)
    assert not node.nullable
    assert node.can_fail
    assert both(node, 1.5) == 1.5
    fail(node, None)
    assert emit_spark(node).value == "coalesce(`value`, CAST(NULL AS DOUBLE))"
    assert emit_spark(node).fails


def test_elements_are_converted_in_a_comprehension_unless_python_forbids_it() -> None:
    def doubled(of: Node) -> ForEach:
        body = linear(Read("x", (), INT, NO_UNIT, (True,)), INT, NO_UNIT, Fraction(2), Fraction(0))
        return ForEach(Each.TRANSFORM, of, "x", body, ListOf(INT))

    node = doubled(read(ListOf(INT), optional=True))
    assert "for v1 in" in compile_value(node, ("value",)).source
    assert both(node, [1, None, 3]) == [2, None, 6]
    assert both(node, None) is None
    inner = Coalesce((read(ListOf(INT), optional=True), Literal((), ListOf(INT))), ListOf(INT))
    assert both(doubled(inner), [4]) == [8]
    assert both(doubled(inner), None) == []
