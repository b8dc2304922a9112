"""Strategies of other packages: entry points of the group ``situ.strategies``, each a function from problem to plan.

What is built in is not replaced. A package that cannot be loaded is a fault of the installation, and is not hidden.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import wraps
from importlib.metadata import EntryPoints, entry_points

from situ.quality.model.allocation_problem import AllocationPlan, AllocationProblem, Decide
from situ.quality.model.declarations import STRATEGIES

GROUP = "situ.strategies"
"""The group of entry points by which those of other packages are found."""
_log = logging.getLogger("situ.quality")


def known_strategies() -> tuple[str, ...]:
    """The names of all there are; nothing is loaded for that."""
    return (*STRATEGIES, *sorted(each.name for each in _others()))


def load_strategies() -> Mapping[str, Decide]:
    """All there are, by their names. When one of another package fails, the log tells why."""
    from situ.quality.allocation.strategies import BUILT_IN_STRATEGIES

    return {**{each.name: _telling(each.name, each.load()) for each in _others()}, **BUILT_IN_STRATEGIES}


def _others() -> EntryPoints:
    found = entry_points(group=GROUP)
    return EntryPoints(each for each in found if each.name not in STRATEGIES)


def _telling(name: str, decide: Decide) -> Decide:
    @wraps(decide)
    def telling(problem: AllocationProblem) -> AllocationPlan:
        try:
            return decide(problem)
        except Exception:
            _log.exception("The strategy %s failed; pareto decides in its place.", name)
            raise

    return telling
