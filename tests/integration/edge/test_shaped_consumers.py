"""Durable subscriptions whose shape changes while events flow: no event is put where nobody reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from situ.event.subjects import consumer_of
from situ.lang.records import replace
from situ.quality.model.shapes import EventFloor, Shape
from situ.routing.delivery_groups import group_of
from tests.edge_zone import EdgeZone, edge_zone, take
from tests.nats_server import nats_server

CLIENTS = "  pump: {advertisements: {levels: {type: Level}}}\n  desk: {}\n"
KEEPS_ALL = Shape(each=(EventFloor(about="confidence", floor=50.0, keep_missing=True),))
CHANGES, BETWEEN = 6, 25


async def scenario(zone: EdgeZone, monkeypatch: pytest.MonkeyPatch) -> None:
    router, read = zone.router, []
    assert router is not None
    store = router._declarations.shape

    async def look_and_store(shapes: Mapping[str, Shape | None]) -> None:
        read.append({each.name: each.groups for each in await zone.bus.consumers()}[consumer_of("desk/levels")])
        await store(shapes)

    monkeypatch.setattr(router._declarations, "shape", look_and_store)
    async with zone.connect("pump") as pump, zone.connect("desk") as desk:
        events = aiter(await desk.register_for_events("Level", durable="levels"))
        number = 0
        for change in range(CHANGES):
            shape = KEEPS_ALL if change % 2 == 0 else None
            shaping = asyncio.ensure_future(router._shape({"desk/levels": shape}))
            for _ in range(BETWEEN):
                await pump.publish_event("Level", tank="a", level=number)
                number += 1
                await asyncio.sleep(0.004)
            await shaping
        got = await take(events, number)
        assert sorted(event.data.level for event in got) == list(range(number))
    plain = zone.registry.current().subscriptions["desk/levels"]
    shaped = replace(plain, shaped=True)
    for change, groups in enumerate(read):
        assert group_of(plain if change % 2 else shaped) in groups, "it is read before anything is decided"


def test_nothing_is_lost_while_a_shape_comes_and_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        with nats_server(tmp_path / "nats") as server:
            async with asyncio.timeout(300), edge_zone(tmp_path, server, clients=CLIENTS) as zone:
                await scenario(zone, monkeypatch)

    asyncio.run(main())
