"""The edge engine measures what publishers that have profiles do."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from situ.bus.interface import Bus
from situ.bus.measurement import measured_publishers, publish_measured
from situ.bus.memory import MemoryBus
from situ.bus.nats import open_bus
from situ.edge.engine import EdgeEngine
from situ.event.instants import print_instant
from situ.event.message import EventKey, join_lines
from situ.event.subjects import consumer_of
from situ.lang.records import replace
from situ.model import Deployment
from situ.quality.measurement.meter import MeasuredPublishers
from situ.quality.measurement.panes import Pane, merge_panes, pane_of
from situ.quality.model.declarations import BUILT_IN, Capability, Profile, Quality
from situ.registry.snapshots import publish_deployment
from situ.routing.delivery_groups import group_of
from situ.routing.model import Subscription
from situ.settings.model import Overlay, Retention
from situ.stages.shape import ShapePlan
from tests.edge_zone import eventually
from tests.nats_server import NatsServer, nats_server
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
    assert ShapePlan(deployment).by_id == {}
    heard: list[tuple[tuple[Pane, ...], int]] = []
    async with MemoryBus() as bus:
        await bus.prepare(deployment.settings)
        await publish_deployment(bus, deployment)
        await publish_measured(bus, MeasuredPublishers(frozenset({"press-2"})))
        assert (await measured_publishers(bus)).publishers == {"press-2"}
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
    found = merge_panes(pane for panes, _ in heard for pane in panes)
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


# ── whether deliveries are acknowledged ──

DESK = Subscription(client="desk", name="all", types=("Reading",), durable=True)


def reliable(folder: Path, publishers: Sequence[str]) -> Deployment:
    reliability = Capability(about=BUILT_IN["reliability"], lb=0, ub=1, cv=1)
    profiles = [
        Profile(publisher=each, type="Reading", capabilities={"reliability": reliability}) for each in publishers
    ]
    deployment = deployment_of(folder / "project", (DESK,)).at_version(1)
    settings = replace(deployment.settings, overlay=Overlay(groups=Retention(size=20_000)))
    return replace(deployment, settings=settings, quality=Quality(profiles={each.id: each for each in profiles}))


async def acknowledged(bus: Bus, folder: Path) -> dict[str, tuple[int, float]]:
    """A reader takes half of what comes, is away until much of the rest is gone, and comes back."""
    deployment = reliable(folder, ["press-1"])
    await bus.prepare(deployment.settings)
    await publish_deployment(bus, deployment)
    await bus.ensure_consumer(consumer_of(DESK.id), [group_of(DESK)])
    heard: list[Pane] = []
    engine = EdgeEngine(bus, folder / "project")
    engine.on_measured = lambda panes, _until: heard.extend(panes)
    await engine.start()
    numbers: Counter[str] = Counter()

    async def send(count: int) -> None:
        for _ in range(count):
            for client in ("press-1", "press-2"):
                numbers[client] += 1
                at = time.time_ns() // 1000
                key = EventKey(client, 1, numbers[client])
                await (await engine.take(key, 1, join_lines([line(numbers[client], at)]), at))

    async def read(count: int) -> int:
        consumption = await bus.consume(consumer_of(DESK.id))
        async for stored in consumption:
            await consumption.acknowledge(stored.seq)
            count -= 1
            if count == 0 or stored.seq == 2 * numbers["press-1"]:
                break
        await consumption.close()
        return count

    def known() -> dict[str, tuple[int, float]]:
        found: dict[str, tuple[int, float]] = {}
        for pane in heard:
            accepted, delivered = found.get(pane.publisher, (0, 0.0))
            if pane.accepted:
                found[pane.publisher] = accepted + pane.accepted, delivered + pane.delivered
        return found

    await asyncio.sleep(1.2)  # until somebody has looked at the reader
    await send(10)
    await read(20)
    await eventually(lambda: known() == {"press-1": (10, 10.0)})
    await send(100)  # more than there is room for
    await asyncio.sleep(1.2)
    missed = await read(200)
    assert 50 < missed < 190
    await eventually(lambda: known()["press-1"][0] == 110)
    await engine.stop()
    # Both had the same number of messages, so that both have lost about as many.
    assert known()["press-1"][1] == pytest.approx(110 - missed / 2, abs=5)
    return known()


@pytest.mark.parametrize("kind", ["memory", "nats"])
def test_it_is_counted_which_deliveries_are_acknowledged(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("situ.edge.measure._LOOK_EVERY", 0.2)

    async def in_memory() -> dict[str, tuple[int, float]]:
        async with MemoryBus() as bus:
            return await acknowledged(bus, tmp_path)

    async def on(server: NatsServer) -> dict[str, tuple[int, float]]:
        async with await open_bus(server.address(), name="test") as bus:
            return await acknowledged(bus, tmp_path)

    if kind == "memory":
        found = asyncio.run(in_memory())
    else:
        with nats_server(tmp_path / "nats") as server:
            found = asyncio.run(on(server))
    assert found.keys() == {"press-1"}
