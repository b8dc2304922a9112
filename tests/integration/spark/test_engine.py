"""The Spark engine on a real bus: what goes in comes out, once, where it belongs, whatever breaks meanwhile."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from situ.event.message import EventKey
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.quality.measurement.acknowledgements import StoredBatches
from situ.quality.model.declarations import BUILT_IN, Capability, Profile, Quality
from situ.routing.model import Subscription
from situ.spark.engine import BatchReport, SparkEngine
from situ.spark.source import BusSource
from tests.zone import Zone, event, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOT = Subscription(client="desk", name="hot", types=("Reading",), where="value > 50", durable=True)
ALL = Subscription(client="board", name="all", types=("Reading",), durable=True)
PRESS = Subscription(client="board", name="press", types=("Reading", "Alarm"), where="event.source LIKE 'press-1%'")


@contextmanager
def running(spark: SparkSession, at: Zone, folder: Path) -> Iterator[SparkEngine]:
    engine = SparkEngine(spark, at.address, at.deployment.settings, folder)
    engine.start()
    try:
        yield engine
    finally:
        engine.stop()


def wait_for(condition: Callable[[], bool], *, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def drained(engine: SparkEngine, at: Zone) -> Callable[[], bool]:
    def check() -> bool:
        engine.wait(0.001)
        return engine.seq >= at.bus.state(at.names.in_stream).last and engine.version == at.deployment.version

    return check


def reading(number: int, value: float) -> dict[str, object]:
    return event(str(number), "Reading", {"sensor": f"s{number % 7}", "value": value})


def test_events_reach_the_root_log_and_the_groups_that_want_them(spark: SparkSession, tmp_path: Path) -> None:
    with zone(tmp_path, [HOT, ALL]) as at, running(spark, at, tmp_path / "checkpoints") as engine:
        for press in range(1, 4):
            for start in range(0, 300, 100):
                at.send(f"press-{press}", [reading(number, number % 100) for number in range(start, start + 100)])
        wait_for(drained(engine, at))
        root = at.root()
        assert len(root) == 900
        for press in range(1, 4):
            mine = [row for row in root if row.client == f"press-{press}"]
            assert [row.seq for row in mine] == list(range(1, 301))
            assert {row.ad for row in mine} == {f"press-{press}/readings"}
        delivered = {len(rows): rows for rows in at.delivered().values()}
        assert sorted(delivered) == [441, 900]
        assert all(json.loads(row.data)["value"] > 50 for row in delivered[441])
        assert engine.totals.types == {"Reading": 900}
        assert sorted(engine.totals.groups.values()) == [441, 900]


def test_batches_tell_what_they_stored_for_readers_where_that_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    reliability = Capability(about=BUILT_IN["reliability"], lb=0, ub=1, cv=1)
    profile = Profile(publisher="press-1", type="Reading", capabilities={"reliability": reliability})
    found = StoredBatches()

    def on_batch(batch: BatchReport) -> None:
        for each in batch.counts:
            found.add(StoredBatches.from_json(each.stored))

    with zone(tmp_path, [HOT, ALL]) as at:
        at.publish(replace(at.deployment, quality=Quality(profiles={profile.id: profile})))
        engine = SparkEngine(spark, at.address, at.deployment.settings, tmp_path / "checkpoints", on_batch=on_batch)
        engine.start()
        for press in (1, 2):
            at.send(f"press-{press}", [reading(number, number) for number in range(100)])
        wait_for(drained(engine, at))
        engine.stop()
        stored = at.messages(at.names.out_stream)
        assert found.by_group.keys() == {at.names.group_of(each.subject) for each in stored}
        for group, lot in found.by_group.items():
            own = [each.seq for each in stored if at.names.group_of(each.subject) == group]
            assert (lot.first, lot.last, lot.messages) == (min(own), max(own), len(own))
        counted = [lot.events for lot in found.by_group.values()]
        assert sorted(each["press-1", "Reading"] for each in counted) == [49, 100]
        assert all(len(each) == 1 for each in counted)


def test_what_is_no_event_becomes_a_dead_letter_and_spoils_no_other(spark: SparkSession, tmp_path: Path) -> None:
    wanted = Subscription(client="desk", name="dead", types=("situ.deadletter",), durable=True)
    with zone(tmp_path, [ALL, wanted]) as at, running(spark, at, tmp_path / "checkpoints") as engine:
        bad: list[bytes | dict[str, object]] = [
            b"{not json",
            event("1", "Reading", {"sensor": "s", "value": "hot"}),
            event("2", "Reading", {"value": 1.0}),
            event("3", "Nothing", {}),
            event("4", "Reading", {"sensor": "s", "value": 1.0}, time="2999-01-01T00:00:00Z"),
            event("5", "Reading", {"sensor": "s", "value": 1.0}, situad="press-2/readings"),
            event("6", "Reading", {"sensor": "x" * 2_000_000, "value": 1.0}),
            b"\xff\xfe",
        ]
        mixed = [each for number, each in enumerate(bad) for each in (each, reading(100 + number, 1.0))]
        at.send("press-1", mixed)  # type: ignore[arg-type]
        at.send("nobody", [reading(1, 1.0)])
        wait_for(drained(engine, at))
        assert [row.id for row in at.root()] == [str(100 + number) for number in range(len(bad))]
        codes = [letter["code"] for letter in at.dead()]
        assert codes[:4] == ["E701", "INT703", "INT703", "INT701"] or len(codes) == len(bad) + 1
        assert {"E701", "E703", "R002", "R007"} <= set(codes)
        assert sum(engine.totals.dead.values()) == len(bad) + 1
        letters = [row for rows in at.delivered().values() for row in rows if row.type == "situ.deadletter"]
        assert len(letters) == len(bad) + 1


def test_a_repeated_message_is_taken_once(spark: SparkSession, tmp_path: Path) -> None:
    with zone(tmp_path, [ALL]) as at, running(spark, at, tmp_path / "checkpoints") as engine:
        lines = [json.dumps(reading(number, 1.0)).encode() for number in range(10)]
        at.store(EventKey("press-1", 1, 1), lines[:6])
        wait_for(drained(engine, at))
        at.store(EventKey("press-1", 1, 1), lines[:5])  # cut differently, so that the bus cannot know it
        at.store(EventKey("press-1", 1, 4), lines[3:])  # overlaps
        at.store(EventKey("press-1", 1, 2), lines[1:3])
        wait_for(drained(engine, at))
        at.store(EventKey("press-1", 2, 1), lines[:2])  # a new incarnation starts again
        wait_for(drained(engine, at))
        assert [(row.incarnation, row.seq) for row in at.root()] == [(1, n) for n in range(1, 11)] + [(2, 1), (2, 2)]
        assert [len(rows) for rows in at.delivered().values()] == [12]


def test_a_deployment_takes_effect_between_two_batches(spark: SparkSession, tmp_path: Path) -> None:
    with zone(tmp_path, [ALL]) as at, running(spark, at, tmp_path / "checkpoints") as engine:
        at.send("press-1", [reading(1, 60.0)])
        wait_for(drained(engine, at))

        at.publish(replace(at.deployment, subscriptions={ALL.id: ALL, HOT.id: HOT}))
        wait_for(drained(engine, at))  # without any event
        at.send("press-1", [reading(2, 70.0)])
        wait_for(drained(engine, at))
        assert sorted(sorted(row.id for row in rows) for rows in at.delivered().values()) == [["1", "2"], ["2"]]


def test_an_engine_goes_on_where_it_was_stopped(spark: SparkSession, tmp_path: Path) -> None:
    with zone(tmp_path, [ALL]) as at:
        for start in range(2):
            with running(spark, at, tmp_path / "checkpoints") as engine:
                at.send("press-1", [reading(start, 1.0)])
                wait_for(drained(engine, at))
            at.send("press-1", [reading(10 + start, 1.0)])
        with running(spark, at, tmp_path / "checkpoints") as engine:
            wait_for(drained(engine, at))
        assert [row.id for row in at.root()] == ["0", "10", "1", "11"]


def test_a_lost_checkpoint_is_made_up_from_the_root_log(spark: SparkSession, tmp_path: Path) -> None:
    with zone(tmp_path, [ALL]) as at:
        with running(spark, at, tmp_path / "one") as engine:
            at.send("press-1", [reading(1, 1.0), reading(2, 1.0)])
            wait_for(drained(engine, at))
        at.send("press-1", [reading(3, 1.0)])
        with running(spark, at, tmp_path / "other") as engine:
            wait_for(drained(engine, at))
        assert [row.id for row in at.root()] == ["1", "2", "3"]


def test_a_damaged_checkpoint_is_refused_with_its_file(spark: SparkSession, tmp_path: Path) -> None:
    with zone(tmp_path, [ALL]) as at:
        with running(spark, at, tmp_path / "checkpoints") as engine:
            at.send("press-1", [reading(1, 1.0)])
            wait_for(drained(engine, at))
        offsets = tmp_path / "checkpoints" / "events" / "offsets"
        newest = max(offsets.glob("[0-9]*"), key=lambda file: int(file.name))
        newest.write_text("v1\n{")
        with pytest.raises(SituError) as error:
            SparkEngine(spark, at.address, at.deployment.settings, tmp_path / "checkpoints").start()
        assert error.value.problems[0].code.code == "N101"
        assert str(newest) in str(error.value)


def test_a_job_of_ones_own_reads_the_log_and_publishes_once(spark: SparkSession, tmp_path: Path) -> None:
    with zone(tmp_path, [ALL]) as at:
        at.send("press-1", [reading(number, 1.0) for number in range(10)])
        spark.dataSource.register(BusSource)
        options = {"address": at.address.to_json(), "content": "events"}
        events = spark.read.format("situ-bus").options(**options).load()
        assert sorted(row.seq for row in events.collect()) == list(range(1, 11))
        messages = events.selectExpr(
            "'situ.main.root.r1.Reading' AS subject",
            "to_json(map('Nats-Msg-Id', concat('own-', seq))) AS headers",
            "CAST(event AS BINARY) AS body",
        )
        for _ in range(2):
            messages.write.format("situ-bus").options(**options).mode("append").save()
        found = at.messages(at.names.root_stream)
        assert sorted(json.loads(message.body)["id"] for message in found) == sorted(map(str, range(10)))
