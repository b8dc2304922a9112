"""The visibility plan: for each advertised and each subscribed tag set, whether the one is visible to the other.

`VisibilityPlan` holds a `TagSetPair` for every two tag sets, `compare_pairs` says whether a change narrows one,
`sees_as_much` whether one subscribed tag set sees all that another does, `compile_visibility` makes the plan of a scope
graph.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

import msgspec

from situ.lang.tags import ANY, TagSet
from situ.scopes.dimension_plan import DimensionPlan, compile_dimension, constant
from situ.scopes.filter_sets import (
    ALWAYS,
    NEVER,
    Family,
    FilterNumbers,
    FilterSets,
    NestedFilterSets,
    bits_of,
    give_numbers,
)
from situ.scopes.graph import ScopeGraph

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Plain data that both engines run and that is the same for both. A pair is *never*, *always*, or *depends* on the
# filters that an event passes: then every one of its families must hold, one for each dimension that is not settled.


class Verdict(Enum):
    """What can be said of a pair without an event."""

    NEVER = "never"
    ALWAYS = "always"
    DEPENDS = "depends"


class TagSetPair(msgspec.Struct, frozen=True):
    """The decision between two tag sets. Without families it is always or never the same."""

    verdict: Verdict
    families: tuple[Family, ...] = ()

    def visible(self, bits: int) -> bool:
        """Whether an event with these bits is visible."""
        for family in self.families:
            if not family.holds(bits):
                return False
        return self.verdict is not _NEVER

    @property
    def filters(self) -> int:
        """All filters that it depends on."""
        result = 0
        for family in self.families:
            result |= family.filters
        return result

    @property
    def nested(self) -> bool:
        """Whether one of its families has too many sets to be written out."""
        return any(isinstance(family, NestedFilterSets) for family in self.families)


_NEVER = Verdict.NEVER
NEVER_PAIR = TagSetPair(Verdict.NEVER)
ALWAYS_PAIR = TagSetPair(Verdict.ALWAYS)


def pair_of(families: tuple[Family, ...]) -> TagSetPair:
    """All of these families, as few as will do."""
    left: list[Family] = []
    for family in families:
        if family is NEVER:
            return NEVER_PAIR
        if family is not ALWAYS:
            left.append(family)
    return TagSetPair(Verdict.DEPENDS, tuple(left)) if left else ALWAYS_PAIR


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibilityPlan:
    """Every pair of tag sets in use, by their places: ``rows[ads[a]][subs[s]]``; one look-up and a few ANDs an event.

    ``dimensions`` is what compiling the next plan begins with.
    """

    ads: Mapping[TagSet, int]
    subs: Mapping[TagSet, int]
    rows: tuple[tuple[TagSetPair, ...], ...] = field(repr=False)
    numbers: FilterNumbers = field(repr=False)
    dimensions: Mapping[str, DimensionPlan] = field(repr=False)
    stamped: int
    """The filters that stamping evaluates: all that are written and not constant."""

    def pair(self, advertised: TagSet, subscribed: TagSet) -> TagSetPair:
        """The decision between two tag sets that the plan was compiled for."""
        return self.rows[self.ads[advertised]][self.subs[subscribed]]

    def pairs(self) -> Iterator[tuple[TagSet, TagSet, TagSetPair]]:
        """All pairs, row by row."""
        for advertised, row in zip(self.ads, self.rows, strict=True):
            for subscribed, pair in zip(self.subs, row, strict=True):
                yield advertised, subscribed, pair

    def too_large(self) -> Iterator[tuple[TagSet, TagSet]]:
        """The pairs that have a family of too many sets to be written out."""
        return ((advertised, subscribed) for advertised, subscribed, pair in self.pairs() if pair.nested)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Two decisions between the same sides, before and after a change: do fewer events pass, or more? Filters are compared
# by their texts alone: whether one condition follows from another is not looked at. So a decision by another filter is
# neither narrower nor wider, but another one.


class VisibilityShift(Enum):
    """What a change means for those who receive."""

    SAME = "same"
    NARROWER = "narrower"
    WIDER = "wider"
    OTHER = "other"


def compare_pairs(before: TagSetPair, after: TagSetPair) -> VisibilityShift:
    """Both compiled with the same numbers of filters."""
    if before == after:
        return VisibilityShift.SAME
    fewer, more = _follows(after, before), _follows(before, after)
    if fewer and more:
        return VisibilityShift.SAME
    return VisibilityShift.NARROWER if fewer else VisibilityShift.WIDER if more else VisibilityShift.OTHER


def _follows(one: TagSetPair, other: TagSetPair) -> bool:
    """Whether all that the one lets pass is let pass by the other; False also where that is not sure."""
    if one.verdict is Verdict.NEVER or other.verdict is Verdict.ALWAYS:
        return True
    if other.verdict is Verdict.NEVER or one.verdict is Verdict.ALWAYS:
        return False
    return all(any(_family_follows(mine, theirs) for mine in one.families) for theirs in other.families)


def _family_follows(one: Family, other: Family) -> bool:
    if one is NEVER or other is ALWAYS:
        return True
    if isinstance(one, FilterSets) and isinstance(other, FilterSets):
        return all(any(mine & theirs == theirs for theirs in other.sets) for mine in one.sets)
    return one == other


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Two subscribed tag sets, compared for covering: whoever is told of the one need not be told of the other. What is
# known of a direction is which tags are advertised there in each dimension, not which of them together. So each
# dimension must do by itself; for every tag set made of these tags, all of them then do.


def sees_as_much(
    dimensions: Mapping[str, DimensionPlan],
    advertised: Mapping[str, Collection[str | None]],
    wider: TagSet,
    narrower: TagSet,
) -> bool:
    """Whether all events of these tags (scopes, ``any``, and None for nothing said) that are visible to the second tag
    set are visible to the first. ``dimensions`` are those of a plan; of tags that it was not compiled for nothing is
    known, and the answer is no."""
    if wider == narrower or names_unknown_scope(narrower, dimensions):
        return True
    if names_unknown_scope(wider, dimensions):
        return False
    return all(
        _is_compiled(plan, tag, narrower.tag(name))
        and _family_follows(cell(plan, tag, narrower.tag(name)), cell(plan, tag, wider.tag(name)))
        for name, plan in dimensions.items()
        for tag in advertised.get(name, ())
    )


def _is_compiled(plan: DimensionPlan, advertised: str | None, subscribed: str | None) -> bool:
    if advertised in (None, ANY) or subscribed in (None, ANY) or advertised not in plan.crossings:
        return True
    return subscribed in plan.seen.get(advertised, {})


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Compilation: what a change did not touch is taken over from the plan before. A pair is the AND over all dimensions,
# each by the table that says what a scope, ``any`` and nothing mean to each other.


def number_filters(graph: ScopeGraph, numbers: FilterNumbers) -> FilterNumbers:
    """With a number for each filter of the graph that is not constant; none that was given is given again."""
    return give_numbers(numbers, (each.text for each in graph.filters() if constant(each.text) is None))


def compile_visibility(
    graph: ScopeGraph,
    ads: Iterable[TagSet],
    subs: Iterable[TagSet],
    numbers: FilterNumbers,
    before: VisibilityPlan | None = None,
) -> VisibilityPlan:
    """The plan for these tag sets. ``numbers`` must have those of :func:`number_filters`, and all that ``before`` had.

    With ``before``, the plan of another graph or of other tag sets, only what differs is computed.
    """
    advertised, subscribed = list(dict.fromkeys(ads)), list(dict.fromkeys(subs))
    known = before.dimensions if before is not None else {}
    dimensions = {
        name: compile_dimension(
            dimension,
            dict.fromkeys(tag for each in advertised if (tag := each.tag(name)) not in (None, ANY)),
            dict.fromkeys(tag for each in subscribed if (tag := each.tag(name)) not in (None, ANY)),
            numbers,
            known.get(name),
        )
        for name, dimension in graph.dimensions.items()
    }
    rows = _PlanRows(dimensions, subscribed, before)
    return VisibilityPlan(
        ads=MappingProxyType({each: place for place, each in enumerate(advertised)}),
        subs=MappingProxyType({each: place for place, each in enumerate(subscribed)}),
        rows=tuple(rows.row(each) for each in advertised),
        numbers=numbers,
        dimensions=MappingProxyType(dimensions),
        stamped=bits_of({numbers[each.text] for each in graph.filters() if constant(each.text) is None}),
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


class _PlanRows:
    """Makes the rows of a plan, one for each advertised tag set; equal pairs are one object."""

    def __init__(
        self, dimensions: Mapping[str, DimensionPlan], subscribed: Sequence[TagSet], before: VisibilityPlan | None
    ) -> None:
        self._dimensions = dimensions
        self._subscribed = subscribed
        self._sub_tags = {name: [each.tag(name) for each in subscribed] for name in dimensions}
        self._strange = [names_unknown_scope(each, dimensions) for each in subscribed]
        self._columns: dict[tuple[str, str | None], list[Family]] = {}
        self._pairs: dict[tuple[int, ...], TagSetPair] = {}
        self._before = before if before is not None and _same_table(before.dimensions, dimensions) else None
        self._fresh = self._fresh_places()
        self._in_place = self._before is not None and list(self._before.subs) == subscribed

    def row(self, advertised: TagSet) -> tuple[TagSetPair, ...]:
        if names_unknown_scope(advertised, self._dimensions):
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

    def _whole(self, advertised: TagSet) -> tuple[TagSetPair, ...]:
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

    def _pair(self, families: tuple[Family, ...], place: int) -> TagSetPair:
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

    def _old_row(self, advertised: TagSet) -> tuple[TagSetPair, ...] | None:
        if self._before is None or self._is_touched(advertised):
            return None
        place = self._before.ads.get(advertised)
        return None if place is None else self._before.rows[place]

    def _placed(self, old: tuple[TagSetPair, ...]) -> list[TagSetPair]:
        assert self._before is not None
        if self._in_place:
            return list(old)
        places = self._before.subs
        return [old[places[each]] if each in places else NEVER_PAIR for each in self._subscribed]


def names_unknown_scope(
    tags: TagSet, dimensions: Mapping[str, DimensionPlan], released: frozenset[str] = frozenset()
) -> bool:
    """Whether it names a scope that is not there: it sees nothing, and nobody sees it."""
    return any(
        tag != ANY and (name not in dimensions or tag not in dimensions[name].crossings)
        for name, tag in tags.named
        if name not in released
    )


def _same_table(old: Mapping[str, DimensionPlan], new: Mapping[str, DimensionPlan]) -> bool:
    """Whether dimensions are the same and open or closed as before: else every cell may be another."""
    return old.keys() == new.keys() and all(old[name].dimension.closed == new[name].dimension.closed for name in new)
