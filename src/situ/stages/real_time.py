"""Real-time deliveries: which subscriptions Spark SQL alone can deliver, of whose events, and as which expressions.

A subscription with ``delivery: real-time`` gets what can be in real time: the plain records of topics, of a client all
of whose stages are expressions. Everything else reaches its topic by its queue, as always. `real_time_plan` says for
each client what is made of a record (`RealTimeClient`) and for each subscription what goes the ordinary way, and why.

Here is text of Spark SQL and no Spark: `situ check` and `situ explain` ask the same plan that is run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType

import msgspec

from situ.contexts.model import ROOT, Direction
from situ.contexts.transform.columns import condition_in_columns, spark_expression
from situ.contexts.transform.transformation import Transformation
from situ.lang.catalogue import NO_REAL_TIME
from situ.lang.expr.emit.spark import emit_spark
from situ.lang.expr.overload import spark_name, spark_text
from situ.lang.expr.tree import FALSE, TRUE, Field, Node, Read, walk
from situ.lang.problems import Location, Problem, SituError
from situ.lang.tags import TagSet
from situ.lang.types.layout import spark_type
from situ.lang.types.model import STRING, Struct, plain, supertypes
from situ.lang.types.table import Types
from situ.model.deployment import Deployment
from situ.routing.model import Advertisement, ClientDeclaration, Subscription
from situ.routing.topics import CLOUDEVENTS, JSON
from situ.stages.plain_records import NotPlain, PlainRecords, instant_text, json_text, string_text, unfit_type
from situ.stages.plan import Plan, compile_plan
from situ.stages.seal_text import TOKEN, token_columns
from situ.stages.visibility_text import FilterTexts, pair_text

DATA, EVENT = "data", "event"
_ENVELOPE = ("id", "source", "type", "time", "confidence")
_MICROSECOND = timedelta(microseconds=1)


class _Ordinary(Exception):
    """Why something goes the ordinary way, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A struct from the columns ``event`` and ``data``: Spark SQL of its value, and of when it fails."""

    value: str = DATA
    fails: str = "FALSE"


@dataclass(frozen=True, slots=True, kw_only=True)
class RealTimeSubscription:
    """How one subscription gets the events of one client, over the columns ``event`` and ``data`` of root events."""

    id: str
    type: str
    """Of what is delivered."""
    wanted: str
    """Whether an event is delivered, as far as filters say."""
    visible: str
    """Whether it is visible to the subscription, by the scopes of the same version."""
    out: Conversion
    reads_sent: bool
    """It gets the event as it was sent: ``sent`` instead of ``data``."""
    topic: str
    record: str
    """The record, a struct of ``topic``, ``key``, ``value`` and ``headers``, over the column :attr:`made`."""

    @property
    def made(self) -> str:
        """The column with the data that is delivered, null if nothing is."""
        return made_column(self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class RealTimeClient:
    """What is made of the records of one client."""

    client: str
    plain: PlainRecords
    type: str
    """Of its events in root's terms."""
    inward: Conversion
    tags: TagSet
    """Under which its events are published."""
    sealed: bool
    """Whether what leaves has its numbers sealed."""
    subscriptions: tuple[RealTimeSubscription, ...]

    @property
    def seal(self) -> tuple[str, ...]:
        """Columns that a sealed record needs, one after the other."""
        return token_columns(self.plain.incarnation, self.plain.seq) if self.sealed else ()

    @property
    def event(self) -> str:
        """The column ``event`` of a plain record."""
        plain = self.plain
        values = {
            "id": plain.id,
            "source": plain.source,
            "type": spark_text(self.type),
            "time": plain.time,
            "confidence": "CAST(NULL AS DOUBLE)",
        }
        return f"named_struct({', '.join(f'{spark_text(name)}, {text}' for name, text in values.items())})"

    def digest(self, subscription: RealTimeSubscription) -> str:
        """The same as long as a subscription gets the same of this client."""
        plain = self.plain
        texts = (plain.condition, plain.parsed, plain.data, plain.fails, self.event, plain.situ_key, *self.seal)
        of_client = (*texts, self.inward.value, self.inward.fails)
        each = subscription
        asked = (each.id, each.type, each.wanted, each.visible)
        own = (*asked, each.out.value, each.out.fails, str(each.reads_sent), each.record)
        return hashlib.sha256("\0".join((*of_client, *own)).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinaryWay:
    """What of a subscription does not go in real time: the events of a client, or of any other, and why."""

    client: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RealTimePlan:
    """What goes in real time, by client, and by subscription what does not."""

    clients: Mapping[str, RealTimeClient] = field(default_factory=lambda: MappingProxyType({}))
    ordinary: Mapping[str, tuple[OrdinaryWay, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def clients_of(self, subscription: str) -> tuple[str, ...]:
        """Of whose events a subscription gets some in real time."""
        return tuple(
            name for name, each in self.clients.items() if any(one.id == subscription for one in each.subscriptions)
        )

    @property
    def digests(self) -> dict[str, dict[str, str]]:
        """Client → subscription → :meth:`RealTimeClient.digest`."""
        return {name: {one.id: each.digest(one) for one in each.subscriptions} for name, each in self.clients.items()}


def wants_real_time(deployment: Deployment) -> bool:
    return any(each.in_real_time for each in deployment.subscriptions.values())


def check_real_time(deployment: Deployment, places: Mapping[str, Location]) -> Iterable[Problem]:
    """Why a subscription that asks for it can never get anything in real time."""
    if not wants_real_time(deployment):
        return
    plan = real_time_plan(compile_plan(deployment))
    for id, each in deployment.subscriptions.items():
        if each.in_real_time and not plan.clients_of(id):
            reason = "; ".join(_said(way) for way in plan.ordinary[id])
            yield NO_REAL_TIME(places.get(id), subscription=id, reason=reason)


def _said(way: OrdinaryWay) -> str:
    return f"`{way.client}`: {way.reason}" if way.client else way.reason


def real_time_plan(plan: Plan, *, sealed: bool = False) -> RealTimePlan:
    """What goes in real time under a plan. Among scopes numbers are sealed; ``sealed``: in any case."""
    deployment = plan.deployment
    asked = [each for each in deployment.routed.values() if each.in_real_time]
    if not asked:
        return RealTimePlan()
    clients: dict[str, RealTimeClient] = {}
    ordinary: dict[str, list[OrdinaryWay]] = {each.id: [] for each in asked}
    able: list[Subscription] = []
    for each in asked:
        if (reason := _never(each, plan)) is not None:
            ordinary[each.id].append(OrdinaryWay(client="", reason=reason))
        else:
            able.append(each)
    for client in deployment.clients.values():
        others = [each for each in able if each.client != client.name]
        if client.kafka is None:
            continue
        try:
            made = _ClientWay(plan, client, sealed=sealed or plan.seeing is not None)
        except _Ordinary as refused:
            types = refused.args[1:] or _published(plan, client.name)
            way = OrdinaryWay(client=client.name, reason=refused.args[0])
            for each in others:
                if any(_may_want(each, plan, type) for type in types):
                    ordinary[each.id].append(way)
            continue
        found = []
        for each in others:
            if not made.is_asked_for(each):
                continue
            try:
                found.append(made.subscription(each))
            except _Ordinary as refused:
                ordinary[each.id].append(OrdinaryWay(client=client.name, reason=refused.args[0]))
        if found:
            clients[client.name] = made.client(tuple(found))
    planned = RealTimePlan(clients=clients)
    for each in able:
        if not planned.clients_of(each.id) and not ordinary[each.id]:
            reason = "no client whose events come from topics publishes what it asks for"
            ordinary[each.id].append(OrdinaryWay(client="", reason=reason))
    return RealTimePlan(clients=clients, ordinary={id: tuple(each) for id, each in ordinary.items()})


def _never(subscription: Subscription, plan: Plan) -> str | None:
    """Why a subscription gets nothing in real time, whoever publishes."""
    target = subscription.kafka
    if target is None:
        return "it is not delivered to a topic of Kafka"
    if target.format not in (JSON, CLOUDEVENTS):
        return f"its records are {target.format}, which Spark SQL does not write with a registry"
    if subscription.shaped:
        return "what was negotiated for it needs to know which events came before"
    return None


def _published(plan: Plan, client: str) -> Iterable[str]:
    """The root types that a client advertises."""
    own = (each for each in plan.deployment.advertisements.values() if each.client == client)
    return [plan.interpretation.advertised(each).type for each in own]


def _may_want(subscription: Subscription, plan: Plan, type: str) -> bool:
    """Whether it asks for events of a root type."""
    event = plan.deployment.types.event(type)
    if event is None:
        return False
    above = {str(each) for each in supertypes(event)}
    return not above.isdisjoint(plan.routing.wanted.meaning.conditions(subscription))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The way of one client's records.


class _ClientWay:
    """From a record to an event in root's terms; :class:`_Ordinary` if that takes more than expressions."""

    def __init__(self, plan: Plan, client: ClientDeclaration, *, sealed: bool) -> None:
        source = client.kafka
        assert source is not None
        self._plan, self._declared, self._sealed = plan, client, sealed
        settings, interpretation = plan.deployment.settings, plan.interpretation
        if source.format != JSON:
            raise _Ordinary(f"its records are {source.format}: in real time, records are JSON of one `type`")
        context = plan.deployment.contexts.by_id.get(client.context)
        types = plan.deployment.types if client.context == ROOT or context is None else context.types
        event = types.event(source.type)
        if event is None:
            raise _Ordinary(f"it has no type `{source.type}`")
        self._sent, self._sent_types = event, types
        self._stamped = interpretation.stamped(client.name)
        self._event, self._inward = self._into_root(event)
        try:
            self._plain = PlainRecords(
                client.name,
                source,
                event,
                types,
                ahead=settings.limits.ahead // _MICROSECOND,
                size=settings.limits.event,
                extra=settings.defaults.extra,
            )
        except NotPlain as reason:
            raise _Ordinary(f"{reason}, which Spark SQL does not read as engines do", self._event.name) from None
        ad = self._advertised()
        self._tags = ad.scopes
        self._promise = self._promised(ad)

    def _into_root(self, event: Struct) -> tuple[Struct, Conversion]:
        if self._stamped == ROOT:
            return event, Conversion()
        converter = self._plan.interpretation.converter(self._stamped, Direction.IN, event.name)
        if converter is None:
            raise _Ordinary(f"`{event.name}` has no way into root")
        way = converter.transformation
        return way.target, _conversion(way)

    def _advertised(self) -> Advertisement:
        """The advertisement that its events are published under."""
        plan, above = self._plan, {str(each) for each in supertypes(self._event)}
        fitting: list[Advertisement] = [
            each
            for each in plan.deployment.advertisements.values()
            if each.client == self._declared.name and plan.interpretation.advertised(each).type in above
        ]
        if len(fitting) != 1:
            raise _Ordinary(f"it has {len(fitting)} advertisements for `{self._event.name}`, not one", self._event.name)
        return fitting[0]

    def _promised(self, ad: Advertisement) -> str:
        """What an advertisement promises of events."""
        if not ad.where:
            return "TRUE"
        asked = Subscription(
            client=ad.client, name=ad.name, types=(ad.type,), where=ad.where, context=self._declared.context
        )
        return _wanted(self._plan, asked, self._event)

    def client(self, subscriptions: tuple[RealTimeSubscription, ...]) -> RealTimeClient:
        return RealTimeClient(
            client=self._declared.name,
            plain=self._plain,
            type=self._event.name,
            inward=self._inward,
            tags=self._tags,
            sealed=self._sealed,
            subscriptions=subscriptions,
        )

    def is_asked_for(self, subscription: Subscription) -> bool:
        return _may_want(subscription, self._plan, self._event.name)

    def subscription(self, asked: Subscription) -> RealTimeSubscription:
        """How a subscription gets its events; :class:`_Ordinary` if that takes more than expressions."""
        assert asked.kafka is not None
        wanted = _wanted(self._plan, asked, self._event)
        visible = _visible(self._plan, self._tags, asked, self._event)
        reads_sent = self._is_sent_back(asked)
        if reads_sent:
            made, types, out = self._sent, self._sent_types, Conversion(value="sent")
        else:
            made, types, out = self._out(asked)
        if (reason := unfit_type(made, types)) is not None:
            raise _Ordinary(f"{reason}, which Spark SQL does not write as engines do")
        promise = "" if self._promise == "TRUE" else f" AND {self._promise}"
        return RealTimeSubscription(
            id=asked.id,
            type=made.name,
            wanted=f"({wanted}{promise})",
            visible=visible,
            out=out,
            reads_sent=reads_sent,
            topic=asked.kafka.topic,
            record=_record(asked, made, self._plain, sealed=self._sealed),
        )

    def _is_sent_back(self, asked: Subscription) -> bool:
        """Whether it gets events as they were sent, in the context that they were sent in."""
        contexts, interpretation = self._plan.deployment.contexts, self._plan.interpretation
        if self._stamped == ROOT or contexts.get(self._stamped) is not contexts.get(asked.context):
            return False
        return interpretation.keeps(self._stamped, self._sent.name)

    def _out(self, asked: Subscription) -> tuple[Struct, Types, Conversion]:
        types = self._plan.deployment.types
        if asked.context == ROOT:
            return self._event, types, Conversion()
        converter = self._plan.interpretation.converter(asked.context, Direction.OUT, self._event.name)
        if converter is None:
            raise _Ordinary(f"`{self._event.name}` has no way to context `{asked.context}`")
        way = converter.transformation
        if converter.is_identity:
            return self._event, types, Conversion()
        return way.target, way.targets, _conversion(way)


def _conversion(way: Transformation) -> Conversion:
    if way.is_identity:
        return Conversion()
    where = f"the conversion of `{way.source.name}` {way.direction.value} `{way.context.partition('@')[0]}`"
    if way.execution == "stateful":
        raise _Ordinary(f"{where} remembers other events")
    if way.execution == "arrow":
        raise _Ordinary(f"{where} calls a function of Python")
    if way.externals:
        raise _Ordinary(f"{where} looks up in a table, whose rows may change while a query runs")
    _check_envelope(way.node, where)
    made = spark_expression(way, _read)
    if made is None:
        raise _Ordinary(f"{where} is more than Spark SQL can take")
    return Conversion(value=f"CAST({made.value} AS {spark_type(way.target, way.targets)})", fails=made.fails or "FALSE")


def _check_envelope(node: Node, where: str) -> None:
    for each in walk(node):
        if isinstance(each, Read) and each.variable == EVENT and each.path[:1] and each.path[0] not in _ENVELOPE:
            raise _Ordinary(f"{where} reads `event.{each.path[0]}`, which is not known before an engine has it")


def _read(node: Read) -> str:
    return ".".join(spark_name(name) for name in (node.variable, *node.path))


def _wanted(plan: Plan, asked: Subscription, event: Struct) -> str:
    """Whether root events of a type are what somebody asks for."""
    interpretation = plan.interpretation
    where = f"the filter of `{asked.id}`"
    late = interpretation.decision(asked, event.name) if interpretation.decides_late else None
    if late is not None:
        raise _Ordinary(f"{where} depends on {late.reasons}")
    way = interpretation.converter(asked.context, Direction.OUT, event.name) if asked.context != ROOT else None
    if way is not None and way.transformation.externals and asked.where:
        raise _Ordinary(f"{where} asks for rows of tables")
    above = {str(each) for each in supertypes(event)}
    try:
        conditions = plan.routing.wanted.meaning.conditions(asked)
        texts = [_condition(node, event, plan, where) for name, node in conditions.items() if name in above]
    except SituError as error:
        raise _Ordinary(f"{where} is more than Spark SQL can take: {error.problems[0].message}") from None
    return f"({' OR '.join(texts)})" if texts else "FALSE"


def _visible(plan: Plan, tags: TagSet, asked: Subscription, event: Struct) -> str:
    """Whether root events of a type, published under these tags, are visible to a subscription."""
    seeing = plan.seeing
    if seeing is None:
        return "TRUE"

    def condition(node: Node, said: str) -> str:
        where = f"the filter `{said}` of scopes"
        try:
            return _condition(node, event, plan, where)
        except SituError as error:
            raise _Ordinary(f"{where} is more than Spark SQL can take: {error.problems[0].message}") from None

    return pair_text(seeing.pair(tags, asked.scopes), FilterTexts(seeing, event, condition))


def visible_since(before: RealTimeClient, subscription: RealTimeSubscription, plan: Plan) -> str:
    """What has to hold by the scopes of a later plan for what an older one delivers: nothing of what is no longer
    visible is handed over. ``TRUE`` if that says no more than the decision of then."""
    if plan.seeing is None:
        return "TRUE"
    asked, event = plan.deployment.subscriptions.get(subscription.id), plan.deployment.types.event(before.type)
    if asked is None or event is None:
        return "FALSE"
    try:
        found = _visible(plan, before.tags, asked, event)
    except _Ordinary:
        return "FALSE"
    return "TRUE" if found == subscription.visible else found


def _condition(node: Node, event: Struct, plan: Plan, where: str) -> str:
    if node in (TRUE, FALSE):
        return "TRUE" if node == TRUE else "FALSE"
    if any(isinstance(each, Field) for each in walk(node)):
        raise _Ordinary(f"{where} is about parts of a struct that is put together first")
    _check_envelope(node, where)
    return emit_spark(condition_in_columns(node, event, plan.deployment.types), _read).matches


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Records, as `situ.kafka.formats.RecordWriter` writes them. ``data`` stands for what is delivered.


def made_column(subscription: str) -> str:
    """The column with the data that a subscription gets."""
    return spark_name(f"_situ_made {subscription}")


def _record(asked: Subscription, made: Struct, records: PlainRecords, *, sealed: bool) -> str:
    target = asked.kafka
    assert target is not None
    column = made_column(asked.id)
    id, event_key = f"{EVENT}.id", records.situ_key
    if sealed:
        # An id that was made of the key is sealed with it.
        event_key = records.sealed_key(TOKEN)
        id = f"CASE WHEN {id} = {records.counted_id} THEN {TOKEN} ELSE {id} END"
    key = event_key
    if target.key:
        key = _key_text(column, made, target.key)
    data = json_text(column, made)
    said = {
        "specversion": "'1.0'",
        "id": id,
        "source": f"{EVENT}.source",
        "type": spark_text(made.name),
        "time": instant_text(f"{EVENT}.time"),
    }
    if target.format == CLOUDEVENTS:
        members = ", ',', ".join(
            f"{spark_text(msgspec.json.encode(name).decode() + ':')}, {string_text(text)}"
            for name, text in said.items()
        )
        value = f"concat('{{', {members}, ',\"data\":', {data}, '}}')"
        headers = {"content-type": "'application/cloudevents+json'", "situkey": event_key}
    else:
        value = data
        headers = {"content-type": "'application/json'", "situkey": event_key}
        headers |= {f"ce_{name}": text for name, text in said.items()}
    listed = ", ".join(
        f"named_struct('key', {spark_text(name)}, 'value', CAST({text} AS BINARY))" for name, text in headers.items()
    )
    return (
        f"named_struct('topic', {spark_text(target.topic)}, 'key', CAST({key} AS BINARY),"
        f" 'value', CAST({value} AS BINARY), 'headers', array({listed}))"
    )


def _key_text(column: str, made: Struct, name: str) -> str:
    """The attribute as text; a text without its quotes, what the event lacks as null."""
    attribute = made.attribute(name)
    if attribute is None:
        return "CAST(NULL AS STRING)"
    own = Struct("", (attribute,))
    written = json_text(f"named_struct({spark_text(name)}, {column}.{spark_name(name)})", own)
    start = len(msgspec.json.encode(name).decode()) + 3
    value = f"substring({written}, {start}, length({written}) - {start})"
    place = f"{column}.{spark_name(name)}"
    text = f"CAST({place} AS STRING)"
    quoted = f"startswith({value}, '\"')"
    unquoted = f"substring({value}, 2, length({value}) - 2)"
    if plain(attribute.type) == STRING:
        return text
    return f"CASE WHEN {place} IS NULL THEN NULL WHEN {quoted} THEN {unquoted} ELSE {value} END"
