"""Values as columns: the form in which many of one type lie side by side.

Doubles, whole numbers, booleans and texts are Arrow's own; instants and durations are whole microseconds; whatever else
there is, decimals, dates, bytes, lists and structs, is its canonical JSON text. Null is Arrow's null.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import msgspec
import pyarrow as pa

from situ.expr.runtime_time import instant_of_micros, micros
from situ.types.encode import encoder
from situ.types.model import BOOLEAN, DOUBLE, DURATION, INT, LONG, STRING, TIMESTAMP, Type, plain
from situ.types.shapes import shape

_MICROSECOND = dt.timedelta(microseconds=1)

_TYPES: Mapping[Type, pa.DataType] = MappingProxyType(
    {
        BOOLEAN: pa.bool_(),
        INT: pa.int64(),
        LONG: pa.int64(),
        TIMESTAMP: pa.int64(),
        DURATION: pa.int64(),
        DOUBLE: pa.float64(),
        STRING: pa.string(),
    }
)


@lru_cache(maxsize=1024)
def column_type(type: Type) -> pa.DataType:
    """What the values of a type are in a column."""
    return _TYPES.get(plain(type), pa.string())


def is_json(type: Type) -> bool:
    """Whether values of a type are written as JSON in a column."""
    return plain(type) not in _TYPES


def column(values: Iterable[Any], type: Type) -> pa.Array:
    """Values, None for null, as a column."""
    into = _into(type)
    if into is not None:
        values = [None if value is None else into(value) for value in values]
    return pa.array(values, type=column_type(type))


def values_of(array: pa.Array, type: Type) -> list[Any]:
    """The values of a column, None for null."""
    found: list[Any] = array.to_pylist()
    back = _back(type)
    if back is None:
        return found
    return [None if value is None else back(value) for value in found]


@lru_cache(maxsize=1024)
def _into(type: Type) -> Callable[[Any], Any] | None:
    bare = plain(type)
    if bare == TIMESTAMP:
        return micros
    if bare == DURATION:
        return _micros_of_duration
    return _json_writer(bare) if is_json(bare) else None


def _back(type: Type) -> Callable[[Any], Any] | None:
    bare = plain(type)
    if bare == TIMESTAMP:
        return instant_of_micros
    if bare == DURATION:
        return _duration_of_micros
    return _json_reader(bare) if is_json(bare) else None


def _micros_of_duration(value: dt.timedelta) -> int:
    return value // _MICROSECOND


def _duration_of_micros(value: int) -> dt.timedelta:
    return dt.timedelta(microseconds=value)


@lru_cache(maxsize=1024)
def _json_writer(type: Type) -> Callable[[Any], str]:
    encode = encoder(type)

    def write(value: Any) -> str:
        return msgspec.json.encode(encode(value)).decode()

    return write


@lru_cache(maxsize=1024)
def _json_reader(type: Type) -> Callable[[str], Any]:
    decode: Callable[[str], Any] = msgspec.json.Decoder(shape(type)).decode
    return decode


def below(value: Any, path: Sequence[str]) -> Any:
    """What is at this path below a value; None where something on the way is missing."""
    for step in path:
        if value is None:
            return None
        value = value.get(step)
    return value
