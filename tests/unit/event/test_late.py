"""Late events: kept on the bus once, listed by `situ late`."""

from __future__ import annotations

import asyncio

import pytest
from rich.table import Table

from situ.bus.memory import MemoryBus
from situ.cli.render.dead_letters import show_late
from situ.event.lines import encode_row
from situ.event.row import Row
from situ.event.subjects import BusNames, pack_late
from situ.explain.dead_letters import LateEvent, read_late_events
from situ.lang.records import replace
from situ.settings import Settings


def row(seq: int, type: str = "Sighting") -> Row:
    return Row(7, "reader-1", 1, seq, "root", 9_000_000, f"e{seq}", "reader-1", type, 0, "", None, "", b'{"who":"17"}')


async def kept() -> list[LateEvent]:
    bus, names = MemoryBus(), BusNames("main")
    await bus.prepare(Settings())
    for each in (row(1), row(2, "Door"), row(1)):
        await (await bus.store(pack_late(names, each, encode_row(each), ["guests", "night-watch"])))
    every = [each async for each in read_late_events(bus)]
    assert [each.row.id for each in every] == ["e1", "e2"]
    assert [each.row.id async for each in read_late_events(bus, type="Door")] == ["e2"]
    assert [each async for each in read_late_events(bus, policy="nobody")] == []
    return every


def test_an_event_is_late_once_and_says_for_whom() -> None:
    first, _ = asyncio.run(kept())
    assert first.policies == ("guests", "night-watch")
    assert first.as_json()["received"] == "1970-01-01T00:00:09Z"


@pytest.mark.parametrize(("behind", "said"), [(9_000_000, "9.00 s later"), (3_035_835, "3.04 s later")])
def test_how_late_reads_as_people_say_it(behind: int, said: str) -> None:
    late = LateEvent(row=replace(row(1), recv=behind), policies=("guests",), at=behind)
    table, *_ = show_late([late])
    assert isinstance(table, Table)
    assert list(table.columns[1].cells) == [said]
