"""Scopes on a running zone: three audiences see three views of one log, now, later, and after a change."""

from __future__ import annotations

import json
from functools import partial

import pytest

from situ.app.replay import plan_for, replay_in_process
from situ.client.events import read_events
from situ.event.lines import decode_line, stored_lines
from situ.event.message import STAMP, EventKey, join_lines, split_lines
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.lang.tags import NO_TAGS, TagSet
from situ.model import Deployment
from situ.project.check import check_folder
from situ.protocol.messages import DeadEvent, History
from situ.registry.snapshots import fetch_scopes, publish_deployment
from situ.router.queries import HistoryReader
from situ.routing.delivery_groups import group_of
from situ.scopes.stamp_codec import NO_NUMBERING
from tests.edge_zone import EdgeZone, Zones, eventually, nothing_more, run, take
from tests.project_files import write
from tests.zone import event

SCOPES = """
version: 1
dimensions:
  membership:
    mode: closed
    scopes:
      plant:  {}
      line:   { in: [plant], output: "severity >= 4" }
      office: { in: [plant] }
      guest:  { in: [office], input: "text = 'fire'" }
clients:
  press:  { membership: [line] }
  crew:   { membership: [line] }
  desk:   { membership: [office] }
  badge:  { membership: [guest] }
"""
CLIENTS = """
  press: {scopes: {membership: line}, advertisements: {alarms: {type: Alarm, where: severity > 0}}}
  crew: {scopes: {membership: line}, subscriptions: {all: {types: [Alarm], durable: true}}}
  desk: {scopes: {membership: office}, subscriptions: {all: {types: [Alarm], durable: true}}}
  badge: {scopes: {membership: guest}, subscriptions: {all: {types: [Alarm], durable: true}}}
"""
OPENED = SCOPES.replace(', output: "severity >= 4"', "")
CLOSED = SCOPES.replace("severity >= 4", "severity >= 9")
SEEN = {"crew": [1, 5, 6], "desk": [5, 6], "badge": [6]}


@pytest.fixture
def zones(zones: Zones) -> Zones:
    return partial(zones, clients=CLIENTS, more={"scopes.yaml": SCOPES})


async def publish(zone: EdgeZone, *alarms: tuple[int, str], first: int = 1) -> tuple[DeadEvent, ...]:
    """What a router would hand to the engine for the press."""
    assert zone.engine is not None
    lines = [
        json.dumps(event(f"e{first + place}", "Alarm", {"text": text, "severity": severity})).encode()
        for place, (severity, text) in enumerate(alarms)
    ]
    body = join_lines(lines)
    return await (await zone.engine.take(EventKey("press", 1, first), len(lines), body, 1_700_000_000_000_000))


ALARMS = ((1, "jam"), (5, "jam"), (6, "fire"))


async def apply(zone: EdgeZone, scopes: str, clients: str = CLIENTS) -> Deployment:
    """Put other scopes in force, and wait for the engine."""
    write(zone.folder, {"scopes.yaml": scopes, "clients/all.yaml": f"version: 1\nclients:\n{clients}"})
    checked = check_folder(zone.folder)
    assert checked.deployment is not None, checked.problems
    deployment = zone.registry.apply(checked.deployment, "test").deployment
    await publish_deployment(zone.bus, deployment)
    if zone.engine is not None:
        engine = zone.engine
        await eventually(lambda: engine.version >= deployment.version)
    return deployment


async def history(zone: EdgeZone, client: str, tags: TagSet | None = None) -> list[int]:
    """What a subscription to all alarms is shown of the past."""
    deployment = zone.registry.current()
    wanted = deployment.subscriptions[f"{client}/all"]
    page = await HistoryReader(zone.bus).page(
        History(req=1, sub="all", limit=100), wanted if tags is None else replace(wanted, scopes=tags), deployment
    )
    assert b"situtags" not in page.body
    return [each.data.severity for each in read_events(page.body)]


async def replayed(zone: EdgeZone) -> dict[str, list[int]]:
    """What a replay of the whole log gives each client, by what is in force."""
    plan = plan_for(zone.registry.current(), (), zone.folder)
    last = (await zone.bus.state(zone.names.root_stream)).last
    found: dict[str, list[int]] = {}
    async for some in replay_in_process(zone.bus, plan, 1, last):
        for each in some:
            assert b"situtags" not in each.line
            found.setdefault(each.subscription.partition("/")[0], []).append(json.loads(each.line)["data"]["severity"])
    return found


def test_three_audiences_see_three_views(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone:
            assert await publish(zone, *ALARMS) == ()
            for client, seen in SEEN.items():
                async with zone.connect(client) as node:
                    events = node.events(durable="all")
                    assert [each.data.severity for each in await take(events, len(seen))] == seen
                    await nothing_more(events, within=0.1)
                assert await history(zone, client) == seen
            assert await history(zone, "crew", NO_TAGS) == [], "who says nothing in a closed dimension sees nothing"
            assert await history(zone, "crew", TagSet.of({"membership": "elsewhere"})) == []
            logged = [line for message in await zone.messages(zone.names.root_stream) for line in stored_lines(message)]
            rows = [decode_line(line) for line in logged]
            assert {(row.tags, row.epoch) for row in rows} == {(1, 1)}
            assert [row.bits.bit_count() for row in rows] == [0, 1, 2]
            for message in await zone.messages(zone.names.out_stream):
                assert STAMP in message.headers or b"situtags" in message.body, "it waits with its stamp"

    run(main())


def test_an_event_that_is_not_as_advertised_is_a_dead_letter_for_those_who_would_see_it(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone:
            (dead,) = await publish(zone, (0, "jam"), (1, "jam"))
            assert (dead.code, dead.seq) == ("R003", 1)
            (letter,) = await zone.messages(zone.names.dead_stream)
            row = decode_line(split_lines(letter.body)[0])
            assert (row.type, row.tags, row.epoch, row.bits) == ("situ.deadletter", 1, 1, 0)

    run(main())


def test_who_says_nothing_in_a_closed_dimension_is_told(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone:
            async with zone.connect("passer") as node:
                registration = await node.register_for_events("Level")
                assert [each.code for each in registration.said] == ["V107"]
                assert "no event is delivered" in registration.said[0].message
                assert [each.code for each in (await node.advertise("Level")).said] == ["V107"]
            async with zone.connect("desk") as node:
                assert (await node.register_for_events("Alarm")).said == ()

    run(main())


def test_who_is_in_no_scope_finds_nothing(zones: Zones) -> None:
    """Of what only others publish, in scopes that it is not in, it does not learn that there is such a thing."""

    async def main() -> None:
        async with zones() as zone, zone.connect("passer") as node:
            for ask in (node.register_for_events, node.advertise):
                for type in ("Alarm", "Alarum"):
                    with pytest.raises(SituError) as refused:
                        await ask(type)
                    assert (refused.value.code, str(refused.value)) == (
                        "INT601",
                        f"INT601 There is no event type `{type}`.",
                    )
            assert (await node.register_for_events("Level")).durable is False, "what nobody publishes is no secret"

    run(main())


def test_widening_does_not_reach_back_and_narrowing_does(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone:
            await publish(zone, *ALARMS)
            opened = await apply(zone, OPENED)
            assert (opened.epoch, opened.numbers == NO_NUMBERING) == (2, False)
            await publish(zone, *ALARMS, first=4)
            assert await history(zone, "desk") == [5, 6, 1, 5, 6]
            await apply(zone, CLOSED)
            await publish(zone, *ALARMS, (9, "fire"), first=7)
            assert await history(zone, "desk") == [9]
            assert await history(zone, "crew") == [1, 5, 6] * 3 + [9]
            assert await history(zone, "badge") == [9]
            await apply(zone, SCOPES)
            assert await history(zone, "desk") == [5, 6, 5, 6, 9], "what was hidden when it came stays hidden"
            assert await replayed(zone) == {"crew": [1, 5, 6] * 3 + [9], "desk": [5, 6, 5, 6, 9], "badge": [6, 6, 9]}
            scopes = await fetch_scopes(zone.bus, 2)
            assert scopes == opened.scopes
            assert await fetch_scopes(zone.bus, 99) is None

    run(main())


def test_what_lies_behind_the_cursor_is_routed_by_both_epochs(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone:
            await publish(zone, *ALARMS)
            await apply(zone, OPENED)
            await publish(zone, *ALARMS, first=4)
            await zone.stop()
            cursor = zone.folder / ".situ" / "edge" / "cursor.json"
            known = json.loads(cursor.read_text())
            cursor.write_text(json.dumps({**known, "root": 0}))
            wanted = "{types: [Alarm], durable: true, where: severity < 9}"
            late = f"{CLIENTS}  late: {{scopes: {{membership: office}}, subscriptions: {{all: {wanted}}}}}\n"
            members = SCOPES + "  late:   { membership: [office] }\n"
            deployment = await apply(zone, members, late)
            await zone.bus.ensure_consumer("late_all", [group_of(deployment.subscriptions["late/all"])])
            await zone.start()
            async with zone.connect("late") as node:
                events = node.events(durable="all")
                assert [each.data.severity for each in await take(events, 4)] == [5, 6, 5, 6]
                await nothing_more(events, within=0.1)

    run(main())
