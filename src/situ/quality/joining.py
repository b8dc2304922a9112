"""Joining: what was measured of the parts of a stream, in their order → panes, and how far they are complete."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from situ.quality.meter import End, Part
from situ.quality.panes import Pane, pane_of, together
from situ.quality.shaping.track import NEVER, Patience, Track

_MOST = 100_000
"""Sources whose latest event is remembered."""


class Joining:
    """Remembers of each source when its latest event was: between two parts there is time between events, too."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._latest: dict[tuple[str, str, str], int] = {}
        self._reached = Track()

    def join(self, parts: Iterable[Part]) -> tuple[Pane, ...]:
        """The panes of the next parts of the stream, with what follows from those before; no two parts of these have
        events of one publisher."""
        parts = tuple(parts)
        found = together(pane for part in parts for pane in part.panes)
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

    def _follow(self, end: End, found: dict[tuple[str, str, int], Pane]) -> None:
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
