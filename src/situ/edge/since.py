"""Since when: ``begin``, ``1 h ago``, a date or time, a ``datetime`` or a ``timedelta`` → microseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from situ.event.instants import microseconds
from situ.quantities import parse_moment


def begins(since: str | datetime | timedelta, now: datetime | None = None) -> int:
    """When history begins; 0: with the first event there is."""
    now = now or datetime.now(UTC)
    if isinstance(since, str):
        since = parse_moment(since, now)
    if isinstance(since, timedelta):
        since = now - since
    return max(microseconds(since if since.tzinfo is not None else since.astimezone()), 0)
