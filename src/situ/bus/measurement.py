"""What measurement needs of the bus: the key that says whose events are measured, and what readers acknowledged.

The negotiator writes the key, engines follow it; publishers with a profile in the deployment need not be in it.
`look_at_readers` gives the acknowledgement tracker the state of all consumers.
"""

from __future__ import annotations

import json

from situ.bus.interface import Bus
from situ.event.subjects import BusNames
from situ.quality.measurement.acknowledgements import AckTracker, ConsumerProgress, DeliveryCounts
from situ.quality.measurement.meter import NO_PUBLISHERS, MeasuredPublishers

MEASURED = "measured"


async def publish_measured(bus: Bus, whom: MeasuredPublishers) -> None:
    """From now on the events of these are measured, and of those that the deployment has profiles of."""
    await bus.put(BusNames(bus.zone).metrics, MEASURED, json.dumps(whom.as_json()).encode())


async def measured_publishers(bus: Bus) -> MeasuredPublishers:
    entry = await bus.get(BusNames(bus.zone).metrics, MEASURED)
    return decode_measured(entry.value if entry is not None else None)


def decode_measured(value: bytes | None) -> MeasuredPublishers:
    """Nobody, if that is what an earlier release wrote: whoever negotiates writes it anew when it starts."""
    try:
        return MeasuredPublishers.from_json(json.loads(value)) if value else NO_PUBLISHERS
    except (ValueError, KeyError, TypeError):
        return NO_PUBLISHERS


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# How far the readers of deliveries are, for whoever counts what became of these.


async def look_at_readers(bus: Bus, receipts: AckTracker) -> dict[tuple[str, str], DeliveryCounts]:
    """Deliveries that have become known to be acknowledged or lost, by publisher and type."""
    # Before the readers: what is gone from the stream by now is acknowledged by then, or never will be.
    state = await bus.state(BusNames(bus.zone).out_stream)
    readers = [
        ConsumerProgress(
            name=each.name,
            groups=each.groups,
            acknowledged=each.acknowledged,
            number=each.number,
            handed=each.handed,
            idle=not each.waiting and not each.unacknowledged,
        )
        for each in await bus.consumers()
    ]
    return receipts.look(state.first, state.last, readers)
