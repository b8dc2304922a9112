"""Topics on Spark: read in the query of events, written once, while broker, driver and workers are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from situ.event.row import Row
from tests.integration.kafka.projects import CLIENTS, Logs, once, project, value
from tests.kafka_server import KafkaServer
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


@contextmanager
def _running(folder: Path) -> Iterator[_Run]:
    run = _Run(folder)
    try:
        yield run
    finally:
        if run.process.poll() is None:
            run.kill()


def _until(run: _Run, what: Callable[[], bool], within: float = 180.0) -> None:
    deadline = time.monotonic() + within
    while True:
        assert run.process.poll() is None, run.log.read_text()[-3000:]
        assert time.monotonic() < deadline, run.log.read_text()[-3000:]
        try:
            if what():
                return
        except Exception:  # noqa: BLE001 - the bus or the broker is not there yet
            pass
        time.sleep(0.3)


def _root(folder: Path) -> list[Row]:
    logs = Logs(folder)
    try:
        return logs.root
    finally:
        logs.close()


@cases(5_000, 200_000)
def test_events_are_taken_and_delivered_once(cases: int, broker: KafkaServer, tmp_path: Path) -> None:
    folder = tmp_path / "plant"
    read, written = f"spark-{cases}", f"spark-hot-{cases}"
    broker.create(read, partitions=4)
    broker.create(written, partitions=2)
    part = cases // 4
    _write(broker, read, range(part))
    broker.write(read, [b"garbage", b"\xff\xfe"], partition=1)
    clients = CLIENTS.replace("[readings]", f"[{read}]").replace("topic: hot", f"topic: {written}")
    project(folder, broker.servers, engine="spark", clients=clients)
    with _running(folder) as run:
        _until(run, lambda: len(_root(folder)) >= part)
        _write(broker, read, range(part, 2 * part))
        run.kill()  # the driver, with a batch under way or none
    with _running(folder) as run:
        _write(broker, read, range(2 * part, 3 * part))
        _until(run, lambda: len(_root(folder)) >= 2 * part + 1)
        workers = run.workers()
        assert workers
        for worker in workers:
            worker.kill()
        broker.kill()
        broker.start()
        _write(broker, read, range(3 * part, cases))
        _until(run, lambda: len(_root(folder)) >= cases)
        _until(run, lambda: len(broker.read(written)) >= cases)
        rows = _root(folder)
        logs = Logs(folder)
        dead = logs.dead
        logs.close()
        run.stop()
    found = broker.read(written)
    assert once(rows)
    assert sorted(int(row.id) for row in rows) == list(range(cases))
    assert [each["code"] for each in dead] == ["E760", "E760"]
    keys = [dict(each.headers())["situkey"] for each in found]
    assert len(keys) == len(set(keys)) == cases
    assert sorted(json.loads(each.value())["count"] for each in found) == list(range(cases))
    # An event has the key that follows from where its record is.
    by_key = {row.key: row for row in rows}
    assert {key.decode() for key in keys} == by_key.keys()


def _write(broker: KafkaServer, topic: str, numbers: range) -> None:
    broker.write(topic, ((f"s{each % 97}", value(each)) for each in numbers))
