"""Scenarios: which zones, routers and clients there are, what is declared, and what happens when.

`Scenario` is plain data, `read_scenario` reads one from a file, `declared_world` compiles its types and scopes. What
happens is a list of actions in the order of time; leaving some out gives a smaller scenario, which is how a failing one
is made short.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from situ.lang.documents import Document, Fields, MappingNode, Node, Reader, ScalarNode, parse_yaml, to_data
from situ.lang.expr.emit.python import compile_test
from situ.lang.expr.limits import DEFAULT_LIMITS
from situ.lang.expr.runtime import FAILURES
from situ.lang.problems import Problems, SituError
from situ.lang.tags import NO_TAGS, TagSet, read_tags
from situ.lang.types.model import supertypes
from situ.lang.types.resolve import load_types
from situ.lang.types.table import Types
from situ.protocol.overlay.scope_document import ScopeDocument
from situ.protocol.overlay.state import Timing
from situ.routing.filter import Filter, read_filter
from situ.scopes.filter_sets import FilterNumbers
from situ.scopes.filters import FilterMeanings
from situ.scopes.graph import NO_SCOPES, ScopeGraph
from situ.scopes.load_scopes import load_scopes
from situ.scopes.visibility_plan import compile_visibility, number_filters

FAULTS = (
    "crash",
    "lose-disk",
    "pause",
    "cut-zones",
    "cut-inside",
    "cut-one-way",
    "cut-store",
    "stop-store",
    "delay",
    "jitter",
    "lose",
    "duplicate",
    "garble",
    "slow-disk",
    "drift",
    "depose",
    "crash-client",
)
DOINGS = ("publish", "subscribe", "unsubscribe", "advertise", "unadvertise", "move", "change-scopes", "leave", *FAULTS)
TIMES = ("heartbeat", "suspected", "removed", "renew", "stop", "lease", "epoch_lease", "grace", "withdrawal", "install")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a client advertises."""

    type: str
    where: str = ""
    tags: TagSet = NO_TAGS


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a client subscribes to."""

    types: tuple[str, ...]
    where: str = ""
    tags: TagSet = NO_TAGS
    durable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSpec:
    """A client from the beginning on; ``router`` is where it connects first."""

    name: str
    router: str
    offers: Mapping[str, Offer] = field(default_factory=dict)
    wishes: Mapping[str, Wish] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something that happens at a time. A fault lasts ``lasting`` seconds; ``what`` depends on what is done."""

    at: float
    do: str
    who: str = ""
    to: str = ""
    name: str = ""
    lasting: float = 0.0
    much: float = 0.0
    data: Mapping[str, Any] = field(default_factory=dict)
    wish: Wish | None = None
    offer: Offer | None = None

    def __str__(self) -> str:
        words = [self.do, self.who, self.name, self.to and f"→ {self.to}"]
        if self.data:
            words.append(", ".join(f"{key} {value}" for key, value in self.data.items()))
        if self.lasting:
            words.append(f"for {self.lasting:.1f} s")
        return " ".join(word for word in words if word)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """See the module. ``scopes`` are those of one epoch after the other, beginning with 1."""

    zones: Mapping[str, tuple[str, ...]]
    home: str
    types: Types
    scopes: tuple[ScopeGraph, ...]
    clients: tuple[ClientSpec, ...]
    actions: tuple[Action, ...] = ()
    lasting: float = 30.0
    quiet: float = 60.0
    timing: Timing = field(default_factory=Timing)
    latency: float = 0.005
    between: float = 0.03
    flood: bool = False

    def routers(self) -> list[str]:
        return [name for members in self.zones.values() for name in members]


class DeclaredMeaning:
    """Types and filters of a scenario, for its routers: see :class:`~situ.protocol.overlay.scope_document.Meaning`."""

    def __init__(self, types: Types, numbers: FilterNumbers) -> None:
        self._types = types
        self._above: dict[str, tuple[str, ...]] = {}
        self._filters: dict[tuple[str, str], Filter] = {}
        self._meanings = FilterMeanings(types)
        self._numbers = numbers
        self._boundaries: dict[str, list[tuple[int, Any]]] = {}

    def above(self, type: str) -> tuple[str, ...]:
        found = self._above.get(type)
        if found is None:
            event = self._types.event(type)
            found = () if event is None else tuple(str(each) for each in supertypes(event))
            self._above[type] = found
        return found

    def passes(self, where: str, type: str, data: Mapping[str, Any]) -> bool:
        found = self._filters.get((where, type))
        if found is None:
            event = self._types.event(type)
            assert event is not None, "a type with filters is declared"
            node = read_filter("", event, where, self._types, {}, DEFAULT_LIMITS)
            found = self._filters[where, type] = Filter(type, node)
        return found.test({}, data)

    def bits(self, type: str, data: Mapping[str, Any]) -> int:
        tests = self._boundaries.get(type)
        if tests is None:
            texts = self._numbers.texts()
            tests = self._boundaries[type] = [
                (1 << number, compile_test(self._meanings.node(text, type), ("event", "data")).call)
                for number, text in texts.items()
            ]
        found = 0
        for bit, test in tests:
            try:
                if test({"type": type}, data):
                    found |= bit
            except FAILURES:
                continue
        return found


@dataclass(frozen=True, slots=True)
class World:
    """What all routers of a scenario share: what is declared, compiled, by epoch."""

    meaning: DeclaredMeaning
    documents: Mapping[int, ScopeDocument]


def declared_world(scenario: Scenario) -> World:
    """Compile what a scenario declares; equal parts are compiled once."""
    numbers = FilterNumbers()
    graphs = scenario.scopes or (NO_SCOPES,)
    for graph in graphs:
        numbers = number_filters(graph, numbers)
    ads = {each.tags: None for client in scenario.clients for each in client.offers.values()}
    subs = {each.tags: None for client in scenario.clients for each in client.wishes.values()}
    ads |= {each.offer.tags: None for each in scenario.actions if each.offer is not None}
    subs |= {each.wish.tags: None for each in scenario.actions if each.wish is not None}
    documents = {}
    for epoch, graph in enumerate(graphs, 1):
        # Carriers ask whether an event can get to any scope at all.
        alone = {TagSet.of({name: scope}): None for name, each in graph.dimensions.items() for scope in each.scopes}
        plan = compile_visibility(graph, ads, {**subs, **alone}, numbers)
        documents[epoch] = ScopeDocument(epoch, plan)
    return World(DeclaredMeaning(scenario.types, numbers), documents)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The file of a scenario.

_KEYS = ("types", "events", "units", "scopes", "clients", "actions", "home", "lasting", "quiet", "timing", "latency")


def read_scenario(text: str, file: str) -> Scenario:
    """The scenario that a file describes; :class:`SituError` with all that is wrong with it."""
    problems = Problems()
    read = Reader(problems)
    document = parse_yaml(text, file)
    fields = read.document(document, required=("zones", "events", "clients"), optional=(*_KEYS, "between", "flood"))
    if fields is None:
        problems.raise_errors()
    assert fields is not None, "what is missing is a problem"
    zones = {key.text: _routers(key, node, read) for key, node in fields.entries("zones")}
    types = load_types([_part(document, fields, ("types", "events", "units"))], problems)
    filters = FilterMeanings(types)
    scopes = tuple(load_scopes([Document(file=file, root=node)], filters, problems) for node in fields.items("scopes"))
    reading = _ScenarioReader(read, zones, types)
    clients = tuple(reading.client(key, node) for key, node in fields.entries("clients"))
    known = {each.name for each in clients}
    actions = [action for node in fields.items("actions") if (action := reading.action(node, known)) is not None]
    timing = fields.fields("timing", optional=TIMES)
    times = {name: timing.number(name, least=0.01) for name in TIMES if timing is not None and name in timing}
    home = fields.choice("home", tuple(zones), next(iter(zones), ""))
    scenario = Scenario(
        zones=zones,
        home=home,
        types=types,
        scopes=scopes,
        clients=clients,
        actions=tuple(sorted(actions, key=lambda each: each.at)),
        lasting=fields.number("lasting", 30.0, least=0.0),
        quiet=fields.number("quiet", 60.0, least=0.0),
        timing=Timing(**{name: value for name, value in times.items() if value is not None}),
        latency=fields.number("latency", 0.005, least=0.0),
        between=fields.number("between", 0.03, least=0.0),
        flood=fields.boolean("flood", False),
    )
    problems.raise_errors()
    return scenario


def _part(document: Document, fields: Fields, keys: tuple[str, ...]) -> Document:
    """Some keys of a document, as a document of their own."""
    root = fields.mapping
    entries = tuple((key, node) for key, node in root.entries if key.text in keys)
    return Document(file=document.file, root=MappingNode(entries, None, root.source, root.start, root.end))


def _routers(key: ScalarNode, node: Node, read: Reader) -> tuple[str, ...]:
    """The routers of a zone: how many there are, or their names."""
    if isinstance(node, ScalarNode):
        count = read.integer(node, least=1, most=1000, instead="a list of names") or 1
        return tuple(f"{key.text}/{key.text}{number + 1}" for number in range(count))
    names = [each.text for item in read.items(node) or () if (each := read.scalar(item)) is not None]
    return tuple(f"{key.text}/{name}" for name in names)


class _ScenarioReader:
    def __init__(self, read: Reader, zones: Mapping[str, tuple[str, ...]], types: Types) -> None:
        self.read, self.zones, self.types = read, zones, types
        self.routers = {name.partition("/")[2]: name for members in zones.values() for name in members}

    def client(self, key: ScalarNode, node: Node) -> ClientSpec:
        fields = self.read.fields(node, required=("at",), optional=("advertises", "subscribes"))
        if fields is None:
            return ClientSpec(name=key.text, router="")
        at = fields.choice("at", tuple(self.routers))
        return ClientSpec(
            name=key.text,
            router=self.routers.get(at or "", ""),
            offers={name.text: self.offer(each) for name, each in fields.entries("advertises")},
            wishes={name.text: self.wish(each) for name, each in fields.entries("subscribes")},
        )

    def offer(self, node: Node) -> Offer:
        fields = self.read.fields(node, required=("type",), optional=("where", "scopes"))
        if fields is None:
            return Offer(type="")
        type = self._type(fields.scalar("type"))
        self._filter(fields.scalar("where"), (type,))
        return Offer(type=type, where=fields.text("where", ""), tags=self._tags(fields))

    def wish(self, node: Node) -> Wish:
        fields = self.read.fields(node, required=("types",), optional=("where", "scopes", "durable"))
        if fields is None:
            return Wish(types=())
        types = tuple(sorted({self._type(each) for each in fields.scalars("types")}))
        self._filter(fields.scalar("where"), types)
        durable = fields.boolean("durable", False)
        return Wish(types=types, where=fields.text("where", ""), tags=self._tags(fields), durable=durable)

    def _type(self, name: ScalarNode | None) -> str:
        if name is None:
            return ""
        if self.types.event(name.text) is None:
            self.read.wrong(name, "the name of an event type of this scenario")
        return name.text

    def _filter(self, where: ScalarNode | None, types: tuple[str, ...]) -> None:
        for type in types if where is not None else ():
            event = self.types.event(type)
            if event is not None and where is not None:
                try:
                    read_filter("", event, where.text, self.types, {}, DEFAULT_LIMITS)
                except SituError as error:
                    self.read.problems.extend(error.problems)

    def _tags(self, fields: Fields) -> TagSet:
        node = fields.node("scopes")
        written = None if node is None else read_tags(self.read, node)
        return NO_TAGS if written is None else written.tags

    def action(self, node: Node, clients: set[str]) -> Action | None:
        optional = ("who", "to", "name", "lasting", "much", "data", "wants", "offers")
        fields = self.read.fields(node, required=("at", "do"), optional=optional)
        if fields is None:
            return None
        at, do = fields.number("at", 0.0, least=0.0), fields.choice("do", DOINGS, "publish")
        who, to = (self._place(fields.scalar(key), clients) for key in ("who", "to"))
        data = fields.node("data")
        wants, offers = fields.node("wants"), fields.node("offers")
        return Action(
            at=at,
            do=do,
            who=who,
            to=to,
            name=fields.text("name", ""),
            lasting=fields.number("lasting", 5.0 if do in FAULTS else 0.0, least=0.0),
            much=fields.number("much", 0.0),
            data=to_data(data) if data is not None and self.read.mapping(data) is not None else {},
            wish=None if wants is None else self.wish(wants),
            offer=None if offers is None else self.offer(offers),
        )

    def _place(self, name: ScalarNode | None, clients: set[str]) -> str:
        """A client, a zone, or a router by its own name."""
        if name is None:
            return ""
        if name.text not in clients and name.text not in self.zones and name.text not in self.routers:
            self.read.wrong(name, "the name of a client, a zone or a router of this scenario")
        return self.routers.get(name.text, name.text)
