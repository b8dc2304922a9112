"""What there is to know about an expression: its typed tree, its forms, its text for both engines.

Decides and lays nothing out: :mod:`situ.cli.show_expression` does that. An expression is explained for the
engines as they run it, so Spark SQL and Python are those of the simplified form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

from situ.cli.outcome import Outcome
from situ.errors import Problem
from situ.expr.emit_python import compile_test, compile_value
from situ.expr.emit_spark import SparkExpression, emit_spark
from situ.expr.print import print_expression, print_literal
from situ.expr.simplify import simplify
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
    children,
)
from situ.types.model import BOOLEAN, plain
from situ.units import Unit

_LONGEST_DIVISOR = 10**9
"""Divisors with more digits say nothing to a reader: then factor and offset are shown, rounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A node of the typed tree in words, with what is below it; ``role`` says what it is to the node above."""

    label: str
    role: str
    type: str
    unit: str
    nullable: bool
    can_fail: bool
    parts: tuple[Part, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "node": self.label,
            **({"role": self.role} if self.role else {}),
            "type": self.type,
            "unit": self.unit or None,
            "nullable": self.nullable,
            "can_fail": self.can_fail,
            "parts": [part.as_json() for part in self.parts],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """An expression explained. ``subject`` names where it comes from, ``over`` what it is evaluated on."""

    subject: str
    over: str
    text: str
    canonical: str
    simplified: str
    tree: Part
    spark: SparkExpression
    python: str
    problems: tuple[Problem, ...] = ()
    outcome: Outcome | None = None

    def as_json(self) -> dict[str, Any]:
        outcome = {"outcome": self.outcome.as_json()} if self.outcome else {}
        return {
            "subject": self.subject,
            "over": self.over or None,
            "text": self.text,
            "canonical": self.canonical,
            "simplified": self.simplified,
            "type": self.tree.type,
            "unit": self.tree.unit or None,
            "nullable": self.tree.nullable,
            "can_fail": self.tree.can_fail,
            "tree": self.tree.as_json(),
            "spark": {"value": self.spark.value, "fails": self.spark.fails or None},
            "python": self.python,
            "problems": [problem.as_json() for problem in self.problems],
            **outcome,
        }


def explain_expression(
    node: Node,
    *,
    text: str,
    subject: str,
    over: str,
    variables: Sequence[str],
    bare: str = "data",
    problems: tuple[Problem, ...] = (),
    outcome: Outcome | None = None,
) -> Explained:
    """Explain a checked expression over ``variables``, those of its scope."""
    simple = simplify(node)
    compiled = (compile_test if plain(node.type) == BOOLEAN else compile_value)(simple, variables)
    return Explained(
        subject=subject,
        over=over,
        text=text,
        canonical=print_expression(node, bare),
        simplified=print_expression(simple, bare),
        tree=describe(node, bare),
        spark=emit_spark(simple),
        python=compiled.source,
        problems=problems,
        outcome=outcome,
    )


def describe(node: Node, bare: str = "data", role: str = "") -> Part:
    """The typed tree in words."""
    below = tuple(describe(part, bare, role) for role, part in zip(_roles(node), children(node), strict=True))
    return Part(
        label=_label(node, bare),
        role=role,
        type=str(node.type),
        unit=str(node.unit),
        nullable=node.nullable,
        can_fail=node.can_fail,
        parts=below,
    )


def _roles(node: Node) -> Iterator[str]:
    match node:
        case Case(arms=arms):
            for _ in arms:
                yield from ("when", "then")
            yield "else"
        case MakeStruct(fields=fields):
            yield from (name for name, _ in fields)
        case ForEach(variable=variable):
            yield from ("list", f"{variable} ->")
        case _:
            yield from ("" for _ in children(node))


def _label(node: Node, bare: str) -> str:
    match node:
        case Literal() | Read():
            return print_expression(node, bare)
        case Apply(overload=overload):
            return "-" if overload.name == "negate" else overload.name
        case Coerce():
            return _conversion(node)
        case Compare(op=op):
            return op
        case In(item=item, values=values):
            return f"IN ({', '.join(print_literal(value, item.unit) for value in values)})"
        case And():
            return "AND"
        case Or():
            return "OR"
        case Not():
            return "NOT"
        case IsNull():
            return "IS NULL"
        case Case():
            return "CASE"
        case Coalesce():
            return "coalesce"
        case MakeStruct():
            return "struct"
        case Field(name=name):
            return f".{name}"
        case ForEach(kind=kind):
            return kind.value


def _conversion(node: Coerce) -> str:
    """An implicit step: which factor and offset, where the unit changes."""
    below = lcm(node.scale.denominator, node.offset.denominator)
    if below > _LONGEST_DIVISOR:
        below = 1
    factor, offset = node.scale * below, node.offset * below
    shown = f" × {_number(factor)}" if factor != 1 else ""
    shown += f" {'−' if offset < 0 else '+'} {_number(abs(offset))}" if offset else ""
    shown = f" ({shown[1:]})" if below > 1 and offset else shown
    return f"as {with_unit(str(node.type), node.unit)}{shown}{f' ÷ {below}' if below > 1 else ''}"


def with_unit(text: str, unit: Unit | str) -> str:
    """``double m``; ``boolean`` where there is no unit."""
    return f"{text} {unit}".rstrip()


def _number(value: Fraction) -> str:
    return repr(value.numerator / value.denominator).removesuffix(".0")
