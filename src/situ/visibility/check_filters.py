"""Is a text a filter at a boundary? Names that some event type has, nothing that changes by itself, true or false.

The problem of the declaration is outside, that of the expression inside as its cause.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from situ.catalogue import (
    BLOCKED_TYPES,
    BOUNDARY_NO_CONDITION,
    BOUNDARY_NOT_ALLOWED,
    BOUNDARY_UNKNOWN_NAME,
    NOT_IN_LANGUAGE,
    SYNTAX,
    UNKNOWN_NAME,
)
from situ.errors import Problem, nearest
from situ.expr.faults import NO_FAULTS, Faults
from situ.expr.syntax import Locate, locate_in
from situ.visibility.filters import Filters
from situ.visibility.graph import ScopeGraph

_SELF_CONTAINED = "A filter says the same of an event at any time and place, and needs nothing but the event."
_CLOCK = "The current time is another one for everybody who asks. `event.time` is the time of the event."
_CHANCE = "A filter says the same of an event each time it is asked."
_SEVERAL = "A filter sees one event at a time. A policy looks at several, and publishes what it finds."
_ON_THE_WAY = "It changes while the event travels, and a filter says the same of an event everywhere."

_FUNCTIONS = {
    **dict.fromkeys(("now", "current_timestamp", "current_date", "current_time", "localtimestamp"), _CLOCK),
    **dict.fromkeys(("rand", "random", "randn", "uuid", "shuffle"), _CHANCE),
    **dict.fromkeys(("sum", "count", "avg", "min", "max", "first", "last", "stddev", "variance"), _SEVERAL),
    "lookup": _SELF_CONTAINED,
}
_NAMES = {
    **dict.fromkeys(("current_timestamp", "current_date", "current_time"), _CLOCK),
    **dict.fromkeys(("latency", "freshness", "rate"), _ON_THE_WAY),
}
_SUBQUERY = re.compile(r"\bSELECT\b", re.IGNORECASE)
_MOST_NAMED = 8


def check_filter(
    scope: str,
    text: str,
    filters: Filters,
    locate: Locate,
    functions: Collection[str] = (),
    faults: Faults = NO_FAULTS,
) -> Iterator[Problem]:
    """What is wrong with a filter of a scope, and whom it blocks. ``functions`` are those that the project has."""
    meanings = filters.meanings(text, locate)
    if all(meaning.node is None for meaning in meanings):
        own = {name.lower() for name in functions}
        found = {(each.code.code, each.location, each.message): each for each in meanings[0].problems}
        yield from (_wrong(scope, text, each, filters, own) for each in found.values() if not faults.explain(each))
        return
    types, names = filters.blocked(text)
    if types:
        yield BLOCKED_TYPES(locate(0, len(text)), scope=scope, names=_listed(names), types=_listed(types))


def check_filters(graph: ScopeGraph, filters: Filters) -> Iterator[Problem]:
    """What is wrong with the filters of a graph under these types; places are in their texts."""
    for dimension in graph.dimensions.values():
        for name, scope in dimension.scopes.items():
            sides = (scope.output, scope.input, *(side for _, link in scope.links for side in (link.up, link.down)))
            for each in sides:
                if each is not None:
                    yield from check_filter(name, each.text, filters, locate_in(each.text, f"filter of {name}"))


def _no_condition(scope: str, problem: Problem) -> Problem:
    remedy = "" if problem.hint else "Write a comparison, such as `severity >= 4`, or `type IS …`."
    return BOUNDARY_NO_CONDITION(problem.location, cause=problem, scope=scope, remedy=remedy)


def _wrong(scope: str, text: str, problem: Problem, filters: Filters, functions: Collection[str]) -> Problem:
    if problem.code is NOT_IN_LANGUAGE or (problem.code is SYNTAX and _SUBQUERY.search(text)):
        found = "a query of its own" if problem.code is SYNTAX else problem.values["found"]
        return BOUNDARY_NOT_ALLOWED(problem.location, cause=problem, scope=scope, found=found, reason=_SELF_CONTAINED)
    if problem.code is not UNKNOWN_NAME or problem.values["kind"] == "unit":
        return _no_condition(scope, problem)
    kind, name = problem.values["kind"], problem.values["name"]
    reason = _FUNCTIONS.get(name.lower()) if kind == "function" else _NAMES.get(name.lower())
    found = f"`{name}`"
    if kind == "function" and name.lower() in functions:
        found, reason = f"`{name}`, a function of the project", _SELF_CONTAINED
    if reason is not None:
        return BOUNDARY_NOT_ALLOWED(problem.location, cause=problem, scope=scope, found=found, reason=reason)
    close = problem.values["nearest"] if kind in ("type", "function") else nearest(name, filters.attributes)
    return BOUNDARY_UNKNOWN_NAME(problem.location, cause=problem, scope=scope, name=name, nearest=close)


def _listed(names: Collection[str]) -> str:
    shown = [f"`{name}`" for name in sorted(names)[:_MOST_NAMED]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
