"""The files of ``clients/`` → clients with their advertisements and subscriptions, every one checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar

from situ.catalogue import BAD_NAME, DECLARED_TWICE, NOT_AN_EVENT, RESERVED_EVENT, TYPE_NOT_AVAILABLE
from situ.documents import Document, Fields, Node, Reader, Scalar, Sequence
from situ.errors import Problems
from situ.expr.faults import NO_FAULTS, Faults
from situ.expr.scope import Definition
from situ.expr.spelling import spell
from situ.expr.syntax import DEFAULT_LIMITS, Limits
from situ.subscription.filters import check_filter
from situ.subscription.model import NAME, Advertisement, Client, Clients, Subscription
from situ.types.declare import is_nothing
from situ.types.lookup import Suggestions
from situ.types.model import ListOf, Struct, Type
from situ.types.reserved import RESERVED_EVENTS
from situ.types.table import Types

CLIENT_KEYS = ("advertisements", "subscriptions")
ADVERTISEMENT_KEYS = ("type",)
SUBSCRIPTION_KEYS = ("types", "where", "durable")

_MOST_NAMED = 3

T = TypeVar("T")


def load_clients(
    documents: Iterable[Document],
    types: Types,
    functions: Mapping[str, Definition],
    problems: Problems,
    *,
    limits: Limits = DEFAULT_LIMITS,
    faults: Faults = NO_FAULTS,
) -> Clients:
    """Read and check what all these documents declare together; what is wrong is reported and left out."""
    loading = _Loading(types, functions, Reader(problems), limits, faults)
    for document in documents:
        loading.document(document)
    return Clients(
        clients=_sorted(loading.clients),
        advertisements=_sorted({each.id: each for each in loading.advertisements}),
        subscriptions=_sorted({each.id: each for each in loading.subscriptions}),
    )


@dataclass(slots=True)
class _Loading:
    types: Types
    functions: Mapping[str, Definition]
    read: Reader
    limits: Limits
    faults: Faults
    clients: dict[str, Client] = field(default_factory=dict)
    advertisements: list[Advertisement] = field(default_factory=list)
    subscriptions: list[Subscription] = field(default_factory=list)
    _places: dict[str, Scalar] = field(default_factory=dict)
    _suggestions: Suggestions = field(default_factory=Suggestions)

    def document(self, document: Document) -> None:
        if document.root is not None and is_nothing(document.root):
            self.read.problems.extend(document.problems)
            return
        fields = self.read.document(document, optional=("clients",))
        if fields is None:
            return
        for key, node in _entries(fields, "clients"):
            named = self._name(key, "a client")
            first = self._places.setdefault(key.text, key)
            if first is not key:
                place = str(first.location)
                problem = DECLARED_TWICE(key.location, what="The client", name=key.text, first=place)
                self.read.problems.add(problem)
            elif named:
                self.clients[key.text] = Client(name=key.text)
            self._client(key.text, node)

    def _client(self, client: str, node: Node) -> None:
        if is_nothing(node):
            return
        fields = self.read.fields(node, optional=CLIENT_KEYS)
        if fields is None:
            return
        for key, below in _entries(fields, "advertisements"):
            self._name(key, "an advertisement")
            self._advertisement(client, key.text, below)
        for key, below in _entries(fields, "subscriptions"):
            self._name(key, "a subscription")
            self._subscription(client, key.text, below)

    def _name(self, key: Scalar, what: str) -> bool:
        if NAME.fullmatch(key.text):
            return True
        reason = "it has other characters" if len(key.text) <= 64 else "it is too long"
        remedy = "Use letters, digits and `-`, at most 64: names become subjects of the bus."
        shown = key.text or " "
        self.read.problems.add(BAD_NAME(key.location, name=shown, what=what, reason=reason, remedy=remedy))
        return False

    def _advertisement(self, client: str, name: str, node: Node) -> None:
        fields = self.read.fields(node, required=ADVERTISEMENT_KEYS)
        written = fields.scalar("type") if fields is not None else None
        if written is not None and written.text in RESERVED_EVENTS:
            self.read.problems.add(RESERVED_EVENT(written.location, type=written.text))
        elif written is not None and self._event(written, "published") is not None:
            self.advertisements.append(Advertisement(client=client, name=name, type=written.text))

    def _subscription(self, client: str, name: str, node: Node) -> None:
        fields = self.read.fields(node, required=("types",), optional=("where", "durable"))
        if fields is None:
            return
        id = f"{client}/{name}"
        events = {event.name: event for event in self._events(fields)}
        where = fields.scalar("where")
        durable = fields.boolean("durable", False)
        if where is not None:
            for event in events.values():
                check_filter(id, where, event, self.types, self.functions, self.read.problems, self.limits, self.faults)
        if events:
            subscription = Subscription(
                client=client,
                name=name,
                types=tuple(sorted(events)),
                where=spell(where.text) if where is not None else "",
                durable=durable,
            )
            self.subscriptions.append(subscription)

    def _events(self, fields: Fields) -> Iterator[Struct]:
        node = fields.node("types")
        if node is not None and not (isinstance(node, Sequence) and node.items):
            example = node.text if isinstance(node, Scalar) and node.text and not node.substituted else "Name"
            self.read.wrong(node, "a list of event types", remedy=f"Write `types: [{example}]`.")
            return
        seen: dict[str, Scalar] = {}
        for scalar in fields.scalars("types"):
            first = seen.setdefault(scalar.text, scalar)
            if first is not scalar:
                place = str(first.location)
                problem = DECLARED_TWICE(scalar.location, what="The type", name=scalar.text, first=place)
                self.read.problems.add(problem)
            elif (event := self._event(scalar, "subscribed to")) is not None:
                yield event

    def _event(self, scalar: Scalar, done: str) -> Struct | None:
        """The event type of that name; a part of events is none, nor is what nobody declared."""
        event = self.types.event(scalar.text)
        if event is not None or scalar.text in self.faults.types:
            return event
        if self.types.get(scalar.text) is not None:
            events = tuple(self._holders(scalar.text))
            self.read.problems.add(NOT_AN_EVENT(scalar.location, type=scalar.text, done=done, events=events))
        else:
            similar = self._suggestions.near(scalar.text, self.types.events)
            self.read.problems.add(TYPE_NOT_AVAILABLE(scalar.location, type=scalar.text, nearest=similar))
        return None

    def _holders(self, part: str) -> Iterator[str]:
        """Some events that have an attribute of that type."""
        found = 0
        for name in sorted(self.types.events):
            event = self.types.event(name)
            if found < _MOST_NAMED and event is not None and any(_is(each.type, part) for each in event.attributes):
                found += 1
                yield name


def _is(type: Type, name: str) -> bool:
    return _is(type.element, name) if isinstance(type, ListOf) else str(type) == name


def _sorted(things: Mapping[str, T]) -> Mapping[str, T]:
    return MappingProxyType({key: things[key] for key in sorted(things)})


def _entries(fields: Fields, key: str) -> tuple[tuple[Scalar, Node], ...]:
    """A section that is there without content is empty: someone is about to write it."""
    node = fields.node(key)
    return () if node is None or is_nothing(node) else fields.entries(key)
