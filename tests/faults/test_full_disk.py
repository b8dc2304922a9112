"""A disk that is full under a run: clients wait, the run says so, and when there is room again nothing was lost."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import situ
from tests.faults.deployed import PATIENCE, Deployed, deployed, wait_for

MIB = 1024 * 1024


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[None]:
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


Fill = Callable[[Deployed], Callable[[], None]]
"""Fills the disk; gives what makes room again."""


@contextmanager
def filling(tmp_path: Path) -> Iterator[tuple[Path, Fill]]:
    """A folder for a project, and what fills its disk.

    Only an administrator may make a disk of its own. Others forbid the server of the bus to let its files grow, which
    is the same to it; the server that is started in its place may again.
    """
    disk = tmp_path / "disk"
    if os.geteuid() == 0:
        with small_disk(disk, 64 * MIB):
            yield disk / "plant", _fill
    else:
        yield disk / "plant", _limit


def _fill(at: Deployed) -> Callable[[], None]:
    filler = at.folder.parent / "filler"
    with filler.open("wb") as file:
        try:
            while True:
                file.write(b"\0" * 65_536)
                file.flush()
        except OSError:
            pass
    return filler.unlink


def _limit(at: Deployed) -> Callable[[], None]:
    server = at.bus_server()
    assert server is not None
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (4096, 4096))
    return lambda: None


@pytest.mark.parametrize("engine", ["edge", pytest.param("spark", marks=pytest.mark.soak)])
def test_a_full_disk_makes_clients_wait_and_loses_nothing(tmp_path: Path, engine: str) -> None:
    with filling(tmp_path) as (folder, fill), deployed(folder, engine=engine) as at:
        asyncio.run(_publish_through(at, fill, tmp_path))
        wait_for(lambda: "the disk may be full" in at.log, "the run says so")
        assert at.stop() == 0
        at.start()
        at.ready()
        keys = [(row.client, row.seq) for row in at.root()]
        assert keys == [("pump", seq) for seq in range(1, 401)]
        assert at.stop() == 0


def _restart(at: Deployed) -> None:
    """Spark cannot go on without its checkpoint: then the run says so and ends, and the next one goes on from there."""
    if not at.alive:
        assert at.engine == "spark", at.shown
        assert at.ended() == 5
        assert "error N10" in at.shown
        at.start()


async def _publish_through(at: Deployed, fill: Fill, elsewhere: Path) -> None:
    """Publish before the disk is full, while it is, and after."""
    address = at.address
    known = {"servers": list(address.servers), "credentials": address.token_file}
    # Clients are on a disk of their own.
    home = elsewhere / "clients"
    home.mkdir()
    (home / "situ.yaml").write_text("version: 1\nname: clients\n")
    got: list[int] = []
    async with (
        situ.connect(home, client="desk", **known) as desk,
        situ.connect(home, client="pump", **known, queue_timeout=PATIENCE) as pump,
    ):
        await desk.add_listener("Reading", lambda event: got.append(event.data.number), durable="all")
        for number in range(100):
            await pump.publish_event("Reading", sensor="x" * 1000, value=1, number=number)
        assert await pump.flush(PATIENCE)
        make_room = await asyncio.to_thread(fill, at)
        for number in range(100, 300):
            await pump.publish_event("Reading", sensor="x" * 20_000, value=1, number=number)
        await asyncio.sleep(3)
        make_room()
        for number in range(300, 400):
            await pump.publish_event("Reading", sensor="x" * 1000, value=1, number=number)
        deadline = time.monotonic() + PATIENCE
        while not await pump.flush(1):
            assert time.monotonic() < deadline, at.log[-5000:]
            _restart(at)
        while len(got) < 400:
            assert time.monotonic() < deadline, at.log[-5000:]
            _restart(at)
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.5)
        assert got == list(range(400))
