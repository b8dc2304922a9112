"""Contexts while events flow: clients that go over to others and define their own, and contexts that change."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import pytest

from situ import Unit, context, conv_function, maps_to
from situ.client.client import Client
from situ.client.events import Event
from situ.lang.problems import SituError
from situ.project.check import check_folder
from situ.registry.snapshots import publish_deployment
from tests.edge_zone import EdgeZone, edge_zone, eventually
from tests.integration.stages.test_interpretation import DOOR, TYPES, US
from tests.nats_server import NatsServer
from tests.project_files import write

PARCELS = """
version: 1
events:
  Weighed: {n: long, mass: double kg}
"""
POUNDS = """
version: 1
context: pounds
events:
  Weighed: {n: long, mass: double lb}
maps:
  - both: Weighed <-> Weighed
"""
ROUGHLY = POUNDS + "functions: {roughly: double lb -> double kg = value * 0.5}\n"
FILES = {"types/all.yaml": TYPES, "contexts/door.yaml": DOOR, "contexts/us.yaml": US}
BADGE = {"badge": "p1", "polar": {"r": 20.0, "theta": 0.0}}


def run(tmp_path: Path, work: Any, server: NatsServer | None = None, files: dict[str, str] = FILES) -> None:
    async def go() -> None:
        async with edge_zone(tmp_path, server, more=files) as zone:
            await work(zone)

    asyncio.run(go())


async def taken(node: Client, *types: str, count: int, **options: Any) -> asyncio.Task[list[Event]]:
    """Registered before it returns."""
    registration = await node.register_for_events(*types, **options)

    async def take() -> list[Event]:
        found: list[Event] = []
        async for event in registration:
            found.append(event)
            if len(found) == count:
                break
        return found

    return asyncio.create_task(take())


async def within(task: asyncio.Task[list[Event]], seconds: float = 120) -> list[Event]:
    async with asyncio.timeout(seconds):
        return await task


def code(error: pytest.ExceptionInfo[SituError]) -> str:
    return error.value.code


class TestGoingOver:
    def test_a_client_speaks_in_other_terms_from_one_event_to_the_next(self, tmp_path: Path) -> None:
        async def work(zone: EdgeZone) -> None:
            async with zone.connect("hall") as hall, zone.connect("gate") as gate:
                seen = await taken(hall, "Seen", count=3)
                await gate.publish_event("Seen", who="p0", place={"x": 1.0, "y": 2.0})
                await gate.use_context("door")
                await gate.publish_event("Badge", BADGE)
                await gate.use_context("root")
                await gate.publish_event("Seen", who="p2", place={"x": 3.0, "y": 4.0})
                events = await within(seen)
                assert [event.data["who"] for event in events] == ["p0", "p1", "p2"]
                assert [event.origin for event in events] == ["root", "door@1", "root"]
                assert {event.context for event in events} == {"root"}
                assert events[1].data["place"]["x"] == pytest.approx(6.096)

        run(tmp_path, work)

    def test_what_is_published_meanwhile_waits(self, tmp_path: Path) -> None:
        async def work(zone: EdgeZone) -> None:
            async with zone.connect("hall") as hall, zone.connect("gate") as gate:
                seen = await taken(hall, "Seen", count=2)
                await gate.publish_event("Seen", who="p0", place={"x": 1.0, "y": 2.0})
                going = asyncio.create_task(gate.use_context("door"))
                await eventually(lambda: not gate._sender._ready or going.done())
                receipt = await gate.publish_event("Badge", BADGE, ad=await gate.advertise("Badge"))
                await going
                assert await receipt.stored
                assert [event.data["who"] for event in await within(seen)] == ["p0", "p1"]

        run(tmp_path, work)

    def test_registrations_go_along(self, tmp_path: Path) -> None:
        async def work(zone: EdgeZone) -> None:
            async with zone.connect("desk", context="us") as desk, zone.connect("gate") as gate:
                pings = await taken(desk, "Ping", count=2)
                await gate.publish_event("Ping", n=1)
                await gate.flush()
                await desk.use_context("door")
                await gate.publish_event("Ping", n=2)
                assert [event.data["n"] for event in await within(pings)] == [1, 2]
                held = zone.registry.current().subscriptions.values()
                assert [each.context for each in held if each.client == "desk"] == ["door"]

        run(tmp_path, work)

    def test_durable_ones_go_along_and_lose_nothing(self, tmp_path: Path) -> None:
        async def work(zone: EdgeZone) -> None:
            async with zone.connect("desk", context="us") as desk, zone.connect("gate") as gate:
                ours = await taken(desk, "Seen", count=1, context="root")
                pings = await desk.register_for_events("Ping", durable="pings")
                for number in range(10):
                    await gate.publish_event("Ping", n=number)
                await gate.flush()
                await desk.use_context("door")
                for number in range(10, 20):
                    await gate.publish_event("Ping", n=number)
                found: list[int] = []
                async with asyncio.timeout(120):
                    async for event in pings:
                        found.append(event.data["n"])
                        if len(found) == 20:
                            break
                assert found == list(range(20))
                await gate.publish_event("Seen", who="p0", place={"x": 1.0, "y": 2.0})
                assert [event.type for event in await within(ours)] == ["Seen"]

        run(tmp_path, work)

    def test_what_means_nothing_in_a_context_keeps_a_client_from_it(self, tmp_path: Path) -> None:
        async def work(zone: EdgeZone) -> None:
            async with zone.connect("desk", context="us") as desk, zone.connect("gate", context="door") as gate:
                sightings = await taken(desk, "Sighting", count=1)
                with pytest.raises(SituError) as refused:
                    await desk.use_context("door")
                assert code(refused) == "INT601"
                with pytest.raises(SituError) as refused:
                    await desk.use_context("doors")
                assert code(refused) == "INT501"
                await gate.publish_event("Badge", BADGE)
                (event,) = await within(sightings)
                assert event.data["person"] == "p1"

        run(tmp_path, work)

    def test_whoever_leaves_is_in_no_context(self, tmp_path: Path) -> None:
        async def work(zone: EdgeZone) -> None:
            async with zone.connect("gate", context="door") as gate:
                await gate.advertise("Badge")
                assert zone.registry.current().clients["gate"].context == "door"
            await eventually(lambda: "gate" not in zone.registry.current().clients)
            async with zone.connect("gate") as gate:
                await gate.advertise("Seen")
                assert zone.registry.current().clients["gate"].context == "root"

        run(tmp_path, work)

    def test_where_the_project_has_a_client_is_not_its_own_to_say(self, tmp_path: Path) -> None:
        async def work(zone: EdgeZone) -> None:
            async with zone.connect("desk", context="us") as desk:
                with pytest.raises(SituError) as refused:
                    await desk.use_context("door")
                assert code(refused) == "D103"

        run(tmp_path, work, files={**FILES, "clients/c.yaml": "clients: {desk: {context: us}}"})

    def test_it_is_remembered_over_a_restart_of_the_router(self, tmp_path: Path) -> None:
        async def work(zone: EdgeZone) -> None:
            async with zone.connect("hall") as hall, zone.connect("gate", context="door") as gate:
                seen = await taken(hall, "Seen", count=2, durable="all")
                await gate.publish_event("Badge", BADGE)
                await gate.flush()
                await zone.stop()
                await zone.start()
                await gate.publish_event("Badge", BADGE)
                events = await within(seen)
                assert [event.origin for event in events] == ["door@1", "door@1"]

        run(tmp_path, work)

    def test_one_registration_can_be_in_other_terms(self, tmp_path: Path) -> None:
        async def work(zone: EdgeZone) -> None:
            async with zone.connect("hall") as hall, zone.connect("gate", context="door") as gate:
                ours = await taken(hall, "Seen", count=1)
                theirs = await taken(hall, "Sighting", count=1, context="us")
                await gate.publish_event("Badge", BADGE)
                assert [event.type for event in (*await within(ours), *await within(theirs))] == ["Seen", "Sighting"]
                assert "third" not in (await hall.describe("Seen"))["Seen"].attributes
                assert (await gate.describe("Badge"))["Badge"].attributes.keys() == {"badge", "polar"}

        run(tmp_path, work)


def test_on_a_zone_of_spark_messages_say_who_can_read_them(tmp_path: Path) -> None:
    async def go() -> None:
        async with edge_zone(tmp_path, more=FILES, spark=True) as zone:
            async with zone.connect("gate", context="door") as gate, zone.connect("hall") as hall:
                await gate.publish_event("Badge", BADGE)
                await hall.publish_event("Ping", n=1)
                await asyncio.gather(gate.flush(), hall.flush())
                version = zone.registry.current().version
            stamps = [
                (each.headers["Situ-Context"], each.headers.get("Situ-Deployment"))
                for each in await zone.messages(zone.names.in_stream)
            ]
            (context, deployment), other = sorted(stamps)
            assert (context, other) == ("door@1", ("root", None))
            assert 1 < int(deployment or "0") <= version

    asyncio.run(go())


@context("stones", extends="root")
@maps_to("Weighed", direction="both")
@conv_function("stone", "kg", expr="value * 6.35")
@dataclass
class Weighed:
    n: int
    mass: Annotated[float, Unit("stone")]


@context("code")
@conv_function("stone", "kg")
def to_kilograms(value: float) -> float:
    return value * 6.35


ONLY_TYPES = {"types/all.yaml": PARCELS}


class TestDefining:
    @pytest.mark.parametrize("form", ["text", "text without its name", "text in a program", "dictionary"])
    def test_a_context_is_defined_and_used(self, tmp_path: Path, form: str) -> None:
        definition: dict[str, object] = {
            "text": POUNDS,
            "text without its name": POUNDS.replace("context: pounds\n", ""),
            "text in a program": """
                events: {Weighed: {n: long, mass: double lb}}
                maps:
                  - both: Weighed <-> Weighed
                """,
            "dictionary": {
                "events": {"Weighed": {"n": "long", "mass": "double lb"}},
                "maps": [{"both": "Weighed <-> Weighed"}],
            },
        }

        async def work(zone: EdgeZone) -> None:
            async with zone.connect("hall") as hall, zone.connect("scale") as scale:
                seen = await taken(hall, "Weighed", count=1)
                made = await scale.define_context("pounds", definition[form])
                assert made.id == "pounds"
                await scale.use_context("pounds")
                await scale.publish_event("Weighed", n=1, mass=10.0)
                (event,) = await within(seen)
                assert event.data["mass"] == pytest.approx(4.5359237)
                assert zone.registry.find("context", "pounds").origin == "client"

        run(tmp_path, work, files=ONLY_TYPES)

    def test_classes_define_a_context(self, tmp_path: Path) -> None:
        async def work(zone: EdgeZone) -> None:
            async with zone.connect("hall") as hall, zone.connect("scale") as scale:
                seen = await taken(hall, "Weighed", count=1)
                await scale.define_context("stones", Weighed)
                await scale.use_context("stones")
                await scale.publish_event("Weighed", n=1, mass=10.0)
                (event,) = await within(seen)
                assert event.data["mass"] == 63.5
                with pytest.raises(SituError) as refused:
                    await scale.define_context("others", Weighed)
                assert code(refused) == "R102"
                with pytest.raises(SituError) as refused:
                    await scale.define_context("code", to_kilograms)
                assert code(refused) == "INT411"

        run(tmp_path, work, files=ONLY_TYPES)

    def test_mistakes_are_told_and_code_is_refused(self, tmp_path: Path) -> None:
        async def work(zone: EdgeZone) -> None:
            async with zone.connect("scale") as scale:
                for text, expected in (
                    (POUNDS.replace("lb}", "parrots}"), "INT105"),
                    (POUNDS + "functions: {f: {signature: double lb -> double kg, python: files.f}}", "INT411"),
                    (POUNDS.replace("context: pounds", "context: others"), "D110"),
                    ("a: [", "P102"),
                ):
                    with pytest.raises(SituError) as refused:
                        await scale.define_context("pounds", text)
                    assert code(refused) == expected, text
                with pytest.raises(SituError) as refused:
                    await scale.define_context("pounds", 7)
                assert code(refused) == "R102"
                assert "pounds" not in zone.registry.current().contexts.by_id

        run(tmp_path, work, files=ONLY_TYPES)

    def test_what_somebody_uses_is_forked(self, tmp_path: Path) -> None:
        async def work(zone: EdgeZone) -> None:
            async with zone.connect("scale") as scale, zone.connect("hall") as hall:
                await scale.define_context("pounds", ROUGHLY)
                await hall.use_context("pounds")
                await hall.advertise("Weighed")
                made = await scale.define_context("pounds", ROUGHLY.replace("0.5", "0.4"))
                assert made.id == "pounds.v2"
                assert [each.code for each in made.said if each.code != "INT415"][-1:] == ["INT504"]
                again = await scale.define_context("pounds", ROUGHLY.replace("0.5", "0.4"))
                assert again.id == "pounds.v2"
                await scale.use_context("pounds.v2")

        run(tmp_path, work, files=ONLY_TYPES)

    def test_what_the_project_declares_is_not_a_clients_to_change(self, tmp_path: Path) -> None:
        async def work(zone: EdgeZone) -> None:
            async with zone.connect("scale") as scale:
                with pytest.raises(SituError) as refused:
                    await scale.define_context("pounds", ROUGHLY)
                assert code(refused) == "D103"

        run(tmp_path, work, files={**ONLY_TYPES, "contexts/pounds.yaml": POUNDS})


SIZES = """
version: 1
types: {Size: {length: double m}}
events: {Parcel: {n: long, size: Size}}
"""
LARGER = SIZES.replace("length: double m", "length: double cm, height: double cm")
INCHES = """
version: 1
context: inches
types: {Inches: {length: double in}}
events: {Parcel: {n: long, size: Inches}}
maps: [out: Parcel -> Parcel]
rules: {out: [Size -> to_inches]}
functions: {to_inches: "Size -> Inches = struct(value.length / 0.0254 AS length)"}
"""
FORMER = """
version: 1
context: root.v1
types: {Size: {length: double m}}
rules: {in: [Size -> forth], out: ["root:Size -> back"]}
functions:
  forth: "Size -> root:Size = struct(value.length * 100 AS length, 1 / value.length AS height)"
  back: "root:Size -> Size = struct(value.length / 100 AS length)"
"""


def test_the_log_is_read_in_the_terms_of_now(tmp_path: Path) -> None:
    """What was stored before a type was replaced, for those who know the new one, and for those who do not."""
    files = {
        "types/all.yaml": SIZES,
        "contexts/inches.yaml": INCHES,
        "clients/c.yaml": "clients: {shop: {context: inches, subscriptions: {all: {types: [Parcel]}}}}",
    }

    async def work(zone: EdgeZone) -> None:
        async with zone.connect("hub") as hub:
            for number, length in enumerate((2.0, 0.0, 4.0)):
                await hub.publish_event("Parcel", n=number, size={"length": length})
            await hub.flush()
        write(zone.folder, {"types/all.yaml": LARGER, "contexts/root.v1.yaml": FORMER})
        checked = check_folder(zone.folder)
        assert checked.deployment is not None, checked.problems
        applied = zone.registry.apply(checked.deployment, "test")
        await publish_deployment(zone.bus, applied.deployment)
        engine = zone.engine
        assert engine is not None
        await eventually(lambda: engine.version >= applied.version)
        async with zone.connect("hub") as hub, zone.connect("desk") as desk, zone.connect("shop") as shop:
            ours = await taken(desk, "Parcel", count=3, since=timedelta(hours=1))
            theirs = await taken(shop, "Parcel", count=3, since=timedelta(hours=1))
            await hub.publish_event("Parcel", n=3, size={"length": 127.0, "height": 9.0})
            sizes = {event.data["n"]: event.data["size"] for event in await within(ours)}
            assert sizes == {
                0: {"length": 200.0, "height": 0.5},
                2: {"length": 400.0, "height": 0.25},
                3: {"length": 127.0, "height": 9.0},
            }, "what cannot be put in the terms of now is left out"
            inches = {event.data["n"]: event.data["size"]["length"] for event in await within(theirs)}
            assert inches == {0: pytest.approx(2 / 0.0254), 2: pytest.approx(4 / 0.0254), 3: pytest.approx(50.0)}

    run(tmp_path, work, files=files)


@pytest.mark.parametrize("count", [4000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_a_context_changes_in_the_middle_of_a_stream(tmp_path: Path, server: NatsServer, count: int) -> None:
    """Nothing is lost, nothing comes twice, and each event is put in root's terms by the version it is stamped with."""
    files = {"types/all.yaml": PARCELS, "contexts/pounds.yaml": POUNDS}
    factors = {"pounds@1": 0.45359237, "pounds@2": 0.5}

    async def work(zone: EdgeZone) -> None:
        async with zone.connect("hall") as hall, zone.connect("scale", context="pounds") as scale:
            seen = await taken(hall, "Weighed", count=count, durable="all")

            async def change() -> None:
                write(zone.folder, {"contexts/pounds.yaml": ROUGHLY})
                deployment = check_folder(zone.folder).deployment
                assert deployment is not None
                applied = await asyncio.to_thread(zone.registry.apply, deployment, "test")
                assert applied.problems == ()
                await publish_deployment(zone.bus, applied.deployment)

            first = await scale.publish_event("Weighed", n=0, mass=2.0)
            await first.stored
            changing = asyncio.create_task(change())
            number = 1
            while not changing.done():
                await scale.publish_event("Weighed", n=number, mass=2.0)
                number += 1
                await asyncio.sleep(0.001)
                assert number < count - 100
            await changing
            assert zone.engine is not None
            engine, version = zone.engine, zone.registry.version()
            await eventually(lambda: engine.version >= version)
            for rest in range(number, count):
                await scale.publish_event("Weighed", n=rest, mass=2.0)
            await scale.flush()
            events = await within(seen, 300)
            assert [event.data["n"] for event in events] == list(range(count))
            found = {event.origin for event in events}
            assert found == {"pounds@1", "pounds@2"}
            for event in events:
                assert event.data["mass"] == pytest.approx(2.0 * factors[event.origin])
            switched = [event.origin for event in events].index("pounds@2")
            assert {event.origin for event in events[switched:]} == {"pounds@2"}

    run(tmp_path, work, server, files)
