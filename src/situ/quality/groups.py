"""Groups: what belongs together, found by joining those that have something in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

K = TypeVar("K", int, str)


class Groups(Generic[K]):
    """Each member points towards the least of its group. Whoever is asked for is a group of its own to begin with."""

    def __init__(self) -> None:
        self._towards: dict[K, K] = {}

    def of(self, member: K) -> K:
        """By which member its group is known, as long as nothing is joined."""
        towards = self._towards
        while (further := towards.setdefault(member, member)) != member:
            towards[member] = member = towards[further]
        return member

    def join(self, members: Iterable[K]) -> None:
        for one, other in zip(found := list(members), found[1:], strict=False):
            low, high = sorted((self.of(one), self.of(other)))
            self._towards[high] = low
