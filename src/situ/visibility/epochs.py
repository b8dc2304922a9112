"""Epochs: an event is handed over only if it is visible both in the epoch it was stamped in and in the one in force.

So what is opened later never reaches back to old events, and what is closed covers events on their way, in queues and
in replays. Filters have one number for good, so old bits can be read; filters that are new since the stamping are
evaluated on the event itself, if somebody has it, and else count as not true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from situ.tags import ANY, TagSet
from situ.visibility.compile import cell, is_strange
from situ.visibility.dimension_plan import DimensionPlan, compile_dimension
from situ.visibility.plan import NEVER_PAIR, Pair, VisibilityPlan, pair_of

Evaluate = Callable[[int], int]
"""Which of these filters are TRUE for the event, as bits."""

NOTHING_RELEASED: frozenset[str] = frozenset()


def nobody_knows(filters: int) -> int:
    """The event is not at hand: no filter counts as true."""
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What an event knows of its own visibility. In ``released`` dimensions an administrator let go of it."""

    tags: TagSet
    epoch: int
    bits: int = 0
    released: frozenset[str] = NOTHING_RELEASED


@dataclass(slots=True)
class Epochs:
    """The plans of all epochs of which there are still events.

    Tag sets that a plan was not compiled for are looked at when they are asked for: somebody new may want old events.
    """

    plans: Mapping[int, VisibilityPlan]
    _dimensions: dict[tuple[int, str], DimensionPlan] = field(default_factory=dict, repr=False)
    _pairs: dict[tuple[int, TagSet, TagSet, frozenset[str]], Pair] = field(default_factory=dict, repr=False)

    def pair(
        self, epoch: int, advertised: TagSet, subscribed: TagSet, released: frozenset[str] = NOTHING_RELEASED
    ) -> Pair:
        """The decision in an epoch, without the dimensions that are released; never in an epoch that is not kept."""
        key = (epoch, advertised, subscribed, released)
        found = self._pairs.get(key)
        if found is None:
            found = self._pairs[key] = self._decide(*key)
        return found

    def visible(self, stamp: Stamp, now: int, subscribed: TagSet, evaluate: Evaluate = nobody_knows) -> bool:
        """Whether what was stamped so may be handed over in the epoch ``now``."""
        if not self.pair(stamp.epoch, stamp.tags, subscribed, stamp.released).visible(stamp.bits):
            return False
        if stamp.epoch == now:
            return True
        pair = self.pair(now, stamp.tags, subscribed, stamp.released)
        new = pair.filters & ~self.plans[stamp.epoch].stamped
        known = stamp.bits & ~new
        return pair.visible(known | (evaluate(new) & new) if new else known)

    def _decide(self, epoch: int, advertised: TagSet, subscribed: TagSet, released: frozenset[str]) -> Pair:
        plan = self.plans.get(epoch)
        if plan is None:
            return NEVER_PAIR
        if not released and advertised in plan.ads and subscribed in plan.subs:
            return plan.pair(advertised, subscribed)
        if any(is_strange(tags, plan.dimensions, released) for tags in (advertised, subscribed)):
            return NEVER_PAIR
        return pair_of(
            tuple(
                cell(self._dimension(epoch, name, producer, consumer), producer, consumer)
                for name in plan.dimensions
                if name not in released
                for producer, consumer in [(advertised.tag(name), subscribed.tag(name))]
            )
        )

    def _dimension(self, epoch: int, name: str, producer: str | None, consumer: str | None) -> DimensionPlan:
        """The dimension, compiled for these two tags, too."""
        plan = self.plans[epoch]
        known = self._dimensions.get((epoch, name), plan.dimensions[name])
        if producer in (None, ANY) or consumer in (None, ANY) or consumer in known.seen.get(producer, ()):
            return known
        advertised = {**dict.fromkeys(known.seen), producer: None}
        subscribed = {**{tag: None for row in known.seen.values() for tag in row}, consumer: None}
        compiled = compile_dimension(
            known.dimension, advertised, subscribed, plan.numbers, known.constants, before=known
        )
        self._dimensions[epoch, name] = compiled
        return compiled
