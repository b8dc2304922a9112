"""Events between clients of one context, through an engine: they get what was sent, not what became of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from situ.client.client import Client
from situ.client.events import Event
from situ.lang.units import Units, conversion, convert_double, double_steps
from situ.routing.model import Subscription
from situ.spark.engine import SparkEngine
from tests.edge_zone import edge_zone
from tests.integration.spark.test_engine import drained, wait_for
from tests.zone import zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = "version: 1\nevents:\n  Depth: {tank: string, depth: double m}\n"
FEET = """
version: 1
context: feet
events:
  Gauge: {tank: string, depth: double ft}
maps: [both: Depth <-> Gauge]
"""
FILES = {"types/all.yaml": TYPES, "contexts/feet.yaml": FEET, "contexts/more.yaml": FEET.replace("feet", "more")}
THERE_AND_BACK = [1.3, 2.6, 3.3]


def is_changed(feet: float) -> bool:
    """Whether one could tell: a number that goes to metres and back has other last digits."""
    units = Units()
    foot, metre = units.parse("ft"), units.parse("m")
    metres = convert_double(feet, double_steps(*conversion(foot, metre)))
    return convert_double(metres, double_steps(*conversion(metre, foot))) != feet


async def heard(node: Client, registration: Any, count: int) -> list[Event]:
    found: list[Event] = []
    enough = asyncio.Event()

    def take_one(event: Event) -> None:
        found.append(event)
        if len(found) >= count:
            enough.set()

    await node.add_listener(registration, take_one)
    async with asyncio.timeout(120):
        await enough.wait()
    return found


def depths(events: list[Event]) -> list[float]:
    return [event.data["depth"] for event in events]


def test_on_the_edge_they_get_the_original_and_whoever_is_told_later_what_became_of_it(tmp_path: Path) -> None:
    assert all(map(is_changed, THERE_AND_BACK))
    clients = "\n  pump: {context: feet}\n  desk: {context: feet}\n  other: {context: more}\n"

    async def go() -> None:
        async with (
            edge_zone(tmp_path, clients=clients, more=FILES) as at,
            at.connect("pump") as pump,
            at.connect("desk") as desk,
            at.connect("other") as other,
        ):
            ours = await desk.register_for_events("Gauge", where="depth > 1 ft", durable="ours")
            theirs = await other.register_for_events("Gauge", durable="theirs")
            for feet in THERE_AND_BACK:
                await pump.publish_event("Gauge", tank="t", depth=feet)
            await pump.flush()
            original = await heard(desk, ours, 3)
            assert depths(original) == THERE_AND_BACK
            assert {event.type for event in original} == {"Gauge"}
            converted = await heard(other, theirs, 3)
            assert depths(converted) != THERE_AND_BACK, "another context, though it says the same"
            assert depths(converted) == pytest.approx(THERE_AND_BACK, rel=1e-9)
            assert at.engine is not None
            assert dict(at.engine.counts.originals) == {"feet": 3}
            assert dict(at.engine.counts.converted) == {"more": 3}
            async with asyncio.timeout(120):
                told = [event async for event in desk.events("Gauge", limit=3, since="begin")]
            assert depths(told) == depths(converted)
            assert dict(at.engine.counts.originals) == {"feet": 3}

    asyncio.run(go())


def test_on_spark_too(spark: SparkSession, tmp_path: Path) -> None:
    more = {
        **{name: text for name, text in FILES.items() if not name.startswith("types/")},
        "clients/all.yaml": "version: 1\nclients:\n"
        "  pump: {advertisements: {depths: {type: Gauge}}, context: feet}\n"
        "  desk: {context: feet}\n  other: {context: more}\n",
    }
    wanted = [
        Subscription(client="desk", name="all", types=("Gauge",), durable=True, context="feet"),
        Subscription(client="other", name="all", types=("Gauge",), durable=True, context="more"),
    ]
    with zone(tmp_path, wanted, types=TYPES, more=more) as at:
        sent = [
            {
                "specversion": "1.0",
                "id": f"{feet}",
                "source": "x",
                "type": "Gauge",
                "data": {"tank": "t", "depth": feet},
            }
            for feet in THERE_AND_BACK
        ]
        at.send("pump", sent)
        engine = SparkEngine(spark, at.address, at.deployment.settings, tmp_path / "checkpoints")
        engine.start()
        try:
            wait_for(drained(engine, at))
        finally:
            engine.stop()
        groups = at.deployment.subscriptions
        assert len(groups) == 2
        found = sorted(
            [json.loads(row.data)["depth"] for row in rows] == THERE_AND_BACK for rows in at.delivered().values()
        )
        assert found == [False, True]
        assert dict(engine.totals.originals) == {"feet": 3}
        assert dict(engine.totals.converted) == {"more": 3}
