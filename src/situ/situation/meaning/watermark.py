"""The watermark: how far event time is settled, judged from what push sources sent and from the clock.

Nothing older than it is waited for. Each source is as far as its latest event, less the lateness it is granted; the one
that is least far counts. A source that has been silent for longer than its idle time is not waited for, and when all
are silent the watermark goes on with the clock, so that what must be absent is reported although nothing more arrives.

What is kept of a source are maxima: those of parts of a stream, taken anywhere in any order, are merged into the same.
Times are whole microseconds; the clock is an input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

FORMAT = 1


class Seen(NamedTuple):
    """What is remembered of a source that sent something.

    ``time`` is the latest of its event times, none of which counts as later than it was received; ``received`` is when
    the event that has it came, the latest of them if there are several; ``heard`` is when anything came last.
    """

    time: int
    received: int
    heard: int

    def merge(self, other: Seen) -> Seen:
        return Seen(*max(self[:2], other[:2]), max(self.heard, other.heard))

    @property
    def delay(self) -> int:
        """How long after it happened the latest event came."""
        return self.received - self.time


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a policy waits for a source: for events out of order, and for any at all."""

    lateness: int
    idle: int


def seen_of(times: np.ndarray, received: np.ndarray) -> Seen | None:
    """What is remembered of events of one source; None if there are none."""
    if len(times) == 0:
        return None
    capped = np.minimum(times, received)
    highest = int(capped.max())
    return Seen(highest, int(received[capped == highest].max()), int(received.max()))


def merged(*parts: Mapping[str, Seen]) -> dict[str, Seen]:
    """What was seen of sources in several parts of their streams."""
    found: dict[str, Seen] = {}
    for part in parts:
        for source, seen in part.items():
            found[source] = found[source].merge(seen) if source in found else seen
    return found


def watermark(
    seen: Mapping[str, Seen], sources: Mapping[str, Patience], clock: int, reached: int | None = None
) -> int | None:
    """How far event time is settled for a policy that listens to these push sources; None: not at all yet.

    ``reached`` is how far it has been before: it never goes back.
    """
    sent = {source: seen[source] for source in sources if source in seen}
    if not sent:
        return reached
    waited_for = [
        each.time - sources[source].lateness
        for source, each in sent.items()
        if clock - each.heard <= sources[source].idle
    ]
    now = min(waited_for) if waited_for else _in_silence(max(sent.values()), [sources[each] for each in sent], clock)
    return now if reached is None else max(now, reached)


def waits_for(seen: Mapping[str, Seen], sources: Mapping[str, Patience], clock: int) -> str | None:
    """The source that holds the watermark back: of those that are not idle the one that is least far; None: all are."""
    awake = [source for source in sources if source in seen and clock - seen[source].heard <= sources[source].idle]
    return min(awake, key=lambda source: (seen[source].time - sources[source].lateness, source), default=None)


def _in_silence(latest: Seen, sources: list[Patience], clock: int) -> int:
    """The clock, less what was granted. Events that live in the past go on from where they are at its speed."""
    return min(clock - each.lateness - max(0, latest.delay - each.lateness - each.idle) for each in sources)


def seen_as_json(seen: Mapping[str, Seen]) -> dict[str, Any]:
    """As it is stored."""
    return {"version": FORMAT, "sources": {source: list(seen[source]) for source in sorted(seen)}}


def seen_from_json(stored: Mapping[str, Any]) -> dict[str, Seen]:
    if stored.get("version") != FORMAT:
        raise ValueError(f"watermarks are stored in version {FORMAT} of their form, this is {stored.get('version')}")
    return {source: Seen(*numbers) for source, numbers in stored["sources"].items()}
