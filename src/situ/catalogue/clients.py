"""``INT6xx``: what clients advertise and subscribe to."""

from __future__ import annotations

from situ.catalogue.defining import define
from situ.errors import Severity

TYPE_NOT_AVAILABLE = define(
    "INT601",
    "event type not available",
    "There is no event type `{type}`{where}.",
    "Did you mean {nearest}?",
    "{remedy}",
    type=str,
    where=str,
    nearest=tuple,
    remedy=str,
)
FILTER_INVALID = define(
    "INT602",
    "filter does not type",
    "The filter of `{subscription}` cannot be used on `{type}`.",
    subscription=str,
    type=str,
)
NEVER_TRUE = define(
    "INT603",
    "filter that is never true",
    "The filter of `{subscription}` is true for no event of type `{type}`.",
    "It simplifies to {simplified}: nothing will be delivered. Correct it, or take the subscription out.",
    severity=Severity.WARNING,
    subscription=str,
    type=str,
    simplified=str,
)
AFTER_TRANSFORMATION = define(
    "INT604",
    "filter evaluated after transformation",
    "`{subscription}` is decided for events of type `{type}` after routing: its filter reads {reasons}.",
    "Events that the rest of the filter lets through are looked at one by one. Nothing needs to be done.",
    severity=Severity.OBSERVATION,
    subscription=str,
    type=str,
    reasons=str,
)
RESERVED_EVENT = define(
    "INT608",
    "event of Situ's own",
    "Only Situ publishes `{type}`.",
    "Advertise a type of your own; this one can be subscribed to.",
    type=str,
)
NOT_AN_EVENT = define(
    "INT605",
    "part used as an event",
    "`{type}` is a part of events and cannot be {done} alone.",
    "Events that have it are {events}.",
    "Declare it under `events:` instead of `types:`, or name an event.",
    type=str,
    done=str,
    events=tuple,
)
ALWAYS_TRUE = define(
    "INT606",
    "filter that is always true",
    "The filter of `{subscription}` is true for every event of type `{type}`.",
    "Leave `where:` out if all events are wanted; otherwise correct it.",
    severity=Severity.WARNING,
    subscription=str,
    type=str,
)
