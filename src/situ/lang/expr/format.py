"""Literals read from text, and typed trees printed as text of the language."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from collections.abc import Sequence
from typing import Any

from situ.lang.expr.runtime import LONG_MAX, LONG_MIN
from situ.lang.expr.syntax import KEYWORDS
from situ.lang.expr.tree import (
    And,
    Apply,
    Case,
    Coalesce,
    Coerce,
    Compare,
    Field,
    ForEach,
    In,
    IsNull,
    Literal,
    MakeStruct,
    Node,
    Not,
    Or,
    Read,
    Span,
)
from situ.lang.types.model import DATE, DOUBLE, DURATION, INT, LONG, MOST_DIGITS, TIMESTAMP, Decimal
from situ.lang.units import NO_UNIT, Unit

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Literals: from the text of a number, an instant, a date or a duration to its value.

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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Typed tree → text of the language, such that reading the text again gives the same tree.
#
# Steps to a wider type are not shown: their surroundings bring them back. Steps to another unit are, as ``to_unit``.

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OR, _AND, _NOT, _COMPARISON, _CONCAT, _SUM, _PRODUCT, _SIGN, _ATOM = range(1, 10)
_INFIX = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT}


def print_expression(node: Node, bare: str = "data") -> str:
    """The expression as a person would write it; ``bare`` is the variable whose attributes stand alone."""
    return _Printer(bare).text(node, 0)


def print_literal(value: Any, unit: Unit = NO_UNIT) -> str:
    """A constant as it is written in an expression."""
    shown = _constant(value)
    if unit == NO_UNIT or not isinstance(value, int | float | decimal.Decimal):
        return shown
    name = str(unit)
    simple = _NAME.fullmatch(name) and name.upper() not in KEYWORDS
    return f"{shown} {name}" if simple else f"{shown} [{name}]"


def _constant(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case decimal.Decimal():
            # Without zeros behind the point: a whole number of any size reads back exactly, with a point as a double.
            shown = f"{value:f}"
            return shown.rstrip("0").rstrip(".") if "." in shown else shown
        case dt.datetime():
            return f"TIMESTAMP '{value.astimezone(dt.UTC).isoformat().replace('+00:00', 'Z')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case dt.timedelta():
            return f"DURATION '{duration_text(value)}'"
        case _:
            return repr(value)


class _Printer:
    def __init__(self, bare: str) -> None:
        self.bare = bare

    def text(self, node: Node, need: int) -> str:
        """The node's text, in brackets if it binds less than its surroundings need."""
        shown, strength = self._shown(node)
        return f"({shown})" if strength < need else shown

    def _shown(self, node: Node) -> tuple[str, int]:
        match node:
            case Literal(value=value, unit=unit):
                shown = print_literal(value, unit)
                return shown, _SIGN if shown.startswith("-") else _ATOM
            case Read():
                return self._read(node), _ATOM
            case Coerce(arg=arg, unit=unit, steps=steps) if steps:
                return f"to_unit({self.text(arg, 0)}, {_constant(str(unit))})", _ATOM
            case Coerce(arg=arg):
                return self._shown(arg)
            case Apply():
                return self._apply(node)
            case Compare(op=op, left=left, right=right):
                return f"{self.text(left, _CONCAT)} {op} {self.text(right, _CONCAT)}", _COMPARISON
            case In(item=item, values=values):
                return f"{self.text(item, _CONCAT)} IN ({', '.join(_constant(value) for value in values)})", _COMPARISON
            case And(args=args):
                return " AND ".join(self.text(arg, _NOT) for arg in args), _AND
            case Or(args=args):
                return " OR ".join(self.text(arg, _AND) for arg in args), _OR
            case Not(arg=IsNull(arg=arg)):
                return f"{self.text(arg, _CONCAT)} IS NOT NULL", _COMPARISON
            case Not(arg=arg):
                return f"NOT {self.text(arg, _ATOM if isinstance(arg, Not) else _COMPARISON)}", _NOT
            case IsNull(arg=arg):
                return f"{self.text(arg, _CONCAT)} IS NULL", _COMPARISON
            case Case(arms=arms, otherwise=otherwise):
                shown = "".join(f" WHEN {self.text(c, 0)} THEN {self.text(r, 0)}" for c, r in arms)
                return f"CASE{shown} ELSE {self.text(otherwise, 0)} END", _ATOM
            case Coalesce(args=args):
                return self._called("coalesce", args), _ATOM
            case MakeStruct(fields=fields):
                inner = ", ".join(f"{self.text(part, 0)} AS {_name(name)}" for name, part in fields)
                return f"struct({inner})", _ATOM
            case Field(of=of, name=name):
                return f"{self.text(of, _ATOM)}.{_name(name)}", _ATOM
            case ForEach(kind=kind, list=of, variable=variable, body=body):
                return f"{kind.value}({self.text(of, 0)}, {_name(variable)} -> {self.text(body, 0)})", _ATOM

    def _read(self, node: Read) -> str:
        first = (
            ()
            if node.variable == self.bare and node.path and node.path[0] not in ("event", self.bare)
            else (node.variable,)
        )
        return ".".join(_name(step) for step in (*first, *node.path))

    def _apply(self, node: Apply) -> tuple[str, int]:
        name, args = node.overload.name, node.args
        if (strength := _INFIX.get(name)) is not None:
            return f"{self.text(args[0], strength)} {name} {self.text(args[1], strength + 1)}", strength
        match name:
            case "negate":
                return f"-{self.text(args[0], _ATOM)}", _SIGN
            case "||":
                return " || ".join(self.text(arg, _SUM) for arg in args), _CONCAT
            case "like":
                return f"{self.text(args[0], _CONCAT)} LIKE {self.text(args[1], _CONCAT)}", _COMPARISON
            case _:
                return self._called(name, args), _ATOM

    def _called(self, name: str, args: Sequence[Node]) -> str:
        return f"{name}({', '.join(self.text(arg, 0) for arg in args)})"


def _name(name: str) -> str:
    simple = _NAME.fullmatch(name) and name.upper() not in KEYWORDS
    return name if simple else "`" + name.replace("`", "``") + "`"
