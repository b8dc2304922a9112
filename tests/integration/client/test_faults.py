"""Things that break under load: processes killed, routers and servers restarted. Nothing is lost, nothing twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from nats.aio.client import Client

import situ
from situ.client.client import Client as SituClient
from situ.client.events import Event
from situ.event.message import StoredMessage, split_lines
from situ.lang.problems import SituError
from tests.edge_zone import EdgeZone, edge_zone, eventually, nothing_more, run, take
from tests.nats_server import NatsServer


class Recorder:
    """A durable listener that records each key together with what it did."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.repeats = 0
        self.unmarked = 0

    def __call__(self, event: Event) -> None:
        if event.key in self.keys:
            self.repeats += 1
            self.unmarked += not event.redelivered
            return
        self.keys.append(event.key)


async def publish(node: SituClient, count: int, pause: float = 0.0) -> None:
    for number in range(count):
        await node.publish_event("Level", tank="a", level=number)
        if pause and number % 10 == 0:
            await asyncio.sleep(pause)


def in_order(keys: list[str], count: int) -> bool:
    return [int(key.rsplit(".", 1)[1]) for key in keys] == list(range(1, count + 1))


async def logged(zone: EdgeZone) -> list[str]:
    """The keys in the root log."""
    messages = await zone.messages(zone.names.root_stream)
    return [json.loads(line)["situkey"] for each in messages for line in split_lines(each.body)]


@pytest.mark.parametrize("orderly", [True, False], ids=["stopped", "crashed"])
def test_a_router_restarted_under_load_loses_nothing(tmp_path: Path, server: NatsServer, orderly: bool) -> None:
    async def main() -> None:
        count = 3000
        async with edge_zone(tmp_path, server) as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            recorder = Recorder()
            await desk.add_listener("Level", recorder, durable="all")
            publishing = asyncio.ensure_future(publish(pump, count, 0.004))
            for stored in (500, 1500):
                await eventually(lambda stored=stored: pump._sender.stored > stored)
                await (zone.stop() if orderly else zone.crash())
                await asyncio.sleep(0.1)
                await zone.start()
            await publishing
            assert await pump.flush(30)
            await eventually(lambda: len(recorder.keys) == count)
            assert in_order(recorder.keys, count)
            assert recorder.repeats == 0
            assert in_order(await logged(zone), count)
            assert (await pump.status()).reconnects == 2

    run(main())


def test_a_server_killed_and_restarted_under_load_loses_nothing(tmp_path: Path, server: NatsServer) -> None:
    async def main() -> None:
        count = 3000
        async with edge_zone(tmp_path, server) as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            recorder = Recorder()
            await desk.add_listener("Level", recorder, durable="all")
            publishing = asyncio.ensure_future(publish(pump, count, 0.004))
            for stored in (500, 1500):
                await eventually(lambda stored=stored: pump._sender.stored > stored)
                server.kill()
                await asyncio.sleep(0.3)
                server.start()
            await publishing
            assert await pump.flush(60)
            await eventually(lambda: len(recorder.keys) == count, within=60)
            assert in_order(recorder.keys, count)
            assert recorder.unmarked == 0
            assert Counter(await logged(zone)).most_common(1)[0][1] == 1

    run(main())


def test_what_was_stored_and_not_routed_is_routed_after_a_crash(tmp_path: Path, server: NatsServer) -> None:
    async def main() -> None:
        async with edge_zone(tmp_path, server) as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            registration = await desk.register_for_events("Level", durable="all")
            live = await desk.register_for_events("Level")
            await publish(pump, 10)
            await pump.flush()
            await eventually(lambda: live.received == 10)
            assert zone.engine is not None
            # From here on events are stored, and the process dies before it can route them.
            zone.engine._tasks[0].cancel()
            await publish(pump, 20)
            assert await pump.flush(10)
            await zone.crash()
            await zone.start()
            events = aiter(registration)
            found = await take(events, 30)
            assert in_order([event.key for event in found], 30)
            await nothing_more(events)
            assert live.received == 10  # volatile subscriptions promise nothing over a crash
            await events.aclose()  # type: ignore[attr-defined]

    run(main())


def test_a_damaged_cursor_is_no_reason_not_to_start(tmp_path: Path, server: NatsServer) -> None:
    async def main() -> None:
        async with edge_zone(tmp_path, server) as zone, zone.connect("pump") as pump:
            await publish(pump, 10)
            await pump.flush()
            await zone.stop()
            (zone.folder / ".situ" / "edge" / "cursor.json").write_text('{"version": 1')
            await zone.start()
            await (await pump.publish_event("Level", tank="a", level=1)).stored

    run(main())


ENGINE = """
    import asyncio, sys
    from pathlib import Path
    from tests.edge_zone import edge_zone
    from tests.nats_server import NatsServer

    async def main():
        server = NatsServer(Path(sys.argv[1]) / "nats")
        server.port = int(sys.argv[2])
        async with edge_zone(Path(sys.argv[1]), server) as zone:
            print("ready", flush=True)
            await asyncio.to_thread(sys.stdin.read)

    asyncio.run(main())
    """


def test_a_killed_engine_loses_nothing_and_repeats_nothing(tmp_path: Path, server: NatsServer) -> None:
    """Bus and clients live; the process with router, registry and engine is killed under load, twice."""
    program = tmp_path / "engine.py"
    program.write_text(dedent(ENGINE))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(program), str(tmp_path), str(server.port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    async def main() -> None:
        count, url = 2500, f"nats://{server.token}@127.0.0.1:{server.port}"
        folder = tmp_path / "project"
        engine = await asyncio.to_thread(start)
        try:
            async with (
                situ.connect(folder, client="pump", servers=[url]) as pump,
                situ.connect(folder, client="desk", servers=[url]) as desk,
            ):
                durable, live = Recorder(), Recorder()
                await desk.add_listener("Level", durable, durable="all")
                await desk.add_listener("Level", live)
                publishing = asyncio.ensure_future(publish(pump, count, 0.004))
                for stored in (400, 1200):
                    await eventually(lambda stored=stored: pump._sender.stored > stored, within=40)
                    engine.kill()
                    engine.communicate()
                    engine = await asyncio.to_thread(start)
                await publishing
                assert await pump.flush(40)
                await eventually(lambda: len(durable.keys) == count, within=40)
                assert in_order(durable.keys, count)
                assert durable.unmarked == 0
                assert live.repeats == 0
                assert live.keys == sorted(live.keys, key=lambda key: int(key.rsplit(".", 1)[1]))
        finally:
            engine.kill()
            engine.communicate()

    run(main())


CONSUMER = """
    import asyncio, sys
    import situ

    async def main():
        async with situ.connect(sys.argv[1], client="desk", servers=[sys.argv[2]]) as node:
            with open(sys.argv[3], "a") as file:
                async for event in node.events("Level", durable="all"):
                    file.write(f"{event.key} {int(event.redelivered)}\\n")
                    file.flush()

    asyncio.run(main())
    """


def test_a_consumer_killed_under_load_sees_each_event_once_but_the_one_it_died_at(
    tmp_path: Path, server: NatsServer
) -> None:
    async def main() -> None:
        count, output = 2000, tmp_path / "seen"
        output.touch()
        program = tmp_path / "consumer.py"
        program.write_text(dedent(CONSUMER))

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen([sys.executable, str(program), str(zone.folder), zone.url, str(output)])

        def lines() -> list[str]:
            return output.read_text().splitlines()

        async with edge_zone(tmp_path, server) as zone, zone.connect("pump") as pump:
            async with zone.connect("desk") as desk:
                await desk.register_for_events("Level", durable="all")
            publishing = asyncio.ensure_future(publish(pump, count, 0.004))
            consumer = start()
            try:
                for seen in (200, 600, 1200):
                    await eventually(lambda seen=seen: len(lines()) > seen)
                    os.kill(consumer.pid, signal.SIGKILL)
                    await asyncio.to_thread(consumer.wait)
                    consumer = start()
                await publishing
                await eventually(lambda: len({line.split()[0] for line in lines()}) == count)
                await asyncio.sleep(0.3)
            finally:
                consumer.kill()
                consumer.wait()
        seen: dict[str, int] = {}
        for line in lines():
            key, redelivered = line.split()
            if key in seen:
                assert redelivered == "1", "a repeat must say that it is one"
            seen[key] = seen.get(key, 0) + 1
        assert in_order(list(seen), count)
        assert sum(times - 1 for times in seen.values()) <= 3, "at most the event each process died at comes again"

    run(main())


PUBLISHER = """
    import asyncio, sys
    import situ

    async def main():
        async with situ.connect(sys.argv[1], client="pump", servers=[sys.argv[2]]) as node:
            number = 0
            with open(sys.argv[3], "a") as file:
                while True:
                    receipts = [await node.publish_event("Level", tank="a", level=i) for i in range(50)]
                    for receipt in receipts:
                        file.write(await receipt.stored + "\\n")
                    file.flush()

    asyncio.run(main())
    """


def test_a_publisher_killed_under_load_loses_nothing_that_was_acknowledged(tmp_path: Path, server: NatsServer) -> None:
    async def main() -> None:
        output = tmp_path / "stored"
        output.touch()
        program = tmp_path / "publisher.py"
        program.write_text(dedent(PUBLISHER))
        async with edge_zone(tmp_path, server) as zone, zone.connect("desk") as desk:
            recorder = Recorder()
            await desk.add_listener("Level", recorder, durable="all")
            for times in range(3):
                publisher = subprocess.Popen([sys.executable, str(program), str(zone.folder), zone.url, str(output)])
                try:
                    await eventually(lambda times=times: len(output.read_text().splitlines()) > 500 * (times + 1))
                finally:
                    publisher.kill()
                    publisher.wait()
            acknowledged = output.read_text().splitlines()
            await eventually(lambda: set(acknowledged) <= set(recorder.keys))
            assert recorder.repeats == 0
            assert recorder.keys == sorted(recorder.keys, key=lambda key: [int(part) for part in key.split(".")[1:]])

    run(main())


def test_a_client_that_is_silent_too_long_comes_back_by_itself(tmp_path: Path, server: NatsServer) -> None:
    async def main() -> None:
        impatient = edge_zone(tmp_path, server, situ="overlay: {child_grace: 500 ms}")
        async with impatient as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            registration = await desk.register_for_events("Level")
            assert zone.router is not None
            await (await pump.publish_event("Level", tank="a", level=1)).stored
            del zone.router._state.children["pump"]  # as if it had been silent
            await (await pump.publish_event("Level", tank="a", level=2)).stored
            await eventually(lambda: registration.received == 2)
            assert (await pump.status()).reconnects == 1
            await asyncio.sleep(1.2)
            assert zone.router.clients == ("desk", "pump")  # their signs of life keep them

    run(main())


# ── a zone of Spark's: the router stores what it gets, and opens nothing ──────────────────────────


def test_on_a_zone_of_spark_messages_are_stored_unopened(tmp_path: Path, server: NatsServer) -> None:
    async def main() -> None:
        async with edge_zone(tmp_path, server, spark=True) as zone, zone.connect("pump") as pump:
            receipts = [await pump.publish_event("Level", tank="a", level="no number") for _ in range(3)]
            for receipt in receipts:
                await receipt.stored
            stored = await zone.messages(zone.names.in_stream)
            assert sum(int(each.headers["Situ-Count"]) for each in stored) == 3
            first = stored[0]
            assert first.headers["Situ-Client"] == "pump"
            assert first.headers["Situ-Context"] == "root"
            assert first.headers["Situ-Key"] == receipts[0].key
            assert first.headers["Nats-Msg-Id"].startswith(receipts[0].key + "+")
            assert abs(int(first.headers["Situ-Received"]) / 1e6 - time.time()) < 60
            assert first.subject.startswith("situ.main.raw.r1.")
            assert json.loads(split_lines(first.body)[0])["data"] == {"tank": "a", "level": "no number"}

    run(main())


def test_a_full_ingress_stream_makes_clients_wait_and_loses_nothing(tmp_path: Path, server: NatsServer) -> None:
    async def main() -> None:
        small = edge_zone(tmp_path, server, spark=True, situ="batch: {events: 10}")
        async with small as zone, zone.connect("pump") as pump:
            await limit_stream(server, zone.names.in_stream, 40_000)
            for number in range(200):
                await pump.publish_event("Level", tank="x" * 500, level=number)
            assert zone.router is not None
            await eventually(lambda: zone.router is not None and zone.router.reports.get("R016", 0) > 1)
            assert 0 < (await pump.status()).queued < 200
            found: list[StoredMessage] = []
            while not await pump.flush(0.2):
                first = found[-1].seq + 1 if found else 1
                found += [stored async for stored in zone.bus.read(zone.names.in_stream, first)]
                await zone.bus.purge(zone.names.in_stream, found[-1].seq + 1)
                pump._sender.hurry()
            found += [stored async for stored in zone.bus.read(zone.names.in_stream, found[-1].seq + 1)]
            numbers = [json.loads(line)["data"]["level"] for each in found for line in split_lines(each.body)]
            assert numbers == list(range(200))

    run(main())


async def limit_stream(server: NatsServer, stream: str, size: int) -> None:
    client = Client()
    await client.connect(server.url, token=server.token)
    info = await client.jetstream().stream_info(stream)
    info.config.max_bytes = size
    await client.jetstream().update_stream(info.config)
    await client.close()


def test_an_advertisement_is_withdrawn_when_spark_has_taken_what_was_published_under_it(
    tmp_path: Path, server: NatsServer
) -> None:
    async def main() -> None:
        async with edge_zone(tmp_path, server, spark=True) as zone:
            async with zone.connect("pump") as pump:
                await (await pump.publish_event("Level", tank="a", level=1)).stored
            await asyncio.sleep(1)
            assert set(zone.registry.current().advertisements) == {"pump/Level"}
            await zone.bus.purge(zone.names.in_stream, (await zone.bus.state(zone.names.in_stream)).last + 1)
            await eventually(lambda: not zone.registry.current().advertisements)

    run(main())


def test_an_advertisement_made_again_in_the_meantime_stays(tmp_path: Path, server: NatsServer) -> None:
    async def main() -> None:
        async with edge_zone(tmp_path, server, spark=True) as zone:
            async with zone.connect("pump") as pump:
                await (await pump.publish_event("Level", tank="a", level=1)).stored
            async with zone.connect("pump") as pump:
                await (await pump.publish_event("Level", tank="a", level=1)).stored
                await zone.bus.purge(zone.names.in_stream, (await zone.bus.state(zone.names.in_stream)).last + 1)
                await asyncio.sleep(1.2)
                assert set(zone.registry.current().advertisements) == {"pump/Level"}

    run(main())


# ── programs without an event loop ────────────────────────────────────────────────────────────────

ZONE = """
    import asyncio, sys
    from pathlib import Path
    from tests.edge_zone import edge_zone
    from tests.nats_server import NatsServer

    async def main():
        server = NatsServer(Path(sys.argv[1]) / "nats")
        server.start()
        try:
            async with edge_zone(Path(sys.argv[1]), server) as zone:
                print(zone.folder, zone.url, flush=True)
                await asyncio.to_thread(sys.stdin.read)
        finally:
            server.kill()

    asyncio.run(main())
    """


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A zone in another process: its folder and the address of its bus."""
    program = tmp_path / "zone.py"
    program.write_text(dedent(ZONE))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    process = subprocess.Popen(
        [sys.executable, str(program), str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert process.stdout is not None
        folder, url = process.stdout.readline().split()
        yield folder, url
    finally:
        process.communicate("", timeout=30)


def test_the_same_calls_without_await(running: tuple[str, str]) -> None:
    folder, url = running
    with (
        situ.connect_blocking(folder, client="pump", servers=[url]) as pump,
        situ.connect_blocking(folder, client="desk", servers=[url]) as desk,
    ):
        seen: list[float] = []

        @desk.listener("Level")
        def call(event: Any) -> None:
            seen.append(event.data.level)

        board = desk.register_for_events("Level", where="level > 5", durable="board")
        assert board.installed
        ad = pump.advertise("Level")
        for number in range(10):
            receipt = pump.publish_event("Level", tank="a", level=number, ad=ad)
        assert receipt.stored(timeout=10) == receipt.key
        found = [event.data.level for event in desk.events("Level", where="level > 5", durable="board", limit=4)]
        assert found == [6, 7, 8, 9]
        past = [event.data.level for event in desk.events("Level", since="begin", limit=10)]
        assert past == list(range(10))
        deadline = time.monotonic() + 10
        while len(seen) < 10 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert seen == list(range(10))
        assert pump.flush(5)
        assert pump.status().stored == 10
        assert desk.describe("Level")["Level"].attributes == {"tank": "string", "level": "double"}
        with pytest.raises(SituError) as error:
            pump.publish_event("Level", tank="x" * 2_000_000, level=1)
        assert error.value.code == "R007"
        desk.unregister_for_events("Level")
        pump.unadvertise(ad)
        desk.unregister_all_events()
        assert desk.status().subscriptions == {}
