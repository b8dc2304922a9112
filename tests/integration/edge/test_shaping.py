"""Subscriptions of an edge zone that are shaped while events come: their clients get what is left, and all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from situ.client.client import Client
from situ.quality.model.shapes import Limit, Shape, Suppress, Thin
from situ.registry.snapshots import publish_deployment
from tests.edge_zone import EdgeZone, edge_zone, eventually, nothing_more, take
from tests.nats_server import nats_server

CLIENTS = "  pump: {advertisements: {levels: {type: Level}}}\n  desk: {}\n"


async def shape(zone: EdgeZone, shapes: Mapping[str, Shape | None]) -> None:
    """As whoever negotiates does it; the engine works by it when this returns."""
    deployment = zone.registry.shape(shapes, who="test").deployment
    await publish_deployment(zone.bus, deployment)
    engine = zone.engine
    assert engine is not None
    await eventually(lambda: engine.version == deployment.version)
    router = zone.router
    assert router is not None
    await eventually(lambda: router._deployment.version == deployment.version)


async def publish(pump: Client, *levels: float, at: datetime | None = None) -> None:
    when = datetime.now(UTC) if at is None else at
    for number, level in enumerate(levels):
        receipt = await pump.publish_event("Level", tank="a", level=level, time=when + timedelta(milliseconds=number))
    await receipt.stored


async def scenario(zone: EdgeZone, *, durable: bool) -> None:
    tolerant = Suppress(attribute="level", delta=30.0)
    precise = Suppress(attribute="level", delta=10.0)
    async with zone.connect("pump") as pump, zone.connect("desk") as desk:
        registration = await desk.register_for_events("Level", durable="levels" if durable else None)
        other = await desk.register_for_events("Level", where="tank = 'a'", durable="all" if durable else None)
        own = f"desk/{registration.name}"
        events, everything = aiter(registration), aiter(other)
        await publish(pump, 1.0)
        assert [event.data.level for event in await take(events, 1)] == [1.0]

        await shape(zone, {own: Shape(suppress=(tolerant,))})
        await publish(pump, 50.0, 79.0, 81.0, 60.0)
        got = await take(events, 2)
        assert [(event.data.level, event.imprecision) for event in got] == [(50.0, "30"), (81.0, "30")]

        await shape(zone, {own: Shape(suppress=(precise,))})
        got = await take(events, 1)
        assert [(event.data.level, event.imprecision) for event in got] == [(60.0, "10")]

        await shape(zone, {own: Shape(thin=Thin(limits=(Limit(events=1, form="quota"),)))})
        minute = datetime.now(UTC).replace(second=0, microsecond=0)
        await publish(pump, 2.0, 3.0, 4.0, at=minute)
        assert [(event.data.level, event.imprecision) for event in await take(events, 1)] == [(2.0, None)]

        await shape(zone, {own: None})
        await publish(pump, 5.0, 6.0)
        assert [event.data.level for event in await take(events, 2)] == [5.0, 6.0]
        await nothing_more(events)
        expected = [1.0, 50.0, 79.0, 81.0, 60.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        assert [event.data.level for event in await take(everything, 10)] == expected
        assert zone.engine is not None
        assert zone.engine.counts.dropped == {f"{own} imprecision": 1, f"{own} rate": 2}


@pytest.mark.parametrize("durable", [False, True])
def test_a_subscription_is_shaped_while_it_is_read(tmp_path: Path, durable: bool) -> None:
    async def main() -> None:
        async with asyncio.timeout(180), edge_zone(tmp_path, clients=CLIENTS) as zone:
            await scenario(zone, durable=durable)

    asyncio.run(main())


def test_a_durable_subscription_is_shaped_on_a_real_bus(tmp_path: Path) -> None:
    async def main() -> None:
        with nats_server(tmp_path / "nats") as server:
            async with asyncio.timeout(180), edge_zone(tmp_path, server, clients=CLIENTS) as zone:
                await scenario(zone, durable=True)

    asyncio.run(main())
