"""Types in the words of Spark SQL: schemas as text, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import assert_never

from situ.types.layout import columns
from situ.types.model import (
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
    Primitive,
    Struct,
    Type,
    plain,
)
from situ.types.table import Types

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
