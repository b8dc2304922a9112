"""Clients of an edge zone: publishing, registering, listening, on the bus in memory and on a real NATS server."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import situ
from situ.client.client import Client
from situ.client.events import Event
from situ.event.message import Message, split_lines
from situ.lang.problems import SituError
from situ.model import Deployment
from situ.stages.plan import Plan, compile_plan
from tests.edge_zone import Zones, eventually, nothing_more, run, take
from tests.nats_server import NatsServer


async def publish_levels(node: Client, count: int) -> None:
    for number in range(count):
        await node.publish_event("Level", tank="a", level=number)


def levels(events: list[Event]) -> list[float]:
    return [event.data.level for event in events]


def test_an_event_reaches_who_wants_it_and_nobody_else(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            high = desk.events("Level", where="level > 5")
            alarms = await desk.register_for_events("Alarm")
            first = asyncio.ensure_future(anext(high))
            await eventually(lambda: len(desk._subscriptions.registrations) == 2)
            await next(iter(desk._subscriptions.registrations.values())).installing.wait(5)
            await asyncio.sleep(0.2)
            for level in (1.0, 7.5, 3.0, 9.0):
                receipt = await pump.publish_event("Level", tank="a", level=level)
            assert await receipt.stored == f"pump.{pump._session.incarnation}.4"
            event = await first
            assert (event.type, event.source, event.data.level, event.data["tank"]) == ("Level", "pump", 7.5, "a")
            assert event.id == f"{pump._session.incarnation}-2"
            assert (event.context, event.redelivered, event.pos > 0) == ("root", False, True)
            assert datetime.now(UTC) - event.time < timedelta(seconds=30)
            assert levels(await take(high, 1)) == [9.0]
            assert len(alarms.buffer) == 0
            await high.aclose()  # type: ignore[attr-defined]
            assert set(desk._subscriptions.registrations) == {alarms.name}

    run(main())


def test_events_of_subtypes_are_events_of_the_type(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            alarms = aiter(await desk.register_for_events("Alarm"))
            await pump.publish_event("Fire", {"text": "hot", "severity": 3}, floor=2)
            (event,) = await take(alarms, 1)
            assert (event.type, event.data.floor) == ("Fire", 2)
            await alarms.aclose()  # type: ignore[attr-defined]

    run(main())


def test_nobody_gets_his_own_events(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            live = aiter(await pump.register_for_events("Level"))
            durable = aiter(await pump.register_for_events("Level", durable="mine"))
            await (await pump.publish_event("Level", tank="own", level=1)).stored
            await desk.publish_event("Level", tank="other", level=2)
            for events in (live, durable):
                assert [event.data.tank for event in await take(events, 1)] == ["other"]
                await events.aclose()  # type: ignore[attr-defined]

    run(main())


def test_a_listener_is_called_and_may_fail(zones: Zones, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            plain: list[float] = []
            asynchronous: list[float] = []

            def call(event: Event) -> None:
                plain.append(event.data.level)
                if event.data.level == 2:
                    raise ValueError("two is too much")

            listener = await desk.add_listener("Level", call)

            @desk.listener("type IS Level AND level >= 2")
            async def call_later(event: Event) -> None:
                await asyncio.sleep(0)
                asynchronous.append(event.data.level)

            await eventually(lambda: len(desk._listeners) == 2)
            for level in (1, 2, 3):
                await pump.publish_event("Level", tank="a", level=level)
            await eventually(lambda: len(plain) == 3 and len(asynchronous) == 2)
            assert (plain, asynchronous) == ([1, 2, 3], [2, 3])
            assert (listener.called, listener.failed, listener.error) == (3, 1, "ValueError: two is too much")
            await desk.remove_listener(listener)
            assert len(desk._subscriptions.registrations) == 1

    run(main())
    assert "two is too much" in caplog.text


def test_a_listener_needs_a_type(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("desk") as desk:
            with pytest.raises(SituError) as error:
                await desk.add_listener("level > 5", print)
            assert error.value.code == "R102"

    run(main())


def test_what_is_registered_the_same_is_registered_once(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("desk") as desk:
            first = await desk.register_for_events("Level", where="level > 5", durable="board")
            asked = desk._session._requests
            assert await desk.register_for_events("Level", where="level > 5", durable="board") is first
            assert desk._session._requests == asked
            await desk.register_for_events("Level", "Alarm", durable="both")
            await desk.unregister_for_events("Level")
            assert {each.name: each.types for each in desk._subscriptions.registrations.values()} == {
                "both": ("Alarm",)
            }
            await desk.unregister_all_events()
            assert desk._subscriptions.registrations == {}
            await eventually(lambda: zone.registry.current().subscriptions == {})

    run(main())


def test_wrong_declarations_are_refused_with_a_remedy(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("desk") as desk:
            for work, code in (
                (desk.register_for_events("Levle"), "INT601"),
                (desk.register_for_events("Level", where="lvl > 5"), "INT602"),
                (desk.register_for_events("Level", durable="no_name"), "R101"),
                (desk.advertise("Nothing"), "INT601"),
                (desk.publish_event("Nothing", x=1), "INT601"),
                (desk.unadvertise("nothing"), "R002"),
                (desk.publish_event("Level", ad="nothing", tank="a", level=1), "R002"),
                (desk.advertise("Level", scopes={"x": "y"}), "V001"),
                (desk.register_for_events("Level", context="us"), "INT501"),
                (desk.use_context("us"), "INT501"),
            ):
                with pytest.raises(SituError) as error:
                    await work
                assert error.value.code == code, str(error.value)
                assert error.value.hint
            assert (await desk.status()).subscriptions == {}

    run(main())


def test_publishing_finds_or_makes_its_advertisement(zones: Zones) -> None:
    async def main() -> None:
        clients = "  pump: {advertisements: {alarms: {type: Alarm}}}\n"
        async with zones(clients=clients) as zone, zone.connect("pump") as pump:
            await (await pump.publish_event("Alarm", text="x", severity=1)).stored
            await (await pump.publish_event("Fire", text="x", severity=1, floor=2)).stored
            assert (await pump.status()).advertisements == ("alarms",)
            await (await pump.publish_event("Level", tank="a", level=1)).stored
            assert (await pump.status()).advertisements == ("Level", "alarms")
            ad = await pump.advertise("Alarm", name="second")
            with pytest.raises(SituError) as error:
                await pump.publish_event("Alarm", text="x", severity=1)
            assert error.value.code == "R002"
            await (await pump.publish_event("Alarm", text="x", severity=1, ad=ad)).stored
            with pytest.raises(SituError) as error:
                await pump.publish_event("Level", tank="a", level=1, ad=ad)
            assert error.value.code == "R003"
            await pump.unadvertise(ad)
            await (await pump.publish_event("Alarm", text="x", severity=1)).stored

    run(main())


def test_what_is_accepted_holds_however_long_the_engine_takes_to_work_with_it(
    zones: Zones, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(deployment: Deployment, previous: Plan | None = None) -> Plan:
        time.sleep(0.5 if previous is not None else 0)
        return compile_plan(deployment, previous)

    monkeypatch.setattr("situ.edge.engine.compile_plan", slowly)

    async def main() -> None:
        situ = "defaults: {install_timeout: 50 ms}\n"
        async with zones(situ=situ) as zone, zone.connect("pump") as pump:
            await (await pump.publish_event("Level", tank="a", level=1)).stored
            await pump.advertise("Alarm")
            await (await pump.publish_event("Fire", text="x", severity=1, floor=2)).stored

    run(main())


def test_bad_events_are_dead_letters_and_their_receipts_say_so(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            events = aiter(await desk.register_for_events("Level", durable="all"))
            receipts = [
                await pump.publish_event("Level", tank="a", level=1),
                await pump.publish_event("Level", tank="a", level="high"),
                await pump.publish_event("Level", tank="a"),
                await pump.publish_event("Level", tank="a", level=2),
            ]
            assert await receipts[0].stored
            for receipt, code in ((receipts[1], "INT703"), (receipts[2], "INT707")):
                with pytest.raises(SituError) as error:
                    await receipt.stored
                assert error.value.code == code
                assert error.value.hint
            assert await receipts[3].stored
            assert levels(await take(events, 2)) == [1, 2]
            await events.aclose()  # type: ignore[attr-defined]
            letters = await zone.messages(zone.names.dead_stream)
            found = [json.loads(line)["data"] for each in letters for line in split_lines(each.body)]
            assert [(each["code"], each["key"]) for each in found] == [
                ("INT703", receipts[1].key),
                ("INT707", receipts[2].key),
            ]
            assert zone.engine is not None
            assert zone.engine.counts.dead == {"INT703": 1, "INT707": 1}
            assert zone.engine.counts.types == {"Level": 2}

    run(main())


def test_an_event_from_the_future_and_an_undecodable_one_are_dead_letters(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump:
            late = await pump.publish_event("Level", tank="a", level=1, time=datetime.now(UTC) + timedelta(hours=1))
            with pytest.raises(SituError) as error:
                await late.stored
            assert error.value.code == "E703"

    run(main())


def test_the_same_id_again_is_counted_and_not_published(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone:
            async with zone.connect("pump") as pump:
                await (await pump.publish_event("Level", tank="a", level=1, id="order-1")).stored
                again = await pump.publish_event("Level", tank="a", level=1, id="order-1")
                assert again.duplicate
                await again.stored
                with pytest.raises(SituError):
                    await pump.publish_event("Level", tank="x" * 2_000_000, level=1, id="too-large")
                assert "too-large" not in pump._files.ids
                assert (await pump.status()).duplicates == 1
            async with zone.connect("pump") as pump:  # another life: the disk remembers
                assert (await pump.publish_event("Level", tank="a", level=1, id="order-1")).duplicate
            assert zone.engine is not None
            assert zone.engine.counts.types == {"Level": 1}

    run(main())


def test_an_event_that_is_too_large_is_refused_at_once(zones: Zones) -> None:
    async def main() -> None:
        async with zones(situ="limits: {event: 2 KiB}") as zone, zone.connect("pump") as pump:
            with pytest.raises(SituError) as error:
                await pump.publish_event("Level", tank="x" * 3000, level=1)
            assert error.value.code == "R007"
            await (await pump.publish_event("Level", tank="x" * 1000, level=1)).stored

    run(main())


def test_a_source_is_put_behind_the_client(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            events = aiter(await desk.register_for_events("Level"))
            await pump.publish_event("Level", tank="a", level=1, source="desk", confidence=97.5)
            await pump.publish_event("Level", tank="a", level=1, source="pump/2", time="2026-01-01T00:00:00Z")
            one, two = await take(events, 2)
            assert (one.source, one.confidence, two.source) == ("pump/desk", "97.5", "pump/2")
            assert two.time == datetime(2026, 1, 1, tzinfo=UTC)
            await events.aclose()  # type: ignore[attr-defined]

    run(main())


def test_a_client_that_speaks_for_another_is_refused(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump:
            body = b'[{"specversion":"1.0","id":"1","source":"desk","type":"Level","data":{"tank":"a","level":1}}]'
            headers = {
                "Situ-Message": "Publish",
                "Situ-Session": str(pump._session.number),
                "Situ-Key": "desk.1.1",
                "Situ-Count": "1",
            }
            request = Message(subject=zone.names.ingress("r1", "pump"), headers=headers, body=body)
            answer = json.loads((await zone.bus.request(request)).body)
            assert (answer["code"], answer["retry"]) == ("R011", False)
            assert await zone.messages(zone.names.root_stream) == []

    run(main())


def test_a_plain_publisher_needs_no_library(zones: Zones) -> None:
    async def main() -> None:
        clients = "  meter: {advertisements: {levels: {type: Level}}}\n"
        async with zones(clients=clients) as zone, zone.connect("desk") as desk:
            events = aiter(await desk.register_for_events("Level"))
            one = b'{"specversion":"1.0","id":"1","source":"meter","type":"Level","data":{"tank":"a","level":%d}}'
            subject = zone.names.ingress("r1", "meter")
            answer = await zone.bus.request(Message(subject=subject, body=one % 1))
            assert answer.headers["Situ-Message"] == "PublishAck"
            await zone.bus.send(Message(subject=subject, body=b"[%s, %s]" % (one % 2, one % 3)))
            found = await take(events, 3)
            assert levels(found) == [1, 2, 3]
            assert [event.key.rsplit(".", 1)[1] for event in found] == ["1", "2", "3"]
            answer = await zone.bus.request(Message(subject=subject, body=b"nonsense"))
            assert json.loads(answer.body)["dead"][0]["code"] == "E701"
            answer = await zone.bus.request(Message(subject=subject, body=b"{}", headers={"Situ-Message": "Nonsense"}))
            assert json.loads(answer.body)["code"] == "R101"
            await events.aclose()  # type: ignore[attr-defined]

    run(main())


def test_a_second_connection_takes_over_and_the_first_stops_with_a_clear_error(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("desk") as first:
            events = first.events("Level")
            step = asyncio.ensure_future(anext(events))
            await eventually(lambda: len(first._subscriptions.registrations) == 1)
            async with zone.connect("desk") as second:
                with pytest.raises(SituError) as error:
                    async with asyncio.timeout(10):
                        await step
                assert error.value.code == "R005"
                assert "desk" in str(error.value)
                with pytest.raises(SituError) as error:
                    await first.publish_event("Level", tank="a", level=1)
                assert error.value.code == "R005"
                await (await second.publish_event("Level", tank="a", level=1)).stored

    run(main())


def test_a_full_queue_blocks_and_then_says_so(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone:
            async with zone.connect("pump", queue_events=50, queue_timeout=0.3) as pump:
                await (await pump.publish_event("Level", tank="a", level=0)).stored
                await zone.crash()
                with pytest.raises(SituError) as error:
                    await publish_levels(pump, 200)
                assert error.value.code == "R004"
                assert (await pump.status()).queued == 50
                await zone.start()
                async with asyncio.timeout(120):
                    assert await pump.flush()
            assert zone.engine is not None
            stored = await zone.messages(zone.names.root_stream)
            assert sum(len(split_lines(each.body)) for each in stored) == 51

    run(main())


def test_a_slow_consumer_of_volatile_events_misses_the_oldest_and_knows_how_many(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            registration = await desk.register_for_events("Level")
            await publish_levels(pump, 3000)
            await eventually(lambda: registration.received == 3000)
            status = (await desk.status()).subscriptions[registration.name]
            assert (status.received, status.dropped, status.waiting) == (3000, 3000 - 1024, 1024)
            events = aiter(registration)
            assert levels(await take(events, 1024)) == list(range(3000 - 1024, 3000))
            await events.aclose()  # type: ignore[attr-defined]

    run(main())


def test_a_slow_consumer_of_durable_events_misses_nothing(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            registration = await desk.register_for_events("Level", durable="all")
            await publish_levels(pump, 3000)
            await pump.flush()
            events = aiter(registration)
            first = await take(events, 10)
            await asyncio.sleep(0.2)
            assert levels([*first, *await take(events, 2990)]) == list(range(3000))
            await nothing_more(events)
            await events.aclose()  # type: ignore[attr-defined]

    run(main())


def test_what_was_not_acknowledged_comes_again_and_says_so(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump:
            async with zone.connect("desk") as desk:
                await desk.register_for_events("Level", durable="all")
            for number in range(10):
                await (await pump.publish_event("Level", tank="a", level=number)).stored
            async with zone.connect("desk") as desk:
                async with aclosing(desk.events("Level", durable="all")) as events:  # type: ignore[type-var]
                    found = await take(events, 4)
                assert [event.redelivered for event in found] == [False] * 4
            async with zone.connect("desk") as desk:
                # The fourth was never stepped over: its process might have died at it.
                async with aclosing(desk.events("Level", durable="all", limit=7)) as events:  # type: ignore[type-var]
                    found = [event async for event in events]
                assert levels(found) == [3, 4, 5, 6, 7, 8, 9]
                assert found[0].redelivered
            async with zone.connect("desk") as desk:
                again = desk.events("Level", durable="all")
                await nothing_more(again)

    run(main())


def test_a_consumer_that_never_acknowledges_holds_up_nobody_else(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump:
            async with zone.connect("stuck") as stuck, zone.connect("desk") as desk:
                waiting = asyncio.Event()

                async def hang(event: Event) -> None:
                    await waiting.wait()

                await stuck.add_listener("Level", hang, durable="never")
                events = desk.events("Level", durable="all")
                await desk.register_for_events("Level", durable="all")
                await publish_levels(pump, 500)
                assert levels(await take(events, 500)) == list(range(500))
                await events.aclose()  # type: ignore[attr-defined]
            async with zone.connect("stuck") as stuck:
                events = stuck.events("Level", durable="never", limit=500)
                assert levels([event async for event in events]) == list(range(500))

    run(main())


def test_history_comes_first_and_then_what_comes_without_gap_or_repeat(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            count = 6000

            async def publish() -> None:
                for number in range(count):
                    await pump.publish_event("Level", tank="a", level=number)
                    if number % 20 == 0:
                        await asyncio.sleep(0.002)

            publishing = asyncio.ensure_future(publish())
            await eventually(lambda: pump._sender.stored > 1500)
            readers = [
                desk.events("Level", since="begin"),
                desk.events("Level", since="begin", where="level >= 100"),
                desk.events("Level", since="1 h ago", durable="past"),
            ]
            found = await asyncio.gather(
                take(readers[0], count), take(readers[1], count - 100), take(readers[2], count)
            )
            assert levels(found[0]) == list(range(count))
            assert levels(found[1]) == list(range(100, count))
            assert levels(found[2]) == list(range(count))
            await publishing
            for reader in readers:
                await nothing_more(reader, within=0.2)
            assert all(each.dropped == 0 for each in desk._subscriptions.registrations.values())

    run(main())


def test_history_of_a_durable_subscription_is_read_once(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump:
            await publish_levels(pump, 30)
            await pump.flush()
            async with zone.connect("desk") as desk:
                events = desk.events("Level", durable="all", since=timedelta(hours=1), limit=10)
                assert levels([event async for event in events]) == list(range(10))
            async with zone.connect("desk") as desk:
                events = desk.events("Level", durable="all", since="begin")
                assert levels(await take(events, 20)) == list(range(10, 30))
                await pump.publish_event("Level", tank="a", level=30)
                assert levels(await take(events, 1)) == [30]
                await nothing_more(events, within=0.2)
            async with zone.connect("desk") as desk:
                await nothing_more(desk.events("Level", durable="all", since="begin"))

    run(main())


def test_history_begins_when_it_is_asked_to(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            await (await pump.publish_event("Level", tank="a", level=1)).stored
            await asyncio.sleep(0.05)
            now = datetime.now(UTC)
            await (await pump.publish_event("Level", tank="a", level=2)).stored
            assert levels([event async for event in desk.events("Level", since=now, limit=1)]) == [2]
            assert levels([event async for event in desk.events("Level", since=now - timedelta(days=1), limit=2)]) == [
                1,
                2,
            ]

    run(main())


def test_who_left_gets_no_more_and_declares_nothing_any_more(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone:
            async with zone.connect("pump") as pump, zone.connect("desk") as desk:
                await desk.register_for_events("Level")
                await desk.register_for_events("Level", durable="board")
                await (await pump.publish_event("Level", tank="a", level=1)).stored
                assert zone.router is not None
                assert zone.router.clients == ("desk", "pump")
                assert {each.key for each in await zone.bus.entries(zone.names.clients)} == {"desk", "pump"}
            await eventually(lambda: list(zone.registry.current().subscriptions) == ["desk/board"])
            await eventually(lambda: not zone.registry.current().advertisements)
            assert zone.router.clients == ()
            assert [each.value for each in await zone.bus.entries(zone.names.clients)] == []

    run(main())


def test_a_changed_durable_subscription_keeps_what_waits_and_gets_what_is_new(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump:
            async with zone.connect("desk") as desk:
                await desk.register_for_events("Level", where="level < 5", durable="board")
            for level in (1, 9):
                await (await pump.publish_event("Level", tank="a", level=level)).stored
            async with zone.connect("desk") as desk:
                registration = await desk.register_for_events("Level", where="level > 5", durable="board")
                for level in (2, 8):
                    await (await pump.publish_event("Level", tank="a", level=level)).stored
                events = aiter(registration)
                assert levels(await take(events, 2)) == [1, 8]
                await nothing_more(events, within=0.2)

    run(main())


def test_a_subscription_of_the_project_is_there_without_being_declared(zones: Zones) -> None:
    async def main() -> None:
        clients = '  desk: {subscriptions: {high: {types: [Level], where: "level > 5", durable: true}}}\n'
        async with zones(clients=clients) as zone, zone.connect("pump") as pump:
            for level in (1, 9):
                await (await pump.publish_event("Level", tank="a", level=level)).stored
            async with zone.connect("desk") as desk:
                events = desk.events(durable="high")
                assert levels(await take(events, 1)) == [9]
                await nothing_more(events, within=0.2)
                assert zone.registry.find("subscription", "desk/high").origin == "folder"

    run(main())


def test_types_are_described(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("desk") as desk:
            found = await desk.describe("Fire", "Nothing")
            assert set(found) == {"Fire"}
            assert (found["Fire"].event, found["Fire"].above) == (True, ("Alarm",))
            assert found["Fire"].attributes == {"text": "string", "severity": "int", "floor": "int"}
            assert set(await desk.describe()) >= {"Fire", "Alarm", "Level"}

    run(main())


def test_a_second_reader_of_one_registration_is_refused(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("desk") as desk:
            registration = await desk.register_for_events("Level", durable="board")
            first = asyncio.ensure_future(anext(aiter(registration)))
            await asyncio.sleep(0.1)
            with pytest.raises(SituError) as error:
                await anext(aiter(registration))
            assert error.value.code == "R102"
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)

    run(main())


def test_where_no_router_answers_connecting_fails_with_a_remedy(server: NatsServer, tmp_path: Path) -> None:
    async def main() -> None:
        url = f"nats://{server.token}@127.0.0.1:{server.port}"
        with pytest.raises(SituError) as error:
            async with situ.connect(tmp_path, client="desk", servers=[url], timeout=0.5):
                pass
        assert error.value.code == "R008"
        with pytest.raises(SituError) as error:
            async with situ.connect(tmp_path, client="no_name", servers=[url]):
                pass
        assert error.value.code == "R011"
        with pytest.raises(SituError) as error:
            async with situ.connect(tmp_path, client="desk"):
                pass
        assert error.value.code == "P101"

    run(main())


def test_a_declaration_that_an_engine_does_not_adopt_stays_accepted(zones: Zones) -> None:
    async def main() -> None:
        from situ.registry.snapshots import engine_alive

        async with zones(situ="defaults: {install_timeout: 300 ms}") as zone, zone.connect("desk") as desk:
            async with engine_alive(zone.bus, "asleep", every=0.2):
                with pytest.raises(SituError) as error:
                    await desk.register_for_events("Level", durable="board")
                assert error.value.code == "R012"
                registration = await desk.register_for_events("Level", durable="board", wait=False)
                assert not registration.installed
            await eventually(lambda: registration.installed)

    run(main())


def test_dead_letters_are_events_that_can_be_asked_for(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            live = aiter(await desk.register_for_events("situ.deadletter"))
            durable = aiter(await desk.register_for_events("situ.deadletter", durable="bad"))
            own = aiter(await pump.register_for_events("situ.deadletter"))
            receipt = await pump.publish_event("Level", tank="a", level="high")
            for events in (live, durable, own):
                (letter,) = await take(events, 1)
                assert (letter.type, letter.data.code, letter.data.key) == ("situ.deadletter", "INT703", receipt.key)
                await events.aclose()  # type: ignore[attr-defined]

    run(main())


def test_a_durable_subscription_of_an_earlier_life_can_be_given_up(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone:
            async with zone.connect("desk") as desk:
                await desk.register_for_events("Level", durable="board")
            async with zone.connect("desk") as desk:
                registration = await desk.register_for_events("Level", durable="board")
                assert [each.name for each in await zone.bus.consumers()] == ["desk_board"]
                await desk.unregister_for_events(registration)
                assert zone.registry.current().subscriptions == {}
                while await zone.bus.consumers():
                    await asyncio.sleep(0.02)

    run(main())


def test_an_engine_whose_disk_failed_goes_on_where_it_was(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            events = aiter(await desk.register_for_events("Level", durable="all"))
            await publish_levels(pump, 50)
            await pump.flush()
            assert zone.engine is not None
            zone.engine._logged.put_nowait("nonsense")  # type: ignore[arg-type]
            await eventually(lambda: zone.engine is not None and zone.engine.mistakes.counts["route"])

            async def full(logged: object) -> bool:
                raise OSError("no space is left")

            zone.engine._route_logged = full  # type: ignore[method-assign]
            await publish_levels(pump, 1)
            with pytest.raises(SituError) as error:
                await zone.engine.ended()
            assert error.value.code == "N102"
            del zone.engine._route_logged
            await publish_levels(pump, 50)
            assert await pump.flush(10)  # what is stored is stored
            await zone.engine.start()
            await publish_levels(pump, 50)
            assert levels(await take(events, 151)) == [*range(50), 0, *range(50), *range(50)]
            await nothing_more(events, within=0.2)
            await events.aclose()  # type: ignore[attr-defined]

    run(main())


def test_subscriptions_that_come_and_go_disturb_no_other(zones: Zones) -> None:
    async def main() -> None:
        async with (
            zones() as zone,
            zone.connect("pump") as pump,
            zone.connect("desk") as desk,
            zone.connect("many") as many,
        ):
            events = aiter(await desk.register_for_events("Level", durable="all"))
            publishing = asyncio.ensure_future(publish_slowly(pump, 3000))
            made = await asyncio.gather(
                *(many.register_for_events("Level", where=f"level > {number}", wait=False) for number in range(100))
            )
            await eventually(lambda: all(each.installed for each in made))
            await asyncio.gather(*(many.unregister_for_events(each) for each in made))
            await publishing
            assert levels(await take(events, 3000)) == list(range(3000))
            await nothing_more(events, within=0.2)
            await events.aclose()  # type: ignore[attr-defined]
            assert set(zone.registry.current().subscriptions) == {"desk/all"}

    run(main())


async def publish_slowly(node: Client, count: int) -> None:
    for number in range(count):
        await node.publish_event("Level", tank="a", level=number)
        if number % 20 == 0:
            await asyncio.sleep(0.01)
