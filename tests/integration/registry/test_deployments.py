"""Deployments on the bus, NATS and in memory: published, watched, adopted, and made again from the registry."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from situ.bus.address import Address
from situ.bus.interface import Bus
from situ.bus.memory import MemoryBus
from situ.bus.nats import open_bus
from situ.event.subjects import DEPLOYMENTS, REGISTRY, BusNames
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.model import Deployment, canonical
from situ.registry import Registry, open_registry
from situ.registry import snapshots as engines_module
from situ.registry.snapshots import (
    Current,
    adopted_versions,
    current_deployment,
    encode_deployment,
    engine_alive,
    fetch_client_names,
    fetch_deployment,
    keep_published,
    prune_deployments,
    publish_deployment,
    refresh_engine,
    report_adopted,
    restore_deployments,
    wait_adopted,
    watch_deployments,
)
from situ.settings import Settings
from tests.registry_files import changed, deploy, subscription
from tests.scopes import dimension, graph_of

PLANT = deploy()
OTHER = changed("types/a.yaml", "tank: string", "tank: int")
EMBEDDED = Settings(name="plant")
Work = Callable[[Bus], Awaitable[None]]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """A server of its own for this module."""
    folder = tmp_path_factory.mktemp("nats")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = shutil.which("nats-server", path=str(Path(sys.executable).parent))
    assert program is not None
    server = subprocess.Popen(
        [program, "-js", "-sd", str(folder), "-a", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            break
        time.sleep(0.05)
    yield Address(zone="main", servers=(f"nats://127.0.0.1:{port}",))
    server.terminate()
    server.wait(30)


class OnBus:
    """Runs a test on a bus on which nothing is published yet."""

    def __init__(self, address: Address | None) -> None:
        self._address = address
        self._memory = MemoryBus()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Bus]:
        """One more connection to the bus; in memory there is only one."""
        bus: Bus = self._memory if self._address is None else await open_bus(self._address, name="test")
        try:
            yield bus
        finally:
            if bus is not self._memory:
                await bus.close()

    def __call__(self, work: Work) -> None:
        asyncio.run(self._run(work))

    async def _run(self, work: Work) -> None:
        async with self.connected() as bus:
            await bus.prepare(EMBEDDED)
            for entry in await bus.entries(BusNames("main").metrics):
                await bus.remove(BusNames("main").metrics, entry.key)
            await bus.remove(REGISTRY, "current")
            async with asyncio.timeout(180):
                await work(bus)


@pytest.fixture(params=["nats", "memory"])
def on_bus(request: pytest.FixtureRequest) -> OnBus:
    return OnBus(request.getfixturevalue("address") if request.param == "nats" else None)


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with open_registry(tmp_path, EMBEDDED) as registry:
        yield registry


def test_the_content_is_the_canonical_form() -> None:
    deployment = PLANT.at_version(12)
    assert encode_deployment(deployment) == (canonical(deployment.as_json()).encode(), deployment.digest)


def test_nothing_published_is_version_0(on_bus: OnBus) -> None:
    async def work(bus: Bus) -> None:
        assert await current_deployment(bus) is None
        assert await fetch_deployment(bus) == Deployment()

    on_bus(work)


def test_what_is_published_is_fetched(on_bus: OnBus) -> None:
    async def work(bus: Bus) -> None:
        await publish_deployment(bus, PLANT.at_version(1))
        assert await fetch_deployment(bus) == PLANT.at_version(1)
        await publish_deployment(bus, OTHER.at_version(2))
        assert await fetch_deployment(bus) == OTHER.at_version(2)
        assert await fetch_deployment(bus, 1) == PLANT.at_version(1)
        assert await current_deployment(bus) == Current(version=2, digest=OTHER.digest)

    on_bus(work)


def test_clients_are_those_of_the_deployment(on_bus: OnBus) -> None:
    async def work(bus: Bus) -> None:
        assert await fetch_client_names(bus) == frozenset()
        await publish_deployment(bus, deployment)
        owners = {each.client for each in (*deployment.advertisements.values(), *deployment.subscriptions.values())}
        expected = {*deployment.clients, *owners, *deployment.scopes.clients}
        assert await fetch_client_names(bus) == expected
        assert expected > {"loner", "member"}
        for content in (b"{}", b"\xff", b"["):
            await bus.put_object(DEPLOYMENTS, "10", content)
            with pytest.raises(SituError, match="D113"):
                await fetch_client_names(bus)

    alone = subscription("loner/all")
    scopes = replace(graph_of(dimension("site", {"east": ""})), clients={"member": {"site": ("east",)}})
    deployment = replace(PLANT, scopes=scopes, subscriptions={**PLANT.subscriptions, alone.id: alone}).at_version(10)
    on_bus(work)


def test_the_version_in_force_never_goes_back(on_bus: OnBus) -> None:
    async def work(bus: Bus) -> None:
        await publish_deployment(bus, OTHER.at_version(7))
        await publish_deployment(bus, PLANT.at_version(6))
        assert await current_deployment(bus) == Current(version=7, digest=OTHER.digest)
        assert await fetch_deployment(bus, 6) == PLANT.at_version(6)

    on_bus(work)


def test_publishers_at_the_same_time_leave_the_newest(on_bus: OnBus) -> None:
    async def work(bus: Bus) -> None:
        await asyncio.gather(*(publish_deployment(bus, PLANT.at_version(n)) for n in (23, 21, 25, 22, 24)))
        assert (await fetch_deployment(bus)).version == 25

    on_bus(work)


def test_what_is_not_there_or_damaged_is_named(on_bus: OnBus) -> None:
    async def work(bus: Bus) -> None:
        with pytest.raises(SituError, match="D112") as refused:
            await fetch_deployment(bus, 999)
        assert "situ run" in refused.value.hint
        await publish_deployment(bus, PLANT.at_version(30))
        for content in (b"{}", b"\xff", b"[", OTHER_BYTES):
            await bus.put_object(DEPLOYMENTS, "30", content)
            with pytest.raises(SituError, match="D113"):
                await fetch_deployment(bus)

    OTHER_BYTES, _ = encode_deployment(OTHER.at_version(30))  # noqa: N806
    on_bus(work)


def test_watchers_see_what_is_in_force_and_what_follows(on_bus: OnBus) -> None:
    async def work(bus: Bus) -> None:
        await publish_deployment(bus, PLANT.at_version(40))
        seen: asyncio.Queue[int] = asyncio.Queue()

        async def watch() -> None:
            async with on_bus.connected() as other:
                async for found in watch_deployments(other):
                    seen.put_nowait(found.version)

        task = asyncio.create_task(watch())
        assert await seen.get() == 40
        await publish_deployment(bus, OTHER.at_version(41))
        assert await seen.get() == 41
        await publish_deployment(bus, PLANT.at_version(39))
        await publish_deployment(bus, PLANT.at_version(42))
        assert await seen.get() == 42
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    on_bus(work)


def test_a_run_publishes_what_nobody_came_to_publish(on_bus: OnBus, registry: Registry) -> None:
    """Whoever changed the registry was stopped between storing and publishing."""

    async def work(bus: Bus) -> None:
        registry.apply(PLANT, "ann")
        assert await current_deployment(bus) is None
        restored = await restore_deployments(bus, registry)
        assert restored == await fetch_deployment(bus) == PLANT.at_version(1)
        registry.declare([subscription("desk/a")], who="bob")
        await restore_deployments(bus, registry)
        assert (await fetch_deployment(bus)).digest == registry.current().digest
        await restore_deployments(bus, registry)
        assert (await fetch_deployment(bus)).version == 2

    on_bus(work)


def test_an_empty_registry_publishes_nothing(on_bus: OnBus, registry: Registry) -> None:
    async def work(bus: Bus) -> None:
        assert await restore_deployments(bus, registry) == Deployment()
        assert await current_deployment(bus) is None

    on_bus(work)


def test_a_registry_that_is_not_the_buss_is_refused(on_bus: OnBus, registry: Registry) -> None:
    async def work(bus: Bus) -> None:
        await publish_deployment(bus, OTHER.at_version(1))
        with pytest.raises(SituError, match="D114"):  # it is empty
            await restore_deployments(bus, registry)
        registry.apply(PLANT, "ann")
        with pytest.raises(SituError, match="D114"):  # another version 1
            await restore_deployments(bus, registry)
        registry.declare([subscription("desk/a")], who="bob")
        with pytest.raises(SituError, match="D114"):  # newer, but from another beginning
            await restore_deployments(bus, registry)
        assert await current_deployment(bus) == Current(version=1, digest=OTHER.digest)

    on_bus(work)


def test_what_others_put_into_the_registry_is_published(on_bus: OnBus, registry: Registry, tmp_path: Path) -> None:
    async def work(bus: Bus) -> None:
        registry.apply(PLANT, "ann")
        failures: list[SituError] = []
        task = asyncio.create_task(keep_published(bus, registry, every=0.02, failed=failures.append))
        with open_registry(tmp_path, EMBEDDED) as other:
            for n in range(3):
                wanted = other.declare([subscription(f"desk/s{n}")], who="bob").version
                while (found := await current_deployment(bus)) is None or found.version < wanted:
                    await asyncio.sleep(0.01)
        assert failures == []
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    on_bus(work)


class TestPruning:
    """Versions from 1,001 on, so that nothing of other tests is among them."""

    async def published(self, bus: Bus, last: int) -> None:
        await bus.put(REGISTRY, "oldest", b"1001")
        for version in range(1001, last + 1):
            await publish_deployment(bus, PLANT.at_version(version))

    async def left(self, bus: Bus, last: int) -> list[int]:
        found = [n for n in range(1001, last + 1) if await bus.get_object(DEPLOYMENTS, str(n)) is not None]
        for version in found:
            await bus.remove_object(DEPLOYMENTS, str(version))
        return found

    def test_the_last_ones_are_kept(self, on_bus: OnBus) -> None:
        async def work(bus: Bus) -> None:
            await self.published(bus, 1010)
            await prune_deployments(bus, kept=3)
            await prune_deployments(bus, kept=3)
            assert await self.left(bus, 1010) == [1007, 1008, 1009, 1010]

        on_bus(work)

    def test_what_engines_may_need_is_kept(self, on_bus: OnBus) -> None:
        async def work(bus: Bus) -> None:
            await self.published(bus, 1010)
            await report_adopted(bus, "spark", 1005)
            await report_adopted(bus, "edge", 1009)
            await prune_deployments(bus, kept=2)
            await report_adopted(bus, "spark", 1006)
            await prune_deployments(bus, kept=2)
            assert await self.left(bus, 1010) == list(range(1004, 1011))

        on_bus(work)

    def test_an_engine_that_never_comes_back_does_not_hold_everything(self, on_bus: OnBus) -> None:
        async def work(bus: Bus) -> None:
            await self.published(bus, 1010)
            await report_adopted(bus, "gone", 3)
            await prune_deployments(bus, kept=2, most=6)
            assert await self.left(bus, 1010) == list(range(1004, 1011))

        on_bus(work)

    def test_nothing_published_nothing_pruned(self, on_bus: OnBus) -> None:
        on_bus(prune_deployments)


class TestEngines:
    def test_a_key_that_is_written_all_the_time_is_always_there(self, on_bus: OnBus) -> None:
        """Else an engine would seem to have ended while it tells that it lives."""

        async def work(bus: Bus) -> None:
            await refresh_engine(bus, "busy")

            async def write() -> None:
                async with on_bus.connected() as other:
                    while True:
                        await refresh_engine(other, "busy")
                        await asyncio.sleep(0.002)

            task = asyncio.create_task(write())
            for _ in range(300):
                found = await bus.entries(BusNames("main").metrics, "engine.")
                assert [entry.key for entry in found] == ["engine.busy"]
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

        on_bus(work)

    def test_no_engine_is_waited_for_if_there_is_none(self, on_bus: OnBus) -> None:
        async def work(bus: Bus) -> None:
            assert await wait_adopted(bus, 5) == ()

        on_bus(work)

    def test_waiting_ends_when_all_have_adopted(self, on_bus: OnBus) -> None:
        async def work(bus: Bus) -> None:
            async with engine_alive(bus, "spark"), engine_alive(bus, "edge"):
                await report_adopted(bus, "spark", 5)
                await report_adopted(bus, "edge", 4)
                waiting = asyncio.create_task(wait_adopted(bus, 5, timeout=50))
                await asyncio.sleep(0.2)
                assert not waiting.done()
                await report_adopted(bus, "edge", 6)
                assert await waiting == ()
                assert await adopted_versions(bus) == {"spark": 5, "edge": 6}

        on_bus(work)

    def test_those_that_did_not_are_named(self, on_bus: OnBus) -> None:
        async def work(bus: Bus) -> None:
            async with engine_alive(bus, "spark", every=0.05), engine_alive(bus, "edge", every=0.05):
                await report_adopted(bus, "spark", 5)
                assert await wait_adopted(bus, 5, timeout=0.3) == ("edge",)
            assert await bus.entries(BusNames("main").metrics, "engine.") == ()
            assert await wait_adopted(bus, 99) == ()  # they said that they end

        on_bus(work)

    def test_one_that_is_silent_is_not_waited_for(self, on_bus: OnBus, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(engines_module, "SILENCE", 0.3)

        async def work(bus: Bus) -> None:
            await refresh_engine(bus, "killed")
            begun = time.monotonic()
            assert await wait_adopted(bus, 5, timeout=50) == ()
            assert time.monotonic() - begun < 40

        on_bus(work)
