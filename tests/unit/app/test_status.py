"""What a run says about itself, without anything running."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import random
import socket
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from situ.app import run as supervising
from situ.app.engines import OnMeasured
from situ.app.metrics import MetricsReporter, SubscriptionCounts
from situ.app.run import supervise
from situ.app.worker_events import WorkerLoad, WorkerLoads, WorkerPublisher, has_moved
from situ.bus.memory import MemoryBus
from situ.bus.nats import NatsBus
from situ.cli.render.run import accepted, clock, show_line, size
from situ.cli.render.run import delivered as show_delivered
from situ.cli.render.status import size_text
from situ.event.message import split_lines
from situ.event.row import Row, origins_of
from situ.lang.catalogue import BUS_UNREACHABLE, ENGINE_FAILED
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.model import Deployment
from situ.project.event_files import EventLineReader, InputError, InputEvent
from situ.project.state_folder import LOG, logging_to
from situ.quality.model.shapes import Limit, Shape, Thin
from situ.registry.run_metrics import RUNNING, WAITING, EngineSize, EventRates, ExecutorLoad, RunMetrics, decode_metrics
from situ.routing import Subscription
from situ.routing.delivery_groups import group_of
from situ.settings import Settings
from situ.stages.detect.situation_events import DetectionStatus, PolicyMessage

THINNED = Shape(thin=Thin(limits=(Limit(events=1),)))


async def never() -> None:
    """As a router ends that does not."""
    await asyncio.Event().wait()


def test_figures_come_back_as_they_were() -> None:
    figures = RunMetrics(engine="edge", version=3, taken=5, types={"A": 5}, memory={"situ": 1}, taken_rate=2.5)
    assert decode_metrics(figures.encode()) == figures


def test_of_very_many_names_the_highest_counts_are_told() -> None:
    figures = RunMetrics(engine="edge", subscriptions={f"c/{number}": number for number in range(10_000)})
    found = decode_metrics(figures.encode())
    assert found is not None
    assert len(found.subscriptions) == 200
    assert found.subscriptions["c/9999"] == 9999


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b'"x"', b"{", b"{}"])
def test_what_are_no_figures(text: bytes) -> None:
    assert decode_metrics(text) is None


def test_figures_of_a_later_release_are_read_as_far_as_they_are_known() -> None:
    assert decode_metrics(b'{"engine": "edge", "taken": 1, "unheard": {}}') == RunMetrics(engine="edge", taken=1)


def test_rates_are_those_of_the_last_seconds() -> None:
    rates = EventRates()
    assert rates.add(0.0, 0, 0) == (0.0, 0.0)
    assert rates.add(1.0, 100, 10) == (100.0, 10.0)
    assert rates.add(2.0, 300, 10) == (150.0, 5.0)
    for second in range(3, 20):
        rates.add(float(second), 300, 10)
    assert rates.add(20.0, 300, 10) == (0.0, 0.0)


@dataclass
class Counts:
    types: Counter[str] = field(default_factory=Counter)
    groups: Counter[str] = field(default_factory=Counter)
    live: Counter[str] = field(default_factory=Counter)
    dead: Counter[str] = field(default_factory=Counter)
    origins: Counter[str] = field(default_factory=Counter)
    originals: Counter[str] = field(default_factory=Counter)
    converted: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)


def test_each_durable_subscription_of_a_group_is_delivered_all_of_it() -> None:
    first = Subscription(client="a", name="one", types=("T",), where="x > 1", durable=True)
    second = Subscription(client="b", name="two", types=("T",), where="x>1", durable=True)
    alone = Subscription(client="c", name="three", types=("T",), durable=True)
    delivered = SubscriptionCounts()
    delivered.learn(Deployment(version=1, subscriptions={each.id: each for each in (first, second, alone)}))
    counts = Counts(groups=Counter({group_of(first): 5}), live=Counter({"d/four": 2}))
    assert delivered.by_subscription(counts) == {"a/one": 5, "b/two": 5, "d/four": 2}
    # One that is gone keeps what it got, so that sums never fall.
    delivered.learn(Deployment(version=2, subscriptions={first.id: first}))
    assert delivered.by_subscription(counts)["b/two"] == 5


def test_a_subscription_that_goes_over_to_another_group_and_back_keeps_what_it_got() -> None:
    whole = Subscription(client="a", name="one", types=("T",), durable=True)
    shaped = replace(whole, shaped=True)
    old, new = group_of(whole), group_of(shaped)
    assert old != new
    delivered = SubscriptionCounts()
    got = []
    steps = ((None, 5, 0), (THINNED, 5, 3), (THINNED, 9, 4), (None, 10, 4))
    for version, (shape, one, other) in enumerate(steps, 1):
        shapes = {} if shape is None else {whole.id: shape}
        delivered.learn(Deployment(version=version, subscriptions={whole.id: whole}, shapes=shapes))
        got.append(delivered.by_subscription(Counts(groups=Counter({old: one, new: other})))["a/one"])
    assert got == [5, 8, 9, 10], "others went on in the group that it had left"


def test_sizes_and_times_as_people_read_them() -> None:
    assert [size(each) for each in (0, 1023, 1024, 1536, 20 * 1024**2, 3 * 1024**3)] == [
        *("0 B", "1023 B", "1.0 KiB", "1.5 KiB", "20 MiB", "3.0 GiB")
    ]
    assert [clock(each) for each in (0.9, 61, 3_661)] == ["00:00", "01:01", "1:01:01"]
    figures = RunMetrics(engine="edge", state=RUNNING, version=2, at=5_000_000, taken=1_234, taken_rate=10)
    assert show_line(figures) == (
        "00:05 running · in 10/s (1,234) · out 0/s (0) · waiting 0 · dead letters 0 · memory 0 B · deployment 2"
    )


def test_terms_are_named_where_they_are_not_roots() -> None:
    figures = RunMetrics(
        engine="edge",
        types={"Door": 7, "Sighting": 5, "SightingOfCat": 1},
        origins={"Sighting readers": 3, "Sighting cameras": 2, "SightingOfCat readers": 1},
        subscriptions={"desk/a": 1, "us-desk/b": 4},
        terms={"us-desk/b": "us"},
    )
    assert accepted(figures) == [
        ("Door", 7),
        ("Sighting", 5),
        ("Sighting from readers", 3),
        ("Sighting from cameras", 2),
        ("SightingOfCat", 1),
        ("SightingOfCat from readers", 1),
    ]
    assert show_delivered(figures) == [("us-desk/b in us", 4), ("desk/a", 1)]
    assert decode_metrics(figures.encode()) == figures


def test_what_was_dropped_is_told_below_whom_it_was_dropped_for() -> None:
    dropped = {"desk/a rate": 7, "desk/a late": 1, "desk/ab rate": 5, "wall/z confidence": 2}
    figures = RunMetrics(engine="edge", subscriptions={"desk/a": 9, "desk/ab": 4}, dropped=dropped)
    assert show_delivered(figures) == [
        ("desk/a", 9),
        ("desk/a dropped for rate", 7),
        ("desk/a dropped for late", 1),
        ("desk/ab", 4),
        ("desk/ab dropped for rate", 5),
        ("wall/z", 0),
        ("wall/z dropped for confidence", 2),
    ]
    assert decode_metrics(figures.encode()) == figures


def test_contexts_of_subscriptions_are_learnt_with_the_deployment() -> None:
    there = Subscription(client="a", name="one", types=("T",), context="us")
    here = Subscription(client="b", name="two", types=("T",))
    delivered = SubscriptionCounts()
    delivered.learn(Deployment(version=1, subscriptions={each.id: each for each in (there, here)}))
    assert delivered.terms(("a/one", "b/two", "c/three")) == {"a/one": "us"}
    delivered.learn(Deployment(version=2, subscriptions={"a/one": replace(there, context="root")}))
    assert delivered.terms(("a/one",)) == {}


@pytest.mark.parametrize(("context", "expected"), [("root", []), ("readers", ["T readers"]), ("us@3", ["T us"])])
def test_rows_say_in_whose_terms_they_came(context: str, expected: list[str]) -> None:
    row = Row(65536, "a", 1, 1, context, 0, "a", "a", "T", 0, "", None, "", b"{}")
    assert list(origins_of([row])) == expected


# ── engines that fail ─────────────────────────────────────────────────────────────────────────────


class Engine:
    """Fails with these, one after the other, and then is stopped."""

    name, version, reached, batch, counts, watched = "trial", 1, None, 0.0, Counts(), DetectionStatus()
    size = EngineSize(executors=2, cores=4, buckets=8, behind=5)

    def __init__(self, *failures: SituError) -> None:
        self._failures = list(failures)
        self.starts = 0
        self.said: list[PolicyMessage] = []
        self.on_measured: OnMeasured | None = None

    async def start(self) -> None:
        self.starts += 1

    async def ended(self) -> None:
        if self._failures:
            raise self._failures.pop(0)

    async def stop(self) -> None: ...

    def executors_at_work(self) -> Sequence[ExecutorLoad]:
        return [ExecutorLoad(worker="b/7", host="b", cpu=0.5, rows=100.0, buckets=4)]

    async def say(self, message: PolicyMessage) -> None:
        self.said.append(message)


@dataclass
class Connection:
    connected: bool = True


FAILED = SituError(ENGINE_FAILED(engine="trial", reason="it is a trial", remedy="None."))
AWAY = SituError(BUS_UNREACHABLE(servers="nats://nowhere", reason="it is away"))
OF_BUS = SituError(ENGINE_FAILED(engine="trial", reason="B101 The bus cannot be reached", remedy="None."))


def test_what_is_told_while_a_look_is_taken_is_not_forgotten() -> None:
    async def main() -> None:
        pulse, engine = MetricsReporter("trial"), Engine()
        engine.version = 0
        async with MemoryBus() as bus:
            await bus.prepare(Settings())
            look = asyncio.create_task(pulse.look(bus, engine))
            told = 0
            while not look.done():
                told += 1
                pulse.tell(f"state {told}")
                await asyncio.sleep(0)
            await look
        assert pulse.figures.state == f"state {told}"

    asyncio.run(main())


def supervised(engine: Engine, bus: Connection, pulse: MetricsReporter) -> None:
    asyncio.run(supervise(engine, cast(NatsBus, bus), pulse, never))


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervising, "_PAUSES", (0.0,))


@pytest.mark.parametrize("failure", [AWAY, OF_BUS])
def test_an_engine_that_lost_the_bus_goes_on_when_it_is_back(failure: SituError) -> None:
    engine, pulse = Engine(failure, failure), MetricsReporter("trial")
    supervised(engine, Connection(), pulse)
    assert engine.starts == 2
    assert (pulse.figures.state, pulse.figures.restarts) == (RUNNING, 2)


def test_an_engine_that_fails_while_the_bus_is_away_waits_for_it() -> None:
    engine, bus, pulse = Engine(FAILED), Connection(connected=False), MetricsReporter("trial")

    async def run() -> None:
        task = asyncio.create_task(supervise(engine, cast(NatsBus, bus), pulse, never))
        while pulse.figures.state != WAITING:
            await asyncio.sleep(0.01)
        assert engine.starts == 0
        bus.connected = True
        await task

    asyncio.run(run())
    assert engine.starts == 1


def test_another_failure_ends_the_run() -> None:
    engine = Engine(FAILED)
    with pytest.raises(SituError, match="N102"):
        supervised(engine, Connection(), MetricsReporter("trial"))
    assert engine.starts == 0


# ── logs ──────────────────────────────────────────────────────────────────────────────────────────


def test_what_happens_is_logged_into_the_project_and_nowhere_else_afterwards(tmp_path: Path) -> None:
    log = logging.getLogger("situ.trial")
    before = list(logging.getLogger().handlers)
    with logging_to(tmp_path):
        log.info("one %d", 1)
        logging.getLogger("other").info("not ours, and no warning")
        logging.getLogger("other").warning("a warning")
    log.warning("too late")
    text = (tmp_path / LOG).read_text()
    assert [line.split(" ", 2)[2].strip() for line in text.splitlines()] == [
        "INFO    situ.trial: one 1",
        "WARNING other: a warning",
    ]
    assert logging.getLogger().handlers == before


# ── what is published ─────────────────────────────────────────────────────────────────────────────


def read(text: bytes, chunk: int, type: str = "T") -> list[InputEvent | InputError]:
    reader = EventLineReader("file", type, limit=1_000)
    found: list[InputEvent | InputError] = []
    for start in range(0, len(text), chunk):
        found += reader.feed(text[start : start + chunk])
    return found + reader.finish()


@pytest.mark.parametrize("chunk", [1, 7, 1_000])
def test_lines_are_the_same_however_they_come(chunk: int) -> None:
    event = b'{"specversion": "1.0", "id": "1", "source": "s", "type": "U", "situkey": "x", "data": {"a": 2}}'
    found = read(b'{"a": 1}\n\n' + event + b'\r\n{"a": 3\n' + b'"%s"\n' % (b"x" * 2_000) + b'{"a": 4}', chunk)
    assert [(each.line, each.type, each.data) for each in found if isinstance(each, InputEvent)] == [
        (1, "T", {"a": 1}),
        (3, "U", {"a": 2}),
        (6, "T", {"a": 4}),
    ]
    wrong = [each for each in found if isinstance(each, InputError)]
    assert [(each.line, each.problems[0].code.code) for each in wrong] == [(4, "E701"), (5, "E704")]
    assert str(wrong[0].problems[0]).startswith("file:4:1: E701")


@pytest.mark.parametrize("chunk", [1, 1_000])
@pytest.mark.parametrize(
    ("text", "data"),
    [
        (b'{\n "a": 1\n}\n', [{"a": 1}]),
        (b'[\n{"a": 1},\n{"a": 2}\n]', [{"a": 1}, {"a": 2}]),
        (b"", []),
        (b"\n", []),
    ],
)
def test_one_value_over_several_lines(chunk: int, text: bytes, data: list[Any]) -> None:
    assert [each.data for each in read(text, chunk) if isinstance(each, InputEvent)] == data


def test_bare_data_needs_a_type() -> None:
    (wrong,) = read(b'{"a": 1}', 100, type="")
    assert isinstance(wrong, InputError)
    assert wrong.problems[0].code.code == "P170"


def test_figures_tell_how_long_a_run_lasts() -> None:
    figures = RunMetrics(engine="edge", started=1_000_000, at=3_500_000)
    assert figures.seconds == 2.5
    assert replace(figures, at=0).seconds == 0.0


# ── how busy workers are ──


LOAD = WorkerLoad(worker="a/1", host="a", engine="spark", cpu=0.5, rows=1000.0, lag=0, buckets=2)


@pytest.mark.parametrize(
    ("now", "moved"),
    [
        ({}, False),
        ({"cpu": 0.54}, False),
        ({"cpu": 0.56}, True),
        ({"rows": 1040.0}, False),
        ({"rows": 940.0}, True),
        ({"lag": 20}, False),
        ({"lag": 21}, True),
        ({"buckets": 3}, True),
    ],
)
def test_a_worker_is_silent_while_what_it_told_is_precise_enough(now: dict[str, Any], moved: bool) -> None:
    assert has_moved(LOAD, replace(LOAD, **now)) is moved


def test_what_was_told_last_is_never_off_by_more_than_it_says_and_nobody_is_silent_for_long() -> None:
    loads, dice, told = WorkerLoads(), random.Random(3), list[int]()
    now, known = LOAD, LOAD
    for second in range(200):
        now = replace(now, cpu=min(max(now.cpu + dice.uniform(-0.02, 0.02), 0.0), 1.0))
        if due := loads.due([now], second * 1_000_000):
            (known,) = due
            told.append(second)
        assert abs(known.cpu - now.cpu) <= known.imprecision
    assert 20 <= len(told) < 100
    assert max(after - before for before, after in itertools.pairwise(told)) <= 10


def test_events_of_workers_are_numbered_and_say_what_is_known_of_each() -> None:
    async def main() -> list[dict[str, Any]]:
        engine = Engine()
        publisher = WorkerPublisher(engine)
        figures = RunMetrics(engine="trial", taken=500, types={"situ.worker": 100}, waiting=3)
        assert await publisher.tell(figures) == 2
        assert [(each.first, each.count) for each in engine.said] == [(1, 2)]
        assert await publisher.tell(replace(figures, taken=520, types={"situ.worker": 120})) <= 1
        return [json.loads(line) for line in split_lines(engine.said[0].body)]

    own, other = asyncio.run(main())
    assert (own["type"], own["source"], own["id"], other["id"]) == ("situ.worker", "situ-workers", "1", "2")
    assert own["data"]["worker"] == f"{socket.gethostname()}/{os.getpid()}"
    assert (own["data"]["lag"], own["data"]["rows"], own["data"]["buckets"]) == (3, 0.0, 0)
    assert other["data"] == {
        "worker": "b/7",
        "host": "b",
        "engine": "trial",
        "cpu": 0.5,
        "rows": 100.0,
        "lag": 3,
        "buckets": 4,
        "imprecision": 0.05,
    }


def test_status_says_with_how_much_an_engine_works() -> None:
    size = EngineSize(executors=3, cores=6, buckets=8, behind=1)
    assert size_text(size, 0.42) == "3 executors · 6 cores · policies in 8 buckets, 1 message behind · last batch 0.4 s"
    assert size_text(EngineSize(cores=1), 0) == "1 core · last batch 0.0 s"
    figures = RunMetrics(engine="spark", size=size)
    assert decode_metrics(figures.encode()) == figures
