"""Tracks: how far event time is in one line of events, that of a source or that of all sources together.

Nothing older than the watermark is waited for: the latest event time, less the lateness that is granted. No event
counts as later than it was received. A line that has been silent for longer than the idle time goes on with the clock.
All of it follows from the events and their order, whatever batches they come in; only silence needs a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from situ.event.row import Row

NEVER = 1 << 62
"""Before and after all times that events can have, as -NEVER and NEVER."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatenessBounds:
    """How long is waited for events out of order, and for any at all; in µs."""

    lateness: int
    idle: int


@dataclass(slots=True)
class WatermarkTracker:
    """``high`` is the latest event time, ``received`` when it came, ``heard`` when anything came last."""

    high: int = -NEVER
    received: int = -NEVER
    heard: int = -NEVER
    reached: int = -NEVER
    """How far it has come in silence."""

    def note(self, row: Row) -> None:
        received = row.recv
        time = min(row.time, received)
        if time > self.high:
            self.high, self.received = time, received
        if received > self.heard:
            self.heard = received

    def merge(self, other: WatermarkTracker) -> None:
        """With what was seen elsewhere of the same line."""
        if (other.high, other.received) > (self.high, self.received):
            self.high, self.received = other.high, other.received
        self.heard = max(self.heard, other.heard)
        self.reached = max(self.reached, other.reached)

    def watermark(self, lateness: int) -> int:
        return max(self.high - lateness, self.reached)

    def fall_silent(self, now: int, patience: LatenessBounds) -> None:
        """Go on with the clock, if nothing has come for long. Events of the past go on from there, at its speed."""
        if self.heard == -NEVER or now - self.heard <= patience.idle:
            return
        behind = max(0, self.received - self.high - patience.lateness - patience.idle)
        self.reached = max(self.reached, now - patience.lateness - behind)

    def as_json(self) -> list[int]:
        return [self.high, self.received, self.heard, self.reached]

    def restore(self, stored: Sequence[Any]) -> None:
        self.high, self.received, self.heard, self.reached = map(int, stored)
