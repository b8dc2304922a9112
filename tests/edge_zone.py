"""A zone in one process for tests: bus, registry, edge engine and router, and clients that connect to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from situ.bus.interface import Bus
from situ.bus.nats import open_bus
from situ.client.client import Client
from situ.client.events import Event
from situ.event.message import StoredMessage
from situ.event.subjects import BusNames
from situ.model import Deployment
from situ.router.router import Router
from situ.testing.zone import Zone
from tests.nats_server import NatsServer
from tests.project_files import write

TYPES = """
version: 1
events:
  Level: {tank: string, level: double}
  Alarm: {text: string, severity: int}
  Fire(Alarm): {floor: int}
"""


class EdgeZone(Zone):
    """A zone in its folder; ``server`` None is the bus in memory. Of a zone of Spark's only the router runs here."""

    def __init__(self, project: Path, server: NatsServer | None = None, *, spark: bool = False) -> None:
        super().__init__(project, in_place=True)
        self.server = server
        self.spark = spark
        self.begun = time.time()

    @property
    def names(self) -> BusNames:
        return BusNames(self.bus.zone)

    async def _open_bus(self, stack: AsyncExitStack, deployment: Deployment) -> Bus:
        if self.server is None:
            return await super()._open_bus(stack, deployment)
        return await stack.enter_async_context(await open_bus(self.server.address(), name="zone"))

    async def start(self) -> None:
        if not self.spark:
            await super().start()
            return
        self.router = Router(self.bus, self.registry, folder=self.folder)
        await self.router.start()

    async def crash(self) -> None:
        """End engine and router as a process that dies does: nothing is finished, nothing is told."""
        assert self.router is not None
        tasks = list(self.router._tasks)
        if self.router._serving is not None:
            await self.router._serving.close()
        for timer in self.router._timers.values():
            timer.cancel()
        if self.engine is not None:
            tasks += self.engine._tasks
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for part in (self.router, self.engine):
            if part is not None:
                await part._stack.aclose()
        self.router = self.engine = None

    async def tell_nothing(self) -> asyncio.Event:
        """Have what detection tells stay on its way for ever; set when that begins."""
        assert self.engine is not None
        telling = asyncio.Event()

        async def stuck(published: object) -> None:
            telling.set()
            await asyncio.Event().wait()

        working = self.engine._tasks[-1]
        working.cancel()
        await asyncio.wait({working})
        self.engine._tasks[-1] = asyncio.create_task(self.engine._detection.run(stuck))
        return telling

    def connect(self, client: str, **options: Any) -> AbstractAsyncContextManager[Client]:
        if self.server is not None:
            options = {"bus": None, "servers": [self.url], **options}
        return super().connect(client, **options)

    @property
    def url(self) -> str:
        assert self.server is not None
        return f"nats://{self.server.token}@127.0.0.1:{self.server.port}"

    async def messages(self, stream: str) -> list[StoredMessage]:
        return [stored async for stored in self.bus.read(stream, 1)]


Zones = Callable[..., AbstractAsyncContextManager[EdgeZone]]
"""Makes a zone, with options of :func:`edge_zone`."""


@asynccontextmanager
async def edge_zone(
    folder: Path,
    server: NatsServer | None = None,
    *,
    situ: str = "",
    clients: str = "",
    more: Mapping[str, str] = MappingProxyType({}),
    spark: bool = False,
) -> AsyncIterator[EdgeZone]:
    """A running zone of a small project."""
    project = folder / "project"
    files = {"situ.yaml": f"version: 1\nname: plant\nengine: edge\n{situ}", "types/all.yaml": TYPES}
    if clients:
        files["clients/all.yaml"] = f"version: 1\nclients:\n{clients}"
    write(project, {**files, **more})
    async with EdgeZone(project, server, spark=spark) as zone:
        yield zone


async def eventually(condition: Callable[[], object], *, within: float = 120.0) -> None:
    """Wait until something holds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while not condition():
        assert loop.time() < deadline, "it never came to that"
        await asyncio.sleep(0.01)


async def take(events: AsyncIterator[Event], count: int, *, within: float = 120.0) -> list[Event]:
    """The next events."""
    async with asyncio.timeout(within):
        return [await anext(events) for _ in range(count)]


async def nothing_more(events: AsyncIterator[Event], *, within: float = 0.3) -> None:
    """No event comes for a while."""
    step = asyncio.ensure_future(anext(events))
    done, _ = await asyncio.wait({step}, timeout=within)
    assert not done, step.result()
    step.cancel()
    await asyncio.gather(step, return_exceptions=True)


def run(work: Coroutine[Any, Any, None], within: float = 180) -> None:
    """A test on a loop of its own; what hangs fails."""

    async def bounded() -> None:
        async with asyncio.timeout(within):
            await work

    asyncio.run(bounded())
