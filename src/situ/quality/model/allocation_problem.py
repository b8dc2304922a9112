"""The allocation problem and its plans: actions, targets, claims, refusals, and what moving a profile costs.

`PublisherActions` is by what means a publisher is moved, `AllocationProblem` what is to be decided, `AllocationPlan` a
decision; `Decide` is what a strategy implements. `cost_of` and `cheapest` say what a target costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from situ.lang.json_form import StoredForm
from situ.lang.records import replace
from situ.quality.model.costs import UNAFFORDABLE, AtLeast, ConstantCost, Cost, PiecewiseCost
from situ.quality.model.declarations import (
    Capability,
    Direction,
    Expectation,
    Point,
    Profile,
    PublisherAction,
    QualityProperty,
    Strategy,
)

if TYPE_CHECKING:
    from situ.quality.match.match_index import MatchIndex
    from situ.quality.match.satisfaction import Satisfaction


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Actions. An action is known by the property, the direction in which the value goes, and its name. To ask the publisher
# is built in, at no cost; who declares it says what it costs. Plans weigh what moves a publisher; to shape the stream
# of a subscriber is no alternative to that (decision 0043), so nothing here asks for its cost.

ADAPT: Final = "adaptPublisher"


@dataclass(frozen=True, slots=True)
class PublisherActions:
    """All actions of a project: those it declares, in their order, before what is built in."""

    declared: tuple[PublisherAction, ...] = ()
    _by_move: dict[tuple[str, Direction], tuple[PublisherAction, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def adapting(self, about: QualityProperty, direction: Direction) -> tuple[PublisherAction, ...]:
        """What could make a publisher move a property in a direction: alternatives."""
        key = (about.id, direction)
        if key not in self._by_move:
            declared = tuple(each for each in self.declared if (each.property, each.direction) == key and _adapts(each))
            built_in = about.determined_by != "middleware" and all(each.action != ADAPT for each in declared)
            asking = (PublisherAction(property=about.id, direction=direction, action=ADAPT),) if built_in else ()
            self._by_move[key] = (*declared, *asking)
        return self._by_move[key]

    def can_improve(self, about: QualityProperty) -> bool:
        """Whether there is anything by which a better value than the current one can be had."""
        return bool(self.adapting(about, improving(about)))

    def cost_of_adapting(self, about: QualityProperty, before: float, after: float) -> float:
        """What it costs to have a publisher move a value, besides what operating there costs it."""
        if not self.declared or before == after:
            return 0.0
        costs = [each.cost.at(after) for each in self.adapting(about, "up" if after > before else "down")]
        return min(costs, default=UNAFFORDABLE)

    def knots_of_adapting(self, about: QualityProperty) -> tuple[float, ...]:
        """Targets beyond which having a property improved may become cheaper."""
        if not self.declared:
            return ()
        return tuple(knot for each in self.adapting(about, improving(about)) for knot in each.cost.knots)


NO_ACTIONS: Final = PublisherActions()


def improving(about: QualityProperty) -> Direction:
    """The direction in which values of a property become better."""
    return "up" if about.maximise else "down"


def _adapts(action: PublisherAction) -> bool:
    return ADAPT in (action.steps or (action.action,))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Problems and plans. A problem is who expects what, who could do what, and under which rule it is decided. A plan says
# to what each profile is to be moved, for whom, and why others are not served. Strategies make plans of problems; they
# know nothing else.


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


class Target(StoredForm, frozen=True, kw_only=True):
    """To what a profile is moved: better values of free properties, and another mode. What is not named stays."""

    values: Mapping[str, float] = msgspec.field(default_factory=_nothing)
    """By the ids of properties."""
    mode: str = ""

    def __bool__(self) -> bool:
        return bool(self.values or self.mode)


STAY = Target()


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What one expectation needs of one profile that it does not do by itself."""

    expectation: str
    profile: str
    target: Target


Why = Literal["alternative", "harm", "budget", "worth", "conflict"]
"""Another alternative of the subscription is satisfied and this one costs more; others would lose what they have; the
budget; it costs more than it is worth; something worth more, or more others, needs the publisher to be different."""


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why an expectation that could be satisfied is not going to be, and what it would have cost with whom."""

    why: Why
    profile: str = ""
    target: Target = STAY
    extra: float | None = None
    exact: bool = True
    """Whether the search that came to this was exact."""


class AllocationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is going to be done."""

    targets: Mapping[str, Target] = msgspec.field(default_factory=_nothing)
    """Of profiles that are moved, by their ids; all others stay as they are."""
    cost: float = 0.0
    """More than what is; may be negative."""
    adopted: Mapping[str, tuple[Claim, ...]] = msgspec.field(default_factory=_nothing)
    """Of expectations that are not satisfied yet and are by the plan, by their ids."""
    declined: Mapping[str, Refusal] = msgspec.field(default_factory=_nothing)
    """Of expectations that could be satisfied and are not by the plan, by their ids."""
    for_nobody: Mapping[str, Target] = msgspec.field(default_factory=_nothing)
    """What is done to profiles that no expectation needs, by their ids: it is cheaper so."""
    exact: bool = True
    """Whether no plan is better by the rule of the strategy; the greedy search knows no more than its bound."""
    bound: float | None = None
    """At least this part of what the best plan achieves; None: nothing is claimed, or it is exact."""


class AllocationProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Who expects what, who could do what, and by which rule it is decided."""

    expectations: tuple[Expectation, ...]
    """Those that are active, in the order of their registration."""
    profiles: Mapping[str, Profile]
    """Effective ones, by their ids."""
    pools: Mapping[str, str]
    """Profile → its pool. One without is relevant to nobody."""
    relevant: Mapping[str, frozenset[str]]
    """Subscription → pools whose profiles are relevant to it."""
    actions: PublisherActions = NO_ACTIONS
    strategy: Strategy = msgspec.field(default_factory=Strategy)
    start: Mapping[str, Target] = msgspec.field(default_factory=_nothing)
    """What was decided before and is to stay so, by profile; its cost is not counted again. Only ``pareto``, which
    decides one at a time, begins with it."""
    undecided: frozenset[str] | None = None
    """Ids of expectations that are decided on; None: of all. Others only must not be harmed."""
    state: Callable[[str], Satisfaction] | None = None
    """The state of an expectation, from who knows it without looking; None: it is worked out."""
    standing: MatchIndex | None = None
    """What is kept about all these profiles and expectations, if it is: then little has to be worked out, and those
    that are not decided on need not be among the expectations to be protected."""


Decide = Callable[[AllocationProblem], AllocationPlan]
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Costs of moving a profile, and the cheapest value that is good enough. Sums are exact, so it never matters in which
# order costs are added, nor whether a saving and an expense that cancel out leave a speck behind.


def cost_of(profile: Profile, target: Target, actions: PublisherActions, before: Target = STAY) -> float:
    """What a target costs more than another one: operating there, and getting there from what is now."""
    return math.fsum(terms_between(profile, target, actions, before))


def terms_between(profile: Profile, target: Target, actions: PublisherActions, before: Target) -> list[float]:
    """The summands of that. What is the same in both would only add up to nothing."""
    found = _terms(profile, target, actions, before)
    return [*found, *(-each for each in _terms(profile, before, actions, target))] if before else found


def _terms(profile: Profile, target: Target, actions: PublisherActions, other: Target) -> list[float]:
    """The summands of what a target costs more than staying, where it is not the same as another one."""
    found: list[float] = []
    for id, value in target.values.items():
        if value != other.values.get(id):
            found += terms_of_value(profile.capabilities[id], value, actions)
    if target.mode and target.mode != other.mode:
        found += terms_of_mode(profile, target.mode, actions)
    return found


def terms_of_value(capability: Capability, value: float, actions: PublisherActions) -> tuple[float, ...]:
    return (
        costs_at(capability.cost, value),
        -costs_at(capability.cost, capability.cv),
        actions.cost_of_adapting(capability.about, capability.cv, value),
    )


def terms_of_mode(profile: Profile, mode: str, actions: PublisherActions) -> tuple[float, ...]:
    before, after = profile.mode_named(profile.mode), profile.mode_named(mode)
    moves = (actions.cost_of_adapting(each, before.values[id], after.values[id]) for id, each in profile.moded.items())
    return (after.cost, -before.cost, *moves)


def terms_from(
    baseline: Mapping[str, float], mode: str, profile: Profile, target: Target, actions: PublisherActions
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


def cheapest(capability: Capability, floor: float, actions: PublisherActions) -> float:
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
    if isinstance(cost, ConstantCost):
        return 0.0, 1.0
    if isinstance(cost, PiecewiseCost) and len(cost.points) == 2:
        (left, before), (right, after) = cost.points
        gained = after - before if capability.about.maximise else before - after
        rise = gained / ((right - left) or math.nan)
        if gained >= 0 and rise < math.inf and left <= capability.lb and capability.ub <= right:
            return rise, max(1.0, before, after)
    return math.nan, 1.0


def _never_falls(capability: Capability) -> bool:
    """Whether nothing better is cheaper, as far as that is seen at a glance."""
    cost = capability.cost
    if not isinstance(cost, PiecewiseCost) or len(cost.points) != 2:
        return isinstance(cost, ConstantCost)
    (_, left), (_, right) = cost.points
    return left <= right if capability.about.maximise else left >= right


def costs_at(cost: Cost, value: float) -> float:
    """A cost as a number that can be added, also where a formula makes none of it."""
    found = cost.at(value)
    return found if abs(found) <= UNAFFORDABLE else UNAFFORDABLE
