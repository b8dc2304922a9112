"""Shapes: what stage ``shape`` of an engine does to the events of one subscription, as plain data and as JSON.

A shape is made by negotiation and is part of the deployment, so both engines and every replay work by the same one. A
limit that changes carries the instant of event time from which it holds; times are in µs.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from situ.lang.quantities import format_duration, parse_duration
from situ.quality.model.declarations import Aggregate, Keep


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """At most ``events`` in ``minutes`` minutes, for windows that start at or after ``since``."""

    events: int
    minutes: int = 1
    form: Literal["slot", "quota"] = "slot"
    since: int | None = None
    """None: from the beginning of time."""
    until: int | None = None
    """From here on nothing is thinned; None: it holds until the next one begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thin:
    """Rate down. ``limits`` in the order of time."""

    limits: tuple[Limit, ...]
    per: str = ""
    across: bool = False
    keep: Keep = "first"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFloor:
    """Events below the floor are dropped; those that say nothing, too, unless they are kept."""

    about: Literal["confidence", "freshness"]
    floor: float
    keep_missing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppress:
    """Imprecision up: an event passes if its attribute differs by more than ``delta`` from the last that passed."""

    attribute: str
    delta: float
    per: str = ""
    per_key: tuple[tuple[str, float], ...] = ()
    max_silence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
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
    found |= {"suppress": [_suppress(each) for each in shape.suppress]} if shape.suppress else {}
    return found | ({"thin": _thin(shape.thin)} if shape.thin is not None else {})


def shape_from_json(value: Any) -> Shape:
    """The shape that :func:`shape_as_json` gave; ValueError for what it cannot have given."""
    try:
        if value.keys() - {"sources", "each", "aggregate", "suppress", "thin"}:
            raise ValueError(f"this is no shape of this release: {value!r:.80}")
        return Shape(
            sources=frozenset(value["sources"]) if "sources" in value else None,
            each=tuple(_to_each(each) for each in value.get("each", ())),
            aggregate=aggregate_from_json(value["aggregate"]) if "aggregate" in value else None,
            suppress=tuple(_to_suppress(each) for each in value.get("suppress", ())),
            thin=_to_thin(value["thin"]) if "thin" in value else None,
        )
    except (KeyError, TypeError, AttributeError) as error:
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


def _suppress(suppress: Suppress) -> Json:
    found: Json = {"of": suppress.attribute, "delta": float(suppress.delta)}
    found |= {"per": suppress.per} if suppress.per else {}
    found |= {"per_key": [[key, float(delta)] for key, delta in suppress.per_key]} if suppress.per_key else {}
    return found | ({"max_silence": suppress.max_silence} if suppress.max_silence is not None else {})


def _to_suppress(value: Any) -> Suppress:
    return Suppress(
        attribute=value["of"],
        delta=float(value["delta"]),
        per=value.get("per", ""),
        per_key=tuple((key, float(delta)) for key, delta in value.get("per_key", ())),
        max_silence=value.get("max_silence"),
    )


def _thin(thin: Thin) -> Json:
    found: Json = {"limits": [_limit(each) for each in thin.limits]}
    found |= {"per": thin.per} if thin.per else {}
    found |= {"across": True} if thin.across else {}
    return found | ({"keep": thin.keep} if thin.keep != "first" else {})


def _to_thin(value: Any) -> Thin:
    return Thin(
        limits=tuple(_to_limit(each) for each in value["limits"]),
        per=value.get("per", ""),
        across=value.get("across", False),
        keep=value.get("keep", "first"),
    )


def _limit(limit: Limit) -> Json:
    found: Json = {"events": limit.events, "minutes": limit.minutes, "form": limit.form}
    found |= {"since": limit.since} if limit.since is not None else {}
    return found | ({"until": limit.until} if limit.until is not None else {})


def _to_limit(value: Any) -> Limit:
    return Limit(
        events=value["events"],
        minutes=value["minutes"],
        form=value["form"],
        since=value.get("since"),
        until=value.get("until"),
    )
