"""Root as it was before one of its types was replaced: contexts that know only the old type go on below it.

``root.v1`` is a context over the root that came after it: ``root.v2``, or root itself if there is none. It declares the
type as it was, with rules whose functions lead from the old type to the new one and back. Whatever holds the type, at
any depth, follows by itself. For contexts that extend it, it is root: they are compiled against it, and what leads from
there to root is put in front or behind (:func:`situ.interpretation.transformation.transformations`).
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from situ.catalogue import LACKS_ATTRIBUTES, NO_WAY_BACK, NOT_INVERSE
from situ.errors import Location, Problems
from situ.expr.interpret import interpret
from situ.expr.runtime import FAILURES
from situ.interpretation.model import Context, Conversion, Direction, MappedTo, Pattern
from situ.types.model import (
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
from situ.types.table import Types

# ── types ─────────────────────────────────────────────────────────────────────────────────────────


def as_they_were(base: Types, declared: Types, own: frozenset[str]) -> tuple[Types, frozenset[str]]:
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
    added: list[MappedTo] = []
    for name in sorted(former.own & base.events & former.types.events):
        after, before = base.event(name), former.types.event(name)
        assert after is not None
        assert before is not None
        for direction, source, target in ((Direction.OUT, after, before), (Direction.IN, before, after)):
            if (direction, name) not in said:
                order = len(former.mappings) + len(added)
                mapping = MappedTo(direction=direction, source=source, target=target, context=former.id, order=order)
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
    types, _ = as_they_were(former.root.types, former.types, former.own - {name})
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
