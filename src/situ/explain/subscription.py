"""Explanations of subscriptions: why one wants an event or not, and how engines find and deliver what it asks for.

`explain_filter_match` goes through a filter part by part, with the values that decided. `explain_subscription` shows
the filter in normal form, where the index files it, and the delivery group.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from situ.event.data_reader import data_reader, read_envelope
from situ.event.row import Row
from situ.lang.catalogue import UNKNOWN_SUBSCRIPTION
from situ.lang.expr.format import print_expression, print_literal
from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.tree import And, Node, Or, Read, walk
from situ.lang.json_form import TEXT_ONLY, Explanation
from situ.lang.problems import SituError, nearest
from situ.lang.records import replace
from situ.lang.types.model import Struct, supertypes
from situ.model import Deployment
from situ.routing import Subscription
from situ.routing.delivery_groups import group_of
from situ.routing.filter import Filter
from situ.routing.filter_index import TypeIndex
from situ.routing.normal_form import Atom, IsAbsent, IsPresent, NoneOf, OneOf, Opaque, Path, Prefix, RangeBound
from situ.routing.routing_table import RoutingTable, compile_routing
from situ.stages.interpret import Interpretation
from situ.stages.interpret_out import LateFilter
from situ.stages.plan import compile_plan
from situ.stages.real_time import real_time_plan

Outcome = Literal["true", "false", "null", "fails"]


class FilterPart(Explanation, frozen=True, kw_only=True):
    """A part of a filter, and what it comes to for the event."""

    text: str
    outcome: Outcome
    values: dict[str, str]
    """The attributes that it read, with their values as they are written in expressions."""


class SubscriptionMatch(Explanation, frozen=True, kw_only=True, omit_defaults=True):
    """Whether a subscription wants an event, and why."""

    subscription: str
    matched: bool
    joined: Literal["AND", "OR"] | None
    """How the parts of its filter are joined, where there are several."""
    parts: tuple[FilterPart, ...]
    """None where the event is the client's own: it is not sent what it sent."""
    visible: bool = True
    """False where the event is wanted, and not visible to the subscription."""
    type: Annotated[str, TEXT_ONLY] = ""
    """The type it asked for that the event is of; empty if none."""
    found_by: Annotated[tuple[str, ...], TEXT_ONLY] = ()
    """By what the index finds the filter, in words."""


def explain_filter_match(routing: RoutingTable, subscription: str, row: Row) -> SubscriptionMatch:
    """Why the subscription wants the row or not; KeyError if there is no such subscription."""
    found_by = routing.found_by(subscription, row)
    explained = SubscriptionMatch(subscription=subscription, matched=False, joined=None, parts=(), found_by=found_by)
    for filter_ in routing.filters_for(subscription, row.type):
        explained = _explain(explained, routing, filter_, row)
        if explained.matched:
            break
    return explained


def _explain(explained: SubscriptionMatch, routing: RoutingTable, filter_: Filter, row: Row) -> SubscriptionMatch:
    types = routing.wanted.meaning.types
    struct = types.event(row.type)
    assert struct is not None, "a filter was found for it"
    values = {"event": read_envelope(row), "data": data_reader(struct, None, types)(row.data)}
    node = filter_.node
    parts = node.args if isinstance(node, And | Or) else (node,)
    return replace(
        explained,
        matched=_outcome(node, values) == "true",
        type=filter_.type,
        joined="AND" if isinstance(node, And) else "OR" if isinstance(node, Or) else None,
        parts=tuple(
            FilterPart(text=print_expression(part), outcome=_outcome(part, values), values=_values_read(part, values))
            for part in parts
        ),
    )


def _outcome(node: Node, values: Mapping[str, Any]) -> Outcome:
    try:
        value = interpret(node, values)
    except FAILURES:
        return "fails"
    return "null" if value is None else "true" if value else "false"


def _values_read(node: Node, values: Mapping[str, Any]) -> dict[str, str]:
    """The attributes that the part reads, with their values as they are written in expressions."""
    found: dict[str, str] = {}
    for each in walk(node):
        if isinstance(each, Read) and each.variable in values:
            value = interpret(each, values)
            found[print_expression(each)] = print_literal(value, each.unit)
    return found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# One subscription, as engines index it. The text for people is :mod:`situ.cli.render.event`.


class SubscribedType(Explanation, frozen=True, kw_only=True, omit_defaults=True):
    """What a subscription asks of events of one type, and how they find it."""

    type: str
    """A type of root: in another context it is one that becomes what is subscribed to."""
    subtypes: tuple[str, ...]
    canonical: str
    """The filter."""
    alternatives: tuple[tuple[str, ...], ...]
    """The filter in normal form: one of these lists must be true, all of it."""
    found_by: dict[str, tuple[str, ...]]
    """How the index finds the filter, in words, with the types of events that do; empty: none can match."""
    scanned: bool
    """The index cannot look it up: every event of the type is tested."""
    others: int
    """How many other subscriptions have the very same filter on this type."""
    later: str = ""
    """What the filter reads besides, which is known only after routing."""


class DeliveryTopic(Explanation, frozen=True, kw_only=True):
    """The topic of Kafka that a subscription is delivered to."""

    topic: str
    key: str | None
    """The attribute that is the key of a record; null: the key of the event is."""
    format: str


class RealTimeClientEvents(Explanation, frozen=True, kw_only=True):
    """Events of a client that a subscription gets in real time."""

    client: str
    type: str
    """In root's terms."""
    delivered: str
    """The type that is delivered."""


class QueuedEvents(Explanation, frozen=True, kw_only=True):
    """Events that do not go in real time, and why."""

    client: str | None
    """Null: those of any client."""
    reason: str


class RealTimeExplanation(Explanation, frozen=True, kw_only=True):
    """What of a subscription goes in real time when the engine is Spark."""

    clients: tuple[RealTimeClientEvents, ...]
    queued: tuple[QueuedEvents, ...]


class SubscriptionExplanation(Explanation, frozen=True, kw_only=True, omit_defaults=True):
    """A subscription, as engines index it and deliver to it."""

    id: str
    durable: bool
    where: str | None
    """The filter as it is written; null: every event of the types."""
    context: str
    wanted: tuple[str, ...]
    """The types it names, in its context."""
    types: tuple[SubscribedType, ...]
    group: str | None
    """The delivery group of a durable subscription."""
    sharing: tuple[str, ...]
    """Who else is in the group."""
    kafka: DeliveryTopic | None
    """Null: clients take it from the bus."""
    real_time: RealTimeExplanation | None = None
    """Null: it does not ask for that."""


def routing_of(deployment: Deployment) -> RoutingTable:
    """Who wants what in this deployment."""
    return compile_routing(
        types=deployment.types,
        functions=deployment.definitions,
        subscriptions=deployment.routed,
        limits=deployment.settings.expression_limits,
        mediator=Interpretation.of(deployment).mediator,
    )


def explain_subscription(id: str, deployment: Deployment) -> SubscriptionExplanation:
    """Explain it; :class:`SituError` with P164 if there is none."""
    subscription = deployment.routed.get(id)
    if subscription is None:
        raise SituError(UNKNOWN_SUBSCRIPTION(name=id, nearest=nearest(id, deployment.subscriptions)))
    routing, interpretation = routing_of(deployment), Interpretation.of(deployment)
    group = group_of(subscription) if subscription.durable else ""
    sharing = routing.groups[group].subscriptions if group else ()
    to = subscription.kafka
    return SubscriptionExplanation(
        id=id,
        durable=subscription.durable,
        where=subscription.where or None,
        context=subscription.context,
        wanted=subscription.types,
        types=tuple(
            _on_type(subscription, name, routing, interpretation.decision(subscription, name))
            for name in routing.wanted.meaning.conditions(subscription)
        ),
        group=group or None,
        sharing=tuple(each for each in sharing if each != id),
        kafka=None if to is None else DeliveryTopic(topic=to.topic, key=to.key or None, format=to.format),
        real_time=_real_time(id, deployment) if subscription.in_real_time else None,
    )


def _real_time(id: str, deployment: Deployment) -> RealTimeExplanation:
    plan = real_time_plan(compile_plan(deployment))
    return RealTimeExplanation(
        clients=tuple(
            RealTimeClientEvents(client=each.client, type=each.type, delivered=one.type)
            for each in plan.clients.values()
            for one in each.subscriptions
            if one.id == id
        ),
        queued=tuple(
            QueuedEvents(client=each.client or None, reason=each.reason) for each in plan.ordinary.get(id, ())
        ),
    )


def _on_type(subscription: Subscription, name: str, routing: RoutingTable, later: LateFilter | None) -> SubscribedType:
    wanted = routing.wanted
    types = wanted.meaning.types
    event = types.event(name)
    assert event is not None, "a deployment's subscriptions are to its types"
    found = wanted.filter(subscription, name)
    below = [each for each in types.subtypes(event) if isinstance(each, Struct)]
    indexes = {each.name: _index(each, routing) for each in below}
    filed: dict[str, list[str]] = {}
    for each, index in indexes.items():
        for words in dict.fromkeys(words for segment in index.segments for words in segment.filed_under(found)):
            filed.setdefault(words, []).append(each)
    return SubscribedType(
        type=name,
        subtypes=tuple(each for each in indexes if each != name),
        canonical=print_expression(found.node),
        alternatives=tuple(tuple(_show(atom) for atom in each) for each in found.conjunctions),
        found_by={words: tuple(names) for words, names in filed.items()},
        scanned=any(found in index.scanned for index in indexes.values()),
        others=len(wanted.members[found]) - 1,
        later=later.reasons if later is not None else "",
    )


def _index(event: Struct, routing: RoutingTable) -> TypeIndex:
    """As the engines have it for events of this type: with everybody's filters, which decide together."""
    by_type = routing.wanted.by_type
    above = sorted(str(each) for each in supertypes(event))
    filters = [each for type in above for each in by_type.get(type, ())]
    return TypeIndex.of(event, filters, routing.wanted.meaning.types)


def _show(atom: Atom) -> str:
    match atom:
        case OneOf(path=path, values=(value,)):
            return f"{_name(path)} = {print_literal(value)}"
        case OneOf(path=path, values=values):
            return f"{_name(path)} IN ({', '.join(map(print_literal, values))})"
        case NoneOf(path=path, values=(value,)):
            return f"{_name(path)} <> {print_literal(value)}"
        case NoneOf(path=path, values=values):
            return f"{_name(path)} NOT IN ({', '.join(map(print_literal, values))})"
        case RangeBound(path=path, value=value, upper=upper, open=open):
            return f"{_name(path)} {'<' if upper else '>'}{'' if open else '='} {print_literal(value)}"
        case Prefix(path=path, text=text):
            return f"{_name(path)} begins with {print_literal(text)}"
        case IsAbsent(path=path):
            return f"{_name(path)} IS NULL"
        case IsPresent(path=path):
            return f"{_name(path)} IS NOT NULL"
        case Opaque(node=node):
            return print_expression(node)


def _name(path: Path) -> str:
    return ".".join(path[1:] if path[0] == "data" else path)
