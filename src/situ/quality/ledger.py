"""The ledger of a profile: what it did before anybody advised it, and who claims what of it since.

The target is the best of the baseline and of all claims: whoever wants less is thinned. In modes it is the cheapest
mode in which no claimant loses what it claimed. When claims go, the target falls; nothing else is remembered of them,
so with the last claim it is the baseline again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from situ.quality.problem import STAY, Target, point_at
from situ.quality.profile import Profile
from situ.quality.property import Point

Meets = Callable[[str, Point], bool]
"""Whether an expectation, by its id, is met by a point."""


@dataclass(slots=True)
class Ledger:
    """Of one profile."""

    baseline: dict[str, float] = field(default_factory=dict)
    """Property → its value before the first advice; of those that were claimed."""
    mode: str = ""
    """The mode before the first advice; empty: none was claimed."""
    claims: dict[str, Target] = field(default_factory=dict)
    """Expectation → what it needs. What a plan does for nobody, since it is cheaper so, nobody claims and nobody does:
    with the last claim a publisher is left alone."""
    _best: dict[str, float] | None = field(default=None, compare=False, repr=False)
    """Property → the best of all claims, since they last changed."""

    def __bool__(self) -> bool:
        return bool(self.baseline or self.mode or self.claims)

    def claim(self, profile: Profile, expectation: str, target: Target) -> None:
        """An expectation needs this of a profile."""
        self.remember(profile, target)
        self.claims[expectation] = target
        self._best = None

    def remember(self, profile: Profile, target: Target) -> None:
        """What a profile does before it is at a target is the baseline, unless it was at another before."""
        self._best = None
        for id in target.values:
            self.baseline.setdefault(id, profile.capabilities[id].cv)
        if target.mode and not self.mode:
            self.mode = profile.mode

    def follow(self, profile: Profile, done: Target) -> None:
        """A publisher is at a target now. Who did less than it said may have been asked for less than it said."""
        self.remember(profile, done)
        for id, value in done.values.items():
            self.baseline[id] = profile.capabilities[id].about.worse(self.baseline[id], value)

    def release(self, expectation: str) -> bool:
        """Whether there was a claim to take back."""
        self._best = None
        return self.claims.pop(expectation, None) is not None

    def rebase(self, before: Profile, after: Profile) -> None:
        """A publisher changed values by itself: what it does now is what it would do without advice."""
        self._best = None
        for id in list(self.baseline):
            if id not in after.capabilities:
                del self.baseline[id]
            elif id not in before.capabilities or before.capabilities[id].cv != after.capabilities[id].cv:
                self.baseline[id] = after.capabilities[id].cv
        names = {each.name for each in after.modes}
        if self.mode and (before.mode != after.mode or self.mode not in names):
            self.mode = after.mode if after.modes else ""
        self.claims = {id: kept for id, each in self.claims.items() if (kept := _still(each, after, names))}

    def replace(self, baseline: dict[str, float], claims: dict[str, Target]) -> None:
        """The same in other numbers; of claims of nothing nothing is left."""
        self.baseline, self._best = baseline, None
        self.claims = {id: each for id, each in claims.items() if each}

    def target(self, profile: Profile, meets: Meets) -> Target:
        """What a profile is to do, in all that was ever claimed; nothing, where it has no such property any more."""
        claimed = self._claimed(profile)
        values = {
            id: profile.capabilities[id].about.better(claimed.get(id, value), value)
            for id, value in self.baseline.items()
            if id in profile.capabilities
        }
        return Target(values=MappingProxyType(values), mode=self._mode(profile, meets))

    def claimed(self, profile: Profile, meets: Meets) -> Target:
        """What somebody needs of it: the baseline is nothing that anybody asks for."""
        mode = self._mode(profile, meets) if any(each.mode for each in self.claims.values()) else ""
        return Target(values=MappingProxyType(self._claimed(profile)), mode=mode)

    def _claimed(self, profile: Profile) -> dict[str, float]:
        if self._best is None:
            self._best = {}
            for each in self.claims.values():
                for id, value in each.values.items():
                    if id in profile.capabilities:
                        self._best[id] = profile.capabilities[id].about.better(self._best.get(id, value), value)
        return self._best

    def _mode(self, profile: Profile, meets: Meets) -> str:
        if not self.mode:
            return ""
        claimants = [id for id, each in self.claims.items() if each.mode]
        names = [each.name for each in sorted(profile.modes, key=lambda each: each.cost)]
        # The baseline first: where nobody loses anything by it, nothing is cheaper than leaving the publisher alone.
        for name in (self.mode, *names):
            if name in names and all(
                self.claims[id].mode == name
                or meets(id, point_at(profile, Target(values=self.claims[id].values, mode=name)))
                for id in claimants
            ):
                return name
        return profile.mode

    def settle(self, profile: Profile) -> None:
        """Forget baselines that hold again and that nobody claims."""
        back = [
            id
            for id, value in self.baseline.items()
            if id not in profile.capabilities or profile.capabilities[id].cv == value
        ]
        for id in back:
            if not any(id in each.values for each in self.claims.values()):
                del self.baseline[id]
                self._best = None
        if self.mode == profile.mode and not any(each.mode for each in self.claims.values()):
            self.mode = ""

    def as_json(self) -> dict[str, Any]:
        claims = {id: target_as_json(each) for id, each in self.claims.items()}
        return {"baseline": dict(self.baseline), "mode": self.mode, "claims": claims}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Ledger:
        claims = {id: target_from_json(each) for id, each in value["claims"].items()}
        return cls(baseline=dict(value["baseline"]), mode=value["mode"], claims=claims)


def _still(target: Target, profile: Profile, modes: set[str]) -> Target:
    """What is left of a claim on a profile that is another now."""
    values = {id: value for id, value in target.values.items() if id in profile.capabilities}
    return Target(values=MappingProxyType(values), mode=target.mode if target.mode in modes else "")


def improves(target: Target, profile: Profile) -> Target:
    """The part of a target that is better than what a profile does; another mode counts as that."""
    values = {
        id: value
        for id, value in target.values.items()
        if not profile.capabilities[id].about.at_least(profile.capabilities[id].cv, value)
    }
    mode = target.mode if target.mode and target.mode != profile.mode else ""
    return Target(values=MappingProxyType(values), mode=mode) if values or mode else STAY


def lowers(target: Target, profile: Profile) -> Target:
    """The part of a target that is worse than what a profile does; another mode counts as that, too."""
    values = {
        id: value
        for id, value in target.values.items()
        if not profile.capabilities[id].about.at_least(value, profile.capabilities[id].cv)
    }
    mode = target.mode if target.mode and target.mode != profile.mode else ""
    return Target(values=MappingProxyType(values), mode=mode) if values or mode else STAY


def target_as_json(target: Target) -> dict[str, Any]:
    return {"values": dict(target.values), "mode": target.mode}


def target_from_json(value: Mapping[str, Any]) -> Target:
    return Target(values=MappingProxyType(dict(value["values"])), mode=value["mode"])
