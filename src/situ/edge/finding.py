"""Finding events in the root log by what is known of their deliveries: their keys, positions, and when they were made.

On the edge a position is the place in the log. On Spark it is the place in what came in, so the log is read backwards
from when the delivery was stored: every event is in the log before it is delivered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from situ.bus.interface import Bus
from situ.bus.names import Names
from situ.deployment.former_terms import in_terms_of_now
from situ.deployment.plan import Plan
from situ.edge.root_log import read_lines
from situ.event.message import CLIENT, PLACES, Stored
from situ.event.row import Row

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SOME = 500
"""Messages of the log that are read at a time."""


async def find_in_log(bus: Bus, delivered: Sequence[Row], at: int, plan: Plan) -> dict[str, Row]:
    """By their keys, those of the events of a delivery stored at this time that the root log still has."""
    stream = Names(bus.zone).root_stream
    search = _Search({row.key: row for row in delivered}, plan)
    for seq in sorted({row.pos // PLACES for row in delivered}):
        async for message in bus.read(stream, seq, seq):
            search.look_at([message])
    state = await bus.state(stream)
    last = min(await bus.find(stream, _EPOCH + timedelta(microseconds=at)), state.last)
    while search.left and last >= state.first:
        first = max(last - _SOME + 1, state.first)
        search.look_at([message async for message in bus.read(stream, first, last)])
        last = first - 1
    return search.found


class _Search:
    def __init__(self, wanted: dict[str, Row], plan: Plan) -> None:
        self.found: dict[str, Row] = {}
        self.left = dict(wanted)
        self._plan = plan

    def look_at(self, messages: Iterable[Stored]) -> None:
        clients = {row.client for row in self.left.values()}
        for message in messages:
            if message.headers.get(CLIENT, "") not in clients:
                continue
            rows, _ = read_lines(in_terms_of_now(message, self._plan.interpretation).body)
            for row in rows:
                if self.left.pop(row.key, None) is not None:
                    self.found[row.key] = row
