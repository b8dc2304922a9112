"""Shapes: what stage ``shape`` of an engine does to the events of one subscription, as plain data and as JSON.

A shape is made by negotiation and is part of the deployment, so both engines and every replay work by the same one. A
limit that changes carries the instant of event time from which it holds; times are in µs.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

import msgspec

from situ.lang.json_form import StoredForm
from situ.lang.quantities import format_duration, parse_duration
from situ.quality.model.declarations import Aggregate, Keep


class Limit(StoredForm, frozen=True, kw_only=True):
    """At most ``events`` in ``minutes`` minutes, for windows that start at or after ``since``."""

    OMITTED = ("since", "until")
    events: int
    minutes: int = 1
    form: Literal["slot", "quota"] = "slot"
    since: int | None = None
    """None: from the beginning of time."""
    until: int | None = None
    """From here on nothing is thinned; None: it holds until the next one begins."""


class Thin(StoredForm, frozen=True, kw_only=True):
    """Rate down. ``limits`` in the order of time."""

    OMITTED = ("per", "across", "keep")
    limits: tuple[Limit, ...]
    per: str = ""
    across: bool = False
    keep: Keep = "first"


class EventFloor(msgspec.Struct, frozen=True, kw_only=True):
    """Events below the floor are dropped; those that say nothing, too, unless they are kept."""

    about: Literal["confidence", "freshness"]
    floor: float
    keep_missing: bool = False


class Suppress(StoredForm, frozen=True, kw_only=True):
    """Imprecision up: an event passes if its attribute differs by more than ``delta`` from the last that passed."""

    OMITTED = ("per", "per_key", "max_silence")
    attribute: str = msgspec.field(name="of")
    # A whole number stays one when it is read back: the digest of the deployment is that of its text.
    delta: int | float
    per: str = ""
    per_key: tuple[tuple[str, int | float], ...] = ()
    max_silence: int | None = None


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What is done to the events of a subscription, in this order: select, each, aggregate, suppress, thin."""

    sources: frozenset[str] | None = None
    """Publishers whose events are delivered; None: all."""
    each: tuple[EventFloor, ...] = ()
    aggregate: Aggregate | None = None
    suppress: tuple[Suppress, ...] = ()
    thin: Thin | None = None


UNSHAPED = Shape()


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# JSON: how the deployment keeps shapes. Equal shapes give equal values.

Json = dict[str, Any]
_MICROSECOND = timedelta(microseconds=1)


def shape_as_json(shape: Shape) -> Json:
    """Only what is done: a shape that changes nothing is an empty value."""
    found: Json = {} if shape.sources is None else {"sources": sorted(shape.sources)}
    found |= {"each": [_each(each) for each in shape.each]} if shape.each else {}
    found |= {"aggregate": aggregate_as_json(shape.aggregate)} if shape.aggregate is not None else {}
    found |= {"suppress": [each.as_json() for each in shape.suppress]} if shape.suppress else {}
    return found | ({"thin": shape.thin.as_json()} if shape.thin is not None else {})


def shape_from_json(value: Any) -> Shape:
    """The shape that :func:`shape_as_json` gave; ValueError for what it cannot have given."""
    try:
        if value.keys() - {"sources", "each", "aggregate", "suppress", "thin"}:
            raise ValueError(f"this is no shape of this release: {value!r:.80}")
        return Shape(
            sources=frozenset(value["sources"]) if "sources" in value else None,
            each=tuple(_to_each(each) for each in value.get("each", ())),
            aggregate=aggregate_from_json(value["aggregate"]) if "aggregate" in value else None,
            suppress=tuple(Suppress.from_json(each) for each in value.get("suppress", ())),
            thin=Thin.from_json(value["thin"]) if "thin" in value else None,
        )
    except (KeyError, TypeError, AttributeError, msgspec.ValidationError) as error:
        raise ValueError(f"this is no shape: {error!r}") from error


def aggregate_as_json(aggregate: Aggregate) -> Json:
    return {
        "fn": aggregate.function,
        "of": aggregate.attribute,
        "window": duration_as_json(aggregate.window),
        "every": duration_as_json(aggregate.every),
    }


def aggregate_from_json(value: Any) -> Aggregate:
    return Aggregate(
        function=value["fn"],
        attribute=value["of"],
        window=duration_from_json(value["window"]),
        every=duration_from_json(value["every"]),
    )


def duration_as_json(microseconds: int) -> str:
    return format_duration(microseconds * _MICROSECOND)


def duration_from_json(value: str) -> int:
    """In µs."""
    return parse_duration(value) // _MICROSECOND


def _each(each: EventFloor) -> Json:
    return {"about": each.about, "floor": float(each.floor)} | ({"missing": "keep"} if each.keep_missing else {})


def _to_each(value: Any) -> EventFloor:
    return EventFloor(about=value["about"], floor=float(value["floor"]), keep_missing=value.get("missing") == "keep")
