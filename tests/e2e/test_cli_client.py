"""Credentials of clients from the command line, beside a run and beside a server of one's own."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from situ.bus.credentials import make_seed
from situ.bus.folder_lock import read_lock
from tests.e2e.conftest import Situ
from tests.e2e.runs import make_plant, running, started
from tests.nats_server import NatsServer

READING = json.dumps({"sensor": "s", "value": 20.5})


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = make_plant(tmp_path_factory.mktemp("plant"))
    with running(folder) as run:
        yield folder
        assert run.stop() == 0
        assert run.err == ""


def server_of(plant: Path) -> str:
    holder = read_lock(plant)
    assert holder is not None
    return f"nats://127.0.0.1:{holder.ports['bus']}"


def test_a_client_with_its_file_alone_publishes_and_hears(situ: Situ, plant: Path, tmp_path: Path) -> None:
    made = situ("client", "add", "gate", "--out", tmp_path / "gate.creds", "--json", cwd=plant)
    assert made.code == 0, made.err
    assert made.data["in_force"]
    assert stat.S_IMODE((tmp_path / "gate.creds").stat().st_mode) == 0o600
    assert situ("client", "add", "desk", "--out", tmp_path / "desk.creds", cwd=plant).code == 0
    away = ("--server", server_of(plant), "--credentials")
    wanted = ("subscribe", "Reading", *away, tmp_path / "desk.creds", "--durable", "kept", "--limit", "1")
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    with started(*wanted, cwd=tmp_path, env=env) as desk:
        desk.until("Waiting for Reading as desk")
        told = situ("publish", "Reading", "--data", READING, *away, tmp_path / "gate.creds", cwd=tmp_path, env=env)
        assert (told.code, told.err) == (0, "")
        assert told.out.startswith("1 event stored as gate.")
        assert desk.end() == 0
    other = situ(
        "publish", "Reading", "--client", "desk", "--data", READING, *away, tmp_path / "gate.creds", cwd=tmp_path
    )
    assert other.code == 1
    assert "R011" in other.err


def test_rotated_and_removed_credentials_open_nothing(situ: Situ, plant: Path, tmp_path: Path) -> None:
    assert situ("client", "add", "pump", cwd=plant).code == 0
    file = plant / ".situ" / "credentials" / "pump.creds"
    old = tmp_path / "old.creds"
    old.write_text(file.read_text())
    say = ("publish", "Reading", "--client", "pump", "--data", READING, "--credentials")
    assert situ(*say, old, cwd=plant).code == 0
    assert situ("client", "rotate", "pump", cwd=plant).code == 0
    ran = situ(*say, old, cwd=plant)
    assert ran.code == 4
    assert "B102" in ran.err
    assert situ(*say, file, cwd=plant).code == 0
    new = tmp_path / "new.creds"
    new.write_text(file.read_text())
    ran = situ("client", "remove", "pump", cwd=plant)
    assert (ran.code, ran.out) == (0, "pump is not let in any more.\n")
    assert not file.exists()
    assert situ(*say, new, cwd=plant).code == 4
    assert "pump" not in [each["name"] for each in situ("client", "list", "--json", cwd=plant).data]


def test_what_a_removed_client_declared_is_withdrawn(situ: Situ, plant: Path) -> None:
    assert situ("client", "add", "keeper", cwd=plant).code == 0
    file = plant / ".situ" / "credentials" / "keeper.creds"
    wanted = ("subscribe", "Reading", "--durable", "kept", "--credentials", file, "--timeout", "2s")
    assert situ(*wanted, cwd=plant).code in (0, 1)
    assert "keeper/kept" in [each["name"] for each in situ("get", "subscriptions", "--json", cwd=plant).data]
    ran = situ("client", "remove", "keeper", cwd=plant)
    assert ran.code == 0
    assert "What it declared is withdrawn: subscription keeper/kept." in ran.err
    assert "keeper/kept" not in [each["name"] for each in situ("get", "subscriptions", "--json", cwd=plant).data]


def test_mistakes_are_told(situ: Situ, plant: Path) -> None:
    assert situ("client", "add", "twice", cwd=plant).code == 0
    kept = (plant / ".situ" / "credentials" / "twice.creds").read_text()
    again = situ("client", "add", "twice", cwd=plant)
    assert again.code == 3
    assert "D115" in again.err
    assert (plant / ".situ" / "credentials" / "twice.creds").read_text() == kept, "what it has still works"
    assert "D116" in situ("client", "remove", "nobody", cwd=plant).err
    assert "D117" in situ("client", "add", "a.b", cwd=plant).err
    assert situ("publish", "Reading", "--data", "{}", "--server", "nats://127.0.0.1:1", cwd=plant).code == 2
    missing = situ("client", "add", "far", "--out", "nowhere/far.creds", cwd=plant)
    assert missing.code == 3
    names = [each["name"] for each in situ("client", "list", "--json", cwd=plant).data]
    assert "far" not in names, "what cannot be written is not added"


def test_without_a_run_it_waits_for_the_next(situ: Situ, tmp_path: Path) -> None:
    folder = make_plant(tmp_path)
    ran = situ("client", "add", "early", cwd=folder)
    assert ran.code == 0
    assert "in force when one starts" in ran.err
    listed = situ("client", "list", cwd=folder)
    assert listed.out.splitlines()[1].startswith("early ")
    file = folder / ".situ" / "credentials" / "early.creds"
    with running(folder):
        ran = situ("publish", "Reading", "--data", READING, "--credentials", file, cwd=folder)
        assert ran.out.startswith("1 event stored as early.")


def test_a_server_of_ones_own_is_configured_by_what_is_printed(situ: Situ, tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "nats", token="")
    folder = make_plant(tmp_path / "plant", situ=f"bus:\n  nats: ['{server.url}']\n  credentials: run.key\n")
    (folder / "run.key").write_text(make_seed())
    ran = situ("client", "add", "gate", cwd=folder)
    assert ran.code == 0
    assert "situ client configuration" in ran.err
    printed = situ("client", "configuration", cwd=folder)
    (tmp_path / "nats" / "users.conf").write_text(printed.out)
    server._config = 'authorization { include "users.conf" }'
    server.start()
    try:
        with running(folder):
            file = folder / ".situ" / "credentials" / "gate.creds"
            ran = situ("publish", "Reading", "--data", READING, "--credentials", file, cwd=folder)
            assert ran.out.startswith("1 event stored as gate."), ran.err
            (tmp_path / "forged.creds").write_text(file.read_text().replace("client: gate", "client: desk"))
            ran = situ("publish", "Reading", "--data", READING, "--credentials", tmp_path / "forged.creds", cwd=folder)
            assert ran.code == 4
            assert "B115" in ran.err
    finally:
        server.kill()
