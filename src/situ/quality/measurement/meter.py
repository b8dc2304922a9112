"""Meters: events of measured publishers on their way to deliveries become panes.

`MeasuredPublishers` says whose events are measured. `Meter` measures a part of a stream, in the process that has it;
`PaneMerger` joins the parts in their order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from situ.event.row import Row
from situ.lang.json_form import StoredForm
from situ.lang.records import replace
from situ.quality.measurement.panes import GROWTH, LENGTH, Pane, SequenceRange, Sketch, merge_panes, pane_of
from situ.quality.model.declarations import Profile
from situ.quality.shaping.watermark import NEVER, LatenessBounds, WatermarkTracker

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Whose events are measured, and of whom it is counted whether what they publish is delivered.

_RELIABILITY = "reliability"


class MeasuredPublishers(StoredForm, frozen=True):
    """Publishers, by their names."""

    publishers: frozenset[str] = frozenset()
    """That have told what they can do."""
    counted: frozenset[str] = frozenset()
    """Those of them that speak of reliability: to count acknowledgements for nobody would be a waste."""

    @classmethod
    def of(cls, profiles: Iterable[Profile]) -> MeasuredPublishers:
        found = tuple(profiles)
        return cls(
            frozenset(each.publisher for each in found),
            frozenset(
                each.publisher for each in found if _RELIABILITY in each.capabilities or _RELIABILITY in each.moded
            ),
        )

    def __or__(self, other: MeasuredPublishers) -> MeasuredPublishers:
        return MeasuredPublishers(self.publishers | other.publishers, self.counted | other.counted)

    def origins(self, rows: Sequence[Row]) -> dict[tuple[str, str], int]:
        """Publisher and type → events, of those that are counted."""
        if self.counted.isdisjoint({row.client for row in rows}):
            return {}
        return Counter([(row.client, row.type) for row in rows if row.client in self.counted])


NO_PUBLISHERS = MeasuredPublishers()


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Meters. A meter only counts what it is shown; what it finds at the beginning and at the end of that is joined with
# what came before by whoever gets the panes. So parts of a stream can be measured anywhere. Columns of numbers are
# gathered event by event, and worked through together.

_LOG_GROWTH = math.log(GROWTH)
_MOST_SOURCES = 1_000
"""Of one publisher and type that are told apart; what more do is measured as if it were of one source."""
_REST = "\n"
_UNKNOWN = 1 << 62

Ints = np.ndarray[Any, np.dtype[np.int64]]


class SourceSpan(NamedTuple):
    """Of a source in a part of its stream: the time of its first event there, and its latest."""

    publisher: str
    type: str
    source: str
    first: int
    latest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MeteredPart:
    """What was measured of a part of a stream: panes, what it began and ended with, and how far it came."""

    panes: tuple[Pane, ...] = ()
    ends: tuple[SourceSpan, ...] = ()
    reached: WatermarkTracker = field(default_factory=WatermarkTracker)

    def as_json(self) -> dict[str, Any]:
        """Plain data; nothing of nothing."""
        if not self.panes:
            return {}
        panes = [each.as_json() for each in self.panes]
        return {"panes": panes, "ends": [list(each) for each in self.ends], "reached": self.reached.as_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> MeteredPart:
        reached = WatermarkTracker()
        if "reached" in value:
            reached.restore(value["reached"])
        panes = tuple(Pane.from_json(each) for each in value.get("panes", ()))
        return cls(panes=panes, ends=tuple(SourceSpan(*each) for each in value.get("ends", ())), reached=reached)


@dataclass(slots=True)
class _MeterColumns:
    """Of one publisher and type."""

    times: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    delivered: list[tuple[int, int]] = field(default_factory=list)
    """When, and how many."""
    incarnations: list[tuple[int, int]] = field(default_factory=list)
    """Which, and how many; a publisher has one after the other."""
    numbers: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    confidences: list[float | None] = field(default_factory=list)
    codes: dict[str, int] = field(default_factory=dict)

    def add(self, rows: Sequence[Row], now: int) -> None:
        codes = self.codes
        self.times += [row.time for row in rows]
        self.received += [row.recv for row in rows]
        self.delivered.append((now, len(rows)))
        if rows[0].incarnation == rows[-1].incarnation:
            self.incarnations.append((rows[0].incarnation, len(rows)))
        else:
            self.incarnations += [(row.incarnation, 1) for row in rows]
        self.numbers += [row.seq for row in rows]
        self.confidences += [row.confidence for row in rows]
        for source in {row.source for row in rows}:
            if source not in codes:
                codes.setdefault(source if len(codes) < _MOST_SOURCES else _REST, len(codes))
        rest = codes.get(_REST, -1)
        self.sources += [codes.get(row.source, rest) for row in rows]


class Meter:
    """Measures events of these publishers."""

    def __init__(self, publishers: Collection[str]) -> None:
        self.publishers = frozenset(publishers)
        self._columns: dict[tuple[str, str], _MeterColumns] = {}

    def take(self, rows: Sequence[Row], now: int) -> None:
        """Events that are delivered at this instant, those of a publisher in the order of the log."""
        if not rows or (rows[0].client not in self.publishers and len({row.client for row in rows}) == 1):
            return
        for publisher, type in dict.fromkeys((row.client, row.type) for row in rows):
            if publisher in self.publishers:
                own = [row for row in rows if row.type == type and row.client == publisher]
                columns = self._columns.get((publisher, type))
                if columns is None:
                    columns = self._columns[publisher, type] = _MeterColumns()
                columns.add(own, now)

    def drain(self) -> MeteredPart:
        """What was measured since the last time."""
        found, self._columns = self._columns, {}
        panes: list[Pane] = []
        ends: list[SourceSpan] = []
        reached = WatermarkTracker()
        for (publisher, type), columns in found.items():
            times = np.array(columns.times, dtype=np.int64)
            by_source = _BySource(times, np.array(columns.sources, dtype=np.int64))
            panes += _panes(publisher, type, columns, times, by_source.gaps())
            names = list(columns.codes)
            ends += [
                SourceSpan(publisher, type, names[code], first, latest) for code, first, latest in by_source.ends()
            ]
            _reach(reached, times, np.array(columns.received, dtype=np.int64))
        return MeteredPart(panes=tuple(panes), ends=tuple(ends), reached=reached)


def _reach(track: WatermarkTracker, times: Ints, received: Ints) -> None:
    """No event counts as later than it was received."""
    capped = np.minimum(times, received)
    last = int(capped.argmax())
    track.merge(WatermarkTracker(int(capped[last]), int(received[last]), int(received.max())))


def _panes(publisher: str, type: str, columns: _MeterColumns, times: Ints, gaps: Ints) -> list[Pane]:
    delivered = _repeated(columns.delivered)
    latency = _buckets(delivered - np.array(columns.received, dtype=np.int64))
    freshness = _buckets(delivered - times)
    incarnations = _repeated(columns.incarnations)
    numbers = np.array(columns.numbers, dtype=np.int64)
    confidences = np.array(columns.confidences, dtype=np.float64)
    across, ahead = _older(times), times > delivered
    starts = times // LENGTH
    order = np.argsort(starts, kind="stable")
    begins = np.flatnonzero(np.diff(starts[order], prepend=starts[order[0]] - 1))
    found = []
    for own in np.split(order, begins[1:]):
        stated = confidences[own]
        stated = stated[~np.isnan(stated)]
        between = gaps[own]
        between = between[between > -_UNKNOWN]
        found.append(
            Pane(
                publisher=publisher,
                type=type,
                start=int(starts[own[0]]) * LENGTH,
                events=len(own),
                last=int(times[own].max()),
                confidence=math.fsum(stated.tolist()),
                confident=len(stated),
                latency=_sketch(latency[own]),
                freshness=_sketch(freshness[own]),
                ahead=int(ahead[own].sum()),
                numbers=_numbers(incarnations[own], numbers[own]),
                gap=max(int(between.max()), 0) if len(between) else None,
                disordered=int((between < 0).sum()),
                disordered_across=int(across[own].sum()),
            )
        )
    return found


def _repeated(several: Sequence[tuple[int, int]]) -> Ints:
    values, counts = zip(*several, strict=True)
    return np.repeat(np.array(values, dtype=np.int64), counts)


def _older(times: Ints) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which are older than the latest before them."""
    older = np.zeros(len(times), dtype=np.bool_)
    older[1:] = times[1:] < np.maximum.accumulate(times)[:-1]
    return older


class _BySource:
    """Times put together by source, in their order."""

    def __init__(self, times: Ints, sources: Ints) -> None:
        self.order = np.argsort(sources, kind="stable")
        self.codes = sources[self.order]
        self.times = times[self.order]
        self.begins = np.flatnonzero(np.diff(self.codes, prepend=-1))
        self.latest = self._latest()

    def _latest(self) -> Ints:
        """With each event the latest time of its source so far."""
        base = int(self.times.min())
        far = int(self.times.max()) - base + 1
        if far * (int(self.codes[-1]) + 1) > _UNKNOWN:
            # Times so far apart that numbers are too small for the short way.
            return np.concatenate([np.maximum.accumulate(own) for own in np.split(self.times, self.begins[1:])])
        # Each source begins far behind the one before it.
        lifted = self.codes * far - base
        return np.maximum.accumulate(self.times + lifted) - lifted

    def gaps(self) -> Ints:
        """Of each event the time since the latest of its source before it, below 0 if that is later; unknown of a
        first."""
        found = np.full(len(self.times), -_UNKNOWN, dtype=np.int64)
        since = np.empty_like(self.times)
        since[1:] = self.times[1:] - self.latest[:-1]
        since[self.begins] = -_UNKNOWN
        found[self.order] = since
        return found

    def ends(self) -> list[tuple[int, int, int]]:
        """Source, time of its first event, latest time."""
        last = np.append(self.begins[1:], len(self.times)) - 1
        columns = (self.codes[self.begins], self.times[self.begins], self.latest[last])
        return list(zip(*(each.tolist() for each in columns), strict=True))


def _buckets(durations: Ints) -> Ints:
    """As :func:`situ.quality.measurement.panes.bucket_of` of each."""
    found = np.zeros(len(durations), dtype=np.int64)
    some = durations >= 1
    found[some] = 1 + np.floor(np.log(durations[some].astype(np.float64)) / _LOG_GROWTH).astype(np.int64)
    return found


def _sketch(buckets: Ints) -> Sketch:
    counts = np.bincount(buckets)
    some = np.flatnonzero(counts)
    return Sketch(dict(zip(some.tolist(), counts[some].tolist(), strict=True)))


def _numbers(incarnations: Ints, numbers: Ints) -> dict[int, SequenceRange]:
    found = {}
    for incarnation in np.unique(incarnations).tolist():
        own = numbers[incarnations == incarnation]
        distinct = len(own) if bool((np.diff(own) > 0).all()) else len(np.unique(own))
        found[incarnation] = SequenceRange(int(own.min()), int(own.max()), distinct)
    return found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Joining: what was measured of the parts of a stream → panes, and up to which time they are complete.

_MOST = 100_000
"""Sources whose latest event is remembered."""


class PaneMerger:
    """Remembers of each source when its latest event was: between two parts there is time between events, too."""

    def __init__(self, patience: LatenessBounds) -> None:
        self._patience = patience
        self._latest: dict[tuple[str, str, str], int] = {}
        self._reached = WatermarkTracker()

    def join(self, parts: Iterable[MeteredPart]) -> tuple[Pane, ...]:
        """The panes of the next parts of the stream, with what follows from those before; no two parts of these have
        events of one publisher."""
        parts = tuple(parts)
        found = merge_panes(pane for part in parts for pane in part.panes)
        for part in parts:
            self._reached.merge(part.reached)
            for end in part.ends:
                self._follow(end, found)
        return tuple(found.values())

    def until(self, now: int) -> int | None:
        """Up to which instant of event time nothing more is waited for; in silence it goes on with the clock. None:
        nothing was measured yet."""
        self._reached.fall_silent(now, self._patience)
        reached = self._reached.watermark(self._patience.lateness)
        return reached if reached > -NEVER else None

    def _follow(self, end: SourceSpan, found: dict[tuple[str, str, int], Pane]) -> None:
        key = (end.publisher, end.type, end.source)
        before = self._latest.get(key)
        if before is None:
            if len(self._latest) >= _MOST:
                self._latest.clear()
            self._latest[key] = end.latest
            return
        self._latest[key] = max(before, end.latest)
        place = (end.publisher, end.type, pane_of(end.first))
        pane = found[place]
        gap = max(end.first - before, 0, pane.gap or 0)
        found[place] = replace(pane, gap=gap, disordered=pane.disordered + (end.first < before))
