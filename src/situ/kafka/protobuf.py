"""Protobuf: values of records by the schema that they name, and schemas of ours for the types of events.

Schemas are asked for as file descriptors, which the registry makes of their texts: nothing here reads ``.proto`` files.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as Number
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

_FORMAT = "Protobuf"
_SERIALIZED = "serialized"
_INSTANT = "google.protobuf.Timestamp"
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ProtobufReader:
    """Values of topics → their fields as JSON values."""

    def __init__(self, registry: SchemaRegistry) -> None:
        with library():
            import google.protobuf  # noqa: F401 - it is looked for before anything is read
        self._registry = registry
        self._files: dict[int, Any] = {}

    def __call__(self, topic: str, value: bytes) -> dict[str, Any]:
        from google.protobuf.message import DecodeError
        from google.protobuf.message_factory import GetMessageClass

        id, content = split_value(topic, value)
        file = self._file(topic, id)
        try:
            path, begin = _read_path(content)
            found: Descriptor = list(file.message_types_by_name.values())[path[0]]
            for each in path[1:]:
                found = found.nested_types[each]
            message = GetMessageClass(found)()
            message.ParseFromString(content[begin:])
        except (DecodeError, IndexError, ValueError) as error:
            raise _unfit(topic, id, error) from None
        if _has_unknown(message):
            raise _unfit(topic, id, ValueError("it has fields that the schema does not have"))
        return _fields(message)

    def _file(self, topic: str, id: int) -> Any:
        if id not in self._files:
            from google.protobuf.descriptor_pool import DescriptorPool

            try:
                found = self._registry.schema(id, _SERIALIZED)
            except UnknownSchema:
                raise _without(topic, id, "the registry does not have it") from None
            if found.kind != "PROTOBUF":
                raise _without(topic, id, f"it is {found.kind}")
            try:
                pool = DescriptorPool()
                _add_well_known(pool)
                self._files[id] = pool.FindFileByName(_add(pool, found, f"schema-{id}.proto"))
            except Exception as error:  # noqa: BLE001 - of the schema
                raise _without(topic, id, str(error)[:200]) from None
        return self._files[id]


def _add(pool: DescriptorPool, schema: Schema, name: str) -> str:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    for named, each in schema.references:
        _add(pool, each, named)
    file = FileDescriptorProto.FromString(base64.b64decode(schema.text))
    file.name = name
    pool.Add(file)
    return name


def _add_well_known(pool: DescriptorPool) -> None:
    from google.protobuf import duration_pb2, timestamp_pb2, wrappers_pb2
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    for each in (timestamp_pb2, duration_pb2, wrappers_pb2):
        pool.Add(FileDescriptorProto.FromString(each.DESCRIPTOR.serialized_pb))


def _read_path(content: bytes) -> tuple[list[int], int]:
    """Which message of the file it is: a list of places, with its length before; a zero alone is the first."""
    count, at = _varint(content, 0)
    if count == 0:
        return [0], at
    path = []
    for _ in range(count):
        place, at = _varint(content, at)
        path.append(place)
    return path, at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(content) or shift > 28:
            raise ValueError("it does not say which message it is")
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            break
    number = (value >> 1) ^ -(value & 1)
    if number < 0:
        raise ValueError("it does not say which message it is")
    return number, at


def _has_unknown(message: Any) -> bool:
    from google.protobuf.unknown_fields import UnknownFieldSet

    return len(UnknownFieldSet(message)) > 0


def _fields(message: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        found[field.name] = _value(getattr(message, field.name), field)
    return found


def _value(value: Any, field: FieldDescriptor) -> Any:
    if _is_map(field):
        return {str(key): _single(each, field.message_type.fields_by_name["value"]) for key, each in value.items()}
    if field.is_repeated:
        return [_single(each, field) for each in value]
    return _single(value, field)


def _is_map(field: FieldDescriptor) -> bool:
    of = field.message_type
    return of is not None and bool(of.GetOptions().map_entry)


def _single(value: Any, field: FieldDescriptor) -> Any:
    of = field.message_type
    if of is not None:
        if of.full_name == _INSTANT:
            at = _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
            return PRINTERS[TIMESTAMP](at)
        return _fields(value)
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return named.name if named is not None else value
    return PRINTERS[BYTES](value) if isinstance(value, bytes) else value


def _unfit(topic: str, id: int, error: Exception) -> SituError:
    reason = " ".join(str(error).split()).rstrip(".")[:200] or type(error).__name__
    return SituError(RECORD_NOT_OF_SCHEMA(topic=topic, format=_FORMAT, schema=id, reason=reason))


def _without(topic: str, id: int, reason: str) -> SituError:
    return SituError(RECORD_WITHOUT_SCHEMA(topic=topic, format=_FORMAT, schema=id, reason=reason.rstrip(".")))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Writing. The message of a type is the first of its file; messages of parts follow.

_KINDS: dict[Primitive, str] = {
    BOOLEAN: "TYPE_BOOL",
    INT: "TYPE_INT32",
    LONG: "TYPE_INT64",
    DOUBLE: "TYPE_DOUBLE",
    STRING: "TYPE_STRING",
    BYTES: "TYPE_BYTES",
    DATE: "TYPE_STRING",
    DURATION: "TYPE_INT64",  # microseconds, as in Arrow
}


def protobuf_file(struct: Struct) -> FileDescriptorProto:
    """The file with the message of a type; attributes are numbered in their order."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    name = _message_name(struct)
    file = FileDescriptorProto(name=f"{name}.proto", syntax="proto3", package="situ")
    for each in _structs(struct, {}):
        _add_message(file.message_type.add(), each)
    if any(_uses_instants(each) for each in file.message_type):
        file.dependency.append("google/protobuf/timestamp.proto")
    return file


def _structs(struct: Struct, seen: dict[str, Struct]) -> Iterable[Struct]:
    if struct.name not in seen:
        seen[struct.name] = struct
        for attribute in struct.attributes:
            bare = plain(attribute.type)
            while isinstance(bare, ListOf):
                bare = plain(bare.element)
            if isinstance(bare, Struct):
                list(_structs(bare, seen))
    return list(seen.values())


def _message_name(struct: Struct) -> str:
    return struct.name.replace(".", "_")


def _add_message(message: DescriptorProto, struct: Struct) -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    message.name = _message_name(struct)
    for number, each in enumerate(struct.attributes, 1):
        field = message.field.add()
        field.name, field.number = each.name, number
        bare: Type = plain(each.type)
        field.label = FieldDescriptorProto.LABEL_OPTIONAL
        if isinstance(bare, ListOf):
            field.label, bare = FieldDescriptorProto.LABEL_REPEATED, plain(bare.element)
        elif each.nullable:
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add().name = f"_{each.name}"
        _set_kind(field, bare)


def _set_kind(field: Any, bare: Type) -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    match bare:
        case Primitive() if bare == TIMESTAMP:
            field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{_INSTANT}"
        case Primitive():
            field.type = getattr(FieldDescriptorProto, _KINDS[bare])
        case Decimal():
            field.type = FieldDescriptorProto.TYPE_STRING
        case Struct():
            field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".situ.{_message_name(bare)}"
        case _:
            raise ValueError("lists of lists have no form in Protobuf")


def _uses_instants(message: DescriptorProto) -> bool:
    return any(each.type_name == f".{_INSTANT}" for each in message.field)


class ProtobufWriter(SchemaWriter):
    """Data of events → values of a topic in Protobuf."""

    format = _FORMAT

    def __init__(self, registry: SchemaRegistry, topic: str, types: Types, read: Callable[[bytes], Any]) -> None:
        with library():
            import google.protobuf  # noqa: F401 - as for reading
        super().__init__(registry, topic, types, read)

    def define(self, struct: Struct) -> tuple[str, str, Any]:
        from google.protobuf.descriptor_pool import DescriptorPool
        from google.protobuf.message_factory import GetMessageClass

        file = protobuf_file(struct)
        text = base64.b64encode(file.SerializeToString(deterministic=True)).decode()
        pool = DescriptorPool()
        _add_well_known(pool)
        pool.Add(file)
        return "PROTOBUF", text, GetMessageClass(pool.FindMessageTypeByName(f"situ.{_message_name(struct)}"))

    def encode(self, by: Any, value: Any) -> bytes:
        message = by()
        _fill(message, value)
        # The first message of the file is meant.
        return b"\0" + message.SerializeToString(deterministic=True)  # type: ignore[no-any-return]


def _fill(message: Any, value: dict[str, Any]) -> None:
    for name, each in value.items():
        if name.startswith("$"):
            continue  # which subtype it is has no form there
        if isinstance(each, list):
            for item in each:
                if isinstance(item, dict):
                    _fill(getattr(message, name).add(), item)
                elif isinstance(item, datetime):
                    getattr(message, name).add().FromDatetime(item)
                else:
                    getattr(message, name).append(_prepared(item))
        elif isinstance(each, dict):
            getattr(message, name).SetInParent()
            _fill(getattr(message, name), each)
        elif isinstance(each, datetime):
            getattr(message, name).FromDatetime(each)
        else:
            setattr(message, name, _prepared(each))


def _prepared(value: Any) -> Any:
    match value:
        case timedelta():
            return value // _MICROSECOND
        case date():
            return value.isoformat()
        case Number():
            return format(value, "f")
        case _:
            return value
