"""How many buckets, partitions and executors there are to be: what is wanted, when, and by whom it is found."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

from situ.app.worker_events import ExecutorLoads
from situ.settings.model import Executors
from situ.spark.checkpoint import Offset
from situ.spark.elastic.executors import ExecutorCount
from situ.spark.elastic.sizes import BucketCount, SizeStore, WantedSizes
from situ.spark.frames import WorkerSample
from situ.storage.state_folder import open_folder

TRIGGER = timedelta(milliseconds=200)


def test_what_the_driver_wants_the_source_reads_a_second_later_at_most(tmp_path: Path) -> None:
    now = 100.0
    source, driver = (SizeStore(open_folder(tmp_path), clock=lambda: now) for _ in range(2))
    assert source.load() == WantedSizes()
    driver.save(WantedSizes(buckets=8, partitions=4))
    assert source.load() == WantedSizes(), "it has just looked"
    now += 1
    assert source.load() == WantedSizes(buckets=8, partitions=4)
    (tmp_path / "sizes.json").write_text("{")
    now += 1
    assert source.load() == WantedSizes(), "it serves the pace of work"


def test_an_offset_of_before_says_nothing_of_buckets_and_is_written_as_it_was() -> None:
    assert "buckets" not in Offset(seq=3).as_json()
    assert Offset.from_json(Offset(seq=3, buckets=8).as_json()).buckets == 8
    assert Offset.from_json({**Offset(seq=3).as_json()}).buckets == 0


def test_a_number_in_the_settings_holds_at_once() -> None:
    assert BucketCount().wanted(6, 2, 2, 0.0) == 6


def test_buckets_follow_cores_that_stay() -> None:
    count, wanted = BucketCount(), list[int]()
    cores = [2] * 5 + [8] * 4 + [2] + [8] * 30 + [2] * 30 + [8] + [2] * 90 + [5] * 30
    buckets = 2
    for second, each in enumerate(cores):
        buckets = count.wanted(0, each, buckets, float(second))
        wanted.append(buckets)
    assert wanted[19] == 2, "eight cores for nine seconds after a break"
    assert wanted[20] == 8
    assert wanted[100] == 8, "two for half a minute, and again for less than one"
    assert wanted[-31] == 2
    assert wanted[-1] == 5


def test_twice_the_cores_and_half_of_them_change_nothing_back_and_forth() -> None:
    """An executor that goes and comes does not divide states anew all the time."""
    dice, count, buckets, changes = random.Random(1), BucketCount(), 8, 0
    for second in range(1000):
        now = count.wanted(0, dice.choice([5, 6, 7, 8]), buckets, float(second))
        changes, buckets = changes + (now != buckets), now
    assert changes == 0


def run(count: ExecutorCount, there: int, seconds: range, took: float, waiting: int) -> list[int]:
    found = []
    for second in seconds:
        count.note("events", took, waiting, float(second))
        there = count.wanted(Executors(min=1, max=6), TRIGGER, there, float(second))
        found.append(there)
    return found


def test_executors_come_when_events_wait_behind_long_batches_and_go_one_by_one() -> None:
    count = ExecutorCount()
    assert run(count, 1, range(5), 3.0, 100) == [1] * 5
    assert run(count, 1, range(5, 20), 3.0, 100) == [2] * 6 + [4] * 6 + [6] * 3
    assert run(count, 6, range(20, 40), 3.0, 0) == [6] * 20, "long, but nothing waits"
    assert run(count, 6, range(40, 80), 1.0, 100) == [6] * 40, "events wait for a second: that is what batches are"
    quiet = run(count, 6, range(80, 300), 0.3, 0)
    assert quiet[59] == 6
    assert quiet[60] == 5
    assert quiet[-1] == 3


def test_a_run_without_batches_needs_few_and_limits_hold() -> None:
    count = ExecutorCount()
    limits = Executors(min=2, max=4)
    assert count.wanted(limits, TRIGGER, 1, 0.0) == 2
    assert count.wanted(limits, TRIGGER, 9, 1.0) == 4
    assert [count.wanted(limits, TRIGGER, 4, 2.0 + second) for second in range(60)].count(3) == 1, "after a minute"


def test_what_executors_say_is_counted_over_some_seconds() -> None:
    loads = ExecutorLoads()
    first, second = WorkerSample("a/1", "a", 0.9), WorkerSample("b/1", "b", 0.1)
    loads.worked(first, 300, 10.0)
    loads.worked(second, 50, 11.0)
    loads.worked(first, 200, 12.0)
    loads.divided({"a/1": 6, "b/1": 2})
    loads.divided({})
    found = {each.worker: (each.rows, each.buckets, each.cpu) for each in loads.of_now(13.0)}
    assert found == {"a/1": (100.0, 6, 0.9), "b/1": (10.0, 2, 0.1)}
    assert [each.worker for each in loads.of_now(16.5)] == ["a/1"]
    assert loads.of_now(18.0) == []
