"""Conversions that remember other events, through an engine: over restarts and crashes, and while events wait."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from situ.client.client import Client
from situ.event.message import Message, position, split_lines
from situ.event.row import Origin
from situ.lang.problems import SituError
from situ.routing.model import Subscription
from situ.spark.dispatch import DispatchTask
from situ.spark.engine import STEPS, SparkEngine
from situ.spark.state_store import PendingDeliveryStore
from situ.stages.plan import compile_plan
from situ.storage.state_folder import open_folder
from tests.edge_zone import EdgeZone, edge_zone, eventually
from tests.integration.spark.test_engine import drained, wait_for
from tests.nats_server import NatsServer
from tests.zone import Zone, cut_off, deployment_of, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = """
version: 1
types:
  Position: {x: double m, y: double m}
events:
  Status: {product: string, pos: Position}
  TruckPosition: {truck: string, lat: double deg, lon: double deg}
"""
US = """
version: 1
context: us
extends: root
types:
  LatLon: {lat: double deg, lon: double deg}
events:
  Where: {product: string, pos: LatLon}
maps:
  - out: Status -> Where
rules:
  out: [Position -> to_latlon]
functions:
  to_latlon:
    signature: Position -> LatLon
    key: event.source
    state: {ref: {event: TruckPosition, key: truck, keep: {lat: lat, lon: lon}, history: 1 h, ttl: 24 h, max_keys: 9}}
    missing: MISSING
    expr: struct(ref.lat + value.y / 100000 AS lat, ref.lon + value.x / 100000 AS lon)
"""
CLIENTS = "  t7: {}\n  t8: {}\n  desk: {context: us}\n"

Work = Callable[[EdgeZone], Awaitable[None]]


def run(folder: Path, work: Work, *, missing: str = "error", server: NatsServer | None = None) -> None:
    async def go() -> None:
        files = {"types/all.yaml": TYPES, "contexts/us.yaml": US.replace("MISSING", missing)}
        async with edge_zone(folder, server, clients=CLIENTS, more=files) as zone:
            await work(zone)

    asyncio.run(go())


async def truck(node: Client, minute: int, lat: float, name: str = "t7") -> None:
    time = f"2026-11-01T08:{minute:02}:00Z"
    receipt = await node.publish_event("TruckPosition", truck=name, lat=lat, lon=9.0, time=time, source=name)
    await receipt.stored


async def status(node: Client, minute: int, product: str, name: str = "t7") -> None:
    time = f"2026-11-01T08:{minute:02}:30Z"
    receipt = await node.publish_event("Status", product=product, pos={"x": 0.0, "y": 0.0}, time=time, source=name)
    await receipt.stored


class Heard:
    """What a desk in the context was told, in its order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, float]] = []

    async def listen(self, desk: Client) -> None:
        registration = await desk.register_for_events("Where", durable="all")
        await desk.add_listener(
            registration, lambda event: self.events.append((event.data["product"], event.data["pos"]["lat"]))
        )

    async def get(self, *expected: tuple[str, float]) -> None:
        await eventually(lambda: len(self.events) >= len(expected))
        assert self.events == list(expected)


def test_the_truck_moves_between_two_status_events_in_and_out_of_order(tmp_path: Path) -> None:
    async def work(zone: EdgeZone) -> None:
        heard = Heard()
        async with zone.connect("t7") as t7, zone.connect("desk") as desk:
            await heard.listen(desk)
            await truck(t7, 0, 50.0)
            await status(t7, 1, "a")
            await truck(t7, 10, 52.0)
            await status(t7, 11, "b")
            await truck(t7, 5, 51.0)
            await status(t7, 6, "late")
            await heard.get(("a", 50.0), ("b", 52.0), ("late", 51.0))

    run(tmp_path, work)


@pytest.mark.parametrize("orderly", [True, False], ids=["stopped", "crashed"])
def test_what_is_remembered_outlives_the_engine(tmp_path: Path, server: NatsServer, orderly: bool) -> None:
    async def work(zone: EdgeZone) -> None:
        heard = Heard()
        async with zone.connect("t7") as t7, zone.connect("desk") as desk:
            await heard.listen(desk)
            await truck(t7, 0, 50.0)
            await status(t7, 1, "a")
            await heard.get(("a", 50.0))
            await (zone.stop() if orderly else zone.crash())
            await zone.start()
            await status(t7, 2, "b")
            await heard.get(("a", 50.0), ("b", 50.0))

    run(tmp_path, work, server=server)


@pytest.mark.parametrize("orderly", [True, False], ids=["stopped", "crashed"])
def test_what_waits_goes_on_waiting_after_a_restart_and_comes_once(
    tmp_path: Path, server: NatsServer, orderly: bool
) -> None:
    async def work(zone: EdgeZone) -> None:
        heard = Heard()
        async with zone.connect("t7") as t7, zone.connect("t8") as t8, zone.connect("desk") as desk:
            await heard.listen(desk)
            await truck(t8, 0, 60.0, "t8")
            await status(t7, 1, "waits")
            await status(t7, 2, "behind")
            await status(t8, 2, "other", "t8")
            await heard.get(("other", 60.0))
            await (zone.stop() if orderly else zone.crash())
            await zone.start()
            await status(t8, 3, "more", "t8")
            await heard.get(("other", 60.0), ("more", 60.0))
            await truck(t7, 0, 50.0)
            await status(t7, 4, "last")
            await heard.get(("other", 60.0), ("more", 60.0), ("waits", 50.0), ("behind", 50.0), ("last", 50.0))
        assert not await zone.messages(zone.names.dead_stream)

    run(tmp_path, work, missing="hold 10 min", server=server)


def test_what_waited_long_enough_is_a_dead_letter(tmp_path: Path) -> None:
    async def work(zone: EdgeZone) -> None:
        heard = Heard()
        async with zone.connect("t7") as t7, zone.connect("t8") as t8, zone.connect("desk") as desk:
            await heard.listen(desk)
            await status(t7, 1, "waits")
            await truck(t8, 20, 60.0, "t8")
            await truck(t7, 3, 50.0)
            await status(t7, 4, "b")
            await heard.get(("b", 50.0))
            [letter] = await zone.messages(zone.names.dead_stream)
            assert b"INT706" in letter.body

    run(tmp_path, work, missing="hold 10 min")


# ── on Spark ──────────────────────────────────────────────────────────────────────────────────────

ADVERTISED = "{advertisements: {all: {type: Status}, at: {type: TruckPosition}}}"
SPARK_CLIENTS = f"version: 1\nclients:\n  t7: {ADVERTISED}\n  t8: {ADVERTISED}\n  desk: {{context: us}}\n"
DESK = [Subscription(client="desk", name="all", types=("Where",), durable=True, context="us")]


def sent(type: str, source: str, minute: float, data: dict[str, Any]) -> dict[str, Any]:
    time = f"2026-11-01T08:{int(minute):02}:{int(minute % 1 * 60):02}Z"
    id = f"{source} {minute} {data.get('product', '')}"
    return {"specversion": "1.0", "id": id, "source": source, "type": type, "time": time, "data": data}


def at_place(minute: float, lat: float, source: str = "t7", *, truck: str = "") -> dict[str, Any]:
    """What a client says under another source than itself comes with its name before it."""
    return sent("TruckPosition", source, minute, {"truck": truck or source, "lat": lat, "lon": 9.0})


def of_product(minute: float, product: str, source: str = "t7") -> dict[str, Any]:
    return sent("Status", source, minute, {"product": product, "pos": {"x": 0.0, "y": 0.0}})


def told(at: Zone) -> list[tuple[str, float]]:
    [group] = at.delivered().values()
    found = [json.loads(row.data) for row in group]
    return [(each["product"], each["pos"]["lat"]) for each in found]


class Tasks:
    """Batches of one task each, as workers do them, one after the other."""

    def __init__(self, folder: Path) -> None:
        more = {"contexts/us.yaml": US.replace("MISSING", "hold 5 min"), "clients/all.yaml": SPARK_CLIENTS}
        self.plan = compile_plan(deployment_of(folder / "project", DESK, types=TYPES, more=more))
        self.checkpoint = folder / "checkpoint"
        self.next: dict[str, int] = {}

    def batch(self, begin: int, *messages: tuple[str, list[dict[str, Any]]]) -> list[Message]:
        """What the batch of these messages, which begins behind a position, publishes."""
        plan, rows = self.plan, []
        for number, (client, events) in enumerate(messages, begin + 1):
            seq = self.next.get(client, 1)
            origin = Origin(client=client, incarnation=1, seq=seq, received=2 * 10**15, pos=position(number))
            rows.append(plan.interpretation.decode(json.dumps(events).encode(), origin))
        task = DispatchTask(plan, 0, PendingDeliveryStore(open_folder(self.checkpoint), begin, begin + len(messages)))
        made = list(task.messages(rows))
        task.finish()
        return made

    def done(self, *messages: tuple[str, list[dict[str, Any]]]) -> None:
        for client, events in messages:
            self.next[client] = self.next.get(client, 1) + len(events)


def test_a_batch_that_is_repeated_by_another_worker_publishes_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = Tasks(tmp_path)
    first = (
        ("t7", [at_place(0, 50.0), of_product(0.5, "a"), at_place(2, 51.0)]),
        ("t8", [of_product(3, "waits", "w"), of_product(3, "behind", "w")]),
    )
    second = (("t7", [of_product(1, "late")]), ("t8", [at_place(3, 70.0, "w", truck="t8/w")]))
    third = (("t7", [of_product(2.5, "b")]), ("t8", [of_product(4, "c", "w")]))
    begin, published = 0, []
    for messages in (first, second, third):
        made = tasks.batch(begin, *messages)
        # The worker that has it in hand, one that was in the midst of a batch, one that begins with nothing.
        assert tasks.batch(begin, *messages) == made
        monkeypatch.setattr("situ.spark.state_store._held_deliveries", {})
        assert tasks.batch(begin, *messages) == made
        tasks.done(*messages)
        begin += len(messages)
        published += made
    lines = [json.loads(line) for each in published for line in split_lines(each.body) if b'"Where"' in line]
    told = [(each["data"]["product"], each["data"]["pos"]["lat"]) for each in lines]
    assert told == [("a", 50.0), ("late", 50.0), ("waits", 70.0), ("behind", 70.0), ("b", 51.0), ("c", 70.0)]


def test_what_waits_is_let_go_when_nothing_is_remembered_any_more(tmp_path: Path) -> None:
    tasks = Tasks(tmp_path)
    message = ("t8", [of_product(3, "waits", "w")])
    assert not any(b'"Where"' in each.body for each in tasks.batch(0, message))
    tasks.done(message)
    plain = US.partition("    key:")[0] + "    expr: struct(1.0 AS lat, 2.0 AS lon)\n"
    more = {"contexts/us.yaml": plain, "clients/all.yaml": SPARK_CLIENTS}
    tasks.plan = compile_plan(deployment_of(tmp_path / "project", DESK, types=TYPES, more=more), tasks.plan)
    message = ("t7", [at_place(3, 50.0)])
    [told] = [each for each in tasks.batch(1, message) if b'"Where"' in each.body]
    assert b'"product":"waits","pos":{"lat":1.0,"lon":2.0}' in told.body
    assert not PendingDeliveryStore(open_folder(tasks.checkpoint), 2, 3).is_left_behind


def test_a_batch_without_references_leaves_what_there_was(tmp_path: Path) -> None:
    tasks = Tasks(tmp_path)
    for place, messages in enumerate(
        ((("t7", [at_place(0, 50.0)]),), *((("t7", [of_product(1, "a")]),) for _ in "1234"))
    ):
        tasks.batch(place, *messages)
        tasks.done(*messages)
    files = sorted((tasks.checkpoint / "memory").iterdir())
    assert [each.name for each in files] == ["3.json", "4.json", "5.json"]
    assert len({each.stat().st_ino for each in files}) == 1


def test_memory_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    tasks = Tasks(tmp_path)
    folder = tasks.checkpoint / "memory"
    folder.mkdir(parents=True)
    (folder / "7.json").write_text('{"version": 1}')
    with pytest.raises(SituError) as refused:
        tasks.batch(7, ("t7", [at_place(0, 50.0)]))
    assert refused.value.code == "N101"


@pytest.mark.parametrize("steps", [("carry", ""), ("count",)])
def test_spark_remembers_within_a_batch_and_from_batch_to_batch_over_crashes(
    spark: SparkSession, tmp_path: Path, steps: tuple[str, ...]
) -> None:
    assert set(steps) <= {*STEPS, ""}
    more = {"contexts/us.yaml": US.replace("MISSING", "hold 5 min"), "clients/all.yaml": SPARK_CLIENTS}
    with zone(tmp_path, DESK, types=TYPES, more=more) as at:
        t7: list[tuple[str, float]] = []
        t8: list[tuple[str, float]] = []
        for number, step in enumerate(steps):
            minute, new = number * 8.0, f"w{number}"
            # Out of order, from two clients, in one batch; what waits is let go by the next one.
            at.send("t7", [at_place(minute, 50.0 + number), of_product(minute + 0.5, f"a{number}")])
            at.send("t7", [at_place(minute + 2, 60.0 + number), of_product(minute + 1, f"late{number}")])
            at.send("t7", [of_product(minute + 2.5, f"b{number}")])
            at.send("t8", [of_product(minute + 3, each + new, new) for each in ("waits ", "behind ")])
            t7 += [(f"a{number}", 50.0 + number), (f"late{number}", 50.0 + number), (f"b{number}", 60.0 + number)]
            stop_at(step, spark, at, tmp_path / "checkpoints")
            at.send("t8", [at_place(minute + 3, 70.0 + number, new, truck=f"t8/{new}")])
            t8 += [(f"waits {new}", 70.0 + number), (f"behind {new}", 70.0 + number)]
        stop_at("", spark, at, tmp_path / "checkpoints")
        assert [each for each in told(at) if " " not in each[0]] == t7
        assert [each for each in told(at) if " " in each[0]] == t8
        assert at.dead() == []


def stop_at(step: str, spark: SparkSession, at: Zone, checkpoints: Path) -> None:
    """Work on what there is, and break off before this step of a batch; without one, come to the end."""

    def cut(here: str) -> None:
        if here == step:
            raise cut_off(step)

    engine = SparkEngine(spark, at.address, at.deployment.settings, checkpoints, partitions=2, on_step=cut)
    engine.start()
    try:
        if step:
            with suppress(SituError):
                assert engine.wait(60)
        else:
            wait_for(drained(engine, at))
    finally:
        engine.stop()
