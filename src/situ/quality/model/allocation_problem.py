"""What is to be decided, and what a decision is: problems, targets, plans.

A problem is who expects what, who could do what, and under which rule it is decided. A plan says to what each profile
is to be moved, for whom, and why others are not served. Strategies make plans of problems; they know nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from situ.quality.actions import NO_ACTIONS, Actions
from situ.quality.declared import Strategy
from situ.quality.expectation import Expectation
from situ.quality.profile import Profile
from situ.quality.property import Point

if TYPE_CHECKING:
    from situ.quality.matching import State
    from situ.quality.standing import Standing


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """To what a profile is moved: better values of free properties, and another mode. What is not named stays."""

    values: Mapping[str, float] = field(default_factory=_nothing)
    """By the ids of properties."""
    mode: str = ""

    def __bool__(self) -> bool:
        return bool(self.values or self.mode)


STAY = Target()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one expectation needs of one profile that it does not do by itself."""

    expectation: str
    profile: str
    target: Target


Why = Literal["alternative", "harm", "budget", "worth", "conflict"]
"""Another alternative of the subscription is satisfied and this one costs more; others would lose what they have; the
budget; it costs more than it is worth; something worth more, or more others, needs the publisher to be different."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why an expectation that could be satisfied is not going to be, and what it would have cost with whom."""

    why: Why
    profile: str = ""
    target: Target = STAY
    extra: float | None = None
    exact: bool = True
    """Whether the search that came to this was exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is going to be done."""

    targets: Mapping[str, Target] = field(default_factory=_nothing)
    """Of profiles that are moved, by their ids; all others stay as they are."""
    cost: float = 0.0
    """More than what is; may be negative."""
    adopted: Mapping[str, tuple[Claim, ...]] = field(default_factory=_nothing)
    """Of expectations that are not satisfied yet and are by the plan, by their ids."""
    declined: Mapping[str, Refusal] = field(default_factory=_nothing)
    """Of expectations that could be satisfied and are not by the plan, by their ids."""
    for_nobody: Mapping[str, Target] = field(default_factory=_nothing)
    """What is done to profiles that no expectation needs, by their ids: it is cheaper so."""
    exact: bool = True
    """Whether no plan is better by the rule of the strategy; the greedy search knows no more than its bound."""
    bound: float | None = None
    """At least this part of what the best plan achieves; None: nothing is claimed, or it is exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Who expects what, who could do what, and by which rule it is decided."""

    expectations: tuple[Expectation, ...]
    """Those that are active, in the order of their registration."""
    profiles: Mapping[str, Profile]
    """Effective ones, by their ids."""
    pools: Mapping[str, str]
    """Profile → its pool. One without is relevant to nobody."""
    relevant: Mapping[str, frozenset[str]]
    """Subscription → pools whose profiles are relevant to it."""
    actions: Actions = NO_ACTIONS
    strategy: Strategy = field(default_factory=Strategy)
    start: Mapping[str, Target] = field(default_factory=_nothing)
    """What was decided before and is to stay so, by profile; its cost is not counted again. Only ``pareto``, which
    decides one at a time, begins with it."""
    undecided: frozenset[str] | None = None
    """Ids of expectations that are decided on; None: of all. Others only must not be harmed."""
    state: Callable[[str], State] | None = None
    """The state of an expectation, from who knows it without looking; None: it is worked out."""
    standing: Standing | None = None
    """What is kept about all these profiles and expectations, if it is: then little has to be worked out, and those
    that are not decided on need not be among the expectations to be protected."""


Decide = Callable[[Problem], Plan]
"""What a strategy is: pure and deterministic."""


def point_at(profile: Profile, target: Target) -> Point:
    """Where a profile is when it has been moved."""
    point = dict(profile.current())
    for id, value in target.values.items():
        point[id] = profile.capabilities[id].about.goodness(value)
    if target.mode:
        values = profile.mode_named(target.mode).values
        point |= {id: each.goodness(values[id]) for id, each in profile.moded.items()}
    return point
