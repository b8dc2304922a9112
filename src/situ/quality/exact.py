"""The best choice for a part, found by going through all of them: branch and bound.

One profile after the other gets one of its options. A branch is left as soon as the best that could still come of it,
everything met that the rest could meet at the least cost of each, is worth less than what was found. Of plans that are
worth the same, that with the fewest profiles changed is taken, then with the fewest properties, then with the
smallest ids; then modes in their order and values nearest to the current ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from situ.quality.choices import Option
from situ.quality.weighing import Weighing, Worth

MOST_PLANS = 200_000
Chosen = tuple[Option, ...]
"""An option for each profile of a part."""


def is_small(options: Sequence[Sequence[Option]]) -> bool:
    """Whether all plans can be gone through."""
    return math.prod(map(len, options)) <= MOST_PLANS


def branch_and_bound(weighing: Weighing, options: Sequence[Sequence[Option]]) -> Chosen | None:
    """The best permitted choice; None, if none is permitted."""
    search = _Search(weighing, options)
    search.go(0, [], 0)
    return search.best


@dataclass(slots=True)
class _Search:
    weighing: Weighing
    options: Sequence[Sequence[Option]]
    best: Chosen | None = None
    worth: Worth = None
    ties: tuple[Any, ...] = ()
    _costs: list[list[int]] = field(init=False)
    _least: list[int] = field(init=False)
    """By profile: what those from there on cost at least."""
    _union: list[int] = field(init=False)
    """By profile: what it could meet."""

    def __post_init__(self) -> None:
        scaled = self.weighing.scaled
        self._costs = [[scaled(each.cost) for each in some] for some in self.options]
        self._least = [0]
        for costs in reversed(self._costs):
            self._least.insert(0, self._least[0] + min(costs))
        self._union = [_any_of(some) for some in self.options]

    def go(self, place: int, taken: list[Option], cost: int) -> None:
        while place < len(self.options) and len(self.options[place]) == 1:
            taken.append(self.options[place][0])
            cost += self._costs[place][0]
            place += 1
        masks = [*(each.met for each in taken), *self._union[place:]]
        results = self.weighing.results(self.weighing.part.met_by(masks))
        least = cost + self._least[place]
        if not self.weighing.permits(results, least):
            return
        worth = self.weighing.worth(results, least)
        if self.best is not None and (worth < self.worth or (worth == self.worth and self._loses(taken))):
            return
        if place == len(self.options):
            self._take(tuple(taken), worth)
            return
        for option, more in zip(self.options[place], self._costs[place], strict=True):
            self.go(place + 1, [*taken, option], cost + more)

    def _take(self, chosen: Chosen, worth: Worth) -> None:
        ties = (*_changes(chosen), [not each.changes for each in chosen], [each.ranks for each in chosen])
        if self.best is None or worth > self.worth or ties < self.ties:
            self.best, self.worth, self.ties = chosen, worth, ties

    def _loses(self, taken: Sequence[Option]) -> bool:
        """Whether it changes more already than what was found, which is worth no less."""
        return _changes(taken) > self.ties[:2]


def _changes(chosen: Sequence[Option]) -> tuple[int, int]:
    return (sum(each.changes for each in chosen), sum(each.moved for each in chosen))


def _any_of(options: Sequence[Option]) -> int:
    found = 0
    for each in options:
        found |= each.met
    return found
