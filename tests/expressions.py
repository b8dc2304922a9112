"""Generates expressions and rows: any construct of the language, over attributes of every type, with values that hurt.

Deterministic by seed. Text comes out, not trees, so the parser and the checker are tested on the way.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from collections.abc import Callable
from typing import Any

from situ.lang.expr.scope import NameScope, Variable
from situ.lang.types.model import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    DURATION,
    INT,
    LONG,
    POINT,
    STRING,
    TIMESTAMP,
    Attribute,
    Decimal,
    ListOf,
    Struct,
    Type,
)
from situ.lang.units import Units

UNITS = Units({"EUR": "currency"})
M, CELSIUS = UNITS.parse("m"), UNITS.parse("degC")
LINE = Struct(
    "Line",
    (
        Attribute(name="qty", type=LONG),
        Attribute(name="sku", type=STRING),
        Attribute(name="price", type=DOUBLE, optional=True),
        Attribute(name="tags", type=ListOf(STRING)),
    ),
)
ROW = Struct(
    "Row",
    (
        Attribute(name="b", type=BOOLEAN),
        Attribute(name="b_", type=BOOLEAN, optional=True),
        Attribute(name="i", type=INT),
        Attribute(name="i_", type=INT, optional=True),
        Attribute(name="l", type=LONG),
        Attribute(name="l_", type=LONG, optional=True),
        Attribute(name="d", type=DOUBLE),
        Attribute(name="d_", type=DOUBLE, optional=True),
        Attribute(name="e_", type=DOUBLE, optional=True),
        Attribute(name="m", type=DOUBLE, unit=M),
        Attribute(name="t", type=DOUBLE, unit=CELSIUS),
        Attribute(name="dec", type=Decimal(12, 2)),
        Attribute(name="dec_", type=Decimal(18, 6), optional=True),
        Attribute(name="s", type=STRING),
        Attribute(name="s_", type=STRING, optional=True),
        Attribute(name="y_", type=BYTES, optional=True),
        Attribute(name="date", type=DATE),
        Attribute(name="date_", type=DATE, optional=True),
        Attribute(name="ts", type=TIMESTAMP),
        Attribute(name="ts_", type=TIMESTAMP, optional=True),
        Attribute(name="dur", type=DURATION),
        Attribute(name="dur_", type=DURATION, optional=True),
        Attribute(name="at", type=POINT, unit=M),
        Attribute(name="at_", type=POINT, unit=M, optional=True),
        Attribute(name="lines", type=ListOf(LINE)),
        Attribute(name="lines_", type=ListOf(LINE), optional=True),
        Attribute(name="ns", type=ListOf(DOUBLE), optional=True),
    ),
)


def row_scope(*, trusted: bool = True) -> NameScope:
    return NameScope(variables={"data": Variable(type=ROW, trusted=trusted)}, bare="data", units=UNITS)


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────

DOUBLES = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.5,
    -2.5,
    1e-3,
    100.0,
    109.0,
    1e15,
    4503599627370496.5,
    9.3e18,
    -9.3e18,
    1e100,
    1.7e308,
    -1.7e308,
    5e-324,
    0.1,
    1 / 3,
)
STRANGE = (math.nan, math.inf, -math.inf)
INTS = (0, 1, -1, 2, 3, 7, 100, 2**31 - 1, -(2**31))
LONGS = (*INTS, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 10**12)
STRINGS = (
    "",
    "a",
    "ab",
    "abc",
    "A",
    "Käse",
    "straße",
    "ΑΣ",
    "a=1;b=2",
    "street=Main;number=3",
    "1",
    "-2.5",
    "1e3",
    "3,5",
    "x" * 40,
    "  pad ",
    "%",
    "a_b",
    "it's",
    "\\",
    "😀b",
    "İ",
    "2026-11-01 12:30",
    "29.02.2023",
    "a/b/c",
    "nan",
    "${x}",
    "\n",
)
INSTANTS = (
    "0001-01-01T00:00:00+00:00",
    "1900-06-15T12:00:00.123456+00:00",
    "1970-01-01T00:00:00+00:00",
    "2026-03-29T00:59:59.999999+00:00",
    "2026-03-29T01:30:00+00:00",
    "2026-10-25T00:30:00+00:00",
    "2026-11-01T12:30:00.5+00:00",
    "2038-01-19T03:14:07+00:00",
    "9999-12-31T23:59:59.999999+00:00",
)
DURATIONS = (0, 1, -1, 1_000_000, 300_000_000, 86_400_000_000, 10**15, 2**63 - 1, -(2**62))


def make_row(random: random.Random, *, strange: bool = False) -> dict[str, Any]:
    """A row that fits :data:`ROW`; with ``strange``, doubles may be NaN or infinite."""
    row: dict[str, Any] = {}
    for attribute in ROW.attributes:
        if attribute.optional and random.random() < 0.25:
            continue
        row[attribute.name] = make_value(attribute.type, random, strange=strange)
    return row


def make_value(type: Type, random: random.Random, *, strange: bool = False, depth: int = 0) -> Any:
    pick = random.choice
    match type:
        case Decimal(precision=precision, scale=scale):
            digits = random.choice(
                (0, 1, 5, 12345, 10 ** (precision - 1), 10**precision - 1, random.randrange(10**precision))
            )
            return decimal.Decimal(digits * pick((1, -1))).scaleb(-scale, context=decimal.Context(prec=60))
        case ListOf(element=element):
            items = [make_value(element, random, strange=strange, depth=depth + 1) for _ in range(random.randrange(4))]
            return [None if random.random() < 0.1 else item for item in items]
        case Struct(attributes=attributes):
            return {
                a.name: make_value(a.type, random, strange=strange, depth=depth + 1)
                for a in attributes
                if not a.optional or random.random() < 0.7
            }
    makers: dict[Type, Callable[[], Any]] = {
        BOOLEAN: lambda: random.random() < 0.5,
        INT: lambda: pick(INTS) if random.random() < 0.6 else random.randrange(-1000, 1000),
        LONG: lambda: pick(LONGS) if random.random() < 0.6 else random.randrange(-(10**6), 10**6),
        DOUBLE: lambda: (
            pick(STRANGE) if strange and random.random() < 0.2
            else pick(DOUBLES) if random.random() < 0.5
            else round(random.uniform(-50, 150), random.randrange(6)) if random.random() < 0.8
            else random.uniform(-1, 1) * 10.0 ** random.randrange(-300, 300)
        ),
        STRING: lambda: pick(STRINGS),
        BYTES: lambda: pick((b"", b"\x00", b"abc", b"\xff\xfe")),
        DATE: lambda: pick((dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(2026, 11, 1), dt.date(9999, 12, 31))),
        TIMESTAMP: lambda: (
            dt.datetime.fromisoformat(pick(INSTANTS)).astimezone(dt.UTC) if random.random() < 0.6
            else dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=random.randrange(4 * 10**15))
        ),
        DURATION: lambda: dt.timedelta(microseconds=pick(DURATIONS) if random.random() < 0.6 else random.randrange(10**10)),
    }  # fmt: skip
    return makers[type]()


# ── expressions ───────────────────────────────────────────────────────────────────────────────────

_ZONES = ("UTC", "Europe/Zurich", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia")


class Generator:
    """Writes expressions of a wanted type, at most so deep. ``inexact`` functions are left out unless asked for."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.elements: list[str] = []

    def any(self, depth: int = 4) -> str:
        kinds = ("boolean",) * 6 + (
            "long",
            "double",
            "double",
            "decimal",
            "string",
            "timestamp",
            "duration",
            "date",
            "struct",
            "list",
        )
        return self.of(self.random.choice(kinds), depth)

    def of(self, kind: str, depth: int) -> str:
        return str(getattr(self, f"_{kind}")(depth))

    def _pick(self, *options: Callable[[], str] | str) -> str:
        chosen = self.random.choice(options)
        return chosen if isinstance(chosen, str) else chosen()

    def _maybe(self, name: str) -> str:
        return name + ("_" if self.random.random() < 0.5 else "")

    def _boolean(self, depth: int) -> str:
        if depth <= 0:
            return self._pick(
                "b",
                "b_",
                "TRUE",
                "FALSE",
                "NULL = 1",
                lambda: f"{self._maybe('l')} > {self.random.choice(LONGS)}",
                lambda: f"d {self._op()} {self._double_literal()}",
            )
        d = depth - 1
        return self._pick(
            lambda: f"{self._double(d)} {self._op()} {self._double(d)}",
            lambda: f"{self._linear()} {self._op()} {self._double_literal()}",
            lambda: f"{self._double_literal()} {self._op()} {self._linear()}",
            lambda: f"{self._long(d)} {self._op()} {self._long(d)}",
            lambda: f"{self._maybe('i')} {self._op()} {self._double_literal()}",
            lambda: f"{self._decimal(d)} {self._op()} {self._decimal(d)}",
            lambda: f"{self._string(d)} {self._op()} {self._string(d)}",
            lambda: f"{self._timestamp(d)} {self._op()} {self._timestamp(d)}",
            lambda: f"{self._duration(d)} {self._op()} {self._duration(d)}",
            lambda: f"{self._date(d)} {self._op()} {self._date(d)}",
            lambda: f"({self._boolean(d)}) {self.random.choice(('AND', 'OR'))} ({self._boolean(d)})",
            lambda: (
                f"({self._boolean(d)}) {self.random.choice(('AND', 'OR'))} ({self._boolean(d)}) {self.random.choice(('AND', 'OR'))} ({self._boolean(d)})"
            ),
            lambda: f"NOT ({self._boolean(d)})",
            lambda: f"({self._of_any(d)}) IS {self.random.choice(('', 'NOT '))}NULL",
            lambda: f"({self._boolean(d)}) IS {self.random.choice(('TRUE', 'FALSE', 'NOT TRUE'))}",
            lambda: (
                f"{self._long(d)} {self._not()}IN ({', '.join(str(self.random.choice(LONGS)) for _ in range(self.random.randrange(1, 6)))})"
            ),
            lambda: (
                f"{self._double(d)} {self._not()}IN ({', '.join(self._double_literal() for _ in range(self.random.randrange(1, 14)))})"
            ),
            lambda: f"{self._string(d)} {self._not()}IN ('a', 'Käse', NULL)",
            lambda: f"{self._linear()} {self._not()}BETWEEN {self._double_literal()} AND {self._double_literal()}",
            lambda: (
                f"{self._string(d)} {self._not()}LIKE '{self.random.choice(('a%', '%b', '%a%', 'a_b', '_%', 'abc', '%', '', 's%e%n', '%=%;%', chr(92) + '%', '%s_r%'))}'"
            ),
            lambda: f"CASE WHEN {self._boolean(d)} THEN {self._boolean(d)} ELSE {self._boolean(d)} END",
            lambda: (
                f"CASE WHEN {self._boolean(d)} THEN 'x' WHEN {self._boolean(d)} THEN 'y' ELSE 'z' END = '{self.random.choice('xyzw')}'"
            ),
            lambda: self._over_lines(d),
            lambda: f"starts_with({self._string(d)}, {self._string(0)})",
            lambda: f"contains({self._string(d)}, {self._string(0)})",
            lambda: (
                f"m {self._op()} {self.random.choice((5, 109, 2.5))} {self.random.choice(('m', 'ft', 'cm', '[km]'))}"
            ),
            lambda: f"t {self._op()} {self.random.choice((20, 68.5))} {self.random.choice(('degC', '[degF]', 'K'))}",
            lambda: (
                f"inside({self._maybe('at')}, struct(0 AS x1, -5 AS y1, 100 AS x2, {self.random.choice((5, 1e100))} AS y2))"
            ),
            lambda: f"within({self._maybe('at')}, at, {self.random.choice((1, 5, 100))} m)",
            lambda: f"distance(d, {self._double(d)}, 1, 2) {self._op()} {self._double_literal()}",
            lambda: f"y_ {self.random.choice(('=', '<>'))} y_",
        )

    def _over_lines(self, d: int) -> str:
        kind = self.random.choice(("exists", "forall"))
        body = self._pick(
            lambda: f"x.qty {self._op()} {self.random.choice(LONGS)}",
            lambda: f"x.qty * 3 {self._op()} {self._long(0)}",
            lambda: f"1 / x.price {self._op()} {self._double_literal()}",
            lambda: f"x.sku LIKE 'a%' AND x.price > {self._double_literal()}",
            lambda: f"x.price {self._op()} {self._double(min(d, 1))} OR x.qty IS NULL",
            "exists(x.tags, y -> y = x.sku)",
            lambda: f"size(filter(x.tags, y -> length(y) > 1)) {self._op()} 1",
        )
        return f"{kind}({self._maybe('lines')}, x -> {body})"

    def _op(self) -> str:
        return self.random.choice(("=", "<>", "<", "<=", ">", ">="))

    def _not(self) -> str:
        return "NOT " if self.random.random() < 0.3 else ""

    def _double_literal(self) -> str:
        value = (
            self.random.choice(DOUBLES)
            if self.random.random() < 0.6
            else round(self.random.uniform(-50, 150), self.random.randrange(6))
        )
        return repr(value)

    def _linear(self) -> str:
        """A monotone function of one attribute: what thresholds are solved for."""
        text = self._pick("d", "d_", "e_", "i", "i_", "l_")
        for _ in range(self.random.randrange(4)):
            constant = self.random.choice(
                ("1.09", "-2", "0.5", "1e-3", "100", "3", "1e200", "-0.3048", "0.9144", "1e308")
            )
            text = self._pick(
                f"({text} * {constant})",
                f"({text} + {constant})",
                f"({text} - {constant})",
                f"({constant} - {text})",
                f"({text} / {constant})",
                f"({constant} * {text})",
                f"(-{text})",
            )
        return text

    def _double(self, depth: int) -> str:
        if depth <= 0:
            return self._pick("d", "d_", "e_", self._double_literal, "to_double(m / 1 m)")
        d = depth - 1
        return self._pick(
            lambda: self._linear(),
            lambda: f"({self._double(d)} {self.random.choice('+-*')} {self._double(d)})",
            lambda: f"({self._double(d)} / {self._double(d)})",
            lambda: f"({self._long(d)} / {self._long(d)})",
            lambda: f"({self._double(d)} % {self._double(d)})",
            lambda: f"(-{self._double(d)})",
            lambda: f"abs({self._double(d)})",
            lambda: f"sqrt({self._double(d)})",
            lambda: f"round({self._double(d)}, {self.random.randrange(4)})",
            lambda: f"radians({self._double(d)})",
            lambda: f"degrees({self._double(d)})",
            lambda: f"to_double({self._string(d)})",
            lambda: f"to_double({self._decimal(d)})",
            lambda: f"coalesce({self._double(d)}, {self._double(d)})",
            lambda: f"least({self._double(d)}, {self._double(d)})",
            lambda: f"greatest({self._double(d)}, {self._double(d)}, {self._double_literal()})",
            lambda: f"CASE WHEN {self._boolean(d)} THEN {self._double(d)} ELSE {self._double(d)} END",
            lambda: f"if({self._boolean(d)}, {self._double(d)}, NULL)",
            lambda: f"struct({self._double(d)} AS a, {self._double(d)} AS b).{self.random.choice('ab')}",
            lambda: f"element_at(ns, {self.random.choice((1, -1, 2, 0))})",
            lambda: f"distance(d, {self._double(d)}, 1, {self._double(d)})",
            lambda: f"seconds({self._duration(d)})",
            lambda: f"({self._duration(d)} / {self._duration(d)})",
            lambda: "element_at(lines_, 1).price",
        )

    def _long(self, depth: int) -> str:
        if depth <= 0:
            return self._pick("i", "i_", "l", "l_", lambda: str(self.random.choice(LONGS)))
        d = depth - 1
        return self._pick(
            lambda: f"({self._long(d)} {self.random.choice('+-*')} {self._long(d)})",
            lambda: f"({self._long(d)} % {self._long(d)})",
            lambda: f"(-{self._long(d)})",
            lambda: f"abs({self._long(d)})",
            lambda: f"floor({self._double(d)})",
            lambda: f"ceil({self._double(d)})",
            lambda: (
                f"to_long({self._pick(lambda: self._double(d), lambda: self._string(d), lambda: self._decimal(d))})"
            ),
            lambda: f"length({self._string(d)})",
            lambda: f"size({self._list(d)})",
            lambda: f"coalesce({self._long(d)}, 0)",
            lambda: f"epoch_ms({self._timestamp(d)})",
            lambda: (
                f"{self.random.choice(('year', 'month', 'day', 'hour', 'minute', 'second', 'weekday'))}({self._timestamp(d)}, '{self.random.choice(_ZONES)}')"
            ),
            lambda: (
                f"CASE WHEN {self._boolean(d)} THEN {self._long(d)} WHEN {self._boolean(d)} THEN {self._long(d)} END"
            ),
            "element_at(lines, -1).qty",
        )

    def _decimal(self, depth: int) -> str:
        if depth <= 0:
            return self._pick("dec", "dec_", "12.50 * dec")
        d = depth - 1
        return self._pick(
            lambda: f"({self._decimal(0)} {self.random.choice('+-*/%')} {self._decimal(0)})",
            lambda: f"({self._decimal(d)} {self.random.choice('+-*')} {self.random.choice((2, 0.5, 1.25))})",
            lambda: f"round({self._decimal(d)}, {self.random.randrange(3)})",
            lambda: (
                f"to_decimal({self._pick(lambda: self._double(d), lambda: self._long(d), lambda: self._string(d), lambda: self._decimal(d))}, {self.random.choice((10, 20, 38))}, {self.random.choice((0, 2, 8))})"
            ),
        )

    def _string(self, depth: int) -> str:
        if depth <= 0:
            return self._pick("s", "s_", lambda: "'" + self.random.choice(STRINGS).replace("'", "''") + "'")
        d = depth - 1
        return self._pick(
            lambda: f"({self._string(d)} || {self._string(d)})",
            lambda: f"{self.random.choice(('upper', 'lower', 'trim'))}({self._string(d)})",
            lambda: (
                f"substring({self._string(d)}, {self._pick('1', '2', '-2', '0', '-100', 'l_')}, {self._pick('1', '3', '-1', 'i')})"
            ),
            lambda: f"substring({self._string(d)}, {self._pick('1', '-2', 'i')})",
            lambda: f"replace({self._string(d)}, {self._string(0)}, {self._string(0)})",
            lambda: (
                f"split_part({self._string(d)}, {self._pick(repr('/'), repr(';'), 's', repr(''))}, {self._pick('1', '2', '-1', '0', 'i_')})"
            ),
            lambda: f"kv({self._string(d)}, {self._string(0)})",
            lambda: (
                f"to_string({self._pick(lambda: self._long(d), lambda: self._boolean(d), lambda: self._decimal(d), lambda: self._timestamp(d), lambda: self._date(d))})"
            ),
            lambda: f"format_number({self._double(d)}, {self.random.randrange(4)})",
            lambda: (
                f"format_time({self._timestamp(d)}, '{self.random.choice(_PATTERNS)}', '{self.random.choice(_ZONES)}')"
            ),
            lambda: f"coalesce({self._string(d)}, {self._string(d)})",
            lambda: f"CASE WHEN {self._boolean(d)} THEN {self._string(d)} ELSE {self._string(d)} END",
            "element_at(lines, 1).sku",
        )

    def _timestamp(self, depth: int) -> str:
        if depth <= 0:
            return self._pick("ts", "ts_", lambda: f"TIMESTAMP '{self.random.choice(INSTANTS)}'")
        d = depth - 1
        return self._pick(
            lambda: f"({self._timestamp(d)} {self.random.choice('+-')} {self._duration(d)})",
            lambda: f"from_epoch_ms({self._long(d)})",
            lambda: f"parse_time({self._string(d)}, '{self.random.choice(_PATTERNS)}', '{self.random.choice(_ZONES)}')",
            lambda: (
                f"parse_time(format_time({self._timestamp(0)}, 'yyyy-MM-dd HH:mm'), 'yyyy-MM-dd HH:mm', '{self.random.choice(_ZONES)}')"
            ),
            lambda: f"coalesce({self._timestamp(d)}, {self._timestamp(d)})",
            lambda: f"greatest({self._timestamp(d)}, {self._timestamp(d)})",
        )

    def _duration(self, depth: int) -> str:
        if depth <= 0:
            return self._pick("dur", "dur_", "DURATION 'PT5M'", "DURATION '-P1DT0.000001S'")
        d = depth - 1
        return self._pick(
            lambda: f"({self._timestamp(d)} - {self._timestamp(d)})",
            lambda: f"({self._duration(d)} {self.random.choice('+-')} {self._duration(d)})",
            lambda: f"({self._duration(d)} * {self._double(d)})",
            lambda: f"({self._duration(d)} + {self.random.choice(('5 s', '2 h', '1.5 min'))})",
            lambda: f"(-{self._duration(d)})",
        )

    def _date(self, depth: int) -> str:
        return self._pick(
            "date",
            "date_",
            "DATE '2026-11-01'",
            lambda: f"date_of({self._timestamp(depth - 1)}, '{self.random.choice(_ZONES)}')",
        )

    def _struct(self, depth: int) -> str:
        d = depth - 1
        return f"struct({self._double(d)} AS a, {self._string(d)} AS b, {self._boolean(d)} AS c)"

    def _list(self, depth: int) -> str:
        d = max(0, depth - 1)
        return self._pick(
            "lines", "lines_", "ns",
            lambda: f"filter({self._maybe('lines')}, x -> x.qty > {self._long(0)})",
            lambda: f"transform({self._maybe('lines')}, x -> struct(x.qty + 1 AS q, x.sku || 'a' AS s))",
            lambda: f"transform(ns, x -> x {self.random.choice('+*/')} {self._double(min(d, 1))})",
            "transform(lines, x -> size(x.tags))",
            lambda: f"transform({self._maybe('lines')}, x -> x.sku || {self._string(0)})",
            lambda: f"at_most({self._maybe('lines')}, {self.random.randrange(4)}, {self._long(0)})",
        )  # fmt: skip

    def _of_any(self, depth: int) -> str:
        return self.of(
            self.random.choice(
                ("boolean", "long", "double", "decimal", "string", "timestamp", "duration", "date", "list")
            ),
            depth,
        )


_PATTERNS = ("yyyy-MM-dd HH:mm", "dd.MM.yyyy", "yyyy-MM-dd HH:mm:ss.SSS", "HH:mm", "yyyyMMddHHmmssSSSSSS")
