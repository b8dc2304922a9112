"""What policies see: of the events of the log those that are visible to what they read as, in both epochs.

What is not visible to a policy is left out before it remembers anything of it, does not tell it how far its sources
are, and is not late for it. All that is worked out once for policies that read alike, and only of types that policies
listen to. The same for all engines; without scopes there is nothing of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec
import numpy as np

from situ.deployment.detecting import Detecting, heard_as
from situ.deployment.hiding import Hidden
from situ.deployment.seeing import Seeing
from situ.event.instants import microseconds, read_instant
from situ.event.lines import decode_line, read_stamp, stored_lines
from situ.event.message import CLIENT, STAMP, Stored, position, split_lines
from situ.event.row import Row
from situ.situation.enrichment.observe_columns import Heard
from situ.situation.meaning.watermark import Seen
from situ.subscription.sight import Look
from situ.tags import TagSet
from situ.types.scalars import read_timestamp

_MOST_REMEMBERED = 10_000


class _Line(msgspec.Struct, gc=False):
    """What of a line of the log is enough to decide, as long as its epoch is the one in force."""

    type: str
    time: str
    data: msgspec.Raw
    siturecv: str = ""
    situtags: int = 0
    situepoch: int = 0
    situbits: str = ""
    situparts: str = ""


_decode = msgspec.json.Decoder(_Line).decode


@dataclass(frozen=True, slots=True)
class _Event:
    pos: int
    type: str
    heard: Heard
    look: Look


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Of some events: what is hidden from whom, and how far push sources are by what is not."""

    hidden: Hidden
    seen: dict[str, Seen]


class Reading:
    """The policies of one version, and what they read as."""

    def __init__(self, detecting: Detecting, seeing: Seeing) -> None:
        self._observing, self._seeing = detecting.observing, seeing
        self._listened = detecting.observing.types
        self._reads = sorted(
            {watch.reads for watch in detecting.watches.values() if watch.reads is not None},
            key=lambda tags: (tags.named, tags.rest),
        )
        self._known: dict[tuple[Look, TagSet], bool] = {}

    @classmethod
    def of(cls, detecting: Detecting, seeing: Seeing | None) -> Reading | None:
        """None: there are no scopes, and policies see everything."""
        return cls(detecting, seeing) if seeing is not None else None

    def rows(self, rows: Iterable[Row]) -> Shown:
        """What policies see of these events."""
        look, is_own = self._seeing.look, self._observing.is_own
        return self._shown(
            [
                _Event(row.pos, row.type, Heard(row.time, row.recv, is_own(row.client), row.data), look(row))
                for row in rows
                if row.type in self._listened
            ]
        )

    def messages(self, messages: Iterable[Stored]) -> Shown:
        """What they see of these messages of the log, in the terms of now."""
        return self._shown([event for message in messages for event in self._events(message)])

    def _events(self, message: Stored) -> Iterator[_Event]:
        common = self._common(message)
        for place, line in enumerate(split_lines(message.body) if common is not None else stored_lines(message)):
            try:
                read = _decode(line)
            except msgspec.DecodeError:
                continue  # nobody else can read it
            if read.type not in self._listened:
                continue
            pos = position(message.seq, place)
            look = common or self._look(read, line, pos)
            own = self._observing.is_own(message.headers.get(CLIENT, ""))
            heard = Heard(_instant(read.time), _instant(read.siturecv or read.time), own, read.data)
            yield _Event(pos, read.type, heard, look)

    def _common(self, message: Stored) -> Look | None:
        """What all events of a message look like, if it says so and that is enough to decide."""
        if not (said := message.headers.get(STAMP)):
            return None
        tags, epoch, bits = read_stamp(said)
        return (tags, epoch, bits, bits, "") if epoch == self._seeing.epoch else None

    def _look(self, read: _Line, line: bytes, pos: int) -> Look:
        if read.situepoch != self._seeing.epoch:
            return self._seeing.look(decode_line(line, pos=pos))
        bits = int(read.situbits, 16) if read.situbits else 0
        return read.situtags, read.situepoch, bits, bits, read.situparts

    def _shown(self, events: list[_Event]) -> Shown:
        hidden: dict[TagSet, np.ndarray[tuple[int], np.dtype[np.int64]]] = {}
        seen: dict[str, Seen] = {}
        for reads in self._reads:
            positions: list[int] = []
            heard: dict[str, list[Heard]] = {}
            for event in events:
                if self._sees(event.look, reads):
                    heard.setdefault(event.type, []).append(event.heard)
                else:
                    positions.append(event.pos)
            if positions:
                hidden[reads] = np.array(positions, np.int64)
            seen |= {heard_as(push, reads): latest for push, latest in self._observing.seen(heard).items()}
        return Shown(hidden=hidden, seen=seen)

    def _sees(self, look: Look, reads: TagSet) -> bool:
        found = self._known.get((look, reads))
        if found is None:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            found = self._known[look, reads] = self._seeing.sees(look, reads)
        return found


def _instant(text: str) -> int:
    found = read_instant(text)
    return microseconds(read_timestamp(text)) if found is None else found
