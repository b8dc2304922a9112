"""Explanations of quality as data: how an expectation stands with every profile, what would change that, and why not.

Values are as declarations have them, levels by name. Owns the JSON form; words are
:mod:`situ.quality.explanation.text`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from situ.quality.model.allocation_problem import Why

Json = dict[str, Any]
Value = float | str
Verdict = Literal["ok", "short", "out of reach", "missing"]
"""Good enough; not, but it could be; not, and it cannot be; the profile does not have the property."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedExplanation:
    """One need. An end of it that has no number is None."""

    property: str
    unit: str
    lb: Value | None
    ub: Value | None
    floor: Value | None
    maximise: bool

    def as_json(self) -> Json:
        return {"property": self.property, "unit": self.unit, "lb": self.lb, "ub": self.ub, "floor": self.floor}


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedVerdict:
    """One need against one profile."""

    property: str
    verdict: Verdict
    declared: Value | None = None
    measured: Value | None = None
    effective: Value | None = None
    short_by: float | None = None
    """Of levels: how many are missing."""
    best: Value | None = None

    def as_json(self) -> Json:
        return {
            "property": self.property,
            "verdict": self.verdict,
            "declared": self.declared,
            "measured": self.measured,
            "effective": self.effective,
            "short_by": self.short_by,
            "best": self.best,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileAdaptation:
    """What would be changed of a profile, and what that costs more."""

    profile: str
    mode: str = ""
    values: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))
    """Of all properties that then have another value, those of the mode among them."""
    cost: float | None = None

    def as_json(self) -> Json:
        return {"profile": self.profile, "mode": self.mode, "values": dict(self.values), "cost": self.cost}


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateExplanation:
    """A profile, as an expectation sees it."""

    name: str
    mode: str
    needs: tuple[NeedVerdict, ...]
    satisfies: bool
    change: ProfileAdaptation | None = None
    """The cheapest after which it would meet the expectation."""

    def as_json(self) -> Json:
        return {
            "profile": self.name,
            "mode": self.mode,
            "needs": [each.as_json() for each in self.needs],
            "satisfies": self.satisfies,
            "change": None if self.change is None else self.change.as_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedRelaxation:
    """The smallest step by which one need would have to be less for the expectation to be satisfied."""

    property: str
    to: Value
    maximise: bool
    change: ProfileAdaptation
    """What has to be changed of the profile that would satisfy it then; at no cost: nothing."""

    def as_json(self) -> Json:
        return {"property": self.property, "to": self.to, "profile": self.change.profile, "cost": self.change.cost}


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalExplanation:
    """Why something that could be done is not done, by which rule, and what would have tipped it."""

    strategy: str
    why: Why
    change: ProfileAdaptation
    alternative: str = ""
    alternative_by: tuple[str, ...] = ()
    exact: bool = True
    tipped: str = ""

    def as_json(self) -> Json:
        return {
            "strategy": self.strategy,
            "why": self.why,
            "change": self.change.as_json(),
            "alternative": self.alternative or None,
            "alternative_by": list(self.alternative_by),
            "exact": self.exact,
            "would_be_adopted_if": self.tipped or None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationExplanation:
    """All about one expectation."""

    expectation: str
    subscription: str
    utility: float
    state: str
    """``satisfied``, ``satisfiable``, ``unsatisfied``, ``suspended`` or ``away``."""
    why: str = ""
    by: tuple[str, ...] = ()
    """Profiles that satisfy it."""
    in_force: str = ""
    """The alternative that is."""
    needs: tuple[NeedExplanation, ...] = ()
    profiles: tuple[CandidateExplanation, ...] = ()
    changes: tuple[ProfileAdaptation, ...] = ()
    """Each of which would satisfy it, cheapest first."""
    relaxations: tuple[NeedRelaxation, ...] = ()
    adapting: tuple[ProfileAdaptation, ...] = ()
    """What was advised, or is going to be, for it."""
    declined: RefusalExplanation | None = None
    since: str = ""
    after: str = ""
    """What happened before it was decided so."""
    shape: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    drops: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Reason → events that its shape dropped."""
    absent: int = 0
    """Profiles that are declared and would count, if their publishers were connected."""
    absent_by: tuple[str, ...] = ()
    """Some of these publishers, if whoever asked may know who publishes."""

    def as_json(self) -> Json:
        return {
            "expectation": self.expectation,
            "subscription": self.subscription,
            "utility": self.utility,
            "state": self.state,
            "why": self.why or None,
            "by": list(self.by),
            "in_force": self.in_force or None,
            "needs": [each.as_json() for each in self.needs],
            "profiles": [each.as_json() for each in self.profiles],
            "changes": [each.as_json() for each in self.changes],
            "relaxations": [each.as_json() for each in self.relaxations],
            "adapting": [each.as_json() for each in self.adapting],
            "declined": None if self.declined is None else self.declined.as_json(),
            "since": self.since or None,
            "after": self.after or None,
            "shape": dict(self.shape),
            "drops": dict(self.drops),
            "absent": self.absent,
            "absent_by": list(self.absent_by),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimExplanation:
    """What one expectation pays for at a publisher."""

    expectation: str
    subscription: str
    utility: float
    change: ProfileAdaptation

    def as_json(self) -> Json:
        return {
            "expectation": self.expectation,
            "subscription": self.subscription,
            "utility": self.utility,
            "change": self.change.as_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileExplanation:
    """All about one profile of a publisher."""

    profile: str
    mode: str
    values: Mapping[str, Value]
    baseline: Mapping[str, Value]
    """What it did before anybody advised it, of what was claimed."""
    baseline_mode: str = ""
    claims: tuple[ClaimExplanation, ...] = ()
    advice: Json | None = None
    """What is open: id, status, since, values, mode."""
    held_back: str = ""
    """Why nothing is expected of it."""
    violated: tuple[str, ...] = ()

    def as_json(self) -> Json:
        return {
            "profile": self.profile,
            "mode": self.mode,
            "values": dict(self.values),
            "baseline": dict(self.baseline),
            "baseline_mode": self.baseline_mode,
            "claims": [each.as_json() for each in self.claims],
            "advice": self.advice,
            "held_back": self.held_back or None,
            "violated": list(self.violated),
        }
