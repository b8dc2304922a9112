"""How values lie in the columns of an engine: a struct with subtypes as the union of all their attributes.

Spark and Arrow know no subtypes. A struct that has some gets a column ``$type`` and, after its own attributes, those
of its subtypes, which are empty where the value is of another type. This module decides on columns and names; the words
for them are :mod:`situ.types.spark_schema` and :mod:`situ.types.arrow_schema`.

Every column may be empty, whatever is declared: engines hold values before they are checked, and Spark and Arrow do not
agree on what a required field of a struct that is not there means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from situ.types.encode import TYPE_KEY
from situ.types.model import STRING, Attribute, Struct, Type, is_subtype
from situ.types.table import Types
from situ.units import NO_UNIT, Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
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
