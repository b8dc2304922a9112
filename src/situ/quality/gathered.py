"""Panes of the last ten minutes by profile, and what the properties of a window of them are measured to be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from situ.quality.panes import LENGTH, Numbers, Pane, Sketch

WINDOW = 60_000_000
LONGEST = 600_000_000
ENOUGH = 20
"""Events; a window that has fewer grows, up to the longest."""
IN_ORDER = 0.999
"""The share of events that have to be in order to call all of them so."""
MINUTE = 60_000_000
_PERCENTILE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Panes of one profile, from ``start`` to ``end``."""

    start: int
    end: int
    panes: tuple[Pane, ...]
    numbers: tuple[Numbers, ...] = ()
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
class Gathered:
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

    def window(self, profile: str, since: int, end: int) -> Window | None:
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
        return Window(start=start, end=end, panes=panes, numbers=self._numbers(profile.partition("/")[0], start, end))

    def _numbers(self, publisher: str, start: int, end: int) -> tuple[Numbers, ...]:
        found: dict[int, Numbers] = {}
        for profile in self.publishers.get(publisher, ()):
            mine = self.panes.get(profile, {})
            for pane in (mine[each] for each in range(start, end, LENGTH) if each in mine):
                for incarnation, each in pane.numbers.items():
                    found[incarnation] = found[incarnation] + each if incarnation in found else each
        return tuple(found.values())


# ── what a window says ──


def reading(window: Window, properties: Iterable[str], declared_rate: float | None) -> dict[str, float]:
    """Property → its measured value, in its unit; of those that are wanted and that the window says something about."""
    found = {}
    for each in properties:
        measure = _MEASURES.get(each)
        value = measure(window, declared_rate) if measure is not None else None
        if value is not None:
            found[each] = value
    return found


def _rate(window: Window, declared: float | None) -> float:
    rate = window.events * MINUTE / (window.end - window.start)
    if window.last is not None and window.last < window.end:
        return min(rate, MINUTE / (window.end - window.last))
    return rate


def _confidence(window: Window, declared: float | None) -> float | None:
    count = sum(each.confident for each in window.panes)
    return sum(each.confidence for each in window.panes) / count if count else None


def _percentile(sketches: Iterable[Sketch]) -> float | None:
    together = Sketch()
    for each in sketches:
        together += each
    return together.quantile(_PERCENTILE)


def _latency(window: Window, declared: float | None) -> float | None:
    found = _percentile(each.latency for each in window.panes)
    return None if found is None else found / 1_000


def _freshness(window: Window, declared: float | None) -> float | None:
    found = _percentile(each.freshness for each in window.panes)
    return None if found is None else found / 1_000_000


def _completeness(window: Window, declared: float | None) -> float | None:
    if window.numbers:
        expected = sum(each.most - each.least + 1 for each in window.numbers)
        return min(1.0, sum(each.distinct for each in window.numbers) / expected)
    if not declared:
        return None
    return min(1.0, window.events * MINUTE / (declared * (window.end - window.start)))


def _reliability(window: Window, declared: float | None) -> float | None:
    accepted = sum(each.accepted for each in window.panes)
    return min(1.0, sum(each.delivered for each in window.panes) / accepted) if accepted else None


def _order(window: Window, declared: float | None) -> float | None:
    """The place of a level: none, source, total."""
    if not window.events:
        return None
    if 1 - sum(each.disordered for each in window.panes) / window.events < IN_ORDER:
        return 0.0
    return 2.0 if 1 - sum(each.disordered_across for each in window.panes) / window.events >= IN_ORDER else 1.0


_MEASURES: Mapping[str, Callable[[Window, float | None], float | None]] = {
    "rate": _rate,
    "confidence": _confidence,
    "latency": _latency,
    "freshness": _freshness,
    "completeness": _completeness,
    "reliability": _reliability,
    "order": _order,
}
