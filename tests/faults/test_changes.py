"""Subscriptions come and go by the dozen while events flow: the others miss nothing and see nothing twice.

In `make soak` they come and go by the hundred.

One run on Spark for all tests of this file; what was delivered live is what the root log gives when it is replayed.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

import situ
from situ.bus.sync_bus import close_shared
from situ.client.events import Event
from situ.spark.plans import current_version
from situ.spark.replay import replay
from tests.faults.deployed import PATIENCE, Deployed, deployed, wait_for
from tests.faults.traffic import (
    WISHES,
    Publisher,
    Recorder,
    check_seen,
    event_of,
    is_bad,
    kill_all,
    start_all,
    wait_ready,
    working,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLIENTS = 4


@dataclass
class Passing:
    """A subscription that comes and goes, and what it got: numbers by publisher."""

    where: str
    level: int
    durable: bool
    installed: float = 0.0
    """Seconds from asking until every engine worked with it."""
    withdrawn: float = 0.0
    got: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    dropped: int = 0

    def wants(self, number: int) -> bool:
        type, data = event_of(number)
        return type == "Alarm" and data["level"] == self.level and not is_bad(number)


@dataclass
class Flow:
    """What the run of this file left: who was there all the time, who passed, and who published."""

    at: Deployed
    recorders: list[Recorder]
    publishers: list[Publisher]
    passing: list[Passing]


@pytest.fixture(scope="module", params=[10, pytest.param(50, marks=pytest.mark.soak)])
def flow(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    folder = tmp_path_factory.mktemp("changes") / "plant"
    with deployed(folder, engine="spark") as at:
        recorders = [Recorder(folder, wish) for wish in WISHES]
        publishers = [Publisher(folder, f"pump-{number}", 1_000_000, 500) for number in range(2)]
        try:
            start_all(recorders)
            wait_ready(recorders)
            start_all(publishers)
            wait_ready(publishers)
            # The first batch loads the workers, which takes longer than any change does.
            wait_for(lambda: all(each.count > 1 for each in working(at, recorders)), "events flow")
            passing = asyncio.run(come_and_go(folder, request.param))
            for publisher in publishers:
                publisher.enough()
            wanted = sum(len(each.wish.expected(pump.count)) for each in recorders for pump in publishers)
            wait_for(
                lambda: sum(each.count - 1 for each in working(at, recorders)) >= wanted, "everything is delivered"
            )
            time.sleep(1)  # what comes twice comes late
            yield Flow(at, recorders, publishers, passing)
        finally:
            kill_all([*publishers, *recorders])


async def come_and_go(folder: Path, each: int) -> list[Passing]:
    """Several clients subscribe at the same time, one after the other each; then all of it is taken back."""
    passing = [
        Passing(f"level = {number % 5} AND number > {-number}", number % 5, durable=number % 3 == 0)
        for number in range(CLIENTS * each)
    ]
    shares = [passing[first::CLIENTS] for first in range(CLIENTS)]
    everyone = asyncio.Barrier(CLIENTS)
    await asyncio.gather(*(_pass(folder, f"passer-{n}", share, everyone) for n, share in enumerate(shares)))
    return passing


async def _pass(folder: Path, client: str, share: list[Passing], everyone: asyncio.Barrier) -> None:
    async with situ.connect(folder, client=client, timeout=PATIENCE) as node:
        registered = []
        for number, each in enumerate(share):
            began = time.monotonic()
            name = f"d{number}" if each.durable else None
            registration = await node.register_for_events("Alarm", where=each.where, durable=name, wait=False)
            assert await registration.installing.wait(PATIENCE)
            each.installed = time.monotonic() - began
            registered.append(registration)
            await node.add_listener(registration, _writing(each))
        await everyone.wait()
        await asyncio.sleep(1)
        for each, registration in zip(share, registered, strict=True):
            began = time.monotonic()
            await node.unregister_for_events(registration)
            each.withdrawn = time.monotonic() - began
            each.dropped = registration.dropped
        await everyone.wait()


def _writing(to: Passing) -> Any:
    def write(event: Event) -> None:
        to.got[event.key.split(".")[0]].append(event.data.number)

    return write


def test_who_stays_misses_nothing_and_sees_nothing_twice(flow: Flow, record_property: Any) -> None:
    for recorder in flow.recorders:
        check_seen(recorder, flow.publishers)
    for name in ("installed", "withdrawn"):
        seconds = sorted(getattr(each, name) for each in flow.passing)
        text = f"p50 {median(seconds):.3f} s, max {seconds[-1]:.3f} s"
        print(f"\n{len(seconds)} subscriptions {name}: {text}")
        record_property(name, text)
    print(f"{sum(pump.count for pump in flow.publishers)} events meanwhile")


def test_who_comes_and_goes_gets_all_in_between(flow: Flow) -> None:
    """From the first to the last event it got, none is missing: a change holds for whole batches, on all partitions."""
    assert sum(bool(each.got) for each in flow.passing) > len(flow.passing) / 2
    for each in flow.passing:
        assert not each.dropped
        for publisher, numbers in each.got.items():
            between = [number for number in range(numbers[0], numbers[-1] + 1) if each.wants(number)]
            assert numbers == between, (each.where, publisher)


def test_nothing_is_left_of_subscriptions_that_were_taken_back(flow: Flow) -> None:
    def consumers() -> set[str]:
        with flow.at.bus() as bus:
            return {each.name for each in bus.consumers()}

    wait_for(lambda: consumers() == {f"{wish.client}_all" for wish in WISHES}, "only those who stay have consumers")


def live(flow: Flow) -> dict[str, dict[str, list[str]]]:
    """Keys delivered by subscription and publisher, in order."""
    found: dict[str, dict[str, list[str]]] = {}
    for recorder in flow.recorders:
        keys = found[f"{recorder.client}/all"] = defaultdict(list)
        for each in recorder.seen():
            keys[each.client].append(each.key)
    return found


def test_replaying_the_log_on_spark_gives_what_was_delivered(flow: Flow, spark: SparkSession) -> None:
    address = flow.at.address
    try:
        rows = replay(spark, address, current_version(address)).collect()
    finally:
        close_shared()
    again: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        again[row.subscription][row.client].append(f"{row.client}.{row.incarnation}.{row.seq}")
    assert again == live(flow)


@pytest.mark.parametrize("engine", [pytest.param("spark", marks=pytest.mark.soak), "edge"])
def test_replaying_the_log_from_the_command_line_gives_what_was_delivered(
    flow: Flow, engine: str, tmp_path: Path
) -> None:
    counts = flow.at.command("replay", "--engine", engine, "--out", str(tmp_path / "out"))["subscriptions"]
    wanted = live(flow)
    assert counts == {id: sum(map(len, keys.values())) for id, keys in wanted.items()}
    for id, by_publisher in wanted.items():
        again: dict[str, list[str]] = defaultdict(list)
        for line in (tmp_path / "out" / f"{id.replace('/', '_')}.jsonl").read_text().splitlines():
            key = json.loads(line)["situkey"]
            again[key.split(".")[0]].append(key)
        assert again == by_publisher, id
