"""Versions of contexts beside each other: former roots, rules that keep contexts below as they were, and forks.

`former_types`, `as_root` and `check_replaced` are for a root one of whose types was replaced; `keep_below` puts in
rules when a context further up is augmented; `fork` makes the context that has a change which somebody's use forbids.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from situ.contexts.model import KEEP, ROOT, Context, Conversion, Direction, EventMapping, Pattern, Rule
from situ.contexts.patterns import print_pattern
from situ.contexts.resolve_rules import ResolvedPlace, RuleSet, resolve_event_type
from situ.contexts.table import Contexts
from situ.lang.catalogue import LACKS_ATTRIBUTES, NO_WAY_BACK, NOT_INVERSE
from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES
from situ.lang.problems import Location, Problems
from situ.lang.records import replace
from situ.lang.types.model import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    DURATION,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Decimal,
    ListOf,
    Named,
    Struct,
    Type,
    plain,
)
from situ.lang.types.table import Types

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Former roots: contexts that know only the old type go on below root as it was. ``root.v1`` is a context over the root
# that came after it: ``root.v2``, or root itself if there is none. It declares the type as it was, with rules whose
# functions lead from the old type to the new one and back. Whatever holds the type, at any depth, follows by itself.
# For contexts that extend it, it is root: they are compiled against it, and what leads from there to root is put in
# front or behind (:func:`situ.contexts.transform.transformation.transformations`).

# ── types ─────────────────────────────────────────────────────────────────────────────────────────


def former_types(base: Types, declared: Types, own: frozenset[str]) -> tuple[Types, frozenset[str]]:
    """All types with the ``own`` ones in the place of those that came after, and the names of those that are other."""
    made: dict[str, Named | Struct] = {}
    found = {**base.types, **{name: declared.types[name] for name in own}}
    for name in found:
        _rebuild(found[name], found, made)
    types = Types(types=made, events=declared.events, units=declared.units)
    return types, frozenset(name for name, type in types.types.items() if base.types.get(name) != type)


def _rebuild(type: Type, found: Mapping[str, Named | Struct], made: dict[str, Named | Struct]) -> Type:
    match type:
        case ListOf(element=element):
            return ListOf(_rebuild(element, found, made))
        case Named(name=name) | Struct(name=name) if name in found:
            if name not in made:
                made[name] = _rebuilt(found[name], found, made)
            return made[name]
        case _:
            return type


def _rebuilt(
    type: Named | Struct, found: Mapping[str, Named | Struct], made: dict[str, Named | Struct]
) -> Named | Struct:
    if isinstance(type, Named):
        base = _rebuild(type.base, found, made)
        assert not isinstance(base, Struct | ListOf), "a named type is based on a single value"
        return type if base == type.base else replace(type, base=base)
    supers = tuple(_rebuild(above, found, made) for above in type.supers)
    attributes = tuple(replace(each, type=_rebuild(each.type, found, made)) for each in type.attributes)
    if (supers, attributes) == (type.supers, type.attributes):
        return type
    return Struct(type.name, attributes, tuple(each for each in supers if isinstance(each, Struct)))


def with_mappings(former: Context) -> Context:
    """Event types that are other than they were become each other, where nobody says how."""
    base = former.root.types
    said = {(each.direction, each.source.name) for each in former.mappings}
    added: list[EventMapping] = []
    for name in sorted(former.own & base.events & former.types.events):
        after, before = base.event(name), former.types.event(name)
        assert after is not None
        assert before is not None
        for direction, source, target in ((Direction.OUT, after, before), (Direction.IN, before, after)):
            if (direction, name) not in said:
                order = len(former.mappings) + len(added)
                mapping = EventMapping(
                    direction=direction, source=source, target=target, context=former.id, order=order
                )
                added.append(mapping)
    return replace(former, mappings=(*former.mappings, *added))


def as_root(former: Context) -> Context:
    """What contexts that extend it take for root: what root has, as far as it is not about what changed."""
    base = former.root
    functions = {name: each for name, each in base.functions.items() if not _is_about(each, former.own)}
    rules = [replace(each, context=former.id) for each in base.rules if not _names_in(each.pattern) & former.own]
    return Context(
        id=former.id,
        version=former.version,
        types=former.types,
        functions=MappingProxyType({**functions, **former.functions}),
        rules=tuple(rules),
        derive=base.derive,
        bridge=former,
    )


def _is_about(function: Conversion, names: frozenset[str]) -> bool:
    return any(_innermost(each.type) in names for each in (function.parameter, function.result))


def _names_in(pattern: Pattern) -> set[str]:
    return {_innermost(type) for type in (pattern.head, *(each.type for each in pattern.qualifiers))}


def _innermost(type: Type) -> str:
    return _innermost(type.element) if isinstance(type, ListOf) else str(type)


# ── checks ────────────────────────────────────────────────────────────────────────────────────────


def check_replaced(former: Context, declared: Mapping[str, Location | None], problems: Problems) -> None:
    """Whether the new types can stand in for those that are declared here as they were, and there are ways to both."""
    base = former.root.types
    for name, place in declared.items():
        old, new = former.types.types.get(name), base.types.get(name)
        if old is None or new is None or old == new or _follows(name, former):
            continue
        lacking = _lacking(old, new)
        if lacking:
            problems.add(LACKS_ATTRIBUTES(place, type=name, attributes=", ".join(lacking), former=former.id))
        if name in former.types.events:
            continue  # a mapping does it, and is checked like any other
        forth, back = _function(former, Direction.IN, old), _function(former, Direction.OUT, new)
        for function, way in ((forth, f"in: {name} -> …"), (back, f"out: root:{name} -> …")):
            if function is None:
                problems.add(NO_WAY_BACK(place, type=name, former=former.id, rule=way, users="contexts that extend it"))
        if forth is not None and back is not None and (sample := _not_restored(old, forth, back)) is not None:
            problems.add(NOT_INVERSE(place, type=name, forth=forth.name, back=back.name, sample=sample))


def _follows(name: str, former: Context) -> bool:
    """Whether a type is other only because of what is in it."""
    types, _ = former_types(former.root.types, former.types, former.own - {name})
    return types.types[name] == former.types.types[name]


def _lacking(old: Type, new: Type) -> list[str]:
    before, after = plain(old), plain(new)
    if not isinstance(before, Struct) or not isinstance(after, Struct):
        return []
    return [each.name for each in before.attributes if after.attribute(each.name) is None]


def _function(former: Context, direction: Direction, type: Type) -> Conversion | None:
    wanted = Pattern(head=type)
    names = [rule.function for rule in former.rules if rule.direction is direction and rule.pattern == wanted]
    found = former.conversion(names[-1]) if names else None
    is_expression = found is not None and not (found.lookups or found.states or found.python)
    return found if is_expression else None


def _not_restored(type: Type, forth: Conversion, back: Conversion) -> str | None:
    """A value that does not come back as it went, if one is found; functions that need an event are not tried."""
    if forth.body is None or back.body is None:
        return None
    for value in _samples(type):
        try:
            again = interpret(back.body, {"value": interpret(forth.body, {"value": value})})
        except FAILURES:
            return str(value)
        if again != value:
            return str(value)
    return None


_VALUES: Mapping[Type, tuple[Any, ...]] = {
    BOOLEAN: (True, False),
    INT: (1, -7, 0),
    LONG: (3, -(10**12), 0),
    DOUBLE: (1.5, -273.15, 0.0, 1e6),
    STRING: ("a", "", "Straße 7"),
    BYTES: (b"a", b""),
    DATE: (dt.date(2024, 2, 29), dt.date(1999, 12, 31)),
    TIMESTAMP: (dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC), dt.datetime(1999, 12, 31, tzinfo=dt.UTC)),
    DURATION: (dt.timedelta(seconds=90), dt.timedelta()),
}
_SAMPLES = 6


def _samples(type: Type) -> Iterator[Any]:
    return (_sample(type, number) for number in range(_SAMPLES))


def _sample(type: Type, number: int) -> Any:
    bare = plain(type)
    match bare:
        case Struct(attributes=attributes):
            made = {each.name: _sample(each.type, number + place) for place, each in enumerate(attributes)}
            return {each.name: None if each.optional and number % 3 == 2 else made[each.name] for each in attributes}
        case ListOf(element=element):
            return [_sample(element, number + place) for place in range(number % 3)]
        case Decimal(scale=scale):
            return decimal.Decimal(number * 3 - 4).scaleb(-scale)
        case _:
            values = _VALUES.get(bare, (None,))
            return values[number % len(values)]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Augmented contexts, below which all goes on as before. A rule that is new further up may win in a context below,
# against rules that are less specific or none. There a rule with the same pattern is put in that overrides it:
# ``PATTERN -> keep``, with which resolution goes on as if nobody had declared the pattern. If the context saw the
# pattern before, from further up than the new one, that would take the old rule out, too; then the rule that is put in
# has the old one's function.


class KeepRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that was put in, and the new one it overrides."""

    rule: Rule
    against: Rule
    instead: str
    """What converts the first place it is about, as before: a rule, or nothing."""


def keep_below(old: Contexts, new: Contexts, edited: Collection[str]) -> tuple[Contexts, tuple[KeepRule, ...]]:
    """The new contexts, with what it takes that those nobody edited resolve events as the old ones did."""
    kept: list[KeepRule] = []
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


def _first_change(before: Context, after: Context) -> KeepRule | None:
    for direction in Direction:
        old, new = RuleSet.of(before, direction), RuleSet.of(after, direction)
        was, now = before.types_of(direction), after.types_of(direction)
        known = {_identity(rule, was) for rule in old.rules}
        if all(_identity(rule, now) in known for rule in new.rules):
            continue
        for name in sorted(was.events & now.events):
            one, other = was.event(name), now.event(name)
            if one is None or other is None:
                continue
            for former, place in _changed(
                resolve_event_type(one, old, was), resolve_event_type(other, new, now), was, now
            ):
                rule = place.rule
                if rule is not None and _identity(rule, now) not in known and rule.context != after.id:
                    return _kept(rule, former, _function_before(rule, old, was, after), after)
    return None


def _changed(
    before: ResolvedPlace, after: ResolvedPlace, was: Types, now: Types
) -> Iterator[tuple[ResolvedPlace, ResolvedPlace]]:
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


def _kept(against: Rule, former: ResolvedPlace, function: str, context: Context) -> KeepRule:
    rule = replace(
        against,
        function=function,
        context=context.id,
        order=sum(each.direction is against.direction for each in context.rules),
        kept=True,
        location=None,
    )
    instead = f"`{former.rule}`" if former.rule is not None else "no rule"
    return KeepRule(rule=rule, against=against, instead=instead)


def _function_before(rule: Rule, before: RuleSet, types: Types, context: Context) -> str:
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Forks: a changed context beside the one that somebody uses. It extends that one and overrides what is other. What was
# taken out is overridden, too, where that can be said: a rule by ``keep``. Where it cannot, there is no fork.

Body = Mapping[str, Any]


class Unforkable(Exception):
    """The change is none that a context below the old one could make; the text says why."""


def fork_of(id: str, taken: Collection[str]) -> str:
    """The name of the next fork of a context: ``us.v2``, or if there is one ``us.v3``."""
    number = 2
    while f"{id}.v{number}" in taken:
        number += 1
    return f"{id}.v{number}"


def fork(before: Body, after: Body, old: Context, new: Context) -> dict[str, Any]:
    """What a context below the old one declares to be as the new one, given by what both declare and are."""
    if before.get("extends") != after.get("extends"):
        raise Unforkable("it extends another context than before")
    result: dict[str, Any] = {"extends": old.id}
    types = _types(after, old, new)
    if types:
        result["types"] = types
        if events := [name for name in after.get("events", ()) if name in types]:
            result["events"] = events
    if units := {name: kind for name, kind in after.get("units", {}).items() if name not in before.get("units", {})}:
        result["units"] = units
    if after.get("derive"):
        result["derive"] = True
    if maps := _maps(before, after, whole=bool(types)):
        result["maps"] = maps
    rules = {way.value: found for way in Direction if (found := _rules(before, after, way, old, whole=bool(types)))}
    if rules:
        result["rules"] = rules
    known = {each["name"]: each for each in before.get("functions", ())}
    if functions := [each for each in after.get("functions", ()) if known.get(each["name"]) != each]:
        result["functions"] = functions
    return result


def _types(after: Body, old: Context, new: Context) -> dict[str, Any]:
    """Those that are other than before, also because of what is in them."""
    return {name: body for name, body in after.get("types", {}).items() if old.types.get(name) != new.types.get(name)}


def _maps(before: Body, after: Body, *, whole: bool) -> list[Any]:
    """If types changed, all of them: those of the old context lead to the old types."""
    sources = [_source(each) for each in after.get("maps", ())]
    if any(_source(each) not in sources for each in before.get("maps", ())):
        raise Unforkable("it has a mapping less, and what is inherited stays")
    return [each for each in after.get("maps", ()) if whole or each not in before.get("maps", ())]


def _source(mapping: Mapping[str, Any]) -> tuple[str, str]:
    direction = "in" if "in" in mapping else "out"
    return direction, str(mapping[direction]).partition(" -> ")[0]


def _rules(before: Body, after: Body, direction: Direction, old: Context, *, whole: bool) -> list[str]:
    was = before.get("rules", {}).get(direction.value, [])
    now = after.get("rules", {}).get(direction.value, [])
    patterns = {rule.rpartition(" -> ")[0] for rule in now}
    gone = [pattern for rule in was if (pattern := rule.rpartition(" -> ")[0]) not in patterns]
    return [
        *(rule for rule in now if whole or rule not in was),
        *(f"{pattern} -> {_further_up(pattern, direction, old)}" for pattern in gone),
    ]


def _further_up(pattern: str, direction: Direction, context: Context) -> str:
    """The function that the pattern has without the context's own rule."""
    types = context.types_of(direction)
    for above in list(context.chain)[1:]:
        found = [rule for rule in above.rules if rule.direction is direction]
        for rule in sorted(found, key=lambda rule: -rule.order):
            if print_pattern(rule.pattern, types) == pattern:
                return rule.function
    return KEEP
