"""``situ run``: up, down, killed, refused; whatever ends it, the next one starts."""

from __future__ import annotations

import json
import signal
import socket
import time
from pathlib import Path

import psutil
import pytest

from tests.e2e.conftest import PATIENCE, Situ
from tests.e2e.runs import children, in_terminal, make_plant, running, servers_of, started

READING = json.dumps({"sensor": "s1", "value": 31.5})


@pytest.fixture
def plant(tmp_path: Path) -> Path:
    return make_plant(tmp_path / "plant")


def published(situ: Situ, plant: Path, data: str = READING) -> str:
    ran = situ("publish", "Reading", "--client", "sensor", "--data", data, "--json", cwd=plant)
    assert ran.code == 0, ran.err
    return str(ran.data["last"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stops_in_order_when_asked(situ: Situ, plant: Path, number: int) -> None:
    with running(plant) as run:
        assert situ("status", cwd=plant).code == 0
        run.send(number)
        assert run.end() == 0
        last = run.figures[-1]
        assert (last["state"], last["engine"], last["version"]) == ("stopped", "edge", 1)
    assert run.err == ""
    ran = situ("status", cwd=plant)
    assert (ran.code, ran.out) == (1, "plant · zone main · nothing runs; start it with `situ run`\n")
    assert servers_of(plant) == []


def test_stops_by_itself_after_the_time_given_and_sums_up(situ: Situ, plant: Path) -> None:
    with started("run", "--for", "1s", cwd=plant) as run:
        run.until("plant runs with the edge engine. Ctrl-C stops it.\n")
        assert run.end() == 0
    assert run.lines[-1].startswith("0 events accepted, 0 delivered, 0 dead letters · ")
    assert run.err == ""


def test_says_nothing_if_it_is_to_be_quiet(plant: Path) -> None:
    with started("run", "--for", "500ms", "--quiet", cwd=plant) as run:
        assert run.end() == 0
    assert (run.out, run.err) == ("", "")


def test_second_run_on_a_folder_is_refused_with_the_process_of_the_first(situ: Situ, plant: Path) -> None:
    with running(plant) as run:
        ran = situ("run", cwd=plant)
        assert (ran.code, ran.out) == (3, "")
        assert f"error P120: `{plant}` is in use by another run, process {run.pid}." in ran.err
        assert run.stop() == 0


def test_counts_what_it_carries(situ: Situ, plant: Path) -> None:
    with running(plant) as run:
        published(situ, plant)
        published(situ, plant, json.dumps({"sensor": "s1", "value": 3.5}))
        assert run.stop() == 0
    last = run.figures[-1]
    assert (last["taken"], last["types"], last["dead"], last["codes"]) == (2, {"Reading": 2}, 0, {})
    assert last["subscriptions"] == {"board/hot": 1, "panel/all": 2}
    assert last["delivered"] == 3
    assert set(last["memory"]) == {"situ", "bus"}


def test_what_was_stored_is_there_after_a_kill(situ: Situ, plant: Path) -> None:
    """SIGKILL takes the bus along; the next run starts as if nothing was, and delivers what waited."""
    with running(plant) as run:
        keys = [published(situ, plant)]
        run.send(signal.SIGKILL)
        assert run.end() == -signal.SIGKILL
    with running(plant) as run:
        keys.append(published(situ, plant))
        ran = situ("subscribe", "--client", "board", "--durable", "hot", "--limit", "2", "--json", cwd=plant)
        assert [json.loads(line)["situkey"] for line in ran.out.splitlines()] == keys
        assert run.stop() == 0
    assert servers_of(plant) == []


def test_killed_at_any_moment_of_its_start_it_starts_again(situ: Situ, plant: Path) -> None:
    for pause in (0.05, 0.15, 0.25, 0.4, 0.6):
        with running(plant, wait=False) as run:
            time.sleep(pause)
            run.send(signal.SIGKILL)
            run.end()
    with running(plant) as run:
        published(situ, plant)
        assert run.stop() == 0


def test_a_bus_that_dies_is_started_again_and_the_run_goes_on(situ: Situ, plant: Path) -> None:
    with running(plant) as run:
        before = published(situ, plant)
        (server,) = children(run.pid, "nats-server")
        server.kill()
        after = published(situ, plant)
        ran = situ("subscribe", "--client", "board", "--durable", "hot", "--limit", "2", "--json", cwd=plant)
        assert [json.loads(line)["situkey"] for line in ran.out.splitlines()] == [before, after]
        assert run.stop() == 0
    assert "starting it again" in (plant / ".situ" / "logs" / "situ.log").read_text()


def test_second_interrupt_ends_at_once(plant: Path) -> None:
    with running(plant) as run:
        (server,) = children(run.pid, "nats-server")
        server.suspend()  # so that the run waits for it in vain
        try:
            run.send(signal.SIGINT)
            run.until('"state": "stopping"')
            run.send(signal.SIGINT)
            assert run.end(within=5) == 130
        finally:
            server.resume()
    psutil.wait_procs([server], timeout=PATIENCE)
    with running(plant) as run:
        assert run.stop() == 0


def test_project_with_errors_is_refused(situ: Situ, broken_project: Path) -> None:
    ran = situ("run", cwd=broken_project)
    assert (ran.code, ran.out) == (3, "")
    assert "types/events.yaml:4:" in ran.err
    assert not (broken_project / ".situ" / "lock").exists()


def test_bus_that_is_down_at_the_start_is_waited_for_and_then_given_up(situ: Situ, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    plant = make_plant(tmp_path / "plant", situ=f"bus: nats://127.0.0.1:{port}\n")
    ran = situ("run", "--wait", "1s", cwd=plant)
    assert (ran.code, ran.out) == (4, "")
    assert f"The bus at nats://127.0.0.1:{port} cannot be reached" in ran.err
    assert "Trying for another" in ran.err
    assert "error B101: " in ran.err
    # Nothing is held: it is refused for the same reason again.
    assert situ("run", "--wait", "0s", cwd=plant).code == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--for", "soon"], "`soon` is no duration"),
        (["--for", "5 m"], "minutes are written `min`"),
        (["--engine", "steam"], "'steam' is not one of 'spark', 'edge'"),
    ],
)
def test_wrong_usage(situ: Situ, plant: Path, arguments: list[str], said: str) -> None:
    ran = situ("run", *arguments, cwd=plant)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_machine_without_java_is_told_what_to_install(plant: Path, tmp_path: Path) -> None:
    with started("run", "--engine", "spark", cwd=plant, env={"JAVA_HOME": str(tmp_path)}) as run:
        assert run.end() == 5
    assert "error N103: The Spark engine cannot start: no Java runtime was found" in run.err
    assert servers_of(plant) == []


def test_on_a_terminal_it_draws_and_leaves_the_terminal_as_it_was(plant: Path) -> None:
    code, text = in_terminal("run", "--for", "2s", cwd=plant)
    assert code == 0
    assert "Ctrl-C stops it." in text
    assert "accepted" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor is shown again
    assert "events accepted" in text[text.rindex("\x1b[?25h") :]


def test_spark_finishes_and_goes_on_in_the_next_run_and_a_dead_java_is_told(situ: Situ, plant: Path) -> None:
    """Asked to stop with the whole group of processes, as service managers do, it still stops in order."""
    with running(plant, "--engine", "spark") as run:
        keys = [published(situ, plant)]
        for process in (psutil.Process(run.pid), *children(run.pid, "java")):
            process.send_signal(signal.SIGINT)
        assert run.end() == 0
    with running(plant, "--engine", "spark") as run:
        keys += [published(situ, plant) for _ in range(2)]
        ran = situ("subscribe", "--client", "board", "--durable", "hot", "--limit", "3", "--json", cwd=plant)
        assert [json.loads(line)["situkey"] for line in ran.out.splitlines()] == keys
        ran = situ("status", "--json", cwd=plant)
        assert ran.data["engines"]["spark"]["adopted"] == 1
        (java,) = children(run.pid, "java")
        java.kill()
        assert run.end() == 5
    (problem,) = json.loads(run.lines[-1])["problems"]
    assert problem["code"] == "N102"
    assert problem["message"].startswith("The spark engine stopped: ")
    assert run.err == ""
    assert servers_of(plant) == []
