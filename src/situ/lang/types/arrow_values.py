"""Values of types as Arrow arrays and back: what functions of Python take and give.

A struct has its declared attributes; what a value of a subtype has besides is not in the array. What comes back is
held to the type that was promised: other numbers that fit are taken, all else is refused with what was found.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from situ.lang.types.arrow_schema import ARROW_TYPES
from situ.lang.types.model import DOUBLE, DURATION, TIMESTAMP, Decimal, ListOf, Primitive, Struct, Type, plain

_TYPES: Mapping[Primitive, pa.DataType] = MappingProxyType(
    # Functions compute with durations, whose values have a type of their own in Arrow.
    {**ARROW_TYPES, DURATION: pa.duration("us")}
)
_FAMILIES: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_boolean,
    lambda type: bool(pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type)),
    lambda type: bool(pa.types.is_string(type) or pa.types.is_large_string(type)),
    lambda type: bool(pa.types.is_binary(type) or pa.types.is_large_binary(type)),
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_duration,
    lambda type: bool(pa.types.is_list(type) or pa.types.is_large_list(type)),
    pa.types.is_struct,
)


class ArrayMismatch(ValueError):
    """An array that is not what was promised."""


def function_type(type: Type) -> pa.DataType:
    """The type of an array of such values."""
    bare = plain(type)
    match bare:
        case Primitive():
            return _TYPES[bare]
        case Decimal(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case ListOf(element=element):
            return pa.list_(function_type(element))
        case Struct(attributes=attributes):
            return pa.struct([pa.field(each.name, function_type(each.type)) for each in attributes])


def to_array(values: Sequence[Any], type: Type) -> pa.Array:
    return pa.array(values, function_type(type))


def from_array(array: Any, type: Type, count: int) -> list[Any]:
    """The values of an array of that many; :class:`Unfit` if it is none."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if not isinstance(array, pa.Array):
        raise ArrayMismatch(f"it gave {_called(array)}, not an array of pyarrow")
    if len(array) != count:
        raise ArrayMismatch(f"it gave {len(array)} values for {count}")
    expected = function_type(type)
    if not _alike(array.type, expected):
        raise ArrayMismatch(f"it gave an array of {array.type}, not of {expected}")
    try:
        cast = array if array.type == expected else array.cast(expected, safe=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ArrayMismatch(f"it gave an array of {array.type}, which is none of {expected}: {error}") from None
    return [_value(each, type) for each in cast.to_pylist()]


def _called(value: object) -> str:
    return f"a {type(value).__name__}" if value is not None else "nothing"


def _alike(found: pa.DataType, expected: pa.DataType) -> bool:
    """Whether casting the one to the other is no more than writing the same values otherwise."""
    if pa.types.is_null(found) or found == expected:
        return True
    if not any(family(found) and family(expected) for family in _FAMILIES):
        return False
    if pa.types.is_struct(expected):
        names = {found.field(place).name for place in range(found.num_fields)}
        return all(
            each.name in names and _alike(found.field(each.name).type, each.type)
            for each in (expected.field(place) for place in range(expected.num_fields))
        )
    if pa.types.is_list(expected):
        return _alike(found.value_type, expected.value_type)
    if pa.types.is_integer(expected):
        return bool(pa.types.is_integer(found))
    return not pa.types.is_timestamp(expected) or found.tz is not None


def _value(value: Any, type: Type) -> Any:
    """As engines hold it; what is absent in a struct is not in it."""
    bare = plain(type)
    if value is None:
        return None
    match bare:
        case Struct(attributes=attributes):
            found = ((each.name, _value(value.get(each.name), each.type)) for each in attributes)
            return {name: part for name, part in found if part is not None}
        case ListOf(element=element):
            return [_value(each, element) for each in value]
        case _:
            if bare == DOUBLE and not math.isfinite(value):
                raise ArrayMismatch(f"it gave {value}, which is no number")
            return value.astimezone(dt.UTC) if bare == TIMESTAMP else value
