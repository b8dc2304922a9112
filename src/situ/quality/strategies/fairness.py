"""``fairness``: whoever gets the least of what it could wish for gets as much as possible, then the next."""

from __future__ import annotations

from situ.quality import weighing
from situ.quality.problem import Plan, Problem
from situ.quality.solving import solve


def decide(problem: Problem) -> Plan:
    return solve(problem, weighing.fairness)
