"""The rules of one context: patterns read, functions found, each rule with its direction.

A rule that cannot be used is reported, and something else stands in its place for the checks that follow, so that what
it would have done is not missed there: that is no second fault.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from situ.catalogue import DIRECTION_MISSING, PARAMETER_UNFIT, PATTERN_UNKNOWN, UNKNOWN_FUNCTION
from situ.errors import Problem, Problems, nearest
from situ.expr.faults import Faults
from situ.interpretation.declare import ContextText, RuleText
from situ.interpretation.model import IDENTITY, KEEP, Context, Direction, Pattern, Rule
from situ.interpretation.patterns import read_pattern
from situ.types.model import is_subtype

STANDS_IN = -1
"""The order of a rule that somebody else meant: every other one comes later."""

_NOT_KNOWN = ""
"""A function of which nothing is known."""


def define_rules(
    text: ContextText, context: Context, faults: Faults, faulty: Collection[str], problems: Problems
) -> tuple[Rule, ...]:
    """The rules a context declares; ``faulty`` functions are there, but cannot be used, for reasons given."""
    flat = _flat_direction(text, context, problems) if any(each.direction is None for each in text.rules) else None
    rules: list[Rule] = []
    for each in text.rules:
        known = _check_function(each, context, faults, faulty, problems)
        direction = each.direction or flat
        if direction is None:
            rules.extend(_standing_in(each, context, *Direction))
            continue
        pattern = _pattern(each, context, direction, faults, problems)
        if pattern is None:
            rules.extend(_standing_in(each, context, direction))
            continue
        rule = Rule(
            direction=direction,
            pattern=pattern,
            function=each.function.text,
            context=context.id,
            order=sum(other.direction is direction and other.order != STANDS_IN for other in rules),
            kept=each.kept,
            location=each.location,
        )
        fits = not known or _check_parameter(rule, each, context, problems)
        rules.append(rule if fits else replace(rule, function=_NOT_KNOWN))
    return tuple(rules)


def _pattern(
    each: RuleText, context: Context, direction: Direction, faults: Faults, problems: Problems
) -> Pattern | None:
    found = Problems()
    types, root = context.types_of(direction), context.root.types
    pattern = read_pattern(each.pattern.text, types, found, each.pattern.locate, root=root)
    problems.extend(problem for problem in found if not _follows(problem, faults))
    return pattern


def _standing_in(each: RuleText, context: Context, *directions: Direction) -> Iterator[Rule]:
    """Whatever its pattern means, it leads to what the function converts."""
    conversion = context.conversion(each.function.text)
    if conversion is not None:
        for direction in directions:
            yield Rule(
                direction=direction,
                pattern=Pattern(head=conversion.parameter.type),
                function=conversion.name,
                context=context.id,
                order=STANDS_IN,
                location=each.location,
            )


def _flat_direction(text: ContextText, context: Context, problems: Problems) -> Direction | None:
    """A flat list means the one direction of the mappings, inherited ones if there are no others."""
    written = {direction for each in text.maps for direction in (Direction if each.both else (each.direction,))}
    inherited = {mapping.direction for each in context.chain for mapping in each.mappings}
    directions = written or inherited
    if len(directions) == 1:
        return next(iter(directions))
    reason = "its mappings go both ways" if directions else "it has no mappings"
    place = next(each.location for each in text.rules if each.direction is None)
    problems.add(DIRECTION_MISSING(place, context=context.id, reason=reason))
    return None


def _check_function(
    each: RuleText, context: Context, faults: Faults, faulty: Collection[str], problems: Problems
) -> bool:
    name = each.function.text
    if name in (IDENTITY, KEEP) or name in faulty or name.lower() in faults.functions:
        return False
    if context.conversion(name) is not None:
        return True
    known = {name for above in context.chain for name in above.functions}
    near = nearest(name, (*known, IDENTITY))
    problems.add(UNKNOWN_FUNCTION(each.function.location, name=name, context=context.id, nearest=near))
    return False


def _check_parameter(rule: Rule, each: RuleText, context: Context, problems: Problems) -> bool:
    conversion = context.conversion(rule.function)
    if conversion is None or is_subtype(rule.pattern.target, conversion.parameter.type):
        return True
    parameter, type = (context.type_text(each) for each in (conversion.parameter.type, rule.pattern.target))
    place = each.function.location
    problems.add(PARAMETER_UNFIT(place, function=rule.function, parameter=parameter, type=type))
    return False


def _follows(problem: Problem, faults: Faults) -> bool:
    if problem.code is not PATTERN_UNKNOWN:
        return faults.explain(problem)
    name = problem.values["name"]
    return name in faults.types or any(name in lost for lost in faults.attributes.values())
