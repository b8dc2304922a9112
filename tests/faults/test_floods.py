"""One client without flow control: it is refused what does not fit, the others are served, the memory stays bounded."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from situ.client.connection import connect
from tests.admitted import AdmittingServer, Plain, admitting_server, plain
from tests.edge_zone import edge_zone, eventually

CLIENTS = """
  alice: {advertisements: {levels: {type: Level}}}
  bob: {advertisements: {levels: {type: Level}}}
  desk: {subscriptions: {levels: {types: [Level], where: "tank = 'b'", durable: true}}}
"""
INGRESS = "situ.main.in.r1.alice"
LEVEL = b'{"specversion":"1.0","type":"Level","data":{"tank":"a","level":1.0}}'
LARGE = b'{"specversion":"1.0","type":"Level","data":{"tank":"%b","level":1.0}}' % (b"a" * 300_000)
Flood = Callable[[Plain, int], Awaitable[None]]


async def small(alice: Plain, number: int) -> None:
    await alice.publish(INGRESS, LEVEL, reply=f"_INBOX_alice.flood.{number}")


async def large(alice: Plain, number: int) -> None:
    await alice.publish(INGRESS, LARGE)


async def questions(alice: Plain, number: int) -> None:
    await alice.publish(INGRESS, b'{"req":1}', reply="_INBOX_alice.flood.q", **{"Situ-Message": "Describe"})


async def nonsense(alice: Plain, number: int) -> None:
    await alice.publish(INGRESS, b"\xff", reply="_INBOX_alice.flood.n", **{"Situ-Message": "Take"})


FLOODS: dict[str, tuple[Flood, int]] = {
    "small events": (small, 30_000),
    "large events": (large, 600),
    "questions": (questions, 20_000),
    "nonsense": (nonsense, 20_000),
}


async def flooded(server: AdmittingServer, folder: Path, flood: Flood, count: int, *, spark: bool) -> dict[str, object]:
    """What others see of a zone while one client sends as fast as it can."""
    found: dict[str, object] = {}
    async with edge_zone(folder, server, clients=CLIENTS, spark=spark) as zone:
        router = zone.router
        assert router is not None
        names = zone.names
        options = {"servers": [server.url], "client": "bob", "credentials": server.file("bob")}
        async with (
            plain(server, "alice", server.seeds["alice"]) as alice,
            connect(zone.folder, **options) as bob,
        ):
            answers = await alice.hear("_INBOX_alice.flood.>")
            before = psutil.Process().memory_info().rss
            most = highest = 0
            times: list[float] = []
            flooding = True

            async def pour() -> None:
                nonlocal flooding
                for number in range(count):
                    await flood(alice, number)
                    if number % 50 == 0:
                        await asyncio.sleep(0)
                await alice.client.flush()
                flooding = False

            task = asyncio.create_task(pour())
            while flooding or router.waiting:
                began = time.monotonic()
                await (await bob.publish_event("Level", tank="b", level=1.0)).stored
                times.append(time.monotonic() - began)
                most = max(most, router._queues.size)
                highest = max(highest, psutil.Process().memory_info().rss)
            await task
            found["codes"] = Counter(
                json.loads(answers.get_nowait().data).get("code", "") for _ in range(answers.qsize())
            )
            found["reports"] = dict(router.reports)
            found["queue"] = most
            found["grown"] = highest - before
            found["served"] = len(times)
            found["slowest"] = max(times)
            status = await bob.status()
            found["bob"] = (status.connected, status.published, status.stored, status.reconnects)
            stream = names.in_stream if spark else names.root_stream
            found["stored"] = (await zone.bus.state(stream)).messages
    return found


@pytest.mark.parametrize("spark", [False, True], ids=["edge", "spark"])
@pytest.mark.parametrize("kind", FLOODS)
def test_one_client_floods_its_router_and_the_others_are_served(kind: str, spark: bool, tmp_path: Path) -> None:
    flood, count = FLOODS[kind]
    with admitting_server(tmp_path / "nats", "alice", "bob") as server:
        found = asyncio.run(flooded(server, tmp_path, flood, count, spark=spark))
    connected, published, stored, reconnects = found["bob"]  # type: ignore[misc]
    assert connected
    assert published == stored, "each of its events is stored, and known to be"
    assert reconnects == 0
    # A message at a time, beside the flood: before, nothing of it was stored until all of that was.
    assert found["served"] >= 2, found  # type: ignore[operator]
    assert found["slowest"] < 20, found  # type: ignore[operator]  # a minute before, without bounds
    assert found["queue"] <= 17 * 1024 * 1024, found  # type: ignore[operator]
    assert found["grown"] < 200 * 1024 * 1024, found  # type: ignore[operator]
    if kind.endswith("events"):  # questions may be answered as fast as they come
        assert found["reports"].get("R018"), "it was told that this is too much"  # type: ignore[attr-defined]
    if kind == "small events":
        assert found["codes"]["R018"] > 0  # type: ignore[index]
        assert found["codes"][""] > 0, "what fitted was stored"  # type: ignore[index]


def test_a_client_of_the_library_waits_and_sends_again(tmp_path: Path) -> None:
    """It is refused like any other, and everything is stored once, in order."""
    from situ.router.client_queues import ClientQueues, QueueLimits

    async def main() -> None:
        async with edge_zone(tmp_path, clients=CLIENTS) as zone:
            router = zone.router
            assert router is not None
            router._queues = ClientQueues(QueueLimits(messages=1))
            async with zone.connect("bob") as bob, zone.connect("desk") as desk:
                reading = asyncio.create_task(anext(desk.events(durable="levels")))
                await asyncio.gather(*(bob.describe("Level") for _ in range(20)))
                for number in range(3000):
                    await bob.publish_event("Level", tank="b", level=float(number))
                    if number % 100 == 0:
                        await asyncio.sleep(0)
                assert await bob.flush(60)
                assert (await reading).data.level == 0.0
            await eventually(lambda: not router.waiting)
            lines = [
                json.loads(line)["data"]["level"]
                for message in await zone.messages(zone.names.root_stream)
                for line in message.body[2:-2].split(b",\n")
            ]
            assert lines == [float(number) for number in range(3000)]
            assert router.reports.get("R018"), "it was refused now and then"

    asyncio.run(main())
