"""Policies that begin in the past, at the edge: what the log holds is told once, and they go on from there."""

from __future__ import annotations

import asyncio
from pathlib import Path

from situ.event.lines import decode_line
from situ.event.message import split_lines
from situ.policies.model import PolicyStart
from situ.registry.object_files import policy_document
from situ.registry.snapshots import publish_deployment
from tests.edge_zone import EdgeZone, edge_zone, eventually, nothing_more, take
from tests.integration.edge.test_detection import DURABLE, QUICK, SITU, see, told

FILE = "policies/unaccompanied-guest.dpl"
WITHOUT = {name: text for name, text in QUICK.items() if name != FILE}
TEXT = QUICK[FILE].replace("unaccompanied-guest", "added")
OPEN = TEXT.replace("1 s", "1 s\nhold 1 h")
BEGIN = PolicyStart(at=0)
G1, G2 = {"A": "g1", "R": "lab"}, {"A": "g2", "R": "lab"}


async def add(zone: EdgeZone, text: str, start: PolicyStart | None) -> None:
    document = policy_document("added", text, "added.dpl")
    added = zone.registry.add("policy", "added", document, who="test", start=start)
    await publish_deployment(zone.bus, added.deployment)


def watches(zone: EdgeZone, name: str = "added") -> bool:
    return zone.engine is not None and name in zone.engine._detection._detecting.watches


async def types(zone: EdgeZone) -> list[str]:
    messages = await zone.messages(zone.names.root_stream)
    return [decode_line(line).type for each in messages for line in split_lines(each.body)]


def test_a_policy_that_begins_in_the_past_tells_what_happened_and_acts_from_now_on(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            edge_zone(tmp_path, situ=SITU, more=WITHOUT) as zone,
            zone.connect("reader") as reader,
            zone.connect("desk") as desk,
        ):
            events = desk.events(DURABLE, durable="situations")
            await see(reader, "g1", 5)
            await asyncio.sleep(4)
            await see(reader, "e1", 30)
            await add(zone, TEXT, BEGIN)
            opened, closed = await take(events, 2)
            assert [told(opened), told(closed)] == [("opened", G1), ("closed", G1)]
            assert [each["source"] for each in opened.data["causes"]] == ["reader"]
            assert "GuestAlone" not in await types(zone), "it is too late for that"
            await see(reader, "g2", 5)
            assert [told(each) for each in await take(events, 2)] == [("opened", G2), ("closed", G2)]
            assert (await types(zone)).count("GuestAlone") == 1
            removed = zone.registry.remove("policy", "added", who="test")
            await publish_deployment(zone.bus, removed.deployment)
            await eventually(lambda: not watches(zone))
            await add(zone, TEXT, BEGIN)
            await eventually(lambda: watches(zone))
            await nothing_more(events)

    asyncio.run(run())


def test_its_actions_are_done_for_the_past_if_that_is_asked_for(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            edge_zone(tmp_path, situ=SITU, more=WITHOUT) as zone,
            zone.connect("reader") as reader,
            zone.connect("desk") as desk,
        ):
            events = desk.events(DURABLE, durable="situations")
            await see(reader, "g1", 5)
            await asyncio.sleep(4)
            await see(reader, "e1", 30)
            await add(zone, TEXT, PolicyStart(at=0, acts=True))
            await take(events, 2)
            assert (await types(zone)).count("GuestAlone") == 1

    asyncio.run(run())


def test_a_process_that_dies_while_it_tells_of_the_past_tells_it_once_and_knows_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            edge_zone(tmp_path, situ=SITU, more=WITHOUT) as zone,
            zone.connect("reader") as reader,
            zone.connect("desk") as desk,
        ):
            events = desk.events(DURABLE, durable="situations")
            telling = await zone.tell_nothing()
            await see(reader, "g1", 5)
            await asyncio.sleep(2)
            await see(reader, "g2", 5)
            await add(zone, OPEN, BEGIN)
            await telling.wait()
            await zone.crash()  # what is to be told of the first guest is written down; the other is not decided
            await zone.start()
            assert [told(each) for each in await take(events, 2)] == [("opened", G1), ("opened", G2)]
            await see(reader, "g1", 5)
            assert [told(each) for each in await take(events, 1)] == [("continued", G1)]
            await nothing_more(events)

    asyncio.run(run())
