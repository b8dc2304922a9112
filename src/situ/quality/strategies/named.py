"""Strategies by their names: which one decides what, and one plan of all.

A strategy is declared for an event type, or for all others. Profiles that expectations join are decided together: by
the strategy of their type if they are all of one, else by that for all others.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from situ.quality.declared import DEFAULT, Strategy
from situ.quality.problem import Decide, Plan, Problem
from situ.quality.strategies import cheapest, fairness, pareto, utility

NAMED: Mapping[str, Decide] = {
    "pareto": pareto.decide,
    "cheapest": cheapest.decide,
    "utility": utility.decide,
    "fairness": fairness.decide,
}
"""Those that are built in."""


def make_plan(problem: Problem, strategies: Mapping[str, Strategy], named: Mapping[str, Decide] = NAMED) -> Plan:
    """One plan for everything. ``strategies`` by event type, ``named`` what there is under which name."""
    default = strategies.get(DEFAULT, Strategy())
    if not strategies.keys() - {DEFAULT}:
        return named[default.name](replace(problem, strategy=default))
    by_strategy = _by_strategy(problem, strategies)
    return _joined([named[each.strategy.name](each) for each in by_strategy])


def _by_strategy(problem: Problem, strategies: Mapping[str, Strategy]) -> list[Problem]:
    """Parts of a problem that nothing joins, together where one strategy decides on them."""
    group = _groups(problem)
    types: dict[str, set[str]] = defaultdict(set)
    for id, pool in problem.pools.items():
        if id in problem.profiles:
            types[group[pool]].add(problem.profiles[id].type)
    chosen = {
        each: next(iter(some)) if len(some) == 1 and some <= strategies.keys() else DEFAULT
        for each, some in types.items()
    }
    found = []
    for name in sorted(set(chosen.values())):
        pools = {pool for pool, each in group.items() if chosen.get(each) == name}
        found.append(
            replace(
                problem,
                strategy=strategies.get(name, Strategy()),
                profiles={id: each for id, each in problem.profiles.items() if problem.pools.get(id) in pools},
                expectations=tuple(
                    each
                    for each in problem.expectations
                    if not pools.isdisjoint(problem.relevant.get(each.subscription, ()))
                ),
            )
        )
    return found


def _groups(problem: Problem) -> Mapping[str, str]:
    """Pool → the first of those that expectations join with it."""
    towards = {pool: pool for pool in problem.pools.values()}

    def first(pool: str) -> str:
        while towards[pool] != pool:
            pool = towards[pool]
        return pool

    for pools in {problem.relevant.get(each.subscription, frozenset()) for each in problem.expectations}:
        here = sorted(pools & towards.keys())
        for each in here[1:]:
            low, high = sorted((first(here[0]), first(each)))
            towards[high] = low
    return {pool: first(pool) for pool in towards}


def _joined(plans: list[Plan]) -> Plan:
    bounds = [each.bound for each in plans if not each.exact]
    known = [each for each in bounds if each is not None]
    return Plan(
        targets={id: each for plan in plans for id, each in plan.targets.items()},
        cost=math.fsum(each.cost for each in plans),
        adopted={id: each for plan in plans for id, each in plan.adopted.items()},
        for_nobody={id: each for plan in plans for id, each in plan.for_nobody.items()},
        declined={id: each for plan in plans for id, each in plan.declined.items()},
        exact=all(each.exact for each in plans),
        bound=min(known) if known and len(known) == len(bounds) else None,
    )
