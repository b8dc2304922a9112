"""Situations at the edge, end to end: sightings in, situations out, through silence, crashes and changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from situ.client.client import Client
from situ.client.events import Event
from situ.edge import detect
from situ.event.lines import decode_line
from situ.event.message import split_lines
from situ.event.row import Row
from situ.explain.situations import read_situations
from situ.registry.object_files import policy_document
from situ.registry.snapshots import publish_deployment
from tests.edge_zone import edge_zone, eventually, nothing_more, take
from tests.guarded import FILES

SITU = "defaults: {lateness: 100 ms, idle: 300 ms}\n"
MORE = {name: text for name, text in FILES.items() if name != "situ.yaml"}
QUICK = {**MORE, "policies/unaccompanied-guest.dpl": MORE["policies/unaccompanied-guest.dpl"].replace("5 s", "1 s")}
DURABLE = "situ.situation"
GUEST = {"A": "g1", "R": "lab"}


async def see(reader: Client, who: str, x: float, y: float = 5.0, **about: Any) -> None:
    await reader.publish_event("Sighting", {"who": who, "at": {"x": x, "y": y}}, **about)


def told(event: Event) -> tuple[str, dict[str, str]]:
    return event.type.rpartition(".")[2], {each["alias"]: each["id"] for each in event.data["bindings"]}


def test_a_guest_alone_is_a_situation_from_opening_to_close(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            edge_zone(tmp_path, situ=SITU, more=QUICK) as zone,
            zone.connect("reader") as reader,
            zone.connect("desk") as desk,
        ):
            events = desk.events(DURABLE, durable="situations")
            await see(reader, "g1", 5)  # alone in the laboratory
            await see(reader, "g2", 30)  # in the hall, where everybody may be
            opened, closed = await take(events, 2)
            assert told(opened) == ("opened", {"A": "g1", "R": "lab"})
            assert told(closed) == ("closed", {"A": "g1", "R": "lab"})
            (cause,) = opened.data["causes"]
            assert (cause["type"], cause["source"]) == ("Sighting", "reader")
            assert {"path": "at.x", "number": 5.0} in cause["values"]
            assert "A g1 is inside R lab" in opened.data["text"]
            await nothing_more(events)
            rows = [
                decode_line(line)
                for each in await zone.messages(zone.names.root_stream)
                for line in split_lines(each.body)
            ]
            (alarm,) = [row for row in rows if row.type == "GuestAlone"]
            assert json.loads(alarm.data) == {"text": "g1 alone in lab", "status": "guest"}
            assert alarm.client == alarm.source == "unaccompanied-guest"
            (listed,) = await read_situations(zone.bus)
            assert (listed.policy, dict(listed.bindings), listed.detections) == ("unaccompanied-guest", GUEST, 1)
            assert listed.end
            assert not await read_situations(zone.bus, only_open=True)
            assert not await read_situations(zone.bus, policy="another")
            (asked,) = [json.loads(row.data) for row in rows if row.type == "situ.action"]
            assert (asked["verb"], asked["number"], asked["place"]) == ("log", 0, 1)

    asyncio.run(run())


@pytest.mark.parametrize("kept_every", [5.0, 0.01])
def test_detection_goes_on_while_what_it_tells_waits_and_tells_all_of_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_every: float
) -> None:
    monkeypatch.setattr(detect, "_SAVE_EVERY", kept_every)

    async def run() -> None:
        async with (
            edge_zone(tmp_path, situ=SITU, more=QUICK) as zone,
            zone.connect("reader") as reader,
            zone.connect("desk") as desk,
        ):
            assert zone.engine is not None
            detection = zone.engine._detection
            events = desk.events(DURABLE, durable="situations")
            telling = await zone.tell_nothing()
            await see(reader, "g1", 5)
            await telling.wait()
            await see(reader, "g2", 5)
            await eventually(lambda: not detection._outbox.empty())
            await zone.crash()
            await zone.start()
            found = [told(each) for each in await take(events, 4)]
            assert sorted((stage, each["A"]) for stage, each in found) == [
                ("closed", "g1"),
                ("closed", "g2"),
                ("opened", "g1"),
                ("opened", "g2"),
            ]
            await nothing_more(events)

    asyncio.run(run())


INSIDE = """policy somebody-inside
window 1 s
concepts
  person A
  room   R (security = 'restricted')
conditions
  A is inside R
actions
  raise alarm
"""


def test_what_needs_no_waiting_is_told_at_its_event_also_of_an_instant_that_has_more(tmp_path: Path) -> None:
    """Nothing comes behind the last event, and no clock moves time on before the project's idle time is over."""

    async def run() -> None:
        async with (
            edge_zone(
                tmp_path,
                situ="defaults: {lateness: 0 s, idle: 1 h}\n",
                more={**MORE, "policies/unaccompanied-guest.dpl": INSIDE},
            ) as zone,
            zone.connect("reader") as reader,
            zone.connect("desk") as desk,
        ):
            events = desk.events(DURABLE, durable="situations")
            instant = datetime.now(UTC)
            seen = []
            for number in range(4):
                await see(reader, "g1", 5, time=instant, id=f"s{number}")
                await reader.flush()
                (event,) = await take(events, 1)
                seen.append((told(event)[0], [each["id"] for each in event.data["causes"]]))
            assert seen == [("opened", ["s0"]), *(("continued", [f"s{number}"]) for number in (1, 2, 3))]
            await zone.crash()
            await zone.start()
            await see(reader, "g2", 5, time=instant)
            assert told((await take(events, 1))[0]) == ("opened", {"A": "g2", "R": "lab"})
            await nothing_more(events)

    asyncio.run(run())


def test_company_refutes_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            edge_zone(tmp_path, situ=SITU, more=QUICK) as zone,
            zone.connect("reader") as reader,
            zone.connect("desk") as desk,
        ):
            events = desk.events(DURABLE, durable="situations")
            await see(reader, "g1", 5)
            await see(reader, "e1", 7)
            await see(reader, "g2", 1)
            await see(reader, "e2", 9)  # too far away from him, and the other employee, too
            assert told((await take(events, 1))[0]) == ("opened", {"A": "g2", "R": "lab"})

    asyncio.run(run())


@pytest.mark.parametrize("kept_every", [5.0, 0.01])
def test_a_process_that_dies_reports_nothing_twice_and_forgets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_every: float
) -> None:
    monkeypatch.setattr(detect, "_SAVE_EVERY", kept_every)

    async def run() -> None:
        async with (
            edge_zone(tmp_path, situ=SITU, more=QUICK) as zone,
            zone.connect("reader") as reader,
            zone.connect("desk") as desk,
        ):
            events = desk.events(DURABLE, durable="situations")
            await see(reader, "g1", 5)
            assert zone.engine is not None
            reached = zone.engine._detection._taken.reached
            await eventually(lambda: zone.engine is not None and zone.engine._detection._taken.reached > reached)
            await zone.crash()  # the guest was seen, and nothing is decided yet
            await zone.start()
            (opened,) = await take(events, 1)
            assert told(opened) == ("opened", {"A": "g1", "R": "lab"})
            await zone.crash()  # the situation is open
            await zone.start()
            (closed,) = await take(events, 1)
            assert told(closed) == ("closed", {"A": "g1", "R": "lab"})
            assert closed.data["situation"] == opened.data["situation"]
            await nothing_more(events)

    asyncio.run(run())


def test_what_comes_too_late_is_kept_apart(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            edge_zone(tmp_path, situ=SITU, more=QUICK) as zone,
            zone.connect("reader") as reader,
            zone.connect("desk") as desk,
        ):
            events = desk.events(DURABLE, durable="situations")
            await see(reader, "g1", 5)
            await take(events, 2)
            await see(reader, "g2", 5, time="2026-01-01T00:00:00Z")
            assert zone.engine is not None
            detection = zone.engine._detection
            await eventually(lambda: detection.counts.late_events == 1)
            (late,) = await zone.messages(zone.names.late_stream)
            assert late.headers["Situ-Policies"] == "unaccompanied-guest"
            await nothing_more(events)

    asyncio.run(run())


def test_what_a_policy_left_open_is_closed_though_it_went_while_no_process_was_there(tmp_path: Path) -> None:
    text = (
        QUICK["policies/unaccompanied-guest.dpl"]
        .replace("unaccompanied-guest", "added")
        .replace("1 s", "1 s\nhold 1 h")
    )

    async def run() -> None:
        async with (
            edge_zone(tmp_path, situ=SITU, more=QUICK) as zone,
            zone.connect("reader") as reader,
            zone.connect("desk") as desk,
        ):
            added = zone.registry.add("policy", "added", policy_document("added", text, "added.dpl"), who="test")
            await publish_deployment(zone.bus, added.deployment)
            await eventually(lambda: zone.engine is not None and "added" in zone.engine._detection._detecting.watches)
            events = desk.events(DURABLE, durable="added", where="policy = 'added'")
            await see(reader, "g1", 5)
            (opened,) = await take(events, 1)
            await zone.crash()
            removed = zone.registry.remove("policy", "added", who="test")
            await publish_deployment(zone.bus, removed.deployment)
            await zone.start()
            (closed,) = await take(events, 1)
            assert told(closed) == ("closed", GUEST)
            assert (closed.data["situation"], closed.data["reason"]) == (opened.data["situation"], "policy removed")

    asyncio.run(run())


def test_steps_that_are_taken_again_decide_no_more_than_they_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with (
            edge_zone(tmp_path, situ=SITU, more=QUICK) as zone,
            zone.connect("reader") as reader,
            zone.connect("desk") as desk,
        ):
            assert zone.engine is not None
            detection = zone.engine._detection
            causes = detection._causes

            async def slowly(positions: Sequence[int]) -> dict[int, Row]:
                await asyncio.sleep(1)  # the other guest is alone for long enough meanwhile
                return await causes(positions)

            monkeypatch.setattr(detection, "_causes", slowly)
            events = desk.events(DURABLE, durable="situations")
            telling = await zone.tell_nothing()
            await see(reader, "g1", 5)
            await asyncio.sleep(0.4)
            await see(reader, "g2", 5)
            await telling.wait()
            await zone.crash()  # what is to be told of one is written down, and the other is not decided
            await zone.start()
            found = [told(each) for each in await take(events, 4)]
            assert sorted((stage, each["A"]) for stage, each in found) == [
                ("closed", "g1"),
                ("closed", "g2"),
                ("opened", "g1"),
                ("opened", "g2"),
            ]
            await nothing_more(events)

    asyncio.run(run())
