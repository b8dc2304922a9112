"""Suppress, the filter that leaves out events that say nearly what the last one said; and the keys of all filters.

`row_as_json` writes down events that wait inside of filters, `key_of` says which events are thinned, suppressed or
aggregated together, `Suppressor` is the filter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from situ.event.lines import decode_line, encode_row, stamped_line
from situ.event.row import Row
from situ.quality.model.shapes import Suppress

MOST_KEYS = 100_000
"""Keys that a filter remembers; the ones that it has known for longest are forgotten beyond that."""


def row_as_json(row: Row) -> list[Any]:
    return [stamped_line(row, encode_row(row)).decode(), row.pos]


def row_from_json(stored: Sequence[Any]) -> Row:
    text, pos = stored
    return decode_line(text.encode(), pos=pos)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Keys. The log is ordered for each source, so a key contains the source unless sources are not told apart.

Read = Callable[[Row], Mapping[str, Any]]
"""The data of an event, as far as filters look at it."""
Key = tuple[str, ...]

NO_DATA: Mapping[str, Any] = {}


def source_of(row: Row) -> Key:
    """Sources are told apart by who publishes under them, too."""
    return (row.client, row.source)


def key_of(per: str, read: Read) -> Callable[[Row], Key]:
    """The source of an event, with what it says of the attribute ``per``, if there is one."""
    if not per:
        return source_of
    return lambda row: (row.client, row.source, text_of(read(row).get(per)))


def text_of(value: Any) -> str:
    return "" if value is None else str(value)


def number_of(value: Any) -> int | float | None:
    """What is compared and averaged: numbers as JSON has them."""
    if value is None or isinstance(value, int | float):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Suppress. At any time the latest value differs from the last one that passed by no more than δ. So an event that is
# older than the latest of its key never passes: it would set the value back that δ is counted from. The latest that was
# held back is remembered; if δ becomes smaller, and it is then too far away, it passes at once.

T = TypeVar("T")


@dataclass(slots=True)
class LastPassed(Generic[T]):
    """Of one key: the last value that passed, when; when the latest was, and what, if it did not pass."""

    value: float
    time: int
    latest: int
    held: tuple[float, T] | None = None

    def passes(self, value: float, time: int, what: T, delta: float, silence: int | None) -> bool:
        """Whether this passes; it is remembered either way."""
        if time < self.latest:
            return False
        self.latest = time
        if abs(value - self.value) > delta or (silence is not None and time - self.time >= silence):
            self.value, self.time, self.held = value, time, None
            return True
        self.held = (value, what)
        return False

    def lowered(self, delta: float) -> T | None:
        """What was held back and is too far away for this δ; it has passed."""
        if self.held is None or abs(self.held[0] - self.value) <= delta:
            return None
        self.value, what = self.held
        self.time, self.held = self.latest, None
        return what


class Suppressor:
    """One attribute of the events of one subscription."""

    def __init__(self, suppress: Suppress, read: Read) -> None:
        self.suppress = suppress
        self._read = read
        self._key = key_of(suppress.per, read)
        self._deltas = dict(suppress.per_key)
        self._told: dict[Key, LastPassed[Row]] = {}

    def take(self, rows: Sequence[Row]) -> list[Row]:
        """Those that pass."""
        attribute, silence = self.suppress.attribute, self.suppress.max_silence
        read, key_of, told, passed = self._read, self._key, self._told, []
        delta = self.suppress.delta
        for row in rows:
            value = number_of(read(row).get(attribute))
            if value is None:  # whatever else it tells
                passed.append(row)
                continue
            key = key_of(row)
            known = told.get(key)
            if known is None:
                self._begin(key, value, row.time)
                passed.append(row)
            elif known.passes(value, row.time, row, self._delta(key) if self._deltas else delta, silence):
                passed.append(row)
        return passed

    def delta(self, row: Row) -> float:
        """How far what is delivered as this may be from the latest."""
        return self._delta(self._key(row)) if self._deltas else self.suppress.delta

    def _delta(self, key: Key) -> float:
        delta, name = self.suppress.delta, key[-1]
        if not self.suppress.per and name not in self._deltas:
            name = name.removeprefix(
                f"{key[0]}/"
            )  # sources begin with the name of their client, which need not be said
        return min(delta, self._deltas.get(name, delta))

    def _begin(self, key: Key, value: float, time: int) -> None:
        while len(self._told) >= MOST_KEYS:
            del self._told[next(iter(self._told))]
        self._told[key] = LastPassed(value, time, time)

    def adopt(self, suppress: Suppress) -> list[Row]:
        """Go on with another δ: what was held back and must be told then, in the order in which it happened."""
        self.suppress = suppress
        self._deltas = dict(suppress.per_key)
        return self._lowered(self._delta)

    def end(self) -> list[Row]:
        """Nothing is suppressed any more: whatever was held back is told, unless it says the same."""
        return self._lowered(lambda _: 0.0)

    def _lowered(self, delta: Callable[[Key], float]) -> list[Row]:
        found = [row for key, told in self._told.items() if (row := told.lowered(delta(key))) is not None]
        return sorted(found, key=in_order)

    def as_json(self) -> list[Any]:
        return [
            [list(key), each.value, each.time, each.latest, row_as_json(each.held[1]) if each.held else None]
            for key, each in self._told.items()
        ]

    def restore(self, stored: Iterable[Sequence[Any]]) -> None:
        for key, value, time, latest, held in stored:
            known = self._told[tuple(key)] = LastPassed(value, time, latest)
            if held is not None:
                row = row_from_json(held)
                number = number_of(self._read(row).get(self.suppress.attribute))
                known.held = None if number is None else (number, row)


def in_order(row: Row) -> tuple[Any, ...]:
    """The order in which events that were held back are let go together: that of their times."""
    return (row.time, row.id, row.client, row.incarnation, row.seq)
