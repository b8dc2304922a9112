"""Exact solutions for one component of an allocation problem: branch and bound, and a minimum cut for a special form.

`branch_and_bound` goes through all plans of a small component. `select` solves a component of any size that has one
profile without modes, one expectation for each subscription and no budget.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from situ.quality.allocation.search_space import (
    Level,
    Objective,
    ProblemComponent,
    ProfileOption,
    Worth,
    combine_levels,
    is_simple,
)

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Branch and bound. One profile after the other gets one of its options. A branch is left as soon as the best that could
# still come of it, everything met that the rest could meet at the least cost of each, is worth less than what was
# found. Of plans that are worth the same, that with the fewest profiles changed is taken, then with the fewest
# properties, then with the smallest ids; then modes in their order and values nearest to the current ones.

MOST_PLANS = 200_000
Chosen = tuple[ProfileOption, ...]
"""An option for each profile of a part."""


def is_small(options: Sequence[Sequence[ProfileOption]]) -> bool:
    """Whether all plans can be gone through."""
    return math.prod(map(len, options)) <= MOST_PLANS


def branch_and_bound(weighing: Objective, options: Sequence[Sequence[ProfileOption]]) -> Chosen | None:
    """The best permitted choice; None, if none is permitted."""
    search = _BranchAndBound(weighing, options)
    search.go(0, [], 0)
    return search.best


@dataclass(slots=True)
class _BranchAndBound:
    weighing: Objective
    options: Sequence[Sequence[ProfileOption]]
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

    def go(self, place: int, taken: list[ProfileOption], cost: int) -> None:
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

    def _loses(self, taken: Sequence[ProfileOption]) -> bool:
        """Whether it changes more already than what was found, which is worth no less."""
        return _changes(taken) > self.ties[:2]


def _changes(chosen: Sequence[ProfileOption]) -> tuple[int, int]:
    return (sum(each.changes for each in chosen), sum(each.moved for each in chosen))


def _any_of(options: Sequence[ProfileOption]) -> int:
    found = 0
    for each in options:
        found |= each.met
    return found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Minimum cut. Every step of a property from one value to the next better one is a project that costs what the step
# costs and needs the step before; every expectation is one that brings its utility and needs the steps up to its
# floors. What the rule ``utility`` asks for is the most profitable set of projects that has all it needs. Of several
# such sets the cut gives the one that all others contain: it costs the least and changes the fewest properties.

_SOURCE, _SINK = 0, 1


def is_selection(part: ProblemComponent) -> bool:
    """Whether a part has this form."""
    free = len(part.choices) == 1 and not part.choices[0].profile.modes
    return free and not part.several and all(map(is_simple, part.stakes))


def select(weighing: Objective) -> tuple[ProfileOption]:
    """The best choice by the rule ``utility``."""
    (choices,) = weighing.part.choices
    network = _Network()
    steps = [_steps(network, levels, weighing) for levels in choices.levels]
    for (alternative,) in weighing.stakes:
        bit, utility = alternative
        if bit & choices.able and not bit & weighing.part.always and utility > 0:
            project = network.node()
            network.connect(_SOURCE, project, utility * weighing.weight.denominator)
            for place, step in enumerate(steps):
                if (needed := _first_that_fits(choices.levels[place], bit)) > 0:
                    network.connect(project, step[needed - 1], None)
    kept = network.cut()
    taken = [levels[sum(each in kept for each in step)] for levels, step in zip(choices.levels, steps, strict=True)]
    return (combine_levels(choices, taken),)


def _first_that_fits(levels: tuple[Level, ...], bit: int) -> int:
    return next(place for place, each in enumerate(levels) if each.met & bit)


def _steps(network: _Network, levels: tuple[Level, ...], weighing: Objective) -> list[int]:
    """A node for each step from a level to the next; each needs the one before."""
    found: list[int] = []
    for before, after in pairwise(levels):
        node = network.node()
        network.connect(node, _SINK, weighing.scaled(after.cost - before.cost) * weighing.weight.numerator)
        if found:
            network.connect(node, found[-1], None)
        found.append(node)
    return found


class _Network:
    """A flow network in whole numbers; a capacity of None is without end."""

    def __init__(self) -> None:
        self._edges: list[list[int]] = [[], []]
        self._to: list[int] = []
        self._left: list[int | None] = []

    def node(self) -> int:
        self._edges.append([])
        return len(self._edges) - 1

    def connect(self, one: int, other: int, capacity: int | None) -> None:
        for start, end, room in ((one, other, capacity), (other, one, 0)):
            self._edges[start].append(len(self._to))
            self._to.append(end)
            self._left.append(room)

    def cut(self) -> frozenset[int]:
        """What is on the side of the source of the smallest minimum cut: all that is still reached from it."""
        while True:
            depths = self._depths()
            if _SINK not in depths:
                return frozenset(depths)
            self._fill(depths)

    def _depths(self) -> dict[int, int]:
        found = {_SOURCE: 0}
        waiting = deque([_SOURCE])
        while waiting:
            node = waiting.popleft()
            for edge in self._edges[node]:
                if self._left[edge] != 0 and self._to[edge] not in found:
                    found[self._to[edge]] = found[node] + 1
                    waiting.append(self._to[edge])
        return found

    def _fill(self, depths: dict[int, int]) -> None:
        """Send as much as fits along shortest paths."""
        tried = [0] * len(self._edges)
        path: list[int] = []
        node = _SOURCE
        while True:
            if node == _SINK:
                self._send(path)
                path, node = [], _SOURCE
                continue
            step = self._step(node, depths, tried)
            if step is not None:
                path.append(step)
                node = self._to[step]
            elif not path:
                return
            else:
                node = self._to[path.pop() ^ 1]
                tried[node] += 1

    def _step(self, node: int, depths: dict[int, int], tried: list[int]) -> int | None:
        edges = self._edges[node]
        while tried[node] < len(edges):
            edge = edges[tried[node]]
            if self._left[edge] != 0 and depths.get(self._to[edge]) == depths[node] + 1:
                return edge
            tried[node] += 1
        return None

    def _send(self, path: list[int]) -> None:
        amount = min(room for edge in path if (room := self._left[edge]) is not None)
        for edge in path:
            for one, change in ((edge, -amount), (edge ^ 1, amount)):
                room = self._left[one]
                self._left[one] = None if room is None else room + change
