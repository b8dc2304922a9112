"""Small problems of deciding, made by chance, and what to decide on them, found by going through everything.

The slow and obvious reading of spec/quality.md, section 4: whole plans are listed and compared as they are printed
there. Numbers are few and whole, so that much is equal and ties are met often.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from situ.lang.records import replace
from situ.quality.match.satisfaction import Satisfaction, match
from situ.quality.model.allocation_problem import (
    NO_ACTIONS,
    STAY,
    AllocationProblem,
    PublisherActions,
    Target,
    point_at,
)
from situ.quality.model.costs import ConstantCost, Cost, LevelCost, PiecewiseCost
from situ.quality.model.declarations import (
    Capability,
    Expectation,
    Mode,
    Need,
    Profile,
    PublisherAction,
    QualityProperty,
    Strategy,
)

FAST = QualityProperty(name="fast", lo=0, hi=10)
SLOW = QualityProperty(name="slow", lo=0, hi=10, maximise=False, determined_by="both")
GRADE = QualityProperty(name="grade", levels=("low", "middle", "high"), lo=0, hi=2)
PROPERTIES = (FAST, SLOW, GRADE)
Targets = Mapping[str, Target]


# ── making problems ──


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a problem may have."""

    modes: bool = True
    falling: bool = True
    several: bool = True
    budget: bool = True
    actions: bool = True
    profiles: int = 3
    expectations: int = 4
    alternatives: bool = True
    dear: bool = False
    """Everything is at its worst and could be at its best, at a price that is felt."""


ANY_KIND = Kind()


def make_problem(seed: int, kind: Kind = ANY_KIND) -> AllocationProblem:
    dice = random.Random(seed)
    pools = ["one", "two"][: dice.choice((1, 1, 2))]
    least = kind.profiles if kind.dear else 1
    profiles = [_profile(dice, f"p{number}", kind) for number in range(dice.randint(least, kind.profiles))]
    subscriptions = [f"c{number}/s" for number in range(kind.expectations)]
    used = subscriptions if not kind.alternatives else subscriptions[: dice.randint(1, len(subscriptions))]
    count = dice.randint(kind.expectations if kind.dear else 1, kind.expectations)
    return AllocationProblem(
        expectations=tuple(
            _expectation(dice, number, used[number] if not kind.alternatives else dice.choice(used), kind)
            for number in range(count)
        ),
        profiles={each.id: each for each in profiles},
        pools={each.id: dice.choice(pools) for each in profiles},
        relevant={each: frozenset(dice.sample(pools, dice.randint(1, len(pools)))) for each in subscriptions},
        actions=_actions(dice) if kind.actions and dice.random() < 0.25 else NO_ACTIONS,
        strategy=Strategy(
            weight=dice.choice((0.0, 0.5, 1.0, 1.0, 2.0)),
            budget=float(dice.randint(0, 6)) if kind.budget and dice.random() < 0.4 else None,
            protect=dice.random() < 0.6,
        ),
    )


def _profile(dice: random.Random, publisher: str, kind: Kind) -> Profile:
    there = dice.sample(PROPERTIES, dice.randint(1, len(PROPERTIES)))
    moded = there[: dice.randint(1, len(there))] if kind.modes and dice.random() < (0.9 if kind.dear else 0.5) else []
    modes = tuple(
        Mode(name=name, values={each.id: float(_value(dice, each)) for each in moded}, cost=float(dice.randint(0, 4)))
        for name in ("a", "b", "c")[: dice.randint(1, 3)]
        if moded
    )
    return Profile(
        publisher=publisher,
        type="t",
        capabilities={each.id: _capability(dice, each, kind) for each in there if each not in moded},
        modes=modes,
        mode=dice.choice(modes).name if modes else "",
        moded={each.id: each for each in moded},
    )


def _value(dice: random.Random, about: QualityProperty) -> int:
    return dice.randint(0, int(about.hi))


def _capability(dice: random.Random, about: QualityProperty, kind: Kind) -> Capability:
    lb, cv, ub = sorted(float(_value(dice, about)) for _ in range(3))
    if kind.dear:
        lb, ub = about.lo, about.hi
        cv = about.worst
    return Capability(about=about, lb=lb, ub=ub, cv=cv, cost=_cost(dice, about, lb, ub, kind))


def _cost(dice: random.Random, about: QualityProperty, lb: float, ub: float, kind: Kind) -> Cost:
    if dice.random() < 0.2:
        return ConstantCost(float(dice.randint(0, 3)))
    between = [value for value in range(int(lb) + 1, int(ub)) if about.levels or dice.random() < 0.3]
    values = sorted({lb, *map(float, between), ub})
    costs = [float(dice.randint(0, 20 if kind.dear else 6)) for _ in values]
    if not kind.falling or dice.random() < 0.5:
        costs.sort(reverse=not about.maximise)
    pairs = tuple(zip(values, costs, strict=True))
    return LevelCost(pairs) if about.levels else PiecewiseCost(pairs)


def _expectation(dice: random.Random, number: int, subscription: str, kind: Kind) -> Expectation:
    asked = dice.sample(PROPERTIES, dice.choice((0, 1, 1, 1, 2, 2, 3)))
    needs = {}
    for each in asked:
        lb, ub = sorted((_value(dice, each), _value(dice, each)))
        needs[each.id] = Need(about=each, lb=float(lb), ub=float(ub))
    return Expectation(
        id=f"{subscription.partition('/')[0]}/x{number}",
        subscription=subscription,
        needs=needs,
        utility=float(dice.choice((0, 1, 1, 2, 3, 5))),
        order=number,
        publishers=2 if kind.several and dice.random() < 0.15 else 1,
    )


def _actions(dice: random.Random) -> PublisherActions:
    return PublisherActions(
        tuple(
            PublisherAction(
                property=each.id,
                direction=direction,
                action="adaptPublisher",
                cost=ConstantCost(float(dice.randint(0, 2))),
            )
            for each in PROPERTIES
            for direction in ("up", "down")
            if dice.random() < 0.7
        )
    )


# ── what plans do ──


def relevant_to(problem: AllocationProblem, expectation: Expectation) -> list[Profile]:
    pools = problem.relevant[expectation.subscription]
    return [each for id, each in sorted(problem.profiles.items()) if problem.pools[id] in pools]


def satisfied(problem: AllocationProblem, targets: Targets) -> frozenset[str]:
    points = {id: point_at(each, targets.get(id, STAY)) for id, each in problem.profiles.items()}
    found = set()
    for each in problem.expectations:
        publishers = {one.publisher for one in relevant_to(problem, each) if each.is_met_by(points[one.id])}
        if len(publishers) >= each.publishers:
            found.add(each.id)
    return frozenset(found)


def results(problem: AllocationProblem, targets: Targets) -> dict[str, tuple[float, bool]]:
    """Subscription → the highest utility among its satisfied alternatives, and whether there is one."""
    met = satisfied(problem, targets)
    found = {each.subscription: (0.0, False) for each in problem.expectations}
    for each in problem.expectations:
        if each.id in met:
            found[each.subscription] = max(found[each.subscription], (each.utility, True))
    return found


def cost_of_profile(problem: AllocationProblem, profile: Profile, target: Target) -> Fraction:
    total = Fraction(0)
    for id, value in target.values.items():
        capability = profile.capabilities[id]
        total += Fraction(capability.cost.at(value)) - Fraction(capability.cost.at(capability.cv))
        total += _acting(problem, capability.about, capability.cv, value)
    if target.mode:
        before, after = profile.mode_named(profile.mode), profile.mode_named(target.mode)
        total += Fraction(after.cost) - Fraction(before.cost)
        for id, about in profile.moded.items():
            total += _acting(problem, about, before.values[id], after.values[id])
    return total


def _acting(problem: AllocationProblem, about: QualityProperty, before: float, after: float) -> Fraction:
    if before == after:
        return Fraction(0)
    direction = "up" if after > before else "down"
    fitting = [each for each in problem.actions.declared if (each.property, each.direction) == (about.id, direction)]
    return Fraction(min((each.cost.at(after) for each in fitting), default=0.0))


def cost_of_plan(problem: AllocationProblem, targets: Targets) -> Fraction:
    costs = (cost_of_profile(problem, problem.profiles[id], each) for id, each in targets.items())
    return sum(costs, Fraction(0))


def harms(problem: AllocationProblem, targets: Targets, before: Targets | None = None) -> bool:
    then, now = results(problem, targets), results(problem, before or {})
    return any(then[each] < now[each] for each in now)


# ── all plans ──


def every_plan(problem: AllocationProblem) -> Iterator[dict[str, Target]]:
    ids = sorted(problem.profiles)
    for chosen in itertools.product(*(list(_targets(problem, problem.profiles[id])) for id in ids)):
        yield {id: target for id, target in zip(ids, chosen, strict=True) if target}


def _targets(problem: AllocationProblem, profile: Profile) -> Iterator[Target]:
    asking = [each for each in problem.expectations if problem.pools[profile.id] in problem.relevant[each.subscription]]
    if not asking:  # whoever is relevant to nobody is left alone
        yield STAY
        return
    ways = [
        [None, *_better_values(problem, each, [one.needs[id].floor for one in asking if id in one.needs])]
        for id, each in sorted(profile.capabilities.items())
    ]
    modes = [each.name if each.name != profile.mode else "" for each in profile.modes] or [""]
    for values in itertools.product(*ways):
        moved = {id: value for id, value in zip(sorted(profile.capabilities), values, strict=True) if value is not None}
        for mode in modes:
            yield Target(values=moved, mode=mode)


def _better_values(problem: AllocationProblem, capability: Capability, floors: Iterable[float]) -> list[float]:
    about = capability.about
    acting = (knot for each in problem.actions.declared if each.property == about.id for knot in each.cost.knots)
    return [
        value
        for value in sorted({*floors, *capability.cost.knots, *acting})
        if value != capability.cv and about.at_least(value, capability.cv) and about.at_least(capability.best, value)
    ]


def best_plan(problem: AllocationProblem, name: str) -> dict[str, Target]:
    """By the rules of 4.2, in their order, and then by what breaks ties."""
    return min(
        (each for each in every_plan(problem) if is_permitted(problem, each)),
        key=lambda each: (worth(problem, name, each), _ties(problem, each)),
    )


def is_permitted(problem: AllocationProblem, targets: Targets) -> bool:
    budget = problem.strategy.budget
    affordable = budget is None or cost_of_plan(problem, targets) <= Fraction(budget)
    return affordable and not (problem.strategy.protect and harms(problem, targets))


def usefulness(problem: AllocationProblem, targets: Targets) -> Fraction:
    return sum((Fraction(value) for value, _ in results(problem, targets).values()), Fraction(0))


def served(problem: AllocationProblem, targets: Targets) -> int:
    return sum(has for _, has in results(problem, targets).values())


def worth(problem: AllocationProblem, name: str, targets: Targets) -> tuple[object, ...]:
    """The less, the better."""
    cost = cost_of_plan(problem, targets)
    useful = usefulness(problem, targets)
    if name == "cheapest":
        return (-served(problem, targets), cost, -useful)
    if name == "utility":
        return (Fraction(problem.strategy.weight) * cost - useful, cost)
    return ([-each for each in sorted(_shares(problem, targets))], cost)


def _shares(problem: AllocationProblem, targets: Targets) -> Iterator[float]:
    for subscription, (value, has) in results(problem, targets).items():
        most = max(each.utility for each in problem.expectations if each.subscription == subscription)
        yield value / most if most else float(has)


def _ties(problem: AllocationProblem, targets: Targets) -> tuple[object, ...]:
    moved = sum(_moved(problem.profiles[id], each) for id, each in targets.items())
    return (
        len(targets),
        moved,
        sorted(targets),
        [_rank(each, targets) for _, each in sorted(problem.profiles.items())],
    )


def _moved(profile: Profile, target: Target) -> int:
    before, after = profile.current(), point_at(profile, target)
    return sum(before[id] != after[id] for id in before)


def _rank(profile: Profile, targets: Targets) -> list[float]:
    target = targets.get(profile.id, STAY)
    free = [each.about.goodness(target.values.get(id, each.cv)) for id, each in sorted(profile.capabilities.items())]
    names = [each.name for each in profile.modes]
    return [*free, *([float(names.index(target.mode or profile.mode))] if names else [])]


# ── one at a time ──


def pareto(problem: AllocationProblem) -> tuple[dict[str, Target], dict[str, str]]:
    """The plan, and why those are declined that are."""
    plan: dict[str, Target] = {}
    declined: dict[str, str] = {}
    for each in problem.expectations:
        out_of_reach = match(each, relevant_to(problem, each)).state is Satisfaction.UNSATISFIED
        if out_of_reach or each.id in satisfied(problem, plan):
            continue
        after, why = _adopted(problem, each, plan)
        if after is None:
            if why:
                declined[each.id] = why
            continue
        extra = cost_of_plan(problem, after) - cost_of_plan(problem, plan)
        mates = {one.id for one in problem.expectations if one.subscription == each.subscription} - {each.id}
        if extra > 0 and mates & satisfied(problem, plan):
            declined[each.id] = "alternative"
        else:
            plan = after
    met = satisfied(problem, plan)
    for each in problem.expectations:
        able = match(each, relevant_to(problem, each)).state is Satisfaction.SATISFIABLE
        if able and each.id not in met and not problem.strategy.protect:
            declined.setdefault(each.id, "conflict")
    return plan, {id: why for id, why in declined.items() if id not in met}


def _adopted(
    problem: AllocationProblem, expectation: Expectation, plan: Targets
) -> tuple[dict[str, Target] | None, str]:
    """The plan with whom it takes to satisfy an expectation, one after the other, each the best there is."""
    after = dict(plan)
    while expectation.id not in satisfied(problem, after):
        able = sorted(_moves(problem, expectation, after), key=lambda move: move[:4])
        if not able:
            return None, ""
        fit = [move for move in able if not _forbidden(problem, {**after, move[2]: move[4]}, after)]
        if not fit:
            return None, _forbidden(problem, {**after, able[0][2]: able[0][4]}, after)
        after[fit[0][2]] = fit[0][4]
    return {id: each for id, each in after.items() if each}, ""


def _forbidden(problem: AllocationProblem, then: Targets, now: Targets) -> str:
    if problem.strategy.protect and harms(problem, then, now):
        return "harm"
    budget = problem.strategy.budget
    return "budget" if budget is not None and cost_of_plan(problem, then) > Fraction(budget) else ""


def _moves(
    problem: AllocationProblem, expectation: Expectation, plan: Targets
) -> Iterator[tuple[Fraction, int, str, int, Target]]:
    profiles = relevant_to(problem, expectation)
    points = {each.id: point_at(each, plan.get(each.id, STAY)) for each in profiles}
    counted = {each.publisher for each in profiles if expectation.is_met_by(points[each.id])}
    for profile in profiles:
        if profile.publisher in counted:
            continue
        before = plan.get(profile.id, STAY)
        for place, mode in enumerate(profile.modes or (None,)):
            name = "" if mode is None or mode.name == profile.mode else mode.name
            values = dict(before.values)
            for id, need in expectation.needs.items():
                if id in profile.capabilities:
                    values |= _raised(problem, profile, id, need, values)
            target = Target(values=values, mode=name)
            after = point_at(profile, target)
            if expectation.is_met_by(after):
                extra = cost_of_profile(problem, profile, target) - cost_of_profile(problem, profile, before)
                changed = sum(after[id] != points[profile.id][id] for id in after)
                yield extra, changed, profile.id, place, target


def _raised(
    problem: AllocationProblem, profile: Profile, id: str, need: Need, values: Mapping[str, float]
) -> dict[str, float]:
    """A value for a free property: it stays, or it is the cheapest of the floor and the knots beyond it."""
    capability, about = profile.capabilities[id], need.about
    if about.at_least(values.get(id, capability.cv), need.floor):
        return {}
    if not about.at_least(capability.best, need.floor):
        return {}
    beyond = [each for each in _better_values(problem, capability, [need.floor]) if about.at_least(each, need.floor)]

    def order(value: float) -> tuple[Fraction, float]:
        return cost_of_profile(problem, profile, Target(values={id: value})), about.goodness(value)

    return {id: min(beyond, key=order)}


def shuffled(problem: AllocationProblem, dice: random.Random, *, expectations: bool) -> AllocationProblem:
    """The same with everything in another order."""

    def mixed(mapping: Mapping[str, object]) -> dict[str, object]:
        return dict(dice.sample(list(mapping.items()), len(mapping)))

    asked = problem.expectations
    return replace(
        problem,
        expectations=tuple(dice.sample(asked, len(asked))) if expectations else asked,
        profiles=mixed(problem.profiles),
        pools=mixed(problem.pools),
        relevant=mixed(problem.relevant),
    )
