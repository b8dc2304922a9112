"""Event types that nobody declared, as problems of those who name them."""

from __future__ import annotations

from situ.catalogue import TYPE_NOT_AVAILABLE
from situ.errors import Location, Problem

_REMEDY = "Declare it under `events:` in a file of types/."


def not_declared(type: str, place: Location | None = None, nearest: tuple[str, ...] = ()) -> Problem:
    """Somebody names it who publishes or subscribes."""
    return TYPE_NOT_AVAILABLE(place, type=type, where="", nearest=nearest, remedy=_REMEDY)
