"""What generated Python calls for instants and durations.

Like all that generated Python calls, each equals its Spark text on every input (:mod:`situ.expr.runtime`).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from situ.expr.runtime import LONG_MAX, LONG_MIN, finite, truncate

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
