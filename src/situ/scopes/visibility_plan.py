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
from situ.visibility.plan import ALWAYS_PAIR, NEVER_PAIR, Pair, VisibilityPlan, pair_of


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
        self._strange = [is_strange(each, dimensions) for each in subscribed]
        self._columns: dict[tuple[str, str | None], list[Family]] = {}
        self._pairs: dict[tuple[int, ...], Pair] = {}
        self._before = before if before is not None and _same_table(before.dimensions, dimensions) else None
        self._fresh = self._fresh_places()
        self._in_place = self._before is not None and list(self._before.subs) == subscribed

    def row(self, advertised: TagSet) -> tuple[Pair, ...]:
        if is_strange(advertised, self._dimensions):
            return (NEVER_PAIR,) * len(self._subscribed)
        old = self._old_row(advertised)
        if old is None:
            return self._whole(advertised)
        if not self._fresh and self._in_place:
            return old
        row = self._placed(old)
        cells = [(plan, advertised.tag(name), self._sub_tags[name]) for name, plan in self._dimensions.items()]
        for place in self._fresh:
            row[place] = self._pair(tuple([cell(plan, tag, others[place]) for plan, tag, others in cells]), place)
        return tuple(row)

    def _whole(self, advertised: TagSet) -> tuple[Pair, ...]:
        columns = [self._column(name, advertised.tag(name)) for name in self._dimensions]
        if not columns:
            return tuple(NEVER_PAIR if strange else ALWAYS_PAIR for strange in self._strange)
        pair = self._pair
        return tuple([pair(families, place) for place, families in enumerate(zip(*columns, strict=True))])

    def _column(self, name: str, tag: str | None) -> list[Family]:
        found = self._columns.get((name, tag))
        if found is None:
            plan, others = self._dimensions[name], self._sub_tags[name]
            known = {other: cell(plan, tag, other) for other in set(others)}
            found = self._columns[name, tag] = [known[other] for other in others]
        return found

    def _pair(self, families: tuple[Family, ...], place: int) -> Pair:
        if self._strange[place]:
            return NEVER_PAIR
        key = tuple(map(id, families))  # the families live as long as the plan of their dimension
        found = self._pairs.get(key)
        if found is None:
            found = self._pairs[key] = pair_of(families)
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
        if self._in_place:
            return list(old)
        places = self._before.subs
        return [old[places[each]] if each in places else NEVER_PAIR for each in self._subscribed]


def is_strange(tags: TagSet, dimensions: Mapping[str, DimensionPlan], released: frozenset[str] = frozenset()) -> bool:
    """Whether it names a scope that is not there: it sees nothing, and nobody sees it."""
    return any(
        tag != ANY and (name not in dimensions or tag not in dimensions[name].crossings)
        for name, tag in tags.named
        if name not in released
    )


def _same_table(old: Mapping[str, DimensionPlan], new: Mapping[str, DimensionPlan]) -> bool:
    """Whether dimensions are the same and open or closed as before: else every cell may be another."""
    return old.keys() == new.keys() and all(old[name].dimension.closed == new[name].dimension.closed for name in new)
