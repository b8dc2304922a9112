"""What routers know of scopes in one epoch: who sees what, whom to tell of a subscription, who may hold an event.

The scope document of an epoch is immutable and the same for all routers. `Meaning` is what is declared of types and
filters, without which nothing can be matched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from situ.lang.tags import ANY, TagSet
from situ.scopes.dimension_plan import DimensionPlan
from situ.scopes.filter_sets import NEVER
from situ.scopes.graph import Carriers, effective_carriers
from situ.scopes.visibility_plan import TagSetPair, VisibilityPlan, cell

NOTHING = "-"
"""The tag of an advertisement that says nothing in a dimension, in a scope look-up table."""


class Meaning(Protocol):
    """What is declared of types and filters. It does not change while routers run."""

    def above(self, type: str) -> tuple[str, ...]:
        """The type itself and all its supertypes; empty if there is no such type."""

    def passes(self, where: str, type: str, data: Mapping[str, Any]) -> bool:
        """Whether a filter is true of an event."""

    def bits(self, type: str, data: Mapping[str, Any]) -> int:
        """The numbers of the filters at boundaries that are true of an event."""


class ScopeDocument:
    """The scopes of one epoch, compiled. The plan must know all tag sets that are declared."""

    def __init__(self, epoch: int, plan: VisibilityPlan) -> None:
        self.epoch = epoch
        self.plan = plan
        self.dimensions: Mapping[str, DimensionPlan] = plan.dimensions
        self.is_closed = any(each.dimension.closed for each in self.dimensions.values())
        self._carriers: dict[str, Mapping[str, Carriers]] = {
            name: effective_carriers(each.dimension) for name, each in self.dimensions.items()
        }
        self._pairs: dict[tuple[TagSet, TagSet], TagSetPair | None] = {}
        self._told: dict[tuple[str, str, str | None], bool] = {}

    def visible(self, advertised: TagSet, subscribed: TagSet, bits: int) -> bool:
        """Whether an event with these tags and bits is visible to a subscription."""
        if not self.dimensions:
            return True
        key = (advertised, subscribed)
        try:
            pair = self._pairs[key]
        except KeyError:
            # A tag set that the document was not compiled for sees nothing, and is not seen.
            known = advertised in self.plan.ads and subscribed in self.plan.subs
            pair = self._pairs[key] = self.plan.pair(advertised, subscribed) if known else None
        return pair is not None and pair.visible(bits)

    def rows(self, advertised: TagSet) -> tuple[tuple[str, str], ...]:
        """What an advertisement adds to a scope look-up table: one row a dimension."""
        return tuple((name, advertised.tag(name) or NOTHING) for name in self.dimensions)

    def eligible(self, rows: Iterable[tuple[str, str]], subscribed: TagSet) -> bool:
        """Whether a subscription may match what is advertised where these rows come from: in every dimension by some
        row. It may say yes where different advertisements answer for different dimensions; it never says no wrongly."""
        open_ = set(self.dimensions)
        for name, tag in rows:
            if name in open_ and self._admits(name, tag, subscribed.tag(name)):
                open_.discard(name)
        return not open_

    def _admits(self, dimension: str, tag: str, subscribed: str | None) -> bool:
        key = (dimension, tag, subscribed)
        found = self._told.get(key)
        if found is None:
            plan = self.dimensions[dimension]
            advertised = None if tag == NOTHING else tag
            known = all(each in (None, ANY) or each in plan.crossings for each in (advertised, subscribed))
            found = self._told[key] = known and cell(plan, advertised, subscribed) is not NEVER
        return found

    def may_enter(self, zone: str, advertised: TagSet, bits: int) -> bool:
        """Whether a zone may hold an event: in every dimension where it names a scope, the zone carries some scope that
        the event can get to."""
        for name, plan in self.dimensions.items():
            tag = advertised.tag(name)
            if tag is None or tag == ANY:
                continue
            carriers = self._carriers[name]
            if all(each is None for each in carriers.values()):
                continue
            if tag not in plan.crossings or not any(
                (each is None or zone in each) and plan.family(tag, scope).holds(bits)
                for scope, each in carriers.items()
            ):
                return False
        return True
