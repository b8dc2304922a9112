"""Which shape a subscription gets: what follows from its expectation in force and from what publishers do.

A publisher does what the most demanding claim asks, once, for everybody; whoever wants less of it gets less by being
thinned. Tolerated imprecision is used up: what the publisher leaves of it is suppressed for this subscriber. Whatever
no longer has a reason is no longer done.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

from situ.lang.records import replace
from situ.quality.match.satisfaction import capability_of
from situ.quality.model.declarations import Expectation, Need, Profile
from situ.quality.model.shapes import UNSHAPED, EventFloor, Limit, Shape, Suppress, Thin

MINUTE = 60_000_000
FORGET = 3_600_000_000
"""µs of event time after which nobody asks by which limit an earlier window was thinned."""
_FINEST = 1_000
"""Minutes that a limit of several events is counted in at most."""
_LONGEST = 10 * 366 * 24 * 60
"""Minutes that anything is counted in at most: what is wanted less than once in ten years is not wanted."""
_FASTEST = MINUTE
"""Events in a minute that are as many as there are instants: who wants as many is never thinned."""
_GUARDED = ("confidence", "freshness")
"""Properties of single events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeInputs:
    """What a shape depends on besides the expectation."""

    profiles: Sequence[Profile] = ()
    """Effective ones, all that are relevant."""
    satisfying: frozenset[str] = frozenset()
    """Ids of those that satisfy the expectation."""
    gaps: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Profile → the longest time between two of its events lately, in µs, of those where it was measured."""
    mark: int | None = None
    """How far event time is; None: nobody knows."""


def shape_in_force(expectation: Expectation, around: ShapeInputs, before: Shape | None) -> Shape | None:
    """What is done to the events of the subscription of an expectation in force; ``before`` is what was done so far."""
    publishers = {each.publisher for each in around.profiles if each.id in around.satisfying}
    shape = Shape(
        sources=frozenset(publishers) if expectation.selected else None,
        each=_each(expectation),
        aggregate=expectation.aggregate,
        suppress=_suppress(expectation, around),
        thin=_thin(expectation, around, before.thin if before is not None else None),
    )
    return shape if shape != UNSHAPED else None


def shape_of_none(best: Expectation | None) -> Shape | None:
    """The shape while none is in force; ``best`` is the one that ranks first among those that could be."""
    silent = best is not None and best.selected and best.otherwise_nothing
    return replace(UNSHAPED, sources=frozenset()) if silent else None


# ── single events ──


def _each(expectation: Expectation) -> tuple[EventFloor, ...]:
    found = []
    for name in _GUARDED:
        need = expectation.needs.get(name)
        if need is not None and need.each:
            found.append(EventFloor(about=name, floor=need.floor, keep_missing=need.keep_missing))  # type: ignore[arg-type]
    return tuple(found)


# ── rate ──


def _thin(expectation: Expectation, around: ShapeInputs, before: Thin | None) -> Thin | None:
    need = expectation.needs.get("rate")
    if need is None or need.goal >= _FASTEST or not _exceeds(need, around.profiles):
        return None
    limit = limit_of(need, around)
    thin = Thin(limits=(limit,), per=need.per, across=need.across, keep=need.keep)
    if before is None or replace(before, limits=thin.limits) != thin:
        return thin
    last = before.limits[-1]
    if replace(last, since=None) == limit:
        return before
    if around.mark is None:
        return thin
    kept = _remembered(before.limits, around.mark)
    # Several changes at one instant are one.
    kept = tuple(each for each in kept if each.since is None or each.since < around.mark)
    begun = replace(limit, since=around.mark)
    return replace(thin, limits=(*kept, begun))


def _remembered(limits: tuple[Limit, ...], mark: int) -> tuple[Limit, ...]:
    """Without those that were followed by another so long ago that nobody asks for them."""
    old = [place for place, each in enumerate(limits) if each.since is not None and each.since <= mark - FORGET]
    return limits[old[-1] :] if old else limits


def _exceeds(need: Need, profiles: Sequence[Profile]) -> bool:
    """Whether anybody does more than is useful."""
    found = (capability_of(each, need.about.id) for each in profiles)
    return any(each is not None and each.cv > need.goal for each in found)


def limit_of(need: Need, around: ShapeInputs) -> Limit:
    """The goal as whole events in whole minutes, never more than it."""
    goal = Fraction(need.goal)
    if goal * _LONGEST < 1:
        return Limit(events=0, form="quota")
    found = goal.limit_denominator(_FINEST)
    if goal * _FINEST < 1:
        found = Fraction(1, math.ceil(1 / goal))
    elif found > goal:
        found = Fraction(math.floor(goal * _FINEST), _FINEST)
    slot = MINUTE * found.denominator / found.numerator
    form = "slot" if need.floor <= 0 or _is_even(around, slot) else "quota"
    return Limit(events=found.numerator, minutes=found.denominator, form=form)  # type: ignore[arg-type]


def _is_even(around: ShapeInputs, slot: float) -> bool:
    """Whether one event of each slot is enough: nobody lets more than a slot pass between two events."""
    gaps = [around.gaps.get(each) for each in sorted(around.satisfying)]
    return bool(gaps) and all(each is not None and each <= slot for each in gaps)


# ── imprecision ──


def _suppress(expectation: Expectation, around: ShapeInputs) -> tuple[Suppress, ...]:
    found = []
    for id, need in sorted(expectation.needs.items()):
        if need.about.exceed != "use" or not need.about.of or not math.isfinite(need.floor):
            continue
        used = used_by_publishers(id, expectation, around)
        delta = max(need.floor - used, 0.0)
        per_key = tuple((key, max(value - used, 0.0)) for key, value in sorted(need.per_key.items()))
        if delta > 0:
            suppress = Suppress(
                attribute=need.about.of,
                delta=delta,
                per=need.per,
                per_key=per_key,
                max_silence=need.max_silence if need.max_silence is not None else _silence(expectation),
            )
            found.append(suppress)
    return tuple(found)


def used_by_publishers(id: str, expectation: Expectation, around: ShapeInputs) -> float:
    """How much of a tolerance is used up before events arrive here, by the publisher that uses most of it.

    A mean, a least or a greatest value is as imprecise as what it is made of; a sum is so as often as it has parts.
    """
    used = 0.0
    for profile in around.profiles:
        imprecision = capability_of(profile, id) if profile.id in around.satisfying else None
        if imprecision is not None:
            used = max(used, imprecision.cv * _parts(expectation, profile))
    return used


def _parts(expectation: Expectation, profile: Profile) -> int:
    aggregate = expectation.aggregate
    if aggregate is None or aggregate.function != "sum":
        return 1
    rate = capability_of(profile, "rate")
    # One more than fit, as a window may begin anywhere.
    return 1 if rate is None else math.ceil(min(rate.cv, _FASTEST) * aggregate.window / MINUTE) + 1


def _silence(expectation: Expectation) -> int | None:
    """What is unchanged is told as often as the rate needs at least."""
    need = expectation.needs.get("rate")
    return round(MINUTE / need.floor) if need is not None and need.floor * _LONGEST >= 1 else None
