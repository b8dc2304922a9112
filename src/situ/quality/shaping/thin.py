"""Thin: no more than so many events in a window of event time.

`window_at` finds the window of an event under limits that change; `Thinner` is the filter of one subscription.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from situ.event.row import Row
from situ.quality.model.shapes import Limit, Thin
from situ.quality.shaping.suppress import MOST_KEYS, Key, Read, in_order, key_of, row_as_json, row_from_json, text_of
from situ.quality.shaping.watermark import NEVER, LatenessBounds, WatermarkTracker

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Windows. ``slot``: a windows in b minutes, one event each. ``quota``: windows of b minutes, a events each. Whole
# numbers throughout: where a window ends does not depend on how far from 1970 it is. A limit holds for windows that
# start at or after the instant that it carries; what falls into a window of it that started before belongs to the limit
# before it.

_MINUTE = 60_000_000


class ThinWindow(NamedTuple):
    """One window, known by the limit it belongs to, however often that changed in between, and its number."""

    number: int
    events: int
    minutes: int
    quota: bool

    @property
    def capacity(self) -> int:
        return self.events if self.quota else 1

    @property
    def start(self) -> int:
        return self._at(self.number)

    @property
    def end(self) -> int:
        """The first instant behind it."""
        return self._at(self.number + 1)

    def _at(self, number: int) -> int:
        length = _MINUTE * self.minutes
        return number * length if self.quota else -(-number * length // self.events)


def window_of(time: int, limit: Limit) -> ThinWindow:
    quota, length = limit.form == "quota", _MINUTE * limit.minutes
    return ThinWindow((time if quota else time * limit.events) // length, limit.events, limit.minutes, quota)


def window_at(time: int, limits: Sequence[Limit]) -> ThinWindow | None:
    """The window that an event of this time falls in; None: it is not thinned."""
    for limit in reversed(limits):
        window = window_of(time, limit)
        if limit.since is None or window.start >= limit.since:
            return window if limit.until is None or time < limit.until else None
    return None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The filter. Where the first of a source is kept it is the one that comes first in the log, and passes at once. To keep
# the last or the best, or the first of several sources, a window has to be over: its events wait until the watermark
# has passed its end. What is known of a window goes when the watermark has passed its end by the lateness once more;
# whatever comes for it then is late.

_ACROSS: Key = ()

_NONE = ThinWindow(-NEVER, 0, 0, quota=False)

Named = tuple[str, ThinWindow]
"""A window of what one attribute says; of everything, if that is not told apart."""


@dataclass(slots=True)
class _WindowFill:
    """What is known of a window: when it ends, how many have passed, and who waits for the decision."""

    end: int
    count: int = 0
    waiting: list[Row] = field(default_factory=list)
    decided: bool = False


@dataclass(slots=True)
class _ThinLine(WatermarkTracker):
    """A line of events with its windows; ``due`` is the first end of one that is to be decided."""

    windows: dict[Named, _WindowFill] = field(default_factory=dict)
    due: int = NEVER
    limit: Limit | None = None
    window: ThinWindow = _NONE
    filled: _WindowFill | None = None
    """Into which window the event before fell, by which limit, and what is known of it; so mostly does the next."""


class Thinner:
    """The events of one subscription."""

    def __init__(self, thin: Thin, patience: LatenessBounds, read: Read) -> None:
        self.thin = thin
        self.late = 0
        """Events that came too late for their window."""
        self.dropped = 0
        """Events that there was no room for in theirs."""
        self._patience = patience
        self._waits = thin.across or thin.keep != "first"
        self._rank = _RANKS["earliest" if thin.keep == "first" else thin.keep]
        per = thin.per
        if thin.across:
            self._line_of: Callable[[Row], Key] = lambda _: _ACROSS
            self._name_of = (lambda row: text_of(read(row).get(per))) if per else None
        else:
            self._line_of, self._name_of = key_of(per, read), None
        self._lines: dict[Key, _ThinLine] = {}

    @property
    def holds(self) -> bool:
        """Whether events wait that only time, or others, let go."""
        return self._waits and any(line.due < NEVER for line in self._lines.values())

    def take(self, rows: Sequence[Row]) -> list[Row]:
        """Those that pass now: some of these, and some that have waited."""
        return self._wait(rows) if self._waits else self._first(rows)

    def _first(self, rows: Sequence[Row]) -> list[Row]:
        limits = self.thin.limits
        if len(limits) == 1 and limits[0].since is None and limits[0].until is None:
            return self._first_of(rows, limits[0])
        passed: list[Row] = []
        old = 2 * self._patience.lateness
        for row in rows:
            key = self._line_of(row)
            line = self._lines.get(key) or self._begin(key)
            window = window_at(row.time, limits)
            if window is None:
                passed.append(row)
            elif window.end <= line.high - old:
                self.late += 1
                continue
            elif self._fill(line, window, window.capacity):
                passed.append(row)
            line.note(row)
        return passed

    def _fill(self, line: _ThinLine, window: ThinWindow, capacity: int) -> bool:
        """Whether there is room for one more in a window."""
        filled = line.windows.get(("", window))
        if filled is None:
            filled = line.windows["", window] = _WindowFill(window.end)
            _forget(line, line.high - 2 * self._patience.lateness)
        line.window, line.filled = window, filled
        if filled.count >= capacity:
            self.dropped += 1
            return False
        filled.count += 1
        return True

    def _first_of(self, rows: Sequence[Row], limit: Limit) -> list[Row]:
        """The same under one limit that always held, which is the usual case: event by event as little as can be."""
        lines, line_of, passed = self._lines, self._line_of, []
        old = 2 * self._patience.lateness
        events, minutes, quota, length = _plain(limit)
        factor, capacity = (1, events) if quota else (events, 1)
        for row in rows:
            key, time = line_of(row), row.time
            line = lines.get(key) or self._begin(key)
            number = time * factor // length
            window = line.window
            if number != window.number or line.limit is not limit:
                window, line.limit = ThinWindow(number, events, minutes, quota), limit
            # An event is never behind the end of its window: most need not be asked whether they are late.
            if time < line.high - old and window.end <= line.high - old:
                self.late += 1
                continue
            filled = line.filled
            if window is not line.window or filled is None:
                if self._fill(line, window, capacity):
                    passed.append(row)
            elif filled.count < capacity:
                filled.count += 1
                passed.append(row)
            else:
                self.dropped += 1
            if time > line.high:
                line.note(row)
        return passed

    def _wait(self, rows: Sequence[Row]) -> list[Row]:
        passed: list[Row] = []
        lateness, rank, name_of = self._patience.lateness, self._rank, self._name_of
        for row in rows:
            key = self._line_of(row)
            line = self._lines.get(key) or self._begin(key)
            window = window_at(row.time, self.thin.limits)
            watermark = line.watermark(lateness)
            if window is None:
                passed.append(row)
            elif window.end <= watermark - lateness:
                self.late += 1
            else:
                name = (name_of(row) if name_of is not None else "", window)
                filled = line.windows.get(name)
                if filled is None:
                    filled = line.windows[name] = _WindowFill(window.end, decided=window.end <= watermark)
                    if not filled.decided:
                        line.due = min(line.due, window.end)
                if filled.decided:
                    self.dropped += 1
                else:
                    filled.waiting.append(row)
                    if len(filled.waiting) > window.capacity:
                        filled.waiting.remove(max(filled.waiting, key=rank))
                        self.dropped += 1
            line.note(row)
            passed += self._decide(line)
        return passed

    def _decide(self, line: _ThinLine) -> list[Row]:
        """What waited in windows that the watermark has passed."""
        watermark = line.watermark(self._patience.lateness)
        if watermark < line.due:
            return []
        over = [each for each in line.windows.values() if not each.decided and each.end <= watermark]
        found: list[Row] = []
        for each in over:
            found += each.waiting
            each.waiting, each.decided = [], True
        line.due = min((each.end for each in line.windows.values() if not each.decided), default=NEVER)
        _forget(line, watermark - self._patience.lateness)
        return sorted(found, key=in_order)

    def tick(self, now: int) -> list[Row]:
        """What need not wait any longer, because nothing has come for long."""
        found: list[Row] = []
        for line in self._lines.values():
            if line.due < NEVER:
                line.fall_silent(now, self._patience)
                found += self._decide(line)
        return sorted(found, key=in_order)

    def adopt(self, thin: Thin) -> bool:
        """Go on with other limits; False if more than those is another."""
        same = (thin.per, thin.across, thin.keep) == (self.thin.per, self.thin.across, self.thin.keep)
        if same:
            self.thin = thin
        return same

    def end(self) -> list[Row]:
        """Nothing is thinned any more: who waited need not."""
        found = [row for line in self._lines.values() for each in line.windows.values() for row in each.waiting]
        return sorted(found, key=in_order)

    def _begin(self, key: Key) -> _ThinLine:
        while len(self._lines) >= MOST_KEYS:
            del self._lines[next(iter(self._lines))]
        line = self._lines[key] = _ThinLine()
        return line

    def as_json(self) -> list[Any]:
        return [
            [
                list(key),
                line.as_json(),
                [
                    [name, list(window), each.count, each.decided, [row_as_json(row) for row in each.waiting]]
                    for (name, window), each in line.windows.items()
                ],
            ]
            for key, line in self._lines.items()
        ]

    def restore(self, stored: Iterable[Sequence[Any]]) -> None:
        for key, track, windows in stored:
            line = self._lines[tuple(key)] = _ThinLine()
            line.restore(track)
            for name, window, count, decided, waiting in windows:
                known = ThinWindow(*window)
                rows = [row_from_json(row) for row in waiting]
                line.windows[name, known] = _WindowFill(known.end, count, rows, decided)
                if rows:
                    line.due = min(line.due, known.end)


def _plain(limit: Limit) -> tuple[int, int, bool, int]:
    return limit.events, limit.minutes, limit.form == "quota", _MINUTE * limit.minutes


def _forget(line: _ThinLine, before: int) -> None:
    """Windows that nothing can come for any more."""
    gone = [name for name, each in line.windows.items() if each.end <= before]
    for name in gone:
        del line.windows[name]
        if name[1] == line.window:
            line.window, line.filled = _NONE, None


def _earliest(row: Row) -> tuple[Any, ...]:
    return (row.time, row.id, row.client, row.seq)


def _last(row: Row) -> tuple[Any, ...]:
    return (-row.time, row.id, row.client, row.seq)


def _best(row: Row) -> tuple[Any, ...]:
    return (row.confidence is None, -(row.confidence or 0.0), *_last(row))


_RANKS: dict[str, Callable[[Row], tuple[Any, ...]]] = {"earliest": _earliest, "last": _last, "best": _best}
"""Who is kept: the lowest of a window."""
