"""Windows of event time: in which one an event falls under limits that change, and when that one ends.

``slot``: a windows in b minutes, one event each. ``quota``: windows of b minutes, a events each. Whole numbers
throughout: where a window ends does not depend on how far from 1970 it is. A limit holds for windows that start at or
after the instant that it carries; what falls into a window of it that started before belongs to the limit before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from situ.quality.shape import Limit

_MINUTE = 60_000_000


class Window(NamedTuple):
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


def window_of(time: int, limit: Limit) -> Window:
    quota, length = limit.form == "quota", _MINUTE * limit.minutes
    return Window((time if quota else time * limit.events) // length, limit.events, limit.minutes, quota)


def window_at(time: int, limits: Sequence[Limit]) -> Window | None:
    """The window that an event of this time falls in; None: it is not thinned."""
    for limit in reversed(limits):
        window = window_of(time, limit)
        if limit.since is None or window.start >= limit.since:
            return window if limit.until is None or time < limit.until else None
    return None
