"""Which events were there before: of each producer the numbers that came without a gap, and a bitmap of those below.

The keys of a producer come in order; what comes again is told apart by its number. This is how copies end wherever two
ways of an event meet: at the seam of history and live events, after a message was sent again, after a restart.

Where there are scopes, keys come sealed (:mod:`situ.event.seal`): they are the same for the same event, and have no
order. Of those the last ones are remembered, more than can come again: what one batch of an engine holds, and what a
reader has in hand.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b

BELOW = 1024
"""How many numbers below the highest are remembered one by one."""
RECENT = 131_072
"""How many sealed keys are remembered at least; twice as many at most."""


class SequenceSet:
    """The numbers of one incarnation of one producer: all from ``since`` to ``highest``, and some below.

    Bit n of ``bits`` says that ``since - 1 - n`` was there. The usual number, the next one, is a mere addition.
    """

    __slots__ = ("below", "bits", "highest", "out_of_order", "since", "too_old")

    def __init__(self, below: int, highest: int = 0, bits: int = 0) -> None:
        self.below = below
        self.highest = highest
        self.since = highest + 1
        self.bits = bits
        self.out_of_order = 0
        self.too_old = 0

    def has(self, seq: int) -> bool:
        if seq > self.highest:
            return False
        return seq >= self.since or self.highest - seq >= self.below or bool(self.bits >> (self.since - 1 - seq) & 1)

    def add(self, seq: int) -> bool:
        """Note a number; False if it was there before."""
        if seq == self.highest + 1:
            self.highest = seq
            return True
        if seq > self.highest:
            gap = seq - 1 - self.highest
            self.bits = (self.below_highest() << gap) & self._mask if gap < self.below else 0
            self.since = self.highest = seq
            return True
        if self.highest - seq >= self.below:
            self.too_old += 1
            return False
        if self.has(seq):
            return False
        self.bits |= 1 << (self.since - 1 - seq)
        self.out_of_order += 1
        return True

    def below_highest(self) -> int:
        """A bitmap of all that is remembered: bit n says that ``highest - n`` was there."""
        run = min(self.highest - self.since + 1, self.below)
        return (self.bits << run | (1 << run) - 1) & self._mask

    @property
    def _mask(self) -> int:
        return (1 << self.below) - 1


class TokenSet:
    """Sealed keys, each as a number without order: the last ones."""

    __slots__ = ("_before", "_now", "recent")

    def __init__(self, recent: int = RECENT) -> None:
        self.recent = recent
        self._now: set[int] = set()
        self._before: set[int] = set()

    def has(self, token: int) -> bool:
        return token in self._now or token in self._before

    def add(self, token: int) -> bool:
        """Note a key; False if it was there before."""
        if self.has(token):
            return False
        if len(self._now) >= self.recent:
            self._now, self._before = set(), self._now
        self._now.add(token)
        return True

    def __iter__(self) -> Iterator[int]:
        """The older ones first."""
        yield from self._before
        yield from self._now


def token_number(client: str, token: str) -> int:
    """The number as which a sealed key of a client is remembered."""
    return _number_of(client) ^ int.from_bytes(urlsafe_b64decode(token[:12])[:8])


@lru_cache(maxsize=10_000)
def _number_of(client: str) -> int:
    return int.from_bytes(blake2b(client.encode(), digest_size=8).digest())


class DedupWindow:
    """What a subscription has seen."""

    def __init__(self, below: int = BELOW) -> None:
        self.below = below
        self.tokens = TokenSet()
        self._producers: dict[tuple[str, int], SequenceSet] = {}

    @property
    def out_of_order(self) -> int:
        """Unseen numbers below the highest: they are let through, and should not happen."""
        return sum(each.out_of_order for each in self._producers.values())

    @property
    def too_old(self) -> int:
        """Numbers below the window: they count as seen, and should not happen either."""
        return sum(each.too_old for each in self._producers.values())

    def of(self, client: str, incarnation: int) -> SequenceSet:
        """The numbers of this producer, none so far if it is new."""
        seen = self._producers.get((client, incarnation))
        if seen is None:
            seen = self._producers[client, incarnation] = SequenceSet(self.below)
        return seen

    def has(self, client: str, incarnation: int, seq: int) -> bool:
        """Whether this event was there."""
        seen = self._producers.get((client, incarnation))
        return seen is not None and seen.has(seq)

    def add(self, client: str, incarnation: int, seq: int) -> bool:
        """Note an event; False if it was there before."""
        return self.of(client, incarnation).add(seq)

    def has_key(self, key: str) -> bool:
        """Whether the event of this key was there, sealed or not."""
        client, incarnation, last = split_key(key)
        if incarnation is None:
            return self.tokens.has(token_number(client, last))
        return self.has(client, incarnation, int(last))

    def add_key(self, key: str) -> bool:
        """Note an event by its key; False if it was there before."""
        client, incarnation, last = split_key(key)
        if incarnation is None:
            return self.tokens.add(token_number(client, last))
        return self.add(client, incarnation, int(last))

    def rows(self) -> Iterator[tuple[str, int, int, int]]:
        """The window as plain values, from which :meth:`restore` makes an equal one."""
        for (client, incarnation), seen in self._producers.items():
            if seen.highest:
                yield client, incarnation, seen.highest, seen.below_highest()

    def restore(self, client: str, incarnation: int, highest: int, bits: int) -> None:
        self._producers[client, incarnation] = SequenceSet(self.below, highest, bits)


def split_key(key: str) -> tuple[str, int | None, str]:
    """Client, incarnation and number of the key of an event; of a sealed one no incarnation, and its token."""
    begin, _, last = key.rpartition(".")
    client, dot, incarnation = begin.rpartition(".")  # names of clients have no dots
    return (client, int(incarnation), last) if dot else (begin, None, last)
