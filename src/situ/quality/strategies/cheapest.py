"""``cheapest``: as many subscriptions as possible with a satisfied alternative, as cheaply as possible.

Up to so many profiles that expectations join are weighed against each other. To weigh more takes longer than anybody
should wait for: then each expectation gets, in the order of registration, the cheapest that is left, as ``pareto`` does
it, within the same budget and with the same protection. The plan says that it is not exact, and claims no bound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from situ.quality import weighing
from situ.quality.expectation import Expectation
from situ.quality.parts import parts_of
from situ.quality.problem import Plan, Problem
from situ.quality.profile import Profile
from situ.quality.solving import solve
from situ.quality.strategies import pareto

MOST_JOINED = 128
"""Profiles that are weighed against each other."""


def decide(problem: Problem) -> Plan:
    if not _is_too_large(problem):
        return solve(problem, weighing.cheapest)
    plan = pareto.decide(problem)
    declined = {id: replace(each, exact=False) for id, each in plan.declined.items()}
    return replace(plan, declined=declined, exact=False, bound=None)


def _is_too_large(problem: Problem) -> bool:
    if len(problem.profiles) <= MOST_JOINED:
        return False
    # Where one subscription alone joins too many, which is seen at once, parts need not be worked out.
    return _one_joins_many(problem) or any(len(each.choices) > MOST_JOINED for each in parts_of(problem))


def _one_joins_many(problem: Problem) -> bool:
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
