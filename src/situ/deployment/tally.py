"""What detection has come to so far: counts by policy and by push source, and what was odd, with an example of each.

The same for all engines; parts that were counted elsewhere are added up. Nothing is decided by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from situ.deployment.detecting import Detecting
from situ.deployment.happening import Published
from situ.deployment.progress import Progress
from situ.situation.enrichment.enrich import Enriched, Observed
from situ.situation.meaning.lifecycle import Stage, Transition


@dataclass(frozen=True, slots=True)
class Odd:
    """How often something odd was seen, and one of the cases."""

    count: int = 0
    sample: str = ""


@dataclass(slots=True, kw_only=True)
class Tally:
    """``late_events`` are events that came too late for a policy at least; ``late`` counts them for each."""

    opened: dict[str, int] = field(default_factory=dict)
    """Situations, by policy."""
    detections: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    late_events: int = 0
    events: dict[str, int] = field(default_factory=dict)
    """Those that told something, by push source."""
    unknown: dict[str, Odd] = field(default_factory=dict)
    """Observations of identities that no pull source knows, by push source."""
    failures: dict[str, Odd] = field(default_factory=dict)
    """Tests that failed on values, by their text."""
    merged: dict[str, int] = field(default_factory=dict)
    """Stamps of what situations come from that were too many and became fewer, by policy."""
    released: dict[str, int] = field(default_factory=dict)
    """Events that an administrator let go, by policy."""

    def take_told(self, told: Iterable[Transition]) -> None:
        for each in told:
            if each.detection:
                _count(self.detections, each.situation.policy)
            if each.stage is Stage.OPENED:
                _count(self.opened, each.situation.policy)

    def take_published(self, published: Iterable[Published]) -> None:
        for each in published:
            if each.merged:
                _count(self.merged, each.policy, each.merged)
            if each.released:
                _count(self.released, each.policy, len(each.released))

    def take_late(self, late: Mapping[int, Iterable[str]]) -> None:
        """Positions of events, each with the policies that it came too late for."""
        self.late_events += len(late)
        for policies in late.values():
            for policy in policies:
                _count(self.late, policy)

    def take_observed(self, observed: Iterable[Observed]) -> None:
        for each in observed:
            if each.rows.num_rows:
                _count(self.events, each.rows.column("push")[0].as_py(), each.rows.num_rows)

    def take_enriched(self, enriched: Enriched) -> None:
        for unknown in enriched.unknown:
            _note(self.unknown, unknown.push, Odd(unknown.count, f"{unknown.concept} {unknown.sample}"))
        for failure in enriched.failures:
            _note(self.failures, failure.test, Odd(failure.count, failure.shown))

    def add(self, other: Tally) -> None:
        """With what was counted elsewhere."""
        self.late_events += other.late_events
        pairs = (
            (self.opened, other.opened),
            (self.detections, other.detections),
            (self.late, other.late),
            (self.events, other.events),
            (self.merged, other.merged),
            (self.released, other.released),
        )
        for mine, others in pairs:
            for name, number in others.items():
                _count(mine, name, number)
        for known, seen in ((self.unknown, other.unknown), (self.failures, other.failures)):
            for name, odd in seen.items():
                _note(known, name, odd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What an engine lets others see of detection: its policies, how far they are, and what it has come to."""

    tally: Tally = field(default_factory=Tally)
    progress: Progress = field(default_factory=Progress)
    detecting: Detecting | None = None
    """None: nothing was worked yet."""


def _count(counts: dict[str, int], name: str, number: int = 1) -> None:
    counts[name] = counts.get(name, 0) + number


def _note(known: dict[str, Odd], name: str, odd: Odd) -> None:
    """The last example is shown."""
    known[name] = Odd(known[name].count + odd.count if name in known else odd.count, odd.sample)
