"""Conversions that remember other events, through an engine: over restarts and crashes, and while events wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from situ.edge.node import Node
from tests.edge_zone import EdgeZone, edge_zone, eventually
from tests.nats_server import NatsServer, nats_server

TYPES = """
version: 1
types:
  Position: {x: double m, y: double m}
events:
  Status: {product: string, pos: Position}
  TruckPosition: {truck: string, lat: double deg, lon: double deg}
"""
US = """
version: 1
context: us
extends: root
types:
  LatLon: {lat: double deg, lon: double deg}
events:
  Where: {product: string, pos: LatLon}
maps:
  - out: Status -> Where
rules:
  out: [Position -> to_latlon]
functions:
  to_latlon:
    signature: Position -> LatLon
    key: event.source
    state: {ref: {event: TruckPosition, key: truck, keep: {lat: lat, lon: lon}, history: 1 h, ttl: 24 h, max_keys: 9}}
    missing: MISSING
    expr: struct(ref.lat + value.y / 100000 AS lat, ref.lon + value.x / 100000 AS lon)
"""
CLIENTS = "  t7: {}\n  t8: {}\n  desk: {context: us}\n"

Work = Callable[[EdgeZone], Awaitable[None]]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with nats_server(tmp_path / "nats") as running:
        yield running


def run(folder: Path, work: Work, *, missing: str = "error", server: NatsServer | None = None) -> None:
    async def go() -> None:
        files = {"types/all.yaml": TYPES, "contexts/us.yaml": US.replace("MISSING", missing)}
        async with edge_zone(folder, server, clients=CLIENTS, more=files) as zone:
            await work(zone)

    asyncio.run(go())


async def truck(node: Node, minute: int, lat: float, name: str = "t7") -> None:
    time = f"2026-11-01T08:{minute:02}:00Z"
    receipt = await node.publish_event("TruckPosition", truck=name, lat=lat, lon=9.0, time=time, source=name)
    await receipt.stored


async def status(node: Node, minute: int, product: str, name: str = "t7") -> None:
    time = f"2026-11-01T08:{minute:02}:30Z"
    receipt = await node.publish_event("Status", product=product, pos={"x": 0.0, "y": 0.0}, time=time, source=name)
    await receipt.stored


class Heard:
    """What a desk in the context was told, in its order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, float]] = []

    async def listen(self, desk: Node) -> None:
        registration = await desk.register_for_events("Where", durable="all")
        await desk.add_listener(
            registration, lambda event: self.events.append((event.data["product"], event.data["pos"]["lat"]))
        )

    async def get(self, *expected: tuple[str, float]) -> None:
        await eventually(lambda: len(self.events) >= len(expected))
        assert self.events == list(expected)


def test_the_truck_moves_between_two_status_events_in_and_out_of_order(tmp_path: Path) -> None:
    async def work(zone: EdgeZone) -> None:
        heard = Heard()
        async with zone.connect("t7") as t7, zone.connect("desk") as desk:
            await heard.listen(desk)
            await truck(t7, 0, 50.0)
            await status(t7, 1, "a")
            await truck(t7, 10, 52.0)
            await status(t7, 11, "b")
            await truck(t7, 5, 51.0)
            await status(t7, 6, "late")
            await heard.get(("a", 50.0), ("b", 52.0), ("late", 51.0))

    run(tmp_path, work)


@pytest.mark.parametrize("orderly", [True, False], ids=["stopped", "crashed"])
def test_what_is_remembered_outlives_the_engine(tmp_path: Path, server: NatsServer, orderly: bool) -> None:
    async def work(zone: EdgeZone) -> None:
        heard = Heard()
        async with zone.connect("t7") as t7, zone.connect("desk") as desk:
            await heard.listen(desk)
            await truck(t7, 0, 50.0)
            await status(t7, 1, "a")
            await heard.get(("a", 50.0))
            await (zone.stop() if orderly else zone.crash())
            await zone.start()
            await status(t7, 2, "b")
            await heard.get(("a", 50.0), ("b", 50.0))

    run(tmp_path, work, server=server)


@pytest.mark.parametrize("orderly", [True, False], ids=["stopped", "crashed"])
def test_what_waits_goes_on_waiting_after_a_restart_and_comes_once(
    tmp_path: Path, server: NatsServer, orderly: bool
) -> None:
    async def work(zone: EdgeZone) -> None:
        heard = Heard()
        async with zone.connect("t7") as t7, zone.connect("t8") as t8, zone.connect("desk") as desk:
            await heard.listen(desk)
            await truck(t8, 0, 60.0, "t8")
            await status(t7, 1, "waits")
            await status(t7, 2, "behind")
            await status(t8, 2, "other", "t8")
            await heard.get(("other", 60.0))
            await (zone.stop() if orderly else zone.crash())
            await zone.start()
            await status(t8, 3, "more", "t8")
            await heard.get(("other", 60.0), ("more", 60.0))
            await truck(t7, 0, 50.0)
            await status(t7, 4, "last")
            await heard.get(("other", 60.0), ("more", 60.0), ("waits", 50.0), ("behind", 50.0), ("last", 50.0))
        assert not await zone.messages(zone.names.dead_stream)

    run(tmp_path, work, missing="hold 10 min", server=server)


def test_what_waited_long_enough_is_a_dead_letter(tmp_path: Path) -> None:
    async def work(zone: EdgeZone) -> None:
        heard = Heard()
        async with zone.connect("t7") as t7, zone.connect("t8") as t8, zone.connect("desk") as desk:
            await heard.listen(desk)
            await status(t7, 1, "waits")
            await truck(t8, 20, 60.0, "t8")
            await truck(t7, 3, 50.0)
            await status(t7, 4, "b")
            await heard.get(("b", 50.0))
            [letter] = await zone.messages(zone.names.dead_stream)
            assert b"INT706" in letter.body

    run(tmp_path, work, missing="hold 10 min")
