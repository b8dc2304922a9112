"""``cheapest``: as many subscriptions as possible with a satisfied alternative, as cheaply as possible."""

from __future__ import annotations

from situ.quality import weighing
from situ.quality.problem import Plan, Problem
from situ.quality.solving import solve


def decide(problem: Problem) -> Plan:
    return solve(problem, weighing.cheapest)
