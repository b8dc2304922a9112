"""Reaching into values: the attribute of a struct, wherever the struct comes from."""

from __future__ import annotations

from situ.expr.overload import Overflow
from situ.expr.scope import Scope
from situ.expr.tree import Field, MakeStruct, Node, Read, Span, fails_as_argument
from situ.types.model import STRING, Attribute, Struct, Type, plain, unit_below
from situ.units import NO_UNIT

_DYNAMIC_TYPE = Attribute(name="$type", type=STRING, optional=True)


def attribute_names(type: Type) -> tuple[str, ...]:
    struct = plain(type)
    return tuple(attribute.name for attribute in struct.attributes) if isinstance(struct, Struct) else ()


def attribute_set(struct: Struct) -> set[str]:
    return {attribute.name for attribute in struct.attributes}


def attribute_of(of: Node, name: str, scope: Scope, span: Span) -> Node | None:
    """The node that reads attribute ``name`` of ``of``; None if its type has no such attribute."""
    struct = plain(of.type)
    attribute = _attribute(struct, name, scope) if isinstance(struct, Struct) else None
    if attribute is None:
        return None
    unit = unit_below(struct, of.unit, attribute) if scope.with_units else NO_UNIT
    match of:
        case Read(variable=variable, path=path, optional=optional, trusted=trusted):
            return Read(
                variable,
                (*path, name),
                attribute.type,
                unit,
                (*optional, attribute.nullable),
                trusted,
                span=span,
            )
        case MakeStruct(fields=fields) if stands_alone(name, fields):
            return dict(fields)[name]
        case _:
            return Field(of, name, attribute.type, unit, attribute.nullable, span=span)


def _attribute(struct: Struct, name: str, scope: Scope) -> Attribute | None:
    if name != "$type":
        return struct.attribute(name)
    # Only a struct that has subtypes can be something else than declared, and says so in its value.
    varies = scope.types is not None and len(scope.types.subtypes(struct)) > 1
    return _DYNAMIC_TYPE if varies else None


def stands_alone(name: str, fields: tuple[tuple[str, Node], ...]) -> bool:
    """Whether taking one attribute instead of the whole struct changes no failure."""
    return all(
        not fails_as_argument(part, Overflow.NONE) and (part_name == name or not part.can_fail)
        for part_name, part in fields
    )
