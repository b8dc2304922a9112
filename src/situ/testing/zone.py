"""A zone inside a test: bus, registry, router and edge engine of a project, started and stopped by ``with``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Literal, Self

from situ.bus.embedded_server import EmbeddedServer
from situ.bus.event_loop import LoopThread
from situ.bus.folder_lock import FolderLock
from situ.bus.interface import Bus, wall_clock
from situ.bus.memory import MemoryBus
from situ.bus.nats import open_bus
from situ.client.client import Client
from situ.client.connection import connect
from situ.client.sync_client import BlockingClient, blocking_client
from situ.edge.engine import EdgeEngine
from situ.lang.records import replace
from situ.model import Deployment
from situ.registry import Registry, open_registry
from situ.registry.snapshots import publish_deployment, restore_deployments
from situ.router.router import Router
from situ.settings.model import settings_as_json
from situ.testing.fixtures import Clock, Project, copy_project, load_project


class Zone:
    """A running zone of a project, for one test: what is published to it is checked, converted, routed and detected.

    ``project`` is a folder, or the files of one as a mapping of paths to texts. The zone runs on a copy, so each begins
    with nothing and leaves nothing; with ``in_place`` it runs in the folder itself and remembers there.

    ``bus`` is ``"memory"``; or ``"nats"``, a nats-server of its own, which programs find by :attr:`folder` as they find
    a run; or a :class:`MemoryBus` that is there already. With a ``clock`` events are received, and policies decide,
    when that says so; ``"nats"`` has its own.

    A zone starts by ``async with``, or by ``with`` for tests that do not use asyncio. The engine is the edge engine,
    whatever the project says. Actions that publish events are done. Other actions are only asked for.

    >>> files = {"situ.yaml": "name: yard", "types/yard.yaml": "events: {TruckSeen: {truck: string}}"}
    >>> async with situ.testing.Zone(files) as zone, zone.connect("gate") as gate, zone.connect("office") as office:
    ...     receipt = await gate.publish_event("TruckSeen", truck="LY-204")
    ...     async for event in office.events("TruckSeen", since="begin", limit=1):
    ...         print(event.data.truck)
    LY-204
    """

    def __init__(
        self,
        project: Project,
        *,
        bus: Bus | Literal["memory", "nats"] = "memory",
        clock: Clock | None = None,
        in_place: bool = False,
    ) -> None:
        if in_place and not isinstance(project, str | Path):
            raise ValueError("only a folder can be used in place")
        if clock is not None and bus == "nats":
            raise ValueError("a nats-server has a clock of its own: use the bus in memory")
        self.clock = clock
        self.engine: EdgeEngine | None = None
        self.router: Router | None = None
        self._project = project
        self._wanted = bus
        self._in_place = in_place
        self._folder: Path | None = None
        self._bus: Bus | None = None
        self._registry: Registry | None = None
        self._stack = AsyncExitStack()
        self._loop: LoopThread | None = None

    @property
    def folder(self) -> Path:
        """The project folder that it runs on."""
        assert self._folder is not None, "only a zone that was started has a folder"
        return self._folder

    @property
    def bus(self) -> Bus:
        """The bus that it runs on."""
        assert self._bus is not None, "only a zone that was started has a bus"
        return self._bus

    @property
    def registry(self) -> Registry:
        assert self._registry is not None, "only a zone that was started has a registry"
        return self._registry

    # ── beginning and end ──

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._folder = await asyncio.to_thread(self._copy, stack)
            loaded = await asyncio.to_thread(load_project, self._folder)
            self._registry = stack.enter_context(open_registry(self._folder, loaded.settings))
            self._bus = await self._open_bus(stack, loaded.deployment)
            await self._bus.prepare(loaded.settings)
            await restore_deployments(self._bus, self._registry)
            await publish_deployment(self._bus, self._registry.apply(loaded.deployment, "test").deployment)
            stack.push_async_callback(self.stop)
            await self.start()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def __enter__(self) -> Self:
        self._loop = LoopThread("situ zone")
        try:
            return self._loop.call(self.__aenter__())
        except BaseException:
            self._loop.close()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._loop is not None, "only what was entered is left"
        try:
            self._loop.call(self.__aexit__(kind, error, at))
        finally:
            self._loop.close()

    async def start(self) -> None:
        """Start engine and router again, after :meth:`stop`."""
        clock = self.clock or wall_clock
        self.engine = EdgeEngine(self.bus, self.folder, clock=clock)
        await self.engine.start()
        self.router = Router(self.bus, self.registry, folder=self.folder, engine=self.engine, clock=clock)
        await self.router.start()

    async def stop(self) -> None:
        """Stop engine and router. Bus and registry stay, and clients wait for the router to come back."""
        if self.router is not None:
            await self.router.close()
        if self.engine is not None:
            await self.engine.stop()
        self.router = self.engine = None

    def _copy(self, stack: AsyncExitStack) -> Path:
        if self._in_place:
            assert isinstance(self._project, str | Path)
            return Path(self._project)
        folder = stack.enter_context(TemporaryDirectory(prefix="situ-", ignore_cleanup_errors=True))
        return copy_project(self._project, Path(folder) / "project")

    async def _open_bus(self, stack: AsyncExitStack, deployment: Deployment) -> Bus:
        if self._wanted == "memory":
            return await stack.enter_async_context(MemoryBus(deployment.settings.zone, clock=self.clock or wall_clock))
        if self._wanted != "nats":
            return self._wanted
        settings = replace(deployment.settings, bus=type(deployment.settings.bus)())
        lock = stack.enter_context(FolderLock(self.folder, settings_as_json(settings)))
        server = await stack.enter_async_context(EmbeddedServer(self.folder, settings))
        lock.announce({"bus": server.port})
        return await stack.enter_async_context(await open_bus(server.address, name="zone"))

    # ── clients ──

    def connect(self, client: str, **options: Any) -> AbstractAsyncContextManager[Client]:
        """Connect as a client, as :func:`situ.connect` does; ``options`` are those."""
        return connect(self.folder, client=client, **{"bus": self.bus, **options})

    @contextmanager
    def connect_blocking(self, client: str, **options: Any) -> Iterator[BlockingClient]:
        """The same without ``await``, for a zone that was started by ``with``."""
        if self._loop is None:
            raise ValueError("a zone that was started by `async with` has no clients that block: use `connect`")
        with blocking_client(self._loop, self.connect(client, **options)) as connected:
            yield connected
