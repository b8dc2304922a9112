"""Values in the shape and unit that is declared where they go: widened numbers, named structs, converted units.

`Coercer` fits an expression to a declared type; `unit_conversion` finds how one unit becomes another where no rule says
so, `convert_unit` does it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import msgspec

from situ.contexts.model import Context, Conversion
from situ.lang.expr.checker.coerce import is_number, linear, widen
from situ.lang.expr.tree import (
    Case,
    Coalesce,
    Coerce,
    Compare,
    Each,
    Field,
    ForEach,
    IsNull,
    Literal,
    MakeStruct,
    Node,
    Read,
)
from situ.lang.records import replace
from situ.lang.types.json_codec import TYPE_KEY
from situ.lang.types.model import DOUBLE, INT, LONG, STRING, Attribute, Decimal, ListOf, Struct, Type, fits, plain
from situ.lang.types.table import Types
from situ.lang.units import NO_UNIT, IncompatibleUnits, Unit, conversion

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Shape. A struct that an expression made has no name and its attributes in any order; a value of a subtype says so in
# ``$type``, which it had no need to where it came from.


def present(node: Read) -> Read:
    """The same value, where it is known not to be null."""
    return replace(node, optional=(False,) * len(node.optional)) if node.nullable else node


def attribute_read(of: Node, attribute: Attribute, unit: Unit = NO_UNIT) -> Node:
    """The attribute of a struct, whatever the struct is."""
    if isinstance(of, Read):
        optional = (*of.optional, attribute.nullable)
        return Read(of.variable, (*of.path, attribute.name), attribute.type, unit, optional, of.trusted)
    return Field(of, attribute.name, attribute.type, unit, attribute.nullable)


def dynamic_type(of: Node) -> Node:
    return attribute_read(of, Attribute(name=TYPE_KEY, type=STRING, optional=True))


def unless_null(node: Node, made: Node, type: Type) -> Node:
    """What is made of a value, null where there is none."""
    if not node.nullable:
        return made
    return Case(((IsNull(node), Literal(None, type)),), made, type)


def made_struct(struct: Struct, fields: tuple[tuple[str, Node], ...], declared: Type) -> MakeStruct:
    """A value of exactly this struct in a place that is declared so or as one above it."""
    tag = ((TYPE_KEY, Literal(struct.name, STRING)),) if struct != plain(declared) else ()
    return MakeStruct((*tag, *fields), struct, sparse=True)


class _Constant(list[Any]):
    """A list that stands in an expression: those are compared and hashed."""

    def __hash__(self) -> int:  # type: ignore[override]  # nobody changes it
        return len(self)


def constant(value: Any, type: Type) -> Node:
    """A value of a type, given as the engines hold it."""
    bare = plain(type)
    if isinstance(value, list):
        return Literal(_Constant(value), type)
    if value is None or not isinstance(bare, Struct):
        return Literal(value, type)
    fields = tuple((each.name, constant(value.get(each.name), each.type)) for each in bare.attributes)
    return MakeStruct(fields, bare, sparse=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coercer:
    """Gives values their declared shape. ``types`` are those visible where they come from, ``targets`` where they go.

    A value of a subtype that is not known there becomes one of the type that is declared.
    """

    types: Types
    targets: Types
    _transparent: dict[Type, bool] = field(default_factory=dict, compare=False, repr=False)

    def visible(self, type: Type, declared: Type) -> bool:
        """Whether the other side can know a value of this type from another in a place that is declared so."""
        return not isinstance(type, Struct) or type == declared or self.targets.get(type.name) == type

    def transparent(self, type: Type) -> bool:
        """Whether every value of the type is one on the other side as well."""
        if isinstance(type, ListOf):
            return self.transparent(type.element)
        if not isinstance(type, Struct):
            return True
        if type not in self._transparent:
            self._transparent[type] = all(
                self.visible(each, type) and all(self.transparent(attribute.type) for attribute in each.attributes)
                for each in self._subtypes(type)
            )
        return self._transparent[type]

    def _subtypes(self, struct: Struct) -> list[Struct]:
        return [each for each in self.types.subtypes(struct) if isinstance(each, Struct)]

    def fit(self, node: Node, given: Type, declared: Type) -> Node:
        """A value of the type ``given`` where ``declared`` stands; the caller knows that one fits the other."""
        bare = plain(given)
        if isinstance(bare, ListOf):
            wanted = plain(declared)
            assert isinstance(wanted, ListOf)
            return self._list(node, bare, wanted)
        if isinstance(bare, Struct):
            return self._struct(node, bare, declared)
        return self._single(node, declared)

    def _single(self, node: Node, declared: Type) -> Node:
        wanted = plain(declared)
        return widen(node, wanted) if is_number(wanted) and plain(node.type) != wanted else node

    def _list(self, node: Node, given: ListOf, declared: ListOf) -> Node:
        if isinstance(node, Literal):
            return replace(node, type=declared)
        if isinstance(node, ForEach) and node.kind is Each.TRANSFORM:
            return replace(node, body=self.fit(node.body, given.element, declared.element), type=declared)
        if node.type == declared and self.transparent(declared):
            return node
        variable = f"element{node.depth}"
        inner = plain(node.type)
        element = inner.element if isinstance(inner, ListOf) else given.element
        read = Read(variable, (), element, NO_UNIT, (True,))
        body = self.fit(read, given.element, declared.element)
        return node if body is read else ForEach(Each.TRANSFORM, node, variable, body, declared)

    def _struct(self, node: Node, given: Struct, declared: Type) -> Node:
        match node:
            case Literal():
                return replace(node, type=declared)
            case MakeStruct(fields=fields, type=type):
                return self._made(dict(fields), type if type.name else given, declared)
            case Case(arms=arms, otherwise=otherwise):
                chosen = tuple((condition, self.fit(result, given, declared)) for condition, result in arms)
                return replace(node, arms=chosen, otherwise=self.fit(otherwise, given, declared), type=declared)
            case Coalesce(args=args):
                return replace(node, args=tuple(self.fit(each, given, declared) for each in args), type=declared)
        found = plain(node.type)
        assert isinstance(found, Struct)
        if found.name:
            return self._passed(node, found, declared)
        made = self._made({each.name: attribute_read(node, each) for each in found.attributes}, given, declared)
        return unless_null(node, made, declared)

    def _passed(self, node: Node, found: Struct, declared: Type) -> Node:
        """A value that was there before: of any type below ``found``, which it says if it is not that itself."""
        target = plain(declared)
        assert isinstance(target, Struct)
        if found == target and self.transparent(found):
            return node
        first, *others = ((each, self._exactly(node, each, found, target)) for each in self._subtypes(found))
        tag = dynamic_type(node)
        arms = tuple((Compare("=", tag, Literal(each.name, STRING)), made) for each, made in others if made != first[1])
        made = Case(arms, first[1], declared) if arms else first[1]
        return unless_null(node, made, declared)

    def _exactly(self, node: Node, struct: Struct, found: Struct, target: Struct) -> Node:
        out = struct if self.visible(struct, target) else target
        if struct == out and (struct != found) == (out != target) and self.transparent(struct):
            return node
        typed = replace(node, type=struct) if isinstance(node, Read) else node
        fields = {each.name: attribute_read(typed, each) for each in struct.attributes}
        return self._made(fields, out, target)

    def _made(self, fields: dict[str, Node], given: Struct, declared: Type) -> Node:
        parts = tuple((each.name, self._attribute(fields.get(each.name), each)) for each in given.attributes)
        return made_struct(given, parts, declared)

    def _attribute(self, part: Node | None, attribute: Attribute) -> Node:
        if part is None:
            return constant(attribute.default, attribute.type)
        fitted = self.fit(part, attribute.type, attribute.type)
        if attribute.default is None or not fitted.nullable:
            return fitted
        return Coalesce((fitted, constant(attribute.default, attribute.type)), attribute.type)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Units. A function declared from one to the other comes first, that of the nearest context; then, between physical
# units of one dimension, arithmetic with exact constants (:mod:`situ.lang.units`). What is not physical converts only
# by a function.

_SMALLEST, _LARGEST = Fraction(1, 10**300), Fraction(10**300)


class SameUnit(msgspec.Struct, frozen=True, kw_only=True):
    """The units are equal, or one of them is not known (``one_sided``): the value stays as it is."""

    one_sided: bool = False


class ByUnitFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A context declares a function between the two."""

    function: Conversion


class LinearConversion(msgspec.Struct, frozen=True, kw_only=True):
    """``value * scale + offset``."""

    scale: Fraction
    offset: Fraction


class NoConversion(msgspec.Struct, frozen=True, kw_only=True):
    """No way leads from one to the other; between ``physical`` units because they measure different things."""

    physical: bool


Way = SameUnit | ByUnitFunction | LinearConversion | NoConversion


def unit_conversion(source: Unit, target: Unit, type: Type, into: Type, context: Context) -> Way:
    """How a value of ``type`` in ``source`` becomes one of the type ``into`` in ``target``."""
    if source == target:
        return SameUnit()
    if NO_UNIT in (source, target):
        return SameUnit(one_sided=True)
    if (declared := declared_between(source, target, type, into, context)) is not None:
        return ByUnitFunction(function=declared)
    if source.labels or target.labels:
        return NoConversion(physical=False)
    try:
        scale, offset = conversion(source, target)
    except IncompatibleUnits:
        return NoConversion(physical=True)
    if not _SMALLEST < abs(scale) < _LARGEST:
        return NoConversion(physical=True)  # no double expresses the factor
    return LinearConversion(scale=scale, offset=offset)


def declared_between(source: Unit, target: Unit, type: Type, into: Type, context: Context) -> Conversion | None:
    """The function from one unit to the other that takes this type: of the nearest context, there the last.

    Names are bound late: where a nearer context has a function of that name, that one is meant.
    """
    seen: set[str] = set()
    for each in context.chain:
        for name, function in reversed(list(each.functions.items())):
            if name in seen:
                continue
            seen.add(name)
            units = (function.parameter.unit, function.result.unit)
            if units == (source, target) and fits(type, function.parameter.type) and fits(function.result.type, into):
                return function
    return None


class Fractional(Exception):
    """Whole numbers do not stay whole on the way."""


class NotConvertible(Exception):
    """A number of this type cannot become one of that."""


def convert_unit(node: Node, way: LinearConversion, into: Type, unit: Unit) -> Node:
    """The node in another unit; :class:`Fractional` or :class:`NotConvertible` where the types do not allow it."""
    given, wanted = plain(node.type), plain(into)
    whole = given in (INT, LONG)
    if wanted == DOUBLE and (whole or given == DOUBLE):
        return Coerce(node, DOUBLE, unit, way.scale, way.offset)
    if isinstance(wanted, Decimal) and (whole or isinstance(given, Decimal)):
        return linear(node, wanted, unit, way.scale, way.offset)
    if wanted in (INT, LONG) and whole and fits(given, wanted):
        if way.scale.denominator != 1 or way.offset.denominator != 1:
            raise Fractional
        return linear(node, wanted, unit, way.scale, way.offset)
    raise NotConvertible


def rounds(way: LinearConversion, type: Type, into: Type) -> bool:
    """Whether digits are lost: a decimal may need more of them than it has."""
    given, wanted = plain(type), plain(into)
    if not isinstance(wanted, Decimal):
        return False
    scale = given.scale if isinstance(given, Decimal) else 0
    needed = 10**wanted.scale
    return bool(way.scale * needed % 10**scale) or bool((way.offset * needed).denominator != 1)
