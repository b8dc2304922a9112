"""Follows the root log of a run and writes it to the archive, segment by segment.

A segment is written when enough has come or when the oldest event that is not archived has waited long enough. How far
the archive is, the archive itself says: nothing is kept elsewhere, so no two places can disagree after a crash. What
fails is tried again, for ever; the log keeps what was not archived for as long as its limits allow, and what leaves it
before is counted and said. The engine does not wait for the archive.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta

from situ.archive.format import Archive, ArchiveDescription, ArchivedSegment
from situ.archive.layout import ArchiveTerms, tables_of
from situ.bus.interface import Bus, StreamState, wall_clock
from situ.event.message import StoredMessage
from situ.event.subjects import BusNames
from situ.lang.catalogue import ARCHIVE_AWAY, ARCHIVE_GAP, ARCHIVE_OF_ANOTHER_LOG
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.registry.run_metrics import ArchiveMetrics
from situ.registry.snapshots import current_deployment, fetch_deployment
from situ.stages.interpret import Interpretation

_log = logging.getLogger("situ.archive")

MOST_EVENTS, MOST_BYTES = 200_000, 48 * 1024 * 1024
"""Of a segment: what an archiver has in memory, and what is written at once."""
_LOOK, _LONGEST = 1.0, 30.0
"""Seconds between two looks at the log, and at most between two tries after a failure."""
_MICROSECOND = timedelta(microseconds=1)


class Archiver:
    """The archiver of one run. ``metrics`` is how far it is."""

    def __init__(
        self,
        bus: Bus,
        archive: Archive,
        *,
        project: str,
        place: str,
        every: timedelta,
        most: int = MOST_EVENTS,
        clock: Callable[[], int] = wall_clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """``every`` is how long an event waits at most before it is archived, if the store is there."""
        self._bus, self._archive = bus, archive
        self._stream = BusNames(bus.zone).root_stream
        self._description = ArchiveDescription(project=project, zone=bus.zone)
        self._every, self._most = every // _MICROSECOND, most
        self._clock, self._sleep = clock, sleep
        self._begun = False
        self._last: ArchivedSegment | None = None
        self._again: ArchivedSegment | None = None
        """A segment that was begun and is to be written again."""
        self._terms: tuple[int, ArchiveTerms] | None = None
        self.metrics = ArchiveMetrics(place=place)

    async def run(self) -> None:
        """For ever."""
        pause = _LOOK
        while True:
            try:
                more = await self.step()
                if self.metrics.failing:
                    _log.warning("The archive is there again.")
                    self.metrics = replace(self.metrics, failing="", since=0)
                pause = _LOOK
            except (SituError, OSError, TimeoutError) as error:
                self._failed(error)
                more, pause = False, min(2 * pause, _LONGEST)
            await self._sleep(0 if more else pause)

    def _failed(self, error: Exception) -> None:
        problem = error.problems[0] if isinstance(error, SituError) else ARCHIVE_AWAY(reason=str(error))
        said = f"{problem.code.code} {problem.message}"
        if self.metrics.failing != said:
            _log.warning("%s It is tried again; the log keeps what is not archived.", said)
        self._begun = False  # what was begun is finished first, with the messages that it has
        since = self.metrics.since or self._clock()
        self.metrics = replace(self.metrics, failing=said, since=since)

    async def step(self) -> bool:
        """Write the next segment, if it is time; whether there is more to be written at once."""
        if not self._begun:
            await asyncio.to_thread(self._begin)
        state = await self._bus.state(self._stream)
        await self._check(state)
        if self._again is not None:
            await self._write(await self._read(self._again.first, self._again.last, self._again), state)
            self._again = None
            return True
        done = self._last.last if self._last is not None else state.first - 1
        oldest = await self._at(max(done + 1, state.first)) if state.last > done else None
        self._tell(state, done, oldest)
        if oldest is None:
            return False
        enough = (state.last - done) * max(state.size // max(state.messages, 1), 1) >= MOST_BYTES
        if not enough and self._clock() - oldest < self._every:
            return False
        await self._write(await self._read(done + 1, state.last), state)
        return self._last is not None and self._last.last < state.last

    def _begin(self) -> None:
        self._archive.begin(self._description)
        self._last = self._archive.last()
        self._again = self._archive.pending()
        self._begun = True

    async def _check(self, state: StreamState) -> None:
        """N173 if the log is not the one that the archive has the beginning of."""
        last = self._last
        if last is None:
            return
        reason = ""
        if state.last < last.last:
            reason = f"it ends with message {last.last}, and the log with {state.last}"
        elif state.first <= last.last:
            found = [each async for each in self._bus.read(self._stream, last.last, last.last)]
            if found and _mark(found[0]) != last.mark:
                reason = f"its last message, {last.last}, is another one in the log"
        if reason:
            raise SituError(ARCHIVE_OF_ANOTHER_LOG(reason=reason))

    async def _at(self, seq: int) -> int | None:
        """When the first message from this one on was stored."""
        async with aclosing(self._bus.read(self._stream, seq, seq)) as messages:
            async for message in messages:
                return message.at
        return None

    async def _read(self, first: int, last: int, again: ArchivedSegment | None = None) -> list[StoredMessage]:
        """The messages of a segment; as many as belong into one, unless it was begun already."""
        found: list[StoredMessage] = []
        events = size = 0
        async with aclosing(self._bus.read(self._stream, first, last)) as messages:
            async for message in messages:
                found.append(message)
                events += message.body.count(b"\n") - 1
                size += len(message.body)
                if again is None and (events >= self._most or size >= MOST_BYTES):
                    break
        return found

    async def _write(self, messages: list[StoredMessage], state: StreamState) -> None:
        if not messages:
            return  # what was begun has left the log: it is counted with the next segment
        terms = await self._terms_now()
        before, again = self._last, self._again
        due = 1 + before.last if before is not None else messages[0].seq
        lost = max(messages[0].seq - due, 0)
        segment = ArchivedSegment(
            number=1 if before is None else before.number + 1,
            # What is written again keeps its name, even if the log has lost a part of it meanwhile.
            first=again.first if again is not None else messages[0].seq,
            last=again.last if again is not None else messages[-1].seq,
            begin=messages[0].at,
            end=messages[-1].at,
            events=sum(each.body.count(b"\n") - 1 for each in messages),
            mark=_mark(messages[-1]),
            lost=lost,
            parts=(),
        )
        self._last = await asyncio.to_thread(self._append, segment, messages, terms)
        if lost:
            gap = ARCHIVE_GAP(messages=lost, first=due, last=messages[0].seq - 1)
            _log.error("%s %s", gap.code.code, gap.message)
        self.metrics = replace(
            self.metrics,
            events=self.metrics.events + segment.events,
            segments=segment.number,
            lost=self.metrics.lost + lost,
        )
        self._tell(state, self._last.last, None)

    def _append(self, segment: ArchivedSegment, messages: list[StoredMessage], terms: ArchiveTerms) -> ArchivedSegment:
        return self._archive.append(segment, tables_of(messages, terms))

    def _tell(self, state: StreamState, done: int, oldest: int | None) -> None:
        behind = max(state.last - done, 0)
        self.metrics = replace(self.metrics, last=done, behind=behind, oldest=oldest or 0)

    async def _terms_now(self) -> ArchiveTerms:
        current = await current_deployment(self._bus)
        version = current.version if current is not None else 0
        if self._terms is None or self._terms[0] != version:
            deployment = await fetch_deployment(self._bus)
            generation = Interpretation.of(deployment).generation
            self._terms = version, ArchiveTerms(deployment, generation)
        return self._terms[1]


def _mark(message: StoredMessage) -> str:
    return f"{message.at} {message.id}"
