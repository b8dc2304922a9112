"""Which events were there before: the highest sequence number of each producer, and a bitmap of those below it.

The keys of a producer come in order; what comes again is told apart by its number. This is how copies end wherever two
ways of an event meet: at the seam of history and live events, after a message was sent again, after a restart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

BELOW = 1024
"""How many numbers below the highest are remembered one by one."""


@dataclass(slots=True)
class Seen:
    """The numbers of one incarnation of one producer. Bit n of ``bits`` says that ``highest - n`` was there."""

    highest: int = 0
    bits: int = 0


@dataclass(slots=True)
class Window:
    """What a subscription has seen."""

    below: int = BELOW
    producers: dict[tuple[str, int], Seen] = field(default_factory=dict)
    out_of_order: int = 0
    """Unseen numbers below the highest: they are let through, and should not happen."""
    too_old: int = 0
    """Numbers below the window: they count as seen, and should not happen either."""
    _mask: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._mask = (1 << self.below) - 1

    def has(self, client: str, incarnation: int, seq: int) -> bool:
        """Whether this event was there."""
        seen = self.producers.get((client, incarnation))
        if seen is None or seq > seen.highest:
            return False
        behind = seen.highest - seq
        return behind >= self.below or bool(seen.bits >> behind & 1)

    def add(self, client: str, incarnation: int, seq: int) -> bool:
        """Note an event; False if it was there before."""
        seen = self.producers.get((client, incarnation))
        if seen is None:
            seen = self.producers[client, incarnation] = Seen()
        behind = seen.highest - seq
        if behind < 0:
            seen.bits = (seen.bits << -behind | 1) & self._mask if -behind < self.below else 1
            seen.highest = seq
            return True
        if behind >= self.below:
            self.too_old += 1
            return False
        if seen.bits >> behind & 1:
            return False
        seen.bits |= 1 << behind
        self.out_of_order += 1
        return True

    def rows(self) -> Iterator[tuple[str, int, int, int]]:
        """The window as plain values, from which :meth:`restore` makes an equal one."""
        for (client, incarnation), seen in self.producers.items():
            yield client, incarnation, seen.highest, seen.bits

    def restore(self, client: str, incarnation: int, highest: int, bits: int) -> None:
        self.producers[client, incarnation] = Seen(highest, bits)
