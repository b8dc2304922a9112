"""Hop by hop: how an event finds its way through brokers that know only scopes of their own.

The paper's view of visibility. On its way an event carries one scope path per dimension, the scopes gone through so
far, and a flag whether it is still going up there. At a broker it is either forwarded, paths unchanged, to a neighbour
in the overlays of all scopes that it is in, or transformed in one dimension, up or down, at a broker in the overlays of
both scopes. Situ's routers know the whole graph and decide at once (:mod:`situ.visibility.plan`); the two must agree
wherever the overlays let the event through.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from situ.tags import ANY, TagSet
from situ.visibility.graph import Dimension, ScopeGraph
from situ.visibility.reference import Asked

Paths = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers:
    """Brokers with their neighbours, and the scopes in whose overlays each of them is."""

    neighbours: Mapping[str, Sequence[str]]
    overlays: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """Where an event is and what it carries: in each dimension that is used, by name, its scope path and its flag."""

    broker: str
    dimensions: tuple[str, ...]
    paths: Paths
    going_up: tuple[bool, ...]

    @property
    def lasts(self) -> tuple[str, ...]:
        return tuple(path[-1] for path in self.paths)


def travel(
    graph: ScopeGraph, event: Asked, brokers: Brokers, advertised: tuple[TagSet, str], subscribed: tuple[TagSet, str]
) -> tuple[Transition, ...] | None:
    """The shortest transition path between two tag sets, each at its broker; None if the event does not arrive."""
    (ad, start), (sub, goal) = advertised, subscribed
    used = _used(graph, ad, sub)
    if used is None:
        return None
    wanted = tuple(tag for _, _, tag in used)
    first = Transition(
        broker=start,
        dimensions=tuple(dimension.name for dimension, _, _ in used),
        paths=tuple((tag,) for _, tag, _ in used),
        going_up=(True,) * len(used),
    )
    return _search(first, (goal, wanted), [dimension for dimension, _, _ in used], event, brokers)


def delivery_path(path: Sequence[Transition]) -> tuple[str, ...]:
    """The brokers gone through."""
    return tuple(each.broker for place, each in enumerate(path) if place == 0 or path[place - 1].broker != each.broker)


def transformation_path(path: Sequence[Transition]) -> tuple[Paths, ...]:
    """What the event carried, one after the other."""
    return tuple(each.paths for place, each in enumerate(path) if place == 0 or path[place - 1].paths != each.paths)


def _used(graph: ScopeGraph, ad: TagSet, sub: TagSet) -> list[tuple[Dimension, str, str]] | None:
    """The dimensions in which both name a scope; None if what is said in one of the others does not let it pass."""
    for tags in (ad, sub):
        for name, tag in tags.named:
            if tag != ANY and (name not in graph.dimensions or tag not in graph.dimensions[name].scopes):
                return None
    used: list[tuple[Dimension, str, str]] = []
    for name, dimension in graph.dimensions.items():
        producer, consumer = ad.tag(name), sub.tag(name)
        if consumer == ANY or (producer == ANY and consumer is not None):
            continue
        if producer is None or producer == ANY:
            if consumer is not None or dimension.closed:
                return None
        elif consumer is None:
            return None
        else:
            used.append((dimension, producer, consumer))
    return used


def _search(
    first: Transition,
    goal: tuple[str, tuple[str, ...]],
    dimensions: Sequence[Dimension],
    event: Asked,
    brokers: Brokers,
) -> tuple[Transition, ...] | None:
    came_from: dict[tuple[object, ...], Transition | None] = {_state(first): None}
    waiting = deque([first])
    while waiting:
        here = waiting.popleft()
        if (here.broker, here.lasts) == goal:
            return _back(here, came_from)
        for following in (*_transformed(here, dimensions, event, brokers), *_forwarded(here, brokers)):
            if _state(following) not in came_from:
                came_from[_state(following)] = here
                waiting.append(following)
    return None


def _state(at: Transition) -> tuple[object, ...]:
    """All that the rest of the way depends on."""
    return (at.broker, at.lasts, at.going_up)


def _back(last: Transition, came_from: Mapping[tuple[object, ...], Transition | None]) -> tuple[Transition, ...]:
    path = [last]
    while (before := came_from[_state(path[-1])]) is not None:
        path.append(before)
    return tuple(reversed(path))


def _forwarded(at: Transition, brokers: Brokers) -> Iterator[Transition]:
    for neighbour in sorted(brokers.neighbours.get(at.broker, ())):
        if brokers.overlays[neighbour].issuperset(at.lasts):
            yield replace(at, broker=neighbour)


def _transformed(
    at: Transition, dimensions: Sequence[Dimension], event: Asked, brokers: Brokers
) -> Iterator[Transition]:
    overlay = brokers.overlays[at.broker]
    for place, dimension in enumerate(dimensions):
        last = at.paths[place][-1]
        if last not in overlay:
            continue
        if at.going_up[place]:
            for container in dimension.containers(last):
                if container in overlay and all(event.passes(each.text) for each in dimension.up(last, container)):
                    yield _appended(at, place, container, up=True)
        for member in dimension.members(last):
            if member in overlay and all(event.passes(each.text) for each in dimension.down(last, member)):
                yield _appended(at, place, member, up=False)


def _appended(at: Transition, place: int, scope: str, *, up: bool) -> Transition:
    paths = (*at.paths[:place], (*at.paths[place], scope), *at.paths[place + 1 :])
    going_up = (*at.going_up[:place], up, *at.going_up[place + 1 :])
    return replace(at, paths=paths, going_up=going_up)
