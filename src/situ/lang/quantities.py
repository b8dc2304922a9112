"""Quantities, durations, instants and sizes as settings write them: ``90 km/h``, ``5 s``, ``2026-11-01``, ``512 KiB``.

Numbers are kept exactly. Values in *events* are written otherwise (:mod:`situ.lang.types.scalars`), quantities in
expressions are read by the expression language.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import NoReturn

import msgspec

from situ.lang.catalogue import BAD_QUANTITY, UNKNOWN_UNIT
from situ.lang.problems import Location, SituError
from situ.lang.units import NO_UNIT, Unit, Units, UnknownUnit

_QUANTITY = re.compile(
    r"(?P<number>[-+]?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][-+]?[0-9]{1,3})?)"
    r"(?P<space>[ \t\xa0\u202f]*)(?P<unit>[^0-9\s].*)?"
)
_COMMA = re.compile(r"[-+]?[0-9.]*[0-9],[0-9]")
_SIZES = {
    "B": 1,
    **{f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGTP", 1)},
    **{f"{prefix}B": 1000**power for power, prefix in enumerate("kMGTP", 1)},
}
_SECONDS = {
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}
_DURATIONS = tuple(
    (name, timedelta(**{unit: 1}))
    for name, unit in (("d", "days"), ("h", "hours"), ("min", "minutes"), ("s", "seconds"), ("ms", "milliseconds"))
)
_OF_TIME = "one of time: `5 s`, `200 ms`, `10 min`, `1 h` or `7 d`"
_LONGEST = timedelta(days=36_525)
_LARGEST_SIZE = 2**63 - 1
_LONGEST_TEXT = 200
_MICROSECOND = timedelta(microseconds=1)

BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
"""Before every event."""


class Quantity(msgspec.Struct, frozen=True):
    """A number of a unit."""

    number: Fraction
    unit: Unit = NO_UNIT


def parse_quantity(text: str, units: Units | None = None, location: Location | None = None) -> Quantity:
    """Read a number with its unit; :class:`SituError` with P121 or INT105 if it is none."""
    number, unit = _split(text, "quantity", location)
    try:
        return Quantity(number, (units or Units()).parse(unit) if unit else NO_UNIT)
    except UnknownUnit as error:
        raise SituError(UNKNOWN_UNIT(location, unit=unit[:_LONGEST_TEXT], nearest=error.nearest)) from None


def parse_duration(text: str, location: Location | None = None) -> timedelta:
    """Read a duration of settings: not negative, at most a century, whole microseconds."""
    number, unit = _split(text, "duration", location)
    if not unit:
        _refuse(text, "duration", f"The unit is missing; it must be {_OF_TIME}.", location)
    microseconds = number * _seconds(text, unit, location) * 1_000_000
    if microseconds.denominator != 1:
        _refuse(text, "duration", "Durations are counted in whole microseconds.", location)
    if not 0 <= microseconds <= _LONGEST // _MICROSECOND:
        _refuse(text, "duration", "Durations go from 0 s to 36525 d.", location)
    return microseconds.numerator * _MICROSECOND


def format_duration(value: timedelta) -> str:
    """The shortest exact spelling, in the largest unit that takes a whole number."""
    for name, unit in _DURATIONS:
        if value and value % unit == timedelta(0):
            return f"{value // unit} {name}"
    return f"{value // _MICROSECOND} us" if value else "0 s"


def parse_instant(text: str, location: Location | None = None) -> datetime:
    """Read a date, which means 00:00 UTC of that day, or a time of RFC 3339."""
    from situ.lang.types.scalars import Unfit, read_date, read_timestamp  # with all types, which no duration needs

    try:
        if len(text) == len("2026-11-01"):
            day: date = read_date(text)
            return datetime(day.year, day.month, day.day, tzinfo=UTC)
        return read_timestamp(text)
    except Unfit as error:
        _refuse(text, "instant", error.remedy, location)


def parse_moment(text: str, now: datetime, location: Location | None = None) -> datetime:
    """Read an instant as people name it to a command: ``1 h ago``, ``now``, ``begin`` (of all time), or as above."""
    words = text.strip()
    if words == "begin":
        return BEGIN
    if words == "now":
        return now
    if words.endswith("ago"):
        return now - parse_duration(words.removesuffix("ago").strip(), location)
    try:
        return parse_instant(words, location)
    except SituError:
        _refuse(text, "instant", "Write `1 h ago`, `begin`, `2026-11-01` or `2026-11-01T08:30:00Z`.", location)


def parse_size(text: str, location: Location | None = None) -> int:
    """Read a number of bytes: ``512 KiB`` (1024 each) or ``512 kB`` (1000 each)."""
    number, unit = _split(text, "size", location)
    factor = _SIZES.get(unit)
    if factor is None:
        _refuse(text, "size", "Write the number and one of B, KiB, MiB, GiB, TiB, or kB, MB, GB, TB.", location)
    size: Fraction = number * factor
    if size.denominator != 1 or not 0 <= size <= _LARGEST_SIZE:
        _refuse(text, "size", "A size is a whole number of bytes below 8 EiB.", location)
    return size.numerator


def _split(text: str, what: str, location: Location | None) -> tuple[Fraction, str]:
    match = _QUANTITY.fullmatch(text.strip()) if len(text) <= _LONGEST_TEXT else None
    if _COMMA.match(text.strip()):
        _refuse(text, what, "Numbers are written with a point: `0.5 s`.", location)
    if match is None:
        _refuse(text, what, "Write a number, a space and a unit: `5 s`, `90 km/h`, `1 MiB`.", location)
    number, space, unit = match.groups(default="")
    if unit and not space:
        _refuse(text, what, f"Put a space between number and unit: `{number} {unit}`.", location)
    return Fraction(number), unit.strip()


def _seconds(text: str, unit: str, location: Location | None) -> Fraction:
    """How many seconds one of the unit is. The usual ones need no catalogue of units."""
    if unit in _SECONDS:
        return _SECONDS[unit]
    try:
        found = Units().parse(unit)
    except UnknownUnit as error:
        raise SituError(UNKNOWN_UNIT(location, unit=unit, nearest=error.nearest)) from None
    if found.dimension != Units().parse("s").dimension:
        remedy = "`m` is metres; minutes are written `min`." if unit == "m" else f"The unit must be {_OF_TIME}."
        _refuse(text, "duration", remedy, location)
    if found.scale > _SECONDS["d"] * 14:
        _refuse(text, "duration", "Months and years differ in length: write a number of days.", location)
    return found.scale


def _refuse(text: str, what: str, remedy: str, location: Location | None) -> NoReturn:
    shown = text if len(text) <= _LONGEST_TEXT and text.isprintable() else repr(text[:40])
    raise SituError(BAD_QUANTITY(location, text=shown, what=what, remedy=remedy))
