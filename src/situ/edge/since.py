"""Since when: ``begin``, ``1 h ago``, a date or time, a ``datetime`` or a ``timedelta`` → microseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from situ.quantities import parse_duration, parse_instant

BEGIN = "begin"
_AGO = " ago"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def begins(since: str | datetime | timedelta, now: datetime | None = None) -> int:
    """When history begins; 0: with the first event there is."""
    if isinstance(since, str):
        text = since.strip()
        if text == BEGIN:
            return 0
        since = parse_duration(text.removesuffix(_AGO)) if text.endswith(_AGO) else parse_instant(text)
    if isinstance(since, timedelta):
        since = (now or datetime.now(UTC)) - since
    if since.tzinfo is None:
        since = since.astimezone()
    return max((since - _EPOCH) // timedelta(microseconds=1), 0)
