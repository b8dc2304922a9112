"""The search space of an allocation problem: options of profiles, independent components, and what a choice is worth.

`DisjointSets` joins what belongs together. `profile_options` says to what each profile could be moved, `components_of`
splits a problem, `Objective` weighs a choice for one component by the rule of a strategy.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, TypeVar

from situ.quality.model.allocation_problem import (
    AllocationProblem,
    PublisherActions,
    Target,
    cheapest,
    point_at,
    terms_of_mode,
    terms_of_value,
)
from situ.quality.model.declarations import Capability, Expectation, Profile, Strategy

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Disjoint sets (union-find).

K = TypeVar("K", int, str)


class DisjointSets(Generic[K]):
    """Each member points towards the least of its group. Whoever is asked for is a group of its own to begin with."""

    def __init__(self) -> None:
        self._towards: dict[K, K] = {}

    def of(self, member: K) -> K:
        """By which member its group is known, as long as nothing is joined."""
        towards = self._towards
        while (further := towards.setdefault(member, member)) != member:
            towards[member] = member = towards[further]
        return member

    def join(self, members: Iterable[K]) -> None:
        for one, other in zip(found := list(members), found[1:], strict=False):
            low, high = sorted((self.of(one), self.of(other)))
            self._towards[high] = low


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Options. Sets of expectations are bits of a number: the first one that is decided on is bit 0. A free property need
# only be at its current value or at the cheapest value good enough for some expectation; whatever lies between serves
# nobody more. Of all combinations those are left out that another one beats: at least as many expectations, at no more
# cost.

MOST_COMBINED = 200_000
"""Combinations of values of one profile that are gone through."""
_MOST_COMPARED = 4096
"""Options that are compared with each other; of more, only those that meet exactly the same."""


@dataclass(frozen=True, slots=True)
class Level:
    """A value of a free property, or a mode, and what it does by itself."""

    met: int
    """Expectations that it is good enough for, those that do not ask for it among them."""
    cost: Fraction
    moved: int
    """How many properties are then different."""
    rank: float
    """Modes in their order, values from worse to better: of equal plans that with the lower ranks is taken."""
    values: Mapping[str, float] = field(default_factory=dict)
    mode: str = ""


@dataclass(frozen=True, slots=True)
class ProfileOption:
    """To what a profile could be moved as a whole, or the part of it that some of its properties make."""

    met: int
    cost: Fraction
    moved: int
    taken: tuple[Level, ...]

    @property
    def target(self) -> Target:
        values = {id: value for each in self.taken for id, value in each.values.items()}
        return Target(values=values, mode=next((each.mode for each in self.taken if each.mode), ""))

    @property
    def changes(self) -> bool:
        return any(each.values or each.mode for each in self.taken)

    @property
    def ranks(self) -> tuple[float, ...]:
        return tuple(each.rank for each in self.taken)

    @property
    def order(self) -> tuple[Fraction, bool, int, tuple[float, ...]]:
        """Of options that meet the same, the least one is taken."""
        return (self.cost, self.changes, self.moved, self.ranks)

    def with_level(self, level: Level) -> ProfileOption:
        return ProfileOption(
            self.met & level.met, self.cost + level.cost, self.moved + level.moved, (*self.taken, level)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileOptions:
    """What there is to choose for one profile."""

    profile: Profile
    now: int
    """Expectations it meets as it is."""
    able: int
    """Those that it meets by some option, ``now`` among them."""
    firm: int
    """Those that it meets whatever is chosen."""
    levels: tuple[tuple[Level, ...], ...]
    """By properties; the last ones are the modes, if there are any."""

    def options(self) -> tuple[ProfileOption, ...] | None:
        """All that no other one beats, cheapest first; None, if there are too many to go through."""
        found: tuple[ProfileOption, ...] = (combine_levels(self, ()),)
        for levels in self.levels:
            if len(found) * len(levels) > MOST_COMBINED:
                return None
            found = _unbeaten([each.with_level(level) for each in found for level in levels])
        return found

    def single_options(self) -> tuple[ProfileOption, ...]:
        """For each expectation the cheapest one that meets it; and the cheapest of all."""
        wanted = [0, *(1 << bit for bit in bits(self.able))]
        return _unbeaten([each for one in wanted if (each := self._least_for(one)) is not None])

    def staying(self) -> ProfileOption:
        return ProfileOption(self.now, Fraction(0), 0, ())

    def _least_for(self, wanted: int) -> ProfileOption | None:
        fit = [[each for each in levels if each.met & wanted == wanted] for levels in self.levels]
        if not all(fit):
            return None
        return combine_levels(
            self, [min(each, key=lambda level: (level.cost, level.moved, level.rank)) for each in fit]
        )


def profile_options(problem: AllocationProblem) -> list[ProfileOptions]:
    """Of all profiles that are relevant to somebody, in the order of their ids."""
    subscribed: dict[str, list[tuple[int, Expectation]]] = {}
    for number, each in enumerate(problem.expectations):
        for pool in problem.relevant.get(each.subscription, ()):
            subscribed.setdefault(pool, []).append((number, each))
    found = []
    for id in sorted(problem.profiles):
        asking = subscribed.get(problem.pools.get(id, ""), [])
        if asking:
            found.append(_choices(problem.profiles[id], asking, problem.actions))
    return found


def combine_levels(choices: ProfileOptions, levels: Iterable[Level]) -> ProfileOption:
    """One level of each property together."""
    option = ProfileOption(choices.able, Fraction(0), 0, ())
    for each in levels:
        option = option.with_level(each)
    return option


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _choices(profile: Profile, asking: Sequence[tuple[int, Expectation]], actions: PublisherActions) -> ProfileOptions:
    properties = profile.properties
    could = [pair for pair in asking if properties >= pair[1].needs.keys()]
    reach = profile.reach()
    able = [pair for pair in could if any(pair[1].is_met_by(point) for point in reach)]
    levels = [_free_levels(id, each, able, actions) for id, each in sorted(profile.capabilities.items())]
    if profile.modes:
        levels.append(_modes(profile, able, actions))
    current = profile.current()
    everywhere = [point_at(profile, Target(mode=each.name)) for each in profile.modes] or [current]
    return ProfileOptions(
        profile=profile,
        now=_mask(number for number, each in able if each.is_met_by(current)),
        able=_mask(number for number, _ in able),
        firm=_mask(number for number, each in able if all(each.is_met_by(point) for point in everywhere)),
        levels=tuple(levels),
    )


def _free_levels(
    id: str, capability: Capability, asking: Sequence[tuple[int, Expectation]], actions: PublisherActions
) -> tuple[Level, ...]:
    about = capability.about
    now = about.goodness(capability.cv)
    asked = {number: each.needs[id].asked for number, each in asking if id in each.needs}
    floors = {about.value(each) for each in asked.values() if each > now}
    values = {cheapest(capability, floor, actions) for floor in (capability.cv, *floors)}
    found = []
    for value in sorted(values, key=about.goodness):
        good = about.goodness(value)
        stays = value == capability.cv
        found.append(
            Level(
                met=_mask(number for number, _ in asking if asked.get(number, -math.inf) <= good),
                cost=Fraction(0) if stays else _exactly(terms_of_value(capability, value, actions)),
                moved=0 if stays else 1,
                rank=good,
                values={} if stays else {id: value},
            )
        )
    return tuple(found)


def _modes(profile: Profile, asking: Sequence[tuple[int, Expectation]], actions: PublisherActions) -> tuple[Level, ...]:
    found = []
    before = profile.mode_named(profile.mode)
    for place, mode in enumerate(profile.modes):
        point = {id: each.goodness(mode.values[id]) for id, each in profile.moded.items()}
        stays = mode.name == profile.mode
        fit = (
            number
            for number, each in asking
            if all(need.asked <= point.get(id, math.inf) for id, need in each.needs.items())
        )
        found.append(
            Level(
                met=_mask(fit),
                cost=Fraction(0) if stays else _exactly(terms_of_mode(profile, mode.name, actions)),
                moved=sum(mode.values[id] != before.values[id] for id in profile.moded),
                rank=place,
                mode="" if stays else mode.name,
            )
        )
    return tuple(found)


def _mask(numbers: Iterable[int]) -> int:
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def _exactly(numbers: Sequence[float]) -> Fraction:
    return sum(map(Fraction, numbers), Fraction(0))


def _unbeaten(options: Sequence[ProfileOption]) -> tuple[ProfileOption, ...]:
    best: dict[int, ProfileOption] = {}
    for each in options:
        known = best.get(each.met)
        if known is None or each.order < known.order:
            best[each.met] = each
    in_order = sorted(best.values(), key=lambda each: each.order)
    if len(in_order) > _MOST_COMPARED:
        return tuple(in_order)
    found: list[ProfileOption] = []
    masks: list[int] = []
    for each in in_order:
        met = each.met
        if not any(met & mask == met for mask in masks):
            found.append(each)
            masks.append(met)
    return tuple(found)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Components: a problem falls apart where no expectation joins two profiles, and each component is decided alone.
# Alternatives of one subscription belong together, since only the best satisfied one counts. A budget is common to all,
# so with one there is one component. Whatever is met in any case joins nothing.


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionStake:
    """What one subscription can win: bits of its alternatives with their utilities, best first."""

    subscription: str
    alternatives: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemComponent:
    """Profiles and subscriptions that nothing outside has to do with."""

    choices: tuple[ProfileOptions, ...]
    """In the order of the ids of profiles."""
    stakes: tuple[SubscriptionStake, ...]
    """In the order of subscriptions."""
    always: int
    """Expectations that are met whatever is chosen."""
    several: Mapping[int, int]
    """Bit of an expectation → how many publishers have to meet it, where that is more than one."""

    def met_by(self, masks: Sequence[int]) -> int:
        """What is met if each of the profiles meets this."""
        found = self.always
        for mask in masks:
            found |= mask
        for bit, least in self.several.items():
            if found >> bit & 1 and not self.always >> bit & 1 and self._publishers(masks, bit) < least:
                found ^= 1 << bit
        return found

    def _publishers(self, masks: Sequence[int], bit: int) -> int:
        pairs = zip(self.choices, masks, strict=True)
        return len({each.profile.publisher for each, mask in pairs if mask >> bit & 1})


def components_of(problem: AllocationProblem) -> list[ProblemComponent]:
    """The parts of a problem in which there is anything to choose."""
    choices = profile_options(problem)
    several = {bit: each.publishers for bit, each in enumerate(problem.expectations) if each.publishers > 1}
    always = _always(choices, several)
    stakes = _stakes(problem)
    groups = DisjointSets[int]()
    swayed = [_swayed(each, choices, always) for each in stakes]
    for places in swayed:
        groups.join(places)
    if problem.strategy.budget is not None:
        groups.join(place for place, each in enumerate(choices) if _is_open(each))
    by_group: dict[int, list[SubscriptionStake]] = defaultdict(list)
    for stake, places in zip(stakes, swayed, strict=True):
        for place in places[:1]:
            by_group[groups.of(place)].append(stake)
    members: dict[int, list[ProfileOptions]] = defaultdict(list)
    for place, each in enumerate(choices):
        members[groups.of(place)].append(each)
    return [
        ProblemComponent(choices=tuple(each), stakes=tuple(by_group[group]), always=always, several=several)
        for group, each in members.items()
        if by_group[group] or any(map(_is_open, each))
    ]


def _is_open(choices: ProfileOptions) -> bool:
    """Whether there is anything to choose, or to pay."""
    return any(len(levels) > 1 or levels[0].cost for levels in choices.levels)


def _stakes(problem: AllocationProblem) -> list[SubscriptionStake]:
    by_subscription: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for bit, each in enumerate(problem.expectations):
        by_subscription[each.subscription].append((bit, each.utility))
    return [
        SubscriptionStake(subscription=name, alternatives=tuple(sorted(pairs, key=lambda pair: -pair[1])))
        for name, pairs in sorted(by_subscription.items())
    ]


def _always(choices: Sequence[ProfileOptions], several: Mapping[int, int]) -> int:
    found = 0
    for each in choices:
        found |= each.firm
    for bit, least in several.items():
        if len({each.profile.publisher for each in choices if each.firm >> bit & 1}) < least:
            found &= ~(1 << bit)
    return found


def _swayed(stake: SubscriptionStake, choices: Sequence[ProfileOptions], always: int) -> list[int]:
    """The places of the profiles on which it depends what a subscription gets."""
    wanted = 0
    for bit, _ in stake.alternatives:
        if always >> bit & 1:
            break
        wanted |= 1 << bit
    return [place for place, each in enumerate(choices) if each.able & wanted]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Objectives: what a choice for a component is worth, in whole numbers. All utilities and costs of a component are
# multiples of one unit, so sums and differences are exact and comparing them needs no tolerance. More is better, in
# everything that a rule says.

Result = tuple[int, bool]
"""The highest utility among satisfied alternatives of a subscription, and whether there is any."""
Worth = Any
"""Something that compares with others of its kind."""
Rule = Callable[["Objective", Sequence[Result], int], Worth]
"""What the results of all subscriptions and a cost are worth. Never less for better results or a lower cost."""


class Objective:
    """One part, one rule."""

    def __init__(self, part: ProblemComponent, rule: Rule, strategy: Strategy, costs: Iterable[Fraction]) -> None:
        self.part = part
        self.rule = rule
        self.weight = Fraction(strategy.weight)
        utilities = [Fraction(utility) for each in part.stakes for _, utility in each.alternatives]
        budget = None if strategy.budget is None else Fraction(strategy.budget)
        numbers = (*utilities, *costs, *(() if budget is None else (budget,)))
        self.unit = math.lcm(*(each.denominator for each in numbers)) if numbers else 1
        self.budget = None if budget is None else self.scaled(budget)
        self.stakes = [
            [(1 << bit, self.scaled(Fraction(utility))) for bit, utility in each.alternatives] for each in part.stakes
        ]
        self.most = [alternatives[0][1] for alternatives in self.stakes]
        self.now = self.results(part.met_by([each.now for each in part.choices]))
        self.protect = strategy.protect

    def within(self, part: ProblemComponent, stakes: Sequence[int]) -> Objective:
        """The same for some of the subscriptions, by their places, which are all that are in a smaller part."""
        found = copy(self)
        found.part = part
        found.stakes = [self.stakes[at] for at in stakes]
        found.most = [self.most[at] for at in stakes]
        found.now = [self.now[at] for at in stakes]
        return found

    def scaled(self, number: Fraction) -> int:
        return int(number * self.unit)

    def results(self, met: int) -> list[Result]:
        """What every subscription gets if this is met."""
        return [
            next(((utility, True) for bit, utility in alternatives if met & bit), (0, False))
            for alternatives in self.stakes
        ]

    def harms(self, results: Sequence[Result]) -> bool:
        """Whether somebody gets less than now."""
        return any(after < before for after, before in zip(results, self.now, strict=True))

    def permits(self, results: Sequence[Result], cost: int) -> bool:
        """Whether that is within the budget and harms nobody, as far as that is asked for."""
        return (self.budget is None or cost <= self.budget) and not (self.protect and self.harms(results))

    def worth(self, results: Sequence[Result], cost: int) -> Worth:
        return self.rule(self, results, cost)


def rule_cheapest(weighing: Objective, results: Sequence[Result], cost: int) -> Worth:
    """As many subscriptions as possible; then as cheaply as possible; then as useful as possible."""
    return (sum(served for _, served in results), -cost, sum(value for value, _ in results))


def rule_utility(weighing: Objective, results: Sequence[Result], cost: int) -> Worth:
    """As useful as possible, less what it costs; then as cheaply as possible."""
    useful = sum(value for value, _ in results)
    return (useful * weighing.weight.denominator - cost * weighing.weight.numerator, -cost)


def rule_fairness(weighing: Objective, results: Sequence[Result], cost: int) -> Worth:
    """Whoever gets the least of what it could wish for, gets as much as possible, and so on; then as cheaply."""
    shares = (
        value / most if most else float(served) for (value, served), most in zip(results, weighing.most, strict=True)
    )
    return (sorted(shares), -cost)


def is_simple(stake: SubscriptionStake) -> bool:
    """Whether a subscription has one expectation."""
    return len(stake.alternatives) == 1
