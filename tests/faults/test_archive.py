"""The archive of a run that is killed, on a store that goes away: it holds the root log, every event once."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from situ.archive.format import Archive, open_archive
from situ.archive.history import PastLog
from situ.event.message import StoredMessage
from situ.event.subjects import BusNames
from situ.settings import Settings
from situ.settings.kinds import plain
from situ.settings.model import Log
from situ.storage.state_folder import use_options
from tests.faults.deployed import Deployed, deployed, wait_for
from tests.faults.traffic import Publisher, kill_all, start_all, wait_ready
from tests.s3_server import s3_server

PLACE = "s3a://plant/history"
DESK = {
    "clients/desk.yaml": "clients: {desk: {subscriptions: {all: {types: [Alarm, Reading], durable: true}}}}\n",
}


@pytest.mark.parametrize(
    ("engine", "events", "kills"),
    [
        ("edge", 9_000, 3),
        pytest.param("edge", 200_000, 20, marks=pytest.mark.soak),
        pytest.param("spark", 100_000, 10, marks=pytest.mark.soak),
    ],
)
def test_runs_are_killed_and_the_store_goes_away(tmp_path: Path, engine: str, events: int, kills: int) -> None:
    chance = random.Random(events)
    with s3_server(tmp_path / "s3") as store:
        use_options(store.store)
        conf = "".join(f'    {name}: "{value}"\n' for name, value in store.store.items())
        said = f"log: {{archive: {PLACE}, archive_every: 100 ms}}\nspark:\n  conf:\n{conf}"
        archive = open_archive(PLACE)
        with deployed(tmp_path / "plant", engine=engine, situ=said, files=DESK) as at:
            publisher = Publisher(at.folder, "pump", events, 2_000)
            try:
                start_all([publisher])
                wait_ready([publisher])
                for _ in range(kills):
                    before = last_of(archive)
                    # On a slow machine all may have been published, and archived, before the last kill.
                    wait_for(
                        lambda before=before: publisher.done or last_of(archive) > before, "more is archived", every=0.1
                    )
                    time.sleep(chance.uniform(0, 0.3))
                    at.kill()
                    at.start()
                    at.ready()
                away(7.0)
                wait_for(lambda: publisher.done, "all is published")
            finally:
                kill_all([publisher])
            stored = root_messages(at)
            wait_for(lambda: last_of(archive) == stored[-1].seq, "all is archived", every=0.1)
            wait_for(lambda: status(at)["last"] == stored[-1].seq, "the run says so", every=0.3)
            shown = status(at)
            assert (shown["place"], shown["last"], shown["behind"], shown["lost"]) == (PLACE, stored[-1].seq, 0, 0)
            assert archived(archive) == stored
            # Whoever replays does not notice that the log has forgotten the half of it.
            whole = at.command("replay", "--engine", "edge")
            assert whole["deliveries"] == len(at.root())
            with at.bus() as bus:
                bus.purge(BusNames(bus.zone).root_stream, stored[len(stored) // 2].seq)
            assert len(at.root()) < whole["deliveries"]
            assert at.command("replay", "--engine", "edge") == whole


def last_of(archive: Archive) -> int:
    found = archive.last()
    return 0 if found is None else found.last


def away(seconds: float) -> None:
    """The store answers nobody for a while."""
    (server,) = [
        each for each in psutil.Process().children() if each.name() == "java" and "s3proxy" in str(each.cmdline())
    ]
    server.send_signal(signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        server.send_signal(signal.SIGCONT)


def root_messages(at: Deployed) -> list[StoredMessage]:
    with at.bus() as bus:
        return list(bus.read(BusNames(bus.zone).root_stream, 1))


def archived(archive: Archive) -> list[StoredMessage]:
    settings = Settings(log=Log(archive=plain(PLACE)))
    return list(PastLog.of(archive, settings, Path(), 1, 2**62).messages())


def status(at: Deployed) -> dict[str, Any]:
    """What is said of the archive."""
    deadline = time.monotonic() + 60
    while True:
        (engine,) = at.command("status")["engines"].values()
        found: dict[str, Any] = engine["archive"]
        if (not found["behind"] and not found["failing"]) or time.monotonic() > deadline:
            return found
        time.sleep(0.5)
