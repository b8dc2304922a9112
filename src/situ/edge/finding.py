"""Finding events in the root log by what is known of their deliveries: their keys, positions, and when they were made.

On the edge a position is the place in the log. On Spark it is the place in what came in, so the log is read backwards
from when the delivery was stored: every event is in the log before it is delivered. What was read is remembered for the
deliveries that follow, which mostly are of the events that follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from situ.bus.interface import Bus
from situ.bus.names import Names
from situ.deployment.former_terms import in_terms_of_now
from situ.deployment.interpreting import Interpretation
from situ.edge.root_log import read_lines
from situ.event.message import PLACES, Stored
from situ.event.row import Row

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SOME = 200
"""Messages of the log that are read at a time."""
_MOST_REMEMBERED = 50_000


class LogFinder:
    """Finds events of the root log of one zone."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._stream = Names(bus.zone).root_stream
        self._known: dict[str, Row] = {}
        self._generation = 0

    async def find(self, delivered: Sequence[Row], at: int, interpretation: Interpretation) -> dict[str, Row]:
        """By their keys, those of the events of a delivery stored at this time that the log still has, in the terms of
        root as it is now."""
        if interpretation.generation != self._generation or len(self._known) > _MOST_REMEMBERED:
            self._known.clear()
            self._generation = interpretation.generation
        wanted = {row.key for row in delivered}
        places = {row.pos // PLACES for row in delivered}
        if not wanted <= self._known.keys() and len(places) == 1:  # on the edge all are of one message
            (seq,) = places
            self._note([message async for message in self._bus.read(self._stream, seq, seq)], interpretation)
        if not wanted <= self._known.keys():
            await self._read_back(wanted, at, interpretation)
        return {key: self._known[key] for key in wanted & self._known.keys()}

    async def _read_back(self, wanted: set[str], at: int, interpretation: Interpretation) -> None:
        state = await self._bus.state(self._stream)
        last = min(await self._bus.find(self._stream, _EPOCH + timedelta(microseconds=at)), state.last)
        while last >= state.first and not wanted <= self._known.keys():
            first = max(last - _SOME + 1, state.first)
            messages = [message async for message in self._bus.read(self._stream, first, last)]
            self._note(messages, interpretation)
            last = first - 1

    def _note(self, messages: Iterable[Stored], interpretation: Interpretation) -> None:
        for message in messages:
            rows, _ = read_lines(in_terms_of_now(message, interpretation))
            self._known |= {row.key: row for row in rows}
