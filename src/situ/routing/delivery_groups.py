"""Delivery groups and shared filters: who hangs from which filter, and how that changes with the subscriptions.

`DeliveryTargets` are the groups and clients that get an event, `group_of` the group of a durable subscription,
`FilterReader` the meaning of filters' texts, `SharedFilters` the filters that subscriptions have in common, in
mappings (`SharedMap`) of which a changed one shares with the old what stayed the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar

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
# Mappings that never change, for tables of a hundred thousand entries of which one is another now. Copying such a table
# takes milliseconds. So what is changed stands beside a dictionary that several mappings share, until it is so much
# that copying it costs more than a new dictionary would, spread over the changes that led to it.

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

_GONE: Final = object()
_SAME: Final = object()
_LEAST_CHANGES = 32


class SharedMap(Mapping[KeyT, ValueT]):
    """A mapping that never changes. In the order in which the keys came."""

    __slots__ = ("_base", "_changes", "_size")

    def __init__(self, entries: Mapping[KeyT, ValueT] = MappingProxyType({})) -> None:
        self._base: dict[KeyT, ValueT] = dict(entries)
        self._changes: dict[KeyT, Any] = {}
        self._size = len(self._base)

    def changed(self, put: Mapping[KeyT, ValueT], drop: Collection[KeyT] = ()) -> SharedMap[KeyT, ValueT]:
        """With these entries, and without those keys that are dropped and not put."""
        if not put and not drop:
            return self
        new: SharedMap[KeyT, ValueT] = SharedMap.__new__(SharedMap)
        changes = {**self._changes, **dict.fromkeys(drop, _GONE), **put}
        new._base, new._changes = self._base, changes
        new._size = self._size + sum(key not in self for key in put) - sum(key in self for key in {*drop} - put.keys())
        if len(changes) > _LEAST_CHANGES and len(changes) ** 2 > 4 * len(self._base):
            new._base, new._changes = _merged(self._base, changes), {}
        return new

    def as_dict(self) -> dict[KeyT, ValueT]:
        """A copy, for whoever goes through all of it."""
        return _merged(self._base, self._changes)

    def __getitem__(self, key: KeyT) -> ValueT:
        found = self._changes.get(key, _SAME)
        if found is _SAME:
            return self._base[key]
        if found is _GONE:
            raise KeyError(key)
        value: ValueT = found
        return value

    def __contains__(self, key: object) -> bool:
        found = self._changes.get(key, _SAME)  # type: ignore[arg-type]  # of whatever type the key is
        return key in self._base if found is _SAME else found is not _GONE

    def __iter__(self) -> Iterator[KeyT]:
        changes = self._changes
        for key in self._base:
            if changes.get(key) is not _GONE:
                yield key
        for key, value in changes.items():
            if value is not _GONE and key not in self._base:
                yield key

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"SharedMap({dict(self)})"


def _merged(base: dict[KeyT, ValueT], changes: Mapping[KeyT, Any]) -> dict[KeyT, ValueT]:
    result = dict(base)
    for key, value in changes.items():
        if value is _GONE:
            result.pop(key, None)
        else:
            result[key] = value
    return result


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
    subscriptions: SharedMap[str, Subscription] = msgspec.field(default_factory=SharedMap)
    filters: SharedMap[tuple[str, Node], Filter] = msgspec.field(default_factory=SharedMap)
    by_type: Mapping[str, SharedMap[Filter, None]] = msgspec.field(default_factory=dict)
    members: SharedMap[Filter, Mapping[str, Subscription]] = msgspec.field(default_factory=SharedMap)
    targets: SharedMap[Filter, DeliveryTargets] = msgspec.field(default_factory=SharedMap)
    groups: SharedMap[str, DeliveryGroup] = msgspec.field(default_factory=SharedMap)

    def filter(self, subscription: Subscription, type: str) -> Filter:
        return self.filters[type, self.meaning.conditions(subscription)[type]]

    def changed(self, subscriptions: Mapping[str, Subscription]) -> SharedFiltersChange:
        """What is wanted if these are all subscriptions."""
        before = self.subscriptions.as_dict()
        found = before.get
        come = {id: each for id, each in subscriptions.items() if (old := found(id)) is not each and old != each}
        return self.updated(come, before.keys() - subscriptions.keys())

    def updated(self, put: Mapping[str, Subscription], drop: Collection[str] = ()) -> SharedFiltersChange:
        """What is wanted with these subscriptions, and without those; it takes as long as there are of these."""
        before = self.subscriptions
        come = {id: each for id, each in put.items() if _differ(before.get(id), each)}
        gone = {id: before[id] for id in (*come, *drop) if id in before and (id in come or id not in put)}
        return self._apply(come, gone) if come or gone else SharedFiltersChange(self)

    def _apply(self, come: Mapping[str, Subscription], gone: Mapping[str, Subscription]) -> SharedFiltersChange:
        known: dict[tuple[str, Node], Filter] = {}
        touched: dict[Filter, dict[str, Subscription]] = {}

        def hanging(key: tuple[str, Node]) -> dict[str, Subscription]:
            found = known.get(key)
            if found is None:
                found = known[key] = self.filters.get(key) or Filter(*key)
                touched[found] = dict(self.members.get(found, {}))
            return touched[found]

        for each in gone.values():
            for key in self.meaning.conditions(each).items():
                hanging(key).pop(each.id)
        for each in come.values():
            for key in self.meaning.conditions(each).items():
                hanging(key)[each.id] = each
        left = {each: hangs for each, hangs in touched.items() if hangs}
        dead = [each for each, hangs in touched.items() if not hangs]
        added = tuple(each for each in left if each not in self.members)
        removed = tuple(each for each in dead if each in self.members)
        filters = self.filters.changed(
            {(each.type, each.node): each for each in added}, [(each.type, each.node) for each in removed]
        )
        subscriptions = self.subscriptions.changed(come, gone.keys())
        self._drop_texts(subscriptions, len(filters))
        wanted = SharedFilters(
            self.meaning,
            subscriptions,
            filters,
            self._types(added, removed),
            self.members.changed(left, removed),
            self.targets.changed({each: targets_of(hangs.values()) for each, hangs in left.items()}, removed),
            self._groups(come.values(), gone.values()),
        )
        return SharedFiltersChange(wanted, added, removed)

    def _types(self, added: tuple[Filter, ...], removed: tuple[Filter, ...]) -> dict[str, SharedMap[Filter, None]]:
        result = dict(self.by_type)
        for type in {each.type for each in (*added, *removed)}:
            result[type] = result.get(type, SharedMap[Filter, None]()).changed(
                {each: None for each in added if each.type == type}, [each for each in removed if each.type == type]
            )
        return result

    def _groups(self, come: Iterable[Subscription], gone: Iterable[Subscription]) -> SharedMap[str, DeliveryGroup]:
        touched: dict[str, set[str]] = {}
        examples: dict[str, Subscription] = {}
        for coming, each in (*((False, each) for each in gone), *((True, each) for each in come)):
            if each.durable:
                id = group_of(each)
                if id not in touched:
                    touched[id] = set(self.groups[id].subscriptions) if id in self.groups else set()
                    examples[id] = each
                touched[id].add(each.id) if coming else touched[id].discard(each.id)
        return self.groups.changed(
            {id: _group(id, examples[id], members) for id, members in touched.items() if members},
            [id for id, members in touched.items() if not members],
        )

    def _drop_texts(self, subscriptions: Mapping[str, Subscription], wanted: int) -> None:
        """Texts nobody has any more are kept for a while: what comes and goes is often the same."""
        texts = self.meaning.texts
        if len(texts) > 2 * wanted + _SPARE_TEXTS:
            used = {(type, each.where) for each in subscriptions.values() for type in each.types}
            for key in [key for key in texts if key not in used]:
                del texts[key]


def _group(id: str, example: Subscription, members: Iterable[str]) -> DeliveryGroup:
    return DeliveryGroup(
        id=id,
        types=tuple(sorted(example.types)),
        where=spell(example.where),
        subscriptions=tuple(sorted(members)),
        context=example.context,
        scopes=example.scopes,
    )


def _differ(one: Subscription | None, other: Subscription) -> bool:
    return one is not other and one != other
