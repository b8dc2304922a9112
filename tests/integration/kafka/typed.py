"""Topics in Avro and Protobuf, with a registry: what is written to them, and what either engine has to make of it.

Two clients of a context with other units have records whose schemas change on the way, with garbage among them; a third
one has CloudEvents. All that is delivered in three formats, in either context.
"""

from __future__ import annotations

import base64
import io
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import fastavro
from confluent_kafka import Message
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from situ.kafka.avro import AvroReader
from situ.kafka.protobuf import ProtobufReader
from situ.kafka.schema_registry import SchemaRegistry, join_value
from tests.kafka_server import KafkaServer
from tests.schema_registry import RegistryServer

_TYPES = """
version: 1
events:
  Sample: {sensor: string, value: double °C, count: optional long}
"""
_CONTEXT = """
version: 1
context: us
extends: root
events:
  Sample: {sensor: string, value: double °F, count: optional long}
maps:
  - in: Sample -> Sample
  - out: Sample -> Sample
"""
_CLIENTS = """
version: 1
clients:
  kiln:
    context: us
    kafka: {topics: [PREFIX-avro], type: Sample, format: avro, time: at, id: n}
    advertisements: {samples: {type: Sample}}
  mill:
    context: us
    kafka: {topics: [PREFIX-proto], type: Sample, format: protobuf, time: at, id: n}
    advertisements: {samples: {type: Sample}}
  partner:
    kafka: {topics: [PREFIX-events]}
    advertisements: {samples: {type: Sample}}
  lab:
    subscriptions:
      proto: {types: [Sample], kafka: {topic: PREFIX-out-proto, key: sensor, format: protobuf}}
      whole: {types: [Sample], kafka: {topic: PREFIX-out-whole, format: cloudevents}}
  board:
    context: us
    subscriptions:
      avro: {types: [Sample], kafka: {topic: PREFIX-out-avro, key: sensor, format: avro}}
"""
_FIELDS = [
    {"name": "n", "type": "long"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "sensor", "type": "string"},
    {"name": "value", "type": "double"},
]
_COUNT = {"name": "count", "type": ["null", "long"], "default": None}
_AT = datetime(2026, 1, 1, tzinfo=UTC)
_KINDS = {"string": FieldDescriptorProto.TYPE_STRING, "double": FieldDescriptorProto.TYPE_DOUBLE}

DEAD = ["E760", "E760", "E761", "E761", "E762", "E762"]


@dataclass(frozen=True)
class Delivered:
    """A record: who is said to have sent it, its key, its form, its data."""

    source: str
    key: str | None
    content: str
    data: dict[str, Any]


class TypedTopics:
    """Topics of one test, whose names begin with ``prefix``."""

    def __init__(self, broker: KafkaServer, registry: RegistryServer, prefix: str) -> None:
        self._broker, self._registry, self._prefix = broker, registry, prefix
        self.files = {
            "types/typed.yaml": _TYPES,
            "contexts/us.yaml": _CONTEXT,
            "clients/typed.yaml": _CLIENTS.replace("PREFIX", prefix),
        }
        broker.create(*(f"{prefix}-{each}" for each in ("avro", "proto", "events")), partitions=2)
        broker.create(*(f"{prefix}-out-{each}" for each in ("avro", "proto", "whole")))

    def write_first(self) -> None:
        """Records of the first schemas, and some that are none."""
        avro = [self._avro(each, "a", 212.0) for each in range(3)]
        self._write("avro", [*avro[:2], b"garbage", avro[0][:9], join_value(999, b"x"), avro[2]])
        proto = [self._proto(each, "p", 212.0) for each in range(10, 13)]
        self._write("proto", [proto[0], b"garbage", join_value(999, b"x"), proto[1][:-3], *proto[1:]])
        headers = [("ce_specversion", b"1.0"), ("ce_type", b"Sample"), ("ce_id", b"6"), ("ce_source", b"lake")]
        self._write("events", [(None, b'{"sensor": "c", "value": 10}', headers)])

    def write_changed(self) -> None:
        """Records of schemas that have one more field; the last one is of the first again."""
        self._write("avro", [*(self._avro(each, "b", 32.0, count=each) for each in (3, 4)), self._avro(5, "b", 32.0)])
        more = [self._proto(each, "q", 32.0, count=each) for each in (13, 14)]
        self._write("proto", [*more, self._proto(15, "q", 32.0)])

    def is_done(self, changed: bool = True) -> bool:
        """Whether all that was written is delivered."""
        wanted = len(EXPECTED_PROTO) - (0 if changed else 6)
        return all(len(self._read(each)) >= wanted for each in ("avro", "proto", "whole"))

    def check(self) -> None:
        """What was delivered is what is expected, each once."""
        registry = SchemaRegistry(self._registry.url)
        assert self._delivered("proto", ProtobufReader(registry)) == EXPECTED_PROTO
        assert self._delivered("avro", AvroReader(registry)) == EXPECTED_AVRO
        found = [json.loads(each.value()) for each in self._read("whole")]
        whole = {each["id"]: (each["type"], each["source"], each["data"]) for each in found}
        assert len(found) == len(whole)
        assert whole == {id: ("Sample", each.source, each.data) for id, each in EXPECTED_PROTO.items()}

    # ── records ──

    def _avro(self, number: int, sensor: str, value: float, **more: int) -> bytes:
        schema = {"type": "record", "name": "R", "fields": [*_FIELDS, _COUNT] if more else _FIELDS}
        text = json.dumps(schema)
        id = self._registry.register(f"{self._prefix}-avro-value", {"schema": text, "schemaType": "AVRO"})
        content = io.BytesIO()
        values = {"n": number, "at": _AT, "sensor": sensor, "value": value, **more}
        fastavro.schemaless_writer(content, fastavro.parse_schema(json.loads(text)), values)
        return join_value(id, content.getvalue())

    def _proto(self, number: int, sensor: str, value: float, **more: int) -> bytes:
        file = FileDescriptorProto(name="r.proto", package="p", syntax="proto3")
        message = file.message_type.add(name="R")
        values = {"n": number, "at": int(_AT.timestamp() * 1000), "sensor": sensor, "value": value, **more}
        for place, name in enumerate(values, 1):
            kind = {"sensor": "string", "value": "double"}.get(name, "")
            message.field.add(
                name=name,
                number=place,
                type=_KINDS.get(kind, FieldDescriptorProto.TYPE_INT64),
                label=FieldDescriptorProto.LABEL_OPTIONAL,
            )
        text = base64.b64encode(file.SerializeToString()).decode()
        id = self._registry.register(f"{self._prefix}-proto-value", {"schema": text, "schemaType": "PROTOBUF"})
        pool = DescriptorPool()
        pool.Add(file)
        written = GetMessageClass(pool.FindMessageTypeByName("p.R"))(**values)
        return join_value(id, b"\0" + written.SerializeToString())

    def _write(self, topic: str, records: list[Any]) -> None:
        """All to one partition, so that schemas follow each other; the other one stays empty."""
        self._broker.write(f"{self._prefix}-{topic}", records, partition=1)

    def _read(self, topic: str) -> list[Message]:
        return self._broker.read(f"{self._prefix}-out-{topic}")

    def _delivered(self, topic: str, reader: Any) -> dict[str, Delivered]:
        found: dict[str, Delivered] = {}
        for each in self._read(topic):
            headers = {name: value.decode() for name, value in each.headers()}
            key = None if each.key() is None else each.key().decode()
            content, source = headers["content-type"], headers["ce_source"]
            assert headers["ce_id"] not in found, "each once"
            found[headers["ce_id"]] = Delivered(source, key, content, reader(topic, each.value()))
        return found


def _expected(content: str, hot: float, cold: float, middle: float) -> dict[str, Delivered]:
    def samples(source: str, sensor: str, value: float, *numbers: int, counted: bool = False) -> dict[str, Delivered]:
        return {
            str(each): Delivered(
                source, sensor, content, {"sensor": sensor, "value": value, **({"count": each} if counted else {})}
            )
            for each in numbers
        }

    return {
        **samples("kiln", "a", hot, 0, 1, 2),
        **samples("kiln", "b", cold, 3, 4, counted=True),
        **samples("kiln", "b", cold, 5),
        **samples("mill", "p", hot, 10, 11, 12),
        **samples("mill", "q", cold, 13, 14, counted=True),
        **samples("mill", "q", cold, 15),
        **samples("partner/lake", "c", middle, 6),
    }


EXPECTED_PROTO = _expected("application/protobuf", 100.0, 0.0, 10.0)
EXPECTED_AVRO = _expected("application/avro", 212.0, 32.0, 50.0)
