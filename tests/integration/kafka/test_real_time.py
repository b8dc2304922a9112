"""Real-time deliveries of a run: what queues give, while declarations change and processes are killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

from situ.kafka.formats import KEY, WrittenRecord
from situ.kafka.records import KafkaRecord
from tests.integration.kafka.test_spark import _Run
from tests.kafka_server import KafkaServer, spark_connector
from tests.project_files import write
from tests.real_time import FILES, RECORDS, OrdinaryWay
from tests.real_time import project as declared

_SITU = Path(sys.executable).parent / "situ"
_PROCESS = "situ.spark.real_time.process"
_KEPT = {"retention.ms": "-1"}


def _settings(broker: KafkaServer) -> str:
    spark = f"master: 'local[2]', trigger: 200 ms, connector: '{spark_connector()}', real_time_batch: 5 s"
    return f"version: 1\nname: plant\nkafka: {{servers: '{broker.servers}'}}\nspark: {{{spark}}}\n"


@contextmanager
def _running(folder: Path) -> Iterator[_Run]:
    run = _Run(folder)
    try:
        yield run
    finally:
        if not run.has_ended():
            run.kill()


def _until(run: _Run, what: object, within: float = 180.0) -> None:
    assert callable(what)
    deadline = time.monotonic() + within
    while True:
        assert not run.has_ended(), run.log.read_text()[-3000:]
        assert time.monotonic() < deadline, run.log.read_text()[-3000:]
        with suppress(OSError, ValueError, KeyError, IndexError, StopIteration, psutil.Error):
            if what():
                return
        time.sleep(0.3)


def _figures(run: _Run) -> dict[str, object]:
    """The last look at the run."""
    lines = [line for line in run.log.read_text().splitlines() if line.startswith("{") and line.endswith("}")]
    found: dict[str, object] = json.loads(lines[-1])
    return found


def _delivers(run: _Run, *clients: str) -> bool:
    """Whether deliveries of these clients are left to real-time queries."""
    queries = _figures(run)["real_time"]
    assert isinstance(queries, list)
    return {each["client"] for each in queries if each["delivers"]} == set(clients)


def _process(run: _Run) -> psutil.Process:
    """That of real-time queries."""
    below = psutil.Process(run.process.pid).children(recursive=True)
    return next(each for each in below if _PROCESS in each.cmdline())


def _records(broker: KafkaServer, topic: str) -> dict[str, set[WrittenRecord]]:
    """By the keys of their events."""
    found: dict[str, set[WrittenRecord]] = defaultdict(set)
    for each in broker.read(topic):
        headers = tuple(each.headers())
        found[dict(headers)[KEY].decode()].add(WrittenRecord(each.key(), each.value(), headers))
    return found


# ── the same answers ──


@pytest.fixture(scope="module")
def topics(broker: KafkaServer) -> KafkaServer:
    names = [*(topic for topics in _SOURCES.values() for topic in topics), "partner"]
    broker.create(*names, partitions=3, config=_KEPT)
    broker.create(*(f"out.{name}" for name in ("all", "hot", "whole", "beats", "heat", "said")))
    return broker


_SOURCES = {"plant": ("readings.rt", "more.rt"), "probes": ("heat",), "beats": ("beats",)}
_NAMED = {"[readings, more]": "[readings.rt, more.rt]"}


def _files() -> dict[str, str]:
    files = dict(FILES)
    for old, new in _NAMED.items():
        files["clients/plant.yaml"] = files["clients/plant.yaml"].replace(old, new)
    return files


def test_records_are_delivered_as_by_queues(topics: KafkaServer, tmp_path: Path) -> None:
    """Plain, odd and broken ones, converted both ways, before and while queries in real-time mode deliver."""
    folder = declared(tmp_path / "plant", files=_files())
    write(folder, {"situ.yaml": _settings(topics)})
    way = OrdinaryWay(folder)
    written = {client: _distinct(client, make(11, 150)) for client, make in RECORDS.items()}
    with _running(folder) as run:
        _write(topics, [each for some in written.values() for each in some[:60]])
        _until(run, lambda: _delivers(run, *RECORDS))
        _write(topics, [each for some in written.values() for each in some[60:]])
        expected: dict[str, dict[str, set[WrittenRecord]]] = defaultdict(lambda: defaultdict(set))
        subscriptions = way.plan.deployment.subscriptions
        for client, some in written.items():
            for record in some:
                for one in way.deliver(client, record):
                    target = subscriptions[one.subscription].kafka
                    assert target is not None
                    expected[target.topic][dict(one.record.headers)[KEY].decode()].add(one.record)
        _until(run, lambda: all(len(_records(topics, topic)) >= len(each) for topic, each in expected.items()))
        queued = _figures(run)["subscriptions"]
        run.stop()
    assert len(expected) == 6
    for topic, each in expected.items():
        assert _records(topics, topic) == each
    # Most of what came later did not go by the queue.
    assert isinstance(queued, dict)
    assert sum(queued.values()) < sum(map(len, expected.values())) * 0.85


def _distinct(client: str, records: list[KafkaRecord]) -> list[KafkaRecord]:
    """With the topics and offsets that they get: of each partition those follow each other."""
    ends: dict[tuple[str, int], int] = defaultdict(int)
    found: list[KafkaRecord] = []
    for each in records:
        topic = {"readings": "readings.rt", "more": "more.rt"}.get(each.topic, each.topic)
        place = topic, each.partition
        found.append(KafkaRecord(topic, each.partition, ends[place], each.key, each.value, (), each.time))
        ends[place] += 1
    assert {each.topic for each in found} <= set(_SOURCES[client])
    return found


def _write(broker: KafkaServer, records: list[KafkaRecord]) -> None:
    producer = Producer({"bootstrap.servers": broker.servers, "enable.idempotence": True, "log_level": 2})
    for each in records:
        producer.produce(each.topic, each.value, each.key, partition=each.partition, timestamp=each.time)
    assert producer.flush(60) == 0


# ── changes and crashes ──

_CLIENTS = """
version: 1
clients:
  meter:
    kafka: {{topics: [{topic}], type: Reading}}
    advertisements:
      readings: {{type: Reading}}
  desk:
    subscriptions:
      every: {{types: [Reading], kafka: {{topic: {out}}}{delivery}}}
"""
_TYPES = """
version: 1
events:
  Reading: {sensor: string, n: long}
"""


class _Writer:
    """Writes numbers to a topic until it is stopped."""

    def __init__(self, broker: KafkaServer, topic: str, rate: float) -> None:
        self.number = 0
        self._broker, self._topic, self._rate = broker, topic, rate
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self._broker.servers, "enable.idempotence": True, "log_level": 2})
        while not self._stopped.wait(1 / self._rate):
            value = json.dumps({"sensor": f"s{self.number % 7}", "n": self.number})
            producer.produce(self._topic, value, partition=self.number % 2)
            producer.poll(0)
            self.number += 1
        assert producer.flush(60) == 0

    def stop(self) -> int:
        self._stopped.set()
        self._thread.join()
        return self.number


class _Meter:
    """A project with one subscription, and a topic that is written to."""

    def __init__(self, folder: Path, broker: KafkaServer, name: str) -> None:
        self.folder, self.broker = folder, broker
        self.topic, self.out = f"meter.{name}", f"every.{name}"
        broker.create(self.topic, partitions=2)
        broker.create(self.out)
        write(folder, {"situ.yaml": _settings(broker), "types/t.yaml": _TYPES})
        self.declare("")

    def declare(self, delivery: str) -> None:
        said = f", delivery: {delivery}" if delivery else ""
        write(self.folder, {"clients/c.yaml": _CLIENTS.format(topic=self.topic, out=self.out, delivery=said)})

    def apply(self, delivery: str) -> None:
        self.declare(delivery)
        subprocess.run([str(_SITU), "apply", "--project", str(self.folder)], check=True, capture_output=True)

    def numbers(self) -> set[int]:
        return {json.loads(each.value())["n"] for each in self.broker.read(self.out)}

    def check(self, run: _Run, count: int) -> None:
        """Every number was delivered, and an event is the same however often it was."""
        _until(run, lambda: self.numbers() == set(range(count)))
        assert all(len(each) == 1 for each in _records(self.broker, self.out).values())


def test_nothing_is_lost_while_deliveries_change_hands(broker: KafkaServer, tmp_path: Path) -> None:
    """By the queue, in real time, whose process is killed, and by the queue again, while events flow."""
    meter = _Meter(tmp_path / "plant", broker, "changes")
    with _running(meter.folder) as run:
        writer = _Writer(broker, meter.topic, 50)
        _until(run, lambda: len(meter.numbers()) > 20)
        meter.apply("real-time")
        _until(run, lambda: _delivers(run, "meter"))
        before = writer.number
        _until(run, lambda: writer.number > before + 100)
        process = _process(run)
        process.send_signal(signal.SIGKILL)
        _until(run, lambda: _process(run).pid != process.pid)
        _until(run, lambda: _delivers(run, "meter"))
        before = writer.number
        _until(run, lambda: max(meter.numbers()) > before)
        meter.apply("queued")
        before = writer.number
        _until(run, lambda: _figures(run)["real_time"] == [])
        _until(run, lambda: max(meter.numbers()) > before)
        meter.check(run, writer.stop())
        run.stop()


_SCOPES = """
version: 1
dimensions:
  tenancy:
    mode: closed
    scopes:
      house: {{}}
      guests: {{in: [house], input: "{input}"}}
clients:
  meter: {{tenancy: [house]}}
  desk: {{tenancy: [guests]}}
"""


def test_what_is_closed_stays_away_in_real_time(broker: KafkaServer, tmp_path: Path) -> None:
    """Scopes are narrowed while events flow: from then on nothing hidden is delivered, and all else is."""
    meter = _Meter(tmp_path / "plant", broker, "scopes")
    declared = _CLIENTS.format(topic=meter.topic, out=meter.out, delivery=", delivery: real-time")
    for client, tag in (("meter", "house"), ("desk", "guests")):
        declared = declared.replace(f"  {client}:\n", f"  {client}:\n    scopes: {{tenancy: {tag}}}\n")
    write(meter.folder, {"scopes.yaml": _SCOPES.format(input="sensor <> 's5'"), "clients/c.yaml": declared})
    with _running(meter.folder) as run:
        writer = _Writer(broker, meter.topic, 50)
        _until(run, lambda: len(meter.numbers()) > 20)
        _until(run, lambda: _delivers(run, "meter"))
        before = writer.number
        _until(run, lambda: max(meter.numbers()) > before + 100)
        write(meter.folder, {"scopes.yaml": _SCOPES.format(input="sensor <> 's5' AND sensor <> 's3'")})
        opened = writer.number
        subprocess.run([str(_SITU), "apply", "--project", str(meter.folder)], check=True, capture_output=True)
        time.sleep(5)  # some looks of the process
        closed = writer.number
        _until(run, lambda: writer.number > closed + 100)
        _until(run, lambda: _delivers(run, "meter"))
        before = writer.number
        _until(run, lambda: max(meter.numbers()) > before + 100)
        count = writer.stop()
        visible = {each for each in range(count) if each % 7 not in (3, 5)}
        _until(run, lambda: meter.numbers() >= visible)
        run.stop()
    hidden = meter.numbers() - visible
    assert all(each % 7 == 3 for each in hidden)
    assert max(hidden) < closed
    assert {each for each in range(opened - 50) if each % 7 == 3} <= hidden
    records = _records(broker, meter.out)
    assert all(len(each) == 1 for each in records.values())
    assert len(records) == len(visible | hidden), "an event has one key on both ways"
    assert all(len(key) == len("meter.") + 32 for key in records)


@pytest.mark.soak
def test_nothing_is_lost_whatever_is_killed(broker: KafkaServer, tmp_path: Path) -> None:
    meter = _Meter(tmp_path / "plant", broker, "kills")
    meter.declare("real-time")
    run = _Run(meter.folder)
    writer = _Writer(broker, meter.topic, 200)
    try:
        for number in range(6):
            _until(run, partial(_delivers, run, "meter"))
            before = writer.number
            _until(run, lambda before=before: writer.number > before + 300)
            if number % 3 == 0:
                run.kill()
                run = _Run(meter.folder)
            elif number % 3 == 1:
                _process(run).kill()
            else:
                broker.kill()
                broker.start()
        meter.check(run, writer.stop())
        run.stop()
    finally:
        writer.stop()
        if not run.has_ended():
            run.kill()
