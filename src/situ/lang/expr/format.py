"""Typed tree → text of the language, such that reading the text again gives the same tree.

Steps to a wider type are not shown: their surroundings bring them back. Steps to another unit are, as ``to_unit``.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Sequence
from typing import Any

from situ.expr.literals import duration_text
from situ.expr.syntax import KEYWORDS
from situ.expr.tree import (
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
)
from situ.units import NO_UNIT, Unit

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
