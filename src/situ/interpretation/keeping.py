"""A context is augmented, and those below it go on as they did.

A rule that is new further up may win in a context below, against rules that are less specific or none. There a rule
with the same pattern is put in that overrides it: ``PATTERN -> keep``, with which resolution goes on as if nobody had
declared the pattern. If the context saw the pattern before, from further up than the new one, that would take the old
rule out, too; then the rule that is put in has the old one's function.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from situ.interpretation.contexts import Contexts
from situ.interpretation.model import KEEP, ROOT, Context, Direction, Rule
from situ.interpretation.patterns import print_pattern
from situ.interpretation.replacing import as_root
from situ.interpretation.resolution import Place, Rules, expand
from situ.types.table import Types


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A rule that was put in, and the new one it overrides."""

    rule: Rule
    against: Rule
    instead: str
    """What converts the first place it is about, as before: a rule, or nothing."""


def keep_below(old: Contexts, new: Contexts, edited: Collection[str]) -> tuple[Contexts, tuple[Kept, ...]]:
    """The new contexts, with what it takes that those nobody edited resolve events as the old ones did."""
    kept: list[Kept] = []
    for id in parents_first(new):
        if id == ROOT or id in edited or id not in old.by_id:
            continue
        if not any(above.id in edited for above in new.by_id[id].chain):
            continue
        before = old.by_id[id]
        while (found := _first_change(before, new.by_id[id])) is not None:
            kept.append(found)
            new = _with_rule(new, id, found.rule)
    return new, tuple(kept)


def parents_first(contexts: Contexts) -> list[str]:
    """The ids of all contexts, each behind the one that it extends."""

    def depth(id: str) -> int:
        parent = contexts.by_id[id].parent
        return 0 if parent is None else 1 + depth(parent.id)

    return sorted(contexts.by_id, key=lambda id: (depth(id), id))


def descends(context: Context, id: str) -> bool:
    """Whether it is this context or one below it."""
    return any(each.id == id for each in context.chain)


def _first_change(before: Context, after: Context) -> Kept | None:
    for direction in Direction:
        old, new = Rules.of(before, direction), Rules.of(after, direction)
        was, now = before.types_of(direction), after.types_of(direction)
        known = {_identity(rule, was) for rule in old.rules}
        if all(_identity(rule, now) in known for rule in new.rules):
            continue
        for name in sorted(was.events & now.events):
            one, other = was.event(name), now.event(name)
            if one is None or other is None:
                continue
            for former, place in _changed(expand(one, old, was), expand(other, new, now), was, now):
                rule = place.rule
                if rule is not None and _identity(rule, now) not in known and rule.context != after.id:
                    return _kept(rule, former, _function_before(rule, old, was, after), after)
    return None


def _changed(before: Place, after: Place, was: Types, now: Types) -> Iterator[tuple[Place, Place]]:
    """The outermost places that another rule converts than before."""
    if before.rule is not None and after.rule is not None and _identity(before.rule, was) == _identity(after.rule, now):
        return
    if before.rule is not None or after.rule is not None:
        yield before, after
        return
    below = [(places, after.attributes.get(name, ())) for name, places in before.attributes.items()]
    for places, others in (*below, (before.elements, after.elements)):
        by_type = {str(place.path.type): place for place in others}
        for place in places:
            if (other := by_type.get(str(place.path.type))) is not None:
                yield from _changed(place, other, was, now)


def _kept(against: Rule, former: Place, function: str, context: Context) -> Kept:
    rule = replace(
        against,
        function=function,
        context=context.id,
        order=sum(each.direction is against.direction for each in context.rules),
        kept=True,
        location=None,
    )
    instead = f"`{former.rule}`" if former.rule is not None else "no rule"
    return Kept(rule=rule, against=against, instead=instead)


def _function_before(rule: Rule, before: Rules, types: Types, context: Context) -> str:
    """That of the rule with the same pattern that was in force, or none."""
    depths = {each.id: number for number, each in enumerate(context.chain)}
    pattern = print_pattern(rule.pattern, context.types_of(rule.direction))
    same = [each for each in before.rules if print_pattern(each.pattern, types) == pattern]
    nearest = min(same, key=lambda each: (depths.get(each.context, len(depths)), -each.order), default=None)
    return KEEP if nearest is None else nearest.function


def _identity(rule: Rule, types: Types) -> tuple[str, str, str]:
    return print_pattern(rule.pattern, types), rule.function, rule.context


def _with_rule(contexts: Contexts, id: str, rule: Rule) -> Contexts:
    changed = contexts.by_id[id]
    return with_contexts(contexts, {id: replace(changed, rules=(*changed.rules, rule))})


def with_contexts(contexts: Contexts, changed: Mapping[str, Context]) -> Contexts:
    """The contexts with these in the place of those of their names, and everything below them below the new ones."""
    made: dict[str, Context] = {}
    for id in parents_first(contexts):
        context = changed.get(id, contexts.by_id[id])
        parent = context.parent
        if parent is None:
            made[id] = context
        elif parent.bridge is None:
            made[id] = replace(context, parent=made[parent.id])
        else:
            made[id] = replace(context, parent=as_root(made[parent.id]))
    return contexts.with_all(made.values())
