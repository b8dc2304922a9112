"""Negotiation on NATS with publishers in processes of their own: advised, measured, killed, replaced.

A minute of event time takes half a second, so that windows of a minute fit into a test.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from situ.client.connection import connect
from situ.quality.negotiation.feedback import StateChange
from situ.router.quality_calls import QualityAnswers
from tests.admitted import admitting_server, plain
from tests.edge_zone import EdgeZone, edge_zone, eventually, run
from tests.nats_server import nats_server

CLIENTS = """
  pump: {advertisements: {levels: {type: Level}}}
  spare: {advertisements: {levels: {type: Level}}}
  desk: {subscriptions: {levels: {types: [Level], durable: true}}}
"""
NEED = {"rate": {"lb": 5, "ub": 10}}
MUCH = {"rate": {"lb": 30, "ub": 45}}
"""So much that a window of a minute is enough to tell: with fewer than twenty events it grows."""
SITU = "overlay: {child_grace: 2 s}\n"
ROOT = Path(__file__).parents[3]


@asynccontextmanager
async def zone_on_nats(folder: Path) -> AsyncIterator[EdgeZone]:
    with nats_server(folder / "nats") as server:
        async with edge_zone(folder, server, clients=CLIENTS, situ=SITU) as zone:
            yield zone


@asynccontextmanager
async def publishing(zone: EdgeZone, client: str, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A publisher that has told what it can do; killed in the end, if nobody did that before."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.quality_publisher",
        str(zone.folder),
        zone.url,
        client,
        "--begun",
        str(zone.begun),
        *options,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert await said(process) == "ready"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def said(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def until(changes: AsyncIterator[StateChange], state: str) -> StateChange:
    async for each in changes:
        if each.state == state:
            return each
    raise AssertionError("it went on for ever")


def measured(zone: EdgeZone, profile: str) -> float | None:
    """The rate that was measured last."""
    assert zone.router is not None
    table = QualityAnswers(zone.router.quality._state).table()
    (found,) = (each["values"]["rate"]["measured"] for each in table["profiles"] if each["id"] == profile)
    return found  # type: ignore[no-any-return]


def test_advised_measured_killed_replaced(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            zone_on_nats(tmp_path) as zone,
            zone.connect("desk") as desk,
            publishing(zone, "spare", "--rate", "1", "--most", "40", "--tells") as spare,
        ):
            async with publishing(zone, "pump") as pump:
                changes = desk.expectations.changes()
                await desk.expectations.register("levels", MUCH, id="M1")
                assert (await anext(changes)).why == "adapting"
                assert await said(pump) == "raise 30"
                # It only does it: that it does is measured.
                await until(changes, "satisfied")
                await eventually(lambda: 27 <= (measured(zone, "pump/Level") or 0) <= 33)
                pump.kill()
            heard = await until(changes, "unsatisfied")
            assert heard.why in ("violated", "adapting", "out-of-reach")
            assert heard.reasons
            assert await said(spare) == "raise 30"
            await until(changes, "satisfied")

    run(main(), within=300)


def test_the_last_publisher_killed_leaves_the_poorer_alternative_and_then_none(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            zone_on_nats(tmp_path) as zone,
            zone.connect("desk") as desk,
            publishing(zone, "spare", "--rate", "2", "--most", "2") as spare,
        ):
            async with publishing(zone, "pump", "--rate", "6", "--most", "6") as pump:
                changes = desk.expectations.changes()
                await desk.expectations.register("levels", NEED, id="best", utility=10)
                await desk.expectations.register("levels", {"rate": {"lb": 1}}, id="poor", utility=1)
                pump.kill()
                heard = await until(changes, "unsatisfied")
                # That it is silent may show before it is known to be gone.
                assert heard.why in ("violated", "out-of-reach")
                assert (heard.expectation, heard.in_force) == ("best", "poor")
            spare.kill()
            while heard.expectation != "poor":
                heard = await until(changes, "unsatisfied")
            assert (heard.why, heard.in_force) == ("no-publisher", None)

    run(main(), within=300)


def test_a_publisher_that_does_less_than_it_says_is_found_out(tmp_path: Path) -> None:
    """It says thirty a minute, and two windows tell otherwise."""

    async def main() -> None:
        async with (
            zone_on_nats(tmp_path) as zone,
            zone.connect("desk") as desk,
            publishing(zone, "pump", "--rate", "3") as pump,
        ):
            changes = desk.expectations.changes()
            await desk.expectations.register("levels", {"rate": {"lb": 2}}, id="M1")
            await until(changes, "satisfied")
            async with zone.connect("liar") as liar:
                await liar.advertise("Level")
                profile = {"rate": {"lb": 1, "ub": 30, "cv": 30}}
                await liar.capabilities.register("Level", profile)
                await desk.expectations.register("levels", {"rate": {"lb": 20}}, id="more", utility=5)
                await until(changes, "satisfied")
                at = datetime.now(UTC) - timedelta(hours=11)
                for _ in range(60):
                    await liar.publish_event("Level", tank="x", level=1, time=at)
                    at += timedelta(seconds=20)
                await liar.flush()
                heard = await until(changes, "unsatisfied")
                assert (heard.expectation, heard.why) == ("more", "violated")
            assert pump.returncode is None

    run(main(), within=300)


def test_feedback_is_for_the_addressee_alone(tmp_path: Path) -> None:
    async def main() -> None:
        with admitting_server(tmp_path / "nats", "alice", "bob") as server:
            async with (
                edge_zone(tmp_path, server) as zone,
                plain(server, "bob", server.seeds["bob"]) as bob,
                connect(zone.folder, client="alice", servers=[server.url], credentials=server.file("alice")) as alice,
            ):
                heard = {}
                for subject in ("situ.main.feedback.>", "situ.main.feedback.sub.*", "situ.main.feedback.sub.alice"):
                    heard[subject] = await bob.hear(subject)
                    assert await bob.forbidden(f'subscription to "{subject}"')
                own = await bob.hear("situ.main.feedback.sub.bob")
                registration = await alice.register_for_events("Level")
                changes = alice.expectations.changes()
                await alice.expectations.register(registration, NEED, id="M1")
                assert (await anext(changes)).why == "no-publisher"
                await alice.capabilities.register("Level", {"rate": {"lb": 1, "ub": 60, "cv": 6}})
                await until(changes, "satisfied")
                await bob.client.flush()
                assert own.empty()
                assert all(each.empty() for each in heard.values())
                # Nor can it be written, or asked for in another's place.
                forged = json.dumps({"message": "situ.quality.state"}).encode()
                await bob.publish("situ.main.feedback.sub.alice", forged)
                assert await bob.forbidden('publish to "situ.main.feedback.sub.alice"')
                await bob.publish("situ.main.quality", b"{}", reply="_INBOX_bob.x")
                assert await bob.forbidden('publish to "situ.main.quality"')
                stored = [each.subject async for each in zone.bus.read(zone.names.feed_stream, 1)]
                assert {each.rpartition(".")[2] for each in stored} == {"alice"}

    run(main(), within=300)
