"""Filters of subscriptions: does one type for an event, and can it be anything but always or never true?"""

from __future__ import annotations

from collections.abc import Mapping

from situ.catalogue import ALWAYS_TRUE, FILTER_INVALID, NEVER_TRUE
from situ.documents import Scalar
from situ.errors import Problems
from situ.expr.faults import Faults
from situ.expr.limits import Limits
from situ.expr.print import print_literal
from situ.expr.results import check_bounded
from situ.expr.scope import Definition, event_scope
from situ.expr.simplify import simplify
from situ.expr.tree import Literal
from situ.types.model import BOOLEAN, Struct
from situ.types.table import Types


def check_filter(
    subscription: str,
    where: Scalar,
    event: Struct,
    types: Types,
    functions: Mapping[str, Definition],
    problems: Problems,
    limits: Limits,
    faults: Faults,
) -> None:
    """Check a filter for events of one type; subtypes have all its attributes, so it holds for them, too."""
    scope = event_scope(event, types=types, functions=functions, limits=limits, extensions=True)
    checked = check_bounded(where.text, scope, where.locate, BOOLEAN)
    problems.extend(
        FILTER_INVALID(problem.location, cause=problem, subscription=subscription, type=event.name)
        if problem.is_error
        else problem
        for problem in checked.problems
        if not faults.explain(problem, event)
    )
    if checked.node is None:
        return
    simplified = simplify(checked.node)
    if not isinstance(simplified, Literal):
        return
    place = where.location
    if simplified.value is True:
        problems.add(ALWAYS_TRUE(place, subscription=subscription, type=event.name))
    else:
        shown = print_literal(simplified.value)
        problems.add(NEVER_TRUE(place, subscription=subscription, type=event.name, simplified=shown))
