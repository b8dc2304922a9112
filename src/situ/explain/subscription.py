"""What there is to know about a subscription: its filter in normal form, where the index files it, its delivery group.

Decides and lays nothing out: :mod:`situ.cli.show_subscription` does that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from situ.catalogue import UNKNOWN_SUBSCRIPTION
from situ.deployment import Deployment
from situ.deployment.interpreting import Interpretation
from situ.deployment.later import Decision
from situ.errors import SituError, nearest
from situ.expr.print import print_expression, print_literal
from situ.subscription import Subscription
from situ.subscription.normal_form import Absent, Atom, Bound, OneOf, Opaque, Path, Prefix
from situ.subscription.routing import Routing, compile_routing
from situ.subscription.targets import group_of
from situ.subscription.type_index import TypeIndex
from situ.types.model import Struct, supertypes


@dataclass(frozen=True, slots=True, kw_only=True)
class OnType:
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
class SubscriptionExplained:
    """``group`` is the delivery group of a durable subscription, ``sharing`` who else is in it."""

    id: str
    durable: bool
    where: str
    types: tuple[OnType, ...]
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


def routing_of(deployment: Deployment) -> Routing:
    """Who wants what in this deployment."""
    return compile_routing(
        types=deployment.types,
        functions=deployment.definitions,
        subscriptions=deployment.routed,
        limits=deployment.settings.expression_limits,
        mediator=Interpretation.of(deployment).mediator,
    )


def explain_subscription(id: str, deployment: Deployment) -> SubscriptionExplained:
    """Explain it; :class:`SituError` with P164 if there is none."""
    subscription = deployment.routed.get(id)
    if subscription is None:
        raise SituError(UNKNOWN_SUBSCRIPTION(name=id, nearest=nearest(id, deployment.subscriptions)))
    routing, interpretation = routing_of(deployment), Interpretation.of(deployment)
    group = group_of(subscription) if subscription.durable else ""
    sharing = routing.groups[group].subscriptions if group else ()
    return SubscriptionExplained(
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


def _on_type(subscription: Subscription, name: str, routing: Routing, later: Decision | None) -> OnType:
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
    return OnType(
        type=name,
        subtypes=tuple(each for each in indexes if each != name),
        canonical=print_expression(found.node),
        alternatives=tuple(tuple(_show(atom) for atom in each) for each in found.conjunctions),
        filed=tuple((words, tuple(names)) for words, names in filed.items()),
        scanned=any(found in index.scanned for index in indexes.values()),
        others=len(wanted.members[found]) - 1,
        later=later.reasons if later is not None else "",
    )


def _index(event: Struct, routing: Routing) -> TypeIndex:
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
        case Bound(path=path, value=value, upper=upper, open=open):
            return f"{_name(path)} {'<' if upper else '>'}{'' if open else '='} {print_literal(value)}"
        case Prefix(path=path, text=text):
            return f"{_name(path)} begins with {print_literal(text)}"
        case Absent(path=path):
            return f"{_name(path)} IS NULL"
        case Opaque(node=node):
            return print_expression(node)


def _name(path: Path) -> str:
    return ".".join(path[1:] if path[0] == "data" else path)
