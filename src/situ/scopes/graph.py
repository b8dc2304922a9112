"""The scope graph: dimensions, scopes in scopes, the filters at their boundaries, and what clients may do there.

`ScopeGraph` is plain data, `with_places` adds where its filters are written, `effective_carriers` says which zones may
hold the events of each scope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from situ.lang.catalogue import CARRIERS_APART, NOT_CARRIED
from situ.lang.problems import Location, Problem
from situ.lang.records import replace
from situ.lang.tags import NO_TAGS, TagSet
from situ.lang.types.dependency_order import dependency_order

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The data, as checked when it was loaded: every name in it is there, nothing is a member of itself. Edges go from
# member to container. ⊥ and ⊤ are nowhere in it: both are written ``any``, which no scope is called. What a filter
# means for events of a type is :mod:`situ.scopes.filters`.

Right = Literal["observe", "broadcast", "admin"]
RIGHTS: tuple[Right, ...] = ("observe", "broadcast", "admin")


def _place() -> Any:
    return field(default=None, compare=False, repr=False)


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryFilter:
    """A condition at a boundary. Its text, canonically spelled, is all that it is: equal texts are one filter."""

    text: str
    place: Location | None = _place()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeLink:
    """What one edge asks for beside the interfaces: on the way from member into container, and back."""

    up: BoundaryFilter | None = None
    down: BoundaryFilter | None = None


NO_LINK = ScopeLink()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A named group. Without a filter an interface lets everything pass.

    ``containers`` are in the order of their names, and so are ``links``, which name only containers. ``carriers`` are
    the zones that it lists itself; None: it lists none, and has those that its containers have in common.
    """

    name: str
    containers: tuple[str, ...] = ()
    output: BoundaryFilter | None = None
    input: BoundaryFilter | None = None
    links: tuple[tuple[str, ScopeLink], ...] = ()
    carriers: tuple[str, ...] | None = None
    place: Location | None = _place()

    def __post_init__(self) -> None:
        if any(link == NO_LINK for _, link in self.links):
            object.__setattr__(self, "links", tuple(each for each in self.links if each[1] != NO_LINK))

    def link(self, container: str) -> ScopeLink:
        return next((link for name, link in self.links if name == container), NO_LINK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """One way of dividing the world. ``closed``: who says nothing in it sees nothing and is not seen."""

    name: str
    closed: bool = False
    scopes: Mapping[str, Scope] = field(default_factory=_nothing)
    place: Location | None = _place()
    _members: Mapping[str, tuple[str, ...]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        scopes = {name: self.scopes[name] for name in sorted(self.scopes)}
        members: dict[str, list[str]] = {}
        for name, scope in scopes.items():
            for container in scope.containers:
                members.setdefault(container, []).append(name)
        object.__setattr__(self, "scopes", MappingProxyType(scopes))
        object.__setattr__(self, "_members", {name: tuple(each) for name, each in members.items()})

    def containers(self, scope: str) -> tuple[str, ...]:
        """The scopes that it is directly in, by name."""
        return self.scopes[scope].containers

    def members(self, scope: str) -> tuple[str, ...]:
        """The scopes that are directly in it, by name; clients are not among them."""
        return self._members.get(scope, ())

    def up(self, member: str, container: str) -> tuple[BoundaryFilter, ...]:
        """The filters on the way from a member into its container; all must be true."""
        scope = self.scopes[member]
        return _present(scope.output, scope.link(container).up)

    def down(self, container: str, member: str) -> tuple[BoundaryFilter, ...]:
        """The filters on the way from a container into its member; all must be true."""
        scope = self.scopes[member]
        return _present(scope.input, scope.link(container).down)

    def above(self, scope: str) -> frozenset[str]:
        """All that it is in, directly or not, and the scope itself."""
        return _reached(scope, self.containers)

    def below(self, scope: str) -> frozenset[str]:
        """All scopes that are in it, directly or not, and the scope itself."""
        return _reached(scope, self.members)

    def upwards(self) -> list[str]:
        """All scopes, members before what they are in."""
        order, _ = dependency_order({name: self.members(name) for name in self.scopes})
        return order


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTags:
    """A policy is a client: what it reads as, and what it publishes as."""

    reads: TagSet = NO_TAGS
    publishes: TagSet = NO_TAGS
    place: Location | None = _place()


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What somebody may do in a dimension: everywhere, or in these scopes and all that is below them."""

    to: str
    dimension: str
    may: tuple[Right, ...]
    scopes: tuple[str, ...] = ()
    place: Location | None = _place()


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """In these dimensions only a policy's own tags count for its situations, of which only ``keep`` is left."""

    policy: str
    dimensions: tuple[str, ...]
    keep: tuple[str, ...] = ()
    by: str
    place: Location | None = _place()
    keep_places: Mapping[str, Location] = field(default_factory=_nothing, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeGraph:
    """All of ``scopes.yaml``. Mappings are in the order of their names, lists in one order that says nothing.

    ``clients`` says of each which scopes it is directly in, by dimension. No two dimensions share the name of a scope.
    """

    dimensions: Mapping[str, Dimension] = field(default_factory=_nothing)
    clients: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=_nothing)
    policies: Mapping[str, PolicyTags] = field(default_factory=_nothing)
    grants: tuple[Grant, ...] = ()
    releases: tuple[Release, ...] = ()
    _home: Mapping[str, str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("dimensions", "clients", "policies"):
            found: Mapping[str, Any] = getattr(self, name)
            object.__setattr__(self, name, MappingProxyType({key: found[key] for key in sorted(found)}))
        home = {scope: each.name for each in self.dimensions.values() for scope in each.scopes}
        object.__setattr__(self, "_home", home)

    def dimension_of(self, scope: str) -> str | None:
        """The dimension that has a scope of this name."""
        return self._home.get(scope)

    def memberships(self, client: str, dimension: str) -> tuple[str, ...]:
        """The scopes that a client is directly in, by name."""
        return self.clients.get(client, {}).get(dimension, ())

    def default_tags(self) -> dict[str, TagSet]:
        """What clients are tagged with where they say nothing: in a closed dimension the one scope that they are in.

        To say nothing there would mean to see and to show nothing. Of several scopes nobody can choose for them; in an
        open dimension it means what it meant before there were scopes.
        """
        closed = [name for name, dimension in self.dimensions.items() if dimension.closed]
        found = {}
        for client, memberships in self.clients.items():
            single = {name: memberships[name][0] for name in closed if len(memberships.get(name, ())) == 1}
            if single:
                found[client] = TagSet.of(single)
        return found

    def clients_in(self, dimension: str, scope: str) -> tuple[str, ...]:
        """The clients that are directly in a scope, by name."""
        return tuple(client for client, where in self.clients.items() if scope in where.get(dimension, ()))

    def tags_of(self, policy: str) -> PolicyTags:
        """What a policy reads and publishes as; without an entry it says nothing anywhere."""
        return self.policies.get(policy, NO_POLICY_TAGS)

    def filters(self) -> Iterator[BoundaryFilter]:
        """Every filter that is written, in one order; equal ones as often as they are written."""
        for dimension in self.dimensions.values():
            for scope in dimension.scopes.values():
                yield from _present(scope.output, scope.input)
                for _, link in scope.links:
                    yield from _present(link.up, link.down)


NO_POLICY_TAGS = PolicyTags()
NO_SCOPES = ScopeGraph()
"""A project without ``scopes.yaml``: no dimension, so that everything is visible to everybody."""


def _present(*filters: BoundaryFilter | None) -> tuple[BoundaryFilter, ...]:
    return tuple(each for each in filters if each is not None)


def _reached(start: str, following: Callable[[str], tuple[str, ...]]) -> frozenset[str]:
    found, waiting = {start}, [start]
    while waiting:
        for name in following(waiting.pop()):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return frozenset(found)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Where the filters are written: a graph that came over the bus knows no places, a loaded one does.


def with_places(graph: ScopeGraph, written: ScopeGraph) -> ScopeGraph:
    """The graph with the places of what stands in ``written`` as it is here; what is another there has none."""
    return replace(graph, dimensions={name: _dimension(each, written) for name, each in graph.dimensions.items()})


def _dimension(dimension: Dimension, written: ScopeGraph) -> Dimension:
    there = written.dimensions.get(dimension.name)
    if there is None:
        return dimension
    scopes = {name: _scope(scope, there.scopes.get(name)) for name, scope in dimension.scopes.items()}
    return replace(dimension, scopes=scopes, place=there.place)


def _scope(scope: Scope, there: Scope | None) -> Scope:
    if there is None:
        return scope
    links = tuple((container, _link(link, there.link(container))) for container, link in scope.links)
    return replace(
        scope,
        output=_filter(scope.output, there.output),
        input=_filter(scope.input, there.input),
        links=links,
        place=there.place,
    )


def _link(link: ScopeLink, there: ScopeLink) -> ScopeLink:
    return link if there == NO_LINK else ScopeLink(up=_filter(link.up, there.up), down=_filter(link.down, there.down))


def _filter(found: BoundaryFilter | None, there: BoundaryFilter | None) -> BoundaryFilter | None:
    return there if found == there else found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Carriers: the zones that may hold the events of a scope. A scope lists them itself; else it has those that its
# containers have in common, and at the top all zones. A scope and one that it is in need a zone in common, or no event
# could ever go from one to the other.

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


def carrier_conflicts(dimension: Dimension, only: frozenset[str] | None = None) -> Iterator[tuple[str, str, Problem]]:
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
