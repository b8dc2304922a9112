"""Which rule counts at a place of an event, in the words of the definition: all are tried, and the smallest key wins.

Part of :mod:`tests.oracles.transformation`, and like that written apart from what engines run.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from situ.contexts.function_bodies import body_for, keys_for
from situ.contexts.model import (
    IDENTITY,
    KEEP,
    Context,
    Conversion,
    Direction,
    EventMapping,
    FromDefault,
    FromExpression,
    FromPath,
    MissingValue,
    Origin,
    Pattern,
    Qualifier,
    Rule,
    TableLookup,
)
from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES, finite
from situ.lang.types.json_codec import TYPE_KEY
from situ.lang.types.model import (
    DOUBLE,
    INT,
    PLANAR,
    Attribute,
    Decimal,
    ListOf,
    Named,
    Struct,
    Type,
    fits,
    is_subtype,
    plain,
    unit_below,
)
from situ.lang.types.scalars import read_timestamp
from situ.lang.units import NO_UNIT, Unit, conversion, convert_double, double_steps

_Step = tuple[str, bool, Type]
"""Attribute, whether an element of it, dynamic type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place of an event: the event's type, and the steps to it."""

    event: Struct
    steps: tuple[_Step, ...] = ()

    @property
    def types(self) -> tuple[Type, ...]:
        return (self.event, *(type for _, _, type in self.steps))

    def ending_in(self, type: Type) -> Place:
        if not self.steps:
            return Place(event=type) if isinstance(type, Struct) else self
        attribute, elements, _ = self.steps[-1]
        return Place(event=self.event, steps=(*self.steps[:-1], (attribute, elements, type)))

    def below(self, attribute: str, type: Type) -> Place:
        return Place(event=self.event, steps=(*self.steps, (attribute, False, type)))

    def element(self, type: Type) -> Place:
        attribute, _, _ = self.steps[-1]
        return Place(event=self.event, steps=(*self.steps[:-1], (attribute, True, type)))


def winner(context: Context, direction: Direction, place: Place) -> Rule | None:
    """The rule that converts this place, whatever lies above it."""
    found = [rule for rule in _visible_rules(context, direction) if matches(rule.pattern, place)]
    return min(found, key=lambda rule: key(rule.pattern, place), default=None)


def _visible_rules(context: Context, direction: Direction) -> list[Rule]:
    in_force: dict[Pattern, Rule] = {}
    for each in reversed(list(context.chain)):
        for rule in sorted(each.rules, key=lambda rule: rule.order):
            if rule.direction is direction:
                in_force[rule.pattern] = rule
    return [rule for rule in in_force.values() if rule.function != KEEP]


def matches(pattern: Pattern, place: Place) -> bool:
    types = place.types
    length = len(place.steps)
    if not pattern.qualifiers:
        return is_subtype(types[-1], pattern.head)
    if not is_subtype(types[0], pattern.head):
        return False
    last = len(pattern.qualifiers)
    if last > length or not all(_holds(pattern.qualifiers[i - 1], place.steps[i - 1]) for i in range(1, last)):
        return False
    if pattern.qualifiers[-1].attribute:
        return length == last and _holds(pattern.qualifiers[-1], place.steps[-1])
    return is_subtype(types[-1], pattern.qualifiers[-1].type)


def _holds(qualifier: Qualifier, step: _Step) -> bool:
    attribute, elements, type = step
    named = not qualifier.attribute or (qualifier.attribute, qualifier.elements) == (attribute, elements)
    return named and is_subtype(type, qualifier.type)


def key(pattern: Pattern, place: Place) -> tuple[tuple[float, int, int], ...]:
    types = place.types
    said: dict[int, tuple[Type, int]] = {}
    if pattern.qualifiers:
        said[0] = (pattern.head, 1)
        for level, qualifier in enumerate(pattern.qualifiers[:-1], 1):
            said[level] = (qualifier.type, 0 if qualifier.attribute else 1)
    last = pattern.qualifiers[-1] if pattern.qualifiers else None
    said[len(types) - 1] = (pattern.head, 1) if last is None else (last.type, 0 if last.attribute else 1)
    keys = [
        (float(_distance(type, said[level][0])), said[level][1], _order(type, said[level][0]))
        if level in said
        else (math.inf, 0, 0)
        for level, type in enumerate(types)
    ]
    return (keys[-1], *keys[:-1])


def _above(type: Type) -> tuple[Type, ...]:
    if isinstance(type, ListOf):
        return tuple(ListOf(each) for each in _above(type.element))
    return type.supers if isinstance(type, Struct) else (type.base,) if isinstance(type, Named) else ()


def _distance(type: Type, up_to: Type) -> int:
    if type == up_to:
        return 0
    return max((1 + _distance(each, up_to) for each in _above(type) if is_subtype(each, up_to)), default=0)


def _order(type: Type, wanted: Type) -> int:
    return next(number for number, each in enumerate(_walk_up(type)) if each == wanted)


def _walk_up(type: Type) -> Iterator[Type]:
    yield type
    for each in _above(type):
        yield from _walk_up(each)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What becomes of one event, the slow and obvious way: walk its values and look the rules up at each.
#
# It serves tests, which hold the compiled transformations equal to it, and those who want to see how an answer comes
# about. It shares the declarations with them and nothing else: traversal and units are written down here once more,
# matching and precedence in :mod:`tests.oracles.transformation`, in the words of the definition.


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The event as it comes out; ``faults`` are places of the target with the code of what is wrong there."""

    target: Struct
    data: Any
    faults: tuple[tuple[str, str], ...] = ()


def transform(
    context: Context,
    direction: Direction,
    event: Struct,
    envelope: Mapping[str, Any],
    data: Mapping[str, Any],
    target: Struct | None = None,
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = MappingProxyType({}),
) -> Result:
    """What becomes of an event of this type whose definition was checked. ``target`` is for types without mapping,
    ``tables`` are the rows of sources by their names."""
    return _Walk(context, direction, event, envelope, data, tables).result(target)


@dataclass(slots=True)
class _Walk:
    context: Context
    direction: Direction
    event: Struct
    envelope: Mapping[str, Any]
    data: Mapping[str, Any]
    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    origins: Mapping[str, Origin] = field(default_factory=dict)
    faults: list[tuple[str, str]] = field(default_factory=list)

    def result(self, target: Struct | None) -> Result:
        mapping = self._mapping()
        into = mapping.target if mapping is not None else target or self.event
        if mapping is not None:
            self.origins = {".".join(path): origin for path, origin in mapping.attributes.items()}
        made = self._value(self.data, self.event, Place(event=self.event), NO_UNIT, into, NO_UNIT, "")
        return Result(target=into, data=None if self.faults else made, faults=tuple(self.faults))

    def _mapping(self) -> EventMapping | None:
        by_source: dict[Struct, EventMapping] = {}
        for each in reversed(list(self.context.chain)):
            by_source.update({m.source: m for m in each.mappings if m.direction is self.direction})
        found = [mapping for source, mapping in by_source.items() if is_subtype(self.event, source)]
        place = Place(event=self.event)
        return min(found, key=lambda mapping: key(Pattern(head=mapping.source), place), default=None)

    def _dynamic(self, value: Any, declared: Type) -> Type:
        named = value.get(TYPE_KEY) if isinstance(value, Mapping) else None
        found = self.context.types_of(self.direction).get(named) if named is not None else None
        return found or declared

    def _value(
        self,
        value: Any,
        declared: Type,
        place: Place,
        unit: Unit,
        into: Type,
        wanted: Unit,
        path: str,
        *,
        whole: bool = False,
    ) -> Any:
        """Section by section: rule, units, then what lies below. ``whole``: neither rules nor units count any more."""
        type = self._dynamic(value, declared)
        place = place.ending_in(type)
        rule = None if whole else winner(self.context, self.direction, place)
        if rule is not None and rule.function != IDENTITY:
            function = self.context.conversion(rule.function)
            assert function is not None
            return self._call(function, value, type, into, path)
        if value is None:
            return None
        whole = whole or rule is not None
        given, target = plain(type), plain(into)
        if isinstance(given, Struct) and isinstance(target, Struct):
            if not whole and unit != wanted and given not in PLANAR and NO_UNIT not in (unit, wanted):
                return self._call(self._between(unit, wanted, given, target), value, type, into, path)
            stays = (whole or declared == target) and is_subtype(given, target) and self._known_there(given, target)
            out = given if stays else target
            made = {TYPE_KEY: out.name} if out != target else {}
            return made | self._attributes(value, given, place, unit, out, wanted, path, whole=whole)
        if isinstance(given, ListOf) and isinstance(target, ListOf):
            function = None if whole else self._declared_between(unit, wanted, given, target)
            if function is not None and unit != wanted:
                return self._call(function, value, type, into, path)
            return [
                self._value(
                    item,
                    given.element,
                    place.element(given.element),
                    unit,
                    target.element,
                    wanted,
                    f"{path}[{number}]",
                    whole=whole,
                )
                for number, item in enumerate(value)
            ]
        return self._single(value, type, unit, into, wanted, path, whole=whole)

    def _known_there(self, struct: Struct, declared: Struct) -> bool:
        return struct == declared or self.context.targets_of(self.direction).get(struct.name) == struct

    def _attributes(
        self,
        value: Mapping[str, Any],
        given: Struct,
        place: Place,
        unit: Unit,
        out: Struct,
        wanted: Unit,
        path: str,
        *,
        whole: bool,
    ) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for attribute in out.attributes:
            here = f"{path}.{attribute.name}" if path else attribute.name
            below = unit_below(out, wanted, attribute)
            source = given.attribute(attribute.name)
            before = len(self.faults)
            if not whole and here in self.origins:
                found = self._from(self.origins[here], attribute, below, here)
            elif not whole and any(each.startswith(f"{here}.") for each in self.origins):
                found = self._nested(value, given, source, place, unit, attribute, below, here)
            elif source is None:
                found = None
            else:
                found = self._value(
                    value.get(source.name),
                    source.type,
                    place.below(source.name, source.type),
                    unit_below(given, unit, source),
                    attribute.type,
                    below,
                    here,
                    whole=whole,
                )
            if len(self.faults) > before:
                continue
            if found is None:
                found = attribute.default
            if found is not None:
                made[attribute.name] = found
            elif not attribute.optional:
                self.faults.append((here, "INT707"))
        return made

    def _nested(
        self,
        value: Mapping[str, Any],
        given: Struct,
        source: Attribute | None,
        place: Place,
        unit: Unit,
        attribute: Attribute,
        wanted: Unit,
        path: str,
    ) -> Any:
        out = plain(attribute.type)
        assert isinstance(out, Struct)
        if source is None or not isinstance(source.type, Struct):
            return self._attributes({}, Struct("", ()), place, NO_UNIT, out, wanted, path, whole=False)
        inner, below = value.get(source.name) or {}, place.below(source.name, source.type)
        unit = unit_below(given, unit, source)
        return self._attributes(inner, source.type, below, unit, out, wanted, path, whole=False)

    def _from(self, origin: Origin, attribute: Attribute, wanted: Unit, path: str) -> Any:
        match origin:
            case FromDefault(value=value):
                return value
            case FromExpression(node=node):
                try:
                    found = interpret(node, {"event": self.envelope, "data": self.data})
                    if found is not None and node.unit != wanted and NO_UNIT not in (node.unit, wanted):
                        return _scaled(found, *conversion(node.unit, wanted), attribute.type)
                except FAILURES:
                    self.faults.append((path, "INT704"))
                    return None
                return self._shaped(found, attribute.type, attribute.type)
            case FromPath(path=steps):
                return self._at(steps, attribute, wanted, path)

    def _at(self, steps: tuple[str, ...], attribute: Attribute, wanted: Unit, path: str) -> Any:
        value: Any = self.data
        type = self._dynamic(value, self.event)
        place, unit, declared = Place(event=self.event).ending_in(type), NO_UNIT, type
        for step in steps:
            if value is None:
                return None
            assert isinstance(type, Struct)
            source = type.attribute(step)
            assert source is not None
            place = place.ending_in(type).below(step, source.type)
            unit, declared = unit_below(type, unit, source), source.type
            value = value.get(step)
            type = self._dynamic(value, declared)
        return self._value(value, declared, place, unit, attribute.type, wanted, path)

    # ── single values ──

    def _single(self, value: Any, type: Type, unit: Unit, into: Type, wanted: Unit, path: str, *, whole: bool) -> Any:
        if whole or unit == wanted or NO_UNIT in (unit, wanted):
            return self._shaped(value, type, into)
        function = self._declared_between(unit, wanted, type, into)
        if function is not None:
            return self._call(function, value, type, into, path)
        try:
            return _scaled(value, *conversion(unit, wanted), into)
        except FAILURES:
            self.faults.append((path, "INT704"))
            return None

    def _declared_between(self, unit: Unit, wanted: Unit, type: Type, into: Type) -> Conversion | None:
        if NO_UNIT in (unit, wanted):
            return None
        for context in self.context.chain:
            for name in reversed(list(context.functions)):
                found = self.context.conversion(name)
                assert found is not None
                units = (found.parameter.unit, found.result.unit)
                if units == (unit, wanted) and fits(type, found.parameter.type) and fits(found.result.type, into):
                    return found
        return None

    def _between(self, unit: Unit, wanted: Unit, type: Type, into: Type) -> Conversion:
        found = self._declared_between(unit, wanted, type, into)
        assert found is not None
        return found

    # ── functions ──

    def _call(self, function: Conversion, value: Any, type: Type, into: Type, path: str) -> Any:
        if value is None and not function.nulls:
            return None
        parameter = function.parameter.type
        given = self._shaped(value, type, parameter, stays=True)
        event = self._dynamic(self.data, self.event)
        assert isinstance(event, Struct)
        values = {"value": given, "event": self.envelope, "data": self.data}
        try:
            for lookup in function.lookups:
                row = self._row(function, lookup, event, values)
                if row is None:
                    return self._without_row(function, into, path)
                values = {**values, lookup.name: row}
            found = interpret(body_for(function, event), values)
        except FAILURES:
            self.faults.append((path, "INT704"))
            return None
        return self._shaped(found, function.result.type, into)

    def _row(
        self, function: Conversion, lookup: TableLookup, event: Struct, values: Mapping[str, Any]
    ) -> Mapping[str, Any] | None:
        """The row whose columns have the values of the keys; of several the last that is not after the time meant."""
        wanted = {column: interpret(node, values) for column, node in keys_for(function, lookup, event)}
        if None in wanted.values():
            return None
        rows = [
            row
            for row in self.tables[lookup.source]
            if all(row.get(column) == value for column, value in wanted.items())
        ]
        if not lookup.as_of:
            return rows[0] if rows else None
        meant = {"event": self.envelope.get("time"), "now": self.envelope.get("received")}
        time: Any = meant[function.time] if function.time in meant else read_timestamp(function.time)
        begun = [(begin, row) for row in rows if (begin := _begin(row[lookup.as_of])) <= time]
        return max(begun, key=lambda each: each[0])[1] if begun else None

    def _without_row(self, function: Conversion, into: Type, path: str) -> Any:
        if function.missing is MissingValue.ERROR:
            self.faults.append((path, "INT705"))
        return self._shaped(function.default, function.result.type, into)

    def _shaped(self, value: Any, type: Type, into: Type, *, stays: bool = False) -> Any:
        """A value of a type as it is written where another is declared: numbers widened, ``$type`` where it tells.

        ``stays``: on the side it comes from, where all its types are known. A function that takes it for a value of a
        supertype still knows what its attributes are, though the subtype declares them narrower.
        """
        if value is None:
            return None
        bare, target = plain(type), plain(into)
        if isinstance(bare, ListOf) and isinstance(target, ListOf):
            return [self._shaped(item, bare.element, target.element, stays=stays) for item in value]
        if isinstance(bare, Struct) and isinstance(target, Struct):
            exact = self._dynamic(value, bare)
            assert isinstance(exact, Struct)
            if not stays and not self._known_there(exact, target):
                exact = target
            made = {TYPE_KEY: exact.name} if exact != target else {}
            for attribute in exact.attributes:
                above = target.attribute(attribute.name) if stays else None
                found = self._shaped(value.get(attribute.name), attribute.type, (above or attribute).type, stays=stays)
                if found is None:
                    found = attribute.default
                if found is not None:
                    made[attribute.name] = found
            return made
        if target == DOUBLE:
            return float(value)
        if isinstance(target, Decimal):
            return decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-target.scale))
        return value


def _begin(value: date) -> datetime:
    """A date begins at 00:00 UTC."""
    if isinstance(value, datetime):
        return value
    return datetime(value.year, value.month, value.day, tzinfo=UTC)


def _scaled(value: Any, scale: Fraction, offset: Fraction, into: Type) -> Any:
    target = plain(into)
    if target == DOUBLE:
        return finite(convert_double(float(value), double_steps(scale, offset)))
    exact = Fraction(value) * scale + offset
    if isinstance(target, Decimal):
        units = round(exact * 10**target.scale)
        if abs(units) >= 10**target.precision:
            raise ArithmeticError("too many digits")
        return decimal.Decimal(units).scaleb(-target.scale, decimal.Context(prec=60))
    most = 2 ** (31 if target == INT else 63)
    if not -most <= exact < most:
        raise ArithmeticError("beyond the range")
    return int(exact)
