"""Avro and Protobuf, with a schema registry over HTTP."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from situ.kafka.avro import AvroReader, AvroWriter
from situ.kafka.protobuf import ProtobufReader, ProtobufWriter
from situ.kafka.schema_registry import SchemaRegistry, join_value
from situ.lang.documents import parse_yaml
from situ.lang.problems import Problems, SituError
from situ.lang.types.resolve import load_types
from tests.schema_registry import RegistryServer, registry_server

TYPES = """
types:
  Spot: {x: double m, y: double m}
events:
  Reading:
    sensor: string
    value: optional double °C
    count: optional long
    on: boolean
    at: timestamp
    day: optional date
    cost: optional decimal(10,2)
    raw: optional bytes
    spot: optional Spot
    seen: "[Spot]"
    words: "[string]"
"""
FULL = {
    "sensor": "s1",
    "value": 1.5,
    "count": 9007199254740993,
    "on": True,
    "at": "2026-01-01T00:00:00.000001Z",
    "day": "2026-02-28",
    "cost": "12.50",
    "raw": "AP8=",
    "spot": {"x": 1.0, "y": -2.0},
    "seen": [{"x": 0.5, "y": 0.25}],
    "words": ["a", ""],
}
SPARE = {"sensor": "s2", "on": False, "at": "2026-01-01T00:00:00Z", "seen": [], "words": []}
AVRO = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "sensor", "type": "string"}, {"name": "n", "type": "int"}],
}


@pytest.fixture(scope="module")
def server() -> Iterator[RegistryServer]:
    with registry_server() as running:
        yield running


@pytest.fixture
def registry(server: RegistryServer) -> SchemaRegistry:
    return SchemaRegistry(server.url)


def _types() -> Any:
    problems = Problems()
    types = load_types([parse_yaml(TYPES, "t.yaml")], problems)
    assert not problems.errors, problems.sorted()
    return types


@pytest.mark.parametrize(("writer", "reader"), [(AvroWriter, AvroReader), (ProtobufWriter, ProtobufReader)])
@pytest.mark.parametrize("data", [FULL, SPARE])
def test_what_is_written_is_read(writer: Any, reader: Any, data: dict[str, Any], registry: SchemaRegistry) -> None:
    value = writer(registry, "out", _types(), json.loads)("Reading", json.dumps(data).encode())
    assert value[0] == 0
    found = reader(SchemaRegistry(registry._url))("out", value)
    assert _same(found) == _same(data)


def _same(data: dict[str, Any]) -> dict[str, Any]:
    """Times have more than one text."""
    return {name: each.replace(".000000Z", "Z") if isinstance(each, str) else each for name, each in data.items()}


@pytest.mark.parametrize("writer", [AvroWriter, ProtobufWriter])
def test_an_event_that_does_not_fit_is_not_written(writer: Any, registry: SchemaRegistry) -> None:
    with pytest.raises(SituError) as refused:
        writer(registry, "out", _types(), json.loads)("Reading", b'{"sensor": 1}')
    assert refused.value.code == "E764"


def _avro(registry: SchemaRegistry, schema: dict[str, Any], value: dict[str, Any], behind: bytes = b"") -> bytes:
    id = registry.register("t-value", "AVRO", json.dumps(schema))
    content = io.BytesIO()
    fastavro.schemaless_writer(content, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return join_value(id, content.getvalue() + behind)


def test_a_schema_that_changes_on_the_way_is_fetched_by_its_id(
    server: RegistryServer, registry: SchemaRegistry
) -> None:
    read = AvroReader(registry)
    old = _avro(registry, AVRO, {"sensor": "a", "n": 1})
    more = {**AVRO, "fields": [*AVRO["fields"], {"name": "unit", "type": ["null", "string"], "default": None}]}
    new = _avro(registry, more, {"sensor": "b", "n": 2, "unit": "C"})
    server.asked.clear()
    assert [read("t", each) for each in (old, new, old, new)] == [
        {"sensor": "a", "n": 1},
        {"sensor": "b", "n": 2, "unit": "C"},
    ] * 2
    assert len(server.asked) == 2


def test_avro_values_that_do_not_fit(registry: SchemaRegistry) -> None:
    read = AvroReader(registry)
    good = _avro(registry, AVRO, {"sensor": "a", "n": 1})
    for value, code in (
        (b"garbage", "E760"),
        (b"", "E760"),
        (good[:6], "E761"),
        (good + b"x", "E761"),
        (join_value(99_999, good[5:]), "E762"),
        (join_value(registry.register("t-x", "AVRO", '"string"'), b"\x02a"), "E761"),
        (join_value(registry.register("t-p", "PROTOBUF", base64.b64encode(b"").decode()), good[5:]), "E762"),
    ):
        with pytest.raises(SituError) as refused:
            read("t", value)
        assert refused.value.code == code, value


def _proto(registry: SchemaRegistry) -> tuple[int, Any]:
    part = FileDescriptorProto(name="part.proto", package="p", syntax="proto3")
    part.message_type.add(name="Part").field.add(
        name="x", number=1, type=FieldDescriptorProto.TYPE_DOUBLE, label=FieldDescriptorProto.LABEL_OPTIONAL
    )
    file = FileDescriptorProto(name="r.proto", package="p", syntax="proto3", dependency=["part.proto"])
    file.message_type.add(name="Other")
    message = file.message_type.add(name="R")
    inner = message.nested_type.add(name="Inner")
    optional = FieldDescriptorProto.LABEL_OPTIONAL
    inner.field.add(name="n", number=1, type=FieldDescriptorProto.TYPE_INT64, label=optional)
    inner.field.add(name="part", number=2, type=FieldDescriptorProto.TYPE_MESSAGE, type_name=".p.Part", label=optional)
    pool = DescriptorPool()
    pool.Add(part)
    pool.Add(file)
    texts = [base64.b64encode(each.SerializeToString()).decode() for each in (part, file)]
    registry.register("part", "PROTOBUF", texts[0])
    references = [{"name": "part.proto", "subject": "part", "version": 1}]
    body = {"schema": texts[1], "schemaType": "PROTOBUF", "references": references}
    found = registry._ask("POST", "/subjects/r/versions", body)
    assert found is not None
    return int(found["id"]), GetMessageClass(pool.FindMessageTypeByName("p.R.Inner"))


def test_protobuf_messages_inside_of_others_and_with_references(registry: SchemaRegistry) -> None:
    id, of = _proto(registry)
    read = ProtobufReader(registry)
    message = of(n=1 << 60)
    message.part.x = 0.5
    content = message.SerializeToString()
    place = bytes([4, 2, 0])  # two places: the second message of the file, the first inside of it
    assert read("t", join_value(id, place + content)) == {"n": 1 << 60, "part": {"x": 0.5}}
    for value, code in (
        (join_value(id, b""), "E761"),
        (join_value(id, b"\x02\x10"), "E761"),
        (join_value(id, b"\x01"), "E761"),
        (join_value(id, place + b"\xff\xff"), "E761"),
        (join_value(id, place + b"\x3a\x01a"), "E761"),
        (join_value(99_999, place), "E762"),
        (join_value(registry.register("a", "AVRO", '"int"'), place), "E762"),
        (b"\1\0\0\0\1", "E760"),
    ):
        with pytest.raises(SituError) as refused:
            read("t", value)
        assert refused.value.code == code, value


def test_a_registry_that_is_away_says_nothing_of_a_record(server: RegistryServer) -> None:
    registry = SchemaRegistry(server.url.replace("http://", "http://me:secret@"))
    server.fails = True
    try:
        with pytest.raises(SituError) as away:
            AvroReader(registry)("t", join_value(1, b""))
    finally:
        server.fails = False
    assert away.value.code == "N162"
    assert "secret" not in str(away.value)
    with pytest.raises(SituError, match="N162"):
        AvroReader(SchemaRegistry("http://127.0.0.1:1"))("t", join_value(1, b""))
