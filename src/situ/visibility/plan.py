"""The plan: of each advertised and each subscribed tag set, whether the one is visible to the other, and by what.

Plain data that both engines run and that is the same for both. A pair is *never*, *always*, or *depends* on the filters
that an event passes: then every one of its families must hold, one for each dimension that is not settled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from situ.tags import TagSet
from situ.visibility.bits import Numbers
from situ.visibility.dimension_plan import DimensionPlan
from situ.visibility.families import ALWAYS, NEVER, Family, Nested, suppose


class Verdict(Enum):
    """What can be said of a pair without an event."""

    NEVER = "never"
    ALWAYS = "always"
    DEPENDS = "depends"


@dataclass(frozen=True, slots=True)
class Pair:
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
        return any(isinstance(family, Nested) for family in self.families)


_NEVER = Verdict.NEVER
NEVER_PAIR = Pair(Verdict.NEVER)
ALWAYS_PAIR = Pair(Verdict.ALWAYS)


def pair_of(families: tuple[Family, ...]) -> Pair:
    """All of these families, as few as will do."""
    left: list[Family] = []
    for family in families:
        if family is NEVER:
            return NEVER_PAIR
        if family is not ALWAYS:
            left.append(family)
    return Pair(Verdict.DEPENDS, tuple(left)) if left else ALWAYS_PAIR


@dataclass(frozen=True, slots=True)
class Supposed:
    """A plan where it is known of some filters that they are TRUE and of others that they are not, as for one type."""

    plan: VisibilityPlan
    true: int
    false: int
    _known: dict[Pair, Pair] = field(default_factory=dict, compare=False, repr=False)

    def pair(self, advertised: TagSet, subscribed: TagSet) -> Pair:
        """The decision for such events: often settled where it depends in general."""
        return self.of(self.plan.pair(advertised, subscribed))

    def of(self, pair: Pair) -> Pair:
        if not pair.families:
            return pair
        found = self._known.get(pair)
        if found is None:
            found = pair_of(tuple(suppose(family, self.true, self.false) for family in pair.families))
            self._known[pair] = found
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibilityPlan:
    """Every pair of tag sets in use, by their places: ``rows[ads[a]][subs[s]]``; one look-up and a few ANDs an event.

    ``dimensions`` is what compiling the next plan begins with.
    """

    ads: Mapping[TagSet, int]
    subs: Mapping[TagSet, int]
    rows: tuple[tuple[Pair, ...], ...] = field(repr=False)
    numbers: Numbers = field(repr=False)
    dimensions: Mapping[str, DimensionPlan] = field(repr=False)
    stamped: int
    """The filters that stamping evaluates: all that are written and not constant."""

    def pair(self, advertised: TagSet, subscribed: TagSet) -> Pair:
        """The decision between two tag sets that the plan was compiled for."""
        return self.rows[self.ads[advertised]][self.subs[subscribed]]

    def pairs(self) -> Iterator[tuple[TagSet, TagSet, Pair]]:
        """All pairs, row by row."""
        for advertised, row in zip(self.ads, self.rows, strict=True):
            for subscribed, pair in zip(self.subs, row, strict=True):
                yield advertised, subscribed, pair

    def too_large(self) -> Iterator[tuple[TagSet, TagSet]]:
        """The pairs that have a family of too many sets to be written out."""
        return ((advertised, subscribed) for advertised, subscribed, pair in self.pairs() if pair.nested)

    def suppose(self, true: int, false: int) -> Supposed:
        """The plan for events of which so much is known: filters that are constant for their type."""
        return Supposed(self, true, false)
