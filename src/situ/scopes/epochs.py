"""Visibility across epochs: of events by their stamps, and of situations by the stamps of all that caused them.

`Epochs` decides by the epoch of the stamp and the one in force, `Meet` is the visibility of a situation,
`large_families` and `unreached` give warnings about a compiled plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

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

Evaluate = Callable[[int], int]
"""Which of these filters are TRUE for the event, as bits."""

NOTHING_RELEASED: frozenset[str] = frozenset()


def no_filter_true(filters: int) -> int:
    """The event is not at hand: no filter counts as true."""
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibilityStamp:
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

    def visible(
        self, stamp: VisibilityStamp, now: int, subscribed: TagSet, evaluate: Evaluate = no_filter_true
    ) -> bool:
        """Whether what was stamped so may be handed over in the epoch ``now``."""
        if not self.pair(stamp.epoch, stamp.tags, subscribed, stamp.released).visible(stamp.bits):
            return False
        if stamp.epoch == now:
            return True
        pair = self.pair(now, stamp.tags, subscribed, stamp.released)
        new = pair.filters & ~self.plans[stamp.epoch].stamped
        known = stamp.bits & ~new
        return pair.visible(known | (evaluate(new) & new) if new else known)

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
        compiled = compile_dimension(
            known.dimension, advertised, subscribed, plan.numbers, known.constants, before=known
        )
        self._dimensions[epoch, name] = compiled
        return compiled


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The meet: a situation is visible where it is itself, and where everything is that caused it.
#
# It carries the stamps of its parts, each once. A part that is a situation brings its own stamp and those of its parts,
# so whoever sees a situation may see every event inside it. What did not happen has no event to test: of it the stamps
# of all advertisements count that could have shown it, without a bit, so that only pairs that always hold see it.

MOST_PARTS = 64
"""Beyond so many, parts of one tag set and epoch are merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meet:
    """The visibility of a situation: its own stamp, and those of all that it comes from. ``merged`` counts what was."""

    own: VisibilityStamp
    parts: frozenset[VisibilityStamp] = frozenset()
    merged: int = 0

    @property
    def stamps(self) -> frozenset[VisibilityStamp]:
        """What it brings into a situation that it becomes part of."""
        return self.parts | {self.own}


def meet(
    own: VisibilityStamp,
    events: Iterable[VisibilityStamp],
    situations: Iterable[Meet] = (),
    absent: Iterable[VisibilityStamp] = (),
) -> Meet:
    """The visibility of a situation that was detected from these."""
    inner = list(situations)
    parts: set[VisibilityStamp] = {*events, *absent}
    for each in inner:
        parts |= each.stamps
    kept, merged = merge(parts)
    return Meet(own=own, parts=kept, merged=merged + sum(each.merged for each in inner))


def merge(parts: Iterable[VisibilityStamp], most: int = MOST_PARTS) -> tuple[frozenset[VisibilityStamp], int]:
    """The parts, merged if they are too many: a filter counts as true only if it is so for all. How many are gone."""
    found = frozenset(parts)
    if len(found) <= most:
        return found, 0
    together: dict[VisibilityStamp, int] = {}
    for each in found:
        group = replace(each, bits=0)
        together[group] = together.get(group, each.bits) & each.bits
    kept = frozenset(replace(group, bits=bits) for group, bits in together.items())
    return kept, len(found) - len(kept)


def absent(epochs: Epochs, epoch: int, reads: TagSet, advertised: Iterable[TagSet]) -> frozenset[VisibilityStamp]:
    """What counts for an event that did not come: every tag set under which the policy could have seen one."""
    return frozenset(
        VisibilityStamp(tags=tags, epoch=epoch)
        for tags in advertised
        if epochs.pair(epoch, tags, reads).verdict is not Verdict.NEVER
    )


def release(found: Meet, dimensions: Iterable[str]) -> Meet:
    """An administrator lets go: in these dimensions parts count no longer, only what the situation is itself."""
    let_go = frozenset(dimensions)
    return replace(found, parts=frozenset(replace(each, released=each.released | let_go) for each in found.parts))


def released_data(data: Mapping[str, Any], keep: Iterable[str]) -> dict[str, Any]:
    """What is left of a situation that was released: no events inside, and only the attributes that may remain."""
    wanted = frozenset(keep)
    return {name: value for name, value in data.items() if name in wanted}


def reaches(epochs: Epochs, now: int, found: Meet, subscribed: TagSet, evaluate: Evaluate = no_filter_true) -> bool:
    """Whether a situation may be handed to a subscription: it itself, and each of its parts, by the rule of epochs.

    ``evaluate`` is of the situation. Its parts are not at hand, and some never were: filters that are new since they
    were stamped are not true for them.
    """
    return epochs.visible(found.own, now, subscribed, evaluate) and all(
        epochs.visible(each, now, subscribed) for each in found.parts
    )


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
