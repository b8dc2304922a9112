"""Topics at the edge, with a real broker that dies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.kafka.projects import Logs, once, project, running, until, value
from tests.kafka_server import KafkaServer, kafka_server


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    with kafka_server(tmp_path_factory.mktemp("kafka")) as server:
        yield server


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
    assert sorted(each["code"] for each in dead) == ["E760", "E760", "E763", "INT504"]
    found = broker.read("hot")
    keys = [dict(each.headers())["situkey"] for each in found]
    assert len(set(keys)) == len(keys) == 1999
    for each in found:
        headers, data = dict(each.headers()), json.loads(each.value())
        assert each.key().decode() == data["sensor"] == f"s{data['count'] % 7}"
        assert headers["ce_type"] == b"Reading"
        assert headers["ce_id"] == str(data["count"]).encode()


async def _again(broker: KafkaServer, folder: Path) -> None:
    """A run that begins again reads and writes nothing twice."""
    broker.write("readings", [(b"s1", value(each)) for each in range(2000, 2010)])
    async with running(folder):
        logs = Logs(folder)
        await until(lambda: len(logs.root) >= 2009)
        await until(lambda: len(broker.read("hot")) >= 2009)
        assert once(logs.root)
        logs.close()
    assert len(broker.read("hot")) == 2009


def test_topics_are_read_and_written_once(broker: KafkaServer, tmp_path: Path) -> None:
    import asyncio

    asyncio.run(_way(broker, tmp_path / "plant"))
    asyncio.run(_again(broker, tmp_path / "plant"))
