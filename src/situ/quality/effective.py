"""Effective profiles: what matching sees of a publisher, which is not always what it declares.

Measured values take the place of declared ones, and ranges are widened to hold them. What cannot be had is not in
reach: a property that no action improves, a value that the publisher said or showed it cannot do, and anything at all
of a publisher that does not follow advice. The result is a profile like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from situ.quality.profile import Capability, Mode, Profile
from situ.quality.property import Property


def _nothing() -> Mapping[str, float]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What is known of a profile besides what it declares."""

    measured: Mapping[str, float] = field(default_factory=_nothing)
    """Property → the value that holds instead of the declared one."""
    added: Mapping[str, Property] = field(default_factory=lambda: MappingProxyType({}))
    """Measured properties that no publisher declares, as the middleware alone determines them."""
    limits: Mapping[str, float] = field(default_factory=_nothing)
    """Property → the best that can be had after all."""
    barred: frozenset[str] = frozenset()
    """Modes that cannot be had after all."""
    frozen: bool = False
    """Nothing else than what is can be had."""


def effective(profile: Profile, correction: Correction, improvable: Callable[[Property], bool]) -> Profile:
    """A profile as it is to be matched. ``improvable``: whether some action gets better values of a property."""
    capabilities = {
        id: _capability(id, each, correction, improvable(each.about)) for id, each in profile.capabilities.items()
    }
    for id, about in correction.added.items():
        if id not in profile.properties and id in correction.measured:
            value = correction.measured[id]
            capabilities[id] = Capability(about=about, lb=value, ub=value, cv=value)
    modes = tuple(_mode(each, profile, correction) for each in profile.modes if _is_open(each, profile, correction))
    if capabilities == profile.capabilities and modes == profile.modes:
        return profile
    return replace(profile, capabilities=MappingProxyType(capabilities), modes=modes)


def _capability(id: str, capability: Capability, correction: Correction, improvable: bool) -> Capability:
    about = capability.about
    cv = correction.measured.get(id, capability.cv)
    best = about.better(capability.best, cv)
    if id in correction.limits:
        best = about.better(about.worse(best, correction.limits[id]), cv)
    if correction.frozen or not improvable:
        best = cv
    worst = about.worse(capability.worst, cv)
    lb, ub = (worst, best) if about.maximise else (best, worst)
    return replace(capability, lb=lb, ub=ub, cv=cv)


def _is_open(mode: Mode, profile: Profile, correction: Correction) -> bool:
    return mode.name == profile.mode or not (correction.frozen or mode.name in correction.barred)


def _mode(mode: Mode, profile: Profile, correction: Correction) -> Mode:
    if mode.name != profile.mode or not mode.values.keys() & correction.measured.keys():
        return mode
    values = {id: correction.measured.get(id, value) for id, value in mode.values.items()}
    return replace(mode, values=MappingProxyType(values))
