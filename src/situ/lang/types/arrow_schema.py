"""Types as Arrow schemas. The metadata of a field names its unit (``situ.unit``) and its type (``situ.type``)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import assert_never

import pyarrow as pa

from situ.lang.types.layout import Column, columns
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
    Decimal,
    ListOf,
    Named,
    Primitive,
    Struct,
    Type,
    plain,
)
from situ.lang.types.table import Types
from situ.lang.units import NO_UNIT

ARROW_TYPES: Mapping[Primitive, pa.DataType] = MappingProxyType(
    {
        BOOLEAN: pa.bool_(),
        INT: pa.int32(),
        LONG: pa.int64(),
        DOUBLE: pa.float64(),
        STRING: pa.string(),
        BYTES: pa.binary(),
        DATE: pa.date32(),
        TIMESTAMP: pa.timestamp("us", tz="UTC"),
        DURATION: pa.int64(),  # microseconds, as in Spark
    }
)


def arrow_schema(struct: Struct, types: Types) -> pa.Schema:
    """The schema of a table of such structs."""
    return pa.schema([_field(column, types) for column in columns(struct, types)])


def arrow_type(type: Type, types: Types) -> pa.DataType:
    """The type of one column."""
    bare = plain(type)
    match bare:
        case Primitive():
            return ARROW_TYPES[bare]
        case Decimal(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case ListOf(element=element):
            return pa.list_(arrow_type(element, types))
        case Struct():
            return pa.struct([_field(column, types) for column in columns(bare, types)])
        case _:
            assert_never(bare)


def _field(column: Column, types: Types) -> pa.Field:
    notes: dict[str, str] = {}
    if column.unit != NO_UNIT:
        notes["situ.unit"] = str(column.unit)
    if isinstance(column.type, Named | Struct) and column.type.name:
        notes["situ.type"] = column.type.name
    elif plain(column.type) == DURATION:
        notes |= {"situ.type": "duration", "situ.unit": "µs"}
    return pa.field(column.name, arrow_type(column.type, types), metadata=notes or None)
