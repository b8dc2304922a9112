"""Matching: whether what is needed is there, could be had, or neither; by whom; and what falls short.

Satisfaction is upward closed: a point that is at least as good in everything meets whatever the other one meets. This
is matching against all profiles. :mod:`situ.quality.match.match_index` keeps the same states while profiles come and
go.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import IntEnum

import msgspec

from situ.quality.model.declarations import Capability, Expectation, Need, Profile, QualityProperty


class Satisfaction(IntEnum):
    """How an expectation stands; of several answers the highest counts."""

    UNSATISFIED = 0
    SATISFIABLE = 1
    SATISFIED = 2


# ── one property ──


def is_dominated(need: Need, capability: Capability) -> bool:
    """Good enough now."""
    return need.about.at_least(capability.cv, need.floor)


def capability_of(profile: Profile, id: str) -> Capability | None:
    """What a profile says of a property; of one in modes, the hull of their values, at no cost of its own."""
    if id not in profile.moded:
        return profile.capabilities.get(id)
    values = [mode.values[id] for mode in profile.modes]
    current = profile.mode_named(profile.mode).values[id]
    return Capability(about=profile.moded[id], lb=min(values), ub=max(values), cv=current)


# ── one expectation ──


class QualityMatch(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an expectation, with the ids of profiles that satisfy it and of those that could be adapted to it.

    Both are there whatever the state, in the order of ids.
    """

    state: Satisfaction
    now: tuple[str, ...] = ()
    able: tuple[str, ...] = ()


def check(expectation: Expectation, profile: Profile) -> Satisfaction:
    """How an expectation would stand with this profile alone, if one publisher is enough."""
    if not expectation.needs.keys() <= profile.properties:
        return Satisfaction.UNSATISFIED
    if expectation.is_met_by(profile.current()):
        return Satisfaction.SATISFIED
    if any(expectation.is_met_by(point) for point in profile.reach()):
        return Satisfaction.SATISFIABLE
    return Satisfaction.UNSATISFIED


def match(expectation: Expectation, profiles: Iterable[Profile]) -> QualityMatch:
    """The state with these profiles, which are all that are relevant; their order does not matter."""
    found: dict[Satisfaction, list[Profile]] = {state: [] for state in Satisfaction}
    for profile in profiles:
        found[check(expectation, profile)].append(profile)
    now, able = found[Satisfaction.SATISFIED], found[Satisfaction.SATISFIABLE]
    return QualityMatch(state=satisfaction_of(expectation, now, able), now=_ids(now), able=_ids(able))


def satisfaction_of(expectation: Expectation, now: Iterable[Profile], able: Iterable[Profile]) -> Satisfaction:
    """The state that follows from who satisfies it and who could: as many different publishers as it asks for."""
    satisfying = {profile.publisher for profile in now}
    if len(satisfying) >= expectation.publishers:
        return Satisfaction.SATISFIED
    if len(satisfying | {profile.publisher for profile in able}) >= expectation.publishers:
        return Satisfaction.SATISFIABLE
    return Satisfaction.UNSATISFIED


def _ids(profiles: Iterable[Profile]) -> tuple[str, ...]:
    return tuple(sorted(profile.id for profile in profiles))


# ── reasons ──


class Shortfall(msgspec.Struct, frozen=True, kw_only=True):
    """A property in which a profile falls short of a need."""

    about: QualityProperty
    current: float | None
    """Its value, alpha; None: the profile lacks the property."""
    reachable: float | None
    """The best value that can be had."""


def closest(expectation: Expectation, profiles: Iterable[Profile]) -> Profile | None:
    """Of the profiles that do not satisfy it the one that is nearest to doing so; None, if there is none."""
    short = (profile for profile in profiles if check(expectation, profile) is not Satisfaction.SATISFIED)
    return min(short, key=lambda profile: _distance(expectation, profile), default=None)


def reasons(expectation: Expectation, profiles: Iterable[Profile]) -> tuple[Shortfall, ...]:
    """What the closest profile falls short in, in the order of ids; without any profile, everything that is needed."""
    nearest = closest(expectation, profiles)
    if nearest is None:
        return tuple(
            Shortfall(about=need.about, current=None, reachable=None) for _, need in sorted(expectation.needs.items())
        )
    return shortfalls(expectation, nearest)


def shortfalls(expectation: Expectation, profile: Profile) -> tuple[Shortfall, ...]:
    """The properties in which a profile is not good enough now, in the order of their ids."""
    found = []
    for id, need in sorted(expectation.needs.items()):
        capability = capability_of(profile, id)
        if capability is None:
            found.append(Shortfall(about=need.about, current=None, reachable=None))
        elif not is_dominated(need, capability):
            found.append(Shortfall(about=need.about, current=capability.cv, reachable=capability.best))
    return tuple(found)


def relative_shortfall(need: Need, value: float) -> float:
    """How far a value is below the floor, on the property's own scale; 0 if it is not."""
    about = need.about
    if about.at_least(value, need.floor):
        return 0.0
    width = about.hi - about.lo
    if about.scale is None and not math.isfinite(width):
        # Where one of them has no number the share of the other is nothing.
        larger = max(abs(need.floor), abs(value))
        return abs(need.floor - value) / larger if math.isfinite(larger) else 1.0
    return abs(need.floor - value) / (about.scale or width)


def _distance(expectation: Expectation, profile: Profile) -> tuple[int, int, float, str]:
    short = shortfalls(expectation, profile)
    missing = sum(each.current is None for each in short)
    # In one order, whatever the order of needs: sums of doubles depend on it.
    sizes = (
        relative_shortfall(expectation.needs[each.about.id], each.current) for each in short if each.current is not None
    )
    return missing, len(short), math.fsum(sizes), profile.id
