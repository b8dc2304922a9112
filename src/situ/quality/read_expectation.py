"""What somebody wrote of one expectation → the expectation, or everything that is wrong with it."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Any, Literal, cast

from situ.catalogue import BAD_ATTRIBUTE, BAD_NAME, NEED_OPTION_UNFIT, UNSUPPORTED_COMPOSITE
from situ.documents import Fields, Node, Reader, Scalar
from situ.quality.around import Around, numeric
from situ.quality.expectation import Aggregate, Expectation
from situ.quality.read_need import Named, read_needs
from situ.quality.read_value import Values, read_double, read_microseconds

OPTION_KEYS = ("utility", "sources", "else", "from", "aggregate")
EXPECTATION_KEYS = ("id", "need", *OPTION_KEYS)
AGGREGATE_KEYS = ("fn", "of", "window", "every")
SOURCES = ("any", "selected")
ELSE = ("any", "nothing")
FUNCTIONS = ("avg", "min", "max", "sum")
ID = re.compile(r"[A-Za-z0-9_-]{1,64}(?:/[A-Za-z0-9_-]{1,64})?")
MOST_PUBLISHERS = 1000
_IDS = "Use letters, digits, `_` and `-`, at most 64."
_PARTS = 6
"""How often an aggregate is told within its window, if nobody says."""
_MOST_PARTS = 3_600
"""How often it is at most: each event is worked through so often."""


def read_expectation(read: Reader, around: Around, fields: Fields, subscription: str) -> Expectation | None:
    """An expectation of a subscription ``client/name``; None if something is wrong with it, which is said."""
    before = len(read.problems)
    id = fields.scalar("id")
    if id is not None and not ID.fullmatch(id.text):
        reason = "it has other characters, or too many"
        problem = BAD_NAME(id.location, name=id.text, what="an expectation", reason=reason, remedy=_IDS)
        read.problems.add(problem)
    parts = read_parts(read, around, fields, subscription)
    if id is None or len(read.problems) > before:
        return None
    return Expectation(id=id.text, subscription=subscription, **{"needs": MappingProxyType({}), **parts})


def read_parts(read: Reader, around: Around, fields: Fields, subscription: str) -> dict[str, Any]:
    """The fields of an expectation that are written here, by name: what an update changes."""
    id = fields.text("id") or "this expectation" if isinstance(fields.node("id"), Scalar) else "this expectation"
    types = around.types_of(subscription)
    named, values = Named(read, around, types), Values(read, around.types.units)
    found: dict[str, Any] = {}
    if "need" in fields:
        found["needs"] = MappingProxyType(read_needs(named, values, _entries(fields)) or {})
    if "utility" in fields:
        found["utility"] = read_double(read, fields.node("utility"), least=0)
    if "sources" in fields:
        found["selected"] = fields.choice("sources", SOURCES, SOURCES[0]) == "selected"
    if "else" in fields:
        found["otherwise_nothing"] = fields.choice("else", ELSE, ELSE[0]) == "nothing"
        if found["otherwise_nothing"] and fields.node("sources") is not None and not found["selected"]:
            place = cast(Scalar, fields.mapping.key("else")).location
            read.problems.add(NEED_OPTION_UNFIT(place, option="else", name=id, fits="`sources: selected`"))
    if (node := fields.node("from")) is not None:
        found["publishers"] = _publishers(read, id, node)
    if (node := fields.node("aggregate")) is not None:
        found["aggregate"] = _aggregate(named, node)
    return found


def _entries(fields: Fields) -> tuple[tuple[Scalar, Node], ...]:
    node = fields.node("need")
    nothing = isinstance(node, Scalar) and node.value is None
    return () if nothing else fields.entries("need")


def _publishers(read: Reader, id: str, node: Node) -> int:
    value = node.value if isinstance(node, Scalar) else None
    if type(value) is int and 1 <= value <= MOST_PUBLISHERS:
        return value
    shown = f"`{node.text}` publishers" if isinstance(node, Scalar) else "publishers of several kinds"
    read.problems.add(UNSUPPORTED_COMPOSITE(node.location, id=id, what=shown, most=MOST_PUBLISHERS))
    return 1


def _aggregate(named: Named, node: Node) -> Aggregate | None:
    read = named.read
    fields = read.fields(node, required=("fn", "of", "window"), optional=("every",))
    if fields is None:
        return None
    function = fields.choice("fn", FUNCTIONS)
    attribute = fields.scalar("of")
    window = read_microseconds(read, fields.node("window"))
    every = read_microseconds(read, fields.node("every"))
    if attribute is not None and not numeric(named.around.attributes(attribute.text, named.types)):
        what = f"There is no number `{attribute.text}` of which `{function}` could be taken"
        remedy = "Name an attribute of the event types that is a number."
        read.problems.add(BAD_ATTRIBUTE(attribute.location, what=what, remedy=remedy))
    if every is not None and window is not None and every * _MOST_PARTS < window:
        read.wrong(fields.node("every") or node, f"no less than a {_MOST_PARTS}th of the window")
        return None
    if function is None or attribute is None or window is None:
        return None
    return Aggregate(
        function=cast(Literal["avg", "min", "max", "sum"], function),
        attribute=attribute.text,
        window=window,
        every=every or max(1, window // _PARTS),
    )
