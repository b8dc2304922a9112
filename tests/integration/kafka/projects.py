"""A project with topics, and what its logs have."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from situ.app.run import RunProcess
from situ.bus.address import resolve_address, settings_of_run
from situ.bus.sync_bus import BlockingBus
from situ.event.lines import decode_line, stored_lines
from situ.event.row import Row
from situ.event.subjects import BusNames
from situ.testing.fixtures import load_project
from tests.kafka_server import KafkaServer
from tests.project_files import write

NOTHING: Mapping[str, str] = MappingProxyType({})
TYPES = """
version: 1
events:
  Reading: {sensor: string, value: double °C, count: optional long}
"""
CLIENTS = """
version: 1
clients:
  plant:
    kafka: {topics: [readings], type: Reading, time: at, id: n, key: sensor}
    advertisements:
      readings: {type: Reading}
  desk:
    subscriptions:
      hot: {types: [Reading], where: value >= 0 °C, kafka: {topic: hot, key: sensor}}
"""


def project(
    folder: Path,
    servers: str,
    *,
    engine: str = "edge",
    clients: str = CLIENTS,
    more: str = "",
    files: Mapping[str, str] = NOTHING,
) -> Path:
    settings = f"version: 1\nname: plant\nengine: {engine}\nkafka: {{servers: '{servers}'{more}}}\n"
    if engine == "spark":
        settings += "spark: {master: 'local[2]', trigger: 100 ms, conf: {spark.ui.enabled: false}}\n"
    write(folder, {"situ.yaml": settings, "types/t.yaml": TYPES, "clients/c.yaml": clients, **files})
    return folder


def secured(broker: KafkaServer) -> str:
    """More settings of Kafka, for the listener that asks for the password of the environment."""
    return f", options: {json.dumps(broker.options(password='${KAFKA_PASSWORD}'))}"


def files_with(folder: Path, text: str) -> list[Path]:
    """The files below a folder that hold a text."""
    return [each for each in folder.rglob("*") if each.is_file() and text.encode() in each.read_bytes()]


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[RunProcess]:
    """A run of the project in this process."""
    async with RunProcess(folder, load_project(folder).deployment) as run:
        yield run


class Logs:
    """The logs of a project that runs."""

    def __init__(self, folder: Path) -> None:
        settings = settings_of_run(folder)
        assert settings is not None
        self.bus = BlockingBus(resolve_address(folder, settings))
        self.names = BusNames(self.bus.zone)

    def _rows(self, stream: str) -> list[Row]:
        state = self.bus.state(stream)
        messages = self.bus.read(stream, state.first, state.last)
        return [decode_line(line) for message in messages for line in stored_lines(message)]

    @property
    def root(self) -> list[Row]:
        return self._rows(self.names.root_stream)

    @property
    def dead(self) -> list[dict[str, Any]]:
        return [json.loads(row.data) for row in self._rows(self.names.dead_stream)]

    def close(self) -> None:
        self.bus.close()


def value(number: int, **more: Any) -> bytes:
    """A record with this number."""
    at = 1_700_000_000_000 + number
    return json.dumps({"at": at, "n": number, "value": number % 100, "count": number, **more}).encode()


def once(rows: list[Row]) -> bool:
    return max(Counter(row.key for row in rows).values(), default=0) <= 1


async def until(what: Callable[[], bool], within: float = 90.0) -> None:
    deadline = time.monotonic() + within
    while not await asyncio.to_thread(what):
        assert time.monotonic() < deadline, "it did not come to that"
        await asyncio.sleep(0.1)
