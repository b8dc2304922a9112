"""Measuring: panes of what publishers do, for whoever negotiates.

Events are measured when they are routed, and deliveries that are acknowledged when it is known what became of them.
Those that a process before this one left behind are not: when they would have been delivered is not known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from situ.bus.interface import Bus, StoreAck
from situ.bus.measurement import look_at_readers
from situ.event.row import Row
from situ.lang.problems import SituError
from situ.quality.measurement.acknowledgements import AckTracker, DeliveryCounts, Events, panes_of_counts, sum_up
from situ.quality.measurement.meter import NO_PUBLISHERS, MeasuredPublishers, Meter, PaneMerger
from situ.quality.measurement.panes import Pane
from situ.stages.plan import Plan

OnMeasured = Callable[[tuple[Pane, ...], int], None]
"""Takes panes, and the instant of event time up to which all are complete."""

_LOOK_EVERY = 5.0


class EdgeMeter:
    """What is measured in one engine, of publishers that have profiles."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._declared = self._told = self.whom = NO_PUBLISHERS
        self._meter = Meter(())
        self._joining: PaneMerger | None = None
        self._receipts = AckTracker()
        self._settled: dict[tuple[str, str], DeliveryCounts] = {}

    @property
    def counts(self) -> bool:
        """Whether it is counted what becomes of deliveries."""
        return bool(self.whom.counted)

    def adopt(self, plan: Plan) -> None:
        """Measure by this plan."""
        self._declared = plan.measured
        if self._joining is None:
            self._joining = PaneMerger(plan.shapes.patience)
        self._measure()

    def tell(self, whom: MeasuredPublishers) -> None:
        """These have told what they can do, besides those that the deployment knows."""
        self._told = whom
        self._measure()

    def _measure(self) -> None:
        self.whom = self._declared | self._told
        self._meter.publishers = self.whom.publishers
        if not self.counts:
            self._receipts = AckTracker()

    def take(self, rows: Sequence[Row], now: int) -> None:
        """Events of one publisher that are delivered now."""
        if rows[0].client in self._meter.publishers:
            self._meter.take(rows, now)

    def note(self, group: str, events: Events, store: asyncio.Future[StoreAck]) -> None:
        """A message with these events is stored for the readers of a group, or was before: that was noted then."""
        if store.cancelled() or store.exception() is not None or (ack := store.result()).duplicate:
            return
        self._receipts.new.stored(group, ack.seq, events)

    async def look_on(self) -> None:
        """For ever: see now and then what became of deliveries."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            if self.counts:
                with suppress(SituError):  # a bus that is away comes back
                    sum_up(self._settled, await look_at_readers(self._bus, self._receipts))

    def drain(self, now: int) -> tuple[tuple[Pane, ...], int] | None:
        """What was measured since the last time, and up to where it is complete; None: there is nothing to say."""
        if self._joining is None or not self._meter.publishers:
            return None
        panes = self._joining.join([self._meter.drain()])
        until = self._joining.until(now)
        if until is None:
            return None
        settled, self._settled = self._settled, {}
        return panes + panes_of_counts(settled, until), until
