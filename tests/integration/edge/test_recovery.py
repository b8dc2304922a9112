"""What was stored and not delivered when a process died is delivered by the next one, once."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from situ.edge.dispatcher import Dispatcher
from tests.edge_zone import edge_zone, nothing_more, run, take

CLIENTS = """
  pump: {advertisements: {levels: {type: Level, where: level < 100}}}
  desk: {subscriptions: {all: {types: [Level, situ.deadletter], durable: true}}}
"""


@pytest.mark.parametrize("level", [2, 200], ids=["event", "dead-letter"])
def test_what_lies_in_the_log_behind_the_cursor_is_delivered_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: int
) -> None:
    async def main() -> None:
        async with edge_zone(tmp_path, clients=CLIENTS) as zone:
            stream = zone.names.root_stream if level < 100 else zone.names.dead_stream
            async with zone.connect("pump") as pump:
                for each in (1, 100):  # the cursor knows both logs
                    await pump.publish_event("Level", tank="a", level=each)
                await pump.flush(30)
                before = (await zone.bus.state(stream)).last
                stuck = asyncio.Event()

                async def dispatch(*_: object, **__: object) -> None:
                    stuck.set()
                    await asyncio.Event().wait()

                with monkeypatch.context() as patch:
                    patch.setattr(Dispatcher, "dispatch", dispatch)
                    await pump.publish_event("Level", tank="a", level=level)
                    await stuck.wait()
                    await zone.crash()
                assert (await zone.bus.state(stream)).last == before + 1, "it is stored"
                await zone.start()
                async with zone.connect("desk") as desk:
                    events = desk.events(durable="all")
                    wanted = {"Level": 1, "situ.deadletter": 1}
                    wanted["Level" if level < 100 else "situ.deadletter"] += 1
                    assert Counter(each.type for each in await take(events, 3)) == wanted
                    await nothing_more(events)

    run(main())
