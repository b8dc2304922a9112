"""Carriers: the zones that may hold the events of a scope.

A scope lists them itself; else it has those that its containers have in common, and at the top all zones. A scope and
one that it is in need a zone in common, or no event could ever go from one to the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from situ.catalogue import CARRIERS_APART, NOT_CARRIED
from situ.errors import Problem
from situ.types.order import dependency_order
from situ.visibility.graph import Dimension, Scope, ScopeGraph

Carriers: TypeAlias = frozenset[str] | None
"""Zones; None: every zone there is."""


def effective_carriers(dimension: Dimension) -> Mapping[str, Carriers]:
    """The zones that carry each scope."""
    found: dict[str, Carriers] = {}
    for name in reversed(dimension.upwards()):
        found[name] = _carriers(dimension.scopes[name], found)
    return found


def carriers_of(dimension: Dimension, scope: str) -> Carriers:
    """The zones that carry one scope."""
    order, _ = dependency_order({name: dimension.containers(name) for name in dimension.above(scope)})
    found: dict[str, Carriers] = {}
    for name in order:
        found[name] = _carriers(dimension.scopes[name], found)
    return found[scope]


def apart(dimension: Dimension, only: frozenset[str] | None = None) -> Iterator[tuple[str, str, Problem]]:
    """Members and containers that no zone carries both, each with its problem; ``only`` these members are looked at."""
    carried = effective_carriers(dimension)
    for name, scope in dimension.scopes.items():
        if only is not None and name not in only:
            continue
        for container in scope.containers:
            if container in carried and not _overlap(carried[name], carried[container]):
                yield (
                    name,
                    container,
                    CARRIERS_APART(
                        scope.place,
                        member=name,
                        container=container,
                        carried_member=_shown(name, carried[name]),
                        carried_container=_shown(container, carried[container]),
                    ),
                )


def not_carried(graph: ScopeGraph, dimension: str, scope: str, zone: str) -> Problem | None:
    """What is wrong with naming a scope in a zone; None if the zone carries it."""
    carried = carriers_of(graph.dimensions[dimension], scope)
    if carried is None or zone in carried:
        return None
    return NOT_CARRIED(zone=zone, scope=scope, dimension=dimension, carriers=tuple(sorted(carried)))


def _carriers(scope: Scope, known: Mapping[str, Carriers]) -> Carriers:
    if scope.carriers is not None:
        return frozenset(scope.carriers)
    limited = [each for name in scope.containers if (each := known.get(name)) is not None]
    return frozenset.intersection(*limited) if limited else None


def _overlap(one: Carriers, other: Carriers) -> bool:
    if one is None or other is None:
        return one != frozenset() and other != frozenset()
    return bool(one & other)


def _shown(scope: str, carried: Carriers) -> str:
    if carried is None:
        return f"`{scope}` is carried by all zones"
    zones = ", ".join(sorted(carried)) or "no zone"
    return f"`{scope}` is carried by {zones}"
