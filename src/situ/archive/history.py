"""The root log as it ever was: what the bus holds, and before that what the archive does, joined by position.

`ArchivedBus` is a bus whose root log begins where the archive begins. Where both hold a message, the bus is read; where
the bus skips some, because they have left it, also while it is read, the archive fills the gap.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from situ.archive.format import Archive, ArchivedSegment, open_archive
from situ.archive.layout import LINES, messages_of
from situ.bus.interface import Bus, StreamState
from situ.event.instants import microseconds
from situ.event.message import PLACES, StoredMessage
from situ.event.subjects import BusNames
from situ.lang.records import replace
from situ.settings import Settings
from situ.storage.state_folder import open_folder


def segment_messages(archive: Archive, segment: ArchivedSegment, first: int, last: int) -> list[StoredMessage]:
    """Those messages of a segment that are among these, in order."""
    batches = (batch for part in segment.parts for batch in archive.read(part, LINES))
    return [each for each in messages_of(batches) if first <= each.seq <= last]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastLog:
    """Messages of the log that are archived, for tasks that read them without the bus."""

    place: str
    format: str
    segments: tuple[ArchivedSegment, ...]
    first: int
    last: int

    @classmethod
    def of(cls, archive: Archive, settings: Settings, base: Path, first: int, last: int) -> PastLog:
        """Those from ``first`` to ``last``."""
        segments = tuple(each for each in archive.segments() if each.last >= first and each.first <= last)
        place = str(open_folder(settings.log.archive.value, base))
        return cls(place=place, format=settings.log.archive_format, segments=segments, first=first, last=last)

    def before(self, first: int) -> PastLog:
        """Those that a log which begins with this message does not have."""
        segments = tuple(each for each in self.segments if each.first < first)
        return replace(self, segments=segments, last=min(self.last, first - 1))

    def only(self, segment: ArchivedSegment) -> PastLog:
        return replace(self, segments=(segment,))

    def messages(self) -> Iterator[StoredMessage]:
        archive = open_archive(self.place, self.format)
        for segment in self.segments:
            yield from segment_messages(archive, segment, self.first, self.last)


class ArchivedBus:
    """A bus, and the archive of its root log. What is not about the root log, the bus does as ever."""

    def __init__(self, bus: Bus, archive: Archive) -> None:
        self._bus, self._archive = bus, archive
        self._stream = BusNames(bus.zone).root_stream
        self._segments: list[ArchivedSegment] | None = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return getattr(self._bus, name)

    async def state(self, stream: str) -> StreamState:
        """Of the root log: from the first archived message on."""
        found = await self._held(stream)
        segments = await self._known() if stream == self._stream else []
        if not segments or segments[0].first >= found.first:
            return found
        return replace(found, first=segments[0].first, messages=found.last - segments[0].first + 1)

    async def _held(self, stream: str) -> StreamState:
        """What the bus has. One that has nothing, not even where its log ended, stands behind the archive."""
        found = await self._bus.state(stream)
        if found.messages or stream != self._stream or not (segments := await self._known()):
            return found
        last = max(found.last, segments[-1].last)
        return replace(found, first=last + 1, last=last)

    async def find(self, stream: str, at: datetime) -> int:
        """The first sequence stored at or after this time, wherever it is."""
        time, segments = microseconds(at), await self._known() if stream == self._stream else []
        held = await self._held(stream)
        behind = [each for each in segments if each.first < held.first]
        if not behind or behind[-1].end < time:
            return await self._bus.find(stream, at) if held.messages else held.first
        segment = behind[bisect_left(behind, time, key=lambda each: each.end)]
        return await asyncio.to_thread(self._first_since, segment, time)

    def _first_since(self, segment: ArchivedSegment, time: int) -> int:
        places = [
            int(pos) // PLACES
            for part in segment.parts
            for batch in self._archive.read(part, ("pos", "stored"))
            for pos in _since(batch, time)
        ]
        return min(places, default=segment.last + 1)

    def read(
        self, stream: str, first: int, last: int | None = None, *, subjects: Sequence[str] = ()
    ) -> AsyncGenerator[StoredMessage, None]:
        """These messages, in order, from the bus and from the archive."""
        if stream != self._stream or subjects:
            return self._bus.read(stream, first, last, subjects=subjects)
        return self._joined(first, last)

    async def _joined(self, first: int, last: int | None) -> AsyncGenerator[StoredMessage, None]:
        expected = first
        async with aclosing(self._bus.read(self._stream, first, last)) as messages:
            async for message in messages:
                if message.seq > expected:
                    async for each in self._archived(expected, message.seq - 1):
                        yield each
                yield message
                expected = message.seq + 1
        if last is None:
            last = (await self._held(self._stream)).last if expected == first else expected - 1
        async for each in self._archived(expected, last):
            yield each

    async def _archived(self, first: int, last: int) -> AsyncGenerator[StoredMessage, None]:
        if last < first:
            return
        # What has left the bus while it was read may have been archived since the segments were looked up.
        known = await self._known()
        if not known or known[-1].last < last:
            self._segments = None
        for segment in await self._known():
            if segment.last >= first and segment.first <= last:
                for each in await asyncio.to_thread(segment_messages, self._archive, segment, first, last):
                    yield each

    async def _known(self) -> list[ArchivedSegment]:
        if self._segments is None:
            self._segments = await asyncio.to_thread(self._archive.segments)
        return self._segments


def with_archive(bus: Bus, archive: Archive | None) -> Bus:
    """The bus, with the past of its root log if it is archived."""
    return bus if archive is None else cast("Bus", ArchivedBus(bus, archive))


def _since(batch: pa.RecordBatch, time: int) -> Iterator[Any]:
    stored = batch.column("stored").cast(pa.int64()).to_numpy()
    yield from batch.column("pos").to_numpy()[stored >= time]
