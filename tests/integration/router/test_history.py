"""History, page by page: whatever the size of pages and messages, all that matches and nothing twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from situ.client.events import read_events
from situ.event.message import PLACES
from situ.protocol.messages import History
from situ.router.queries import HistoryReader
from situ.routing.model import Subscription
from tests.edge_zone import EdgeZone, edge_zone, eventually

ALL = Subscription(client="desk", name="all", types=("Level",))
HIGH = Subscription(client="desk", name="high", types=("Level",), where="level >= 50", durable=True)


async def read_all(zone: EdgeZone, wanted: Subscription, limit: int, since: int | None = None) -> list[float]:
    reader = HistoryReader(zone.bus)
    found: list[float] = []
    after: str | None = None
    while True:
        asked = History(req=1, sub=wanted.name, after=after, since=since, limit=limit)
        page = await reader.page(asked, wanted, zone.registry.current())
        events = read_events(page.body)
        assert len(events) == page.count <= limit
        found += [event.data.level for event in events]
        if not page.more:
            return found
        after = page.after


@pytest.mark.parametrize("limit", [1, 7, 100, 2000])
def test_pages_of_any_size_hold_everything_once(tmp_path: Path, limit: int) -> None:
    async def main() -> None:
        async with edge_zone(tmp_path, situ="batch: {events: 10}") as zone, zone.connect("pump") as pump:
            assert await read_all(zone, ALL, limit) == []
            for number in range(100):
                await pump.publish_event("Level", tank="a", level=number)
                if number % 10 == 5:
                    await pump.publish_event("Alarm", text="x", severity=1)
            assert await pump.flush(10)
            assert await read_all(zone, ALL, limit) == list(range(100))
            assert await read_all(zone, HIGH, limit) == list(range(50, 100))
            own = Subscription(client="pump", name="own", types=("Level",))
            assert await read_all(zone, own, limit) == []

    asyncio.run(main())


def test_history_begins_with_what_the_log_still_has(tmp_path: Path) -> None:
    async def main() -> None:
        async with edge_zone(tmp_path, situ="batch: {events: 10}") as zone, zone.connect("pump") as pump:
            for number in range(50):
                await pump.publish_event("Level", tank="a", level=number)
            assert await pump.flush(10)
            messages = await zone.messages(zone.names.root_stream)
            await zone.bus.purge(zone.names.root_stream, messages[2].seq)
            found = await read_all(zone, ALL, 7)
            assert found == list(range(int(found[0]), 50))
            assert found[0] > 0

    asyncio.run(main())


def test_a_page_is_bounded_in_bytes_and_goes_on_in_the_middle_of_a_message(tmp_path: Path) -> None:
    async def main() -> None:
        async with edge_zone(tmp_path) as zone, zone.connect("pump") as pump:
            for number in range(40):
                await pump.publish_event("Level", tank="x" * 20_000, level=number)
            assert await pump.flush(10)
            page = await HistoryReader(zone.bus).page(History(req=1, sub="all"), ALL, zone.registry.current())
            assert page.more
            assert len(page.body) < 300_000
            assert int(page.after) % PLACES
            assert await read_all(zone, ALL, 500) == list(range(40))

    asyncio.run(main())


def test_reading_stops_in_time_even_if_nothing_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with edge_zone(tmp_path, situ="batch: {events: 10}") as zone, zone.connect("pump") as pump:
            for number in range(100):
                await pump.publish_event("Level", tank="a", level=number)
            assert await pump.flush(10)
            monkeypatch.setattr("situ.router.queries._MOST_SECONDS", -1.0)
            never = Subscription(client="desk", name="never", types=("Level",), where="level > 1000")
            page = await HistoryReader(zone.bus).page(History(req=1, sub="never"), never, zone.registry.current())
            assert (page.count, page.more) == (0, True)
            assert await read_all(zone, ALL, 500) == list(range(100))

    asyncio.run(main())


def test_consumers_follow_the_subscriptions(tmp_path: Path) -> None:
    async def main() -> None:
        clients = "  desk: {subscriptions: {a: {types: [Level], durable: true}, b: {types: [Level]}}}\n"
        async with edge_zone(tmp_path, clients=clients) as zone:
            assert {each.name for each in await zone.bus.consumers()} == {"desk_a"}
            async with zone.connect("view") as view:
                await view.register_for_events("Alarm", durable="c")
                assert {each.name for each in await zone.bus.consumers()} == {"desk_a", "view_c"}
            await zone.stop()
            await zone.start()  # what is there from before is known
            assert zone.router is not None
            assert set(zone.router._consumers._groups) == {"desk_a", "view_c"}
            async with zone.connect("view") as view:
                await view.unregister_for_events(await view.register_for_events("Alarm", durable="c"))
                await eventually(lambda: set(zone.router._consumers._groups) == {"desk_a"})  # type: ignore[union-attr]
            assert {each.name for each in await zone.bus.consumers()} == {"desk_a"}

    asyncio.run(main())
