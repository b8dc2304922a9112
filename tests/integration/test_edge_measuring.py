"""The edge engine measures what publishers that have profiles do."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path

from situ.bus.measured import measured_publishers, tell_measured
from situ.bus.memory import MemoryBus
from situ.deployment.shapes import Shapes
from situ.edge.engine import EdgeEngine
from situ.event.instants import print_instant
from situ.event.message import EventKey, join_lines
from situ.quality.declared import Quality
from situ.quality.panes import Pane, pane_of, together
from situ.quality.profile import Capability, Profile
from situ.quality.property import BUILT_IN
from situ.registry.snapshots import publish_deployment
from tests.edge_zone import eventually
from tests.zone import deployment_of

SECOND = 1_000_000


def line(number: int, time_: int) -> bytes:
    data = {"sensor": "a", "value": 1.0}
    attributes = {"source": f"s{number % 2}", "type": "Reading", "time": print_instant(time_), "confidence": "80"}
    return json.dumps({"specversion": "1.0", "id": str(number), **attributes, "data": data}).encode()


async def measured(folder: Path) -> list[tuple[tuple[Pane, ...], int]]:
    rate = Capability(about=BUILT_IN["rate"], lb=1, ub=60, cv=10)
    profile = Profile(publisher="press-1", type="Reading", capabilities={"rate": rate})
    deployment = deployment_of(folder / "project", ()).at_version(1)
    deployment = replace(deployment, quality=Quality(profiles={profile.id: profile}))
    assert Shapes(deployment).by_id == {}
    heard: list[tuple[tuple[Pane, ...], int]] = []
    async with MemoryBus() as bus:
        await bus.prepare(deployment.settings)
        await publish_deployment(bus, deployment)
        await tell_measured(bus, ["press-2"])
        assert await measured_publishers(bus) == {"press-2"}
        engine = EdgeEngine(bus, folder / "project")
        engine.on_measured = lambda panes, until: heard.append((panes, until))
        await engine.start()
        start = pane_of(time.time_ns() // 1000) - 60 * SECOND
        for client in ("press-1", "press-2", "press-3"):
            for number in range(8):
                at = start + number * 2 * SECOND
                key = EventKey(client, 1, number + 1)
                await (await engine.take(key, 1, join_lines([line(number, at)]), at + SECOND))
        await eventually(lambda: sum(pane.events for panes, _ in heard for pane in panes) == 16)
        await eventually(lambda: len(heard) > 2)
        await engine.stop()
    return heard


def test_publishers_with_profiles_are_measured(tmp_path: Path) -> None:
    heard = asyncio.run(measured(tmp_path))
    found = together(pane for panes, _ in heard for pane in panes)
    assert {(publisher, type) for publisher, type, _ in found} == {("press-1", "Reading"), ("press-2", "Reading")}
    first, second = (pane for (publisher, _, _), pane in sorted(found.items()) if publisher == "press-1")
    assert (first.events, second.events) == (5, 3)
    assert (first.confidence, first.confident) == (400.0, 5)
    assert (first.gap, second.gap, first.disordered) == (4 * SECOND, 4 * SECOND, 0)
    assert next(iter(first.numbers.values())).distinct == 5
    latency, freshness = first.latency.quantile(0.95), first.freshness.quantile(0.95)
    assert latency is not None
    assert freshness is not None
    assert 30 * SECOND < latency <= freshness
    assert [until for _, until in heard] == sorted(until for _, until in heard)
