"""The files of ``clients/`` → clients with their advertisements and subscriptions, every one checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeVar

import msgspec

from situ.lang.catalogue import (
    BAD_NAME,
    DECLARED_TWICE,
    NOT_AN_EVENT,
    RESERVED_EVENT,
    TOPIC_NOT_ADVERTISED,
    TYPE_NOT_AVAILABLE,
    UNKNOWN_CONTEXT,
)
from situ.lang.documents import Document, Fields, Node, Reader, ScalarNode, SequenceNode, is_nothing
from situ.lang.documents import MappingNode as Written
from situ.lang.expr.faults import NO_FAULTS, Faults
from situ.lang.expr.limits import DEFAULT_LIMITS, ExpressionLimits
from situ.lang.expr.scope import Definition
from situ.lang.expr.syntax import spell
from situ.lang.problems import Location, Problem, Problems, SituError, nearest
from situ.lang.records import replace
from situ.lang.tags import NO_TAGS, TagSet, WrittenTags, read_tags
from situ.lang.types.lookup import Suggestions, not_declared
from situ.lang.types.model import ListOf, Struct, Type, supertypes
from situ.lang.types.table import RESERVED_EVENTS, WORKER_PUBLISHER, Types
from situ.routing.delivery_groups import FilterRewriter
from situ.routing.filter import check_filter
from situ.routing.load_topics import read_source, read_target
from situ.routing.model import NAME, ROOT, Advertisement, ClientDeclaration, Clients, Subscription
from situ.routing.topics import DELIVERIES, QUEUED, REAL_TIME
from situ.settings.kafka import KafkaSettings

CLIENT_KEYS = ("context", "scopes", "kafka", "advertisements", "subscriptions")
ADVERTISEMENT_KEYS = ("type", "where", "scopes")
SUBSCRIPTION_KEYS = ("types", "where", "durable", "context", "scopes", "kafka", "delivery")

NO_CONTEXTS: Mapping[str, Types] = MappingProxyType({})
NO_FAULTY: Mapping[str, Faults | None] = MappingProxyType({})
NO_CLIENTS: Mapping[str, ClientDeclaration] = MappingProxyType({})
NO_DEFAULTS: Mapping[str, TagSet] = MappingProxyType({})

_MOST_NAMED = 3

T = TypeVar("T")


def client_names(documents: Iterable[Document]) -> set[str]:
    """The clients that documents name, whatever is wrong with the rest of them."""
    found: set[str] = set()
    for document in documents:
        below = document.root.get("clients") if isinstance(document.root, Written) else None
        found |= {key.text for key, _ in below.entries} if isinstance(below, Written) else set()
    return found


def load_clients(
    documents: Iterable[Document],
    types: Types,
    functions: Mapping[str, Definition],
    problems: Problems,
    *,
    limits: ExpressionLimits = DEFAULT_LIMITS,
    faults: Faults = NO_FAULTS,
    contexts: Mapping[str, Types] = NO_CONTEXTS,
    faulty: Mapping[str, Faults | None] = NO_FAULTY,
    known: Mapping[str, ClientDeclaration] = NO_CLIENTS,
    mediator: FilterRewriter | None = None,
    defaults: Mapping[str, TagSet] = NO_DEFAULTS,
    kafka: KafkaSettings | None = None,
) -> Clients:
    """Read and check what all these documents declare together; what is wrong is reported and left out.

    What a client names is looked up in its context: ``contexts`` are their ids with the types visible in them, without
    root, where ``types`` are. What ``faulty`` ones lack is not called unknown again; None: nobody knows what that is.
    ``known`` clients are there already, and a document that says no context leaves them in theirs. The ``mediator``
    knows whether what a subscription asks for is ever delivered in its context. ``defaults`` are the tags of clients
    in dimensions in which they say nothing themselves. ``kafka`` is what the settings say of it, if anything.
    """
    types_in, faults_in = {**contexts, ROOT: types}, {**faulty, ROOT: faults}
    loading = _ClientLoader(functions, Reader(problems), limits, types_in, faults_in, known, mediator, defaults, kafka)
    for document in documents:
        loading.document(document)
    return Clients(
        clients=_sorted(loading.clients),
        advertisements=_sorted({each.id: each for each in loading.advertisements}),
        subscriptions=_sorted({each.id: each for each in loading.subscriptions}),
        places=MappingProxyType(loading.places),
        tags=MappingProxyType(loading.tags),
        deliveries=MappingProxyType(loading.deliveries),
    )


class _ClientLoader(msgspec.Struct):
    functions: Mapping[str, Definition]
    read: Reader
    limits: ExpressionLimits
    contexts: Mapping[str, Types]
    faulty: Mapping[str, Faults | None]
    known: Mapping[str, ClientDeclaration]
    mediator: FilterRewriter | None
    defaults: Mapping[str, TagSet]
    kafka: KafkaSettings | None
    clients: dict[str, ClientDeclaration] = msgspec.field(default_factory=dict)
    advertisements: list[Advertisement] = msgspec.field(default_factory=list)
    subscriptions: list[Subscription] = msgspec.field(default_factory=list)
    tags: dict[str, WrittenTags] = msgspec.field(default_factory=dict)
    deliveries: dict[str, Location] = msgspec.field(default_factory=dict)
    visible: Types | None = None
    faults: Faults = NO_FAULTS
    _places: dict[str, ScalarNode] = msgspec.field(default_factory=dict)
    _suggestions: Suggestions = msgspec.field(default_factory=Suggestions)

    @property
    def places(self) -> dict[str, Location]:
        return {name: key.location for name, key in self._places.items()}

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
                there = self.known.get(key.text)
                self.clients[key.text] = there if there is not None else ClientDeclaration(name=key.text)
            self._client(key.text, node)

    def _client(self, client: str, node: Node) -> None:
        if is_nothing(node):
            return
        fields = self.read.fields(node, optional=CLIENT_KEYS)
        if fields is None:
            return
        there = self.clients.get(client)
        own = self._enter(fields, there.context if there is not None else ROOT)
        if there is not None:
            there = self.clients[client] = replace(there, context=own)
        tags = self._tags(fields)
        if there is not None and tags is not None:
            self.clients[client] = replace(there, scopes=tags.tags)
        elif there is not None and there.scopes != NO_TAGS:
            tags = WrittenTags(tags=there.scopes, places={}, place=None)
        for key, below in _entries(fields, "advertisements"):
            self._name(key, "an advertisement")
            self._advertisement(client, key, below, tags)
        self._topics(client, fields)
        for key, below in _entries(fields, "subscriptions"):
            self._name(key, "a subscription")
            self._subscription(client, key, below, own, tags)

    def _enter(self, fields: Fields, otherwise: str) -> str:
        """The context that is named here. Where it is not there, or nobody knows what it has, nothing is looked up."""
        written = fields.scalar("context")
        context = written.text if written is not None else otherwise
        faults = self.faulty.get(context, NO_FAULTS)
        self.faults = faults or NO_FAULTS
        self.visible = self.contexts.get(context) if faults is not None else None
        if context not in self.contexts and written is not None:
            near = nearest(context, self.contexts)
            self.read.problems.add(nobody_declares(context, near, written.location))
        return context

    def _name(self, key: ScalarNode, what: str) -> bool:
        if NAME.fullmatch(key.text) and key.text != WORKER_PUBLISHER:
            return True
        if key.text == WORKER_PUBLISHER:
            reason, remedy = "Situ publishes events of workers under this name", "Give it another name."
        else:
            reason = "it has other characters" if len(key.text) <= 64 else "it is too long"
            remedy = "Use letters, digits and `-`, at most 64: names become subjects of the bus."
        shown = key.text or " "
        self.read.problems.add(BAD_NAME(key.location, name=shown, what=what, reason=reason, remedy=remedy))
        return False

    def _tags(self, fields: Fields) -> WrittenTags | None:
        node = fields.node("scopes")
        return None if node is None or is_nothing(node) else read_tags(self.read, node)

    def _tagged(self, id: str, key: ScalarNode, fields: Fields, default: WrittenTags | None) -> TagSet:
        """Its own tags, else those of its client; where they stand is remembered."""
        tags = self._tags(fields) or default or WrittenTags(tags=NO_TAGS, places={}, place=None)
        tags = replace(tags, tags=tags.tags.or_else(self.defaults.get(id.partition("/")[0], NO_TAGS)))
        self.tags[id] = tags if tags.place is not None else replace(tags, place=key.location)
        return tags.tags

    def _advertisement(self, client: str, key: ScalarNode, node: Node, tags: WrittenTags | None) -> None:
        fields = self.read.fields(node, required=("type",), optional=("where", "scopes"))
        if fields is None:
            return
        id = f"{client}/{key.text}"
        written, where = fields.scalar("type"), fields.scalar("where")
        tagged = self._tagged(id, key, fields, tags)
        if written is not None and written.text in RESERVED_EVENTS:
            self.read.problems.add(RESERVED_EVENT(written.location, type=written.text))
        elif written is not None and (event := self._event(written, "published")) is not None:
            if where is not None and self.visible is not None:
                types = self.visible
                check_filter(id, where, event, types, self.functions, self.read.problems, self.limits, self.faults)
            text = spell(where.text) if where is not None else ""
            advertisement = Advertisement(client=client, name=key.text, type=written.text, where=text, scopes=tagged)
            self.advertisements.append(advertisement)

    def _topics(self, client: str, fields: Fields) -> None:
        """The topics that its events come from; of a type that it advertises."""
        node = fields.node("kafka")
        if node is None or is_nothing(node):
            return
        written = node.get("type") if isinstance(node, Written) else None
        named = self._event(written, "published") if isinstance(written, ScalarNode) else None
        found = read_source(client, node, self.read, self.kafka, named)
        there = self.clients.get(client)
        if found is None or there is None:
            return
        self.clients[client] = replace(there, kafka=found)
        own = {each.type for each in self.advertisements if each.client == client}
        if named is not None and own.isdisjoint(str(each) for each in supertypes(named)):
            place = written.location if isinstance(written, ScalarNode) else None
            self.read.problems.add(TOPIC_NOT_ADVERTISED(place, client=client, type=named.name))

    def _subscription(self, client: str, key: ScalarNode, node: Node, own: str, tags: WrittenTags | None) -> None:
        fields = self.read.fields(node, required=("types",), optional=SUBSCRIPTION_KEYS[1:])
        if fields is None:
            return
        context = self._enter(fields, own)
        id = f"{client}/{key.text}"
        tagged = self._tagged(id, key, fields, tags)
        events = {event.name: event for event in self._events(fields)}
        where = fields.scalar("where")
        durable = fields.boolean("durable", False)
        types = self.visible
        topic = fields.node("kafka")
        target = None
        if topic is not None and not is_nothing(topic):
            target = read_target(id, topic, self.read, self.kafka, tuple(events.values()))
        delivery = fields.choice("delivery", DELIVERIES, QUEUED)
        said = fields.node("delivery")
        if said is not None and delivery == REAL_TIME:
            self.deliveries[id] = said.location
        if where is not None and types is not None:
            for event in events.values():
                check_filter(id, where, event, types, self.functions, self.read.problems, self.limits, self.faults)
        if events:
            subscription = Subscription(
                client=client,
                name=key.text,
                types=tuple(sorted(events)),
                where=spell(where.text) if where is not None else "",
                durable=durable or target is not None,
                context=context,
                scopes=tagged,
                kafka=target,
                delivery=delivery,
            )
            self.subscriptions.append(subscription)
            self._check_delivered(subscription, fields)

    def _check_delivered(self, subscription: Subscription, fields: Fields) -> None:
        if self.mediator is None or subscription.context == ROOT or subscription.context in self.faulty:
            return
        node = fields.node("types")
        place = node.location if node is not None else None
        try:
            self.mediator.conditions(subscription)
            if observed := tuple(self.mediator.observations(subscription)):
                # That a filter is never true was told where it says so itself.
                told = {
                    each.code.code for each in self.read.problems if each.values.get("subscription") == subscription.id
                }
                self.read.problems.extend(
                    replace(each, location=place) for each in observed if each.code.code not in told
                )
        except SituError as error:
            # Where the filter does not type was told before.
            problems = (each for each in error.problems if each.code.code == TYPE_NOT_AVAILABLE.code)
            self.read.problems.extend(replace(each, location=place) for each in problems)

    def _events(self, fields: Fields) -> Iterator[Struct]:
        node = fields.node("types")
        if node is not None and not (isinstance(node, SequenceNode) and node.items):
            example = node.text if isinstance(node, ScalarNode) and node.text and not node.substituted else "Name"
            self.read.wrong(node, "a list of event types", remedy=f"Write `types: [{example}]`.")
            return
        seen: dict[str, ScalarNode] = {}
        for scalar in fields.scalars("types"):
            first = seen.setdefault(scalar.text, scalar)
            if first is not scalar:
                place = str(first.location)
                problem = DECLARED_TWICE(scalar.location, what="The type", name=scalar.text, first=place)
                self.read.problems.add(problem)
            elif (event := self._event(scalar, "subscribed to")) is not None:
                yield event

    def _event(self, scalar: ScalarNode, done: str) -> Struct | None:
        """The event type of that name; a part of events is none, nor is what nobody declared."""
        if self.visible is None:
            return None
        event = self.visible.event(scalar.text)
        if event is not None or scalar.text in self.faults.types:
            return event
        if self.visible.get(scalar.text) is not None:
            events = tuple(_holders(scalar.text, self.visible))
            self.read.problems.add(NOT_AN_EVENT(scalar.location, type=scalar.text, done=done, events=events))
        else:
            similar = self._suggestions.near(scalar.text, self.visible.events)
            self.read.problems.add(not_declared(scalar.text, scalar.location, similar))
        return None


def _holders(part: str, types: Types) -> Iterator[str]:
    """Some events that have an attribute of that type."""
    found = 0
    for name in sorted(types.events):
        event = types.event(name)
        if found < _MOST_NAMED and event is not None and any(_is(each.type, part) for each in event.attributes):
            found += 1
            yield name


def _is(type: Type, name: str) -> bool:
    return _is(type.element, name) if isinstance(type, ListOf) else str(type) == name


def _sorted(things: Mapping[str, T]) -> Mapping[str, T]:
    return MappingProxyType({key: things[key] for key in sorted(things)})


def _entries(fields: Fields, key: str) -> tuple[tuple[ScalarNode, Node], ...]:
    """A section that is there without content is empty: someone is about to write it."""
    node = fields.node(key)
    return () if node is None or is_nothing(node) else fields.entries(key)


def nobody_declares(context: str, near: tuple[str, ...], place: Location | None = None) -> Problem:
    """Somebody names a context that is not there."""
    remedy = "Declare it in a file of contexts/, or take the line out."
    return UNKNOWN_CONTEXT(place, name=context or " ", reason="nobody declares it", nearest=near, remedy=remedy)
