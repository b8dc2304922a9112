"""Instants as microseconds since 1970 and as text, fast.

Engines hold times as numbers. Of the texts only the usual form is read here, in UTC with at most six digits behind the
point; what is written otherwise is left to :func:`situ.lang.types.scalars.read_timestamp`, which knows all forms.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
SECOND = 1_000_000
_SHORTEST = len("2026-11-01T08:30:00Z")
_POINT = _SHORTEST - 1
_MOST_DIGITS = 6
_LONGEST = len("2026-11-01T08:30:00.000000Z")
_NO_FRACTION = "0" * _MOST_DIGITS
_WORTH = tuple(10 ** (_MOST_DIGITS - digits) for digits in range(_MOST_DIGITS + 1))


def microseconds(instant: datetime) -> int:
    return (instant - _EPOCH) // _MICROSECOND


def instant_at(time: int) -> datetime:
    """The instant so many microseconds after 1970."""
    return _EPOCH + timedelta(microseconds=time)


def print_instant(time: int) -> str:
    """The same text as :func:`situ.lang.types.scalars.print_timestamp` gives."""
    seconds, fraction = divmod(time, SECOND)
    return f"{_print_second(seconds)}.{fraction:06d}Z" if fraction else f"{_print_second(seconds)}Z"


def read_instant(text: str) -> int | None:
    """The instant, if it is written in the usual form."""
    second = _read_second(text[:_POINT])
    if len(text) == _LONGEST and second is not None and text[_POINT] == "." and text[-1] == "Z":
        digits = text[_POINT + 1 : -1]
        if digits.isdecimal() and digits.isascii():
            return second + int(digits)
    tail = text[_POINT:]
    if tail == "Z" or second is None:
        return second
    digits = tail[1:-1]
    if not (tail[0:1] == "." and tail[-1] == "Z" and digits.isdecimal() and digits.isascii()):
        return None
    return second + int(digits) * _WORTH[len(digits)] if len(digits) <= _MOST_DIGITS else None


def canonical_instant(text: str) -> str | None:
    """The canonical text of an instant, if it is written in the usual form."""
    if len(text) == _LONGEST and text[10] == "T" and text[_POINT] == "." and text[-1] == "Z":
        digits = text[_POINT + 1 : -1]
        if digits.isdecimal() and digits.isascii() and digits != _NO_FRACTION:
            return None if _read_second(text[:_POINT]) is None else text
    time = read_instant(text)
    if time is None:
        return None
    return text if len(text) == _SHORTEST and text[10] == "T" else print_instant(time)


# Events come in the order of time, more or less: the same second is read and printed many times over.


@lru_cache(maxsize=8192)
def _print_second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()


@lru_cache(maxsize=8192)
def _read_second(text: str) -> int | None:
    from situ.lang.types.scalars import Unfit, read_timestamp

    try:
        return microseconds(read_timestamp(text + "Z"))
    except Unfit:
        return None
