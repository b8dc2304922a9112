"""What it costs to move a profile, and the cheapest value that is good enough.

Sums are exact, so it never matters in which order costs are added, nor whether a saving and an expense that cancel out
leave a speck behind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from situ.quality.actions import Actions
from situ.quality.cost import UNAFFORDABLE, AtLeast, Constant, Cost, Points
from situ.quality.problem import STAY, Target
from situ.quality.profile import Capability, Profile


def cost_of(profile: Profile, target: Target, actions: Actions, before: Target = STAY) -> float:
    """What a target costs more than another one: operating there, and getting there from what is now."""
    return math.fsum(terms_between(profile, target, actions, before))


def terms_between(profile: Profile, target: Target, actions: Actions, before: Target) -> list[float]:
    """The summands of that. What is the same in both would only add up to nothing."""
    found = _terms(profile, target, actions, before)
    return [*found, *(-each for each in _terms(profile, before, actions, target))] if before else found


def _terms(profile: Profile, target: Target, actions: Actions, other: Target) -> list[float]:
    """The summands of what a target costs more than staying, where it is not the same as another one."""
    found: list[float] = []
    for id, value in target.values.items():
        if value != other.values.get(id):
            found += terms_of_value(profile.capabilities[id], value, actions)
    if target.mode and target.mode != other.mode:
        found += terms_of_mode(profile, target.mode, actions)
    return found


def terms_of_value(capability: Capability, value: float, actions: Actions) -> tuple[float, ...]:
    return (
        costs_at(capability.cost, value),
        -costs_at(capability.cost, capability.cv),
        actions.cost_of_adapting(capability.about, capability.cv, value),
    )


def terms_of_mode(profile: Profile, mode: str, actions: Actions) -> tuple[float, ...]:
    before, after = profile.mode_named(profile.mode), profile.mode_named(mode)
    moves = (actions.cost_of_adapting(each, before.values[id], after.values[id]) for id, each in profile.moded.items())
    return (after.cost, -before.cost, *moves)


def terms_from(
    baseline: Mapping[str, float], mode: str, profile: Profile, target: Target, actions: Actions
) -> Iterator[float]:
    """The summands of what a target costs more than what a profile did before anybody advised it: ``baseline`` by
    property, and ``mode``. What is no better than that is nobody's advice, and costs nothing here."""
    for id, before in baseline.items():
        capability = profile.capabilities.get(id)
        if capability is None:
            continue
        value = target.values.get(id, capability.cv)
        if not capability.about.at_least(before, value):
            yield costs_at(capability.cost, value)
            yield -costs_at(capability.cost, before)
            yield actions.cost_of_adapting(capability.about, before, value)
    at = target.mode or profile.mode
    if mode and at != mode and any(each.name == mode for each in profile.modes):
        yield from terms_of_mode(replace(profile, mode=mode), at, actions)


def without_savings(profile: Profile) -> Profile:
    """The same profile, where nothing costs less than what it does now."""
    capabilities = {id: each if _never_falls(each) else _no_cheaper(each) for id, each in profile.capabilities.items()}
    modes = profile.modes
    if modes:
        now = profile.mode_named(profile.mode).cost
        modes = tuple(replace(each, cost=max(each.cost, now)) for each in modes)
    return replace(profile, capabilities=MappingProxyType(capabilities), modes=modes)


def _no_cheaper(capability: Capability) -> Capability:
    return replace(capability, cost=AtLeast(capability.cost, capability.cost.at(capability.cv)))


def cheapest(capability: Capability, floor: float, actions: Actions) -> float:
    """The cheapest of a floor and of the knots beyond it that can be had; of equally cheap ones that nearest to it."""
    if not actions.declared and _never_falls(capability):
        return floor
    about, best = capability.about, capability.best
    knots = (*capability.cost.knots, *actions.knots_of_adapting(about))
    beyond = {each for each in knots if about.at_least(each, floor) and about.at_least(best, each)}
    if not beyond:
        return floor
    values = sorted({floor, *beyond}, key=about.goodness)
    return min(values, key=lambda value: math.fsum(terms_of_value(capability, value, actions)))


def slope(capability: Capability) -> tuple[float, float]:
    """By how much its cost rises with each unit of goodness, NaN if not evenly; and the highest cost, if it does."""
    cost = capability.cost
    if isinstance(cost, Constant):
        return 0.0, 1.0
    if isinstance(cost, Points) and len(cost.points) == 2:
        (left, before), (right, after) = cost.points
        gained = after - before if capability.about.maximise else before - after
        rise = gained / ((right - left) or math.nan)
        if gained >= 0 and rise < math.inf and left <= capability.lb and capability.ub <= right:
            return rise, max(1.0, before, after)
    return math.nan, 1.0


def _never_falls(capability: Capability) -> bool:
    """Whether nothing better is cheaper, as far as that is seen at a glance."""
    cost = capability.cost
    if not isinstance(cost, Points) or len(cost.points) != 2:
        return isinstance(cost, Constant)
    (_, left), (_, right) = cost.points
    return left <= right if capability.about.maximise else left >= right


def costs_at(cost: Cost, value: float) -> float:
    """A cost as a number that can be added, also where a formula makes none of it."""
    found = cost.at(value)
    return found if abs(found) <= UNAFFORDABLE else UNAFFORDABLE
