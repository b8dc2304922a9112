"""What msgspec reads canonical JSON text into: the values of a type as all of Situ works with them.

The text is trusted: it was written by :mod:`situ.types.encode` or is part of data that was checked. The result equals
what :mod:`situ.types.decode` gives.

Where a struct is declared a value of a subtype may stand. Given the table of types, its shape has the attributes of all
subtypes: which of them a value has is in the text.
"""

from __future__ import annotations

import decimal
from collections.abc import Collection, Iterable
from typing import Any, TypedDict

from situ.types.encode import TYPE_KEY
from situ.types.model import Attribute, Decimal, ListOf, Primitive, Struct, Type, plain
from situ.types.python_values import PYTHON_TYPES
from situ.types.table import Types


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
