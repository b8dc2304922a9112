"""What is wanted: the filters that subscriptions have in common, the groups they form, and how that changes.

Values that are not changed once made: a change gives new ones, which share with the old what stayed the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from situ.errors import Problem, SituError
from situ.expr.limits import Limits
from situ.expr.scope import Definition
from situ.expr.simplify import simplify
from situ.expr.spelling import spell
from situ.expr.tree import Node
from situ.subscription.filter import Filter, read_filter
from situ.subscription.model import ROOT, Subscription
from situ.subscription.shapes import Shapes
from situ.subscription.targets import Targets, group_of, targets_of
from situ.tags import NO_TAGS, TagSet
from situ.types.table import Types
from situ.types.undeclared import not_declared

_SPARE_TEXTS = 1000
_MOST_MEDIATED = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Durable subscriptions that want the same: what is delivered to one is delivered to all."""

    id: str
    types: tuple[str, ...]
    where: str
    subscriptions: tuple[str, ...]
    context: str = ROOT
    """In whose terms the events are delivered."""
    scopes: TagSet = NO_TAGS
    """Where they are wanted from."""


class Mediator(Protocol):
    """Says what a subscription in the terms of a context asks of events of this zone. Equal ones say the same."""

    def conditions(self, subscription: Subscription) -> Mapping[str, Node]:
        """Event type → the condition on events of this type and those below it; ``SituError`` if there is none."""

    def observations(self, subscription: Subscription) -> Iterable[Problem]:
        """What else is to say about a subscription that has conditions."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """All that the meaning of a filter's text depends on; and what the texts mean that were read."""

    types: Types
    functions: Mapping[str, Definition]
    limits: Limits
    mediator: Mediator | None = None
    texts: dict[tuple[str, str], Node] = field(default_factory=dict, compare=False)
    shapes: Shapes = field(default_factory=Shapes, compare=False)
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


@dataclass(frozen=True, slots=True)
class Change:
    """What is wanted from now on, and the filters that came and went."""

    wanted: Wanted
    added: tuple[Filter, ...] = ()
    removed: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """Subscriptions by id; filters by type and condition, by type, and with whoever hangs from them."""

    meaning: Meaning
    subscriptions: Mapping[str, Subscription] = field(default_factory=dict)
    filters: Mapping[tuple[str, Node], Filter] = field(default_factory=dict)
    by_type: Mapping[str, Mapping[Filter, None]] = field(default_factory=dict)
    members: Mapping[Filter, Mapping[str, Subscription]] = field(default_factory=dict)
    targets: Mapping[Filter, Targets] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)

    def filter(self, subscription: Subscription, type: str) -> Filter:
        return self.filters[type, self.meaning.conditions(subscription)[type]]

    def changed(self, subscriptions: Mapping[str, Subscription]) -> Change:
        """What is wanted if these are all subscriptions."""
        before = self.subscriptions
        come = [each for id, each in subscriptions.items() if _differ(before.get(id), each)]
        gone = [each for id, each in before.items() if _differ(subscriptions.get(id), each)]
        return self._apply(subscriptions, come, gone) if come or gone else Change(self)

    def _apply(
        self, subscriptions: Mapping[str, Subscription], come: list[Subscription], gone: list[Subscription]
    ) -> Change:
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
        wanted = Wanted(
            self.meaning,
            dict(subscriptions),
            filters,
            self._types(added, removed),
            members,
            targets,
            self._groups(come, gone),
        )
        return Change(wanted, added, removed)

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

    def _groups(self, come: list[Subscription], gone: list[Subscription]) -> dict[str, Group]:
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
                groups[id] = Group(
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
