"""One type and one unit for operands that meet, and exact conversions between numbers.

:class:`Meeting` brings operands together. :func:`linear` and :func:`nothing_there` are operations that only
transformations need: the language has no words for them.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from situ.lang.catalogue import TOO_LARGE, WRONG_TYPE, WRONG_UNIT
from situ.lang.expr.overload import Overload
from situ.lang.expr.runtime import LONG_MAX, LONG_MIN
from situ.lang.expr.syntax import Locate
from situ.lang.expr.tree import NULL, Apply, Coerce, Literal, Node
from situ.lang.problems import Location, Problem, SituError
from situ.lang.records import replace
from situ.lang.types.layout import spark_type
from situ.lang.types.model import (
    DOUBLE,
    DURATION,
    INT,
    LONG,
    MOST_DIGITS,
    STRING,
    Decimal,
    Primitive,
    Struct,
    Type,
    is_subtype,
    plain,
)
from situ.lang.types.table import Types
from situ.lang.units import NO_UNIT, IncompatibleUnits, Unit, Units, conversion

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Operands that are compared, added or chosen between.
#
# Literals bend to what stands beside them, exactly and rounded once; everything else only widens, int → long → decimal
# or double, and takes on another unit of the same dimension by a :class:`~situ.lang.expr.tree.Coerce`.

_COMPARISONS = frozenset(f"`{operator}`" for operator in ("=", "<>", "<", "<=", ">", ">=", "BETWEEN", "IN"))
_SMALLEST, _LARGEST = Fraction(1, 10**300), Fraction(10**300)


class Mismatch(Exception):
    """Two things do not fit; carries the problem for the place it is found at."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def is_number(type: Type) -> bool:
    return plain(type) in (INT, LONG, DOUBLE) or isinstance(plain(type), Decimal)


def exact_value(literal: Literal) -> Fraction:
    """The number as it was written: a double literal stands for the shortest decimal that reads as it."""
    if isinstance(literal.value, float):
        return Fraction(repr(literal.value))
    return Fraction(literal.value)


def decimal_type(value: Fraction) -> Decimal | None:
    """The smallest decimal type that holds the number exactly, if there is one."""
    scale = 0
    while value.denominator != 1 and scale <= MOST_DIGITS:
        value, scale = value * 10, scale + 1
    digits = max(len(str(abs(value.numerator))), scale)
    return Decimal(max(digits, 1), scale) if value.denominator == 1 and digits <= MOST_DIGITS else None


def widest(types: Sequence[Type]) -> Type | None:
    """The number type all of these widen to, or None if a decimal would need too many digits."""
    plains = [plain(type) for type in types]
    if DOUBLE in plains:
        return DOUBLE
    decimals = [p if isinstance(p, Decimal) else Decimal(10 if p == INT else 19, 0) for p in plains]
    if any(isinstance(p, Decimal) for p in plains):
        scale = max(d.scale for d in decimals)
        whole = max(d.precision - d.scale for d in decimals)
        return Decimal(whole + scale, scale) if whole + scale <= MOST_DIGITS else None
    return LONG if LONG in plains else INT


class Meeting:
    """Brings nodes together for one operation, ``what``; every problem names it."""

    def __init__(self, what: str, locate: Locate, units: Units) -> None:
        self.what, self.locate, self.units = what, locate, units

    def meet(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """The nodes in one common type and unit; :class:`Mismatch` if there is none."""
        type = self.common_type(nodes)
        unit = self.common_unit(nodes) if is_number(type) else NO_UNIT
        if is_number(type) and plain(type) != DOUBLE and self._needs_conversion(nodes, unit):
            type = DOUBLE
        return tuple(self.coerce(node, type, unit) for node in nodes)

    def common_type(self, nodes: Sequence[Node]) -> Type:
        firm = [node for node in nodes if not isinstance(node, Literal)]
        literals = [node for node in nodes if isinstance(node, Literal) and node.type != NULL]
        if any(plain(node.type) == DURATION for node in nodes):
            return DURATION
        known = [*firm, *literals]
        if not known:
            return NULL
        if all(is_number(node.type) for node in known):
            return self._common_number(firm, literals)
        first = known[0]
        for node in known[1:]:
            if plain(node.type) == plain(first.type) or is_subtype(node.type, first.type):
                continue
            if is_number(node.type) and is_number(first.type):
                continue  # they go together: what does not is something else
            if is_subtype(first.type, node.type):
                first = node
                continue
            raise self.wrong_type(node, first.type)
        return first.type if isinstance(plain(first.type), Struct) else plain(first.type)

    def _common_number(self, firm: Sequence[Node], literals: Sequence[Literal]) -> Type:
        types: list[Type] = [node.type for node in firm] or [node.type for node in literals]
        decimal = any(isinstance(plain(type), Decimal) for type in types)
        for literal in literals if firm else ():
            exact = exact_value(literal)
            if decimal and (needed := decimal_type(exact)):
                types.append(needed)
            elif exact.denominator != 1:
                types.append(DOUBLE)
            else:
                types.append(literal.type)
                decimal = decimal or isinstance(plain(literal.type), Decimal)
        result = widest(types)
        if result is None:
            raise Mismatch(
                WRONG_TYPE(
                    self.at(firm[0] if firm else literals[0]),
                    what=self.what,
                    found="decimals of " + ", ".join(str(type) for type in types),
                    expected=f"decimals that have {MOST_DIGITS} digits together",
                    remedy="Make one of them smaller with to_decimal(x, digits, digits after the point).",
                )
            )
        return result

    def common_unit(self, nodes: Sequence[Node]) -> Unit:
        """The unit of the first value that has one; a number without unit takes it on only if it is a literal."""
        firm = [node for node in nodes if not isinstance(node, Literal)]
        with_unit = [node for node in (*firm, *nodes) if node.unit != NO_UNIT]
        if not with_unit:
            return NO_UNIT
        unit = with_unit[0].unit
        for node in firm:
            if node.unit == NO_UNIT:
                raise self.wrong_unit(node, unit)
        return unit

    def _needs_conversion(self, nodes: Sequence[Node], unit: Unit) -> bool:
        return any(node.unit not in (unit, NO_UNIT) for node in nodes)

    def coerce(self, node: Node, type: Type, unit: Unit = NO_UNIT) -> Node:
        """The node as a value of ``type`` in ``unit``; :class:`Mismatch` if it cannot be one."""
        if isinstance(node, Literal):
            return self._bend(node, type, unit)
        if not is_number(type) or not is_number(node.type):
            if plain(node.type) != plain(type) and not is_subtype(node.type, type):
                raise self.wrong_type(node, type)
            return node
        scale, offset = self._conversion(node, unit)
        if plain(node.type) == plain(type) and scale == 1 and offset == 0:
            return node
        if widest((node.type, type)) != plain(type):
            raise self.wrong_type(node, type)
        return Coerce(node, plain(type), unit, scale, offset, span=node.span)

    def _in_range(self, node: Node, unit: Unit, factor: Fraction) -> None:
        """A factor between units that no double can express would make zero or infinity of every value."""
        if not _SMALLEST < abs(factor) < _LARGEST:
            raise Mismatch(
                WRONG_UNIT(
                    self.at(node),
                    what=self.what,
                    found=f"a value in {node.unit}",
                    expected=f"one in {unit}",
                    remedy="One is so much larger than the other that no number expresses it.",
                )
            )

    def _conversion(self, node: Node, unit: Unit) -> tuple[Fraction, Fraction]:
        if node.unit == unit:
            return Fraction(1), Fraction(0)
        if unit == NO_UNIT or node.unit == NO_UNIT:
            raise self.wrong_unit(node, unit)
        try:
            scale, offset = conversion(node.unit, unit)
        except IncompatibleUnits:
            raise self.wrong_unit(node, unit) from None
        self._in_range(node, unit, scale)
        return scale, offset

    def _bend(self, literal: Literal, type: Type, unit: Unit) -> Literal:
        if literal.value is None:
            return replace(literal, type=plain(type), unit=unit)
        if plain(type) == DURATION and plain(literal.type) != DURATION:
            return self._duration(literal)
        if not is_number(type) or not is_number(literal.type):
            if plain(literal.type) != plain(type):
                raise self.wrong_type(literal, type)
            return literal
        value = exact_value(literal)
        if literal.unit != NO_UNIT:
            scale, offset = self._conversion(literal, unit)
            value = value * scale + offset
        made = _number(value, plain(type))
        if made is None:
            raise self.wrong_type(literal, type)
        return replace(literal, value=made, type=plain(type), unit=unit)

    def _duration(self, literal: Literal) -> Literal:
        if not is_number(literal.type):
            raise self.wrong_type(literal, DURATION)
        seconds = self.units.parse("s")
        if literal.unit.dimension != seconds.dimension:
            raise Mismatch(
                WRONG_UNIT(
                    self.at(literal),
                    what=self.what,
                    found=f"a number in {literal.unit}" if literal.unit.factors else "a number without unit",
                    expected="a duration",
                    remedy="Write the unit of time behind the number: `5 s`, `10 min`, `2 h`.",
                )
            )
        scale, _ = conversion(literal.unit, seconds)
        micros = round(exact_value(literal) * scale * 1_000_000)
        if not LONG_MIN < micros <= LONG_MAX:
            raise self.wrong_type(literal, DURATION)
        return replace(literal, value=dt.timedelta(microseconds=micros), type=DURATION, unit=NO_UNIT)

    # ── problems ──

    def at(self, node: Node) -> Location:
        start, end = node.span
        return self.locate(start, end - start)

    def wrong_type(self, node: Node, expected: Type) -> Mismatch:
        remedy = ""
        if plain(node.type) == Primitive("string") and str(plain(expected)) in ("timestamp", "date", "duration"):
            word = str(plain(expected)).upper()
            remedy = f"Write {word} before the text: {word} '…'."
        elif plain(node.type) == Primitive("string") and is_number(expected):
            remedy = "Numbers stand without quotes; to_double(text) reads a number from text."
        elif plain(expected) == Primitive("string") and isinstance(node, Literal):
            remedy = "Text stands in single quotes."
        return Mismatch(
            WRONG_TYPE(self.at(node), what=self.what, found=str(node.type), expected=str(expected), remedy=remedy)
        )

    def wrong_unit(self, node: Node, expected: Unit) -> Mismatch:
        found = f"a value in {node.unit}" if node.unit.factors else "a value without unit"
        wanted = f"one in {expected}" if expected.factors else "one without unit"
        if node.unit.labels or expected.labels:
            remedy = "Labels such as currencies convert only by a function that says how."
        elif node.unit.factors and expected.factors:
            advice = "; compare values of one dimension" if self.what in _COMPARISONS else " and cannot be converted"
            remedy = f"They measure different things{advice}."
        elif node.unit.factors:
            remedy = (
                f"Divide it by `1 [{node.unit}]` to get a plain number, or declare {node.unit} where one is expected."
            )
        else:
            remedy = f"Declare what has no unit as one in {expected}, or multiply it by `1 [{expected}]`."
        return Mismatch(WRONG_UNIT(self.at(node), what=self.what, found=found, expected=wanted, remedy=remedy))


def widen(node: Node, type: Type) -> Node:
    """The node in a wider number type; the caller knows that it is one."""
    if plain(node.type) == type:
        return node
    if isinstance(node, Literal):
        return replace(node, value=None if node.value is None else _number(exact_value(node), type), type=type)
    return Coerce(node, type, node.unit, span=node.span)


def _number(value: Fraction, type: Type) -> float | int | decimal.Decimal | None:
    """The number in a type, if it is one of its values: rounded once for doubles, exact for all others."""
    match type:
        case Primitive(name="double"):
            try:
                return value.numerator / value.denominator
            except OverflowError:
                return None
        case Decimal(precision=precision, scale=scale):
            shifted = value * 10**scale
            if shifted.denominator != 1 or abs(shifted.numerator) >= 10**precision:
                return None
            return decimal.Decimal(shifted.numerator).scaleb(-scale, context=decimal.Context(prec=60))
        case Primitive(name="int" | "long" as name):
            most = 2**31 - 1 if name == "int" else LONG_MAX
            return value.numerator if value.denominator == 1 and -most - 1 <= value <= most else None
        case _:
            return None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Numbers that become other numbers exactly, ``value * factor + offset``, and values that have to be there.
#
# Decimals and whole numbers in another unit are computed with rationals; doubles take a
# :class:`~situ.lang.expr.tree.Coerce` instead. A place that must not be empty fails if it is.


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
