"""Event types that are not there, as problems: of those who name them, and of events that say they are of them."""

from __future__ import annotations

from situ.catalogue import TYPE_NOT_AVAILABLE, UNKNOWN_EVENT_TYPE
from situ.errors import Location, Problem

_REMEDY = "Declare it under `events:` in a file of types/."


def not_declared(type: str, place: Location | None = None, nearest: tuple[str, ...] = ()) -> Problem:
    """Somebody publishes or subscribes to what nobody declared."""
    return TYPE_NOT_AVAILABLE(place, type=type, where="", nearest=nearest, remedy=_REMEDY)


def unknown_event(type: str, nearest: tuple[str, ...]) -> Problem:
    """An event is of a type that nobody declared."""
    return UNKNOWN_EVENT_TYPE(type=type, where="", nearest=nearest, remedy=_REMEDY)


def no_way_in(type: str, context: str) -> Problem:
    """An event is of a type that the context has, and root gets nothing of."""
    where = f" that leads from the context `{context}` into root"
    remedy = f"Give the context a mapping `in: {type} -> …`, or publish a type that has one."
    return UNKNOWN_EVENT_TYPE(type=type, where=where, nearest=(), remedy=remedy)
