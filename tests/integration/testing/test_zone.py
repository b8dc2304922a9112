"""Zones that users start in their tests."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import situ
from scripts.reference.yard import YARD
from situ.testing import Clock, MemoryBus, Zone
from tests.project_files import write


def test_events_are_received_and_policies_decide_by_the_clock() -> None:
    async def work() -> None:
        clock = Clock("2026-11-01T08:00:00Z")
        async with Zone(YARD, clock=clock) as zone, zone.connect("gate") as gate, zone.connect("office") as office:
            found = await office.register_for_events("situ.situation.opened")
            receipt = await gate.publish_event("TruckSeen", truck="LY-204", speed=80.0)
            await receipt.stored
            async for event in office.events("TruckSeen", since="begin", limit=1):
                assert event.time == event.received == clock.now
            assert zone.engine is not None
            assert zone.engine.watched.tally.opened == {}, "the clock stands still"
            clock.advance(minutes=1)
            async for event in found:
                assert situ.Situation.of(event).bindings == {"T": "LY-204"}
                break

    asyncio.run(asyncio.wait_for(work(), 120))


def test_a_zone_leaves_the_project_as_it_was(tmp_path: Path) -> None:
    project = write(tmp_path / "yard", YARD)
    write(project, {".situ/left": "by a run", ".venv/large": ""})
    with Zone(project) as zone:
        assert zone.folder != project
        assert not (zone.folder / ".situ" / "left").exists()
        assert not (zone.folder / ".venv").exists()
        with zone.connect_blocking("gate") as gate:
            gate.publish_event("TruckSeen", truck="LY-204", speed=31.0).stored()
    assert not zone.folder.exists()
    assert sorted(path.name for path in (project / ".situ").iterdir()) == ["left"]


def test_a_zone_that_is_stopped_and_started_goes_on() -> None:
    async def work() -> None:
        async with Zone(YARD, bus=MemoryBus()) as zone, zone.connect("gate") as gate:
            await gate.advertise("TruckSeen")
            await zone.stop()
            receipt = await gate.publish_event("TruckSeen", truck="LY-204", speed=31.0)
            await zone.start()
            await receipt.stored
            async with zone.connect("office") as office:
                async for event in office.events("TruckSeen", since="begin", limit=1):
                    assert event.data.truck == "LY-204"

    asyncio.run(asyncio.wait_for(work(), 120))


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="clock of its own"):
        Zone(YARD, bus="nats", clock=Clock())
    with pytest.raises(ValueError, match="in place"):
        Zone(YARD, in_place=True)
    with pytest.raises(situ.SituError), Zone({"situ.yaml": "name: yard\nengine: steam\n"}):
        pass


def test_a_zone_of_a_loop_has_no_clients_that_block() -> None:
    async def work() -> None:
        async with Zone(YARD) as zone:
            with pytest.raises(ValueError, match="async with"), zone.connect_blocking("gate"):
                pass

    asyncio.run(asyncio.wait_for(work(), 120))


def test_events_of_other_types_tell_of_no_situation() -> None:
    event = situ.Event(id="1", source="gate", type="TruckSeen", instant="2026-11-01T08:00:00Z")
    with pytest.raises(ValueError, match="no situation"):
        situ.Situation.of(event)
