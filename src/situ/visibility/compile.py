"""Compiling: scope graph and tag sets in, plan out; what a change did not touch is taken over from the plan before.

A pair is the AND over all dimensions, each by the table that says what a scope, ``any`` and nothing mean to each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from situ.tags import ANY, TagSet
from situ.visibility.bits import Numbers, bits_of, give_numbers
from situ.visibility.dimension_plan import NO_CONSTANTS, DimensionPlan, compile_dimension, constant
from situ.visibility.families import ALWAYS, NEVER, Family
from situ.visibility.graph import ScopeGraph
from situ.visibility.plan import NEVER_PAIR, Pair, VisibilityPlan, pair_of


def number_filters(graph: ScopeGraph, numbers: Numbers) -> Numbers:
    """With a number for each filter of the graph that is not constant; none that was given is given again."""
    return give_numbers(numbers, (each.text for each in graph.filters() if constant(each.text) is None))


def compile_visibility(
    graph: ScopeGraph,
    ads: Iterable[TagSet],
    subs: Iterable[TagSet],
    numbers: Numbers,
    before: VisibilityPlan | None = None,
    constants: Mapping[str, bool] = NO_CONSTANTS,
) -> VisibilityPlan:
    """The plan for these tag sets. ``numbers`` must have those of :func:`number_filters`, and all that ``before`` had.

    With ``before``, the plan of another graph or of other tag sets, only what differs is computed. ``constants`` are
    filters that say the same of every event of every type (:func:`situ.visibility.stamping.constant_filters`).
    """
    advertised, subscribed = list(dict.fromkeys(ads)), list(dict.fromkeys(subs))
    known = before.dimensions if before is not None else {}
    dimensions = {
        name: compile_dimension(
            dimension,
            dict.fromkeys(tag for each in advertised if (tag := each.tag(name)) not in (None, ANY)),
            dict.fromkeys(tag for each in subscribed if (tag := each.tag(name)) not in (None, ANY)),
            numbers,
            constants,
            known.get(name),
        )
        for name, dimension in graph.dimensions.items()
    }
    rows = _Rows(dimensions, subscribed, before)
    return VisibilityPlan(
        ads=MappingProxyType({each: place for place, each in enumerate(advertised)}),
        subs=MappingProxyType({each: place for place, each in enumerate(subscribed)}),
        rows=tuple(rows.row(each) for each in advertised),
        numbers=numbers,
        dimensions=MappingProxyType(dimensions),
        stamped=bits_of({numbers[each.text] for each in graph.filters() if constant(each.text, constants) is None}),
    )


def cell(plan: DimensionPlan, advertised: str | None, subscribed: str | None) -> Family:
    """The table: what is visible in one dimension between a scope, ``any`` and nothing (None)."""
    if advertised not in (None, ANY) and subscribed not in (None, ANY):
        return plan.family(advertised, subscribed)
    if subscribed == ANY:
        return ALWAYS if advertised in (None, ANY) or advertised in plan.crossings else NEVER
    if advertised == ANY and subscribed is not None:
        return ALWAYS if subscribed in plan.crossings else NEVER
    if advertised in (None, ANY) and subscribed is None:
        return NEVER if plan.dimension.closed else ALWAYS
    return NEVER


class _Rows:
    """Makes the rows of a plan, one for each advertised tag set; equal pairs are one object."""

    def __init__(
        self, dimensions: Mapping[str, DimensionPlan], subscribed: Sequence[TagSet], before: VisibilityPlan | None
    ) -> None:
        self._dimensions = dimensions
        self._subscribed = subscribed
        self._sub_tags = {name: [each.tag(name) for each in subscribed] for name in dimensions}
        self._strange = [_is_strange(each, dimensions) for each in subscribed]
        self._columns: dict[tuple[str, str | None], list[Family]] = {}
        self._pairs: dict[tuple[Family, ...], Pair] = {}
        self._before = before if before is not None and _same_table(before.dimensions, dimensions) else None
        self._fresh = self._fresh_places()

    def row(self, advertised: TagSet) -> tuple[Pair, ...]:
        if _is_strange(advertised, self._dimensions):
            return tuple(self._pair((NEVER,)) for _ in self._subscribed)
        old = self._old_row(advertised)
        if old is None:
            return tuple(self._fill(advertised, range(len(self._subscribed))))
        if not self._fresh and len(old) == len(self._subscribed):
            return old
        row = self._placed(old)
        for place, pair in zip(self._fresh, self._fill(advertised, self._fresh), strict=True):
            row[place] = pair
        return tuple(row)

    def _fill(self, advertised: TagSet, places: Iterable[int]) -> list[Pair]:
        columns = [self._column(name, advertised.tag(name)) for name in self._dimensions]
        pair, strange = self._pair, self._strange
        return [
            pair((NEVER,)) if strange[place] else pair(tuple([column[place] for column in columns])) for place in places
        ]

    def _column(self, name: str, tag: str | None) -> list[Family]:
        found = self._columns.get((name, tag))
        if found is None:
            plan = self._dimensions[name]
            known: dict[str | None, Family] = {}
            for other in self._sub_tags[name]:
                if other not in known:
                    known[other] = cell(plan, tag, other)
            found = self._columns[name, tag] = [known[other] for other in self._sub_tags[name]]
        return found

    def _pair(self, families: tuple[Family, ...]) -> Pair:
        found = self._pairs.get(families)
        if found is None:
            found = self._pairs[families] = pair_of(families)
        return found

    def _fresh_places(self) -> list[int]:
        """Where rows that are taken over must be filled again: tag sets that are new or whose tags are touched."""
        if self._before is None:
            return []
        return [
            place
            for place, each in enumerate(self._subscribed)
            if each not in self._before.subs or self._is_touched(each)
        ]

    def _is_touched(self, tags: TagSet) -> bool:
        return any(tags.tag(name) in plan.changed for name, plan in self._dimensions.items() if plan.changed)

    def _old_row(self, advertised: TagSet) -> tuple[Pair, ...] | None:
        if self._before is None or self._is_touched(advertised):
            return None
        place = self._before.ads.get(advertised)
        return None if place is None else self._before.rows[place]

    def _placed(self, old: tuple[Pair, ...]) -> list[Pair]:
        assert self._before is not None
        if list(self._before.subs) == self._subscribed:
            return list(old)
        places = self._before.subs
        return [old[places[each]] if each in places else NEVER_PAIR for each in self._subscribed]


def _is_strange(tags: TagSet, dimensions: Mapping[str, DimensionPlan]) -> bool:
    """Whether it names a scope that is not there: it sees nothing, and nobody sees it."""
    return any(
        tag != ANY and (name not in dimensions or tag not in dimensions[name].crossings) for name, tag in tags.named
    )


def _same_table(old: Mapping[str, DimensionPlan], new: Mapping[str, DimensionPlan]) -> bool:
    """Whether dimensions are the same and open or closed as before: else every cell may be another."""
    return old.keys() == new.keys() and all(old[name].dimension.closed == new[name].dimension.closed for name in new)
