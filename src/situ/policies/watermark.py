"""The watermark: how far event time is settled, judged from what push sources sent and from the clock.

Nothing older than it is waited for. Each source is as far as its latest event, less the lateness it is granted; the one
that is least far counts. A source that has been silent for longer than its idle time is not waited for, and when all
are silent the watermark goes on with the clock, so that what must be absent is reported although nothing more arrives.
One that was never heard of is waited for, too, until its idle time has passed since the policy began to listen.

Where policies publish what others listen to, the watermark of those who listen is never beyond what the others have
decided and published: what these still have to say is not late (:mod:`situ.stages.detect.progress` knows how far that
is).

What is kept of a source are maxima and minima: those of parts of a stream, taken anywhere in any order, are merged into
the same. Times are whole microseconds; the clock is an input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

FORMAT = 1
_OF_POLICIES = "*"
"""Before the name of a push source: what policies brought of it."""


class SourceTimes(NamedTuple):
    """What is remembered of a source that sent something.

    ``time`` is the latest of its event times, none of which counts as later than it was received; ``received`` is when
    the event that has it came, the latest of them if there are several; ``heard`` is when anything came last, ``first``
    when anything came at all.
    """

    time: int
    received: int
    heard: int
    first: int = 0

    def merge(self, other: SourceTimes) -> SourceTimes:
        return SourceTimes(*max(self[:2], other[:2]), max(self.heard, other.heard), min(self.first, other.first))

    @property
    def delay(self) -> int:
        """How long after it happened the latest event came."""
        return self.received - self.time


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTimeouts:
    """How long a policy waits for a source: for events out of order, and for any at all."""

    lateness: int
    idle: int


def source_times_of(times: np.ndarray, received: np.ndarray) -> SourceTimes | None:
    """What is remembered of events of one source; None if there are none."""
    if len(times) == 0:
        return None
    capped = np.minimum(times, received)
    highest = int(capped.max())
    return SourceTimes(highest, int(received[capped == highest].max()), int(received.max()), int(received.min()))


def of_policies(source: str) -> str:
    """The name under which it is remembered how far the events of policies are that a source takes."""
    return f"{_OF_POLICIES}{source}"


def merge_source_times(*parts: Mapping[str, SourceTimes]) -> dict[str, SourceTimes]:
    """What was seen of sources in several parts of their streams."""
    found: dict[str, SourceTimes] = {}
    for part in parts:
        for source, seen in part.items():
            found[source] = found[source].merge(seen) if source in found else seen
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkInputs:
    """How a policy listens: since when, to which sources that it waits for before it heard of them, and to whom else.

    ``fed`` is how far those policies are whose events it reads, by name; None: nothing of it is settled yet.
    """

    since: int = 0
    awaited: frozenset[str] = frozenset()
    fed: Mapping[str, int | None] = field(default_factory=dict)


_ALONE = WatermarkInputs()


def watermark(
    seen: Mapping[str, SourceTimes],
    sources: Mapping[str, SourceTimeouts],
    clock: int,
    reached: int | None = None,
    listening: WatermarkInputs = _ALONE,
) -> int | None:
    """How far event time is settled for a policy that listens to these push sources; None: not at all yet.

    ``reached`` is how far it has been before: it never goes back.
    """
    sent = {source: seen[source] for source in sources if source in seen}
    fed = [each for each in listening.fed.values() if each is not None]
    if _unheard(sent, sources, clock, listening) or len(fed) < len(listening.fed):
        return reached
    waited_for = fed + [
        each.time - sources[source].lateness
        for source, each in sent.items()
        if clock - each.heard <= sources[source].idle
    ]
    if not sent and not fed:
        return reached
    now = min(waited_for) if waited_for else _in_silence(max(sent.values()), [sources[each] for each in sent], clock)
    return now if reached is None else max(now, reached)


def waits_for(
    seen: Mapping[str, SourceTimes],
    sources: Mapping[str, SourceTimeouts],
    clock: int,
    listening: WatermarkInputs = _ALONE,
) -> str | None:
    """What holds the watermark back: a source that was not heard of yet, else the least far of the sources that are not
    idle and of the policies whose events are read; None: nothing does."""
    unheard = _unheard(seen, sources, clock, listening)
    undecided = [f"policy {name}" for name, far in sorted(listening.fed.items()) if far is None]
    if unheard or undecided:
        return (unheard + undecided)[0]
    awake = [
        (seen[source].time - sources[source].lateness, source)
        for source in sources
        if source in seen and clock - seen[source].heard <= sources[source].idle
    ]
    awake += [(far, f"policy {name}") for name, far in listening.fed.items() if far is not None]
    return min(awake)[1] if awake else None


def _unheard(
    seen: Mapping[str, SourceTimes], sources: Mapping[str, SourceTimeouts], clock: int, listening: WatermarkInputs
) -> list[str]:
    """The sources that nothing was heard of and that are still waited for.

    Publishers that begin together need not do so when the policy does: what counts is when the first of them did.
    """
    first = min((seen[source].first for source in sources if source in seen), default=0)
    begun = max(listening.since, first)
    return sorted(
        source for source in listening.awaited if source not in seen and clock - begun <= sources[source].idle
    )


def _in_silence(latest: SourceTimes, sources: list[SourceTimeouts], clock: int) -> int:
    """The clock, less what was granted. Events that live in the past go on from where they are at its speed."""
    return min(clock - each.lateness - max(0, latest.delay - each.lateness - each.idle) for each in sources)


def source_times_as_json(seen: Mapping[str, SourceTimes]) -> dict[str, Any]:
    """As it is stored."""
    return {"version": FORMAT, "sources": {source: list(seen[source]) for source in sorted(seen)}}


def source_times_from_json(stored: Mapping[str, Any]) -> dict[str, SourceTimes]:
    if stored.get("version") != FORMAT:
        raise ValueError(f"watermarks are stored in version {FORMAT} of their form, this is {stored.get('version')}")
    return {source: SourceTimes(*numbers) for source, numbers in stored["sources"].items()}
