"""Solving: a problem part by part, each exactly where that is possible, and the plan that comes of it.

What all strategies but ``pareto`` share; they differ in the rule by which plans are weighed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from situ.quality.choices import Option
from situ.quality.claims import Claims, for_nobody, serving
from situ.quality.exact import Chosen, branch_and_bound, is_small
from situ.quality.expectation import Expectation
from situ.quality.greedy import considered, greedy
from situ.quality.ground import Ground
from situ.quality.matching import State
from situ.quality.parts import Part, parts_of
from situ.quality.problem import Plan, Problem, Refusal, Target, Why
from situ.quality.project_selection import is_selection, select
from situ.quality.weighing import Rule, Weighing, utility


@dataclass(frozen=True, slots=True, kw_only=True)
class _Solved:
    chosen: Chosen
    exact: bool = True
    bound: float | None = None


def solve(problem: Problem, rule: Rule) -> Plan:
    """The best plan by a rule, or a good one where parts are too large for that."""
    targets: dict[str, Target] = {}
    cost = Fraction(0)
    bounds: list[float | None] = []
    for part in parts_of(problem):
        found = _solve(part, rule, problem)
        cost += sum((each.cost for each in found.chosen), Fraction(0))
        for choices, option in zip(part.choices, found.chosen, strict=True):
            if option.changes:
                targets[choices.profile.id] = option.target
        if not found.exact:
            bounds.append(found.bound)
    ground = Ground(problem, targets)
    wanting = [each for each in problem.expectations if ground.state(each) is State.SATISFIABLE]
    adopted = Claims(problem, targets, dict(serving(ground, ground.by_field(wanting))))
    known = [each for each in bounds if each is not None]
    return Plan(
        targets=targets,
        cost=float(cost),
        adopted=adopted,
        for_nobody=for_nobody(ground, adopted, list(targets)),
        declined=_declined(ground, wanting, float(cost), exact=not bounds),
        exact=not bounds,
        bound=min(known) if known and len(known) == len(bounds) else None,
    )


def _solve(part: Part, rule: Rule, problem: Problem) -> _Solved:
    strategy = problem.strategy
    every = [each.options() for each in part.choices]
    known = [each for each in every if each is not None]
    if len(known) == len(every) and is_small(known):
        weighing = Weighing(part, rule, strategy, _costs(known))
        best = branch_and_bound(weighing, known)
        return _Solved(chosen=best or tuple(each.staying() for each in part.choices))
    by_level = [level.cost for each in part.choices for levels in each.levels for level in levels]
    weighing = Weighing(part, rule, strategy, by_level)
    if rule is utility and strategy.budget is None and is_selection(part):
        return _Solved(chosen=select(weighing))
    among = [considered(each, options) for each, options in zip(part.choices, every, strict=True)]
    found = greedy(weighing, [some for some, _ in among], complete=all(complete for _, complete in among))
    return _Solved(chosen=found.chosen, exact=False, bound=found.bound)


def _costs(options: Sequence[Sequence[Option]]) -> list[Fraction]:
    return [each.cost for some in options for each in some]


def _declined(ground: Ground, wanting: list[Expectation], cost: float, *, exact: bool) -> Mapping[str, Refusal]:
    found = {}
    for each in wanting:
        best = None if ground.is_met(each) else next(ground.candidates(each), None)
        if best is not None:
            why = _why(ground, each, best.profile, best.target, cost + best.extra)
            found[each.id] = Refusal(why=why, profile=best.profile, target=best.target, extra=best.extra, exact=exact)
    return found


def _why(ground: Ground, expectation: Expectation, profile: str, target: Target, cost: float) -> Why:
    budget = ground.problem.strategy.budget
    if ground.has_other(expectation):
        return "alternative"
    if ground.harms(profile, target):
        return "conflict"
    return "budget" if budget is not None and cost > budget else "worth"
