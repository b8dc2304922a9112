"""Routing: which delivery groups and which clients want an event. A compiled, immutable snapshot of all subscriptions.

Durable subscriptions with the same types and filter form a group, which gets one copy of an event for all of them; its
id depends on those, their context and their tags alone, so every process and every run gives it the same. Volatile
subscriptions get an event once a client, with the names of those of its subscriptions that want it; a client gets no
events of its own.

Where there are scopes, those who want an event get it only if it is visible to their tags. That is asked once for
events that look alike and go to the same; without scopes nothing is asked.

Equal filters on one type are one, however they are spelled; subscriptions hang from it. A snapshot is made from the one
before: what did not change is shared. The index of an event type is made when its first event comes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from situ.event.data_reader import data_reader, read_envelope
from situ.event.failures import failed, is_of_event
from situ.event.row import BadRow, Row
from situ.lang.expr.limits import DEFAULT_LIMITS, ExpressionLimits
from situ.lang.expr.scope import Definition
from situ.lang.types.model import Struct, supertypes
from situ.lang.types.table import Types
from situ.routing.delivery_groups import (
    NO_TARGETS,
    DeliveryGroup,
    DeliveryTargets,
    FilterReader,
    FilterRewriter,
    SharedFilters,
    SharedFiltersChange,
    merge,
)
from situ.routing.filter import Filter
from situ.routing.filter_index import TypeIndex
from situ.routing.model import Subscription
from situ.routing.pruned_index import AdvertisementPromises, PrunedIndexes
from situ.routing.visibility import VisibilityCheck, VisibleTargets

STAGE = "route"
_MOST_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class RoutedRows:
    """Who wants which of some rows, in the order of the rows.

    ``durable`` are places of rows and ids of groups; ``live`` places of rows, clients, and the names of those of their
    subscriptions that match, joined by commas.
    """

    durable: list[tuple[int, str]] = field(default_factory=list)
    live: list[tuple[int, str, str]] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)
    """Rows of which it cannot be told whether some want them: to those they are not delivered."""


def compile_routing(
    *,
    types: Types,
    functions: Mapping[str, Definition],
    subscriptions: Mapping[str, Subscription],
    limits: ExpressionLimits = DEFAULT_LIMITS,
    mediator: FilterRewriter | None = None,
    sight: VisibilityCheck | None = None,
    promises: AdvertisementPromises | None = None,
    previous: RoutingTable | None = None,
) -> RoutingTable:
    """The snapshot for these subscriptions; :class:`SituError` if a filter does not type or a type is unknown.

    Without a mediator all subscriptions are taken to be in the terms of the zone itself, without sight to see all.
    ``promises`` make no difference but to the time it takes.
    """
    meaning = FilterReader(types, functions, limits, mediator)
    if previous is None or previous.wanted.meaning != meaning:
        return RoutingTable(SharedFilters(meaning).changed(subscriptions).wanted, {}, sight, promises)
    return previous.changed(subscriptions, sight, promises)


class RoutingTable:
    """See the module. Made by :func:`compile_routing`."""

    def __init__(
        self,
        wanted: SharedFilters,
        indexes: dict[str, TypeIndex],
        sight: VisibilityCheck | None = None,
        promises: AdvertisementPromises | None = None,
        before: RoutingTable | None = None,
    ) -> None:
        """``before``: a snapshot with the same types and the same meaning of filters."""
        self.wanted = wanted
        self._supertypes: dict[str, frozenset[str]] = {} if before is None else before._supertypes
        """Type → itself and all above it."""
        self._promises = promises
        self._pruned: PrunedIndexes | None = None
        if promises is not None:
            self._pruned = PrunedIndexes(promises, None if before is None else before._pruned)
        self._sight = sight
        self._restrictions = VisibleTargets(wanted, sight) if sight is not None else None
        self._indexes = indexes
        self._merged: dict[tuple[TypeIndex, tuple[Filter, ...]], DeliveryTargets] = {}
        self._shared: dict[tuple[Filter, ...], TypeIndex] = {}
        """Filters → the index made last for a type that just these are asked of."""
        self._testers: dict[tuple[Filter, str], Callable[[Row], bool]] = {}

    @property
    def subscriptions(self) -> Mapping[str, Subscription]:
        return MappingProxyType(self.wanted.subscriptions)

    @property
    def groups(self) -> Mapping[str, DeliveryGroup]:
        return MappingProxyType(self.wanted.groups)

    @property
    def scanned(self) -> int:
        """How many filters are tested against every event of their type, in the indexes made so far."""
        return sum(len(index.scanned) for index in self._indexes.values())

    def changed(
        self,
        subscriptions: Mapping[str, Subscription],
        sight: VisibilityCheck | None = None,
        promises: AdvertisementPromises | None = None,
    ) -> RoutingTable:
        """The snapshot for other subscriptions to the same types, for other scopes or other promises."""
        return self._after(self.wanted.changed(subscriptions), sight, promises)

    def updated(self, put: Mapping[str, Subscription], drop: Collection[str] = ()) -> RoutingTable:
        """The snapshot with these subscriptions and without those; it does not look at the others."""
        return self._after(self.wanted.updated(put, drop), self._sight, self._promises)

    def _after(
        self, change: SharedFiltersChange, sight: VisibilityCheck | None, promises: AdvertisementPromises | None
    ) -> RoutingTable:
        if change.wanted is self.wanted:
            if sight is self._sight and promises is self._promises:
                return self
            return RoutingTable(self.wanted, dict(self._indexes), sight, promises, self)
        is_wanted = change.wanted.targets.__contains__
        asked = {each.type for each in (*change.added, *change.removed)}
        indexes = dict(self._indexes)
        made: dict[tuple[TypeIndex, tuple[Filter, ...], int], TypeIndex] = {}
        for name, index in self._indexes.items():
            above = self._above(name)
            if asked.isdisjoint(above):
                continue
            added = tuple(each for each in change.added if each.type in above)
            removed = sum(each.type in above for each in change.removed)
            changed = made.get((index, added, removed))
            if changed is None or not changed.serves(self._known_event(name)):
                changed = index.changed(self._known_event(name), added, removed, is_wanted)
                made[index, added, removed] = changed
            indexes[name] = changed
        return RoutingTable(change.wanted, indexes, sight, promises, self)

    def route(self, rows: Sequence[Row], *, queued: bool = False) -> RoutedRows:
        """Who wants these rows. ``queued``: what waits for durable subscriptions is decided again when it is handed
        over; what was visible when it was stamped may wait."""
        try:
            return self._route(rows, queued)
        except Exception as error:
            if not is_of_event(error):
                raise
        routed = RoutedRows()
        for place, row in enumerate(rows):
            one = self.route_one(row, queued=queued)
            routed.durable.extend((place, group) for _, group in one.durable)
            routed.live.extend((place, client, names) for _, client, names in one.live)
            routed.bad.extend(one.bad)
        return routed

    def _route(self, rows: Sequence[Row], queued: bool) -> RoutedRows:
        found: list[DeliveryTargets] = [NO_TARGETS] * len(rows)
        for index, places in self._together(rows).items():
            some = rows if len(places) == len(rows) else [rows[place] for place in places]
            filters, targets = None, NO_TARGETS
            for place, matched in zip(places, index.match_each(some), strict=True):
                if matched != filters:  # neighbours mostly go to the same
                    filters, targets = matched, self._targets(index, matched)
                found[place] = targets
        if self._restrictions is not None:
            found = self._restrictions.each(rows, found, queued=queued)
        routed = RoutedRows()
        for place, targets in enumerate(found):
            if targets is not NO_TARGETS:
                _add(routed, place, rows[place], targets)
        return routed

    def _together(self, rows: Sequence[Row]) -> dict[TypeIndex, Sequence[int]]:
        """The places of the rows that one index serves."""
        if self._pruned is None and len({row.type for row in rows}) == 1:
            index = self._index_for(rows[0])
            return {} if index is None else {index: range(len(rows))}
        together: dict[TypeIndex, list[int]] = {}
        for place, row in enumerate(rows):
            index = self._index_for(row)
            if index is not None:
                together.setdefault(index, []).append(place)
        return {**together}

    def _index_for(self, row: Row) -> TypeIndex | None:
        index = self._indexes.get(row.type) or self._index(row.type)
        if index is None or self._pruned is None:
            return index
        return self._pruned.choose(row, index, self._holds)

    def _holds(self, filter_: Filter, row: Row) -> bool:
        return self._tester(filter_, row.type)(row)

    def route_one(self, row: Row, *, queued: bool = False) -> RoutedRows:
        """Who wants this row; ``queued`` as for many."""
        try:
            return self._route_one(row, queued)
        except Exception as error:
            if not is_of_event(error):
                raise
        return self._route_apart(row, queued)

    def _route_apart(self, row: Row, queued: bool) -> RoutedRows:
        """Who wants this row, each filter asked by itself; those that fail on it are told nothing of it."""
        routed, fails = RoutedRows(), list[Exception]()
        true: list[Filter] = []
        filters = [each for above in sorted(self._above(row.type)) for each in self.wanted.by_type.get(above, ())]
        for each in filters:
            try:
                if each.always or self._tester(each, row.type)(row):
                    true.append(each)
            except Exception as error:  # noqa: BLE001 - of this filter and this event
                fails.append(error)
        targets = merge(self.wanted.targets.get(each, NO_TARGETS) for each in true)
        try:
            if self._restrictions is not None and targets is not NO_TARGETS:
                targets = self._restrictions.one(row, targets, queued=queued)
        except Exception as error:  # noqa: BLE001 - who may see it is not known: nobody
            targets = NO_TARGETS
            fails.append(error)
        if targets is not NO_TARGETS:
            _add(routed, 0, row, targets)
        if fails:
            routed.bad.append(failed(row, STAGE, fails[0]))
        return routed

    def _route_one(self, row: Row, queued: bool) -> RoutedRows:
        routed = RoutedRows()
        index = self._index_for(row)
        if index is not None:
            targets = self._targets(index, index.match(row))
            if self._restrictions is not None and targets is not NO_TARGETS:
                targets = self._restrictions.one(row, targets, queued=queued)
            if targets is not NO_TARGETS:
                _add(routed, 0, row, targets)
        return routed

    def matches(self, subscription: str, row: Row) -> bool:
        """Whether a subscription wants this row, the client's own or not; KeyError if there is no such subscription."""
        return any(self._tester(each, row.type)(row) for each in self.filters_for(subscription, row.type))

    def filters_for(self, subscription: str, type: str) -> list[Filter]:
        """The filters of a subscription that events of this type must pass, one of them; none if it is to others."""
        wanted = self.wanted.subscriptions[subscription]
        above = self._above(type)
        return [self.wanted.filter(wanted, each) for each in self.wanted.meaning.conditions(wanted) if each in above]

    def found_by(self, subscription: str, row: Row) -> tuple[str, ...]:
        """By what events like this one find the filters of a subscription, in words."""
        index = self._indexes.get(row.type) or self._index(row.type)
        if index is None:
            return ()
        filters = self.filters_for(subscription, row.type)
        words = (word for each in filters for segment in index.segments for word in segment.filed_under(each))
        return tuple(dict.fromkeys(words))

    def _tester(self, filter_: Filter, type: str) -> Callable[[Row], bool]:
        known = self._testers.get((filter_, type))
        if known is None:
            struct = self._event(type)
            assert struct is not None, "a type with types above it is known"
            read = data_reader(struct, filter_.data, self.wanted.meaning.types)
            known = self._testers[filter_, type] = lambda row: filter_.test(read_envelope(row), read(row.data))
        return known

    def _targets(self, index: TypeIndex, filters: list[Filter]) -> DeliveryTargets:
        key = (index, tuple(filters))
        known = self._merged.get(key)
        if known is None:
            if len(self._merged) >= _MOST_REMEMBERED:
                self._merged.clear()
            targets = self.wanted.targets
            known = merge(targets.get(each, NO_TARGETS) for each in dict.fromkeys((*index.always, *filters)))
            self._merged[key] = known
        return known

    def _index(self, name: str) -> TypeIndex | None:
        event = self._event(name)
        if event is None:
            return None
        by_type = self.wanted.by_type
        filters = tuple(each for above in sorted(self._above(name)) for each in by_type.get(above, ()))
        shared = self._shared.get(filters)
        if shared is None or not shared.serves(event):
            shared = self._shared[filters] = TypeIndex.of(event, filters, self.wanted.meaning.types)
        self._indexes[name] = shared
        return shared

    def _known_event(self, name: str) -> Struct:
        event = self._event(name)
        assert event is not None, "a type that has an index is known"
        return event

    def _event(self, name: str) -> Struct | None:
        return self.wanted.meaning.types.event(name)

    def _above(self, name: str) -> frozenset[str]:
        """The type itself and all above it."""
        found = self._supertypes.get(name)
        if found is None:
            event = self._event(name)
            found = frozenset() if event is None else frozenset(str(above) for above in supertypes(event))
            if event is not None:  # of names that nobody declared there is no end
                self._supertypes[name] = found
        return found


def _add(routed: RoutedRows, place: int, row: Row, targets: DeliveryTargets) -> None:
    for group in targets.durable:
        routed.durable.append((place, group))
    if targets.live:
        client = row.client
        for other, names in targets.live:
            if other != client:
                routed.live.append((place, other, names))
