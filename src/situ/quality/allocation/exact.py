"""One profile without modes, one expectation for each subscription, no budget: solved at any size by a minimum cut.

Every step of a property from one value to the next better one is a project that costs what the step costs and needs the
step before; every expectation is one that brings its utility and needs the steps up to its floors. What the rule
``utility`` asks for is the most profitable set of projects that has all it needs. Of several such sets the cut gives
the one that all others contain: it costs the least and changes the fewest properties.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise

from situ.quality.choices import Level, Option, joined
from situ.quality.parts import Part
from situ.quality.weighing import Weighing, is_simple

_SOURCE, _SINK = 0, 1


def is_selection(part: Part) -> bool:
    """Whether a part has this form."""
    free = len(part.choices) == 1 and not part.choices[0].profile.modes
    return free and not part.several and all(map(is_simple, part.stakes))


def select(weighing: Weighing) -> tuple[Option]:
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
    return (joined(choices, taken),)


def _first_that_fits(levels: tuple[Level, ...], bit: int) -> int:
    return next(place for place, each in enumerate(levels) if each.met & bit)


def _steps(network: _Network, levels: tuple[Level, ...], weighing: Weighing) -> list[int]:
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
