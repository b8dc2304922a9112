"""Events that are too large, from clients of all kinds: refused or dead letters, and nobody else notices."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.errors import MaxPayloadError

from situ.lang.problems import SituError
from tests.edge_zone import EdgeZone, edge_zone, take
from tests.nats_server import NatsServer, nats_server

CLIENTS = "  meter: {advertisements: {levels: {type: Level}}}\n"
TEN = 10 * 1024 * 1024


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with nats_server(tmp_path / "nats") as made:
        yield made


def event(size: int) -> bytes:
    data = {"tank": "x" * size, "level": 1.0}
    return json.dumps({"specversion": "1.0", "id": "1", "source": "meter", "type": "Level", "data": data}).encode()


async def others_flow(zone: EdgeZone, number: int) -> None:
    """An event from one client to another, as if nothing was."""
    async with zone.connect("pump") as pump, zone.connect("desk") as desk:
        events = aiter(await desk.register_for_events("Level"))
        await (await pump.publish_event("Level", tank="a", level=number)).stored
        (found,) = await take(events, 1)
        assert found.data.level == number
        await events.aclose()  # type: ignore[attr-defined]


def test_ten_megabytes_by_the_library_are_refused_at_once(tmp_path: Path, server: NatsServer) -> None:
    async def main() -> None:
        async with edge_zone(tmp_path, server, clients=CLIENTS) as zone:
            async with zone.connect("meter") as meter:
                with pytest.raises(SituError) as error:
                    await meter.publish_event("Level", tank="x" * TEN, level=1)
                assert error.value.code == "R007"
                assert str(TEN)[:4] in str(error.value)  # how large it is
                await (await meter.publish_event("Level", tank="x", level=1)).stored
            await others_flow(zone, 1)
            assert len(await zone.messages(zone.names.root_stream)) == 2
            assert await zone.messages(zone.names.dead_stream) == []

    asyncio.run(main())


def test_what_a_plain_client_can_send_and_is_too_large_is_a_dead_letter(tmp_path: Path, server: NatsServer) -> None:
    async def main() -> None:
        async with edge_zone(tmp_path, server, clients=CLIENTS) as zone:
            plain = Client()
            await plain.connect(server.url, token=server.token)
            subject = zone.names.ingress("r1", "meter")
            answer = await plain.request(subject, event(5 * 1024 * 1024), timeout=30)
            assert json.loads(answer.data)["dead"][0]["code"] == "R007"
            answer = await plain.request(subject, event(10), timeout=30)
            assert json.loads(answer.data)["dead"] == []
            with pytest.raises(MaxPayloadError):
                await plain.publish(subject, event(TEN))
            await plain.close()
            await others_flow(zone, 2)
            (letter,) = await zone.messages(zone.names.dead_stream)
            assert len(letter.body) < 1024 * 1024, "a letter holds the beginning of what is too large"
            assert json.loads(letter.body[1:-1])["data"]["size"] > 5 * 1024 * 1024

    asyncio.run(main())


def test_who_sends_ten_megabytes_all_the_same_is_cut_off_by_the_bus(tmp_path: Path, server: NatsServer) -> None:
    async def main() -> None:
        async with edge_zone(tmp_path, server, clients=CLIENTS) as zone:
            said = await asyncio.to_thread(shout, server, zone.names.ingress("r1", "meter"))
            assert b"Maximum Payload Violation" in said
            await others_flow(zone, 3)
            assert len(await zone.messages(zone.names.root_stream)) == 1

    asyncio.run(main())


def shout(server: NatsServer, subject: str) -> bytes:
    """Announce ten megabytes without asking whether they may be sent; what the server says until it hangs up."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        said = connection.recv(65_536)
        connection.sendall(b'CONNECT {"verbose":false,"auth_token":"%s"}\r\n' % server.token.encode())
        connection.sendall(b"PUB %s %d\r\n" % (subject.encode(), TEN))
        while more := connection.recv(65_536):
            said += more
        return said
