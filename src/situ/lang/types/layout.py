"""How values of a type are laid out for other tools: columns of Spark and Arrow, Spark SQL schemas, msgspec shapes."""

from __future__ import annotations

import decimal
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypedDict, assert_never

import msgspec

from situ.lang.records import replace
from situ.lang.types.json_codec import TYPE_KEY
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
    Attribute,
    Decimal,
    ListOf,
    Primitive,
    Struct,
    Type,
    is_subtype,
    plain,
)
from situ.lang.types.scalars import PYTHON_TYPES
from situ.lang.types.table import Types
from situ.lang.units import NO_UNIT, Unit

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Columns: a struct with subtypes as the union of all their attributes.
#
# Spark and Arrow know no subtypes. A struct that has some gets a column ``$type`` and, after its own attributes, those
# of its subtypes, which are empty where the value is of another type. Columns and names are decided here; the words of
# Spark for them follow, those of Arrow are :mod:`situ.lang.types.arrow_schema`.
#
# Every column may be empty, whatever is declared: engines hold values before they are checked, and Spark and Arrow do
# not agree on what a required field of a struct that is not there means.


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One column of a struct; ``attribute`` is the attribute it holds, which has the same name except in a conflict."""

    name: str
    attribute: str
    type: Type
    unit: Unit = NO_UNIT


def columns(struct: Struct, types: Types) -> tuple[Column, ...]:
    """The columns of a value whose declared type is this struct.

    Attributes of one name share a column if they have one unit and one's type is above the other's. Where they cannot,
    that of the struct or of the first subtype keeps the name, the next one's column is called ``name$Subtype``.
    """
    own = [_column(attribute, attribute.name) for attribute in struct.attributes]
    below = types.subtypes(struct)[1:] if struct.name else ()
    if not below:
        return tuple(own)
    found = {column.name: [column] for column in own}
    for subtype in below:
        if isinstance(subtype, Struct):
            for attribute in subtype.attributes:
                _enter(found.setdefault(attribute.name, []), attribute, subtype.name)
    dynamic = Column(name=TYPE_KEY, attribute=TYPE_KEY, type=STRING)
    return (dynamic, *(column for same_name in found.values() for column in same_name))


def _column(attribute: Attribute, name: str) -> Column:
    return Column(name=name, attribute=attribute.name, type=attribute.type, unit=attribute.unit)


def _enter(same_name: list[Column], attribute: Attribute, subtype: str) -> None:
    for place, column in enumerate(same_name):
        if attribute.unit != column.unit:
            continue
        if is_subtype(attribute.type, column.type):
            return
        if is_subtype(column.type, attribute.type):
            same_name[place] = replace(column, type=attribute.type)
            return
    same_name.append(_column(attribute, f"{attribute.name}${subtype}" if same_name else attribute.name))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Types in the words of Spark SQL: schemas as text, without Spark.

_NAMES: Mapping[Primitive, str] = MappingProxyType(
    {
        BOOLEAN: "BOOLEAN",
        INT: "INT",
        LONG: "BIGINT",
        DOUBLE: "DOUBLE",
        STRING: "STRING",
        BYTES: "BINARY",
        DATE: "DATE",
        TIMESTAMP: "TIMESTAMP",
        DURATION: "BIGINT",  # microseconds: Spark's intervals neither compare nor compute like numbers
    }
)


def spark_schema(struct: Struct, types: Types) -> str:
    """The columns of a table of such structs, as ``StructType.fromDDL`` reads them."""
    return ", ".join(f"{_quoted(each.name)} {spark_type(each.type, types)}" for each in columns(struct, types))


def spark_type(type: Type, types: Types) -> str:
    """The type as Spark SQL writes it, as in a cast."""
    bare = plain(type)
    match bare:
        case Primitive():
            return _NAMES[bare]
        case Decimal(precision=precision, scale=scale):
            return f"DECIMAL({precision},{scale})"
        case ListOf(element=element):
            return f"ARRAY<{spark_type(element, types)}>"
        case Struct():
            fields = (f"{_quoted(each.name)}: {spark_type(each.type, types)}" for each in columns(bare, types))
            return f"STRUCT<{', '.join(fields)}>"
        case _:
            assert_never(bare)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What msgspec reads canonical JSON text into: the values of a type as all of Situ works with them.
#
# The text is trusted: it was written by :mod:`situ.lang.types.json_codec` or is part of data that was checked. The
# result equals what its decoders give.
#
# Where a struct is declared a value of a subtype may stand. Given the table of types, its shape has the attributes of
# all subtypes: which of them a value has is in the text.


class NoShape(Exception):
    """Subtypes disagree on what an attribute is, so msgspec cannot know what it reads."""


def shape(type: Type, types: Types | None = None) -> Any:
    """The type to give to msgspec for values of this type; without ``types`` no subtypes are known."""
    return _shape([type], types)


def dict_shape(struct: Struct, names: Collection[str] | None, types: Types | None = None) -> Any:
    """The same for a struct, and nothing below it, of which only these attributes are wanted; None: all of them."""
    wanted = [each for each in struct.attributes if names is None or each.name in names]
    return _of_attributes(struct.name, wanted, types)


def _shape(alternatives: Iterable[Type], types: Types | None) -> Any:
    """For values that are of any of these types; :class:`NoShape` if those are read differently."""
    kinds = list(dict.fromkeys(plain(each) for each in alternatives))
    structs = [each for each in kinds if isinstance(each, Struct)]
    if len(structs) == len(kinds):
        every = dict.fromkeys(below for each in structs for below in _any_of(each, types))
        return _of_attributes(structs[0].name, (attribute for each in every for attribute in each.attributes), types)
    lists = [each for each in kinds if isinstance(each, ListOf)]
    if len(lists) == len(kinds):
        return list[_shape([each.element for each in lists], types) | None]  # type: ignore[misc]  # made at run time
    single = {_single(each) for each in kinds}
    if len(single) > 1 or None in single:
        raise NoShape
    return single.pop()


def _single(type: Type) -> Any:
    if isinstance(type, Primitive):
        return PYTHON_TYPES[type]
    return decimal.Decimal if isinstance(type, Decimal) else None


def _any_of(struct: Struct, types: Types | None) -> list[Struct]:
    if types is None or not struct.name:
        return [struct]
    return [each for each in types.subtypes(struct) if isinstance(each, Struct)]


def _of_attributes(name: str, attributes: Iterable[Attribute], types: Types | None) -> Any:
    declared: dict[str, list[Type]] = {}
    for each in attributes:
        declared.setdefault(each.name, []).append(each.type)
    shapes: dict[str, Any] = {each: _shape(found, types) for each, found in declared.items()}
    shapes[TYPE_KEY] = str
    return TypedDict(name or "Data", shapes, total=False)  # type: ignore[operator]  # made at run time
