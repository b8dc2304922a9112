"""Queues and changes of scopes: what waits is decided again when it is handed over, whoever reads and however."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

from situ.bus.consumer_proxy import TAKE
from situ.bus.interface import ConsumerState, StoreAck
from situ.client.client import Client
from situ.client.connection import connect
from situ.event.message import COUNT, DECIDED, MESSAGE, REPLY, Message
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.registry.snapshots import adopted_versions
from situ.router.delivery_guard import DeliveryGuard
from situ.routing.delivery_groups import group_of
from tests.admitted import AdmittingServer, admitting_server
from tests.edge_zone import EdgeZone, edge_zone, eventually, nothing_more, run, take
from tests.integration.edge.test_scopes import ALARMS, CLIENTS, CLOSED, OPENED, SCOPES, apply, publish
from tests.nats_server import nats_server

EVERYBODY = """
  press: {advertisements: {alarms: {type: Alarm}}}
  desk: {subscriptions: {all: {types: [Alarm], durable: true}}}
"""
OPEN_WORLD = """
version: 1
dimensions: {membership: {mode: open, scopes: {office: {}}}}
clients: {desk: {membership: [office]}}
"""


@asynccontextmanager
async def zone_on(
    bus: str, folder: Path, clients: str = CLIENTS, scopes: str = SCOPES, more: Mapping[str, str] = MappingProxyType({})
) -> AsyncIterator[EdgeZone]:
    """A zone on one of the buses; on `credentials` clients are known by keys and may nothing but ask their router."""
    more = {"scopes.yaml": scopes, **more} if scopes else more
    if bus == "memory":
        async with edge_zone(folder, None, clients=clients, more=more) as zone:
            yield zone
        return
    known = bus == "credentials"
    with admitting_server(folder / "nats", "desk", "crew") if known else nats_server(folder / "nats") as server:
        async with edge_zone(folder, server, clients=clients, more=more) as zone:
            yield zone


def reading(zone: EdgeZone, client: str) -> AbstractAsyncContextManager[Client]:
    if isinstance(zone.server, AdmittingServer):
        credentials = zone.server.file(client)
        return connect(zone.folder, client=client, servers=[zone.server.url], credentials=credentials)
    return zone.connect(client)


async def adopted(zone: EdgeZone, scopes: str, clients: str = CLIENTS) -> None:
    """Put other scopes in force, and wait until engine and router work with them."""
    version = (await apply(zone, scopes, clients)).version
    while (await adopted_versions(zone.bus)).get("router-r1", 0) < version:
        await asyncio.sleep(0.01)


async def given(zone: EdgeZone, client: str, count: int) -> list[int]:
    """What a reader gets: so many, and nothing more."""
    async with reading(zone, client) as node:
        events = node.events(durable="all")
        found = [each.data.severity for each in await take(events, count)]
        await nothing_more(events, within=0.2)
        return found


async def consumer(zone: EdgeZone, client: str) -> ConsumerState:
    return next(each for each in await zone.bus.consumers() if each.name == f"{client}_all")


async def until(zone: EdgeZone, client: str, condition: Callable[[ConsumerState], bool]) -> None:
    """Wait until a consumer is so; the test has a deadline."""
    while not condition(await consumer(zone, client)):
        await asyncio.sleep(0.01)


@pytest.fixture(params=["memory", "nats", "credentials"])
def bus(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_what_waits_is_handed_over_only_if_it_is_visible_now(bus: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with zone_on(bus, tmp_path) as zone:
            await publish(zone, *ALARMS)
            await publish(zone, (7, "jam"), first=4)
            await publish(zone, (9, "jam"), (8, "jam"), first=5)
            await adopted(zone, CLOSED)  # severity >= 9
            await publish(zone, (9, "fire"), (8, "fire"), first=7)
            assert await given(zone, "desk", 2) == [9, 9]
            assert await given(zone, "crew", 8) == [1, 5, 6, 7, 9, 8, 9, 8], "nothing changed inside of the line"
            assert zone.router is not None
            assert zone.router._handing.withheld == 4
            await until(zone, "desk", lambda state: not state.waiting and not state.unacknowledged)

    run(main())


def test_what_waited_out_a_narrowing_is_handed_over_once_it_is_visible_again(bus: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with zone_on(bus, tmp_path) as zone:
            await publish(zone, *ALARMS)
            await adopted(zone, CLOSED)
            await publish(zone, *ALARMS, first=4)
            await adopted(zone, OPENED)
            await publish(zone, *ALARMS, first=7)
            assert await given(zone, "desk", 5) == [5, 6, 1, 5, 6], "what came while all was closed stays hidden"

    run(main())


def test_what_was_handed_out_and_not_acknowledged_is_decided_again(bus: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with zone_on(bus, tmp_path) as zone:
            for number, severity in enumerate((5, 9, 6, 9)):
                await publish(zone, (severity, "jam"), first=number + 1)
            async with reading(zone, "desk") as node, aclosing(node.events(durable="all")) as events:
                assert [each.data.severity for each in await take(events, 1)] == [5]
                await until(zone, "desk", lambda state: state.unacknowledged == (1 if bus == "memory" else 4))
            await adopted(zone, CLOSED)
            assert await given(zone, "desk", 2) == [9, 9]

    run(main())


def test_who_reads_while_scopes_change_gets_no_more_of_the_old(bus: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with zone_on(bus, tmp_path) as zone, reading(zone, "desk") as node:
            events = node.events(durable="all")
            await publish(zone, (5, "jam"))
            assert [each.data.severity for each in await take(events, 1)] == [5]
            for turn in range(4):
                await adopted(zone, (CLOSED, OPENED)[turn % 2])
                await publish(zone, (5, "jam"), (9, "jam"), first=2 + 2 * turn)
            assert [each.data.severity for each in await take(events, 6)] == [9, 5, 9, 9, 5, 9]
            await nothing_more(events, within=0.2)

    run(main())


def test_who_comes_next_does_not_wait_for_what_the_one_before_asked_for(bus: str, tmp_path: Path) -> None:
    """A request lasts ten seconds. Whoever asked may be gone, and what came for it would be handed to nobody."""

    async def main() -> None:
        async with zone_on(bus, tmp_path) as zone:
            for number in range(3):
                async with reading(zone, "desk") as node:
                    events = node.events(durable="all")
                    await nothing_more(events, within=0.2)
                async with reading(zone, "desk") as node, aclosing(node.events(durable="all", limit=1)) as events:
                    coming = asyncio.ensure_future(take(events, 1, within=5))
                    await asyncio.sleep(0.2)
                    await publish(zone, (5, "jam"), first=number + 1)
                    assert [each.data.severity for each in await coming] == [5]
                    with pytest.raises(StopAsyncIteration):
                        await anext(events)

    run(main())


@pytest.mark.parametrize("told", [True, False])
def test_who_waits_goes_on_when_the_router_is_started_again(told: bool, tmp_path: Path) -> None:
    """The bus was there all the time, and what the reader asked for is known to nobody any more."""

    async def main() -> None:
        async with zone_on("nats", tmp_path) as zone, reading(zone, "desk") as node:
            events = node.events(durable="all")
            coming = asyncio.ensure_future(take(events, 2))
            await publish(zone, (5, "jam"))
            await until(zone, "desk", lambda state: state.acknowledged > 0)
            assert zone.router is not None
            for relay in () if told else zone.router._desk._relays._relays.values():
                relay._numbers.clear()  # one that is killed tells nobody
            await zone.stop()
            await zone.start()
            await publish(zone, (6, "jam"), first=2)
            assert [each.data.severity for each in await coming] == [5, 6]

    run(main())


def test_queues_from_before_there_were_scopes_are_decided_too(bus: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with zone_on(bus, tmp_path, EVERYBODY, "") as zone:
            await publish(zone, (1, "jam"))
            assert await given(zone, "desk", 1) == [1]
            assert not (await consumer(zone, "desk")).guarded
            await publish(zone, (2, "jam"), first=2)
            await adopted(zone, CLOSED, EVERYBODY)
            assert (await consumer(zone, "desk")).guarded
            await publish(zone, (3, "jam"), first=3)
            async with reading(zone, "desk") as node:
                await nothing_more(node.events(durable="all"), within=0.3)
            await adopted(zone, OPEN_WORLD, EVERYBODY)
            await publish(zone, (4, "jam"), first=4)
            assert await given(zone, "desk", 1) == [4]

    run(main())


def test_a_reader_that_is_there_when_scopes_come_turns_to_its_router(tmp_path: Path) -> None:
    """It was served by the server itself; from the first stamped message on it is not."""

    async def main() -> None:
        async with zone_on("nats", tmp_path, EVERYBODY, "") as zone, reading(zone, "desk") as node:
            events = node.events(durable="all")
            await publish(zone, (1, "jam"))
            assert [each.data.severity for each in await take(events, 1)] == [1]
            await adopted(zone, OPEN_WORLD, EVERYBODY)
            await publish(zone, (2, "jam"), first=2)
            assert [each.data.severity for each in await take(events, 1)] == [2]
            await publish(zone, (3, "jam"), first=3)
            assert [each.data.severity for each in await take(events, 1)] == [3]
            assert zone.router is not None
            assert zone.router._desk._relays._relays, "its router stands between"

    run(main())


def test_a_subscription_with_other_tags_gets_what_those_may_see(bus: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with zone_on(bus, tmp_path) as zone:
            await publish(zone, *ALARMS, (9, "fire"))
            moved = CLIENTS.replace("crew: {scopes: {membership: line}", "crew: {scopes: {membership: office}")
            scopes = SCOPES.replace("crew:   { membership: [line] }", "crew:   { membership: [line, office] }")
            await adopted(zone, scopes, moved)
            assert await given(zone, "crew", 3) == [5, 6, 9]

    run(main())


DESKS = """
version: 1
context: desks
events:
  Bell: {words: string, loudness: int}
maps:
  - out: Alarm -> Bell
    attributes: {words: text, loudness: severity}
"""
IN_CONTEXT = CLIENTS.replace(
    "desk: {scopes: {membership: office}, subscriptions: {all: {types: [Alarm]",
    "desk: {context: desks, scopes: {membership: office}, subscriptions: {all: {types: [Bell]",
)


@pytest.mark.parametrize("placed", [True, False])
def test_new_filters_are_asked_of_the_event_in_root_s_terms(placed: bool, tmp_path: Path) -> None:
    """The subscriber is in a context with other names: its deliveries do not have what the filter asks for.

    Where positions are those of the log, they say where the event is; on Spark they do not, and it is looked for.
    """

    async def main() -> None:
        async with zone_on("memory", tmp_path, IN_CONTEXT, more={"contexts/desks.yaml": DESKS}) as zone:
            for number in range(20):  # as much before it and behind it
                await publish(zone, (1, "fire"), first=number + 1)
            await publish(zone, *ALARMS, first=21)
            await publish(zone, (1, "fire"), first=24)
            await apply(zone, SCOPES.replace("severity >= 4", "text <> 'jam'"), IN_CONTEXT)
            message = [each for each in await zone.messages(zone.names.out_stream) if b"words" in each.body][-1]
            if not placed:
                message = replace(message, body=re.sub(rb'"situpos":"[0-9]+"', b'"situpos":"65537"', message.body))
            handing = DeliveryGuard(zone.bus)
            handing.adopt(zone.registry.current())
            body = await handing.decide("desk_all", message)
            assert body is not None
            assert [each["data"] for each in json.loads(body)] == [{"words": "fire", "loudness": 6}]
            await zone.bus.purge(zone.names.root_stream, 1000)
            assert await handing.decide("desk_all", message) == body, "it is remembered"
            handing = DeliveryGuard(zone.bus)
            handing.adopt(zone.registry.current())
            assert await handing.decide("desk_all", message) == b"[]", "of what nobody has any more nothing is known"

    run(main())


def test_what_was_decided_by_a_newer_version_is_held_until_the_router_has_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with zone_on("memory", tmp_path) as zone:
            await publish(zone, *ALARMS)
            (message,) = [each for each in await zone.messages(zone.names.out_stream) if each.headers[COUNT] == "2"]
            assert message.headers[DECIDED] == "1 1"
            handing = DeliveryGuard(zone.bus)
            waiting = asyncio.ensure_future(handing.decide("desk_all", message))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            handing.adopt(zone.registry.current())
            body = await waiting
            assert body is not None
            assert [each["data"]["severity"] for each in json.loads(body)] == [5, 6]
            assert await handing.decide("stranger_all", message) is None

    run(main())


@pytest.mark.parametrize("late", ["root", "dead"])
def test_what_was_taken_before_a_change_and_stored_after_it_is_routed_by_both(late: str, tmp_path: Path) -> None:
    """The bus was busy: when the message is in the log, the engine has said that it works with the new scopes."""

    async def main() -> None:
        async with zone_on("memory", tmp_path) as zone, reading(zone, "desk") as node:
            registration = await node.register_for_events("Alarm", "situ.deadletter")
            held, store = asyncio.Event(), zone.bus.store
            begun: list[Message] = []

            async def slow(message: Message, *, lane: str = "") -> asyncio.Future[StoreAck]:
                if f".{late}." in message.subject and not held.is_set():
                    begun.append(message)
                    await held.wait()
                return await store(message, lane=lane)

            zone.bus.store = slow  # type: ignore[method-assign]
            published = asyncio.ensure_future(publish(zone, (0, "jam"), (5, "jam"), (9, "jam")))
            await eventually(lambda: begun)
            await adopted(zone, CLOSED)
            held.set()
            assert len(await published) == 1
            events = aiter(registration)
            assert [each.data.severity for each in await take(events, 1)] == [9]
            await nothing_more(events, within=0.2)
            assert await given(zone, "desk", 1) == [9]

    run(main())


@pytest.mark.parametrize("bus", ["memory", "nats"])
def test_what_is_routed_after_a_crash_waits_if_it_was_visible_when_it_was_stamped(bus: str, tmp_path: Path) -> None:
    """It is routed while it is hidden; who reads when it is not gets it."""
    wanted = "{types: [Alarm], durable: true, where: severity < 10}"
    late = f"{CLIENTS}  late: {{scopes: {{membership: office}}, subscriptions: {{all: {wanted}}}}}\n"
    members = "  late:   { membership: [office] }\n"

    async def main() -> None:
        async with zone_on(bus, tmp_path) as zone:
            await publish(zone, *ALARMS)
            await zone.stop()
            cursor = zone.folder / ".situ" / "edge" / "cursor.json"
            cursor.write_text(json.dumps({**json.loads(cursor.read_text()), "root": 0}))
            deployment = await apply(zone, CLOSED + members, late)
            group = group_of(deployment.subscriptions["late/all"])
            await zone.bus.ensure_consumer("late_all", [group], guarded=True)
            await zone.start()
            waiting = [(each.subject, each.headers[DECIDED]) for each in await zone.messages(zone.names.out_stream)]
            assert [each for each in waiting if each[1] != "1 1"] == [(zone.names.out(group), "2 -")], "others had it"
            await publish(zone, (9, "jam"), first=4)
            await adopted(zone, OPENED + members, late)
            assert await given(zone, "late", 3) == [5, 6, 9]

    run(main())


def test_who_asks_for_what_is_not_his_is_not_served(tmp_path: Path) -> None:
    """A request that names no subscription of the client's is passed on to nobody that could answer."""

    async def main() -> None:
        async with zone_on("credentials", tmp_path) as zone, reading(zone, "crew") as node:
            with pytest.raises(SituError):
                await node._bus.consume("crew_none")
            assert zone.router is not None
            desk, refused = zone.router._desk, zone.router._desk.refused
            body = json.dumps({"do": "next", "name": "none"}).encode()
            headers = {MESSAGE: TAKE, REPLY: "_INBOX_crew.x.1"}
            await node._bus.send(Message(subject=zone.names.ingress("r1", "crew"), body=body, headers=headers))
            await eventually(lambda: desk.refused == refused + 1)
            assert not desk._relays._relays, "nobody is listened for"

    run(main())
