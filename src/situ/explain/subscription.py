"""Explanations of subscriptions: why one wants an event or not, and how engines find and deliver what it asks for.

`explain_filter_match` goes through a filter part by part, with the values that decided. `explain_subscription` shows
the filter in normal form, where the index files it, and the delivery group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from situ.event.data_reader import data_reader, read_envelope
from situ.event.row import Row
from situ.lang.catalogue import UNKNOWN_SUBSCRIPTION
from situ.lang.expr.format import print_expression, print_literal
from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.tree import And, Node, Or, Read, walk
from situ.lang.problems import SituError, nearest
from situ.lang.types.model import Struct, supertypes
from situ.model import Deployment
from situ.routing import Subscription
from situ.routing.delivery_groups import group_of
from situ.routing.filter import Filter
from situ.routing.filter_index import TypeIndex
from situ.routing.normal_form import Atom, IsAbsent, OneOf, Opaque, Path, Prefix, RangeBound
from situ.routing.routing_table import RoutingTable, compile_routing
from situ.stages.interpret import Interpretation
from situ.stages.interpret_out import LateFilter

Outcome = Literal["true", "false", "null", "fails"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterPart:
    """A part of a filter: its text, what it comes to for the event, and the values it read."""

    text: str
    outcome: Outcome
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionMatch:
    """Whether a subscription wants an event. ``type`` is the type it asked for that the event is of; empty if none."""

    subscription: str
    matched: bool
    type: str
    joined: Literal["AND", "OR", ""]
    parts: tuple[FilterPart, ...]
    found_by: tuple[str, ...]
    """By what the index finds the filter, in words."""


def explain_filter_match(routing: RoutingTable, subscription: str, row: Row) -> SubscriptionMatch:
    """Why the subscription wants the row or not; KeyError if there is no such subscription."""
    explained = SubscriptionMatch(
        subscription=subscription,
        matched=False,
        type="",
        joined="",
        parts=(),
        found_by=routing.found_by(subscription, row),
    )
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
    joined: Literal["AND", "OR", ""] = "AND" if isinstance(node, And) else "OR" if isinstance(node, Or) else ""
    parts = node.args if isinstance(node, And | Or) else (node,)
    return SubscriptionMatch(
        subscription=explained.subscription,
        matched=_outcome(node, values) == "true",
        type=filter_.type,
        joined=joined,
        parts=tuple(
            FilterPart(text=print_expression(part), outcome=_outcome(part, values), values=_values_read(part, values))
            for part in parts
        ),
        found_by=explained.found_by,
    )


def _outcome(node: Node, values: Mapping[str, Any]) -> Outcome:
    try:
        value = interpret(node, values)
    except FAILURES:
        return "fails"
    return "null" if value is None else "true" if value else "false"


def _values_read(node: Node, values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The attributes that the part reads, with their values as they are written in expressions."""
    found: dict[str, str] = {}
    for each in walk(node):
        if isinstance(each, Read) and each.variable in values:
            value = interpret(each, values)
            found[print_expression(each)] = print_literal(value, each.unit)
    return tuple(found.items())


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# One subscription, as engines index it. The text for people is :mod:`situ.cli.render.event`.


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscribedType:
    """The filter for events of one type. ``filed`` says by what events of which types find it."""

    type: str
    subtypes: tuple[str, ...]
    canonical: str
    alternatives: tuple[tuple[str, ...], ...]
    filed: tuple[tuple[str, tuple[str, ...]], ...]
    scanned: bool
    others: int
    """Subscriptions with the very same filter on this type."""
    later: str = ""
    """What the filter reads besides, which is known only after routing."""

    def as_json(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "subtypes": list(self.subtypes),
            "canonical": self.canonical,
            "alternatives": [list(each) for each in self.alternatives],
            "found_by": {words: list(names) for words, names in self.filed},
            "scanned": self.scanned,
            "others": self.others,
            **({"later": self.later} if self.later else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionExplanation:
    """``group`` is the delivery group of a durable subscription, ``sharing`` who else is in it."""

    id: str
    durable: bool
    where: str
    types: tuple[SubscribedType, ...]
    """By types of root: in another context these are the ones that become what is subscribed to."""
    context: str
    wanted: tuple[str, ...]
    group: str = ""
    sharing: tuple[str, ...] = ()

    @property
    def scanned(self) -> bool:
        return any(each.scanned for each in self.types)

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "durable": self.durable,
            "where": self.where or None,
            "context": self.context,
            "wanted": list(self.wanted),
            "types": [each.as_json() for each in self.types],
            "group": self.group or None,
            "sharing": list(self.sharing),
        }


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
    return SubscriptionExplanation(
        id=id,
        durable=subscription.durable,
        where=subscription.where,
        types=tuple(
            _on_type(subscription, name, routing, interpretation.decision(subscription, name))
            for name in routing.wanted.meaning.conditions(subscription)
        ),
        context=subscription.context,
        wanted=subscription.types,
        group=group,
        sharing=tuple(each for each in sharing if each != id),
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
        filed=tuple((words, tuple(names)) for words, names in filed.items()),
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
        case RangeBound(path=path, value=value, upper=upper, open=open):
            return f"{_name(path)} {'<' if upper else '>'}{'' if open else '='} {print_literal(value)}"
        case Prefix(path=path, text=text):
            return f"{_name(path)} begins with {print_literal(text)}"
        case IsAbsent(path=path):
            return f"{_name(path)} IS NULL"
        case Opaque(node=node):
            return print_expression(node)


def _name(path: Path) -> str:
    return ".".join(path[1:] if path[0] == "data" else path)
