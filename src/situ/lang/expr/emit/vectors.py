"""Columns that expressions are computed over: how values lie in them, and vectors of outcomes for many rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from situ.lang.expr.runtime import instant_of_micros, micros
from situ.lang.types.json_codec import encoder
from situ.lang.types.layout import shape
from situ.lang.types.model import BOOLEAN, DOUBLE, DURATION, INT, LONG, STRING, TIMESTAMP, Type, plain

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Values as columns: the form in which many of one type lie side by side.
#
# Doubles, whole numbers, booleans and texts are Arrow's own; instants and durations are whole microseconds; whatever
# else there is, decimals, dates, bytes, lists and structs, is its canonical JSON text. Null is Arrow's null.

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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Columns under evaluation: values of many rows at once, or of all pairs of two sets of rows.
#
# A :class:`Vector` holds what an expression is for each row: a value, null, or failure. A :class:`Batch` is a set of
# rows whose columns are converted once, however many expressions read them. A :class:`Frame` says how batches lie to
# each other: those of one row beside each other, or each row of one against each row of the other.

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]

Key = tuple[str, tuple[str, ...]]
"""A column: the variable, and the path below it."""
Columns = Mapping[Key, pa.Array | pa.ChunkedArray | Array]

_DTYPES: Mapping[Type, type] = {
    BOOLEAN: np.bool_,
    INT: np.int64,
    LONG: np.int64,
    TIMESTAMP: np.int64,
    DURATION: np.int64,
    DOUBLE: np.float64,
}


class Vector(NamedTuple):
    """The outcome in each row: ``values`` count where neither ``null`` nor ``failed`` is true; None: nowhere true.

    Where both are true it has failed.
    """

    values: Array
    null: Bools | None = None
    failed: Bools | None = None

    @property
    def holds(self) -> Bools:
        """Where a condition is true."""
        result = self.values
        for mask in (self.null, self.failed):
            if mask is not None:
                result = result & ~mask
        return result


class Chosen:
    """A vector that is put together, each row by the first that has something for it."""

    def __init__(self, shape: tuple[int, ...], type: Type) -> None:
        self.open = np.ones(shape, np.bool_)
        self._values = np.zeros(shape, dtype_of(type))
        self._null = np.zeros(shape, np.bool_)
        self._failed = np.zeros(shape, np.bool_)

    def fail(self, where: Bools) -> None:
        failing = self.open & where
        self._failed |= failing
        self.open &= ~failing

    def put(self, where: Bools, found: Vector) -> None:
        chosen = self.open & where
        np.copyto(self._values, found.values, where=chosen)
        if found.null is not None:
            self._null |= chosen & found.null
        if found.failed is not None:
            self._failed |= chosen & found.failed
        self.open &= ~chosen

    def vector(self, null: Bools | None = None) -> Vector:
        absent = self._null if null is None else self._null | null
        return Vector(self._values, absent if absent.any() else None, self._failed if self._failed.any() else None)


class _Failed:
    """Stands in a list of outcomes where there is none."""


FAILED = _Failed()


def dtype_of(type: Type) -> Any:
    """The type of numpy's array in which values of a type lie."""
    return _DTYPES.get(plain(type), np.object_)


def is_text(type: Type) -> bool:
    """Whether columns of a type are texts, of which a few often stand in many rows."""
    return bool(column_type(type) == pa.string())


def either(*masks: Bools | None) -> Bools | None:
    """Where one of them is true; None if that is nowhere."""
    result: Bools | None = None
    for mask in masks:
        if mask is not None:
            result = mask if result is None else result | mask
    return result


def vector_of(outcomes: Sequence[Any], type: Type) -> Vector:
    """Outcomes of single rows, None for null and :data:`FAILED`, as a vector."""
    bare, dtype = plain(type), dtype_of(type)
    null = np.fromiter((each is None for each in outcomes), np.bool_, len(outcomes))
    failed = np.fromiter((each is FAILED for each in outcomes), np.bool_, len(outcomes))
    values = np.zeros(len(outcomes), dtype)
    for place, each in enumerate(outcomes):
        if each is not None and each is not FAILED:
            values[place] = as_number(each, bare)
    return Vector(values, null if null.any() else None, failed if failed.any() else None)


def as_number(value: Any, type: Type) -> Any:
    """Instants and durations as what they are in columns; everything else as it is."""
    if type == TIMESTAMP:
        return micros(value)
    if type == DURATION:
        return value // _MICROSECOND
    return value


class Batch:
    """Columns of one set of rows."""

    def __init__(self, columns: Columns, count: int) -> None:
        self.count = count
        self._columns = columns
        self._arrays: dict[Key, pa.Array] = {}
        self._vectors: dict[Key, Vector] = {}
        self._objects: dict[Key, Array] = {}
        self._coded: dict[Key, tuple[Array, list[Any]]] = {}

    def array(self, key: Key) -> pa.Array:
        """The column in Arrow's form."""
        found = self._arrays.get(key)
        if found is None:
            found = self._columns[key]
            if isinstance(found, np.ndarray):
                found = pa.array(found)
            if isinstance(found, pa.ChunkedArray):
                found = found.combine_chunks()
            if pa.types.is_dictionary(found.type):
                found = found.dictionary_decode()
            self._arrays[key] = found
        return found

    def vector(self, key: Key, type: Type) -> Vector:
        """The column as values to compute with."""
        found = self._vectors.get(key)
        if found is None:
            found = self._vectors[key] = self._vector(key, type)
        return found

    def _vector(self, key: Key, type: Type) -> Vector:
        dtype = dtype_of(type)
        if dtype is np.object_:
            objects = self.objects(key, type)
            return Vector(objects, self._null(key))
        given = self._columns[key]
        if isinstance(given, np.ndarray):
            return Vector(given.astype(dtype, copy=False))
        array = self.array(key)
        if pa.types.is_null(array.type):
            return Vector(np.zeros(self.count, dtype), np.ones(self.count, np.bool_))
        null = self._null(key)
        if null is not None:
            array = array.fill_null(False if dtype is np.bool_ else 0)
        return Vector(array.to_numpy(zero_copy_only=False).astype(dtype, copy=False), null)

    def _null(self, key: Key) -> Bools | None:
        array = self.array(key)
        return array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None

    def objects(self, key: Key, type: Type) -> Array:
        """The column as values of Python, None for null."""
        found = self._objects.get(key)
        if found is None:
            if is_text(type):
                codes, values = self.coded(key, type)
                found = object_array(values)[codes]
            else:
                found = object_array(values_of(self.array(key), type))
            self._objects[key] = found
        return found

    def coded(self, key: Key, type: Type) -> tuple[Array, list[Any]]:
        """A column of texts as places in a list of its different values of Python; null, if there, is the last."""
        found = self._coded.get(key)
        if found is None:
            array = self.array(key)
            if pa.types.is_null(array.type):
                array = array.cast(column_type(type))
            encoded = array.dictionary_encode()
            values = values_of(encoded.dictionary, type)
            indices = encoded.indices
            if indices.null_count:
                indices = indices.fill_null(len(values))
                values = [*values, None]
            found = self._coded[key] = (indices.to_numpy(zero_copy_only=False), values)
        return found


class RowsOf(Batch):
    """Some rows of a batch, in any order; what the batch has converted is not converted again."""

    def __init__(self, batch: Batch, places: Array) -> None:
        super().__init__({}, len(places))
        self._batch, self._places = batch, places

    def array(self, key: Key) -> pa.Array:
        found = self._arrays.get(key)
        if found is None:
            found = self._arrays[key] = self._batch.array(key).take(pa.array(self._places))
        return found

    def _vector(self, key: Key, type: Type) -> Vector:
        found = self._batch.vector(key, type)
        return Vector(found.values[self._places], None if found.null is None else found.null[self._places])

    def objects(self, key: Key, type: Type) -> Array:
        found = self._objects.get(key)
        if found is None:
            found = self._objects[key] = self._batch.objects(key, type)[self._places]
        return found

    def coded(self, key: Key, type: Type) -> tuple[Array, list[Any]]:
        found = self._coded.get(key)
        if found is None:
            codes, values = self._batch.coded(key, type)
            found = self._coded[key] = (codes[self._places], values)
        return found


def object_array(values: Sequence[Any]) -> Array:
    result = np.empty(len(values), np.object_)
    for place, value in enumerate(values):
        result[place] = value
    return result


class Frame:
    """Rows under evaluation. Columns of a variable lie along one axis of the result, whose shape is ``shape``."""

    def __init__(self, batches: Mapping[str, Batch], axes: Mapping[str, int], shape: tuple[int, ...]) -> None:
        self._batches, self._axes, self.shape = batches, axes, shape

    @classmethod
    def of_rows(cls, batch: Batch, variables: Sequence[str]) -> Frame:
        return cls(dict.fromkeys(variables, batch), dict.fromkeys(variables, 0), (batch.count,))

    @classmethod
    def of_pairs(cls, rows: tuple[str, Batch], others: tuple[str, Batch]) -> Frame:
        """Each row of the one against each of the other."""
        (left, batch), (right, other) = rows, others
        return cls({left: batch, right: other}, {left: 0, right: 1}, (batch.count, other.count))

    def batch(self, key: Key) -> Batch:
        return self._batches[key[0]]

    def laid(self, key: Key, values: Array) -> Array:
        """Values of a column along the axis of its variable."""
        if len(self.shape) == 1:
            return values
        return values[:, np.newaxis] if self._axes[key[0]] == 0 else values[np.newaxis, :]

    def vector(self, key: Key, type: Type) -> Vector:
        found = self.batch(key).vector(key, type)
        if len(self.shape) == 1:
            return found
        null = None if found.null is None else self.laid(key, found.null)
        return Vector(self.laid(key, found.values), null)
