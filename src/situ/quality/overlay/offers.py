"""Offers: which profiles are worth telling another router of.

Skylines decide states, not choices: a profile that others dominate may be the cheaper one. An offer stays unless some
other is at least as good now, at least as good at its best, and gets everything in between at no more extra cost. Costs
are compared where they bend if they are straight in between, or if they are the same formula; otherwise both stay.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np

from situ.quality.actions import NO_ACTIONS
from situ.quality.cost import Constant, Cost
from situ.quality.expectation import Expectation
from situ.quality.operating import cheapest, costs_at
from situ.quality.profile import Capability, Mode, Profile
from situ.quality.property import Property
from situ.quality.rows import Columns, at_least
from situ.quality.skyline import Skyline, dominates

MOST_OFFERS = 32
"""Per pool and link, beyond those that decide states."""
_STAYING = Mode(name="", values={})


def extra_cost(capability: Capability, floor: float) -> float:
    """The least that it costs more than now to have a value at least as good; infinite if it cannot be had."""
    about = capability.about
    if about.at_least(capability.cv, floor):
        return 0.0
    if not about.at_least(capability.best, floor):
        return math.inf
    return _more(capability, cheapest(capability, floor, NO_ACTIONS))


def least_extra_cost(expectation: Expectation, profile: Profile) -> float:
    """The least that it costs more than now to meet an expectation; infinite if that cannot be."""
    if not expectation.needs.keys() <= profile.properties:
        return math.inf
    free = math.fsum(
        extra_cost(profile.capabilities[id], need.floor)
        for id, need in expectation.needs.items()
        if id in profile.capabilities
    )
    asked = {id: expectation.needs[id] for id in profile.moded if id in expectation.needs}
    met = (
        extra
        for mode, extra in _modes(profile)
        if all(need.about.at_least(mode.values[id], need.floor) for id, need in asked.items())
    )
    return free + min(met, default=math.inf)


def beats(one: Profile, other: Profile) -> bool:
    """Whether nobody misses the other one as long as this one is there. Equal ones beat each other."""
    if not (one.capabilities.keys() >= other.capabilities.keys() and one.moded.keys() >= other.moded.keys()):
        return False
    if not dominates(one.current(), other.current()):
        return False
    if not all(_is_no_dearer(one.capabilities[id], each) for id, each in other.capabilities.items()):
        return False
    mine = _modes(one)
    return all(
        any(cost <= extra and _covers(mode, each, other) for mode, cost in mine) for each, extra in _modes(other)
    )


def frontier(profiles: Iterable[Profile]) -> tuple[Profile, ...]:
    """Those that nobody beats, in the order of their ids; of such that beat each other the first one."""
    known = sorted(profiles, key=lambda each: each.id)
    columns = Columns()
    ends = columns.matrix([_ends(each) for each in known])
    found: list[Profile] = []
    for place, each in enumerate(known):
        # Only whoever is at least as good at both ends can beat it; that is found out for all at once.
        better = np.flatnonzero(at_least(ends, ends[:, place])).tolist()
        if not any(_falls_to(each, known[rival]) for rival in better if rival != place):
            found.append(each)
    return tuple(found)


def truncated(offers: Sequence[Profile], most: int = MOST_OFFERS) -> tuple[Profile, ...]:
    """Those that decide states, and of the others as many as may be: those first whose best costs least."""
    deciding = _deciding(offers)
    others = [each for each in offers if each.id not in deciding]
    kept = deciding.union(each.id for each in sorted(others, key=_cost_of_best)[:most])
    return tuple(each for each in offers if each.id in kept)


def _falls_to(one: Profile, rival: Profile) -> bool:
    return beats(rival, one) and (rival.id < one.id or not beats(one, rival))


def _deciding(offers: Sequence[Profile]) -> set[str]:
    """The ids of those that have a point in one of the two skylines."""
    columns = Columns()
    now, able = Skyline(columns), Skyline(columns)
    now.put_new([(each.id, 0) for each in offers], columns.matrix([each.current() for each in offers]))
    reach = [((each.id, place), point) for each in offers for place, point in enumerate(each.reach())]
    able.put_new([key for key, _ in reach], columns.matrix([point for _, point in reach]))
    return {id for id, _ in itertools.chain(now.members.keys, able.members.keys)}


def _cost_of_best(profile: Profile) -> tuple[float, str]:
    free = (extra_cost(each, each.best) for each in profile.capabilities.values())
    return math.fsum(free) + max(extra for _, extra in _modes(profile)), profile.id


def _ends(profile: Profile) -> dict[str, float]:
    """Its current point, and the best of each property, as one point."""
    found = dict(profile.current())
    for point in profile.reach():
        for id, goodness in point.items():
            best = f"best {id}"
            found[best] = max(goodness, found.get(best, goodness))
    return found


def _modes(profile: Profile) -> list[tuple[Mode, float]]:
    """Each mode with what it costs more than the current one; without any there is nothing to choose."""
    if not profile.modes:
        return [(_STAYING, 0.0)]
    now = profile.mode_named(profile.mode).cost
    return [(mode, mode.cost - now) for mode in profile.modes]


def _covers(mode: Mode, other: Mode, profile: Profile) -> bool:
    """Whether a mode is at least as good as one of this profile."""
    return all(about.at_least(mode.values[id], other.values[id]) for id, about in profile.moded.items())


def _is_no_dearer(one: Capability, other: Capability) -> bool:
    """Whether a capability gets every value that another one can have, at no more extra cost.

    Its current value is at least as good already.
    """
    about = one.about
    if not about.at_least(one.best, other.best):
        return False
    if one.cv != other.cv and _saves(other):
        return False  # what the other one has to pay for a value that this one has now is less than nothing
    if about.at_least(one.cv, other.best) or one.cost == other.cost:
        return True  # of the same cost it has paid the larger part
    if not (_is_straight(one.cost) and _is_straight(other.cost)):
        return False
    bends = _between(about, one.cv, other.best, (*one.cost.knots, *other.cost.knots))
    return all(_more(one, value) <= _more(other, value) for value in bends)


def _saves(capability: Capability) -> bool:
    """Whether a value better than the current one costs less than that does."""
    knots = _between(capability.about, capability.cv, capability.best, capability.cost.knots)
    return any(_more(capability, value) < 0 for value in knots)


def _more(capability: Capability, value: float) -> float:
    """What it costs more to operate at a value than at the current one."""
    return costs_at(capability.cost, value) - costs_at(capability.cost, capability.cv)


def _is_straight(cost: Cost) -> bool:
    """Whether it is made of straight lines between its knots; a formula has none, and says nothing of in between."""
    return bool(cost.knots) or isinstance(cost, Constant)


def _between(about: Property, worse: float, better: float, values: Iterable[float]) -> set[float]:
    """Both ends, and the values between them."""
    return {worse, better, *(each for each in values if about.at_least(each, worse) and about.at_least(better, each))}
