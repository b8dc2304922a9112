"""Does a scope graph hold together? Names that are there, no scope inside itself, carriers that meet, grants that hold.

The same for a document and for a graph that was changed: places are known for what a document wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from situ.catalogue import MEMBER_OF_CLIENT, NO_RIGHT_TO_SCOPE, NO_SCOPE, SCOPE_CYCLE, SCOPE_NAME_TAKEN
from situ.errors import Location, Problem, Problems
from situ.tags import ANY, VIRTUAL, TagSet
from situ.types.order import dependency_order
from situ.visibility.carriers import apart
from situ.visibility.graph import Dimension, Grant, Release, Scope, ScopeGraph
from situ.visibility.json_form import sorted_grants, sorted_releases
from situ.visibility.rights import Tagging, check_tags, may, unknown_dimension, unknown_scope

Place = tuple[str, ...]
"""What stands at a place: a path of names, such as ``("in", dimension, scope, container)``."""

_NOT_NAMES = (ANY, *VIRTUAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What is known beside the graph: clients that it does not name, and where everything is written."""

    clients: Collection[str] = frozenset()
    places: Mapping[Place, Location] = field(default_factory=lambda: MappingProxyType({}))
    tag_places: Mapping[tuple[str, str], Mapping[str, Location]] = field(default_factory=lambda: MappingProxyType({}))
    """(``reads`` or ``publishes``, policy) → where its tags stand."""

    def place(self, *path: str) -> Location | None:
        return self.places.get(path)


NOTHING_AROUND = Around()


def check_graph(graph: ScopeGraph, problems: Problems, around: Around = NOTHING_AROUND) -> ScopeGraph:
    """The graph without what is wrong with it, which goes to ``problems``."""
    checking = _Checking(graph, problems, around)
    checking.names()
    sound = checking.edges()
    for dimension in sound.dimensions.values():
        for name, container, problem in apart(dimension):
            place = around.place("in", dimension.name, name, container) or problem.location
            problems.add(problem.code(place, **problem.values))
    sound = replace(sound, clients=checking.clients(sound), grants=checking.grants(sound))
    checking.policies(sound)
    return replace(sound, releases=checking.releases(sound))


def cycle_text(dimension: Dimension, member: str, container: str) -> str:
    """The circle that an edge would close, as names: from the member up to itself."""
    if member == container:
        return f"{member} → {member}"
    come_from: dict[str, str] = {container: ""}
    waiting = [container]
    for name in waiting:
        for above in dimension.containers(name):
            if above not in come_from and above in dimension.scopes:
                come_from[above] = name
                waiting.append(above)
    way, name = [member], come_from[member]
    while name:
        way.append(name)
        name = come_from[name]
    return " → ".join([member, *reversed(way)])


class _Checking:
    def __init__(self, graph: ScopeGraph, problems: Problems, around: Around) -> None:
        self.graph, self.problems, self.around = graph, problems, around
        self.known_clients = {*graph.clients, *graph.policies, *around.clients}

    def names(self) -> None:
        """Names of scopes are those of nothing else."""
        first: dict[str, str] = {}
        for dimension in self.graph.dimensions.values():
            for name, scope in dimension.scopes.items():
                if name in _NOT_NAMES:
                    remedy = "Give the scope another name."
                    self.problems.add(NO_SCOPE(scope.place, name=name, what="be declared as a scope", remedy=remedy))
                elif (home := first.setdefault(name, dimension.name)) != dimension.name:
                    self._taken(name, dimension, scope, f"one of `{home}`")
                elif name in self.known_clients:
                    self._taken(name, dimension, scope, "the name of a client")

    def _taken(self, name: str, dimension: Dimension, scope: Scope, taken: str) -> None:
        self.problems.add(SCOPE_NAME_TAKEN(scope.place, name=name, dimension=dimension.name, taken=taken))

    def edges(self) -> ScopeGraph:
        """The graph with those edges only that lead somewhere, and not back."""
        return replace(
            self.graph,
            dimensions={name: self._dimension(dimension) for name, dimension in self.graph.dimensions.items()},
        )

    def _dimension(self, dimension: Dimension) -> Dimension:
        kept: dict[str, list[str]] = {}
        for name, scope in dimension.scopes.items():
            kept[name] = []
            for container in scope.containers:
                problem = self._container(dimension, name, container)
                if problem is None:
                    kept[name].append(container)
                else:
                    self.problems.add(problem)
        _, circles = dependency_order(kept)
        for circle in circles:
            member, container = circle.closing
            kept[member].remove(container)
            place = self.around.place("in", dimension.name, member, container)
            # It closes with its first name: said from the member on, the edge that is refused comes first.
            shown = " → ".join([member, *(str(circle).split(" → ")[:-1])])
            self.problems.add(SCOPE_CYCLE(place, member=member, container=container, cycle=shown))
        scopes = {name: _only(scope, kept[name]) for name, scope in dimension.scopes.items()}
        return replace(dimension, scopes=scopes)

    def _container(self, dimension: Dimension, member: str, container: str) -> Problem | None:
        place = self.around.place("in", dimension.name, member, container)
        if container in _NOT_NAMES:
            remedy = "Leave `in:` out for a scope that is in no other."
            return NO_SCOPE(place, name=container, what="have members", remedy=remedy)
        if container in dimension.scopes:
            return None
        if container in self.known_clients:
            return MEMBER_OF_CLIENT(place, member=member, client=container)
        return unknown_scope(self.graph, dimension, container, place)

    def clients(self, graph: ScopeGraph) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
        """Who is in which scopes, without scopes that are not there."""
        return {client: dict(self._memberships(graph, client, where)) for client, where in graph.clients.items()}

    def _memberships(
        self, graph: ScopeGraph, client: str, where: Mapping[str, tuple[str, ...]]
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        for name, scopes in where.items():
            dimension = graph.dimensions.get(name)
            if dimension is None:
                self.problems.add(unknown_dimension(graph, name, self.around.place("client", client, name)))
                continue
            there = []
            for scope in scopes:
                problem = self._membership(graph, dimension, client, scope)
                if problem is None:
                    there.append(scope)
                else:
                    self.problems.add(problem)
            yield name, tuple(there)

    def _membership(self, graph: ScopeGraph, dimension: Dimension, client: str, scope: str) -> Problem | None:
        place = self.around.place("client", client, dimension.name, scope)
        if scope in _NOT_NAMES:
            remedy = "A client is in scopes that are declared; `any` is for tags."
            return NO_SCOPE(place, name=scope, what="have members", remedy=remedy)
        if scope in dimension.scopes:
            return None
        if scope in self.known_clients:
            return MEMBER_OF_CLIENT(place, member=client, client=scope)
        return unknown_scope(graph, dimension, scope, place)

    def grants(self, graph: ScopeGraph) -> tuple[Grant, ...]:
        """Grants in dimensions and on scopes that are there; one that would come out wider is left out."""
        kept = []
        for number, grant in enumerate(graph.grants):
            found = list(self._grant(graph, grant, str(number)))
            self.problems.extend(found)
            if not found:
                kept.append(grant)
        return sorted_grants(kept)

    def _grant(self, graph: ScopeGraph, grant: Grant, number: str) -> Iterator[Problem]:
        dimension = graph.dimensions.get(grant.dimension)
        if dimension is None:
            yield unknown_dimension(graph, grant.dimension, self.around.place("grant", number, "dimension"))
            return
        for scope in grant.scopes:
            if scope not in dimension.scopes:
                yield unknown_scope(graph, dimension, scope, self.around.place("grant", number, scope))

    def policies(self, graph: ScopeGraph) -> None:
        """What policies read and publish as must be theirs to name."""
        for policy, entry in graph.policies.items():
            sides: tuple[tuple[str, TagSet, bool], ...] = (
                ("reads", entry.reads, False),
                ("publishes", entry.publishes, True),
            )
            for side, tags, publishes in sides:
                by = Tagging(who=policy, publishes=publishes, knows_all=True)
                places = self.around.tag_places.get((side, policy), {})
                self.problems.extend(check_tags(graph, tags, by, places))

    def releases(self, graph: ScopeGraph) -> tuple[Release, ...]:
        """Releases that somebody wrote who may."""
        kept = []
        for number, release in enumerate(graph.releases):
            found = list(self._release(graph, release, str(number)))
            self.problems.extend(found)
            if not found:
                kept.append(release)
        return sorted_releases(kept)

    def _release(self, graph: ScopeGraph, release: Release, number: str) -> Iterator[Problem]:
        for name in release.dimensions:
            if name not in graph.dimensions:
                yield unknown_dimension(graph, name, self.around.place("release", number, name))
                continue
            tag = graph.tags_of(release.policy).reads.tag(name)
            scope = None if tag == ANY else tag
            if not may(graph, release.by, "admin", name, scope):
                what = f"release situations of `{release.policy}` in the dimension `{name}`"
                place = self.around.place("release", number, "by")
                yield NO_RIGHT_TO_SCOPE(place, who=release.by, what=what)


def _only(scope: Scope, containers: Collection[str]) -> Scope:
    if len(containers) == len(scope.containers):
        return scope
    links = tuple((name, link) for name, link in scope.links if name in containers)
    return replace(scope, containers=tuple(containers), links=links)
