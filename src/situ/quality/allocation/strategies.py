"""The strategies of allocation by name, each from a problem to a plan.

`solve` is what all strategies but ``pareto`` share; `decide_cheapest`, `decide_utility` and `decide_fairness` differ in
the rule by which plans are weighed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from situ.lang.records import replace
from situ.quality.allocation import search_space as weighing
from situ.quality.allocation import sequential as pareto
from situ.quality.allocation.candidates import Claims, PartialPlan, profiles_serving, unclaimed_moves
from situ.quality.allocation.exact import Chosen, branch_and_bound, is_selection, is_small, select
from situ.quality.allocation.local_search import considered_options, greedy
from situ.quality.allocation.search_space import (
    Objective,
    ProblemComponent,
    ProfileOption,
    Rule,
    components_of,
    rule_utility,
)
from situ.quality.match.satisfaction import Satisfaction
from situ.quality.model.allocation_problem import AllocationPlan, AllocationProblem, Decide, Refusal, Target, Why
from situ.quality.model.declarations import Expectation, Profile

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Solving: component by component, each exactly where that is possible.


@dataclass(frozen=True, slots=True, kw_only=True)
class _ComponentSolution:
    chosen: Chosen
    exact: bool = True
    bound: float | None = None


def solve(problem: AllocationProblem, rule: Rule) -> AllocationPlan:
    """The best plan by a rule, or a good one where parts are too large for that."""
    targets: dict[str, Target] = {}
    cost = Fraction(0)
    bounds: list[float | None] = []
    for part in components_of(problem):
        found = _solve(part, rule, problem)
        cost += sum((each.cost for each in found.chosen), Fraction(0))
        for choices, option in zip(part.choices, found.chosen, strict=True):
            if option.changes:
                targets[choices.profile.id] = option.target
        if not found.exact:
            bounds.append(found.bound)
    ground = PartialPlan(problem, targets)
    wanting = [each for each in problem.expectations if ground.state(each) is Satisfaction.SATISFIABLE]
    adopted = Claims(problem, targets, dict(profiles_serving(ground, ground.by_field(wanting))))
    known = [each for each in bounds if each is not None]
    return AllocationPlan(
        targets=targets,
        cost=float(cost),
        adopted=adopted,
        for_nobody=unclaimed_moves(ground, adopted, list(targets)),
        declined=_declined(ground, wanting, float(cost), exact=not bounds),
        exact=not bounds,
        bound=min(known) if known and len(known) == len(bounds) else None,
    )


def _solve(part: ProblemComponent, rule: Rule, problem: AllocationProblem) -> _ComponentSolution:
    strategy = problem.strategy
    every = [each.options() for each in part.choices]
    known = [each for each in every if each is not None]
    if len(known) == len(every) and is_small(known):
        weighing = Objective(part, rule, strategy, _costs(known))
        best = branch_and_bound(weighing, known)
        return _ComponentSolution(chosen=best or tuple(each.staying() for each in part.choices))
    by_level = [level.cost for each in part.choices for levels in each.levels for level in levels]
    weighing = Objective(part, rule, strategy, by_level)
    if rule is rule_utility and strategy.budget is None and is_selection(part):
        return _ComponentSolution(chosen=select(weighing))
    among = [considered_options(each, options) for each, options in zip(part.choices, every, strict=True)]
    found = greedy(weighing, [some for some, _ in among], complete=all(complete for _, complete in among))
    return _ComponentSolution(chosen=found.chosen, exact=False, bound=found.bound)


def _costs(options: Sequence[Sequence[ProfileOption]]) -> list[Fraction]:
    return [each.cost for some in options for each in some]


def _declined(ground: PartialPlan, wanting: list[Expectation], cost: float, *, exact: bool) -> Mapping[str, Refusal]:
    found = {}
    for each in wanting:
        best = None if ground.is_met(each) else next(ground.candidates(each), None)
        if best is not None:
            why = _why(ground, each, best.profile, best.target, cost + best.extra)
            found[each.id] = Refusal(why=why, profile=best.profile, target=best.target, extra=best.extra, exact=exact)
    return found


def _why(ground: PartialPlan, expectation: Expectation, profile: str, target: Target, cost: float) -> Why:
    budget = ground.problem.strategy.budget
    if ground.has_other(expectation):
        return "alternative"
    if ground.harms(profile, target):
        return "conflict"
    return "budget" if budget is not None and cost > budget else "worth"


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``cheapest``: as many subscriptions as possible with a satisfied alternative, as cheaply as possible. Up to so many
# profiles that expectations join are weighed against each other. To weigh more takes longer than anybody should wait
# for: then each expectation gets, in the order of registration, the cheapest that is left, as ``pareto`` does it,
# within the same budget and with the same protection. The plan says that it is not exact, and claims no bound.

MOST_JOINED = 128
"""Profiles that are weighed against each other."""


def decide_cheapest(problem: AllocationProblem) -> AllocationPlan:
    if not _is_too_large(problem):
        return solve(problem, weighing.rule_cheapest)
    plan = pareto.decide_pareto(problem)
    declined = {id: replace(each, exact=False) for id, each in plan.declined.items()}
    return replace(plan, declined=declined, exact=False, bound=None)


def _is_too_large(problem: AllocationProblem) -> bool:
    if len(problem.profiles) <= MOST_JOINED:
        return False
    # Where one subscription alone joins too many, which is seen at once, parts need not be worked out.
    return _one_joins_many(problem) or any(len(each.choices) > MOST_JOINED for each in components_of(problem))


def _one_joins_many(problem: AllocationProblem) -> bool:
    """Whether a subscription that has nothing yet could get something of too many profiles."""
    in_pool: dict[str, list[Profile]] = defaultdict(list)
    for id, pool in problem.pools.items():
        if id in problem.profiles:
            in_pool[pool].append(problem.profiles[id])
    mine: dict[str, list[Expectation]] = defaultdict(list)
    for each in problem.expectations:
        mine[each.subscription].append(each)
    for subscription, some in mine.items():
        relevant = [each for pool in problem.relevant.get(subscription, ()) for each in in_pool.get(pool, ())]
        if len(relevant) > MOST_JOINED and _could(some, relevant) > MOST_JOINED:
            return True
    return False


def _could(wanted: Sequence[Expectation], profiles: Sequence[Profile]) -> int:
    """Of how many profiles it depends what somebody gets; 0, if it has something as things are."""
    points = [each.current() for each in profiles]
    if any(each.is_met_by(point) for each in wanted for point in points):
        return 0
    return sum(any(each.is_met_by(point) for each in wanted for point in profile.reach()) for profile in profiles)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``utility``: the most utility, less what it costs, within the budget.


def decide_utility(problem: AllocationProblem) -> AllocationPlan:
    return solve(problem, weighing.rule_utility)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``fairness``: whoever gets the least of what it could wish for gets as much as possible, then the next.


def decide_fairness(problem: AllocationProblem) -> AllocationPlan:
    return solve(problem, weighing.rule_fairness)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Strategies by name.

BUILT_IN_STRATEGIES: Mapping[str, Decide] = {
    "pareto": pareto.decide_pareto,
    "cheapest": decide_cheapest,
    "utility": decide_utility,
    "fairness": decide_fairness,
}
"""Those that are built in."""
