"""The meaning of visibility: the three rules and the table of dimensions, literally.

Slow and obvious. What is compiled must agree with this on every input.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from situ.lang.records import replace
from situ.lang.tags import ANY, TagSet
from situ.scopes.graph import BoundaryFilter, Dimension, ScopeGraph


class FilterOracle(Protocol):
    """An event that can be asked whether a filter is TRUE for it; unknown is not."""

    def passes(self, text: str) -> bool: ...


def visible(graph: ScopeGraph, event: FilterOracle, advertised: TagSet, subscribed: TagSet) -> bool:
    """Whether an event that was published under one tag set is visible to a subscription under the other.

    So it is if it is in every dimension. A tag set that names a scope which is not there sees nothing and is not seen.
    """
    for tags in (advertised, subscribed):
        for name, tag in tags.named:
            if tag != ANY and (name not in graph.dimensions or tag not in graph.dimensions[name].scopes):
                return False
    return all(
        visible_in(dimension, event, advertised.tag(name), subscribed.tag(name))
        for name, dimension in graph.dimensions.items()
    )


def visible_in(dimension: Dimension, event: FilterOracle, producer: str | None, consumer: str | None) -> bool:
    """The table: a scope, ``any`` (⊥ for the producer, ⊤ for the consumer) or None, for nothing said."""
    match producer, consumer:
        case None | "any", None:
            return not dimension.closed
        case _, None:
            return False
        case _, "any":
            return True
        case None, _:
            return False
        case "any", _:
            return True
        case _:
            return visible_between(dimension, event, producer, consumer)


def visible_between(dimension: Dimension, event: FilterOracle, producer: str, consumer: str) -> bool:
    """``V(X, Y)``: 1. they are the same; 2. one step up from X, and on; 3. as far as a container of Y, and down."""

    def passes(filters: tuple[BoundaryFilter, ...]) -> bool:
        return all(event.passes(each.text) for each in filters)

    @cache  # the same question comes up again and again, and its answer never changes
    def sees(x: str, y: str) -> bool:
        if x == y:
            return True
        if any(passes(dimension.up(x, s)) and sees(s, y) for s in dimension.containers(x)):
            return True
        return any(sees(x, s) and passes(dimension.down(s, y)) for s in dimension.containers(y))

    return sees(producer, consumer)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Hop by hop: how an event finds its way through brokers that know only scopes of their own.
#
# The paper's view of visibility. On its way an event carries one scope path per dimension, the scopes gone through so
# far, and a flag whether it is still going up there. At a broker it is either forwarded, paths unchanged, to a
# neighbour in the overlays of all scopes that it is in, or transformed in one dimension, up or down, at a broker in
# the overlays of both scopes. Situ's routers know the whole graph and decide at once
# (:mod:`situ.scopes.visibility_plan`); the two must agree wherever the overlays let the event through.

Paths = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers:
    """Brokers with their neighbours, and the scopes in whose overlays each of them is."""

    neighbours: Mapping[str, Sequence[str]]
    overlays: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HopState:
    """Where an event is and what it carries: in each dimension that is used, by name, its scope path and its flag."""

    broker: str
    dimensions: tuple[str, ...]
    paths: Paths
    going_up: tuple[bool, ...]

    @property
    def lasts(self) -> tuple[str, ...]:
        return tuple(path[-1] for path in self.paths)


def travel(
    graph: ScopeGraph,
    event: FilterOracle,
    brokers: Brokers,
    advertised: tuple[TagSet, str],
    subscribed: tuple[TagSet, str],
) -> tuple[HopState, ...] | None:
    """The shortest transition path between two tag sets, each at its broker; None if the event does not arrive."""
    (ad, start), (sub, goal) = advertised, subscribed
    used = _used(graph, ad, sub)
    if used is None:
        return None
    wanted = tuple(tag for _, _, tag in used)
    first = HopState(
        broker=start,
        dimensions=tuple(dimension.name for dimension, _, _ in used),
        paths=tuple((tag,) for _, tag, _ in used),
        going_up=(True,) * len(used),
    )
    return _search(first, (goal, wanted), [dimension for dimension, _, _ in used], event, brokers)


def delivery_path(path: Sequence[HopState]) -> tuple[str, ...]:
    """The brokers gone through."""
    return tuple(each.broker for place, each in enumerate(path) if place == 0 or path[place - 1].broker != each.broker)


def transformation_path(path: Sequence[HopState]) -> tuple[Paths, ...]:
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
    first: HopState,
    goal: tuple[str, tuple[str, ...]],
    dimensions: Sequence[Dimension],
    event: FilterOracle,
    brokers: Brokers,
) -> tuple[HopState, ...] | None:
    came_from: dict[tuple[object, ...], HopState | None] = {_state(first): None}
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


def _state(at: HopState) -> tuple[object, ...]:
    """All that the rest of the way depends on."""
    return (at.broker, at.lasts, at.going_up)


def _back(last: HopState, came_from: Mapping[tuple[object, ...], HopState | None]) -> tuple[HopState, ...]:
    path = [last]
    while (before := came_from[_state(path[-1])]) is not None:
        path.append(before)
    return tuple(reversed(path))


def _forwarded(at: HopState, brokers: Brokers) -> Iterator[HopState]:
    for neighbour in sorted(brokers.neighbours.get(at.broker, ())):
        if brokers.overlays[neighbour].issuperset(at.lasts):
            yield replace(at, broker=neighbour)


def _transformed(
    at: HopState, dimensions: Sequence[Dimension], event: FilterOracle, brokers: Brokers
) -> Iterator[HopState]:
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


def _appended(at: HopState, place: int, scope: str, *, up: bool) -> HopState:
    paths = (*at.paths[:place], (*at.paths[place], scope), *at.paths[place + 1 :])
    going_up = (*at.going_up[:place], up, *at.going_up[place + 1 :])
    return replace(at, paths=paths, going_up=going_up)
