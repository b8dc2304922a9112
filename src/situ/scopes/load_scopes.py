"""``scopes.yaml`` → the scope graph, or everything that is wrong with it, each problem at its place.

`check_graph` checks whether a graph holds together, `load_scopes` reads the document and checks it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeVar

import msgspec

from situ.lang.catalogue import (
    BAD_NAME,
    DECLARED_TWICE,
    MEMBER_OF_CLIENT,
    NO_RIGHT_TO_SCOPE,
    NO_SCOPE,
    SCOPE_CYCLE,
    SCOPE_NAME_TAKEN,
    UNKNOWN_KEY,
)
from situ.lang.documents import Document, Fields, Node, Reader, ScalarNode, is_nothing
from situ.lang.expr.faults import NO_FAULTS, Faults
from situ.lang.expr.syntax import spell
from situ.lang.problems import Location, Problem, Problems, nearest
from situ.lang.records import replace
from situ.lang.tags import ANY, NO_TAGS, REST, VIRTUAL, TagSet, read_tags
from situ.lang.types.dependency_order import dependency_order
from situ.scopes.filters import FilterMeanings, check_filter
from situ.scopes.graph import (
    NO_SCOPES,
    RIGHTS,
    BoundaryFilter,
    Dimension,
    Grant,
    PolicyTags,
    Release,
    Scope,
    ScopeGraph,
    ScopeLink,
    carrier_conflicts,
)
from situ.scopes.json_form import sorted_grants, sorted_releases
from situ.scopes.rights import TagRequest, check_tags, may, unknown_dimension, unknown_scope

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Does a scope graph hold together? Names that are there, no scope inside itself, carriers that meet, grants that hold.
# The same for a document and for a graph that was changed: places are known for what a document wrote.

Place = tuple[str, ...]
"""What stands at a place: a path of names, such as ``("in", dimension, scope, container)``."""

_NOT_NAMES = (ANY, *VIRTUAL)


class ScopeEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """What is known beside the graph: clients that it does not name, and where everything is written."""

    clients: Collection[str] = frozenset()
    places: Mapping[Place, Location] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    tag_places: Mapping[tuple[str, str], Mapping[str, Location]] = msgspec.field(
        default_factory=lambda: MappingProxyType({})
    )
    """(``reads`` or ``publishes``, policy) → where its tags stand."""

    def place(self, *path: str) -> Location | None:
        return self.places.get(path)


NOTHING_AROUND = ScopeEnvironment()


def check_graph(graph: ScopeGraph, problems: Problems, around: ScopeEnvironment = NOTHING_AROUND) -> ScopeGraph:
    """The graph without what is wrong with it, which goes to ``problems``."""
    checking = _GraphChecker(graph, problems, around)
    checking.names()
    sound = checking.edges()
    for dimension in sound.dimensions.values():
        for name, container, problem in carrier_conflicts(dimension):
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


class _GraphChecker:
    def __init__(self, graph: ScopeGraph, problems: Problems, around: ScopeEnvironment) -> None:
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
                by = TagRequest(who=policy, publishes=publishes, knows_all=True)
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The document.

KEYS = ("dimensions", "clients", "policies", "grants", "releases")
DIMENSION_KEYS = ("mode", "scopes")
MODES = ("open", "closed")
SCOPE_KEYS = ("in", "output", "input", "links", "carriers")
LINK_KEYS = ("up", "down")
POLICY_KEYS = ("reads", "publishes")
GRANT_KEYS = ("to", "dimension", "may")
RELEASE_KEYS = ("policy", "dimensions", "by")

NAME = re.compile(r"[A-Za-z0-9-]{1,64}")
MEMBER = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Sources may have `_` in their names, and be members like clients."""
ZONE = re.compile(r"[a-z0-9-]{1,32}")

T = TypeVar("T")

_NAMES = "Use letters, digits and `-`, at most 64."
_MEMBERS = "Use letters, digits, `-` and, for sources, `_`, at most 64."
_ZONES = "Use small letters, digits and `-`, at most 32."


def load_scopes(
    documents: Iterable[Document],
    filters: FilterMeanings,
    problems: Problems,
    *,
    clients: Collection[str] = (),
    functions: Collection[str] = (),
    faults: Faults = NO_FAULTS,
) -> ScopeGraph:
    """Read and check the document; what is wrong is reported and left out. Without a document there are no scopes.

    ``clients`` are those of the project, policies among them; ``functions`` the names of the project's functions.
    """
    read = Reader(problems)
    graph = NO_SCOPES
    for document in documents:
        loading = _ScopeLoader(read, filters, functions, faults)
        written = loading.document(document)
        around = ScopeEnvironment(clients=clients, places=loading.places, tag_places=loading.tag_places)
        graph = check_graph(written, problems, around)
    return graph


class _ScopeLoader(msgspec.Struct):
    read: Reader
    filters: FilterMeanings
    functions: Collection[str]
    faults: Faults
    places: dict[Place, Location] = msgspec.field(default_factory=dict)
    tag_places: dict[tuple[str, str], Mapping[str, Location]] = msgspec.field(default_factory=dict)

    def document(self, document: Document) -> ScopeGraph:
        if document.root is not None and is_nothing(document.root):
            self.read.problems.extend(document.problems)
            return NO_SCOPES
        fields = self.read.document(document, optional=KEYS)
        if fields is None:
            return NO_SCOPES
        return ScopeGraph(
            dimensions={key.text: self._dimension(key, node) for key, node in _entries(fields, "dimensions")},
            clients={key.text: self._client(key, node) for key, node in _entries(fields, "clients")},
            policies={key.text: self._policy(key, node) for key, node in _entries(fields, "policies")},
            grants=_numbered(self._grant, _items(fields, "grants")),
            releases=_numbered(self._release, _items(fields, "releases")),
        )

    # ── dimensions ──

    def _dimension(self, key: ScalarNode, node: Node) -> Dimension:
        self._name(key, "a dimension")
        fields = None if is_nothing(node) else self.read.fields(node, optional=DIMENSION_KEYS)
        if fields is None:
            return Dimension(name=key.text, place=key.location)
        return Dimension(
            name=key.text,
            closed=fields.choice("mode", MODES, "open") == "closed",
            scopes={name.text: self._scope(key.text, name, below) for name, below in _entries(fields, "scopes")},
            place=key.location,
        )

    def _scope(self, dimension: str, key: ScalarNode, node: Node) -> Scope:
        if key.text not in (ANY, *VIRTUAL):  # said by the graph, as of all other places where they stand for a scope
            self._name(key, "a scope")
        fields = None if is_nothing(node) else self.read.fields(node, optional=SCOPE_KEYS)
        if fields is None:
            return Scope(name=key.text, place=key.location)
        containers = self._names(fields, "in", ("in", dimension, key.text), "The scope")
        carriers = self._names(fields, "carriers", ("carriers", dimension, key.text), "The zone")
        for zone in fields.scalars("carriers"):
            self._name(zone, "a zone", ZONE, _ZONES)
        return Scope(
            name=key.text,
            containers=containers,
            output=self._filter(key.text, fields, "output"),
            input=self._filter(key.text, fields, "input"),
            links=self._links(key.text, fields, containers),
            carriers=carriers if "carriers" in fields else None,
            place=key.location,
        )

    def _links(self, scope: str, fields: Fields, containers: tuple[str, ...]) -> tuple[tuple[str, ScopeLink], ...]:
        found: dict[str, ScopeLink] = {}
        for key, node in _entries(fields, "links"):
            if key.text not in containers:
                near = nearest(key.text, containers)
                self.read.problems.add(UNKNOWN_KEY(key.location, key=key.text, nearest=near, known=containers))
                continue
            below = None if is_nothing(node) else self.read.fields(node, optional=LINK_KEYS)
            if below is not None:
                link = ScopeLink(up=self._filter(scope, below, "up"), down=self._filter(scope, below, "down"))
                if link != ScopeLink():
                    found[key.text] = link
        return tuple(sorted(found.items()))

    def _filter(self, scope: str, fields: Fields, key: str) -> BoundaryFilter | None:
        written = fields.scalar(key)
        if written is None:
            return None
        found = check_filter(scope, written.text, self.filters, written.locate, self.functions, self.faults)
        self.read.problems.extend(found)
        return BoundaryFilter(text=spell(written.text), place=written.locate(0, len(written.text)))

    # ── clients, policies, grants, releases ──

    def _client(self, key: ScalarNode, node: Node) -> Mapping[str, tuple[str, ...]]:
        self._name(key, "a client", MEMBER, _MEMBERS)
        mapping = None if is_nothing(node) else self.read.mapping(node)
        if mapping is None:
            return {}
        fields = Fields(self.read, mapping)
        found: dict[str, tuple[str, ...]] = {}
        for dimension, _ in mapping.entries:
            self.places["client", key.text, dimension.text] = dimension.location
            scopes = self._names(fields, dimension.text, ("client", key.text, dimension.text), "The scope")
            found[dimension.text] = scopes
        return {name: found[name] for name in sorted(found)}

    def _policy(self, key: ScalarNode, node: Node) -> PolicyTags:
        self._name(key, "a policy")
        fields = None if is_nothing(node) else self.read.fields(node, optional=POLICY_KEYS)
        if fields is None:
            return PolicyTags(place=key.location)
        return PolicyTags(
            reads=self._tags(key.text, fields, "reads"),
            publishes=self._tags(key.text, fields, "publishes"),
            place=key.location,
        )

    def _tags(self, policy: str, fields: Fields, side: str) -> TagSet:
        node = fields.node(side)
        written = None if node is None or is_nothing(node) else read_tags(self.read, node)
        if written is None:
            return NO_TAGS
        self.tag_places[side, policy] = written.places
        return written.tags

    def _grant(self, node: Node, number: int) -> Grant | None:
        fields = self.read.fields(node, required=GRANT_KEYS, optional=("scopes",))
        if fields is None:
            return None
        to, dimension = fields.scalar("to"), fields.scalar("dimension")
        may: list[str] = []
        for item in fields.items("may"):
            if (right := self.read.choice(item, RIGHTS)) is not None and right not in may:
                may.append(right)
        scopes = self._names(fields, "scopes", ("grant", str(number)), "The scope")
        if to is None or dimension is None or not may:
            return None
        if not self._name(to, "a principal", MEMBER, _MEMBERS):
            return None
        self.places["grant", str(number), "dimension"] = dimension.location
        return Grant(
            to=to.text,
            dimension=dimension.text,
            may=tuple(right for right in RIGHTS if right in may),
            scopes=scopes,
            place=node.location,
        )

    def _release(self, node: Node, number: int) -> Release | None:
        fields = self.read.fields(node, required=RELEASE_KEYS, optional=("keep",))
        if fields is None:
            return None
        policy, by = fields.scalar("policy"), fields.scalar("by")
        dimensions = self._names(fields, "dimensions", ("release", str(number)), "The dimension")
        keep = self._names(fields, "keep", ("keep", str(number)), "The attribute")
        if policy is None or by is None:
            return None
        self.places["release", str(number), "by"] = by.location
        return Release(
            policy=policy.text,
            dimensions=dimensions,
            keep=keep,
            by=by.text,
            place=node.location,
            keep_places={name: self.places["keep", str(number), name] for name in keep},
        )

    # ── names ──

    def _names(self, fields: Fields, key: str, path: Place, what: str) -> tuple[str, ...]:
        """A list of names, in their order, each once; where each stands is remembered."""
        seen: dict[str, ScalarNode] = {}
        for scalar in fields.scalars(key):
            first = seen.setdefault(scalar.text, scalar)
            if first is scalar:
                self.places[*path, scalar.text] = scalar.location
            else:
                place = str(first.location)
                self.read.problems.add(DECLARED_TWICE(scalar.location, what=what, name=scalar.text, first=place))
        return tuple(sorted(seen))

    def _name(self, key: ScalarNode, what: str, form: re.Pattern[str] = NAME, remedy: str = _NAMES) -> bool:
        if form.fullmatch(key.text) and key.text != REST:
            return True
        reason = "it has other characters" if key.text != REST else "it stands for the dimensions that are not named"
        self.read.problems.add(BAD_NAME(key.location, name=key.text or " ", what=what, reason=reason, remedy=remedy))
        return False


def _entries(fields: Fields, key: str) -> tuple[tuple[ScalarNode, Node], ...]:
    """A section that is there without content is empty: someone is about to write it."""
    node = fields.node(key)
    return () if node is None or is_nothing(node) else fields.entries(key)


def _items(fields: Fields, key: str) -> tuple[Node, ...]:
    node = fields.node(key)
    return () if node is None or is_nothing(node) else fields.items(key)


def _numbered(make: Callable[[Node, int], T | None], nodes: Iterable[Node]) -> tuple[T, ...]:
    """What could be made, each made with its place among the others."""
    made: list[T] = []
    for node in nodes:
        if (each := make(node, len(made))) is not None:
            made.append(each)
    return tuple(made)
