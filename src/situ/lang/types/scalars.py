"""Single values in JSON: how each primitive is written, read strictly and printed canonically.

A reader takes a JSON value and gives the value the engines work with, or raises :class:`Unfit` with the remedy. Runtime
values: ``bool``, ``int``, ``float``, ``decimal.Decimal``, ``str``, ``bytes``, ``datetime.date``, aware
``datetime.datetime`` in UTC, ``datetime.timedelta``. Structs and lists are :mod:`situ.lang.types.json_codec`.

Two readings that lose something are deliberate: digits of a second beyond the microsecond are cut off, since producers
on other platforms write nanoseconds by habit; and any offset of a timestamp is turned into UTC.
"""

from __future__ import annotations

import binascii
import datetime as dt
import decimal
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType
from typing import Any, assert_never

from situ.lang.types.model import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    DURATION,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Decimal,
    ListOf,
    Primitive,
    Struct,
    Type,
    plain,
)


class Unfit(ValueError):
    """The JSON value is none of this type; ``remedy`` says what to write instead, if that is known."""

    def __init__(self, remedy: str = "") -> None:
        super().__init__(remedy)
        self.remedy = remedy


Reader = Callable[[Any], Any]
Printer = Callable[[Any], Any]

_COMMA_NUMBER = re.compile(r"\s*[-+]?[0-9.'\s]*[0-9],[0-9]+\s*")
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")
_DECIMAL = re.compile(r"-?[0-9]{1,60}(?:\.[0-9]{1,60})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = r"(?P<time>(?:[01][0-9]|2[0-3]):[0-5][0-9]:(?P<second>[0-5][0-9]|60))(?P<fraction>\.[0-9]{1,30})?"
_OFFSET = r"(?P<offset>[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_INSTANT = re.compile(rf"(?P<date>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})[Tt ]{_TIME}{_OFFSET}?")
# What nearly every producer sends: read without taking it apart.
_USUAL_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?Z")
_DURATION = re.compile(
    r"(?P<sign>[-+])?P(?=[0-9T])(?:(?P<weeks>[0-9]{1,9})W)?(?:(?P<days>[0-9]{1,9})D)?"
    r"(?:T(?=[0-9])(?:(?P<hours>[0-9]{1,12})H)?(?:(?P<minutes>[0-9]{1,12})M)?"
    r"(?:(?P<seconds>[0-9]{1,14})(?:[.,](?P<fraction>[0-9]{1,30}))?S)?)?"
)
_MICROSECOND = timedelta(microseconds=1)
_MOST_MICROSECONDS = 2**63 - 1


def number_remedy(value: object) -> str:
    """The likely mistake behind text that stands where a number should."""
    if isinstance(value, str):
        if _COMMA_NUMBER.fullmatch(value[:100]):
            return "Numbers are written with a point, 3.5, and without quotes."
        if _NUMBER.fullmatch(value[:100]):
            return "Write the number without quotes."
    return ""


def read_boolean(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise Unfit("Write true or false, without quotes.")


def _integer_reader(bits: int) -> Callable[[Any], int]:
    lowest, highest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def read_integer(value: Any) -> int:
        # bool is an int to Python and a different thing to JSON, hence the exact type.
        if type(value) is int:
            if lowest <= value <= highest:
                return value
            raise Unfit(f"The range is {lowest} to {highest}.")
        if type(value) is float:
            raise Unfit("Whole numbers are written without point and exponent.")
        raise Unfit(number_remedy(value))

    return read_integer


def read_double(value: Any) -> float:
    if type(value) is float:
        if value - value == 0.0:
            return value
        raise Unfit("Numbers must be finite; leave the attribute out where there is no value.")
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise Unfit("The number is too large for a double.") from None
    raise Unfit(number_remedy(value))


def read_string(value: Any) -> str:
    if type(value) is str:
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise Unfit("Half of a surrogate pair is no character.") from None
        return value
    raise Unfit("Text stands in double quotes." if isinstance(value, int | float) else "")


def read_bytes(value: Any) -> bytes:
    if type(value) is str:
        try:
            raw = value.encode("ascii")
            result = binascii.a2b_base64(raw, strict_mode=True)
        except (UnicodeEncodeError, binascii.Error):
            raise Unfit("Bytes are written in base64 with padding.") from None
        # Bits that do not make a whole byte must be zero, or one value would have several spellings.
        if binascii.b2a_base64(result, newline=False) == raw:
            return result
    raise Unfit("Bytes are written in base64 with padding.")


def read_date(value: Any) -> date:
    if type(value) is str and _DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise Unfit("There is no such day.") from None
    raise Unfit("Dates are written as 2026-11-01.")


def read_timestamp(value: Any) -> datetime:
    if type(value) is str and _USUAL_INSTANT.fullmatch(value):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            raise Unfit("There is no such day.") from None
    if type(value) is str and (match := _INSTANT.fullmatch(value)):
        day, time, second, fraction, offset = match.groups()
        if offset is None:
            raise Unfit("The offset is missing: write 2026-11-01T08:30:00Z for UTC, or +02:00 instead of Z.")
        zone = offset if len(offset) > 1 else "+00:00"
        try:
            if second == "60":
                return _leap_second(f"{day}T{time[:-2]}59", fraction or "", zone)
            return datetime.fromisoformat(f"{day}T{time}{fraction[:7] if fraction else ''}{zone}").astimezone(UTC)
        except Unfit:
            raise
        except (ValueError, OverflowError):
            raise Unfit("There is no such instant in the years 1 to 9999.") from None
    raise Unfit("Timestamps are written as 2026-11-01T08:30:00Z.")


def _leap_second(before: str, fraction: str, zone: str) -> datetime:
    """An instant of a leap second is the same instant of the second after it, as in POSIX: no clock counts both.

    Leap seconds end a day of UTC. Which days had one is announced half a year ahead, and not known here.
    """
    last = datetime.fromisoformat(f"{before}{zone}").astimezone(UTC)
    if (last.hour, last.minute) != (23, 59):
        raise Unfit("Second 60 is a leap second, and these end a day of UTC: 23:59:60Z.")
    return last + timedelta(seconds=1, microseconds=int(fraction[1:7].ljust(6, "0")) if fraction else 0)


def read_duration(value: Any) -> timedelta:
    if type(value) is str and (match := _DURATION.fullmatch(value)):
        days = 7 * int(match["weeks"] or 0) + int(match["days"] or 0)
        minutes = 60 * (24 * days + int(match["hours"] or 0)) + int(match["minutes"] or 0)
        microseconds = int((match["fraction"] or "0").ljust(6, "0")[:6])
        total = 1_000_000 * (60 * minutes + int(match["seconds"] or 0)) + microseconds
        if total > _MOST_MICROSECONDS:
            raise Unfit("Durations reach to about 292,000 years.")
        return (-total if match["sign"] == "-" else total) * _MICROSECOND
    raise Unfit("Durations are written as PT5S, PT1H30M or P2DT12H; months and years have no fixed length.")


def decimal_reader(type_: Decimal) -> Callable[[Any], decimal.Decimal]:
    """Exact decimals from text or number; what does not fit the digits is refused, never rounded."""
    precision, scale = type_.precision, type_.scale
    whole = precision - scale
    limit = 10**whole
    # The context of the calling thread may have any precision; this one cannot round a value that fits.
    exact = decimal.Context(prec=precision + 1, traps=[decimal.InvalidOperation, decimal.Inexact])
    step = decimal.Decimal(1).scaleb(-scale)

    def read_decimal(value: Any) -> decimal.Decimal:
        if type(value) is str:
            text = value
        elif type(value) is int:
            # Written out first: Python refuses to print integers of thousands of digits.
            if not -limit < value < limit:
                raise Unfit(f"At most {whole} digits may stand before the point.")
            text = str(value)
        elif type(value) is float:
            text = _exact_text(value)
        else:
            raise Unfit()
        if not _DECIMAL.fullmatch(text):
            raise Unfit(number_remedy(text) if "," in text else 'Decimals are written as text: "12.50".')
        number = decimal.Decimal(text)
        try:
            result = number.quantize(step, context=exact)
        except decimal.Inexact:
            raise Unfit(f"At most {scale} digits may stand after the point.") from None
        except decimal.InvalidOperation:
            raise Unfit(f"At most {whole} digits may stand before the point.") from None
        if result.copy_abs() >= limit:  # abs() would round to the precision of the calling thread
            raise Unfit(f"At most {whole} digits may stand before the point.")
        return result or result.copy_abs()  # zero has no sign

    return read_decimal


def _exact_text(value: float) -> str:
    """The digits a JSON number had. Up to 15 survive the way through a double; beyond, they may be others."""
    shown = decimal.Decimal(repr(value))
    if not shown.is_finite() or len(shown.as_tuple().digits) > 15:
        raise Unfit('A number of more than 15 digits is not exact in JSON: write it as text, "12.50".')
    return format(shown, "f")


READERS: Mapping[Primitive, Reader] = MappingProxyType(
    {
        Primitive("boolean"): read_boolean,
        Primitive("int"): _integer_reader(32),
        Primitive("long"): _integer_reader(64),
        Primitive("double"): read_double,
        Primitive("string"): read_string,
        Primitive("bytes"): read_bytes,
        Primitive("date"): read_date,
        Primitive("timestamp"): read_timestamp,
        Primitive("duration"): read_duration,
    }
)


def print_timestamp(value: datetime) -> str:
    """RFC 3339 in UTC with ``Z``, microseconds only where there are any."""
    text = value.astimezone(UTC).isoformat()
    return text.removesuffix("+00:00") + "Z"


def print_duration(value: timedelta) -> str:
    """ISO 8601 with days, hours, minutes and seconds, none that is zero: ``P1DT2H``, ``PT0.5S``, ``PT0S``."""
    total = value // _MICROSECOND
    seconds, fraction = divmod(abs(total), 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    shown = f"{seconds}.{fraction:06d}".rstrip("0") if fraction else str(seconds)
    clock = "".join((f"{hours}H" * bool(hours), f"{minutes}M" * bool(minutes), f"{shown}S" * (shown != "0")))
    calendar = f"{days}D" * bool(days)
    return ("-" if total < 0 else "") + "P" + (f"{calendar}T{clock}" if clock else calendar or "T0S")


def print_decimal(value: decimal.Decimal) -> str:
    return format(value, "f")


def _as_it_is(value: Any) -> Any:
    return value


PRINTERS: Mapping[Primitive, Printer] = MappingProxyType(
    {
        Primitive("boolean"): _as_it_is,
        Primitive("int"): _as_it_is,
        Primitive("long"): _as_it_is,
        Primitive("double"): _as_it_is,
        Primitive("string"): _as_it_is,
        Primitive("bytes"): lambda value: binascii.b2a_base64(value, newline=False).decode("ascii"),
        Primitive("date"): date.isoformat,
        Primitive("timestamp"): print_timestamp,
        Primitive("duration"): print_duration,
    }
)


def describe(value: object) -> str:
    """What was found, for a message: short whatever it is."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in value[:60])
            return f'the text "{shown}{"…" if len(value) > 60 else ""}"'
        case int():
            return f"the number {value}" if abs(value) < 10**40 else "a number of more than 40 digits"
        case float():
            return f"the number {value!r}"
        case dict():
            return "an object"
        case list() | tuple():
            return "a list"
        case _:
            return f"a {type(value).__name__}"


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What values of the types are in Python, for those who make or read them.

_EXAMPLES: Mapping[Primitive, Any] = MappingProxyType(
    {
        BOOLEAN: False,
        INT: 0,
        LONG: 0,
        DOUBLE: 0.0,
        STRING: "",
        BYTES: b"",
        DATE: dt.date(2000, 1, 1),
        TIMESTAMP: dt.datetime(2000, 1, 1, tzinfo=dt.UTC),
        DURATION: dt.timedelta(),
    }
)

PYTHON_TYPES: Mapping[Primitive, Any] = MappingProxyType({each: type(value) for each, value in _EXAMPLES.items()})
"""The class of their values; that of every decimal is :class:`decimal.Decimal`."""


def example(type: Type) -> Any:
    """Some value of the type, which stands for one that is not known yet."""
    bare = plain(type)
    match bare:
        case Primitive():
            return _EXAMPLES[bare]
        case Decimal(scale=scale):
            return decimal.Decimal(0).scaleb(-scale)
        case ListOf():
            return []
        case Struct(attributes=attributes):
            return {each.name: example(each.type) for each in attributes}
        case _:
            assert_never(bare)
