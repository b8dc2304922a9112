"""Measuring: panes of what publishers do, for whoever negotiates.

Events are measured when they are routed. Those that a process before this one left behind are not: when they would have
been delivered is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from situ.deployment.plan import Plan
from situ.event.row import Row
from situ.quality.joining import Joining
from situ.quality.meter import Meter
from situ.quality.panes import Pane

OnMeasured = Callable[[tuple[Pane, ...], int], None]
"""Takes panes, and the instant of event time up to which all are complete."""


class Measuring:
    """What is measured in one engine, of publishers that have profiles."""

    def __init__(self) -> None:
        self._declared: frozenset[str] = frozenset()
        self._told: frozenset[str] = frozenset()
        self._meter = Meter(())
        self._joining: Joining | None = None

    def adopt(self, plan: Plan) -> None:
        """Measure by this plan."""
        self._declared = plan.measured
        if self._joining is None:
            self._joining = Joining(plan.shapes.patience)
        self._measure()

    def tell(self, publishers: Collection[str]) -> None:
        """These have told what they can do, besides those that the deployment knows."""
        self._told = frozenset(publishers)
        self._measure()

    def _measure(self) -> None:
        self._meter.publishers = self._declared | self._told

    def take(self, rows: Sequence[Row], now: int) -> None:
        """Events of one publisher that are delivered now."""
        if rows[0].client in self._meter.publishers:
            self._meter.take(rows, now)

    def drain(self, now: int) -> tuple[tuple[Pane, ...], int] | None:
        """What was measured since the last time, and up to where it is complete; None: there is nothing to say."""
        if self._joining is None or not self._meter.publishers:
            return None
        panes = self._joining.join([self._meter.drain()])
        until = self._joining.until(now)
        return None if until is None else (panes, until)
