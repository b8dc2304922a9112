"""Topics at the edge, with a real broker that dies."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.integration.kafka.projects import Logs, files_with, once, project, running, secured, until, value
from tests.integration.kafka.typed import DEAD, TypedTopics
from tests.kafka_server import PASSWORD, KafkaServer
from tests.schema_registry import RegistryServer, registry_server


async def _way(broker: KafkaServer, folder: Path) -> None:
    broker.create("readings", partitions=3)
    broker.create("hot")
    broker.write("readings", [(f"s{each % 7}", value(each)) for each in range(1000)])
    broker.write(
        "readings", [b"garbage", (b"s1", b'{"n": 1}'), (b"s1", None), (b"s2", value(1000, value="warm"))], partition=0
    )
    project(folder, broker.secure_servers, more=secured(broker))
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


async def _typed(broker: KafkaServer, registry: RegistryServer, folder: Path) -> None:
    topics = TypedTopics(broker, registry, "edge")
    topics.write_first()
    project(folder, broker.servers, clients="version: 1\n", more=f", registry: '{registry.url}'", files=topics.files)
    async with running(folder):
        await until(lambda: topics.is_done(changed=False))
        topics.write_changed()
        await until(topics.is_done)
        logs = Logs(folder)
        dead = logs.dead
        logs.close()
    topics.check()
    assert sorted(each["code"] for each in dead) == DEAD


def test_avro_protobuf_and_cloudevents_in_and_out(broker: KafkaServer, tmp_path: Path) -> None:
    with registry_server() as registry:
        asyncio.run(_typed(broker, registry, tmp_path / "plant"))


def test_topics_are_read_and_written_once(broker: KafkaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With TLS and a password, which the broker asks for."""
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    asyncio.run(_way(broker, tmp_path / "plant"))
    asyncio.run(_again(broker, tmp_path / "plant"))
    assert files_with(tmp_path, PASSWORD) == []
