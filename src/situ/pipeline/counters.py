"""Counters: what the tasks of a batch saw, and the sums over all batches of a run.

A task gives its counters as one row; they are all that comes back to the driver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec


class Counts(msgspec.Struct):
    """What one task saw."""

    types: dict[str, int] = msgspec.field(default_factory=dict)
    """Events taken in, by type."""
    groups: dict[str, int] = msgspec.field(default_factory=dict)
    """Events delivered, by delivery group."""
    live: dict[str, int] = msgspec.field(default_factory=dict)
    """Events sent to clients at once, by client and subscription."""
    dead: dict[str, int] = msgspec.field(default_factory=dict)
    """Dead letters, by code."""
    origins: dict[str, int] = msgspec.field(default_factory=dict)
    """Events taken in that came in other terms than root's, as `TYPE CONTEXT`."""
    originals: dict[str, int] = msgspec.field(default_factory=dict)
    """Events that those of their own context got as they were sent, by context."""
    converted: dict[str, int] = msgspec.field(default_factory=dict)
    """Events put in the terms of a context, by context: each once, however many get it."""
    dropped: dict[str, int] = msgspec.field(default_factory=dict)
    """Events that subscriptions did not want to get although they match, as `SUBSCRIPTION REASON`."""
    measured: dict[str, Any] = msgspec.field(default_factory=dict)
    """What was measured of publishers, see :class:`situ.quality.meter.Part`."""
    stored: dict[str, Any] = msgspec.field(default_factory=dict)
    """What was stored for readers, where that is counted, see :class:`situ.quality.receipts.Lots`."""
    highest: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    """How far each client's events were taken: incarnation and sequence."""
    failures: dict[str, int] = msgspec.field(default_factory=dict)
    """What failed in a way that nobody foresaw and is no event of a client, by what it was."""
    traces: list[str] = msgspec.field(default_factory=list)
    """Some of the tracebacks of that, and of events that failed so."""

    def encode(self) -> bytes:
        return msgspec.json.encode(self)


_DECODER = msgspec.json.Decoder(Counts)


def decode_counts(texts: Iterable[bytes]) -> list[Counts]:
    return [_DECODER.decode(text) for text in texts]


class Totals:
    """The sums over a run."""

    def __init__(self) -> None:
        self.types: Counter[str] = Counter()
        self.groups: Counter[str] = Counter()
        self.live: Counter[str] = Counter()
        self.dead: Counter[str] = Counter()
        self.origins: Counter[str] = Counter()
        self.originals: Counter[str] = Counter()
        self.converted: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self._batch: int | None = None

    def add(self, counts: Iterable[Counts], batch: int | None = None) -> None:
        """Add what the tasks of a batch saw; one that is repeated after it was counted counts once."""
        if batch is not None and batch == self._batch:
            return
        self._batch = batch
        for each in counts:
            self.types.update(each.types)
            self.groups.update(each.groups)
            self.live.update(each.live)
            self.dead.update(each.dead)
            self.origins.update(each.origins)
            self.originals.update(each.originals)
            self.converted.update(each.converted)
            self.dropped.update(each.dropped)
            self.failures.update(each.failures)

    def as_json(self) -> dict[str, Any]:
        names = ("types", "groups", "live", "dead", "origins", "originals", "converted", "dropped", "failures")
        return {name: dict(sorted(getattr(self, name).items())) for name in names}
