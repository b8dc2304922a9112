"""Measuring: what tasks find of what publishers do, put together batch by batch."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

from situ.bus.address import Address
from situ.bus.interface import Bus, StoreAck
from situ.bus.measurement import MEASURED, decode_measured, look_at_readers
from situ.bus.sync_bus import shared_bus
from situ.event.message import Message
from situ.event.row import Row
from situ.event.subjects import BusNames
from situ.lang.problems import SituError
from situ.quality.measurement.acknowledgements import (
    AckTracker,
    DeliveryCounts,
    Events,
    StoredBatches,
    panes_of_counts,
    sum_up,
)
from situ.quality.measurement.meter import NO_PUBLISHERS, MeasuredPublishers, Meter, MeteredPart, PaneMerger
from situ.quality.measurement.panes import Pane
from situ.settings import Settings
from situ.spark.frames import TaskCounts
from situ.stages.plan import Plan
from situ.stages.shape import patience_of

_FRESH = 1.0
_LOOK_EVERY = 5.0
_told: dict[Address, tuple[float, MeasuredPublishers]] = {}


class TaskMeter:
    """What measures in a task."""

    def __init__(self, whom: MeasuredPublishers) -> None:
        self.meter = Meter(whom.publishers)
        self.counts = bool(whom.counted)
        """Whether it is counted what becomes of deliveries."""
        self.lots = StoredBatches()
        self._whom = whom
        self._packed: dict[str, tuple[str, Events]] = {}
        """Id of a message → its group, and whose events are in it."""

    def packed(self, message: Message, group: str, rows: Sequence[Row]) -> None:
        """A message with these events is about to be stored for the readers of a group."""
        self._packed[message.id] = group, self._whom.origins(rows)

    def stored(self, message: Message, ack: StoreAck) -> None:
        """It is stored; if it was before, that was noted then."""
        group, origins = self._packed.pop(message.id, ("", {}))
        if group and not ack.duplicate:
            self.lots.stored(group, ack.seq, origins)


def measuring_of(plan: Plan, address: Address) -> TaskMeter | None:
    """None: nobody has said what it can do."""
    whom = plan.measured | _publishers_told(address)
    return TaskMeter(whom) if whom.publishers else None


def _publishers_told(address: Address) -> MeasuredPublishers:
    at, whom = _told.get(address, (-_FRESH, NO_PUBLISHERS))
    if time.monotonic() - at >= _FRESH:
        entry = shared_bus(address).get(BusNames(address.zone).metrics, MEASURED)
        whom = decode_measured(entry.value if entry is not None else None)
        _told[address] = (time.monotonic(), whom)
    return whom


class BatchMeter:
    """Joins what the tasks of batches found, beside the driver."""

    def __init__(self, settings: Settings) -> None:
        self._joining = PaneMerger(patience_of(settings))
        self._receipts = AckTracker()
        self._settled: dict[tuple[str, str], DeliveryCounts] = {}
        self._counts = False
        self._looked = 0.0

    def add(self, counts: Iterable[TaskCounts]) -> tuple[Pane, ...]:
        """The panes of a batch."""
        counts = tuple(counts)
        for each in counts:
            if each.stored:
                self._counts = True
                self._receipts.new.add(StoredBatches.from_json(each.stored))
            elif each.groups:
                # There are deliveries that nobody counted: what readers acknowledge from now on may be those.
                self._counts, self._receipts = False, AckTracker()
        return self._joining.join(MeteredPart.from_json(each.measured) for each in counts if each.measured)

    async def look(self, bus: Bus) -> None:
        """See what became of deliveries, now and then."""
        if not self._counts or time.monotonic() < self._looked + _LOOK_EVERY:
            return
        self._looked = time.monotonic()
        with suppress(SituError):  # a bus that is away comes back
            sum_up(self._settled, await look_at_readers(bus, self._receipts))

    def settled(self, until: int) -> tuple[Pane, ...]:
        """What has become known of deliveries."""
        settled, self._settled = self._settled, {}
        return panes_of_counts(settled, until)

    def until(self, now: int) -> int | None:
        """Up to which instant of event time panes are complete; None: nothing was measured yet."""
        return self._joining.until(now)
