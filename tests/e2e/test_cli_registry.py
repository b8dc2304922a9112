"""``situ apply``, ``get``, ``add``, ``alter`` and ``remove``, as a user runs them."""

from __future__ import annotations

import asyncio
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from situ.bus.address import Address
from situ.bus.nats import open_bus
from situ.registry.snapshots import engine_alive, fetch_deployment, report_adopted, watch_deployments
from situ.settings import Settings
from tests.e2e.conftest import Ran, Situ


@pytest.fixture(scope="module")
def example(situ: Situ, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example") / "project"
    assert situ("init", folder).code == 0
    assert situ("apply", "--quiet", cwd=folder).code == 0
    return folder


@pytest.fixture
def applied(example: Path, tmp_path: Path) -> Path:
    """A new project, applied once."""
    return Path(shutil.copytree(example, tmp_path / "applied"))


def hot(situ: Situ, project: Path, command: str = "add", where: str = "temperature > 30 °C") -> Ran:
    return situ(command, "subscription", "desk/hot", "--types", "Reading", "--where", where, "--durable", cwd=project)


class TestApply:
    def test_first_and_again(self, situ: Situ, project: Path) -> None:
        first = situ("apply", cwd=project)
        assert first.code == 0
        assert "  + Reading" in first.out
        assert "Version 1, in force with the next `situ run`." in first.out
        again = situ("apply", cwd=project)
        assert (again.code, again.err) == (0, "")
        assert again.out.startswith("Nothing to apply: version 1 is what the folder declares")

    def test_dry_run_changes_nothing(self, situ: Situ, project: Path) -> None:
        dry = situ("apply", "--dry-run", cwd=project)
        assert dry.code == 0
        assert "  + Reading" in dry.out
        assert situ("get", "versions", "--json", cwd=project).data == []

    def test_json(self, situ: Situ, project: Path) -> None:
        done = situ("apply", "--json", cwd=project).data
        assert done["version"] == 1
        assert done["effect"] == {"engines": [], "waiting": [], "problems": []}
        assert ("event", "Reading", "added") in [(each["kind"], each["name"], each["what"]) for each in done["changes"]]
        assert situ("apply", "--json", cwd=project).data["changes"] == []
        assert situ("apply", "--dry-run", "--json", cwd=project).data == {"version": 1, "changes": [], "problems": []}

    def test_contexts_in_use(self, situ: Situ, applied: Path) -> None:
        """What is added is kept from those below or let through, what is changed is forked or refused."""
        us, ny = applied / "contexts" / "us.yaml", applied / "contexts" / "ny.yaml"
        us.parent.mkdir(exist_ok=True)
        us.write_text("context: us\nfunctions: {half: double °C -> double °C = value / 2}\n")
        ny.write_text("context: us.ny\nextends: us\n")
        people = "clients: {ann: {context: us.ny, subscriptions: {all: {types: [Reading]}}}}\n"
        (applied / "clients" / "people.yaml").write_text(people)
        assert situ("apply", "--quiet", cwd=applied).code == 0
        text = us.read_text() + "rules: {out: [Reading.temperature -> half]}\n"
        us.write_text(text)
        dry = situ("apply", "--dry-run", "--json", cwd=applied)
        assert (dry.code, [each["code"] for each in dry.data["problems"]]) == (0, ["INT505"])
        through = situ("apply", "--propagate", "--json", cwd=applied)
        assert (through.code, through.data["problems"]) == (0, [])
        us.write_text(text.replace("value / 2", "value / 4"))
        refused = situ("apply", "--no-fork", cwd=applied)
        assert (refused.code, refused.out) == (3, "")
        assert "INT504" in refused.err
        forked = situ("apply", "--json", cwd=applied)
        assert (forked.code, [each["code"] for each in forked.data["problems"]]) == (3, ["INT504"])
        assert situ("get", "context", "us.v2", "--json", cwd=applied).data["origin"] == "api"

    def test_a_folder_with_errors_is_refused(self, situ: Situ, broken_project: Path) -> None:
        refused = situ("apply", cwd=broken_project)
        assert (refused.code, refused.out) == (3, "")
        assert "types/events.yaml:4" in refused.err
        assert not (broken_project / ".situ" / "registry.db").exists()

    def test_what_was_added_stays_and_may_be_in_the_way(self, situ: Situ, applied: Path) -> None:
        assert hot(situ, applied).code == 0
        client = "clients: {desk: {subscriptions: {hot: {types: [Reading]}}}}\n"
        (applied / "clients" / "desk.yaml").write_text(client)
        refused = situ("apply", cwd=applied)
        assert refused.code == 3
        assert "clients/desk.yaml:1:1: error D103" in refused.err
        assert "situ remove subscription desk/hot" in refused.err
        (applied / "clients" / "desk.yaml").unlink()
        assert situ("apply", cwd=applied).out.startswith("Nothing to apply: version 2")

    def test_what_was_added_is_taken_over_if_it_is_the_same(self, situ: Situ, applied: Path) -> None:
        assert hot(situ, applied).code == 0
        got = situ("get", "subscription", "desk/hot", cwd=applied)
        (applied / "clients" / "desk.yaml").write_text(got.out)
        assert situ("apply", cwd=applied).code == 0
        found = situ("get", "subscription", "desk/hot", "--json", cwd=applied).data
        assert (found["origin"], found["file"], found["version"]) == ("folder", "clients/desk.yaml", 2)

    def test_history(self, situ: Situ, applied: Path) -> None:
        (applied / "types" / "more.yaml").write_text("events: {Alarm: {why: string}}\n")
        assert situ("apply", "--reason", "alarms", cwd=applied).code == 0
        latest, *earlier = situ("get", "changes", "--json", cwd=applied).data
        assert latest["who"]
        assert {**latest, "who": "", "at": ""} == {
            "at": "",
            "who": "",
            "deployment": 2,
            "kind": "event",
            "name": "Alarm",
            "from": None,
            "to": 1,
            "state": "active",
            "reason": "alarms",
        }
        assert {(each["deployment"], each["reason"]) for each in earlier} == {(1, "")}
        shown = situ("get", "changes", "2", cwd=applied).out.splitlines()
        assert len(shown) == 3
        assert "event Alarm added" in shown[2]


class TestChange:
    def test_added_altered_removed(self, situ: Situ, applied: Path) -> None:
        added = hot(situ, applied)
        assert (added.code, added.err) == (0, "")
        assert "  + desk/hot" in added.out
        assert added.out.endswith("Version 2, in force with the next `situ run`.\n")
        altered = hot(situ, applied, "alter", "temperature > 35 °C")
        assert "temperature > 30 °C → temperature > 35 °C" in altered.out
        removed = situ("remove", "subscription", "desk/hot", "--reason", "winter", "--json", cwd=applied)
        assert removed.data["version"] == 4
        assert situ("get", "changes", "--json", cwd=applied).data[0]["reason"] == "winter"

    def test_a_filter_that_does_not_fit_is_refused_with_its_place(self, situ: Situ, applied: Path) -> None:
        refused = hot(situ, applied, where="temprature > 30 °C")
        assert refused.code == 3
        assert "subscription desk/hot:1:" in refused.err
        assert "error INT602" in refused.err
        assert "Did you mean `temperature`?" in refused.err
        as_json = situ("add", "subscription", "a/b", "--types", "No", "--json", cwd=applied)
        assert (as_json.code, as_json.data["problems"][0]["code"]) == (3, "INT601")

    def test_from_a_file_and_from_standard_input(self, situ: Situ, applied: Path) -> None:
        (applied / "alarm.yml").write_text("events:\n  Alarm(Reading): {why: string}\n")
        assert situ("add", "event", "Alarm", "--file", "alarm.yml", cwd=applied).code == 0
        shown = situ("get", "event", "Alarm", cwd=applied)
        assert "Alarm(Reading): {why: string}" in shown.out
        edited = shown.out.replace("why: string", "why: string, how: optional int")
        altered = situ("alter", "event", "Alarm", "--file", "-", cwd=applied, stdin=edited.encode())
        assert "+ how: optional int" in altered.out
        other = situ("add", "event", "Alert", "--file", "alarm.yml", cwd=applied)
        assert other.code == 3
        assert "error D110" in other.err

    def test_functions_units_clients_and_advertisements(self, situ: Situ, applied: Path) -> None:
        for arguments in (
            ("unit", "floor", "--as", "label"),
            ("function", "warm", "--as", "(t: double °C) -> boolean = t > 25 °C"),
            ("client", "cellar"),
            ("advertisement", "cellar/air", "--type", "Reading"),
        ):
            done = situ("add", *arguments, cwd=applied)
            assert (done.code, done.err) == (0, ""), done
        for kind in ("units", "functions", "clients", "advertisements"):
            assert "api" in situ("get", kind, cwd=applied).out

    @pytest.mark.parametrize(
        "arguments",
        [
            ("add", "event", "Alarm"),
            ("add", "event", "Alarm", "--types", "x"),
            ("add", "subscription", "a/b", "--types", "Reading", "--file", "x.yaml"),
            ("add", "settings", "situ.yaml", "--file", "x.yaml"),
            ("add", "event", "Alarm", "--file", "not-there.yaml"),
            ("get", "things"),
            ("get", "version", "three"),
        ],
    )
    def test_wrong_usage(self, situ: Situ, applied: Path, arguments: tuple[str, ...]) -> None:
        wrong = situ(*arguments, cwd=applied)
        assert (wrong.code, wrong.out) == (2, "")

    def test_nothing_of_that_name(self, situ: Situ, applied: Path) -> None:
        for command in ("get", "remove"):
            unknown = situ(command, "event", "Raeding", cwd=applied)
            assert unknown.code == 1
            assert "Did you mean `Reading`?" in unknown.err
        assert situ("get", "version", "9", cwd=applied).code == 1

    def test_before_the_first_apply(self, situ: Situ, project: Path) -> None:
        early = hot(situ, project)
        assert early.code == 3
        assert "error D107" in early.err
        none = situ("get", "subscriptions", cwd=project)
        assert (none.code, none.out, none.err) == (0, "", "There is none.\n")

    def test_what_is_in_force_is_shown_while_the_folder_has_errors(self, situ: Situ, applied: Path) -> None:
        (applied / "types" / "more.yaml").write_text("events: {Bad: {a: nothing}}\n")
        assert situ("get", "event", "Reading", cwd=applied).code == 0
        assert situ("apply", cwd=applied).code == 3

    def test_every_version_can_be_had(self, situ: Situ, applied: Path) -> None:
        hot(situ, applied)
        first = situ("get", "version", "1", cwd=applied).data
        second = situ("get", "version", "2", cwd=applied).data
        assert (first["version"], second["version"]) == (1, 2)
        assert second["subscriptions"].keys() - first["subscriptions"].keys() == {"desk/hot"}
        assert len(situ("get", "versions", cwd=applied).out.splitlines()) == 4


class TestTrouble:
    def test_a_locked_registry(self, situ: Situ, applied: Path) -> None:
        holder = sqlite3.connect(applied / ".situ" / "registry.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        locked = hot(situ, applied)
        holder.close()
        assert locked.code == 4
        assert "error D104" in locked.err

    def test_a_registry_that_is_not_there(self, situ: Situ, project: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        with (project / "situ.yaml").open("a") as file:
            file.write(f"registry: postgresql+psycopg://ann:hush@127.0.0.1:{port}/plant\n")
        for command in (("apply",), ("get", "versions")):
            away = situ(*command, cwd=project)
            assert away.code == 4
            assert "error D105" in away.err
            assert "hush" not in away.err

    def test_a_registry_of_a_newer_release(self, situ: Situ, applied: Path) -> None:
        with sqlite3.connect(applied / ".situ" / "registry.db") as database:
            database.execute("UPDATE registry_format SET version_num = '9999'")
        database.close()
        newer = situ("apply", cwd=applied)
        assert newer.code == 3
        assert "error D106" in newer.err

    def test_settings_that_are_wrong(self, situ: Situ, applied: Path) -> None:
        with (applied / "situ.yaml").open("a") as file:
            file.write("registry: ${SITU_TEST_NOT_SET}\n")
        wrong = situ("get", "versions", cwd=applied)
        assert wrong.code == 3
        assert "error P109" in wrong.err


class TestRunning:
    """With a bus and an engine at work."""

    def test_a_change_is_waited_for(self, situ: Situ, applied: Path) -> None:
        with bus(applied) as address, engine(address, adopts=True):
            done = hot(situ, applied)
            assert (done.code, done.err) == (0, "")
            assert done.out.endswith("Version 2, in force in edge.\n")
            # `bus:` in situ.yaml is new, so that there is something to apply.
            assert situ("apply", cwd=applied).out.endswith("Version 3, in force in edge.\n")
            again = situ("apply", cwd=applied).out
            assert again == "Nothing to apply: version 3 is what the folder declares, in force in edge.\n"

    def test_engines_that_do_not_adopt_are_named(self, situ: Situ, applied: Path) -> None:
        with bus(applied) as address, engine(address, adopts=False):
            late = hot(situ, applied)
        assert late.code == 0
        assert "Version 2, not in force yet." in late.out
        assert "warning D201" in late.err
        assert "`edge`" in late.err

    def test_a_bus_that_is_away_does_not_keep_a_change_from_being_stored(self, situ: Situ, applied: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        with (applied / "situ.yaml").open("a") as file:
            file.write(f"bus: nats://127.0.0.1:{port}\n")
        done = hot(situ, applied)
        assert done.code == 0
        assert "Version 2, in force with the next `situ run`." in done.out
        assert "error B101" in done.err


@contextmanager
def bus(project: Path) -> Iterator[Address]:
    """A bus of its own, which the project is told to use."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = shutil.which("nats-server", path=str(Path(sys.executable).parent))
    assert program is not None
    command = [program, "-js", "-sd", str(project / ".situ" / "nats"), "-a", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            break
        time.sleep(0.05)
    with (project / "situ.yaml").open("a") as file:
        file.write(f"bus: nats://127.0.0.1:{port}\n")
    yield Address(zone="main", servers=(f"nats://127.0.0.1:{port}",))
    server.terminate()
    server.wait(30)


@contextmanager
def engine(address: Address, *, adopts: bool) -> Iterator[None]:
    """An engine that does nothing but live, and adopt what is published if it is told to."""
    ready, stop = threading.Event(), threading.Event()

    async def live() -> None:
        connection = await open_bus(address, name="engine")
        await connection.prepare(Settings())
        async with engine_alive(connection, "edge"):
            await report_adopted(connection, "edge", 0)
            ready.set()
            adopting = asyncio.create_task(adopt(connection)) if adopts else None
            while not stop.is_set():
                await asyncio.sleep(0.05)
            if adopting is not None:
                adopting.cancel()
                await asyncio.wait([adopting])
        await connection.close()

    async def adopt(connection: object) -> None:
        async for found in watch_deployments(connection):  # type: ignore[arg-type]
            deployment = await fetch_deployment(connection, found.version)  # type: ignore[arg-type]
            await report_adopted(connection, "edge", deployment.version)  # type: ignore[arg-type]

    thread = threading.Thread(target=lambda: asyncio.run(live()))
    thread.start()
    assert ready.wait(30)
    yield
    stop.set()
    thread.join(30)
