"""Explanations of quality as data: how an expectation stands with every profile, what would change that, and why not.

Values are as declarations have them, levels by name. Words are :mod:`situ.quality.explanation.text`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

import msgspec

from situ.lang.json_form import TEXT_ONLY, Explanation
from situ.quality.model.allocation_problem import Why

Value = float | str
Verdict = Literal["ok", "short", "out of reach", "missing"]
"""Good enough; not, but it could be; not, and it cannot be; the profile does not have the property."""
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class NeedExplanation(Explanation, frozen=True, kw_only=True):
    """One need. An end of it that has no number is null."""

    property: str
    unit: str
    lb: Value | None
    ub: Value | None
    floor: Value | None
    maximise: Annotated[bool, TEXT_ONLY]


class NeedVerdict(Explanation, frozen=True, kw_only=True):
    """One need against one profile."""

    property: str
    verdict: Verdict
    declared: Value | None = None
    measured: Value | None = None
    effective: Value | None = None
    short_by: float | None = None
    """Of levels: how many are missing."""
    best: Value | None = None


class ProfileAdaptation(Explanation, frozen=True, kw_only=True):
    """What would be changed of a profile, and what that costs more."""

    profile: str
    mode: str = ""
    values: Mapping[str, Value] = _NOTHING
    """Of all properties that then have another value, those of the mode among them."""
    cost: float | None = None


class CandidateExplanation(Explanation, frozen=True, kw_only=True):
    """A profile, as an expectation sees it."""

    name: str = msgspec.field(name="profile")
    mode: str
    needs: tuple[NeedVerdict, ...]
    satisfies: bool
    change: ProfileAdaptation | None = None
    """The cheapest after which it would meet the expectation."""


class NeedRelaxation(Explanation, frozen=True, kw_only=True):
    """The smallest step by which one need would have to be less for the expectation to be satisfied."""

    property: str
    to: Value
    profile: str
    """The one that would satisfy it then."""
    cost: float | None
    """What its change costs more; 0: nothing has to be changed."""
    maximise: Annotated[bool, TEXT_ONLY]
    change: Annotated[ProfileAdaptation, TEXT_ONLY]


class RefusalExplanation(Explanation, frozen=True, kw_only=True):
    """Why something that could be done is not done, by which rule, and what would have tipped it."""

    strategy: str
    why: Why
    change: ProfileAdaptation
    alternative: str | None = None
    """Another expectation of the subscription that is satisfied."""
    alternative_by: tuple[str, ...] = ()
    exact: bool = True
    """False: there were too many plans to go through."""
    tipped: str | None = msgspec.field(default=None, name="would_be_adopted_if")


class ExpectationExplanation(Explanation, frozen=True, kw_only=True):
    """All about one expectation."""

    expectation: str
    subscription: str
    utility: float
    state: str
    """`satisfied`, `satisfiable`, `unsatisfied`, `suspended` or `away`."""
    why: str | None = None
    by: tuple[str, ...] = ()
    """Profiles that satisfy it."""
    in_force: str | None = None
    """The alternative that is."""
    needs: tuple[NeedExplanation, ...] = ()
    profiles: tuple[CandidateExplanation, ...] = ()
    changes: tuple[ProfileAdaptation, ...] = ()
    """Each of which would satisfy it, cheapest first."""
    relaxations: tuple[NeedRelaxation, ...] = ()
    adapting: tuple[ProfileAdaptation, ...] = ()
    """What was advised, or is going to be, for it."""
    declined: RefusalExplanation | None = None
    since: str | None = None
    """The time of day, in UTC."""
    after: str | None = None
    """What happened before it was decided so."""
    shape: Mapping[str, Any] = _NOTHING
    drops: Mapping[str, int] = _NOTHING
    """Reason → events that its shape dropped."""
    absent: int = 0
    """Profiles that are declared and would count, if their publishers were connected."""
    absent_by: tuple[str, ...] = ()
    """Some of these publishers, if whoever asked may know who publishes."""


class ClaimExplanation(Explanation, frozen=True, kw_only=True):
    """What one expectation pays for at a publisher."""

    expectation: str
    subscription: str
    utility: float
    change: ProfileAdaptation


class AdviceExplanation(Explanation, frozen=True, kw_only=True):
    """Advice that is open: the publisher has not done it yet."""

    id: str
    status: str
    since: str
    """The time of day, in UTC."""
    values: Mapping[str, Value]
    mode: str


class ProfileExplanation(Explanation, frozen=True, kw_only=True):
    """All about one profile of a publisher."""

    profile: str
    mode: str
    values: Mapping[str, Value]
    baseline: Mapping[str, Value]
    """What it did before anybody advised it, of what was claimed."""
    baseline_mode: str = ""
    claims: tuple[ClaimExplanation, ...] = ()
    advice: AdviceExplanation | None = None
    held_back: str | None = None
    """Why nothing is expected of it."""
    violated: tuple[str, ...] = ()


class PublisherExplanation(Explanation, frozen=True, kw_only=True):
    """All profiles of a publisher, what is claimed of them, and what it is advised."""

    profiles: tuple[ProfileExplanation, ...]
