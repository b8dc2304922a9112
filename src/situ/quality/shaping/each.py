"""Each: single events that are not good enough are dropped.

They guard single events only: by dropping some they lower the rate, and never make an expectation satisfied.
"""

from __future__ import annotations

from collections.abc import Sequence

from situ.event.row import Row
from situ.quality.shape import Each

_SECOND = 1_000_000


def good_enough(rows: Sequence[Row], each: Each, now: int | None) -> list[Row]:
    """``now`` is the instant that ages are taken at, which whoever repeats this has to know; None: when each came."""
    return confident(rows, each) if each.about == "confidence" else fresh(rows, each.floor, now)


def confident(rows: Sequence[Row], each: Each) -> list[Row]:
    floor, keep_missing = each.floor, each.keep_missing
    return [row for row in rows if (keep_missing if row.confidence is None else row.confidence >= floor)]


def fresh(rows: Sequence[Row], most: float, now: int | None) -> list[Row]:
    """What is not older than so many seconds. An event from the future is as fresh as can be."""
    limit = most * _SECOND
    return [row for row in rows if max((row.recv if now is None else now) - row.time, 0) <= limit]
