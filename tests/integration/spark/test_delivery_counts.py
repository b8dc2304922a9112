"""Tasks of Spark tell what they stored for readers, and the driver what became of it: without Spark around them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from situ.bus.nats import open_bus
from situ.event.row import Row
from situ.event.subjects import consumer_of
from situ.lang.records import replace
from situ.quality.measurement.panes import pane_of
from situ.quality.model.declarations import BUILT_IN, Capability, Profile, Quality
from situ.routing.model import Subscription
from situ.spark.dispatch import DispatchTask, publish
from situ.spark.frames import TaskCounts, count_batch, decode_counts
from situ.spark.measure import BatchMeter, measuring_of
from situ.stages.plan import compile_plan
from tests.histories import START, event
from tests.zone import Zone, zone

DESK = Subscription(client="desk", name="all", types=("Reading",), durable=True)


def rows(begin: int, count: int) -> list[Row]:
    """Events of two publishers in turn."""
    found = []
    for number in range(begin, begin + count):
        row = event(number, number * 1000, client=f"press-{1 + number % 2}")
        row.type, row.data = "Reading", b'{"sensor":"a","value":1.0}'
        found.append(row)
    return found


def worked(zone: Zone, some: list[Row]) -> TaskCounts:
    plan = compile_plan(zone.deployment)
    measuring = measuring_of(plan, zone.address)
    dispatch = DispatchTask(plan, START, measuring=measuring)
    publish(zone.address, dispatch.messages([row] for row in some), (), dispatch.on_stored)
    dispatch.finish()
    return decode_counts(count_batch(dispatch.counts()).column("counts").to_pylist())[0]


async def read(zone: Zone, count: int) -> None:
    async with await open_bus(zone.address, name="desk") as bus:
        consumption = await bus.consume(consumer_of(DESK.id))
        async for stored in consumption:
            await consumption.acknowledge(stored.seq)
            count -= 1
            if count == 0:
                break
        await consumption.close()


def test_tasks_and_the_driver_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situ.spark.measure._LOOK_EVERY", 0.0)
    reliability = Capability(about=BUILT_IN["reliability"], lb=0, ub=1, cv=1)
    profile = Profile(publisher="press-1", type="Reading", capabilities={"reliability": reliability})
    with zone(tmp_path, (DESK,), situ="batch: {events: 10}\n") as found:
        uncounted = worked(found, rows(0, 10))
        assert (sum(uncounted.groups.values()), uncounted.stored) == (10, {})
        found.publish(replace(found.deployment, quality=Quality(profiles={profile.id: profile})))
        measuring = BatchMeter(found.deployment.settings)

        async def look() -> None:
            async with await open_bus(found.address, name="host") as bus:
                await measuring.look(bus)

        measuring.add([uncounted])
        asyncio.run(read(found, 1))
        first = worked(found, rows(10, 20))
        assert first.stored
        assert worked(found, rows(10, 20)).stored == {}  # repeated: it was stored before
        measuring.add([first])
        asyncio.run(look())  # from now on
        assert measuring.settled(START) == ()
        asyncio.run(read(found, 2))
        second = worked(found, rows(30, 40))
        measuring.add([second])
        asyncio.run(look())
        asyncio.run(look())
        waiting = measuring.settled(START)
        asyncio.run(read(found, 4))
        asyncio.run(look())
        panes = waiting + measuring.settled(START)
        assert {(pane.publisher, pane.type, pane.start) for pane in panes} == {("press-1", "Reading", pane_of(START))}
        assert sum(pane.accepted for pane in panes) == sum(pane.delivered for pane in panes) == 20
