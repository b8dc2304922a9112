"""From raw event to alarm, over the bus, on two cores: Situ on Spark, Esper and Flink SQL read the same stream."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil

from benchmarks.bench import Bench
from benchmarks.harness import Scenario, Taken, Variant, Verdict
from benchmarks.peers import JAVA, JavaPeer, compiled, from_maven
from benchmarks.processor import processor_seconds
from benchmarks.situation_answers import Answers, same
from benchmarks.situation_esper import JARS
from benchmarks.situation_esper import NEEDS as ESPER_NEEDS
from benchmarks.situation_flink import NEEDS as FLINK_NEEDS
from benchmarks.situation_flink import OPENED, flink_jars
from benchmarks.situation_raw import RawRecording, record_raw
from benchmarks.zones import Ingress
from situ.app.metrics import kind_of
from situ.bus.sync_bus import BlockingBus
from situ.event.lines import decode_line, stored_lines
from situ.event.subjects import BusNames
from situ.lang.records import replace
from situ.model import Deployment
from situ.project.check import check_folder
from situ.spark.detect_query import DetectBatchReport
from situ.spark.engine import BatchReport, SparkEngine
from tests.nats_server import nats_server
from tests.zone import Zone

CLIENT_NEEDS = "jnats 2.26.2"
_CLIENT = (
    (
        "io/nats/jnats/2.26.2/jnats-2.26.2.jar",
        "0deaf67bc6c69ed0cf3af915c7fe2dde2c3f66d996c32c218e2c1146a106b0ae",
    ),
    (
        "com/fasterxml/jackson/core/jackson-core/2.22.2/jackson-core-2.22.2.jar",
        "ff167a6317be15895706c26668f45b898efe40ab8780970658210fe1393d52a6",
    ),
)
POLICY = "unaccompanied-guest"
ALARMS = "security/alarms"
SITU, SITU_ALARMS = "Situ on Spark, all subscriptions", "Situ on Spark, alarms only"
ESPER, ESPER_TWO, FLINK = "Esper", "Esper, two engines", "Flink SQL"
CPU = "events a second of processor time"
BUS = "µs of the bus an event"
_TOLD = ("situ.situation.opened", "situ.situation.continued")
_TASKS = 2
_WITHIN = 300.0


class Bus:
    """What all of them read, and what the bus itself takes meanwhile."""

    def __init__(self, raw: RawRecording, zone: Zone) -> None:
        self.raw, self.zone = raw, zone
        self.ingress = Ingress(zone, raw.messages, len(raw.messages))
        self._process = psutil.Process(zone.server.pid())

    def fill(self) -> None:
        self.ingress.fill()
        self._before = self._used()

    def taken(self, seconds: float, processor: float, more: dict[str, float]) -> Taken:
        events = self.raw.events
        bus = (self._used() - self._before) / events * 1e6
        return Taken(value=events / seconds, figures={CPU: events / processor, BUS: bus, **more})

    def _used(self) -> float:
        times = self._process.cpu_times()
        return times.user + times.system


# ── Situ ──


class _Drain:
    """When the first batch of a run began, and when all that is to be told was in the root log."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._told: int | None = None
        self._begun: _Instant | None = None
        self._batches: list[tuple[int, _Instant]] = []

    def step(self, step: str) -> None:
        if self._begun is None and step == "offset":
            self._begun = _Instant()

    def batch(self, report: BatchReport) -> None:
        self._batches.append((report.offset.seq, _Instant()))

    def detected(self, report: DetectBatchReport) -> None:
        """What was decided is in the ingress stream now, as messages of the policy."""
        policy = report.progress.policies.get(POLICY)
        if self._told is None and policy is not None and (policy.reached or 0) >= self._bus.raw.until:
            self._told = self._bus.ingress.last

    @property
    def done(self) -> bool:
        return self._told is not None and bool(self._batches) and self._batches[-1][0] >= self._told

    def taken(self) -> Taken:
        assert self._told is not None
        assert self._begun is not None
        begun, end = self._begun, next(at for seq, at in self._batches if seq >= self._told)
        events = self._bus.raw.events
        shares = {f"µs of {kind} an event": 1e6 * (end.kinds[kind] - begun.kinds[kind]) / events for kind in _KINDS}
        return self._bus.taken(end.at - begun.at, end.processor - begun.processor, shares)


_KINDS = ("driver", "java", "workers")


class _Instant:
    """A moment, and the processor time that each kind of process had taken by then."""

    def __init__(self) -> None:
        self.at, self.processor = time.perf_counter(), processor_seconds()
        self.kinds: defaultdict[str, float] = defaultdict(float)
        me = psutil.Process()
        for process in (me, *me.children(recursive=True)):
            with suppress(psutil.Error):  # it has ended meanwhile
                kind = "driver" if process == me else kind_of(process.name())
                times = process.cpu_times()
                self.kinds[kind] += times.user + times.system


def _situ(bench: Bench, bus: Bus, deployment: Deployment) -> Taken:
    bus.zone.publish(deployment)
    bus.fill()
    drain = _Drain(bus)
    engine = SparkEngine(
        bench.spark,
        bus.zone.address,
        deployment.settings,
        bench.folder("checkpoints"),
        folder=bus.raw.folder,
        on_step=drain.step,
        on_batch=drain.batch,
        on_detect=drain.detected,
    )
    engine.start()
    try:
        deadline = time.monotonic() + _WITHIN
        while not drain.done:
            engine.wait(0.02)  # raises if a query has failed
            assert time.monotonic() < deadline, f"not done within {_WITHIN:.0f} s"
    finally:
        engine.stop()
    same(bus.raw.answers, _told(bus.zone))
    return drain.taken()


def _told(zone: Zone) -> Answers:
    """Event and room of each detection that opened a situation, or continued it; nothing was late, or a dead letter."""
    bus, names = zone.bus, zone.names
    for stream in (names.dead_stream, names.late_stream):
        assert not bus.state(stream).messages, stream
    state = bus.state(names.root_stream)
    wanted = [*(names.root("*", type) for type in _TOLD), names.root("*")]
    found = []
    for message in bus.read(names.root_stream, state.first, state.last, subjects=wanted):
        for row in map(decode_line, stored_lines(message)):
            if row.type in _TOLD:
                data = json.loads(row.data)
                room = next(each["id"] for each in data["bindings"] if each["alias"] == "R")
                found.append((data["causes"][0]["id"], room))
    return _once(found)


def _once(found: Sequence[tuple[str, str]]) -> Answers:
    assert len(found) == len(set(found)), "a detection was reported twice"
    return frozenset(found)


# ── others ──


def _open_peer(bench: Bench, raw: RawRecording, name: str, jars: Sequence[Path], options: Sequence[str]) -> JavaPeer:
    sources = ("Recorded", "RawEvents", "BusMessages", name.replace("Bus", "Peer"), name)
    path = compiled(sources, jars, bench.folder("classes"))
    command = ["java", "-Xmx6g", "-XX:+UseParallelGC", *options, "-cp", path, name, str(raw.tables)]
    return bench.open(JavaPeer(command, bench.folder(name) / "errors"))


def _peer(peer: JavaPeer, bus: Bus, folder: Path, query: str, tasks: int) -> Taken:
    bus.fill()
    server, stream = bus.zone.server, bus.zone.names.in_stream
    answers = folder / "answers"
    told = peer.ask(server.url, server.token, stream, bus.ingress.messages, JAVA / query, tasks, answers)
    lines = (line.split("\t") for line in answers.read_text().splitlines())
    same(bus.raw.answers, _once([(event, room) for event, room in lines]))
    return bus.taken(told["seconds"], told["cpu"], {})


# ── the measurement ───────────────────────────────────────────────────────────────────────────────


def _variants(bench: Bench) -> list[Variant]:
    client = from_maven(CLIENT_NEEDS, _CLIENT)
    esper_jars = [*from_maven(ESPER_NEEDS, JARS), *client]
    all_flink = [*flink_jars(), *client]
    raw = record_raw(bench.folder("recorded"), rate=bench.some(20_000, 1_000), seconds=bench.some(50, 30))
    deployment = check_folder(raw.folder).deployment
    assert deployment is not None
    server = bench.open(nats_server(bench.folder("nats")))
    connection = bench.open(BlockingBus(server.address(), name="bench"))
    connection.prepare(deployment.settings)
    bus = Bus(raw, Zone(server, connection, server.address(), deployment, BusNames("main")))
    alone = replace(deployment, subscriptions={ALARMS: deployment.subscriptions[ALARMS]})
    esper = _open_peer(bench, raw, "EsperBus", esper_jars, ())
    flink = _open_peer(bench, raw, "FlinkBus", all_flink, OPENED)
    folder = bench.folder("answers")
    return [
        Variant(name=SITU, work=partial(_situ, bench, bus, deployment)),
        Variant(name=SITU_ALARMS, work=partial(_situ, bench, bus, alone)),
        Variant(name=ESPER, work=partial(_peer, esper, bus, folder, "answers.epl", 1)),
        Variant(name=ESPER_TWO, work=partial(_peer, esper, bus, folder, "answers.epl", 2)),
        Variant(name=FLINK, work=partial(_peer, flink, bus, folder, "answers.sql", _TASKS)),
    ]


def _judge(medians: dict[str, float]) -> list[Verdict]:
    found = [
        Verdict(what=f"{SITU}, events/s", value=medians[SITU], goal="≥ 100,000", met=medians[SITU] >= 100_000),
    ]
    for ours in (SITU, SITU_ALARMS):
        for theirs in (ESPER, ESPER_TWO, FLINK):
            ratio = medians[ours] / medians[theirs]
            found.append(Verdict(what=f"{ours}, over {theirs}", value=ratio))
            ratio = medians[f"{ours}: {CPU}"] / medians[f"{theirs}: {CPU}"]
            found.append(Verdict(what=f"{ours}, over {theirs}, by processor time", value=ratio))
    return found


SCENARIOS = [
    Scenario(
        name="situation-bus",
        title="From raw event to alarm, over the bus: Situ, Esper and Flink",
        unit="events/s",
        about=(
            "What badge readers and cameras of the smart building send in 50 s at 20,000 events/s, 10,000 people: "
            "CloudEvents in JSON, 500 a message, in a stream of JetStream. Each drains it on two cores; time runs from "
            "its first message to its last alarm, its process warm from a run before. All read the same messages, "
            "decode them, look up who carries a tag or has a face and where the sensor hangs, work out places in the "
            "building, look up persons and rooms, and give the same alarms, which every run is held to. *Situ* is the "
            "product's engine with its default settings, and does more: it checks events against their types, stamps "
            "them by scopes, writes all of them to the root log and situations to the bus, and keeps checkpoints from "
            "which it goes on exactly where it was. With *all subscriptions* of the example it delivers each event "
            "about twice besides, in three contexts; with *alarms only* alarms. Its time begins with the first batch, "
            "in which workers load the plan, and ends when all that is told is in the root log. *Esper* 9 and *Flink* "
            "2.3 read with NATS' client for Java, decode with Jackson as a stream, have the tables in memory, and keep "
            "nothing on disk. Esper: one thread reads, decodes and puts events into the order of time, which Esper "
            "needs; another has the engine, or two have an engine each with half of the restricted rooms. Flink: two "
            "tasks take messages in turns. Queries are those of the comparisons below, where four times as many of the "
            "events are of guests in restricted rooms. What the bus itself takes is not in the processor time; it "
            "stands beside it."
        ),
        variants=_variants,
        judge=_judge,
        repetitions=3,
        spark=True,
        needs=f"{CLIENT_NEEDS}, {ESPER_NEEDS}, {FLINK_NEEDS}",
    ),
]
