"""Panes: what engines measure of one publisher and type in ten seconds of event time; and windows of panes.

`Pane` and `Sketch` are the measurements, `PaneStore` keeps those of the last ten minutes by profile, `measure_window`
says what the properties of a `PaneWindow` are measured to be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Panes of the same publisher, type and start that were measured apart add up to the one that would have been measured
# together, in any order; so do those of a window.

LENGTH = 10_000_000
"""Of a pane, in µs of event time."""
GROWTH = 1.05
"""Each bucket of a sketch ends at this multiple of where the one before ends: values are right within 2.5 %."""

_LOG_GROWTH = math.log(GROWTH)


def pane_of(time: int) -> int:
    """The start of the pane that an event of this time belongs to, in µs."""
    return time // LENGTH * LENGTH


def bucket_of(micros: int) -> int:
    """The bucket of a duration in µs: 0 for none, and for less than none, too."""
    return 0 if micros < 1 else 1 + math.floor(math.log(micros) / _LOG_GROWTH)


def middle_of(bucket: int) -> float:
    """The duration in µs that stands for all in a bucket."""
    return 0.0 if bucket == 0 else math.exp((bucket - 0.5) * _LOG_GROWTH)


@dataclass(frozen=True, slots=True)
class Sketch:
    """Durations, counted in buckets."""

    counts: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, durations: Iterable[int]) -> Sketch:
        """The sketch of durations in µs."""
        counts: dict[int, int] = {}
        for each in durations:
            bucket = bucket_of(each)
            counts[bucket] = counts.get(bucket, 0) + 1
        return cls(counts)

    def __add__(self, other: Sketch) -> Sketch:
        counts = dict(self.counts)
        for bucket, count in other.counts.items():
            counts[bucket] = counts.get(bucket, 0) + count
        return Sketch(counts)

    def quantile(self, share: float) -> float | None:
        """The duration in µs that this share of all does not exceed; None of none at all."""
        wanted = math.ceil(share * sum(self.counts.values()))
        for bucket in sorted(self.counts):
            wanted -= self.counts[bucket]
            if wanted <= 0:
                return middle_of(bucket)
        return None


@dataclass(frozen=True, slots=True)
class SequenceRange:
    """The numbers of the events that arrived under one incarnation of a publisher's keys."""

    least: int
    most: int
    distinct: int

    def __add__(self, other: SequenceRange) -> SequenceRange:
        return SequenceRange(min(self.least, other.least), max(self.most, other.most), self.distinct + other.distinct)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pane:
    """What was measured of one publisher and type between ``start`` and ten seconds later, in µs of event time."""

    publisher: str
    type: str
    start: int
    events: int = 0
    last: int | None = None
    """The latest time of an event."""
    confidence: float = 0.0
    """The sum of stated confidences in per cent, and how many there are."""
    confident: int = 0
    latency: Sketch = Sketch()
    """From ingress to delivery."""
    freshness: Sketch = Sketch()
    """From event time to delivery."""
    ahead: int = 0
    """Events whose time is later than their delivery: some clock is wrong."""
    numbers: Mapping[int, SequenceRange] = field(default_factory=lambda: MappingProxyType({}))
    """By the incarnation of their keys; of this type alone, though a publisher numbers all its types together."""
    gap: int | None = None
    """The longest time in µs from one event of a source to the next, which is in this pane; None: not measured."""
    disordered: int = 0
    """Events that are older than the latest seen of their source."""
    disordered_across: int = 0
    """Events that are older than the latest seen of any source of the type."""
    accepted: int = 0
    """Deliveries that are to be acknowledged, and of which it became known in this pane what became of them."""
    delivered: float = 0
    """Those of them that were; parts, where some of several were."""

    @property
    def profile(self) -> str:
        """The id of the profile that speaks of the same events."""
        return f"{self.publisher}/{self.type}"

    def __add__(self, other: Pane) -> Pane:
        """Both together; publisher and type are those of the first."""
        numbers = dict(self.numbers)
        for incarnation, each in other.numbers.items():
            numbers[incarnation] = numbers[incarnation] + each if incarnation in numbers else each
        times = [each for each in (self.last, other.last) if each is not None]
        return Pane(
            publisher=self.publisher,
            type=self.type,
            start=min(self.start, other.start),
            events=self.events + other.events,
            last=max(times, default=None),
            confidence=self.confidence + other.confidence,
            confident=self.confident + other.confident,
            latency=self.latency + other.latency,
            freshness=self.freshness + other.freshness,
            ahead=self.ahead + other.ahead,
            numbers=numbers,
            gap=max((each for each in (self.gap, other.gap) if each is not None), default=None),
            disordered=self.disordered + other.disordered,
            disordered_across=self.disordered_across + other.disordered_across,
            accepted=self.accepted + other.accepted,
            delivered=self.delivered + other.delivered,
        )

    def as_json(self) -> dict[str, Any]:
        """Plain data, without what says nothing."""
        whole = {
            "publisher": self.publisher,
            "type": self.type,
            "start": self.start,
            "events": self.events,
            "last": self.last,
            "confidence": self.confidence,
            "confident": self.confident,
            "latency": {str(bucket): count for bucket, count in self.latency.counts.items()},
            "freshness": {str(bucket): count for bucket, count in self.freshness.counts.items()},
            "ahead": self.ahead,
            "numbers": {str(key): [each.least, each.most, each.distinct] for key, each in self.numbers.items()},
            "gap": self.gap,
            "disordered": self.disordered,
            "disordered_across": self.disordered_across,
            "accepted": self.accepted,
            "delivered": self.delivered,
        }
        return {key: value for key, value in whole.items() if value or (value == 0 and key in ("start", "last", "gap"))}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Pane:
        plain = {key: each for key, each in value.items() if key not in ("latency", "freshness", "numbers")}
        return cls(
            **plain,
            latency=_sketch(value.get("latency", {})),
            freshness=_sketch(value.get("freshness", {})),
            numbers={int(key): SequenceRange(*each) for key, each in value.get("numbers", {}).items()},
        )


def _sketch(value: Mapping[str, int]) -> Sketch:
    return Sketch({int(bucket): count for bucket, count in value.items()})


def merge_panes(panes: Iterable[Pane]) -> dict[tuple[str, str, int], Pane]:
    """Panes by publisher, type and start, those of the same added up."""
    found: dict[tuple[str, str, int], Pane] = {}
    for each in panes:
        key = (each.publisher, each.type, each.start)
        found[key] = found[key] + each if key in found else each
    return found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Windows.

WINDOW = 60_000_000
LONGEST = 600_000_000
ENOUGH = 20
"""Events; a window that has fewer grows, up to the longest."""
IN_ORDER = 0.999
"""The share of events that have to be in order to call all of them so."""
MINUTE = 60_000_000
_PERCENTILE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class PaneWindow:
    """Panes of one profile, from ``start`` to ``end``."""

    start: int
    end: int
    panes: tuple[Pane, ...]
    numbers: tuple[SequenceRange, ...] = ()
    """Of all types of the publisher, which numbers them together; one for each incarnation."""

    @property
    def events(self) -> int:
        return sum(each.events for each in self.panes)

    @property
    def last(self) -> int | None:
        return max((each.last for each in self.panes if each.last is not None), default=None)

    @property
    def gap(self) -> int | None:
        """The longest time between two events of a source; None, if nobody measured it."""
        gaps = [each.gap for each in self.panes if each.events]
        known = [each for each in gaps if each is not None]
        return max(known) if known and len(known) == len(gaps) else None


@dataclass(slots=True)
class PaneStore:
    """All panes that windows are made of."""

    panes: dict[str, dict[int, Pane]] = field(default_factory=dict)
    """Profile → start → pane."""
    publishers: dict[str, set[str]] = field(default_factory=dict)
    """Publisher → its profiles, of types without declared ones, too."""

    def add(self, panes: Iterable[Pane]) -> None:
        for each in panes:
            mine = self.panes.setdefault(each.profile, {})
            mine[each.start] = mine[each.start] + each if each.start in mine else each
            self.publishers.setdefault(each.publisher, set()).add(each.profile)

    def prune(self, before: int) -> None:
        """Forget panes that start earlier."""
        for profile in list(self.panes):
            kept = {start: pane for start, pane in self.panes[profile].items() if start >= before}
            if kept:
                self.panes[profile] = kept
                continue
            del self.panes[profile]
            publisher = profile.partition("/")[0]
            self.publishers[publisher].discard(profile)
            if not self.publishers[publisher]:
                del self.publishers[publisher]

    def forget(self, profile: str) -> None:
        """What was measured of one that is no longer there says nothing about the next of the same name."""
        self.panes.pop(profile, None)

    def window(self, profile: str, since: int, end: int) -> PaneWindow | None:
        """The shortest window up to ``end`` that has enough events; None, if it would begin before ``since``."""
        mine = self.panes.get(profile, {})
        start = end - WINDOW
        if start < since:
            return None
        events = sum(mine[each].events for each in range(start, end, LENGTH) if each in mine)
        while events < ENOUGH and end - start < LONGEST:
            start -= LENGTH
            if start < since:
                return None
            events += mine[start].events if start in mine else 0
        panes = tuple(mine[each] for each in range(start, end, LENGTH) if each in mine)
        return PaneWindow(
            start=start, end=end, panes=panes, numbers=self._numbers(profile.partition("/")[0], start, end)
        )

    def _numbers(self, publisher: str, start: int, end: int) -> tuple[SequenceRange, ...]:
        found: dict[int, SequenceRange] = {}
        for profile in self.publishers.get(publisher, ()):
            mine = self.panes.get(profile, {})
            for pane in (mine[each] for each in range(start, end, LENGTH) if each in mine):
                for incarnation, each in pane.numbers.items():
                    found[incarnation] = found[incarnation] + each if incarnation in found else each
        return tuple(found.values())


# ── what a window says ──


def measure_window(window: PaneWindow, properties: Iterable[str], declared_rate: float | None) -> dict[str, float]:
    """Property → its measured value, in its unit; of those that are wanted and that the window says something about."""
    found = {}
    for each in properties:
        measure = _MEASURES.get(each)
        value = measure(window, declared_rate) if measure is not None else None
        if value is not None:
            found[each] = value
    return found


def _rate(window: PaneWindow, declared: float | None) -> float:
    rate = window.events * MINUTE / (window.end - window.start)
    if window.last is not None and window.last < window.end:
        return min(rate, MINUTE / (window.end - window.last))
    return rate


def _confidence(window: PaneWindow, declared: float | None) -> float | None:
    count = sum(each.confident for each in window.panes)
    return sum(each.confidence for each in window.panes) / count if count else None


def _percentile(sketches: Iterable[Sketch]) -> float | None:
    together = Sketch()
    for each in sketches:
        together += each
    return together.quantile(_PERCENTILE)


def _latency(window: PaneWindow, declared: float | None) -> float | None:
    found = _percentile(each.latency for each in window.panes)
    return None if found is None else found / 1_000


def _freshness(window: PaneWindow, declared: float | None) -> float | None:
    found = _percentile(each.freshness for each in window.panes)
    return None if found is None else found / 1_000_000


def _completeness(window: PaneWindow, declared: float | None) -> float | None:
    if window.numbers:
        expected = sum(each.most - each.least + 1 for each in window.numbers)
        return min(1.0, sum(each.distinct for each in window.numbers) / expected)
    if not declared:
        return None
    return min(1.0, window.events * MINUTE / (declared * (window.end - window.start)))


def _reliability(window: PaneWindow, declared: float | None) -> float | None:
    accepted = sum(each.accepted for each in window.panes)
    return min(1.0, sum(each.delivered for each in window.panes) / accepted) if accepted else None


def _order(window: PaneWindow, declared: float | None) -> float | None:
    """The place of a level: none, source, total."""
    if not window.events:
        return None
    if 1 - sum(each.disordered for each in window.panes) / window.events < IN_ORDER:
        return 0.0
    return 2.0 if 1 - sum(each.disordered_across for each in window.panes) / window.events >= IN_ORDER else 1.0


_MEASURES: Mapping[str, Callable[[PaneWindow, float | None], float | None]] = {
    "rate": _rate,
    "confidence": _confidence,
    "latency": _latency,
    "freshness": _freshness,
    "completeness": _completeness,
    "reliability": _reliability,
    "order": _order,
}
