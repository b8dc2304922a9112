"""Functions on time. An instant is UTC; what a clock on a wall shows needs a zone, always named as a constant."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from situ.lang.expr.functions.numbers import apart
from situ.lang.expr.overload import Function, Overload, SparkText, UnitRule, spark_text

FIRST = "-62135596800000000L"  # 0001-01-01T00:00:00Z in microseconds
LAST = "253402300799999999L"  # 9999-12-31T23:59:59.999999Z

_FIELDS = ("yyyy", "MM", "dd", "HH", "mm", "ss", "SSSSSS", "SSS")
_PIECE = re.compile(r"yyyy|MM|dd|HH|mm|ss|SSSSSS|SSS|'(?:[^']|'')*'|[^A-Za-z']")
_LONGEST_PATTERN = 100
_WIDTH = {"yyyy": 4, "SSS": 3, "SSSSSS": 6}


@lru_cache(maxsize=256)
def pattern_pieces(pattern: str) -> tuple[tuple[str, str], ...]:
    """``yyyy-MM-dd'T'HH:mm`` as (field, "") and ("", text) pairs; ValueError if it is no pattern."""
    pieces: list[tuple[str, str]] = []
    position = 0
    while position < len(pattern):
        found = _PIECE.match(pattern, position)
        if found is None:
            raise ValueError(f"`{pattern[position]}` is no field of a pattern")
        word = found.group()
        if word in _FIELDS:
            if any(field == word or {field, word} == {"SSS", "SSSSSS"} for field, _ in pieces):
                raise ValueError(f"`{word}` stands twice")
            pieces.append((word, ""))
        else:
            text = word[1:-1].replace("''", "'") if word.startswith("'") and word != "''" else word.replace("''", "'")
            pieces.append(("", text))
        position = found.end()
    return tuple(pieces)


@lru_cache(maxsize=256)
def _shape(pattern: str) -> re.Pattern[str]:
    text = ""
    for field, literal in pattern_pieces(pattern):
        name = "fraction" if field.startswith("SSS") else field
        text += f"(?P<{name}>[0-9]{{{_WIDTH.get(field, 2)}}})" if field else re.escape(literal)
    return re.compile(text)


def _parse(args: Sequence[str], constants: Sequence[Any]) -> str:
    pattern, zone = constants[0], constants[1] if len(constants) > 1 else "UTC"
    place, length, fields, tests = 1, 0, {}, []
    for field, literal in pattern_pieces(pattern):
        width = _WIDTH.get(field, 2) if field else len(literal)
        here = f"substring({args[0]}, {place}, {width})"
        if field:
            fields[field] = here
            tests.append(f"{here} RLIKE '^[0-9]{{{width}}}$'")
        else:
            tests.append(f"{here} = {spark_text(literal)}")
        place, length = place + width, length + width
    number = {field: f"try_cast({text} AS INT)" for field, text in fields.items()}
    fraction = fields.get("SSS") or fields.get("SSSSSS")
    seconds = f"concat({fields.get('ss', repr('00'))}, '.', {fraction or repr('0')})"
    parts = [
        number.get("yyyy", "1970"),
        *(number.get(f, "1") for f in ("MM", "dd")),
        *(number.get(f, "0") for f in ("HH", "mm")),
    ]
    made = f"try_make_timestamp({', '.join(parts)}, try_cast({seconds} AS DECIMAL(8,6)), {spark_text(zone)})"
    # Spark takes second 60 for the next minute; there is no such instant in our type.
    if "ss" in number:
        tests.append(f"{number['ss']} < 60")
    tests.append(f"unix_micros({made}) BETWEEN {FIRST} AND {LAST}")
    return f"CASE WHEN char_length({args[0]}) = {length} AND {' AND '.join(tests)} THEN {made} END"


def _parse_python(args: Sequence[str], constants: Sequence[Any], bind: Callable[[Any], str]) -> str:
    zone = constants[1] if len(constants) > 1 else "UTC"
    return f"_parse_time({args[0]}, {bind(_shape(constants[0]))}, {bind(ZoneInfo(zone))})"


def _there(instant: str, zone: str) -> str:
    """What the clocks of the zone show, as if it were UTC."""
    return instant if zone == "UTC" else f"from_utc_timestamp({instant}, {spark_text(zone)})"


def _in_range(instant: str, zone: str, text: str) -> str:
    if zone == "UTC":
        return text
    return f"CASE WHEN unix_micros({_there(instant, zone)}) BETWEEN {FIRST} AND {LAST} THEN {text} END"


def _format(args: Sequence[str], constants: Sequence[Any]) -> str:
    zone = constants[1] if len(constants) > 1 else "UTC"
    pattern = "".join(field or _java_quoted(text) for field, text in pattern_pieces(constants[0]))
    return _in_range(args[0], zone, f"date_format({_there(args[0], zone)}, {spark_text(pattern)})")


def _java_quoted(text: str) -> str:
    return "''" if text == "'" else "'" + text.replace("'", "''") + "'"


def _format_python(args: Sequence[str], constants: Sequence[Any], bind: Callable[[Any], str]) -> str:
    zone = constants[1] if len(constants) > 1 else "UTC"
    return f"_format_time({args[0]}, {pattern_pieces(constants[0])!r}, {bind(ZoneInfo(zone))})"


def _zone_problem(constants: Sequence[Any], place: int = 0) -> str:
    zone = constants[place] if len(constants) > place else "UTC"
    return "" if zone in _zones() else f"{zone!r} is no time zone; zones are written as 'Europe/Zurich' or 'UTC'"


@cache
def _zones() -> frozenset[str]:
    # Only region names: abbreviations such as EST mean different things to different engines.
    return frozenset(
        zone
        for zone in available_timezones()
        if "/" in zone and not zone.startswith(("Etc/", "posix", "right", "SystemV"))
    ) | {"UTC"}


def _pattern_problem(constants: Sequence[Any]) -> str:
    if len(constants[0]) > _LONGEST_PATTERN:
        return f"a pattern has at most {_LONGEST_PATTERN} characters"
    try:
        pieces = pattern_pieces(constants[0])
    except ValueError as error:
        return f"{error}; a pattern is made of {', '.join(_FIELDS)}, signs, and text in single quotes"
    if not any(field for field, _ in pieces):
        return "the pattern has no field in it"
    return _zone_problem(constants, 1)


def _part(name: str, doc: str, spark: str, python: str, example: tuple[str, str]) -> Function:
    def write(args: Sequence[str], constants: Sequence[Any]) -> str:
        zone = constants[0] if constants and constants[0] is not None else "UTC"
        return _in_range(args[0], zone, f"CAST({spark.format(_there(args[0], zone))} AS BIGINT)")

    def write_python(args: Sequence[str], constants: Sequence[Any], bind: Callable[[Any], str]) -> str:
        zone = constants[0] if constants and constants[0] is not None else "UTC"
        return python.format(args[0] if zone == "UTC" else f"_local({args[0]}, {bind(ZoneInfo(zone))})")

    overload = Overload(
        name=name, parameters=("timestamp", "string"), result="long", spark=write, python=write_python, optional=1, constants=(1,), fails=True, refuses=_zone_problem
    )  # fmt: skip
    return Function(name=name, group="time", doc=doc, overloads=(overload,), examples=(example,))


def _date_of(args: Sequence[str], constants: Sequence[Any]) -> str:
    zone = constants[0] if constants and constants[0] is not None else "UTC"
    return _in_range(args[0], zone, f"CAST({_there(args[0], zone)} AS DATE)")


def _date_of_python(args: Sequence[str], constants: Sequence[Any], bind: Callable[[Any], str]) -> str:
    zone = constants[0] if constants and constants[0] is not None else "UTC"
    return f"({args[0] if zone == 'UTC' else f'_local({args[0]}, {bind(ZoneInfo(zone))})'}).date()"


def _instant(micros: str) -> str:
    return f"CASE WHEN {micros} BETWEEN {FIRST} AND {LAST} THEN timestamp_micros({micros}) END"


def _later(instant: int, duration: int) -> SparkText:
    def write(args: Sequence[str], constants: Sequence[Any]) -> str:
        return _instant(f"try_add(unix_micros({args[instant]}), {apart(args[duration])})")

    return write


def _longer(args: Sequence[str], constants: Sequence[Any]) -> str:
    return f"try_add({apart(args[0])}, {apart(args[1])})"


_NOON = "TIMESTAMP '2026-11-01T11:30:00Z'"

TIME: tuple[Function, ...] = (
    Function(
        name="from_epoch_ms",
        group="time",
        doc="The instant so many milliseconds after 1970-01-01T00:00:00Z. Fails outside the years 1 to 9999.",
        overloads=(Overload(name="from_epoch_ms", parameters=("long",), result="timestamp", spark=_instant("try_multiply({0}, 1000L)"), python="_from_epoch_ms({0})", fails=True),),
        examples=(("from_epoch_ms(0) = TIMESTAMP '1970-01-01T00:00:00Z'", "true"),),
    ),
    Function(
        name="epoch_ms",
        group="time",
        doc="Whole milliseconds since 1970-01-01T00:00:00Z.",
        overloads=(Overload(name="epoch_ms", parameters=("timestamp",), result="long", spark="unix_millis({0})", python="_epoch_ms({0})"),),
        examples=(("epoch_ms(TIMESTAMP '1970-01-01T00:00:01Z')", "1000"),),
    ),
    Function(
        name="parse_time",
        group="time",
        doc="Reads an instant from a text by a pattern of `yyyy MM dd HH mm ss SSS SSSSSS`, signs and quoted text, in a time zone (UTC if left out). In the hour a clock skips or repeats, the offset before the change counts. Fails if the text does not have that form.",
        overloads=(Overload(name="parse_time", parameters=("string", "string", "string"), result="timestamp", spark=_parse, python=_parse_python, optional=1, constants=(1, 2), fails=True, refuses=_pattern_problem),),
        examples=(("parse_time('01.11.2026 12:30', 'dd.MM.yyyy HH:mm', 'Europe/Zurich') = " + _NOON, "true"),),
    ),
    Function(
        name="format_time",
        group="time",
        doc="Writes an instant by such a pattern, as clocks in the zone show it.",
        overloads=(Overload(name="format_time", parameters=("timestamp", "string", "string"), result="string", spark=_format, python=_format_python, optional=1, constants=(1, 2), fails=True, refuses=_pattern_problem),),
        examples=((f"format_time({_NOON}, 'HH:mm', 'Europe/Zurich')", "'12:30'"),),
    ),
    _part("year", "The year in a time zone (UTC if left out).", "year({})", "({}).year", (f"year({_NOON})", "2026")),
    _part("month", "The month, 1 to 12.", "month({})", "({}).month", (f"month({_NOON})", "11")),
    _part("day", "The day of the month.", "day({})", "({}).day", (f"day({_NOON}, 'Asia/Tokyo')", "1")),
    _part("hour", "The hour, 0 to 23.", "hour({})", "({}).hour", (f"hour({_NOON}, 'Europe/Zurich')", "12")),
    _part("minute", "The minute, 0 to 59.", "minute({})", "({}).minute", (f"minute({_NOON})", "30")),
    _part("second", "The second, 0 to 59.", "second({})", "({}).second", (f"second({_NOON})", "0")),
    _part("weekday", "The day of the week, Monday 1 to Sunday 7.", "(weekday({}) + 1)", "({}).isoweekday()", (f"weekday({_NOON})", "7")),
    Function(
        name="date_of",
        group="time",
        doc="The date in a time zone (UTC if left out).",
        overloads=(Overload(name="date_of", parameters=("timestamp", "string"), result="date", spark=_date_of, python=_date_of_python, optional=1, constants=(1,), fails=True, refuses=_zone_problem),),
        examples=((f"date_of({_NOON}) = DATE '2026-11-01'", "true"),),
    ),
    Function(
        name="seconds",
        group="time",
        doc="A duration as a number of seconds.",
        overloads=(Overload(name="seconds", parameters=("duration",), result="double", spark="(CAST({0} AS DOUBLE) / 1000000D)", python="_seconds({0})"),),
        examples=(("seconds(DURATION 'PT1M30S')", "90.0"),),
    ),
)  # fmt: skip

TIME_ARITHMETIC: dict[tuple[str, str, str], Overload] = {
    ("+", "timestamp", "duration"): Overload(name="+", parameters=("timestamp", "duration"), result="timestamp", spark=_later(0, 1), python="({0} + {1})", fails=True),
    ("+", "duration", "timestamp"): Overload(name="+", parameters=("duration", "timestamp"), result="timestamp", spark=_later(1, 0), python="({0} + {1})", fails=True),
    ("-", "timestamp", "duration"): Overload(name="-", parameters=("timestamp", "duration"), result="timestamp", spark=_instant("try_subtract(unix_micros({0}), {1})"), python="({0} - {1})", fails=True),
    ("-", "timestamp", "timestamp"): Overload(name="-", parameters=("timestamp", "timestamp"), result="duration", spark="(unix_micros({0}) - unix_micros({1}))", python="({0} - {1})"),
    ("+", "duration", "duration"): Overload(name="+", parameters=("duration", "duration"), result="duration", spark=_longer, python="_duration({0} + {1})", fails=True),
    ("-", "duration", "duration"): Overload(name="-", parameters=("duration", "duration"), result="duration", spark="try_subtract({0}, {1})", python="_duration({0} - {1})", fails=True),
    ("*", "duration", "double"): Overload(name="*", parameters=("duration", "double"), result="duration", spark="CASE WHEN CAST({0} AS DOUBLE) * {1} >= -9223372036854775808D AND CAST({0} AS DOUBLE) * {1} < 9223372036854775808D THEN try_cast(CAST({0} AS DOUBLE) * {1} AS BIGINT) END", python="_scale_duration({0}, {1})", fails=True, unit=UnitRule.FREE),
    ("/", "duration", "duration"): Overload(name="/", parameters=("duration", "duration"), result="double", spark="try_divide(CAST({0} AS DOUBLE), CAST({1} AS DOUBLE))", python="_duration_ratio({0}, {1})", fails=True),
}  # fmt: skip
"""Sums, differences and products of which one side is a time; durations are microseconds in Spark."""
