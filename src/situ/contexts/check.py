"""Checks of loaded contexts: rules without effect, and mappings that do not give what their target needs.

`check_rules` warns about rules of one context and direction that match nothing, never apply, or lose to a rule for a
subtype. `check_contexts` runs it for all contexts, together with the type verification of their transformations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from situ.contexts.model import KEEP, Context, Direction, Pattern, Rule
from situ.contexts.patterns import Traversal, print_pattern
from situ.contexts.resolve_rules import ResolvedPlace, RuleSet, precedence_key, resolve_event_type
from situ.contexts.rules import STANDS_IN
from situ.contexts.table import Contexts
from situ.contexts.transform.transformation import transformations
from situ.lang.catalogue import LOSES_TO_SUBTYPE, PATTERN_TWICE, RULE_MATCHES_NOTHING, RULE_NEVER_APPLIES
from situ.lang.problems import Problem, Problems, SituError
from situ.lang.records import replace
from situ.lang.types.model import is_subtype
from situ.lang.types.table import Types

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Rules without effect. To find them, every place of every event type is visited, those below converted ones included.

_MOST_NAMED = 3  # places in a message


class _RuleUse(msgspec.Struct):
    """What became of one rule at the places it matches."""

    applied: bool = False
    beaten: list[tuple[Traversal, Rule]] = msgspec.field(default_factory=list)
    """Where another rule is applied instead."""
    covered: list[tuple[Traversal, Rule]] = msgspec.field(default_factory=list)
    """Where a rule converts the whole that it is a part of."""


def check_rules(context: Context, direction: Direction, problems: Problems) -> None:
    """Warn about rules of the context itself; those it inherits were looked at where they are declared."""
    own = [rule for rule in context.rules if rule.direction is direction and rule.function != KEEP]
    if not own:
        return
    last = {rule.pattern: rule for rule in own}
    for rule in own:
        if last[rule.pattern] is not rule:
            problems.add(PATTERN_TWICE(rule.location, rule=str(rule), later=_named(last[rule.pattern])))
    types = context.types_of(direction)
    try:
        seen = _look(last, RuleSet.of(context, direction), types)
    except SituError as error:
        problems.extend(error.problems)
        return
    for rule in last.values():
        problems.extend(_warnings(rule, seen[rule.pattern], types))


def _named(rule: Rule) -> str:
    return f"`{rule}` ({rule.location.file}:{rule.location.line})" if rule.location else f"`{rule}`"


def _look(own: Mapping[Pattern, Rule], rules: RuleSet, types: Types) -> Mapping[Pattern, _RuleUse]:
    """Every place of every event type, as far as it concerns these rules."""
    seen = {pattern: _RuleUse() for pattern in own}
    for name in sorted(types.events):
        event = types.event(name)
        if event is None:
            continue
        for place, cover in _places(resolve_event_type(event, rules, types, covered=True)):
            if place.rule is None:
                continue
            for rule in (place.rule, *place.beaten):
                if own.get(rule.pattern) is not rule:
                    continue
                if cover is not None:
                    seen[rule.pattern].covered.append((place.path, cover))
                elif rule is place.rule:
                    seen[rule.pattern].applied = True
                else:
                    seen[rule.pattern].beaten.append((place.path, place.rule))
    return seen


def _places(place: ResolvedPlace, cover: Rule | None = None) -> Iterator[tuple[ResolvedPlace, Rule | None]]:
    """All places with the rule that converts them as part of a whole, if there is one."""
    yield place, cover
    for each in place.below:
        yield from _places(each, cover or place.rule)


def _warnings(rule: Rule, seen: _RuleUse, types: Types) -> Iterator[Problem]:
    if seen.applied:
        yield from _losses(rule, seen.beaten)
    elif seen.beaten:
        winner = seen.beaten[0][1]
        paths = [path for path, other in seen.beaten if other is winner]
        reason = f"at {_places_named(paths)}, `{winner}` comes first"
        yield RULE_NEVER_APPLIES(rule.location, rule=str(rule), reason=reason)
    elif seen.covered:
        path, cover = seen.covered[0]
        reason = f"`{cover}` converts the whole value that {_place_named(path)} is a part of"
        yield RULE_NEVER_APPLIES(rule.location, rule=str(rule), reason=reason)
    else:
        yield RULE_MATCHES_NOTHING(
            rule.location, rule=str(rule), direction=rule.direction.value, remedy=_remedy(rule.pattern, types)
        )


def _losses(rule: Rule, beaten: Sequence[tuple[Traversal, Rule]]) -> Iterator[Problem]:
    """Where a rule says more about the way and loses all the same, to one that is nearer to the type of the value."""
    winners: dict[Rule, list[Traversal]] = {}
    for path, winner in beaten:
        derived = winner.pattern.target != rule.pattern.target and is_subtype(
            winner.pattern.target, rule.pattern.target
        )
        if derived and precedence_key(rule.pattern, path)[1:] < precedence_key(winner.pattern, path)[1:]:
            winners.setdefault(winner, []).append(path)
    for winner, paths in winners.items():
        yield LOSES_TO_SUBTYPE(
            rule.location,
            rule=str(rule),
            places=_places_named(paths),
            winner=str(winner),
            remedy=f"{print_pattern(_for_subtype(rule.pattern, winner.pattern))} -> {rule.function}",
        )


def _for_subtype(pattern: Pattern, winner: Pattern) -> Pattern:
    """The pattern with the winner's type at its end."""
    *before, last = pattern.qualifiers
    return Pattern(head=pattern.head, qualifiers=(*before, replace(last, type=winner.target)))


def _remedy(pattern: Pattern, types: Types) -> str:
    events = [event for name in types.events if (event := types.event(name)) is not None]
    if pattern.qualifiers and not any(is_subtype(event, pattern.head) for event in events):
        return f"A pattern of several parts begins with the type of an event, and `{pattern.head}` is none."
    return "Take it out, or name a type or attribute that events have."


def _places_named(paths: Sequence[Traversal]) -> str:
    named = ", ".join(_place_named(path) for path in paths[:_MOST_NAMED])
    more = len(paths) - _MOST_NAMED
    return f"{named} and {more} more" if more > 0 else named


def _place_named(path: Traversal) -> str:
    where = f"{path.event}.{path}" if path.steps else str(path.event)
    return f"`{where}` ({path.type})" if path.steps else f"`{where}`"


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# All contexts. Problems that follow from one already reported are left out. A context with faults of its own is
# skipped: what is missing because of them cannot be told from what nobody declared.


def check_contexts(contexts: Contexts, problems: Problems) -> None:
    """Note what is wrong, doubtful or worth knowing about what events become in each context, in both directions."""
    for context in contexts.by_id.values():
        if context.id in contexts.faulty:
            continue
        for direction in Direction:
            found = Problems()
            if not _has_stand_ins(context, direction):
                check_rules(context, direction, found)
            transformations(context, direction, found)
            problems.extend(problem for problem in found if not _follows(problem, contexts))


def _has_stand_ins(context: Context, direction: Direction) -> bool:
    rules = (rule for each in context.chain for rule in each.rules)
    return any(rule.order == STANDS_IN and rule.direction is direction for rule in rules)


def _follows(problem: Problem, contexts: Contexts) -> bool:
    """Whether it is about a place whose own mapping was refused."""
    type, path = problem.values.get("type"), problem.values.get("target")
    return any(
        type == lost and isinstance(path, str) and (f"{path}.".startswith(f"{at}.") or f"{at}.".startswith(f"{path}."))
        for lost, at in contexts.lost
    )
