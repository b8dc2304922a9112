"""References by key: what was said last, and what was said at a time, within bounds.

A reference is a row with the time it is of. They come in any order; asked for a time, the latest one not later than it
is found, of those that have come. Nothing here knows events or expressions. Bounds:

- of each key, those younger than ``history`` before its latest, and the one that was valid then; ``MOST`` at most;
- a key whose latest is older than ``ttl`` before the latest of all keys is forgotten, and no reference serves an event
  that is more than ``ttl`` later than it;
- ``most`` keys; the one that was not used for longest goes first. A key is used when a reference comes or is found.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Generic, TypeVar

T = TypeVar("T")

MOST = 4096
"""References of one key, whatever its ``history``: the oldest go first."""

_SPARE = 64


@dataclass(slots=True)
class _Kept(Generic[T]):
    """Of one key, in the order of their times, each once: what came last at a time counts."""

    number: int
    times: list[datetime] = field(default_factory=list)
    rows: list[T] = field(default_factory=list)

    def add(self, time: datetime, row: T, history: timedelta) -> None:
        place = bisect_right(self.times, time)
        if place and self.times[place - 1] == time:
            self.rows[place - 1] = row
            return
        self.times.insert(place, time)
        self.rows.insert(place, row)
        first = 0
        with suppress(OverflowError):  # a history from before there were dates has no beginning
            first = bisect_right(self.times, self.times[-1] - history) - 1
        first = max(first, len(self.times) - MOST)
        if first > 0:
            del self.times[:first], self.rows[:first]

    def at(self, time: datetime) -> tuple[datetime, T] | None:
        place = bisect_right(self.times, time)
        return (self.times[place - 1], self.rows[place - 1]) if place else None


class References(Generic[T]):
    """See the module. ``evicted`` counts the keys that had to go because there were too many."""

    __slots__ = ("_by_age", "_count", "_history", "_keys", "_most", "_ttl", "evicted", "latest")

    def __init__(self, *, history: timedelta, ttl: timedelta, most: int) -> None:
        self._history, self._ttl, self._most = history, ttl, most
        self._keys: OrderedDict[str, _Kept[T]] = OrderedDict()
        self._by_age: list[tuple[datetime, int, str]] = []
        """Each key once, with a time that its latest reference is not older than."""
        self._count = 0
        self.latest: datetime | None = None
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[tuple[str, datetime, T]]:
        """All of them: the keys in the order they would go, the references of each by time."""
        for key, kept in self._keys.items():
            for time, row in zip(kept.times, kept.rows, strict=True):
                yield key, time, row

    def add(self, key: str, time: datetime, row: T) -> None:
        if self.latest is None or time > self.latest:
            self.latest = time
        kept = self._keys.get(key)
        if kept is None:
            self._count += 1
            kept = self._keys[key] = _Kept(self._count)
            heapq.heappush(self._by_age, (time, self._count, key))
        kept.add(time, row, self._history)
        self._keys.move_to_end(key)
        self._forget()
        while len(self._keys) > self._most:
            self._keys.popitem(last=False)
            self.evicted += 1
        if len(self._by_age) > 2 * len(self._keys) + _SPARE:
            self._by_age = [(kept.times[-1], kept.number, key) for key, kept in self._keys.items()]
            heapq.heapify(self._by_age)

    def find(self, key: str, time: datetime) -> T | None:
        """The latest reference of the key that is not later than this."""
        kept = self._keys.get(key)
        found = None if kept is None else kept.at(time)
        if found is None or time - found[0] > self._ttl:
            return None
        self._keys.move_to_end(key)
        return found[1]

    def _forget(self) -> None:
        """Keys that nothing was heard of for too long; the heap is looked at only as far as it may be wrong."""
        assert self.latest is not None
        while self._by_age and self.latest - self._by_age[0][0] > self._ttl:
            _, number, key = heapq.heappop(self._by_age)
            kept = self._keys.get(key)
            if kept is None or kept.number != number:
                continue  # it was evicted; if it came again, it is in the heap again
            if self.latest - kept.times[-1] > self._ttl:
                del self._keys[key]
            else:
                heapq.heappush(self._by_age, (kept.times[-1], number, key))
