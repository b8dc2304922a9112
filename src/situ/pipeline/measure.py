"""Measuring: what tasks find of what publishers do, put together batch by batch."""

from __future__ import annotations

import time
from collections.abc import Iterable

from situ.bus.address import Address
from situ.bus.blocking import shared_bus
from situ.bus.measured import MEASURED, decode_measured
from situ.bus.names import Names
from situ.deployment.plan import Plan
from situ.deployment.shapes import patience_of
from situ.pipeline.counters import Counts
from situ.quality.joining import Joining
from situ.quality.meter import Meter, Part
from situ.quality.panes import Pane
from situ.settings import Settings

_FRESH = 1.0
_told: dict[Address, tuple[float, frozenset[str]]] = {}


def meter_of(plan: Plan, address: Address) -> Meter | None:
    """What measures in a task; None: nobody has said what it can do."""
    publishers = plan.measured | _publishers_told(address)
    return Meter(publishers) if publishers else None


def _publishers_told(address: Address) -> frozenset[str]:
    at, publishers = _told.get(address, (-_FRESH, frozenset()))
    if time.monotonic() - at >= _FRESH:
        entry = shared_bus(address).get(Names(address.zone).metrics, MEASURED)
        publishers = decode_measured(entry.value if entry is not None else None)
        _told[address] = (time.monotonic(), publishers)
    return publishers


class BatchMeasuring:
    """Joins what the tasks of batches found, beside the driver."""

    def __init__(self, settings: Settings) -> None:
        self._joining = Joining(patience_of(settings))

    def add(self, counts: Iterable[Counts]) -> tuple[Pane, ...]:
        """The panes of a batch."""
        return self._joining.join(Part.from_json(each.measured) for each in counts if each.measured)

    def until(self, now: int) -> int | None:
        """Up to which instant of event time panes are complete; None: nothing was measured yet."""
        return self._joining.until(now)
