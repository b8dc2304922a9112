"""Formats of records: what reads the records of a client's topics, and what writes those of a subscription's.

JSON is read and written here, Avro and Protobuf by `situ.kafka.avro` and `situ.kafka.protobuf`, which find schemas in
the registry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from situ.kafka.connection import KafkaAddress
from situ.kafka.records import Decode, RecordReader
from situ.model import Deployment
from situ.routing.model import Subscription
from situ.routing.topics import AVRO, CLOUDEVENTS, PROTOBUF, TopicSource, TopicTarget

if TYPE_CHECKING:
    from situ.kafka.schema_registry import SchemaRegistry

Encode = Callable[[str, bytes], bytes]
"""Type and data of an event, as JSON → the value of its record; ``SituError`` if it does not fit."""

KEY = "situkey"
"""The header, and in a line the attribute, with the key of the event: the same however often it is written."""

_AVRO, _PROTOBUF = "application/avro", "application/protobuf"
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_any = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode


class WrittenRecord(msgspec.Struct, frozen=True):
    """What is written to a topic."""

    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...]


def reader_of(source: TopicSource, address: KafkaAddress) -> RecordReader:
    """What reads the records of a client's topics."""
    if source.format == AVRO:
        from situ.kafka.avro import AvroReader

        return RecordReader(source, _once(AvroReader, address))
    if source.format == PROTOBUF:
        from situ.kafka.protobuf import ProtobufReader

        return RecordReader(source, _once(ProtobufReader, address))
    return RecordReader(source)


_readers: dict[tuple[type, str], Any] = {}


def _once(of: Callable[[SchemaRegistry], Decode], address: KafkaAddress) -> Decode:
    """One for each process: it remembers schemas."""
    from situ.kafka.schema_registry import SchemaRegistry  # with httpx, which takes long to load

    key = (of, address.registry)
    if key not in _readers:
        _readers[key] = of(SchemaRegistry(address.registry))  # type: ignore[index]
    found: Decode = _readers[key]  # type: ignore[index]
    return found


def writer_of(subscription: Subscription, deployment: Deployment, address: KafkaAddress) -> RecordWriter:
    """What writes the records of a subscription's topic."""
    target = subscription.kafka
    assert target is not None
    if target.format not in (AVRO, PROTOBUF):
        return RecordWriter(target)
    from situ.kafka.schema_registry import SchemaRegistry

    types = deployment.contexts.by_id[subscription.context].types
    registry = SchemaRegistry(address.registry)
    if target.format == AVRO:
        from situ.kafka.avro import AvroWriter

        return RecordWriter(target, AvroWriter(registry, target.topic, types, msgspec.json.decode), _AVRO)
    from situ.kafka.protobuf import ProtobufWriter

    return RecordWriter(target, ProtobufWriter(registry, target.topic, types, msgspec.json.decode), _PROTOBUF)


class RecordWriter:
    """Writes events as records: in binary mode of CloudEvents, with the data as value; or as whole CloudEvents."""

    def __init__(self, target: TopicTarget, encode: Encode | None = None, content: str = "application/json") -> None:
        self._target = target
        self._encode = encode
        self._content = content.encode()

    def record(self, line: bytes) -> WrittenRecord:
        """The record of a delivered event; ``SituError`` if it does not fit the format."""
        members = _members.decode(line)
        data = members.pop("data", msgspec.Raw(b"{}"))
        own: str = _any.decode(members.get(KEY, msgspec.Raw(b'""')))
        # What is only Situ's own says nothing to others, and would not be let in again.
        said = {name: each for name, each in members.items() if not name.startswith("situ")}
        key = self._key(bytes(data)) if self._target.key else own.encode()
        if self._target.format == CLOUDEVENTS:
            headers = [("content-type", b"application/cloudevents+json"), (KEY, own.encode())]
            return WrittenRecord(key, _encode({**said, "data": data}), tuple(headers))
        headers = [("content-type", self._content), (KEY, own.encode())]
        headers += [(f"ce_{name}", _header(each)) for name, each in said.items()]
        value = bytes(data)
        if self._encode is not None:
            value = self._encode(_any.decode(members["type"]), value)
        return WrittenRecord(key, value, tuple(headers))

    def _key(self, data: bytes) -> bytes | None:
        """The attribute as text; none where the event has none."""
        found = _members.decode(data).get(self._target.key)
        value: Any = None if found is None else _any.decode(found)
        if value is None or found is None:
            return None
        return value.encode() if isinstance(value, str) else bytes(found)


def _header(value: msgspec.Raw) -> bytes:
    found = _any.decode(value)
    return found.encode() if isinstance(found, str) else bytes(value)
