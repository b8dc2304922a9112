"""Literals: from the text of a number, an instant, a date or a duration to its value."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re

from situ.expr.runtime import LONG_MAX, LONG_MIN
from situ.expr.tree import Literal, Span
from situ.types.model import DATE, DOUBLE, DURATION, INT, LONG, MOST_DIGITS, TIMESTAMP, Decimal
from situ.units import NO_UNIT, Unit

_INSTANT = re.compile(r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(\.\d{1,6})?([Zz]|[+-]\d{2}:\d{2})", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DURATION = re.compile(
    r"(?P<sign>-)?P(?:(?P<days>\d{1,9})D)?(?:T(?:(?P<hours>\d{1,12})H)?(?:(?P<minutes>\d{1,12})M)?(?:(?P<seconds>\d{1,12}(?:\.\d{1,6})?)S)?)?",
    re.ASCII,
)


def number(text: str, span: Span, unit: Unit = NO_UNIT) -> Literal | None:
    """Whole numbers are int, long or decimal, as they need; with a point or exponent they are double."""
    if not text.isascii():  # digits of other scripts look like other digits
        return None
    if text.isdecimal():
        digits = text.lstrip("0")
        if len(digits) > MOST_DIGITS:
            return None
        value = int(digits or "0")
        if value <= LONG_MAX:
            return Literal(value, INT if value < 2**31 else LONG, unit, span=span)
        return Literal(decimal.Decimal(value), Decimal(len(str(value)), 0), unit, span=span)
    try:
        double = float(text)
    except ValueError:
        return None
    return Literal(double, DOUBLE, unit, span=span) if math.isfinite(double) else None


def negative(literal: Literal, span: Span) -> Literal:
    """``-5`` is a literal, so that the smallest long can be written."""
    value = -literal.value
    if isinstance(value, decimal.Decimal) and LONG_MIN <= value <= LONG_MAX and value == int(value):
        return Literal(int(value), LONG, literal.unit, span=span)
    type = INT if literal.type == LONG and value >= -(2**31) else literal.type
    return Literal(value, type, literal.unit, span=span)


def instant(text: str, span: Span) -> Literal | None:
    """RFC 3339 with an offset: an instant without one would mean something else in every zone."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        return None
    day, time, fraction, offset = found.groups()
    try:
        local = dt.datetime.fromisoformat(
            f"{day}T{time}{(fraction or '.0').ljust(7, '0')}{offset.upper().replace('Z', '+00:00')}"
        )
        return Literal(local.astimezone(dt.UTC), TIMESTAMP, span=span)
    except (ValueError, OverflowError):
        return None


def date(text: str, span: Span) -> Literal | None:
    try:
        return Literal(dt.date.fromisoformat(text), DATE, span=span) if _DATE.fullmatch(text) else None
    except ValueError:
        return None


def duration(text: str, span: Span) -> Literal | None:
    """ISO 8601 without months and years, whose length is not fixed."""
    found = _DURATION.fullmatch(text)
    if found is None or text.endswith(("P", "T")):
        return None
    parts = {name: decimal.Decimal(value) for name, value in found.groupdict().items() if value and name != "sign"}
    weights = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}
    micros = int(sum((value * weights[name] for name, value in parts.items()), decimal.Decimal(0)) * 1_000_000)
    if micros > LONG_MAX:
        return None
    return Literal(dt.timedelta(microseconds=-micros if found["sign"] else micros), DURATION, span=span)


def duration_text(value: dt.timedelta) -> str:
    """The shortest ISO 8601 form that :func:`duration` reads back."""
    micros = value // dt.timedelta(microseconds=1)
    days, rest = divmod(abs(micros), 86_400_000_000)
    hours, rest = divmod(rest, 3_600_000_000)
    minutes, rest = divmod(rest, 60_000_000)
    seconds, fraction = divmod(rest, 1_000_000)
    shown = f"{seconds}.{fraction:06d}".rstrip("0") if fraction else str(seconds)
    clock = "".join(
        (f"{hours}H" if hours else "", f"{minutes}M" if minutes else "", f"{shown}S" if seconds or fraction else "")
    )
    text = f"P{f'{days}D' if days else ''}{f'T{clock}' if clock else ''}"
    return ("-" if micros < 0 else "") + (text if text != "P" else "PT0S")
