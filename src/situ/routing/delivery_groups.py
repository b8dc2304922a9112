"""Delivery groups and shared filters: who hangs from which filter, and how that changes with the subscriptions.

`DeliveryTargets` are the groups and clients that get an event, `group_of` the group of a durable subscription,
`FilterReader` the meaning of filters' texts, `SharedFilters` the filters that subscriptions have in common.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from situ.lang.expr.limits import ExpressionLimits
from situ.lang.expr.scope import Definition
from situ.lang.expr.simplify import simplify
from situ.lang.expr.syntax import spell
from situ.lang.expr.tree import Node
from situ.lang.problems import Problem, SituError
from situ.lang.tags import NO_TAGS, TagSet
from situ.lang.types.lookup import not_declared
from situ.lang.types.table import Types
from situ.routing.filter import Filter, FilterTemplates, read_filter
from situ.routing.model import ROOT, Subscription

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Targets: who hangs from a filter, in the form in which deliveries name them.


class DeliveryTargets(msgspec.Struct, frozen=True):
    """Ids of delivery groups, in order; and clients, in order, each with the names of its volatile subscriptions."""

    durable: tuple[str, ...] = ()
    live: tuple[tuple[str, str], ...] = ()


NO_TARGETS = DeliveryTargets()


@lru_cache(maxsize=200_000)
def group_id(types: tuple[str, ...], where: str, context: str = ROOT, scopes: TagSet = NO_TAGS, alone: str = "") -> str:
    """The id of the group of durable subscriptions to these types with this filter, the same in every process.

    ``alone``: the subscription that has a group of its own.
    """
    content: dict[str, Any] = {"types": sorted(types), "where": spell(where)}
    if context != ROOT:
        content["context"] = context
    if scopes != NO_TAGS:
        content["scopes"] = scopes.as_json()
    if alone:
        content["subscription"] = alone
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def group_of(subscription: Subscription) -> str:
    """The delivery group of a durable subscription."""
    alone = subscription.id if subscription.shaped or subscription.in_real_time else ""
    return group_id(subscription.types, subscription.where, subscription.context, subscription.scopes, alone)


def targets_of(subscriptions: Iterable[Subscription]) -> DeliveryTargets:
    groups: set[str] = set()
    clients: dict[str, list[str]] = {}
    for each in subscriptions:
        if each.durable:
            groups.add(group_of(each))
        else:
            clients.setdefault(each.client, []).append(each.name)
    live = tuple((client, ",".join(sorted(names))) for client, names in sorted(clients.items()))
    return DeliveryTargets(tuple(sorted(groups)), live)


def merge(several: Iterable[DeliveryTargets]) -> DeliveryTargets:
    """All of them together, each group and each subscription once."""
    given = [each for each in several if each is not NO_TARGETS]
    if len(given) < 2:
        return given[0] if given else NO_TARGETS
    groups = {group for each in given for group in each.durable}
    clients: dict[str, list[str]] = {}
    for each in given:
        for client, names in each.live:
            clients.setdefault(client, []).append(names)
    live = tuple(
        (
            client,
            names[0] if len(names) == 1 else ",".join(sorted({name for each in names for name in each.split(",")})),
        )
        for client, names in sorted(clients.items())
    )
    return DeliveryTargets(tuple(sorted(groups)), live)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What is wanted: the filters that subscriptions have in common, the groups they form, and how that changes. Values that
# are not changed once made: a change gives new ones, which share with the old what stayed the same.

_SPARE_TEXTS = 1000
_MOST_MEDIATED = 100_000


class DeliveryGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Durable subscriptions that want the same: what is delivered to one is delivered to all."""

    id: str
    types: tuple[str, ...]
    where: str
    subscriptions: tuple[str, ...]
    context: str = ROOT
    """In whose terms the events are delivered."""
    scopes: TagSet = NO_TAGS
    """Where they are wanted from."""


class FilterRewriter(Protocol):
    """Says what a subscription in the terms of a context asks of events of this zone. Equal ones say the same."""

    def conditions(self, subscription: Subscription) -> Mapping[str, Node]:
        """Event type → the condition on events of this type and those below it; ``SituError`` if there is none."""

    def observations(self, subscription: Subscription) -> Iterable[Problem]:
        """What else is to say about a subscription that has conditions."""


@dataclass(frozen=True, slots=True)
class FilterReader:
    """All that the meaning of a filter's text depends on; and what the texts mean that were read."""

    types: Types
    functions: Mapping[str, Definition]
    limits: ExpressionLimits
    mediator: FilterRewriter | None = None
    texts: dict[tuple[str, str], Node] = field(default_factory=dict, compare=False)
    shapes: FilterTemplates = field(default_factory=FilterTemplates, compare=False)
    mediated: dict[tuple[str, tuple[str, ...], str], Mapping[str, Node]] = field(default_factory=dict, compare=False)

    def conditions(self, subscription: Subscription) -> Mapping[str, Node]:
        """What a subscription asks of events, by their types."""
        if subscription.context == ROOT or self.mediator is None:
            return {type: self.node(subscription, type) for type in subscription.types}
        key = (subscription.context, subscription.types, subscription.where)
        found = self.mediated.get(key)
        if found is None:
            if len(self.mediated) >= _MOST_MEDIATED:
                self.mediated.clear()
            found = self.mediated[key] = self.mediator.conditions(subscription)
        return found

    def node(self, subscription: Subscription, type: str) -> Node:
        """The condition of a subscription on events of one of its types."""
        found = self.texts.get((type, subscription.where))
        if found is None:
            event = self.types.event(type)
            if event is None:
                raise SituError(not_declared(type))

            def read(where: str) -> Node:
                return simplify(read_filter(subscription.id, event, where, self.types, self.functions, self.limits))

            found = self.texts[type, subscription.where] = self.shapes.node(type, subscription.where, read)
        return found


class SharedFiltersChange(msgspec.Struct, frozen=True):
    """What is wanted from now on, and the filters that came and went."""

    wanted: SharedFilters
    added: tuple[Filter, ...] = ()
    removed: tuple[Filter, ...] = ()


class SharedFilters(msgspec.Struct, frozen=True):
    """Subscriptions by id; filters by type and condition, by type, and with whoever hangs from them."""

    meaning: FilterReader
    subscriptions: Mapping[str, Subscription] = msgspec.field(default_factory=dict)
    filters: Mapping[tuple[str, Node], Filter] = msgspec.field(default_factory=dict)
    by_type: Mapping[str, Mapping[Filter, None]] = msgspec.field(default_factory=dict)
    members: Mapping[Filter, Mapping[str, Subscription]] = msgspec.field(default_factory=dict)
    targets: Mapping[Filter, DeliveryTargets] = msgspec.field(default_factory=dict)
    groups: Mapping[str, DeliveryGroup] = msgspec.field(default_factory=dict)

    def filter(self, subscription: Subscription, type: str) -> Filter:
        return self.filters[type, self.meaning.conditions(subscription)[type]]

    def changed(self, subscriptions: Mapping[str, Subscription]) -> SharedFiltersChange:
        """What is wanted if these are all subscriptions."""
        before = self.subscriptions
        come = [each for id, each in subscriptions.items() if _differ(before.get(id), each)]
        gone = [each for id, each in before.items() if _differ(subscriptions.get(id), each)]
        return self._apply(subscriptions, come, gone) if come or gone else SharedFiltersChange(self)

    def _apply(
        self, subscriptions: Mapping[str, Subscription], come: list[Subscription], gone: list[Subscription]
    ) -> SharedFiltersChange:
        filters, members, targets = dict(self.filters), dict(self.members), dict(self.targets)
        touched: dict[Filter, dict[str, Subscription]] = {}

        def hanging(key: tuple[str, Node]) -> dict[str, Subscription]:
            found = filters.get(key)
            if found is None:
                found = filters[key] = Filter(*key)
            if found not in touched:
                touched[found] = dict(members.get(found, {}))
            return touched[found]

        for each in gone:
            for key in self.meaning.conditions(each).items():
                hanging(key).pop(each.id)
        for each in come:
            for key in self.meaning.conditions(each).items():
                hanging(key)[each.id] = each
        added = tuple(each for each, left in touched.items() if left and each not in members)
        removed = tuple(each for each, left in touched.items() if not left and each in members)
        for each_filter, left in touched.items():
            if left:
                members[each_filter] = left
                targets[each_filter] = targets_of(left.values())
        for dead in (each for each, left in touched.items() if not left):
            members.pop(dead, None)
            targets.pop(dead, None)
            del filters[dead.type, dead.node]
        self._drop_texts(subscriptions, len(filters))
        wanted = SharedFilters(
            self.meaning,
            dict(subscriptions),
            filters,
            self._types(added, removed),
            members,
            targets,
            self._groups(come, gone),
        )
        return SharedFiltersChange(wanted, added, removed)

    def _types(self, added: tuple[Filter, ...], removed: tuple[Filter, ...]) -> dict[str, Mapping[Filter, None]]:
        result = dict(self.by_type)
        copied: dict[str, dict[Filter, None]] = {}
        for each in (*added, *removed):
            if each.type not in copied:
                result[each.type] = copied[each.type] = dict(result.get(each.type, {}))
        for each in added:
            copied[each.type][each] = None
        for each in removed:
            del copied[each.type][each]
        return result

    def _groups(self, come: list[Subscription], gone: list[Subscription]) -> dict[str, DeliveryGroup]:
        groups = dict(self.groups)
        touched: dict[str, set[str]] = {}
        examples: dict[str, Subscription] = {}
        for coming, each in (*((False, each) for each in gone), *((True, each) for each in come)):
            if each.durable:
                id = group_of(each)
                if id not in touched:
                    touched[id] = set(groups[id].subscriptions) if id in groups else set()
                    examples[id] = each
                touched[id].add(each.id) if coming else touched[id].discard(each.id)
        for id, members in touched.items():
            if members:
                example = examples[id]
                groups[id] = DeliveryGroup(
                    id=id,
                    types=tuple(sorted(example.types)),
                    where=spell(example.where),
                    subscriptions=tuple(sorted(members)),
                    context=example.context,
                    scopes=example.scopes,
                )
            else:
                groups.pop(id, None)
        return groups

    def _drop_texts(self, subscriptions: Mapping[str, Subscription], wanted: int) -> None:
        """Texts nobody has any more are kept for a while: what comes and goes is often the same."""
        texts = self.meaning.texts
        if len(texts) > 2 * wanted + _SPARE_TEXTS:
            used = {(type, each.where) for each in subscriptions.values() for type in each.types}
            for key in [key for key in texts if key not in used]:
                del texts[key]


def _differ(one: Subscription | None, other: Subscription) -> bool:
    return one is not other and one != other
