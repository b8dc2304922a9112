"""``scopes.yaml`` → the scope graph, or everything that is wrong with it, each problem at its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from situ.catalogue import BAD_NAME, DECLARED_TWICE, UNKNOWN_KEY
from situ.documents import Document, Fields, Node, Reader, Scalar
from situ.errors import Location, Problems, nearest
from situ.expr.faults import NO_FAULTS, Faults
from situ.expr.spelling import spell
from situ.tags import ANY, NO_TAGS, REST, VIRTUAL, TagSet, read_tags
from situ.types.declare import is_nothing
from situ.visibility.check_filters import check_filter
from situ.visibility.check_graph import Around, Place, check_graph
from situ.visibility.filters import Filters
from situ.visibility.graph import (
    NO_SCOPES,
    RIGHTS,
    Dimension,
    Filter,
    Grant,
    Link,
    PolicyTags,
    Release,
    Scope,
    ScopeGraph,
)

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
    filters: Filters,
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
        loading = _Loading(read, filters, functions, faults)
        written = loading.document(document)
        around = Around(clients=clients, places=loading.places, tag_places=loading.tag_places)
        graph = check_graph(written, problems, around)
    return graph


@dataclass(slots=True)
class _Loading:
    read: Reader
    filters: Filters
    functions: Collection[str]
    faults: Faults
    places: dict[Place, Location] = field(default_factory=dict)
    tag_places: dict[tuple[str, str], Mapping[str, Location]] = field(default_factory=dict)

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

    def _dimension(self, key: Scalar, node: Node) -> Dimension:
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

    def _scope(self, dimension: str, key: Scalar, node: Node) -> Scope:
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

    def _links(self, scope: str, fields: Fields, containers: tuple[str, ...]) -> tuple[tuple[str, Link], ...]:
        found: dict[str, Link] = {}
        for key, node in _entries(fields, "links"):
            if key.text not in containers:
                near = nearest(key.text, containers)
                self.read.problems.add(UNKNOWN_KEY(key.location, key=key.text, nearest=near, known=containers))
                continue
            below = None if is_nothing(node) else self.read.fields(node, optional=LINK_KEYS)
            if below is not None:
                link = Link(up=self._filter(scope, below, "up"), down=self._filter(scope, below, "down"))
                if link != Link():
                    found[key.text] = link
        return tuple(sorted(found.items()))

    def _filter(self, scope: str, fields: Fields, key: str) -> Filter | None:
        written = fields.scalar(key)
        if written is None:
            return None
        found = check_filter(scope, written.text, self.filters, written.locate, self.functions, self.faults)
        self.read.problems.extend(found)
        return Filter(text=spell(written.text), place=written.locate(0, len(written.text)))

    # ── clients, policies, grants, releases ──

    def _client(self, key: Scalar, node: Node) -> Mapping[str, tuple[str, ...]]:
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

    def _policy(self, key: Scalar, node: Node) -> PolicyTags:
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
        seen: dict[str, Scalar] = {}
        for scalar in fields.scalars(key):
            first = seen.setdefault(scalar.text, scalar)
            if first is scalar:
                self.places[*path, scalar.text] = scalar.location
            else:
                place = str(first.location)
                self.read.problems.add(DECLARED_TWICE(scalar.location, what=what, name=scalar.text, first=place))
        return tuple(sorted(seen))

    def _name(self, key: Scalar, what: str, form: re.Pattern[str] = NAME, remedy: str = _NAMES) -> bool:
        if form.fullmatch(key.text) and key.text != REST:
            return True
        reason = "it has other characters" if key.text != REST else "it stands for the dimensions that are not named"
        self.read.problems.add(BAD_NAME(key.location, name=key.text or " ", what=what, reason=reason, remedy=remedy))
        return False


def _entries(fields: Fields, key: str) -> tuple[tuple[Scalar, Node], ...]:
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
