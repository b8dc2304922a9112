"""Why does a subscription want an event, or not? Part by part, with the values that decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from situ.event.row import Row
from situ.expr.interpret import interpret
from situ.expr.print import print_expression, print_literal
from situ.expr.runtime import FAILURES
from situ.expr.tree import And, Node, Or, Read, walk
from situ.subscription.filter import Filter
from situ.subscription.reading import data_reader, read_envelope
from situ.subscription.routing import Routing

Outcome = Literal["true", "false", "null", "fails"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a filter: its text, what it comes to for the event, and the values it read."""

    text: str
    outcome: Outcome
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Whether a subscription wants an event. ``type`` is the type it asked for that the event is of; empty if none."""

    subscription: str
    matched: bool
    type: str
    joined: Literal["AND", "OR", ""]
    parts: tuple[Part, ...]
    found_by: tuple[str, ...]
    """By what the index finds the filter, in words."""


def explain_match(routing: Routing, subscription: str, row: Row) -> Explained:
    """Why the subscription wants the row or not; KeyError if there is no such subscription."""
    explained = Explained(
        subscription=subscription,
        matched=False,
        type="",
        joined="",
        parts=(),
        found_by=routing.found_by(subscription, row),
    )
    for filter_ in routing.filters_for(subscription, row.type):
        explained = _explain(explained, routing, filter_, row)
        if explained.matched:
            break
    return explained


def _explain(explained: Explained, routing: Routing, filter_: Filter, row: Row) -> Explained:
    types = routing.wanted.meaning.types
    struct = types.event(row.type)
    assert struct is not None, "a filter was found for it"
    values = {"event": read_envelope(row), "data": data_reader(struct, None, types)(row.data)}
    node = filter_.node
    joined: Literal["AND", "OR", ""] = "AND" if isinstance(node, And) else "OR" if isinstance(node, Or) else ""
    parts = node.args if isinstance(node, And | Or) else (node,)
    return Explained(
        subscription=explained.subscription,
        matched=_outcome(node, values) == "true",
        type=filter_.type,
        joined=joined,
        parts=tuple(
            Part(text=print_expression(part), outcome=_outcome(part, values), values=_read(part, values))
            for part in parts
        ),
        found_by=explained.found_by,
    )


def _outcome(node: Node, values: Mapping[str, Any]) -> Outcome:
    try:
        value = interpret(node, values)
    except FAILURES:
        return "fails"
    return "null" if value is None else "true" if value else "false"


def _read(node: Node, values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The attributes that the part reads, with their values as they are written in expressions."""
    found: dict[str, str] = {}
    for each in walk(node):
        if isinstance(each, Read) and each.variable in values:
            value = interpret(each, values)
            found[print_expression(each)] = print_literal(value, each.unit)
    return tuple(found.items())
