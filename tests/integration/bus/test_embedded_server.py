"""The embedded server: started, watched, started again, stopped; and the lock of a folder."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from situ.bus.address import resolve_address
from situ.bus.embedded_server import EmbeddedServer, find_program
from situ.bus.folder_lock import FolderLock, read_lock
from situ.bus.nats import open_bus
from situ.event.message import Message
from situ.lang.problems import SituError
from situ.settings import Settings

SETTINGS = Settings(name="test")


def wait_until(condition: object, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator] # a callable
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_it_keeps_what_it_stored_and_its_port_over_runs(tmp_path: Path) -> None:
    async def run(value: bytes) -> tuple[int, bytes | None]:
        with FolderLock(tmp_path) as lock:
            async with EmbeddedServer(tmp_path, SETTINGS) as server:
                lock.announce({"bus": server.port})
                bus = await open_bus(resolve_address(tmp_path, SETTINGS), name="test")
                await bus.prepare(SETTINGS)
                before = await bus.get("registry", "x")
                await bus.put("registry", "x", value)
                await bus.close()
                return server.port, before.value if before else None

    port, before = asyncio.run(run(b"1"))
    assert before is None
    assert asyncio.run(run(b"2")) == (port, b"1")
    assert read_lock(tmp_path) is None


def test_nobody_else_can_read_its_secrets_or_get_in_without(tmp_path: Path) -> None:
    async def main() -> str:
        async with EmbeddedServer(tmp_path, SETTINGS) as server:
            credentials = tmp_path / ".situ" / "credentials"
            assert stat.S_IMODE(credentials.stat().st_mode) == 0o700
            assert stat.S_IMODE((credentials / "bus").stat().st_mode) == 0o600
            assert stat.S_IMODE((tmp_path / ".situ" / "nats" / "server.conf").stat().st_mode) == 0o600
            listening = {c.laddr.ip for c in psutil.Process(server.pid).net_connections() if c.status == "LISTEN"}
            assert listening == {"127.0.0.1"}
            other = tmp_path / "other"
            other.write_text("not the token")
            wrong = type(server.address)(zone="main", servers=server.address.servers, token_file=str(other))
            with pytest.raises(SituError) as refused:
                await open_bus(wrong, name="test", timeout=5)
            return refused.value.code

    assert asyncio.run(main()) == "B102"


def test_a_killed_server_comes_back_on_its_port(tmp_path: Path) -> None:
    back: list[int] = []

    async def main() -> None:
        async with EmbeddedServer(tmp_path, SETTINGS, on_restart=lambda: back.append(1)) as server:
            bus = await open_bus(server.address, name="test")
            await bus.prepare(SETTINGS)
            await bus.put("registry", "x", b"1")
            port, pid = server.port, server.pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            entry = await bus.get("registry", "x")
            assert entry is not None
            assert entry.value == b"1"
            assert (server.port, server.restarts) == (port, 1)
            assert server.pid != pid
            await bus.close()

    asyncio.run(main())
    assert back == [1]


def test_a_server_that_could_not_write_is_started_again_and_nothing_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with EmbeddedServer(tmp_path, SETTINGS) as server:
            bus = await open_bus(server.address, name="test")
            await bus.prepare(SETTINGS)
            assert server.pid is not None
            # As on a full disk: files of this process cannot grow beyond this; the next process has no such limit.
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
            bodies = [bytes([n]) * 300_000 for n in range(6)]
            futures = [await bus.store(Message(subject="situ.main.raw.r1.0", body=body)) for body in bodies]
            assert [ack.seq for ack in await asyncio.gather(*futures)] == [1, 2, 3, 4, 5, 6]
            assert [message.body for message in [m async for m in bus.read("IN_main", 1)]] == bodies
            assert server.restarts == 1
            await bus.close()

    asyncio.run(main())
    assert "the disk may be full" in caplog.text


RUN = """
import asyncio, sys
from pathlib import Path
from situ.bus.embedded_server import EmbeddedServer
from situ.bus.folder_lock import FolderLock
from situ.settings import Settings
async def main():
    with FolderLock(Path(sys.argv[1])) as lock:
        async with EmbeddedServer(Path(sys.argv[1]), Settings(name="test")) as server:
            lock.announce({"bus": server.port})
            print(server.pid, flush=True)
            await asyncio.sleep(600)
asyncio.run(main())
"""


def test_nothing_is_left_of_a_run_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path)], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        holder = read_lock(tmp_path)
        assert holder is not None
        assert (holder.pid, set(holder.ports)) == (run.pid, {"bus"})
        with pytest.raises(SituError, match=str(run.pid)) as refused:
            FolderLock(tmp_path).acquire()
        assert refused.value.code == "P120"
        run.kill()
    wait_until(lambda: not psutil.pid_exists(pid))
    assert read_lock(tmp_path) is None
    with FolderLock(tmp_path) as lock:
        assert lock.held


def test_a_server_left_by_a_run_is_ended_before_the_next_starts(tmp_path: Path) -> None:
    async def main() -> None:
        async with EmbeddedServer(tmp_path, SETTINGS):
            pass
        configuration = tmp_path / ".situ" / "nats" / "server.conf"
        left = subprocess.Popen([find_program(), "-c", str(configuration)])
        try:
            async with EmbeddedServer(tmp_path, SETTINGS) as server:
                assert left.wait(10) is not None
                assert server.pid != left.pid
        finally:
            left.kill()
            left.wait()

    asyncio.run(main())


def test_a_port_taken_by_another_is_left_to_him(tmp_path: Path) -> None:
    async def main() -> None:
        async with EmbeddedServer(tmp_path, SETTINGS) as server:
            port = server.port
        other = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", port)
        async with other, EmbeddedServer(tmp_path, SETTINGS) as server:
            assert server.port != port

    asyncio.run(main())


def test_a_store_that_cannot_be_used_is_told_with_the_end_of_the_log(tmp_path: Path) -> None:
    (tmp_path / ".situ" / "nats").mkdir(parents=True)
    (tmp_path / ".situ" / "nats" / "jetstream").write_text("not a folder")

    with pytest.raises(SituError) as failed:
        asyncio.run(EmbeddedServer(tmp_path, SETTINGS).start())
    assert failed.value.code == "B113"
    assert "jetstream" in failed.value.hint.lower()


def test_a_missing_program_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SituError) as failed:
        asyncio.run(EmbeddedServer(tmp_path, SETTINGS).start())
    assert failed.value.code == "B112"


def test_without_a_run_there_is_no_address(tmp_path: Path) -> None:
    with pytest.raises(SituError) as failed:
        resolve_address(tmp_path, SETTINGS)
    assert failed.value.code == "B108"
    assert "situ run" in failed.value.hint


def test_a_run_that_is_still_starting_says_so(tmp_path: Path) -> None:
    with FolderLock(tmp_path), pytest.raises(SituError, match="still starting") as failed:
        resolve_address(tmp_path, SETTINGS)
    assert failed.value.code == "B108"


def test_state_of_another_release_is_left_alone(tmp_path: Path) -> None:
    with FolderLock(tmp_path):
        pass
    (tmp_path / ".situ" / "format").write_text("99\n")
    with pytest.raises(SituError, match="layout 99") as failed:
        FolderLock(tmp_path).acquire()
    assert failed.value.code == "P127"
    assert read_lock(tmp_path) is None


def test_a_lock_that_is_no_json_still_counts(tmp_path: Path) -> None:
    with FolderLock(tmp_path):
        (tmp_path / ".situ" / "lock").write_text("{")
        assert read_lock(tmp_path) is not None
    assert json.loads((tmp_path / ".situ" / "lock").read_text() or "{}") == {}
