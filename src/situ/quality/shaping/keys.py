"""Keys: which events are thinned, suppressed or aggregated together, and what is read of their data.

The log is ordered for each source, so a key contains the source unless sources are not told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from situ.event.row import Row

Read = Callable[[Row], Mapping[str, Any]]
"""The data of an event, as far as filters look at it."""
Key = tuple[str, ...]

NO_DATA: Mapping[str, Any] = {}


def source_of(row: Row) -> Key:
    """Sources are told apart by who publishes under them, too."""
    return (row.client, row.source)


def key_of(per: str, read: Read) -> Callable[[Row], Key]:
    """The source of an event, with what it says of the attribute ``per``, if there is one."""
    if not per:
        return source_of
    return lambda row: (row.client, row.source, text_of(read(row).get(per)))


def text_of(value: Any) -> str:
    return "" if value is None else str(value)


def number_of(value: Any) -> int | float | None:
    """What is compared and averaged: numbers as JSON has them."""
    if value is None or isinstance(value, int | float):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
