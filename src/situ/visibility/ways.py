"""Ways between two scopes: up, then down, no scope twice; the shortest first, and by name among equally short ones."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from situ.visibility.graph import Dimension, Filter

_MOST_LOOKED_AT = 5_000
"""Beginnings of ways that are looked at: graphs may have more ways than anybody could list."""


@dataclass(frozen=True, slots=True)
class Leg:
    """One step of a way: from a scope up into a container of it, or down into a member, past these filters."""

    start: str
    end: str
    up: bool
    filters: tuple[tuple[str, Filter], ...]
    """What is asked, by the name of the interface: ``output(s)``, ``link up``, ``input(s)``, ``link down``."""


Way = tuple[Leg, ...]
Open = Callable[[Leg], bool]


def ways_between(dimension: Dimension, start: str, end: str, is_open: Open = lambda leg: True) -> Iterator[Way]:
    """The ways whose legs are all open, in order; not all of them where they are very many."""
    to_go = _distances(dimension, start, end, is_open)
    first = (start, True)
    if first not in to_go:
        return
    waiting: list[tuple[int, tuple[str, ...], bool, Way]] = [(to_go[first], (start,), True, ())]
    for _ in range(_MOST_LOOKED_AT):
        if not waiting:
            return
        _, names, up, way = heapq.heappop(waiting)
        if names[-1] == end:
            yield way
            continue
        for leg in _legs(dimension, names[-1], going_up=up):
            left = to_go.get((leg.end, leg.up))
            if left is not None and leg.end not in names and is_open(leg):
                heapq.heappush(waiting, (len(names) + left, (*names, leg.end), leg.up, (*way, leg)))


def _legs(dimension: Dimension, scope: str, *, going_up: bool) -> Iterator[Leg]:
    if going_up:
        for container in dimension.containers(scope):
            yield leg_up(dimension, scope, container)
    for member in dimension.members(scope):
        yield leg_down(dimension, scope, member)


def leg_up(dimension: Dimension, member: str, container: str) -> Leg:
    scope = dimension.scopes[member]
    asked = ((f"output({member})", scope.output), ("link up", scope.link(container).up))
    return Leg(member, container, True, tuple((name, each) for name, each in asked if each is not None))


def leg_down(dimension: Dimension, container: str, member: str) -> Leg:
    scope = dimension.scopes[member]
    asked = ((f"input({member})", scope.input), ("link down", scope.link(container).down))
    return Leg(container, member, False, tuple((name, each) for name, each in asked if each is not None))


def _distances(dimension: Dimension, start: str, end: str, is_open: Open) -> dict[tuple[str, bool], int]:
    """How many steps are left at least, by scope and whether it is still going up, for all that lead to the end."""
    above = dimension.above(start)
    result: dict[tuple[str, bool], int] = {(end, False): 0}
    waiting = [(end, False)]
    if end in above:
        result[end, True] = 0
        waiting.append((end, True))
    for here, up in waiting:
        far = result[here, up] + 1
        before: list[tuple[str, bool]] = []
        if up:
            before = [(each, True) for each in dimension.members(here) if is_open(leg_up(dimension, each, here))]
        else:
            for container in dimension.containers(here):
                if is_open(leg_down(dimension, container, here)):
                    before += [(container, False), (container, True)]
        for state in before:
            if state not in result and (not state[1] or state[0] in above):
                result[state] = far
                waiting.append(state)
    return result
