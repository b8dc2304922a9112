"""A server that knows a run and some clients by their keys, and connections to it that speak plain NATS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg

from situ.bus.address import Address
from situ.bus.credentials import ClientCredentials, make_seed, public_key, write_secret
from situ.protocol.permissions import BusPrincipal, inbox_of, users
from tests.nats_server import NatsServer

ZONE = "main"


class AdmittingServer(NatsServer):
    """The configuration is what ``situ client configuration`` prints: an administrator's server."""

    def __init__(self, folder: Path, *clients: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.seeds = {name: make_seed() for name in clients}
        run = make_seed()
        (folder / "run").write_text(run)
        known = [BusPrincipal(name=name, key=public_key(seed)) for name, seed in self.seeds.items()]
        block = users(ZONE, known, f"{{ nkey: {public_key(run)} }}")
        super().__init__(folder, config=f"authorization {{\n{block}\n}}", token="")
        for name in clients:
            self.write(name, name)

    def write(self, name: str, seed_of: str) -> Path:
        """A file of credentials of this client with the key of that one."""
        file = self.folder / f"{name}-{seed_of}.creds"
        write_secret(file, ClientCredentials(client=name, zone=ZONE, seed=self.seeds[seed_of]).text())
        return file

    def file(self, name: str) -> str:
        return str(self.folder / f"{name}-{name}.creds")

    def address(self, zone: str = ZONE) -> Address:
        return Address(zone=zone, servers=(self.url,), token_file=str(self.folder / "run"))


@contextmanager
def admitting_server(folder: Path, *clients: str) -> Iterator[AdmittingServer]:
    server = AdmittingServer(folder, *clients)
    server.start()
    try:
        yield server
    finally:
        server.kill()


class Plain:
    """A connection of a client that speaks NATS itself and tries what it likes."""

    def __init__(self, client: Client, name: str, told: list[str]) -> None:
        self.client = client
        self.name = name
        self.told = told
        """What the server complained about."""

    async def forbidden(self, sign: str) -> bool:
        """Whether the server says that this is forbidden."""
        for _ in range(200):
            if any("permissions violation" in each and sign.lower() in each for each in self.told):
                return True
            await asyncio.sleep(0.01)
        return False

    async def publish(self, subject: str, body: bytes = b"{}", reply: str = "", **headers: str) -> None:
        await self.client.publish(subject, body, reply=reply, headers=headers or None)

    async def hear(self, subject: str) -> asyncio.Queue[Msg]:
        heard: asyncio.Queue[Msg] = asyncio.Queue()

        async def note(message: Msg) -> None:
            heard.put_nowait(message)

        await self.client.subscribe(subject, cb=note)
        return heard

    async def ask(self, subject: str, body: bytes = b"", timeout: float = 5, **headers: str) -> Msg:
        return await self.client.request(subject, body, timeout=timeout, headers=headers or None)


@asynccontextmanager
async def plain(server: NatsServer, name: str, seed: str) -> AsyncIterator[Plain]:
    told: list[str] = []

    async def note(error: Exception) -> None:
        told.append(str(error))

    client = Client()
    options: dict[str, Any] = {"nkeys_seed_str": seed, "inbox_prefix": inbox_of(name), "error_cb": note}
    await client.connect([server.url], allow_reconnect=False, **options)
    try:
        yield Plain(client, name, told)
    finally:
        await client.close()
