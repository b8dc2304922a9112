"""What generated Python calls: the functions of the language that need more than a Python operator.

Here is what connects, goes through lists and computes; texts, time and geometry have modules of their own.

Each equals its Spark text on every input, and fails by raising ArithmeticError or ValueError. Nothing here looks at
types, units or nulls: the emitter has settled those.
"""

from __future__ import annotations

import decimal
import functools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")
U = TypeVar("U")

FAILURES = (ArithmeticError, ValueError)
LONG_MAX = 2**63 - 1
LONG_MIN = -(2**63)
LARGEST = 1.7976931348623157e308
EXACT = decimal.Context(
    prec=120, rounding=decimal.ROUND_HALF_UP, traps=[decimal.InvalidOperation, decimal.DivisionByZero]
)


def fail(reason: str = "the operation failed") -> NoReturn:
    raise ArithmeticError(reason)


def finite(value: float) -> float:
    if value - value != 0.0:
        raise ArithmeticError("not a finite number")
    return value


def number(value: float) -> float:
    if value != value:
        raise ArithmeticError("not a number")
    return value


# ── logic with more than one part that can fail ───────────────────────────────────────────────────


def conjunction(*parts: Callable[[], bool | None]) -> bool | None:
    """AND: false wins over failure, failure over null, in whatever order the parts stand."""
    return _connect(parts, False)


def disjunction(*parts: Callable[[], bool | None]) -> bool | None:
    """OR: true wins over failure, failure over null."""
    return _connect(parts, True)


def _connect(parts: Iterable[Callable[[], bool | None]], decisive: bool) -> bool | None:
    failure: Exception | None = None
    unknown = False
    for part in parts:
        try:
            value = part()
        except FAILURES as raised:
            failure = failure or raised
            continue
        if value is decisive:
            return decisive
        unknown = unknown or value is None
    if failure is not None:
        raise failure
    return None if unknown else not decisive


def exists(items: Sequence[T], test: Callable[[T], bool | None]) -> bool | None:
    return _connect((functools.partial(test, item) for item in items), True)


def forall(items: Sequence[T], test: Callable[[T], bool | None]) -> bool | None:
    return _connect((functools.partial(test, item) for item in items), False)


def keep(items: Sequence[T], test: Callable[[T], bool | None]) -> list[T]:
    return [item for item in items if test(item)]


def transform(items: Sequence[T], body: Callable[[T], U]) -> list[U]:
    return [body(item) for item in items]


def element_at(items: Sequence[T], place: int) -> T | None:
    index = place - 1 if place > 0 else len(items) + place
    return items[index] if place and 0 <= index < len(items) else None


def at_most(items: Sequence[T], most: int, weight: int = 1) -> Sequence[T]:
    if long(len(items) * weight) > most:
        raise ArithmeticError(f"a list of more than {most} elements, or of texts too long to be copied into each")
    return items


# ── numbers ───────────────────────────────────────────────────────────────────────────────────────


def long(value: int) -> int:
    if not LONG_MIN <= value <= LONG_MAX:
        raise ArithmeticError("beyond the range of long")
    return value


def long_remainder(left: int, right: int) -> int:
    """The sign of the dividend, as in SQL; Python's own remainder has the sign of the divisor."""
    if right == 0:
        raise ZeroDivisionError("remainder of a division by zero")
    return (math.copysign(1, left) < 0 and -(abs(left) % abs(right))) or abs(left) % abs(right)


def remainder(left: float, right: float) -> float:
    if right == 0.0:
        raise ZeroDivisionError("remainder of a division by zero")
    return math.fmod(left, right)


def floor(value: float) -> int:
    return long(math.floor(value))


def ceil(value: float) -> int:
    return long(math.ceil(value))


def truncate(value: float) -> int:
    return long(math.trunc(value))


_WHOLE = 4503599627370496.0  # 2^52: from here on every double is a whole number


def scaled(value: float, digits: int) -> float:
    """``|value| * 10^digits`` as a whole number, halves away from zero.

    A double is taken for the decimal that it is the nearest to: 1.005 is a half of a hundredth, although the double is
    a little less. So it is compared with the double nearest to the half; the product, which rounds, does not decide.
    """
    value, factor = abs(value), 10.0**digits
    product = value * factor
    if product >= _WHOLE:
        return product
    below = math.floor(product)
    return below + (value >= (below + 0.5) / factor)


def round_double(value: float, digits: int) -> float:
    if abs(value) * 10.0**digits >= _WHOLE:
        return value
    return math.copysign(scaled(value, digits) / 10.0**digits, value)


def format_number(value: float, digits: int) -> str:
    units = scaled(value, digits)
    if units >= _WHOLE:
        raise ArithmeticError("too large to be written with this many digits")
    whole, part = divmod(int(units), 10**digits)
    sign = "-" if value < 0 and units > 0 else ""
    return f"{sign}{whole}.{part:0{digits}d}" if digits else f"{sign}{whole}"


def to_int(value: int) -> int:
    if not -(2**31) <= value < 2**31:
        raise ArithmeticError("beyond the range of int")
    return value


def power(base: float, exponent: float) -> float:
    return finite(math.pow(base, exponent))


def linear_decimal(value: decimal.Decimal | int, factor: Fraction, offset: Fraction, places: tuple[int, int]) -> Any:
    """``value * factor + offset``, exactly, then rounded half to even; ``places`` are precision and scale."""
    precision, scale = places
    units = round((Fraction(value) * factor + offset) * 10**scale)
    if abs(units) >= 10**precision:
        raise ArithmeticError(f"more than {precision - scale} digits before the point")
    return decimal.Decimal(units).scaleb(-scale, context=EXACT)


def within(value: int, lowest: int, highest: int) -> int:
    if not lowest <= value <= highest:
        raise ArithmeticError(f"beyond the range of {lowest} to {highest}")
    return value


def without_nulls(made: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in made.items() if value is not None}


def fit_decimal(value: decimal.Decimal, precision: int, scale: int) -> decimal.Decimal:
    """Round half away from zero to ``scale`` digits; fail if more than ``precision`` digits remain."""
    result = value.quantize(_step(scale), context=EXACT)
    if result and result.adjusted() + 1 > precision - scale:
        raise ArithmeticError(f"more than {precision - scale} digits before the point")
    return result or abs(result)


@functools.cache
def _step(scale: int) -> decimal.Decimal:
    return decimal.Decimal(1).scaleb(-scale)


def decimal_add(a: decimal.Decimal, b: decimal.Decimal, precision: int, scale: int) -> decimal.Decimal:
    return fit_decimal(EXACT.add(a, b), precision, scale)


def decimal_subtract(a: decimal.Decimal, b: decimal.Decimal, precision: int, scale: int) -> decimal.Decimal:
    return fit_decimal(EXACT.subtract(a, b), precision, scale)


def decimal_multiply(a: decimal.Decimal, b: decimal.Decimal, precision: int, scale: int) -> decimal.Decimal:
    return fit_decimal(EXACT.multiply(a, b), precision, scale)


def decimal_divide(a: decimal.Decimal, b: decimal.Decimal, precision: int, scale: int) -> decimal.Decimal:
    """Spark divides to 38 digits after the point first, then rounds: so do we, to agree on the last digit."""
    if not b:
        raise ZeroDivisionError("division by zero")
    return fit_decimal(EXACT.divide(a, b).quantize(_step(38), context=EXACT), precision, scale)


def decimal_remainder(a: decimal.Decimal, b: decimal.Decimal) -> decimal.Decimal:
    if not b:
        raise ZeroDivisionError("remainder of a division by zero")
    return EXACT.remainder(a, b)


def decimal_of_double(value: float, precision: int, scale: int) -> decimal.Decimal:
    units = scaled(value, scale)
    if units >= _WHOLE:
        raise ArithmeticError("too large for an exact decimal")
    exact = decimal.Decimal(int(units)).scaleb(-scale, context=EXACT)
    return fit_decimal(-exact if value < 0 else exact, precision, scale)


_DOUBLE_TEXT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DECIMAL_TEXT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)")
_LONG_TEXT = re.compile(r"[+-]?[0-9]+")


def double_of_text(text: str) -> float:
    if len(text) > 400 or not _DOUBLE_TEXT.fullmatch(text):
        raise ValueError("not written as a number")
    return finite(float(text))


def long_of_text(text: str) -> int:
    if len(text) > 400 or not _LONG_TEXT.fullmatch(text):
        raise ValueError("not written as a whole number")
    return long(int(text))


def decimal_of_text(text: str, precision: int, scale: int) -> decimal.Decimal:
    if len(text) > 60 or not _DECIMAL_TEXT.fullmatch(text):
        raise ValueError("not written as a decimal number")
    return fit_decimal(decimal.Decimal(text), precision, scale)
