"""``utility``: the most utility, less what it costs, within the budget."""

from __future__ import annotations

from situ.quality import weighing
from situ.quality.problem import Plan, Problem
from situ.quality.solving import solve


def decide(problem: Problem) -> Plan:
    return solve(problem, weighing.utility)
