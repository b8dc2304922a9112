"""Avro: values of records by the schema that they name, and schemas of ours for the types of events."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as Number
from typing import Any, assert_never
from uuid import UUID

from situ.kafka.connection import library
from situ.kafka.schema_registry import Schema, SchemaRegistry, SchemaWriter, UnknownSchema, split_value
from situ.lang.catalogue import RECORD_NOT_OF_SCHEMA, RECORD_WITHOUT_SCHEMA
from situ.lang.problems import SituError
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
    Primitive,
    Struct,
    Type,
    plain,
)
from situ.lang.types.scalars import PRINTERS
from situ.lang.types.table import Types

_FORMAT = "Avro"
_MICROSECOND = timedelta(microseconds=1)


class AvroReader:
    """Values of topics → their fields as JSON values."""

    def __init__(self, registry: SchemaRegistry) -> None:
        with library():
            import fastavro  # noqa: F401 - it is looked for before anything is read
        self._registry = registry
        self._parsed: dict[int, Any] = {}

    def __call__(self, topic: str, value: bytes) -> dict[str, Any]:
        import fastavro

        id, content = split_value(topic, value)
        schema = self._schema(topic, id)
        text = io.BytesIO(content)
        try:
            found = fastavro.schemaless_reader(text, schema, None)
            if text.tell() != len(content):
                raise ValueError("there is more than one value")
        except Exception as error:  # noqa: BLE001 - whatever the library raises is about these bytes
            raise _unfit(topic, id, error) from None
        if not isinstance(found, dict):
            raise _unfit(topic, id, ValueError("it is no record"))
        return {name: _as_json(each) for name, each in found.items() if each is not None}

    def _schema(self, topic: str, id: int) -> Any:
        if id not in self._parsed:
            try:
                found = self._registry.schema(id)
            except UnknownSchema:
                raise _without(topic, id, "the registry does not have it") from None
            if found.kind != "AVRO":
                raise _without(topic, id, f"it is {found.kind}")
            try:
                self._parsed[id] = _parse(found, {})
            except SituError:
                raise
            except Exception as error:  # noqa: BLE001 - of the schema
                raise _without(topic, id, str(error)[:200]) from None
        return self._parsed[id]


def _parse(schema: Schema, known: dict[str, Any]) -> Any:
    import fastavro

    for _, each in schema.references:
        _parse(each, known)
    return fastavro.parse_schema(json.loads(schema.text), named_schemas=known)


def _as_json(value: Any) -> Any:
    match value:
        case datetime():
            return PRINTERS[TIMESTAMP](value if value.tzinfo is not None else value.replace(tzinfo=UTC))
        case date():
            return value.isoformat()
        case bytes():
            return PRINTERS[BYTES](value)
        case Number():
            return format(value, "f")
        case UUID():
            return str(value)
        case dict():
            return {name: _as_json(each) for name, each in value.items() if each is not None}
        case list() | tuple():
            return [_as_json(each) for each in value]
        case _:
            return value


def _unfit(topic: str, id: int, error: Exception) -> SituError:
    reason = " ".join(str(error).split()).rstrip(".")[:200] or type(error).__name__
    return SituError(RECORD_NOT_OF_SCHEMA(topic=topic, format=_FORMAT, schema=id, reason=reason))


def _without(topic: str, id: int, reason: str) -> SituError:
    return SituError(RECORD_WITHOUT_SCHEMA(topic=topic, format=_FORMAT, schema=id, reason=reason.rstrip(".")))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Writing.

_PRIMITIVES: dict[Primitive, Any] = {
    BOOLEAN: "boolean",
    INT: "int",
    LONG: "long",
    DOUBLE: "double",
    STRING: "string",
    BYTES: "bytes",
    DATE: {"type": "int", "logicalType": "date"},
    TIMESTAMP: {"type": "long", "logicalType": "timestamp-micros"},
    DURATION: "long",  # microseconds, as in Arrow
}


def avro_schema(struct: Struct) -> dict[str, Any]:
    """The schema of a type; its name has no dots, which separate namespaces there."""
    found: dict[str, Any] = _AvroSchemas().struct(struct)
    return found


class _AvroSchemas:
    def __init__(self) -> None:
        self._known: set[str] = set()

    def struct(self, struct: Struct) -> Any:
        name = struct.name.replace(".", "_")
        if name in self._known:
            return name
        self._known.add(name)
        fields = []
        for each in struct.attributes:
            type = self.type(each.type)
            field = {"name": each.name, "type": ["null", type] if each.nullable else type}
            fields.append({**field, "default": None} if each.nullable else field)
        return {"type": "record", "name": name, "fields": fields}

    def type(self, type: Type) -> Any:
        bare = plain(type)
        match bare:
            case Primitive():
                return _PRIMITIVES[bare]
            case Decimal(precision=precision, scale=scale):
                return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
            case ListOf(element=element):
                return {"type": "array", "items": self.type(element)}
            case Struct():
                return self.struct(bare)
            case _:
                assert_never(bare)


class AvroWriter(SchemaWriter):
    """Data of events → values of a topic in Avro."""

    format = _FORMAT

    def __init__(self, registry: SchemaRegistry, topic: str, types: Types, read: Callable[[bytes], Any]) -> None:
        with library():
            import fastavro  # noqa: F401 - as for reading
        super().__init__(registry, topic, types, read)

    def define(self, struct: Struct) -> tuple[str, str, Any]:
        import fastavro

        written = avro_schema(struct)
        return "AVRO", json.dumps(written), fastavro.parse_schema(written)

    def encode(self, by: Any, value: Any) -> bytes:
        import fastavro

        content = io.BytesIO()
        fastavro.schemaless_writer(content, by, _prepared(value))
        return content.getvalue()


def _prepared(value: Any) -> Any:
    match value:
        case timedelta():
            return value // _MICROSECOND
        case dict():
            return {name: _prepared(each) for name, each in value.items()}
        case list():
            return [_prepared(each) for each in value]
        case _:
            return value
