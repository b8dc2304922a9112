"""What generated Python calls: the functions of the language that need more than a Python operator.

In order: logic, lists and numbers, texts, time, places. Each equals its Spark text on every input, and fails by raising
ArithmeticError or ValueError. Nothing here looks at types, units or nulls: the emitter has settled those.
"""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar
from zoneinfo import ZoneInfo

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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Texts.

LONGEST_TEXT = 1 << 22


def _case_pairs() -> list[tuple[str, str]]:
    """Letters with exactly one other case, in scripts whose letters are settled: the same table for both engines."""
    pairs = []
    for code in (*range(0x41, 0x590), *range(0x1E00, 0x2000)):
        small = chr(code)
        large = small.upper()
        if (
            len(large) == 1
            and large != small
            and large.lower() == small
            and (ord(large) < 0x590 or ord(large) >= 0x1E00)
        ):
            pairs.append((small, large))
    return pairs


CASE_PAIRS = tuple((small, large) for small, large in _case_pairs() if ord(large) < 0x2000)
_UPPER = {ord(small): large for small, large in CASE_PAIRS}
_LOWER = {ord(large): small for small, large in CASE_PAIRS}


def upper(text: str) -> str:
    return text.upper() if text.isascii() else text.translate(_UPPER)


def lower(text: str) -> str:
    return text.lower() if text.isascii() else text.translate(_LOWER)


def substring(text: str, start: int, length: int = LONG_MAX) -> str:
    """Counts from 1; a negative start counts from the end; what lies outside the text is left out."""
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    last = first + length
    return text[max(first, 0) : max(last, 0)]


def replace(text: str, old: str, new: str) -> str:
    if not old:
        return text
    if len(text) + text.count(old) * (len(new) - len(old)) > LONGEST_TEXT:
        raise ArithmeticError("the text would become too long")
    return text.replace(old, new)


def split_part(text: str, separator: str, place: int) -> str:
    if place == 0:
        raise ValueError("parts are counted from 1")
    parts = text.split(separator) if separator else [text]
    index = place - 1 if place > 0 else len(parts) + place
    return parts[index] if 0 <= index < len(parts) else ""


def kv(text: str, key: str, separator: str, equals: str) -> str | None:
    prefix = key + equals
    for part in text.split(separator):
        if part.startswith(prefix):
            return part[len(prefix) :]
    return None


def kv_of(text: str, marked: str, separator: str) -> str | None:
    """The same for a key that is known: ``marked`` is what its part begins with behind a separator.

    The separator is one character, which is not in the key; so the text need not be taken apart.
    """
    _, found, rest = (separator + text).partition(marked)
    return rest.partition(separator)[0] if found else None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Instants and durations.

_MICROSECOND = dt.timedelta(microseconds=1)
LONGEST = dt.timedelta(microseconds=LONG_MAX)
SHORTEST = dt.timedelta(microseconds=LONG_MIN)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def micros(instant: dt.datetime) -> int:
    return (instant - EPOCH) // _MICROSECOND


def instant_of_micros(value: int) -> dt.datetime:
    return EPOCH + dt.timedelta(microseconds=value)


def from_epoch_ms(value: int) -> dt.datetime:
    return EPOCH + dt.timedelta(milliseconds=value)


def epoch_ms(instant: dt.datetime) -> int:
    return micros(instant) // 1000


def duration(value: dt.timedelta) -> dt.timedelta:
    if not SHORTEST <= value <= LONGEST:
        raise ArithmeticError("beyond the range of duration")
    return value


def scale_duration(value: dt.timedelta, factor: float) -> dt.timedelta:
    return dt.timedelta(microseconds=truncate(finite((value // _MICROSECOND) * factor)))


def duration_ratio(left: dt.timedelta, right: dt.timedelta) -> float:
    return float(left // _MICROSECOND) / float(right // _MICROSECOND)


def seconds(value: dt.timedelta) -> float:
    return float(value // _MICROSECOND) / 1000000.0


def local(instant: dt.datetime, zone: ZoneInfo) -> dt.datetime:
    return instant.astimezone(zone)


def weekday(instant: dt.datetime, zone: ZoneInfo) -> int:
    return instant.astimezone(zone).isoweekday()


def format_time(instant: dt.datetime, pieces: Sequence[tuple[str, str]], zone: ZoneInfo) -> str:
    there = instant.astimezone(zone)
    return "".join(text if field == "" else _FIELDS[field](there) for field, text in pieces)


_FIELDS: dict[str, Callable[[dt.datetime], str]] = {
    "yyyy": lambda t: f"{t.year:04d}",
    "MM": lambda t: f"{t.month:02d}",
    "dd": lambda t: f"{t.day:02d}",
    "HH": lambda t: f"{t.hour:02d}",
    "mm": lambda t: f"{t.minute:02d}",
    "ss": lambda t: f"{t.second:02d}",
    "SSS": lambda t: f"{t.microsecond // 1000:03d}",
    "SSSSSS": lambda t: f"{t.microsecond:06d}",
}


def parse_time(text: str, shape: re.Pattern[str], zone: ZoneInfo) -> dt.datetime:
    found = shape.fullmatch(text)
    if found is None:
        raise ValueError("does not have the form of the pattern")
    given: dict[str, Any] = found.groupdict()
    fraction = given.get("fraction") or "0"
    there = dt.datetime(
        int(given.get("yyyy") or 1970),
        int(given.get("MM") or 1),
        int(given.get("dd") or 1),
        int(given.get("HH") or 0),
        int(given.get("mm") or 0),
        int(given.get("ss") or 0),
        int(fraction.ljust(6, "0")),
        tzinfo=zone,
    )
    return there.astimezone(dt.UTC)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Places, on a plane and on the globe.


def distance(x1: float, y1: float, x2: float, y2: float) -> float:
    across, along = x1 - x2, y1 - y2
    return math.sqrt(across * across + along * along)


FARTHEST = 1e100  # beyond it the products in the polygon test could overflow
EARTH_RADIUS = 6371008.8  # metres, mean
RADIANS = 0.017453292519943295


def geo_distance(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    """Great-circle distance by the haversine formula."""
    if not (abs(lat1) <= 90.0 and abs(lat2) <= 90.0 and abs(lon1) <= 360.0 and abs(lon2) <= 360.0):
        raise ArithmeticError("not a place on Earth")
    up = math.sin((lat2 - lat1) * RADIANS / 2.0)
    side = math.sin((lon2 - lon1) * RADIANS / 2.0)
    chord = up * up + math.cos(lat1 * RADIANS) * math.cos(lat2 * RADIANS) * (side * side)
    return 2.0 * EARTH_RADIUS * math.asin(math.sqrt(min(1.0, chord)))


def _near(point: Mapping[str, float | None] | None) -> bool:
    x, y = (point["x"], point["y"]) if point is not None else (None, None)
    return x is not None and y is not None and abs(x) <= FARTHEST and abs(y) <= FARTHEST


def in_polygon(x: float, y: float, points: Sequence[Mapping[str, float] | None]) -> bool:
    """Even-odd rule; of the border, the lower and left part counts as inside."""
    if not (abs(x) <= FARTHEST and abs(y) <= FARTHEST):
        raise ArithmeticError("too far out")
    if not all(_near(point) for point in points):
        raise ArithmeticError("too far out")
    inside = False
    corners = [point for point in points if point is not None]
    for here, there in zip(corners, (*corners[1:], *corners[:1]), strict=True):
        ax, ay, bx, by = here["x"], here["y"], there["x"], there["y"]
        if (ay > y) != (by > y) and x < (bx - ax) * (y - ay) / (by - ay) + ax:
            inside = not inside
    return inside


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The names that the Python templates of the function table may use: the runtime, and nothing else.
#
# It stands last: the public functions above get in, with an underscore before their names.

NAMESPACE: MappingProxyType[str, Any] = MappingProxyType(
    {
        "__builtins__": {
            "abs": abs,
            "float": float,
            "format": format,
            "int": int,
            "len": len,
            "max": max,
            "min": min,
            "str": str,
        },
        **{
            f"_{name}": function
            for name, function in dict(globals()).items()
            if inspect.isfunction(function) and not name.startswith("_")
        },
        "_Decimal": decimal.Decimal,
        **{f"_{name}": getattr(math, name) for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "atan2")},
    }
)
