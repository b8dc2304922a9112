"""Visibility across epochs: decisions by the plan of any epoch that events are still of, and what cannot be reached.

`Epochs` decides between two tag sets in an epoch, `large_families` and `unreached` give warnings about a compiled plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from situ.lang.catalogue import LARGE_FAMILY, UNREACHED_SITUATIONS
from situ.lang.problems import Problem
from situ.lang.tags import ANY, TagSet
from situ.scopes.dimension_plan import DimensionPlan, compile_dimension
from situ.scopes.filter_sets import MOST_SETS, NestedFilterSets
from situ.scopes.visibility_plan import (
    NEVER_PAIR,
    TagSetPair,
    Verdict,
    VisibilityPlan,
    cell,
    names_unknown_scope,
    pair_of,
)

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# An event is handed over only if it is visible both in the epoch it was stamped in and in the one in force. So what is
# opened later never reaches back to old events, and what is closed covers events on their way, in queues and in
# replays. Filters have one number for good, so old bits can be read; filters that are new since the stamping are
# evaluated on the event itself, if somebody has it, and else count as not true.

NOTHING_RELEASED: frozenset[str] = frozenset()


@dataclass(slots=True)
class Epochs:
    """The plans of all epochs of which there are still events.

    Tag sets that a plan was not compiled for are looked at when they are asked for: somebody new may want old events.
    """

    plans: Mapping[int, VisibilityPlan]
    _dimensions: dict[tuple[int, str], DimensionPlan] = field(default_factory=dict, repr=False)
    _pairs: dict[tuple[int, TagSet, TagSet, frozenset[str]], TagSetPair] = field(default_factory=dict, repr=False)

    def pair(
        self, epoch: int, advertised: TagSet, subscribed: TagSet, released: frozenset[str] = NOTHING_RELEASED
    ) -> TagSetPair:
        """The decision in an epoch, without the dimensions that are released; never in an epoch that is not kept."""
        key = (epoch, advertised, subscribed, released)
        found = self._pairs.get(key)
        if found is None:
            found = self._pairs[key] = self._decide(*key)
        return found

    def _decide(self, epoch: int, advertised: TagSet, subscribed: TagSet, released: frozenset[str]) -> TagSetPair:
        plan = self.plans.get(epoch)
        if plan is None:
            return NEVER_PAIR
        if not released and advertised in plan.ads and subscribed in plan.subs:
            return plan.pair(advertised, subscribed)
        if any(names_unknown_scope(tags, plan.dimensions, released) for tags in (advertised, subscribed)):
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
        compiled = compile_dimension(known.dimension, advertised, subscribed, plan.numbers, before=known)
        self._dimensions[epoch, name] = compiled
        return compiled


def could_reach(
    epochs: Epochs,
    epoch: int,
    publishes: TagSet,
    reads: TagSet,
    advertised: Iterable[Iterable[TagSet]],
    subscribed: TagSet,
    released: frozenset[str] = frozenset(),
) -> bool:
    """Whether some situation of a policy may reach a subscription.

    ``advertised`` are the tag sets under which each of the types is published that the policy cannot do without.
    """
    if epochs.pair(epoch, publishes, subscribed).verdict is Verdict.NEVER:
        return False
    return all(
        any(
            epochs.pair(epoch, tags, reads).verdict is not Verdict.NEVER
            and epochs.pair(epoch, tags, subscribed, released).verdict is not Verdict.NEVER
            for tags in each
        )
        for each in advertised
    )


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Warnings once visibility is compiled: too many ways between two tags, situations that reach nobody.


def large_families(plan: VisibilityPlan) -> Iterator[Problem]:
    """V109 for each pair of tags, once however many tag sets name them."""
    named: set[tuple[str, str, str]] = set()
    for advertised, subscribed in plan.too_large():
        for name, dimension in plan.dimensions.items():
            producer, consumer = advertised.tag(name) or "", subscribed.tag(name) or ""
            pair = (name, producer, consumer)
            if pair not in named and isinstance(dimension.family(producer, consumer), NestedFilterSets):
                named.add(pair)
                yield LARGE_FAMILY(dimension=name, producer=producer, consumer=consumer, most=MOST_SETS)


def unreached(
    epochs: Epochs,
    epoch: int,
    policy: str,
    tags: tuple[TagSet, TagSet],
    advertised: Iterable[Iterable[TagSet]],
    subscriptions: Mapping[str, TagSet],
    released: frozenset[str] = frozenset(),
) -> Problem | None:
    """V110 if there are subscriptions to a policy's situations and it could reach none of them.

    ``tags`` are those that it publishes and reads under; ``advertised`` as in
    :func:`~situ.scopes.epochs.could_reach`.
    """
    publishes, reads = tags
    needed = [tuple(each) for each in advertised]
    if not subscriptions or any(
        could_reach(epochs, epoch, publishes, reads, needed, subscribed, released)
        for subscribed in subscriptions.values()
    ):
        return None
    return UNREACHED_SITUATIONS(policy=policy, subscriptions=", ".join(subscriptions))
