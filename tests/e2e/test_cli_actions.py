"""``situ actions``: what waits and what failed, tried again and dropped; and a run that is killed while it acts."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from situ.app.action_queue import FAILED, WAITING, ActionQueue, ActionRequest
from situ.app.action_worker import ACTION_LOG
from tests.e2e.conftest import PATIENCE, Situ
from tests.e2e.runs import make_plant, running
from tests.guarded import FILES
from tests.project_files import write

POLICY = """policy intruder
window 1 s
concepts
  person A (status = 'guest')
  room R (security = 'restricted')
conditions
  A is inside R
actions
  call
"""


def asked_for(key: str, **more: Any) -> ActionRequest:
    about = {
        "verb": "webhook",
        "action": "call",
        "policy": "intruder",
        "situation": "a1",
        "detection": "a1",
        "time": "2026-11-15T12:00:00Z",
        "number": 0,
        "place": 0,
        "digest": "d",
        "bindings": [{"alias": "A", "concept": "person", "id": "g1"}],
        "attributes": "{}",
    }
    return ActionRequest(key=key, pos=int(key[1:]), about=about, **more)


@pytest.fixture
def plant(tmp_path: Path) -> Path:
    """Nothing runs here; two actions wait, one failed."""
    folder = make_plant(tmp_path)
    asked = ActionQueue(folder)
    problem = {"code": "S721", "message": "`call` was not done.", "hint": "Put it right."}
    asked.take(map(asked_for, ("k1", "k2", "k3")), 1)
    asked.fail(asked_for("k1", target="https://a.example/x", attempts=12, problem=problem))
    return folder


def test_they_are_listed_and_shown_without_a_run(situ: Situ, plant: Path) -> None:
    found = situ("actions", "list", "--json", cwd=plant).data
    assert [(each["key"], each["state"]) for each in found] == [("k1", "failed"), ("k2", "waiting"), ("k3", "waiting")]
    assert situ("actions", "list", "--state", "failed", "--json", cwd=plant).data == found[:1]
    assert situ("actions", "list", "--policy", "nobody", cwd=plant).out == "No actions wait, and none failed.\n"
    shown = situ("actions", "list", cwd=plant).out
    assert "k1" in shown
    assert shown.endswith("\n3 actions\n")
    one = situ("actions", "show", "k1", cwd=plant).out
    assert "webhook https://a.example/x" in one
    assert "S721 `call` was not done.\n  hint: Put it right." in one
    assert situ("actions", "show", "k1", "--json", cwd=plant).data == found[0]
    assert situ("status", "--json", cwd=plant).data["actions"] == {"waiting": 2, "failed": 1}
    assert "2 actions waiting, 1 failed; see `situ actions list`" in situ("status", cwd=plant).out


def test_they_are_tried_again_and_dropped(situ: Situ, plant: Path) -> None:
    ran = situ("actions", "retry", "k1", cwd=plant)
    assert (ran.code, ran.out) == (0, "1 action to be done again, when `situ run` runs\n")
    assert situ("actions", "list", "--state", "failed", "--json", cwd=plant).data == []
    assert situ("actions", "drop", "k1", "k2", cwd=plant).out == "2 actions dropped\n"
    (left,) = situ("actions", "list", "--json", cwd=plant).data
    assert left["key"] == "k3"
    assert situ("actions", "retry", "--all", "--json", cwd=plant).data == {"again": []}


@pytest.mark.parametrize("arguments", [("retry", "k2"), ("show", "nothing"), ("drop", "../../../situ.yaml")])
def test_what_is_not_there_is_said(situ: Situ, plant: Path, arguments: tuple[str, ...]) -> None:
    ran = situ("actions", *arguments, cwd=plant)
    assert ran.code == 1
    assert "P171" in ran.err
    assert (plant / "situ.yaml").exists()


def test_some_are_named_or_all(situ: Situ, plant: Path) -> None:
    assert situ("actions", "retry", cwd=plant).code == 2
    assert situ("actions", "drop", "k1", "--all", cwd=plant).code == 2


class Server(ThreadingHTTPServer):
    """Answers with ``status``; None: not before it is told to end."""

    daemon_threads = True
    status: int | None = 404
    keys: list[str]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Server)
        self.server.keys.append(self.headers["Idempotency-Key"])
        while self.server.status is None:
            time.sleep(0.05)
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as found:
        found.keys = []
        serving = threading.Thread(target=found.serve_forever)
        serving.start()
        yield found
        found.status = 500
        found.shutdown()
        serving.join()


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.05)


@pytest.mark.parametrize("engine", ["edge", "spark"])
def test_a_run_acts_and_goes_on_after_it_was_killed(situ: Situ, tmp_path: Path, server: Server, engine: str) -> None:
    url = f"http://127.0.0.1:{server.server_address[1]}/alarm"
    more = {name: text for name, text in FILES.items() if not name.startswith(("policies/", "actions"))}
    more["situ.yaml"] = "name: guarded\nengine: edge\ndefaults: {lateness: 100 ms, idle: 300 ms}\n"
    more["policies/intruder.dpl"] = POLICY
    more["actions.yaml"] = f'actions: {{call: [{{webhook: "{url}"}}, {{log: "{{A}} is in {{R}}"}}]}}\n'
    write(tmp_path, more)
    asked = ActionQueue(tmp_path)

    def see(who: str) -> None:
        line = json.dumps({"who": who, "at": {"x": 5.0, "y": 5.0}}).encode()
        assert situ("publish", "Sighting", "--client", "reader", "--file", "-", cwd=tmp_path, stdin=line).code == 0

    with running(tmp_path, "--engine", engine) as run:
        see("g1")
        until(lambda: asked.count(FAILED) == 1)
        (failed,) = situ("actions", "list", "--json", cwd=tmp_path).data
        assert failed["problem"]["code"] == "S721"
        assert failed["target"] == url
        server.status = 200
        assert situ("actions", "retry", failed["key"], cwd=tmp_path).out == "1 action to be done again\n"
        until(lambda: server.keys == [failed["key"]] * 2 and not asked.count(FAILED) + asked.count(WAITING))
        server.status = None
        see("g2")
        until(lambda: len(server.keys) == 3)
        run.send(signal.SIGKILL)
        run.end()
    server.status = 200
    with running(tmp_path, "--engine", engine) as run:
        until(lambda: len(server.keys) == 4 and not asked.count(WAITING))
        assert server.keys[2] == server.keys[3]
        lines = (tmp_path / ACTION_LOG).read_text().splitlines()
        assert [line.partition(": ")[2].partition(" [")[0] for line in lines] == ["g1 is in lab", "g2 is in lab"]
        assert run.stop() == 0
