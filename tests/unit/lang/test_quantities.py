"""Quantities, durations, instants and sizes as settings write them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from situ.lang.problems import Location, SituError
from situ.lang.quantities import Quantity, parse_duration, parse_instant, parse_moment, parse_quantity, parse_size
from situ.lang.units import NO_UNIT, Units


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 s", timedelta(seconds=5)),
        ("200 ms", timedelta(milliseconds=200)),
        ("0.5 s", timedelta(milliseconds=500)),
        ("1.5e3 us", timedelta(milliseconds=1.5)),
        ("10 min", timedelta(minutes=10)),
        ("24 h", timedelta(days=1)),
        ("7 d", timedelta(days=7)),
        ("1 week", timedelta(days=7)),
        ("2 fortnights", timedelta(days=28)),
        ("0 s", timedelta(0)),
        (" 3  seconds ", timedelta(seconds=3)),
        ("3\N{NO-BREAK SPACE}s", timedelta(seconds=3)),
        ("36525 d", timedelta(days=36525)),
    ],
)
def test_durations(text: str, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("5", "P121", "unit is missing"),
        ("5s", "P121", "`5 s`"),
        ("0,5 s", "P121", "with a point"),
        ("five s", "P121", "number, a space and a unit"),
        ("", "P121", "number, a space and a unit"),
        ("-5 s", "P121", "0 s to 36525 d"),
        ("1e999 s", "P121", "0 s to 36525 d"),
        ("36526 d", "P121", "0 s to 36525 d"),
        ("1 ns", "P121", "whole microseconds"),
        ("1 month", "P121", "Months and years"),
        ("2 years", "P121", "Months and years"),
        ("5 m", "P121", "minutes are written `min`"),
        ("5 kg", "P121", "one of time"),
        ("5 sec onds", "INT105", "Physical units"),
        ("5 minuts", "INT105", "`min`"),
        ("1" * 31 + " s", "P121", "number, a space"),
        ("5 " + "s" * 1000, "P121", "number, a space"),
        ("\N{ARABIC-INDIC DIGIT FIVE} s", "P121", "number, a space"),
    ],
)
def test_what_is_no_duration(text: str, code: str, hint: str) -> None:
    place = Location(file="situ.yaml", line=3)
    with pytest.raises(SituError) as caught:
        parse_duration(text, place)
    [problem] = caught.value.problems
    assert problem.code.code == code
    assert problem.location == place
    assert hint in problem.hint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 B", 0),
        ("512 KiB", 512 * 1024),
        ("1 MiB", 1024**2),
        ("1.5 GiB", 3 * 512 * 1024**2),
        ("10 GB", 10**10),
        ("3 kB", 3000),
    ],
)
def test_sizes(text: str, expected: int) -> None:
    assert parse_size(text) == expected


@pytest.mark.parametrize("text", ["512", "512 KB", "512KiB", "0.3 B", "-1 B", "9 EiB", "1e20 B", "many", "1,5 MiB"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(SituError, match="P121"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T08:30:00Z", datetime(2026, 11, 1, 8, 30, tzinfo=UTC)),
        ("2026-11-01T08:30:00+02:00", datetime(2026, 11, 1, 6, 30, tzinfo=UTC)),
    ],
)
def test_instants(text: str, expected: datetime) -> None:
    assert parse_instant(text) == expected


@pytest.mark.parametrize("text", ["2026-02-30", "2026-11-01T08:30:00", "tomorrow", "1793520000", "", "1 h ago"])
def test_what_is_no_instant(text: str) -> None:
    with pytest.raises(SituError, match="P121"):
        parse_instant(text)


NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("begin", datetime(1970, 1, 1, tzinfo=UTC)),
        ("now", NOW),
        ("1 h ago", NOW - timedelta(hours=1)),
        (" 1 hour ago ", NOW - timedelta(hours=1)),
        ("0 s ago", NOW),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T08:30:00Z", datetime(2026, 11, 1, 8, 30, tzinfo=UTC)),
    ],
)
def test_moments(text: str, expected: datetime) -> None:
    assert parse_moment(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "ago", "1 h", "1 month ago", "-1 h ago", "yesterday", "1 ago", "2026-02-30"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(SituError, match="P121"):
        parse_moment(text, NOW)


def test_quantities() -> None:
    units = Units({"EUR": "currency"})
    assert parse_quantity("90 km/h") == Quantity(Fraction(90), units.parse("km/h"))
    assert parse_quantity("0.1 EUR", units) == Quantity(Fraction(1, 10), units.parse("EUR"))
    assert parse_quantity("-20.5 °C") == Quantity(Fraction(-41, 2), units.parse("degC"))
    assert parse_quantity("50 %") == Quantity(Fraction(50), units.parse("%"))
    assert parse_quantity("5") == Quantity(Fraction(5), NO_UNIT)
    with pytest.raises(SituError, match="INT105"):
        parse_quantity("5 EUR")


@pytest.mark.parametrize(
    "parse", [parse_duration, parse_instant, partial(parse_moment, now=NOW), parse_quantity, parse_size]
)
@pytest.mark.parametrize(
    "text", ["\x00", "5 \x1b[2J", "1" * 100_000, "5 " + "m*" * 50_000 + "m", "((((", "1 1 1", "5 \n s"]
)
def test_hostile_text_gets_a_problem(parse: Callable[[str], Any], text: str) -> None:
    with pytest.raises(SituError) as caught:
        parse(text)
    assert len(str(caught.value)) < 500
