"""Topics on Spark: read in the query of events, written once, while broker, driver and workers are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from situ.event.row import Row
from tests.integration.kafka.projects import CLIENTS, Logs, files_with, once, project, secured, value
from tests.integration.kafka.typed import DEAD, TypedTopics
from tests.kafka_server import PASSWORD, KafkaServer
from tests.schema_registry import registry_server
from tests.volume import cases

_SITU = Path(sys.executable).parent / "situ"


class _Run:
    """`situ run` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder.parent / "run.log"
        with self.log.open("ab") as log:
            command = [str(_SITU), "run", "--project", str(folder), "--json"]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def workers(self) -> list[psutil.Process]:
        """What executors are where Spark is local: Python processes that Java has started."""
        java = [each for each in psutil.Process(self.process.pid).children() if each.name() == "java"]
        return [each for one in java for each in one.children(recursive=True)]

    def kill(self) -> None:
        """As by SIGKILL: the driver; its servers and Java end when they notice, or here."""
        below = psutil.Process(self.process.pid).children(recursive=True)
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for each in below:
            if each.is_running():
                each.kill()
        psutil.wait_procs(below, timeout=30)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)

    def has_ended(self) -> bool:
        return self.process.poll() is not None


class _Plant:
    """A project on Spark whose run, broker and workers are killed."""

    def __init__(self, folder: Path, broker: KafkaServer, read: str) -> None:
        self.folder, self._broker, self._read = folder, broker, read
        self.run = _Run(folder)

    def write(self, numbers: range) -> None:
        self._broker.write(self._read, ((f"s{each % 97}", value(each)) for each in numbers))

    def root(self) -> list[Row]:
        """What the topic of numbers became."""
        logs = Logs(self.folder)
        try:
            return [row for row in logs.root if row.client == "plant"]
        finally:
            logs.close()

    def dead(self) -> list[str]:
        logs = Logs(self.folder)
        try:
            return [each["code"] for each in logs.dead]
        finally:
            logs.close()

    def until(self, what: Callable[[], bool], within: float = 180.0) -> None:
        deadline = time.monotonic() + within
        while True:
            assert not self.run.has_ended(), self.run.log.read_text()[-3000:]
            assert time.monotonic() < deadline, self.run.log.read_text()[-3000:]
            with suppress(Exception):  # the bus or the broker is not there yet
                if what():
                    return
            time.sleep(0.3)

    # ── who is killed ──

    def kill_driver(self) -> None:
        self.run.kill()
        self.run = _Run(self.folder)

    def kill_workers(self) -> None:
        workers = self.run.workers()
        assert workers
        for worker in workers:
            worker.kill()

    def kill_broker(self) -> None:
        self._broker.kill()
        self._broker.start()

    def kill_both(self) -> None:
        self.kill_workers()
        self.kill_broker()


@contextmanager
def _plant(folder: Path, broker: KafkaServer, read: str) -> Iterator[_Plant]:
    plant = _Plant(folder, broker, read)
    try:
        yield plant
    finally:
        if not plant.run.has_ended():
            plant.run.kill()


_KILLS = (_Plant.kill_driver, _Plant.kill_both)
_ALL_KILLS = (_Plant.kill_driver, _Plant.kill_workers, _Plant.kill_broker, _Plant.kill_both) * 4


@cases(6_000, 200_000)
def test_events_are_taken_and_delivered_once(
    cases: int, broker: KafkaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With TLS and a password, beside topics in Avro and Protobuf, while everything is killed."""
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    kills = _KILLS if cases < 100_000 else _ALL_KILLS
    read, written = f"spark-{cases}", f"spark-hot-{cases}"
    broker.create(read, partitions=4)
    broker.create(written, partitions=2)
    clients = CLIENTS.replace("[readings]", f"[{read}]").replace("topic: hot", f"topic: {written}")
    part = cases // (len(kills) + 1)
    with registry_server() as registry:
        typed = TypedTopics(broker, registry, f"typed-{cases}")
        typed.write_first()
        settings = f"{secured(broker)}, registry: '{registry.url}'"
        folder = tmp_path / "plant"
        project(folder, broker.secure_servers, engine="spark", clients=clients, more=settings, files=typed.files)
        with _plant(folder, broker, read) as plant:
            broker.write(read, [b"garbage", b"\xff\xfe"], partition=1)
            for number, kill in enumerate(kills):
                before = number * part
                plant.write(range(before, before + part // 2))
                plant.until(lambda before=before: len(plant.root()) > before)
                plant.write(range(before + part // 2, before + part))
                if number == 1:
                    typed.write_changed()
                kill(plant)  # with a batch under way, mostly
            plant.write(range(len(kills) * part, cases))
            plant.until(lambda: len(plant.root()) >= cases)
            plant.until(lambda: len(broker.read(written)) >= cases)
            plant.until(typed.is_done)
            rows, dead = plant.root(), plant.dead()
            plant.run.stop()
        typed.check()
    assert files_with(tmp_path, PASSWORD) == []
    found = broker.read(written)
    assert once(rows)
    assert sorted(int(row.id) for row in rows) == list(range(cases))
    assert sorted(dead) == sorted(["E760", "E760", *DEAD])
    keys = [dict(each.headers())["situkey"] for each in found]
    assert len(keys) == len(set(keys)) == cases
    assert sorted(json.loads(each.value())["count"] for each in found) == list(range(cases))
    # An event has the key that follows from where its record is.
    by_key = {row.key: row for row in rows}
    assert {key.decode() for key in keys} == by_key.keys()
