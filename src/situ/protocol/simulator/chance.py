"""Chance from a seed: the same seed gives the same numbers on every machine and in every release of Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
_MASK = (1 << 64) - 1


class Chance:
    """Numbers by splitmix64."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def number(self) -> int:
        """Of 64 bits."""
        self._state = state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        return state ^ (state >> 31)

    def share(self) -> float:
        """From 0 to 1, without 1."""
        return (self.number() >> 11) / 9007199254740992.0

    def between(self, least: float, most: float) -> float:
        return least + (most - least) * self.share()

    def below(self, most: int) -> int:
        return self.number() % most

    def one_of(self, what: Sequence[T]) -> T:
        return what[self.number() % len(what)]

    def happens(self, share: float) -> bool:
        return self.share() < share
