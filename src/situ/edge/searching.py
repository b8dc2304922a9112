"""Searching for one event that somebody names: by its id, its key or its position, in the root log or among dead
letters.

Key and position are looked up; an id is searched for in everything the log holds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from situ.bus.interface import Bus
from situ.bus.names import Names
from situ.event.lines import decode_line, stored_lines
from situ.event.message import PLACES, EventKey, Stored, position
from situ.event.row import Row
from situ.event.seal import Seal

Progress = Callable[[str, int, int], None]
Accept = Callable[[Row], Awaitable[bool]]
"""Whether somebody may find it: what he may not find is looked past, as if it were not there."""

_SLACK = timedelta(minutes=10)
_CLOCK = range(10**12, 10**14)
"""Incarnations that begin at the clock are milliseconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to look for: a key, a position or an id."""

    key: EventKey | None = None
    pos: int | None = None
    id: str = ""

    @classmethod
    def parse(cls, text: str, seal: Seal | None = None) -> Wanted:
        """As people write it: as the log has it, or as clients get it, sealed by this seal."""
        client, dot, rest = text.partition(".")
        token, more, stage = (rest if dot else text).partition(".")
        if seal is not None and (numbers := seal.opened(token)) is not None:
            key = EventKey(client, *numbers)
            if not dot:
                return cls(id=f"{numbers[0]}-{numbers[1]}")
            return cls(id=f"{key}.{stage}") if more else cls(key=key)
        try:
            return cls(key=EventKey.parse(text))
        except ValueError:
            pass
        return cls(pos=int(text)) if text.isascii() and text.isdigit() and int(text) >= PLACES else cls(id=text)

    @property
    def needle(self) -> bytes:
        """What the line of the event has in it."""
        if self.key is not None:
            return b'"situkey":' + msgspec.json.encode(str(self.key))
        if self.pos is not None:
            return b'"situpos":' + msgspec.json.encode(str(self.pos))
        return b'"id":' + msgspec.json.encode(self.id)

    def fits(self, row: Row) -> bool:
        if self.key is not None:
            return (row.client, row.incarnation, row.seq) == (self.key.client, self.key.incarnation, self.key.seq)
        return row.pos == self.pos if self.pos is not None else row.id == self.id


async def search_log(
    wanted: Wanted, bus: Bus, progress: Progress | None = None, accept: Accept | None = None
) -> tuple[Stored, Row] | None:
    """The event, with the message of the root log that it is in."""
    stream = Names(bus.zone).root_stream
    state = await bus.state(stream)
    if wanted.pos is not None and state.first <= (seq := wanted.pos // PLACES) <= state.last:
        found = await _among(wanted, bus, stream, seq, seq, needle=b"", accept=accept)
        if found is not None:
            return found
    first = state.first
    if wanted.key is not None and wanted.key.incarnation in _CLOCK:
        began = datetime.fromtimestamp(wanted.key.incarnation / 1000, UTC) - _SLACK
        first = max(first, await bus.find(stream, began))
    return await _among(wanted, bus, stream, first, state.last, needle=wanted.needle, progress=progress, accept=accept)


async def search_letters(wanted: Wanted, bus: Bus, accept: Accept | None = None) -> Row | None:
    """The dead letter of this id, as the event that it is."""
    if not wanted.id:
        return None
    stream = Names(bus.zone).dead_stream
    state = await bus.state(stream)
    found = await _among(wanted, bus, stream, state.first, state.last, needle=wanted.needle, accept=accept)
    return found[1] if found is not None else None


async def _among(
    wanted: Wanted,
    bus: Bus,
    stream: str,
    first: int,
    last: int,
    *,
    needle: bytes,
    progress: Progress | None = None,
    accept: Accept | None = None,
) -> tuple[Stored, Row] | None:
    async with aclosing(bus.read(stream, first, last)) as messages:
        async for message in messages:
            if progress is not None:
                progress(stream, message.seq - first + 1, max(last - first + 1, 1))
            if needle not in message.body:
                continue
            for place, line in enumerate(stored_lines(message)):
                row = decode_line(line, pos=position(message.seq, place))
                if wanted.fits(row) and (accept is None or await accept(row)):
                    return message, row
    return None
