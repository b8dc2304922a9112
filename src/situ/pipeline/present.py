"""The present as detection may count on it: nothing that came before it is still on its way into the batch.

What comes in passes through the query of events before detection can see it. While all is silent the clock alone moves
the watermark, and it must not move past what waits there: it would be late on its arrival.
"""

from __future__ import annotations

from pathlib import Path

from situ.bus.blocking import BlockingBus
from situ.bus.names import Names
from situ.event.message import RECEIVED
from situ.pipeline.offsets import last_batch, read_offset


def taken_of(events: Path) -> int:
    """The last message of what came in that the query of events, with this checkpoint, has put into the root log."""
    done = last_batch(events, "commits")
    return read_offset(events, done).seq if done is not None else 0


def present(bus: BlockingBus, names: Names, now: int, *, taken: int, last: int) -> int:
    """The time of now, or when the first message came that batches up to ``last`` of the root log do not have.

    All that came in up to ``taken`` is in the root log.
    """
    waiting = (_received(bus, names.in_stream, taken), _received(bus, names.root_stream, last))
    return min([now, *(each for each in waiting if each is not None)])


def _received(bus: BlockingBus, log: str, behind: int) -> int | None:
    """When the first message behind this one was received; None if there is none."""
    state = bus.state(log)
    place = max(behind + 1, state.first)
    if not state.messages or place > state.last:
        return None
    message = next(iter(bus.read(log, place, place)), None)
    if message is None:
        return 0  # it was taken and removed meanwhile: what is behind it, the next look will tell
    return int(message.headers.get(RECEIVED, message.at))
