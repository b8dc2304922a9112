"""Events between clients of different contexts, through an engine: each speaks and hears in its own terms."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from situ.client.client import Client
from situ.client.events import Event
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.routing.model import Subscription
from situ.spark.engine import SparkEngine
from situ.spark.replay import replay
from tests.edge_zone import EdgeZone, edge_zone
from tests.integration.spark.test_engine import drained, wait_for
from tests.zone import deployment_of, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = """
version: 1
types:
  Place: {x: double m, y: double m}
events:
  Seen: {who: string, place: Place, note: optional string}
  Ping: {n: int}
"""
DOOR = """
version: 1
context: door
extends: root
types:
  Polar: {r: double ft, theta: double deg}
events:
  Badge: {badge: string, polar: Polar}
maps:
  - in: Badge -> Seen
    attributes: {who: badge, place: polar}
rules:
  in: [Polar -> from_polar]
functions:
  from_polar: Polar -> Place =
    struct(0.3048 * value.r * cos(radians(value.theta)) AS x, 0.3048 * value.r * sin(radians(value.theta)) AS y)
"""
US = """
version: 1
context: us
extends: root
types:
  Spot: {x: double yd, y: double yd}
events:
  Sighting: {person: string, spot: Spot, third: double 1/m}
maps:
  - out: Seen -> Sighting
    attributes: {person: who, spot: place, third: {expr: "1 / (place.x - 3.048 m)"}}
"""
PYTHON = """
import pyarrow as pa
import pyarrow.compute as pc
from situ import conv_function, context, transform_with


def made(x, y):
    return pa.StructArray.from_arrays([x, y], ["x", "y"])


@context("door")
@conv_function(type="Polar", result="Place")
def from_polar(polar):
    r, theta = pc.multiply(pc.struct_field(polar, "r"), 0.3048), pc.struct_field(polar, "theta")
    if pc.any(pc.greater(r, 300.0)).as_py():
        raise ValueError("farther than a house is wide")
    angle = pc.multiply(theta, 0.017453292519943295)
    return made(pc.multiply(r, pc.cos(angle)), pc.multiply(r, pc.sin(angle)))


@context("us")
@transform_with(direction="out")
@conv_function(type="Place", result="Spot")
def to_spot(place):
    return made(*(pc.divide(pc.struct_field(place, name), 0.9144) for name in "xy"))
"""
IN_PYTHON = {
    "types/all.yaml": TYPES,
    "contexts/door.yaml": DOOR.partition("functions:")[0],
    "contexts/us.yaml": US,
    "functions/places.py": PYTHON,
}
"""The same, but what converts places is written in Python."""
CLIENTS = """
  door-1: {context: door}
  desk: {context: us}
  hall: {}
"""
FILES = {"types/all.yaml": TYPES, "contexts/door.yaml": DOOR, "contexts/us.yaml": US}


async def take(node: Client, count: int, *types: str, **options: Any) -> list[Event]:
    async with asyncio.timeout(120):
        return [event async for event in node.events(*types, limit=count, **options)]


def run(tmp_path: Path, work: Any, files: dict[str, str] = FILES) -> None:
    async def go() -> None:
        async with edge_zone(tmp_path, clients=CLIENTS, more=files) as zone:
            await work(zone)

    asyncio.run(go())


@pytest.mark.parametrize("files", [FILES, IN_PYTHON], ids=["expressions", "python"])
def test_each_speaks_and_hears_in_its_own_terms(tmp_path: Path, files: dict[str, str]) -> None:
    async def work(zone: EdgeZone) -> None:
        async with zone.connect("door-1") as door, zone.connect("desk") as desk, zone.connect("hall") as hall:
            ours = await hall.register_for_events("Seen", where="place.x > 5 m", durable="ours")
            theirs = await desk.register_for_events("Sighting", where="spot.x > 10 yd AND person <> 'p9'", durable="us")
            for number, feet in enumerate((20.0, 40.0, 30.0)):
                await door.publish_event("Badge", badge=f"p{number}", polar={"r": feet, "theta": 0.0})
            await door.publish_event("Badge", badge="p9", polar={"r": 99.0, "theta": 0.0})
            await door.flush()
            seen = await _listened(hall, ours, 4)
            assert [event.data["who"] for event in seen] == ["p0", "p1", "p2", "p9"]
            assert {event.type for event in seen} == {"Seen"}
            assert seen[0].data["place"] == {"x": pytest.approx(6.096), "y": 0.0}
            sightings = await _listened(desk, theirs, 1)
            assert [event.type for event in sightings] == ["Sighting"]
            assert sightings[0].data["person"] == "p1"
            assert sightings[0].data["spot"]["x"] == pytest.approx(40 / 3)

    run(tmp_path, work, files)


def test_what_python_cannot_convert_is_a_dead_letter_and_the_rest_of_the_message_goes_on(tmp_path: Path) -> None:
    async def work(zone: EdgeZone) -> None:
        async with zone.connect("door-1") as door, zone.connect("desk") as desk:
            theirs = await desk.register_for_events("Sighting", where="spot.x > 10 yd", durable="us")
            receipts = [
                await door.publish_event("Badge", badge=f"p{number}", polar={"r": feet, "theta": 0.0})
                for number, feet in enumerate((40.0, 9999.0, 50.0, 20.0))
            ]
            with pytest.raises(SituError) as refused:
                await receipts[1].stored
            assert refused.value.code == "INT704"
            assert "farther than a house is wide" in str(refused.value)
            assert [event.data["person"] for event in await _listened(desk, theirs, 2)] == ["p0", "p2"]

    run(tmp_path, work, IN_PYTHON)


async def _listened(node: Client, registration: Any, count: int) -> list[Event]:
    found: list[Event] = []
    enough = asyncio.Event()

    def take_one(event: Event) -> None:
        found.append(event)
        if len(found) >= count:
            enough.set()

    await node.add_listener(registration, take_one)
    async with asyncio.timeout(120):
        await enough.wait()
    return found


def test_what_cannot_be_put_in_somebodys_terms_is_a_dead_letter_and_reaches_all_others(tmp_path: Path) -> None:
    async def work(zone: EdgeZone) -> None:
        async with zone.connect("door-1") as door, zone.connect("desk") as desk, zone.connect("hall") as hall:
            ours = await hall.register_for_events("Seen", durable="ours")
            theirs = await desk.register_for_events("Sighting", durable="us")
            for number, feet in enumerate((20.0, 10.0, 30.0)):
                await door.publish_event("Badge", badge=f"p{number}", polar={"r": feet, "theta": 0.0})
            await door.flush()
            assert [event.data["who"] for event in await _listened(hall, ours, 3)] == ["p0", "p1", "p2"]
            assert [event.data["person"] for event in await _listened(desk, theirs, 2)] == ["p0", "p2"]
            letters = await zone.messages(zone.names.dead_stream)
            assert len(letters) == 1
            assert b"INT704" in letters[0].body
            assert b'"path":"third"' in letters[0].body

    run(tmp_path, work)


def test_what_a_context_does_not_have_is_refused_where_it_is_asked_for(tmp_path: Path) -> None:
    async def work(zone: EdgeZone) -> None:
        async with zone.connect("desk") as desk, zone.connect("door-1") as door:
            for node, type, where, code in (
                (desk, "Badge", "", "INT601"),
                (desk, "Sighting", "who = 'p1'", "INT602"),
                (door, "Badge", "", "INT601"),
            ):
                with pytest.raises(SituError) as refused:
                    await node.register_for_events(type, where=where)
                assert refused.value.code == code
            # The zone goes on.
            theirs = await desk.register_for_events("Sighting", durable="us")
            await door.publish_event("Badge", badge="p1", polar={"r": 20.0, "theta": 0.0})
            assert [event.data["person"] for event in await _listened(desk, theirs, 1)] == ["p1"]

    run(tmp_path, work)


def test_what_has_no_way_into_root_is_a_dead_letter(tmp_path: Path) -> None:
    async def work(zone: EdgeZone) -> None:
        async with zone.connect("desk") as desk:
            receipt = await desk.publish_event("Sighting", person="p", spot={"x": 1.0, "y": 1.0}, third=1.0)
            with pytest.raises(SituError) as refused:
                await receipt.stored
            assert refused.value.code == "INT701"

    run(tmp_path, work)


def test_history_is_told_in_the_terms_of_who_asks(tmp_path: Path) -> None:
    async def work(zone: EdgeZone) -> None:
        async with zone.connect("door-1") as door:
            for number, feet in enumerate((20.0, 40.0)):
                await door.publish_event("Badge", badge=f"p{number}", polar={"r": feet, "theta": 90.0})
            await door.flush()
        async with zone.connect("desk") as desk:
            found = await take(desk, 1, "Sighting", where="spot.y > 10 yd", since="begin")
            assert found[0].data["person"] == "p1"
            assert found[0].data["spot"]["y"] == pytest.approx(40 / 3)

    run(tmp_path, work)


@pytest.mark.parametrize("files", [FILES, IN_PYTHON])
def test_spark_interprets_as_the_edge_does(spark: SparkSession, tmp_path: Path, files: dict[str, str]) -> None:
    clients = "{advertisements: {badges: {type: Badge}}, context: door}"
    more = {
        **{name: text for name, text in files.items() if not name.startswith("types/")},
        "clients/all.yaml": f"version: 1\nclients:\n  door-1: {clients}\n  desk: {{context: us}}\n",
    }
    wanted = [
        Subscription(client="desk", name="us", types=("Sighting",), where="spot.x > 10 yd", durable=True, context="us"),
        Subscription(client="hall", name="ours", types=("Seen",), durable=True),
    ]
    with zone(tmp_path, wanted, types=TYPES, more=more) as at:
        at.send("door-1", [_badge(number, feet) for number, feet in enumerate((20.0, 40.0, 10.0, 33.0))])
        at.send("door-1", [{**_badge(9, 1.0), "type": "Unknown"}])
        engine = SparkEngine(spark, at.address, at.deployment.settings, tmp_path / "checkpoints")
        engine.start()
        try:
            wait_for(drained(engine, at))
        finally:
            engine.stop()
        assert [(row.type, row.context) for row in at.root()] == [("Seen", "door@1")] * 4
        found = {rows[0].type: rows for rows in at.delivered().values()}
        assert [json.loads(row.data)["who"] for row in found["Seen"]] == ["p0", "p1", "p2", "p3"]
        spots = [json.loads(row.data) for row in found["Sighting"]]
        assert [each["person"] for each in spots] == ["p1", "p3"]
        assert [each["spot"]["x"] for each in spots] == [pytest.approx(40 / 3), pytest.approx(11.0)]
        assert [letter["code"] for letter in at.dead()] == ["INT701"]


WEIGHED = "version: 1\nevents: {Weighed: {n: long, mass: double kg}}\n"
POUNDS = """
version: 1
context: pounds
events: {Weighed: {n: long, mass: double lb}}
maps: [both: Weighed <-> Weighed]
"""
ROUGHLY = POUNDS + "functions: {roughly: double lb -> double kg = value * 0.5}\n"


def test_spark_uses_the_version_that_events_are_stamped_with(spark: SparkSession, tmp_path: Path) -> None:
    """Also if another is in force by then, whoever is behind: the engine, or the router that stamps."""
    clients = "version: 1\nclients: {scale: {context: pounds, advertisements: {all: {type: Weighed}}}}\n"
    more = {"contexts/pounds.yaml": POUNDS, "clients/all.yaml": clients}
    wanted = [Subscription(client="hall", name="all", types=("Weighed",), durable=True)]
    with zone(tmp_path, wanted, types=WEIGHED, more=more) as at:
        first = at.deployment
        changed = deployment_of(tmp_path / "changed", (), types=WEIGHED, more={**more, "contexts/pounds.yaml": ROUGHLY})
        second = replace(first, contexts=changed.contexts.at_versions({"pounds": 2}))
        expected: dict[int, float] = {}

        def send(factor: float, messages: int = 8) -> None:
            for _ in range(messages):
                numbers = range(len(expected), len(expected) + 25)
                at.send("scale", [_weighed(number) for number in numbers])
                expected.update(dict.fromkeys(numbers, factor))

        send(0.45359237)
        engine = SparkEngine(spark, at.address, first.settings, tmp_path / "checkpoints")
        engine.start()
        try:
            wait_for(lambda: engine.seq > 0)
            send(0.45359237)
            at.publish(second)
            in_force, at.deployment = at.deployment, first.at_version(1)
            send(0.45359237)  # by a router that does not know yet
            at.deployment = in_force
            wait_for(drained(engine, at))
            send(0.5)
            at.deployment = first.at_version(77, {"pounds": 9})
            at.send("scale", [_weighed(9999)])
            at.deployment = in_force
            wait_for(drained(engine, at))
        finally:
            engine.stop()
        found = [json.loads(row.data) for row in at.root()]
        assert [each["n"] for each in found] == list(expected)
        assert {each["n"]: each["mass"] for each in found} == {
            number: pytest.approx(2.0 * factor) for number, factor in expected.items()
        }
        assert [len(rows) for rows in at.delivered().values()] == [len(expected)]
        (letter,) = at.dead()
        assert (letter["code"], letter["context"]) == ("INT702", "pounds@9")
        # The type is replaced: what the log has is read in the terms of now.
        grams = WEIGHED.replace("double kg", "double g, kind: optional string")
        former = "version: 1\ncontext: root.v1\nevents: {Weighed: {n: long, mass: double kg}}\n"
        files = {**more, "contexts/root.v1.yaml": former}
        at.publish(deployment_of(tmp_path / "grams", wanted, types=grams, more=files))
        told = [json.loads(row.event) for row in replay(spark, at.address, at.deployment.version).collect()]
        assert {each["data"]["n"]: each["data"]["mass"] for each in told} == {
            number: pytest.approx(2000.0 * factor) for number, factor in expected.items()
        }


def _weighed(number: int) -> dict[str, Any]:
    data = {"n": number, "mass": 2.0}
    return {"specversion": "1.0", "id": str(number), "source": "x", "type": "Weighed", "data": data}


def _badge(number: int, feet: float) -> dict[str, Any]:
    data = {"badge": f"p{number}", "polar": {"r": feet, "theta": 0.0}}
    return {"specversion": "1.0", "id": str(number), "source": "x", "type": "Badge", "data": data}
