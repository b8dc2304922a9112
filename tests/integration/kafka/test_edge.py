"""Topics at the edge, with a real broker that dies."""

from __future__ import annotations

import asyncio
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro

from situ.kafka.protobuf import ProtobufReader
from situ.kafka.schema_registry import SchemaRegistry, join_value
from tests.integration.kafka.projects import CONTEXT, Logs, once, project, running, until, value
from tests.kafka_server import KafkaServer
from tests.project_files import write
from tests.schema_registry import RegistryServer, registry_server


async def _way(broker: KafkaServer, folder: Path) -> None:
    broker.create("readings", partitions=3)
    broker.create("hot")
    broker.write("readings", [(f"s{each % 7}", value(each)) for each in range(1000)])
    broker.write(
        "readings", [b"garbage", (b"s1", b'{"n": 1}'), (b"s1", None), (b"s2", value(1000, value="warm"))], partition=0
    )
    project(folder, broker.servers)
    async with running(folder):
        logs = Logs(folder)
        await until(lambda: len(logs.root) >= 1000 and len(logs.dead) >= 4)
        await until(lambda: len(broker.read("hot")) >= 1000)
        # a broker that dies, with records on their way
        broker.write("readings", [(f"s{each % 7}", value(each)) for each in range(1001, 1500)])
        broker.kill()
        broker.start()
        broker.write("readings", [(f"s{each % 7}", value(each)) for each in range(1500, 2000)])
        await until(lambda: len(logs.root) >= 1999)
        await until(lambda: len(broker.read("hot")) >= 1999)
        rows, dead = logs.root, logs.dead
        logs.close()
    assert once(rows)
    assert sorted(int(row.id) for row in rows) == [each for each in range(2000) if each != 1000]
    assert {row.client for row in rows} == {"plant"}
    assert sorted(each["code"] for each in dead) == ["E760", "E760", "E763", "INT703"]
    found = broker.read("hot")
    keys = [dict(each.headers())["situkey"] for each in found]
    assert len(set(keys)) == len(keys) == 1999
    for each in found:
        headers, data = dict(each.headers()), json.loads(each.value())
        assert each.key().decode() == data["sensor"] == f"s{data['count'] % 7}"
        assert headers["ce_type"] == b"Reading"
        assert headers["ce_id"] == str(data["count"]).encode()


async def _again(broker: KafkaServer, folder: Path) -> None:
    """A run that begins again, while the broker is down, reads and writes nothing twice."""
    broker.kill()
    async with running(folder):
        logs = Logs(folder)
        broker.start()
        broker.write("readings", [(b"s1", value(each)) for each in range(2000, 2010)])
        await until(lambda: len(logs.root) >= 2009)
        await until(lambda: len(broker.read("hot")) >= 2009)
        assert once(logs.root)
        logs.close()
    assert len(broker.read("hot")) == 2009


TYPED = """
version: 1
clients:
  plant:
    context: us
    kafka: {topics: [avro], type: Reading, format: avro, time: at, id: n}
    advertisements: {readings: {type: Reading}}
  partner:
    kafka: {topics: [events]}
    advertisements: {readings: {type: Reading}}
  desk:
    subscriptions:
      all: {types: [Reading], kafka: {topic: proto, key: sensor, format: protobuf}}
      whole: {types: [Reading], kafka: {topic: whole, format: cloudevents}}
"""
AVRO = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "sensor", "type": "string"},
        {"name": "value", "type": "double"},
    ],
}


def _avro(registry: RegistryServer, schema: dict[str, Any], **values: Any) -> bytes:
    id = registry.register("avro-value", {"schema": json.dumps(schema), "schemaType": "AVRO"})
    content = io.BytesIO()
    fastavro.schemaless_writer(content, fastavro.parse_schema(json.loads(json.dumps(schema))), values)
    return join_value(id, content.getvalue())


async def _typed(broker: KafkaServer, registry: RegistryServer, folder: Path) -> None:
    broker.create("avro", "events", "proto", "whole")
    more = {**AVRO, "fields": [*AVRO["fields"], {"name": "count", "type": ["null", "long"], "default": None}]}
    at = datetime(2026, 1, 1, tzinfo=UTC)
    warm = [_avro(registry, AVRO, n=each, at=at, sensor="a", value=212.0) for each in range(3)]
    changed = [_avro(registry, more, n=each, at=at, sensor="b", value=32.0, count=each) for each in range(3, 6)]
    broker.write("avro", [*warm, b"garbage", warm[0][:7], join_value(999, b"x"), *changed])
    headers = [("ce_specversion", b"1.0"), ("ce_type", b"Reading"), ("ce_id", b"6"), ("ce_source", b"lake")]
    broker.write("events", [(None, b'{"sensor": "c", "value": 1}', headers)])
    write(folder, {"contexts/us.yaml": CONTEXT})
    project(folder, broker.servers, clients=TYPED, more=f", registry: '{registry.url}'")
    async with running(folder):
        logs = Logs(folder)
        await until(lambda: len(logs.root) >= 7 and len(logs.dead) >= 3)
        await until(lambda: len(broker.read("proto")) >= 7 and len(broker.read("whole")) >= 7)
        dead, rows = logs.dead, logs.root
        logs.close()
    assert sorted(each["code"] for each in dead) == ["E760", "E761", "E762"]
    assert {row.id: json.loads(row.data)["value"] for row in rows if row.client == "plant"} == {
        **{str(each): 100.0 for each in range(3)},
        **{str(each): 0.0 for each in range(3, 6)},
    }
    read = ProtobufReader(SchemaRegistry(registry.url))
    found = {dict(each.headers())["ce_id"]: (each.key(), read("proto", each.value())) for each in broker.read("proto")}
    assert found[b"1"] == (b"a", {"sensor": "a", "value": 100.0})
    assert found[b"5"] == (b"b", {"sensor": "b", "value": 0.0, "count": 5})
    assert found[b"6"] == (b"c", {"sensor": "c", "value": 1.0})
    whole = {each["id"]: each for each in (json.loads(each.value()) for each in broker.read("whole"))}
    assert whole["6"]["data"] == {"sensor": "c", "value": 1.0}
    assert whole["6"]["source"].endswith("lake")


def test_avro_and_cloudevents_in_and_protobuf_out(broker: KafkaServer, tmp_path: Path) -> None:
    with registry_server() as registry:
        asyncio.run(_typed(broker, registry, tmp_path / "plant"))


def test_topics_are_read_and_written_once(broker: KafkaServer, tmp_path: Path) -> None:
    asyncio.run(_way(broker, tmp_path / "plant"))
    asyncio.run(_again(broker, tmp_path / "plant"))
