"""Looking at how far the readers of deliveries are, for whoever counts what became of them."""

from __future__ import annotations

from situ.bus.interface import Bus
from situ.bus.names import Names
from situ.quality.receipts import Reader, Receipts, Settled


async def look_at_readers(bus: Bus, receipts: Receipts) -> dict[tuple[str, str], Settled]:
    """Deliveries that have become known to be acknowledged or lost, by publisher and type."""
    # Before the readers: what is gone from the stream by now is acknowledged by then, or never will be.
    state = await bus.state(Names(bus.zone).out_stream)
    readers = [
        Reader(
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
