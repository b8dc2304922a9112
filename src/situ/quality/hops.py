"""Hops: what a link between routers makes of profiles on their way, and of advice on the way back.

A link has one figure for each property that it affects: what it adds, by what it multiplies, or the best that gets
through. Every rule keeps the order of values, so whatever is dominated before a hop is dominated after it. Figures and
current values are rounded towards worse, so that small changes stay where they happen; never towards better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from situ.quality.cost import Constant, Cost, Points, Table
from situ.quality.problem import Target
from situ.quality.profile import Capability, Mode, Profile
from situ.quality.property import Property

Figures = Mapping[str, float]
"""Property → the figure of a link, as a value of the property; a share, where it multiplies."""
_DIGITS = 2
_EXACT = Context(prec=700)
"""More digits than two doubles are apart."""


def rounded(about: Property, value: float) -> float:
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


def forth(about: Property, figure: float, value: float) -> float:
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


def back(capability: Capability, figure: float, wanted: float) -> float | None:
    """The least demanding value of a capability of which a link makes what is wanted or better; None: it has none."""
    about = capability.about
    if not about.at_least(forth(about, figure, capability.best), wanted):
        return None
    found = _undone(about, figure, wanted)
    while not about.at_least(forth(about, figure, found), wanted):
        found = math.nextafter(found, capability.best)  # what was lost by rounding of doubles
    return about.worse(about.better(found, capability.worst), capability.best)


def composed(profile: Profile, figures: Figures) -> Profile:
    """A profile as it is behind a link."""
    known = {id: rounded(about, figures[id]) for id, about in _properties(profile) if id in figures}
    capabilities = {
        id: _moved(each, known[id]) if id in known else _calmed(each) for id, each in profile.capabilities.items()
    }
    return replace(
        profile, capabilities=capabilities, modes=tuple(_mode(profile, each, known) for each in profile.modes)
    )


def undo(profile: Profile, figures: Figures, target: Target) -> Target | None:
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
        return back(capability, rounded(about, figures[about.id]), wanted)
    return wanted if about.at_least(capability.best, wanted) else None


def _properties(profile: Profile) -> Iterator[tuple[str, Property]]:
    yield from ((id, each.about) for id, each in profile.capabilities.items())
    yield from profile.moded.items()


def _undone(about: Property, figure: float, wanted: float) -> float:
    match about.hop:
        case "add":
            return wanted - figure
        case "multiply":
            return wanted / figure if figure else about.worst
        case "same" | "worst":
            return wanted


def _mode(profile: Profile, mode: Mode, figures: Figures) -> Mode:
    values = {
        id: forth(profile.moded[id], figures[id], value) if id in figures else value
        for id, value in mode.values.items()
    }
    return replace(mode, values=values)


def _moved(capability: Capability, figure: float) -> Capability:
    lb, ub, cv = (forth(capability.about, figure, value) for value in (capability.lb, capability.ub, capability.cv))
    return _calmed(replace(capability, lb=lb, ub=ub, cv=cv, cost=_cost(capability, figure, lb, ub)))


def _calmed(capability: Capability) -> Capability:
    """With a rounded current value; if that is worse than the worst so far, there is a new worst."""
    cv = rounded(capability.about, capability.cv)
    return replace(capability, lb=min(capability.lb, cv), ub=max(capability.ub, cv), cv=cv)


def _cost(capability: Capability, figure: float, lb: float, ub: float) -> Cost:
    """What it costs to have a value behind the link."""
    about, cost = capability.about, capability.cost
    if isinstance(cost, Constant) or about.hop == "same":
        return cost
    if lb == ub:
        return Constant(cost.at(capability.cv))
    if cost.knots and about.hop == "worst":
        return _cut(capability, lb, ub)
    if cost.knots:
        # Where the ends go, so that they stay ends.
        return Points(tuple({forth(about, figure, value): cost.at(value) for value in cost.knots}.items()))
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
    return Table(in_order) if about.levels else Points(in_order)
