"""Measuring: what tasks find of what publishers do, put together batch by batch."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

from situ.bus.address import Address
from situ.bus.blocking import shared_bus
from situ.bus.interface import Ack, Bus
from situ.bus.measured import MEASURED, decode_measured
from situ.bus.names import Names
from situ.bus.receipts import look_at_readers
from situ.deployment.plan import Plan
from situ.deployment.shapes import patience_of
from situ.errors import SituError
from situ.event.message import Message
from situ.event.row import Row
from situ.pipeline.counters import Counts
from situ.quality.joining import Joining
from situ.quality.meter import Meter, Part
from situ.quality.panes import Pane
from situ.quality.receipts import Events, Lots, Receipts, Settled, panes_of_settled, sum_up
from situ.quality.whom import NOBODY, Whom
from situ.settings import Settings

_FRESH = 1.0
_LOOK_EVERY = 5.0
_told: dict[Address, tuple[float, Whom]] = {}


class TaskMeasuring:
    """What measures in a task."""

    def __init__(self, whom: Whom) -> None:
        self.meter = Meter(whom.publishers)
        self.counts = bool(whom.counted)
        """Whether it is counted what becomes of deliveries."""
        self.lots = Lots()
        self._whom = whom
        self._packed: dict[str, tuple[str, Events]] = {}
        """Id of a message → its group, and whose events are in it."""

    def packed(self, message: Message, group: str, rows: Sequence[Row]) -> None:
        """A message with these events is about to be stored for the readers of a group."""
        self._packed[message.id] = group, self._whom.origins(rows)

    def stored(self, message: Message, ack: Ack) -> None:
        """It is stored; if it was before, that was noted then."""
        group, origins = self._packed.pop(message.id, ("", {}))
        if group and not ack.duplicate:
            self.lots.stored(group, ack.seq, origins)


def measuring_of(plan: Plan, address: Address) -> TaskMeasuring | None:
    """None: nobody has said what it can do."""
    whom = plan.measured | _publishers_told(address)
    return TaskMeasuring(whom) if whom.publishers else None


def _publishers_told(address: Address) -> Whom:
    at, whom = _told.get(address, (-_FRESH, NOBODY))
    if time.monotonic() - at >= _FRESH:
        entry = shared_bus(address).get(Names(address.zone).metrics, MEASURED)
        whom = decode_measured(entry.value if entry is not None else None)
        _told[address] = (time.monotonic(), whom)
    return whom


class BatchMeasuring:
    """Joins what the tasks of batches found, beside the driver."""

    def __init__(self, settings: Settings) -> None:
        self._joining = Joining(patience_of(settings))
        self._receipts = Receipts()
        self._settled: dict[tuple[str, str], Settled] = {}
        self._counts = False
        self._looked = 0.0

    def add(self, counts: Iterable[Counts]) -> tuple[Pane, ...]:
        """The panes of a batch."""
        counts = tuple(counts)
        for each in counts:
            if each.stored:
                self._counts = True
                self._receipts.new.add(Lots.from_json(each.stored))
            elif each.groups:
                # There are deliveries that nobody counted: what readers acknowledge from now on may be those.
                self._counts, self._receipts = False, Receipts()
        return self._joining.join(Part.from_json(each.measured) for each in counts if each.measured)

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
        return panes_of_settled(settled, until)

    def until(self, now: int) -> int | None:
        """Up to which instant of event time panes are complete; None: nothing was measured yet."""
        return self._joining.until(now)
