"""Numbers that become other numbers exactly, ``value * factor + offset``, and values that have to be there.

What the language has no words for and transformations need: decimals and whole numbers in another unit, computed with
rationals, and the failure of a place that must not be empty. Doubles take a :class:`~situ.expr.tree.Coerce` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from situ.catalogue import TOO_LARGE
from situ.errors import SituError
from situ.expr.coerce import decimal_type
from situ.expr.overload import Overload
from situ.expr.tree import Apply, Literal, Node
from situ.types.model import INT, LONG, MOST_DIGITS, STRING, Decimal, Type, plain
from situ.types.spark_schema import spark_type
from situ.types.table import Types
from situ.units import Unit, Units


def linear(node: Node, type: Type, unit: Unit, factor: Fraction, offset: Fraction) -> Apply:
    """A whole number or decimal as another one: exactly, a decimal rounded half to even to its scale."""
    target = plain(type)
    if isinstance(target, Decimal):
        given = plain(node.type)
        digits = given if isinstance(given, Decimal) else Decimal(10 if given == INT else 19, 0)
        places = (target.precision, target.scale, digits.precision, digits.scale)
        return _apply(LINEAR_DECIMAL, node, type, unit, (factor, offset), places)
    return _apply(LINEAR_WHOLE, node, type, unit, (factor, offset), (31 if target == INT else 63,))


def _apply(
    overload: Overload, node: Node, type: Type, unit: Unit, ratios: Sequence[Fraction], places: Sequence[int]
) -> Apply:
    constants = (*(Literal(str(each), STRING) for each in ratios), *(Literal(each, LONG) for each in places))
    return Apply(overload, (node, *constants), type, unit)


def _ratios(constants: Sequence[Any]) -> tuple[Fraction, Fraction]:
    return Fraction(constants[0]), Fraction(constants[1])


def _decimal_python(texts: Sequence[str], constants: Sequence[Any], bind: Callable[[Any], str]) -> str:
    factor, offset = (bind(ratio) for ratio in _ratios(constants))
    return f"_linear_decimal({texts[0]}, {factor}, {offset}, {bind(tuple(constants[2:4]))})"


def _decimal_spark(texts: Sequence[str], constants: Sequence[Any]) -> str:
    factor, offset = _ratios(constants)
    scales = [decimal_type(ratio) for ratio in (factor, offset)]
    by, plus = scales
    # Spark rounds what needs more than 38 digits on the way, and a quotient always: then there is no such text.
    if by is None or plus is None or constants[2 + 2] + by.precision + 2 > MOST_DIGITS:
        raise SituError(TOO_LARGE(what="digits of a decimal in another unit in Spark SQL", limit=MOST_DIGITS))
    product = f"CAST({texts[0]} AS DECIMAL({constants[4]},{constants[5]})) * {_spark_decimal(factor, by)}"
    exact = f"({product} + {_spark_decimal(offset, plus)})" if offset else f"({product})"
    return f"try_cast(bround({exact}, {constants[3]}) AS DECIMAL({constants[2]},{constants[3]}))"


def _spark_decimal(value: Fraction, type: Decimal) -> str:
    digits = str(abs(value.numerator) * 10**type.scale // value.denominator).rjust(type.scale + 1, "0")
    whole, part = (digits[: -type.scale], digits[-type.scale :]) if type.scale else (digits, "0")
    return f"CAST('{'-' if value < 0 else ''}{whole}.{part}' AS {type})".upper()


def _whole_python(texts: Sequence[str], constants: Sequence[Any], bind: Callable[[Any], str]) -> str:
    factor, offset = _ratios(constants)
    most = 2 ** constants[2]
    return f"_within({texts[0]} * ({factor.numerator}) + ({offset.numerator}), {-most}, {most - 1})"


def _whole_spark(texts: Sequence[str], constants: Sequence[Any]) -> str:
    factor, offset = _ratios(constants)
    # A factor of more than 18 digits leaves the range with any value but zero.
    if max(abs(factor), abs(offset)) >= 10**17:
        raise SituError(TOO_LARGE(what="digits of a factor between units in Spark SQL", limit=17))
    exact = f"CAST({texts[0]} AS DECIMAL(19,0)) * CAST({factor.numerator} AS DECIMAL(17,0))"
    shifted = f"({exact} + CAST({offset.numerator} AS DECIMAL(17,0)))" if offset else f"({exact})"
    return f"try_cast({shifted} AS {'INT' if constants[2] == 31 else 'BIGINT'})"


LINEAR_DECIMAL = Overload(
    name="linear",
    parameters=("decimal", "string", "string", "long", "long", "long", "long"),
    result="decimal",
    spark=_decimal_spark,
    python=_decimal_python,
    fails=True,
    constants=(1, 2, 3, 4, 5, 6),
)
LINEAR_WHOLE = Overload(
    name="linear",
    parameters=("long", "string", "string", "long"),
    result="long",
    spark=_whole_spark,
    python=_whole_python,
    fails=True,
    constants=(1, 2, 3),
)


def _nothing_there(texts: Sequence[str], constants: Sequence[Any]) -> str:
    return f"CAST(NULL AS {constants[0]})"


NOTHING_THERE = Overload(
    name="nothing_there",
    parameters=("string",),
    result="element",
    spark=_nothing_there,
    python="_fail('nothing there')",
    fails=True,
    constants=(0,),
)


def nothing_there(type: Type, types: Types | None = None) -> Apply:
    """Fails whenever it is reached, in the place of a value of this type: behind coalesce, where null is no result."""
    text = spark_type(type, types or Types(types={}, units=Units()))
    return Apply(NOTHING_THERE, (Literal(text, STRING),), type)
