"""Aggregate: one event for many, evaluated at multiples of a period of event time.

Each source by itself. Values hold until the next one comes: the average is weighted by time, least and greatest take in
the value that a window began with, so that suppressed events change nothing but by their imprecision. A sum is that of
the events in the window. A window in which nothing came is not evaluated: there would be nothing new in it.

What comes out is the latest event before the end of the window, with the attribute replaced, at that end. It has a key
of its own, made of the subscription, the source and the end: however often it is made, it is the same event. Its
incarnation tells it apart from what the publisher sends.
"""

from __future__ import annotations

import hashlib
import math
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from operator import itemgetter
from typing import Any

import msgspec

from situ.event.row import Row
from situ.lang.records import replace
from situ.quality.model.declarations import Aggregate
from situ.quality.shaping.suppress import (
    MOST_KEYS,
    Key,
    Read,
    in_order,
    number_of,
    row_as_json,
    row_from_json,
    source_of,
)
from situ.quality.shaping.watermark import NEVER, LatenessBounds, WatermarkTracker

Put = Callable[[Row, str, float], bytes]
"""The data of an event with an attribute replaced by a number."""

_DIGITS = 12
_LARGEST = Fraction(sys.float_info.max)
_time = itemgetter(0)
_Event = tuple[int, float, Row | None]
"""When, how much; and the event itself, if it may be the latest before the end of a window."""


def put_number(row: Row, attribute: str, number: float) -> bytes:
    """The data of an event in which the attribute, a number in JSON, is another."""
    data = msgspec.json.decode(row.data)
    data[attribute] = round(number) if isinstance(data.get(attribute), int) else number
    return msgspec.json.encode(data)


@dataclass(slots=True)
class _AggregateLine(WatermarkTracker):
    """A source: its events in the order of time, as far back as windows reach; ``due`` is the next end."""

    events: list[_Event] = field(default_factory=list)
    due: int = NEVER


class Aggregator:
    """The events of one subscription."""

    def __init__(
        self, subscription: str, aggregate: Aggregate, patience: LatenessBounds, read: Read, put: Put = put_number
    ) -> None:
        self.aggregate = aggregate
        self.late = 0
        self._subscription = subscription
        self._patience = patience
        self._read, self._put = read, put
        self._lines: dict[Key, _AggregateLine] = {}

    @property
    def holds(self) -> bool:
        return any(line.due < NEVER for line in self._lines.values())

    def take(self, rows: Sequence[Row]) -> list[Row]:
        """The results that these events bring about."""
        made: list[Row] = []
        attribute, lateness = self.aggregate.attribute, self._patience.lateness
        for row in rows:
            value = number_of(self._read(row).get(attribute))
            if value is None:
                continue
            key = source_of(row)
            line = self._lines.get(key) or self._begin(key)
            if row.time < line.watermark(lateness):
                self.late += 1
                continue
            self._add(line, row, value)
            line.note(row)
            made += self._evaluate(key, line)
        return made

    def tick(self, now: int) -> list[Row]:
        """The results that are due because nothing has come for long."""
        made: list[Row] = []
        for key, line in self._lines.items():
            if line.due < NEVER:
                line.fall_silent(now, self._patience)
                made += self._evaluate(key, line)
        return sorted(made, key=in_order)

    def _add(self, line: _AggregateLine, row: Row, value: float) -> None:
        every, events = self.aggregate.every, line.events
        place, period = bisect_right(events, row.time, key=_time), row.time // every
        events.insert(place, (row.time, value, row))
        # Only the last event of a period can be the latest before an end.
        if place + 1 < len(events) and events[place + 1][0] // every == period:
            events[place] = (row.time, value, None)
        elif place and events[place - 1][0] // every == period:
            events[place - 1] = (*events[place - 1][:2], None)
        line.due = min(line.due, (period + 1) * every)

    def _evaluate(self, key: Key, line: _AggregateLine) -> list[Row]:
        made: list[Row] = []
        watermark = line.watermark(self._patience.lateness)
        window, every = self.aggregate.window, self.aggregate.every
        while line.due <= watermark:
            end = line.due
            inside = [each for each in line.events if end - window <= each[0] < end]
            if inside:
                made.append(self._made(key, line, end, inside))
                line.due = end + every
            else:
                later = next((each[0] for each in line.events if each[0] >= end), None)
                line.due = NEVER if later is None else (later // every + 1) * every
            self._forget(line, end + every - window)
        return made

    def _made(self, key: Key, line: _AggregateLine, end: int, inside: Sequence[_Event]) -> Row:
        begin = end - self.aggregate.window
        before = next((each for each in reversed(line.events) if each[0] < begin), None)
        result = evaluate(self.aggregate.function, [(time, value) for time, value, _ in inside], before, begin, end)
        latest = next(each for _, _, each in reversed(inside) if each is not None)
        return self._event(key, latest, end, result)

    def _event(self, key: Key, latest: Row, end: int, result: float) -> Row:
        text = "\n".join((self._subscription, *key))
        made = replace(latest, value=None, sent=None)
        made.incarnation = int(hashlib.sha256(text.encode()).hexdigest()[:_DIGITS], 16)
        made.seq, made.pos = end // self.aggregate.every, 0
        made.id = hashlib.sha256(f"{text}\n{end}".encode()).hexdigest()[:32]
        made.time = end
        made.data = self._put(latest, self.aggregate.attribute, result)
        return made

    def _forget(self, line: _AggregateLine, before: int) -> None:
        """What no window reaches back to any more, but for the last value, which still holds."""
        kept = next((place for place, each in enumerate(line.events) if each[0] >= before), len(line.events))
        if kept > 1:
            del line.events[: kept - 1]

    def _begin(self, key: Key) -> _AggregateLine:
        while len(self._lines) >= MOST_KEYS:
            del self._lines[next(iter(self._lines))]
        line = self._lines[key] = _AggregateLine()
        return line

    def as_json(self) -> list[Any]:
        return [
            [
                list(key),
                line.as_json(),
                line.due,
                [[time, value, row and row_as_json(row)] for time, value, row in line.events],
            ]
            for key, line in self._lines.items()
        ]

    def restore(self, stored: Iterable[Sequence[Any]]) -> None:
        for key, track, due, events in stored:
            line = self._lines[tuple(key)] = _AggregateLine()
            line.restore(track)
            line.due = due
            line.events = [(time, value, row and row_from_json(row)) for time, value, row in events]


def evaluate(function: str, inside: Sequence[tuple[int, float]], before: _Event | None, begin: int, end: int) -> float:
    """The result over a window, of its events in the order of time and the last one before it."""
    values = [value for _, value in inside]
    if function == "sum":
        return _sum(values, [1] * len(values))
    steps = list(inside)
    if before is not None and steps[0][0] > begin:
        steps.insert(0, (begin, before[1]))
    held = [value for _, value in steps]
    if function != "avg":
        return min(held) if function == "min" else max(held)
    ends = [*(time for time, _ in steps[1:]), end]
    spans = [until - time for (time, _), until in zip(steps, ends, strict=True)]
    return _sum(held, spans, end - steps[0][0])


def _sum(values: Sequence[float], times: Sequence[int], among: int = 1) -> float:
    """Each value so many times, divided; no more than a double can hold, as no other number is a value."""
    try:
        found = math.fsum(value * each for value, each in zip(values, times, strict=True)) / among
    except (OverflowError, ValueError):  # on the way, or of infinities on both sides
        found = math.inf
    if math.isfinite(found):
        return found
    exact = sum(Fraction(value) * each for value, each in zip(values, times, strict=True)) / among
    return float(min(max(exact, -_LARGEST), _LARGEST))
