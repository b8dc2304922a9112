"""What a link between routers does to profiles and advice, and which profiles are worth offering to another router.

`profile_after_link` and `target_before_link` are the two ways over a link; `frontier` and `truncated` choose offers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

import numpy as np

from situ.lang.records import replace
from situ.quality.match.point_matrix import PropertyColumns, at_least
from situ.quality.match.pools import Skyline, dominates
from situ.quality.model.allocation_problem import NO_ACTIONS, Target, cheapest, costs_at
from situ.quality.model.costs import ConstantCost, Cost, LevelCost, PiecewiseCost
from situ.quality.model.declarations import Capability, Expectation, Mode, Profile, QualityProperty

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Links. A link has one figure for each property that it affects: what it adds, by what it multiplies, or the best that
# gets through. Every rule keeps the order of values, so whatever is dominated before a hop is dominated after it.
# Figures and current values are rounded towards worse, so that small changes stay where they happen; never towards
# better.

Figures = Mapping[str, float]
"""Property → the figure of a link, as a value of the property; a share, where it multiplies."""
_DIGITS = 2
_EXACT = Context(prec=700)
"""More digits than two doubles are apart."""


def rounded(about: QualityProperty, value: float) -> float:
    """A value as it travels: no better, a multiple of the quantum or, without one, of two digits. Levels stay."""
    if about.levels or about.quantum == 0 or not math.isfinite(value):
        return value
    direction = ROUND_FLOOR if about.maximise else ROUND_CEILING
    # Decimals as they are written: 0.12 is twelve hundredths, although the nearest double is a little less.
    exact = Decimal(repr(value))
    if about.quantum is None:
        return float(Context(prec=_DIGITS, rounding=direction).plus(exact))
    step = Decimal(repr(about.quantum))
    return float(_EXACT.multiply(_EXACT.divide(exact, step).to_integral_value(direction), step))


def value_after_link(about: QualityProperty, figure: float, value: float) -> float:
    """What a link makes of a value."""
    match about.hop:
        case "same":
            return value
        case "add":
            return value + figure
        case "multiply":
            return value * figure if figure else 0.0
        case "worst":
            return about.worse(value, figure)


def value_before_link(capability: Capability, figure: float, wanted: float) -> float | None:
    """The least demanding value of a capability of which a link makes what is wanted or better; None: it has none."""
    about = capability.about
    if not about.at_least(value_after_link(about, figure, capability.best), wanted):
        return None
    found = _undone(about, figure, wanted)
    while not about.at_least(value_after_link(about, figure, found), wanted):
        found = math.nextafter(found, capability.best)  # what was lost by rounding of doubles
    return about.worse(about.better(found, capability.worst), capability.best)


def profile_after_link(profile: Profile, figures: Figures) -> Profile:
    """A profile as it is behind a link."""
    known = {id: rounded(about, figures[id]) for id, about in _properties(profile) if id in figures}
    capabilities = {
        id: _moved(each, known[id]) if id in known else _calmed(each) for id, each in profile.capabilities.items()
    }
    return replace(
        profile, capabilities=capabilities, modes=tuple(_mode(profile, each, known) for each in profile.modes)
    )


def target_before_link(profile: Profile, figures: Figures, target: Target) -> Target | None:
    """What is wanted behind a link as it has to be before it; None, if some of it cannot be had."""
    if target.mode and target.mode not in {each.name for each in profile.modes}:
        return None
    found: dict[str, float] = {}
    for id, wanted in target.values.items():
        value = _before(profile.capabilities[id], figures, wanted) if id in profile.capabilities else None
        if value is None:
            return None
        found[id] = value
    return replace(target, values=found)


def _before(capability: Capability, figures: Figures, wanted: float) -> float | None:
    about = capability.about
    if about.id in figures:
        return value_before_link(capability, rounded(about, figures[about.id]), wanted)
    return wanted if about.at_least(capability.best, wanted) else None


def _properties(profile: Profile) -> Iterator[tuple[str, QualityProperty]]:
    yield from ((id, each.about) for id, each in profile.capabilities.items())
    yield from profile.moded.items()


def _undone(about: QualityProperty, figure: float, wanted: float) -> float:
    match about.hop:
        case "add":
            return wanted - figure
        case "multiply":
            return wanted / figure if figure else about.worst
        case "same" | "worst":
            return wanted


def _mode(profile: Profile, mode: Mode, figures: Figures) -> Mode:
    values = {
        id: value_after_link(profile.moded[id], figures[id], value) if id in figures else value
        for id, value in mode.values.items()
    }
    return replace(mode, values=values)


def _moved(capability: Capability, figure: float) -> Capability:
    lb, ub, cv = (
        value_after_link(capability.about, figure, value) for value in (capability.lb, capability.ub, capability.cv)
    )
    return _calmed(replace(capability, lb=lb, ub=ub, cv=cv, cost=_cost(capability, figure, lb, ub)))


def _calmed(capability: Capability) -> Capability:
    """With a rounded current value; if that is worse than the worst so far, there is a new worst."""
    cv = rounded(capability.about, capability.cv)
    return replace(capability, lb=min(capability.lb, cv), ub=max(capability.ub, cv), cv=cv)


def _cost(capability: Capability, figure: float, lb: float, ub: float) -> Cost:
    """What it costs to have a value behind the link."""
    about, cost = capability.about, capability.cost
    if isinstance(cost, ConstantCost) or about.hop == "same":
        return cost
    if lb == ub:
        return ConstantCost(cost.at(capability.cv))
    if cost.knots and about.hop == "worst":
        return _cut(capability, lb, ub)
    if cost.knots:
        # Where the ends go, so that they stay ends.
        return PiecewiseCost(
            tuple({value_after_link(about, figure, value): cost.at(value) for value in cost.knots}.items())
        )
    match about.hop:
        case "add":
            return cost.moved(1.0, -figure)
        case "multiply":
            return cost.moved(1.0 / figure, 0.0)
    return cost


def _cut(capability: Capability, lb: float, ub: float) -> Cost:
    """A cost up to the best that gets through: that costs as little as it, or anything better, does."""
    about, cost = capability.about, capability.cost
    best = about.better(lb, ub)
    inside = {lb, ub, *(each for each in (*cost.knots, capability.cv) if lb <= each <= ub)}
    points = [(value, cost.at(value)) for value in sorted(inside, key=about.goodness)]
    beyond = [each for each in cost.knots if about.at_least(each, best) and about.at_least(capability.best, each)]
    least = min(cost.at(value) for value in (best, *beyond))
    (before, low), (_, high) = points[-2:]
    points[-1:] = [(best, least)]
    if low < least < high and not about.levels:
        points[-1:] = [(before + (best - before) * (least - low) / (high - low), least), (best, least)]
    in_order = tuple(sorted(dict(points).items()))
    return LevelCost(in_order) if about.levels else PiecewiseCost(in_order)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Offers. Skylines decide states, not choices: a profile that others dominate may be the cheaper one. An offer stays
# unless some other is at least as good now, at least as good at its best, and gets everything in between at no more
# extra cost. Costs are compared where they bend if they are straight in between, or if they are the same formula;
# otherwise both stay.

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
    columns = PropertyColumns()
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
    columns = PropertyColumns()
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
    return bool(cost.knots) or isinstance(cost, ConstantCost)


def _between(about: QualityProperty, worse: float, better: float, values: Iterable[float]) -> set[float]:
    """Both ends, and the values between them."""
    return {worse, better, *(each for each in values if about.at_least(each, worse) and about.at_least(better, each))}
