"""Events of the root log that detection took last, at hand when situations tell what caused them.

Most causes are moments old; for what is older than what is kept here, the log is read. Bounded in number and size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from situ.event.row import Row

_MOST, _SIZE = 10_000, 4 * 1024 * 1024


class AtHand:
    """Events by their positions, the oldest forgotten first."""

    def __init__(self, *, most: int = _MOST, size: int = _SIZE) -> None:
        self._most, self._limit = most, size
        self._rows: dict[int, Row] = {}
        self._order: deque[Row] = deque()
        self._size = 0

    def add(self, rows: Iterable[Row]) -> None:
        """Events that have their positions and the text of their data; nobody changes them any more."""
        for row in rows:
            if row.pos in self._rows:
                continue
            self._rows[row.pos] = row
            self._order.append(row)
            self._size += len(row.data)
        while len(self._order) > self._most or self._size > self._limit:
            gone = self._order.popleft()
            self._size -= len(gone.data)
            del self._rows[gone.pos]

    def find(self, positions: Sequence[int]) -> dict[int, Row]:
        """Those of the events at these positions that are at hand."""
        return {position: self._rows[position] for position in positions if position in self._rows}

    def clear(self) -> None:
        self._rows.clear()
        self._order.clear()
        self._size = 0
