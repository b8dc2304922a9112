"""Data of events between Arrow columns and text: what Python makes of a row of a DataFrame, and gives back.

`DataColumn` is the column ``data`` of one event type: structs in the layout of :mod:`situ.lang.types.layout`, in which
values of subtypes share one struct. It reads canonical JSON text into the column and writes it again, and understands
what Spark's ``to_json`` wrote of such a struct, which is how failed rows are kept. It knows no DataFrame.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from situ.lang.types.arrow_schema import arrow_type
from situ.lang.types.json_codec import TYPE_KEY, decoder, encoder
from situ.lang.types.layout import Column, NoShape, columns, shape
from situ.lang.types.model import DURATION, Attribute, ListOf, Struct, Type, is_subtype, plain
from situ.lang.types.scalars import print_duration
from situ.lang.types.table import Types

Value = Mapping[str, Any]
"""The data of an event as a value of its type: what is absent is not in it."""

_encode = msgspec.json.Encoder().encode
_MICROSECOND = dt.timedelta(microseconds=1)


class DataColumn:
    """The column ``data`` of one event type."""

    def __init__(self, struct: Struct, types: Types) -> None:
        self.struct, self.types = struct, types
        self.arrow: pa.StructType = arrow_type(struct, types)
        self._read = _reader(struct, types)
        self._write = encoder(struct, types)
        changes = not _is_plain(struct, types)
        self._into = _Layout(types, _micros).change if changes else None
        self._back = _Value(types, _duration).change if changes else None

    def of_texts(self, texts: Sequence[bytes | None]) -> pa.Array:
        """A column of canonical texts; null where there is none."""
        return self.of_values([None if text is None else self._read(text) for text in texts])

    def of_values(self, values: Sequence[Value | None]) -> pa.Array:
        if self._into is not None:
            values = [self._into(value, self.struct, self.struct) for value in values]
        return pa.array(values, self.arrow)

    def values(self, column: pa.Array) -> list[Value | None]:
        """The values of a column, None for null."""
        back = self._back or _Value(self.types, _duration).change
        return [back(value, self.struct, self.struct) for value in column.to_pylist()]

    def texts(self, column: pa.Array) -> list[bytes | None]:
        """Their canonical texts."""
        write = self._write
        # What is absent need not be taken out of plain values: it is not written.
        values = column.to_pylist() if self._back is None else self.values(column)
        return [None if value is None else _encode(write(value)) for value in values]

    def layout_json(self, text: str) -> Any:
        """The JSON value that is meant by what Spark wrote of a struct in this layout."""
        return _Value(self.types, _duration_text).change(msgspec.json.decode(text), self.struct, self.struct)


def _reader(struct: Struct, types: Types) -> Callable[[bytes], Any]:
    """Reads canonical text, which is trusted, into a value."""
    try:
        read: Callable[[bytes], Any] = msgspec.json.Decoder(shape(struct, types)).decode
        return read
    except NoShape:
        decode = decoder(struct, types)
        return lambda text: decode(msgspec.json.decode(text)).value


def _is_plain(type: Type, types: Types) -> bool:
    """Whether a value and its columns look alike: no subtypes, and nothing that columns hold as a number."""
    bare = plain(type)
    match bare:
        case ListOf(element=element):
            return _is_plain(element, types)
        case Struct(name=name):
            if name and len(types.subtypes(bare)) > 1:
                return False
            return all(_is_plain(each.type, types) for each in bare.attributes)
        case _:
            return bare != DURATION


class _Relayout:
    """Goes through a value, by the declared type of each place and the type that it has there."""

    def __init__(self, types: Types, duration: Callable[[Any], Any]) -> None:
        self._types = types
        self._duration = duration

    def change(self, value: Any, declared: Type, own: Type) -> Any:
        bare, has = plain(declared), plain(own)
        if value is None:
            return None
        match bare:
            case ListOf(element=element):
                inner = has.element if isinstance(has, ListOf) else element
                return [self.change(each, element, inner) for each in value]
            case Struct():
                named = value.get(TYPE_KEY)
                exact = self._types.get(named) if named is not None else has
                return self.fields(value, bare, exact if isinstance(exact, Struct) else bare)
            case _:
                return self._duration(value) if bare == DURATION else value

    def fields(self, value: Any, declared: Struct, exact: Struct) -> Any:
        raise NotImplementedError


class _Layout(_Relayout):
    """A value → the struct that Spark has of it."""

    def fields(self, value: Any, declared: Struct, exact: Struct) -> Any:
        found: dict[str, Any] = {}
        for column in columns(declared, self._types):
            attribute = exact.attribute(column.attribute)
            if column.name == TYPE_KEY:
                found[TYPE_KEY] = value.get(TYPE_KEY)
            elif attribute is not None and holds(column, attribute):
                found[column.name] = self.change(value.get(column.attribute), column.type, attribute.type)
        return found


class _Value(_Relayout):
    """The struct that Spark has → the value."""

    def fields(self, value: Any, declared: Struct, exact: Struct) -> Any:
        found: dict[str, Any] = {}
        if value.get(TYPE_KEY) is not None:
            found[TYPE_KEY] = value[TYPE_KEY]
        for column in columns(declared, self._types):
            attribute = exact.attribute(column.attribute)
            if attribute is None or not holds(column, attribute) or attribute.name in found:
                continue
            part = self.change(value.get(column.name), column.type, attribute.type)
            if part is not None:
                found[attribute.name] = part
        return found


def holds(column: Column, attribute: Attribute) -> bool:
    """Whether the column has the values of this attribute, as a type or one of its subtypes declares it."""
    return (
        column.attribute == attribute.name and column.unit == attribute.unit and is_subtype(attribute.type, column.type)
    )


def _micros(value: dt.timedelta) -> int:
    return value // _MICROSECOND


def _duration(value: int) -> dt.timedelta:
    return dt.timedelta(microseconds=value)


def _duration_text(value: int) -> str:
    return print_duration(dt.timedelta(microseconds=value))
