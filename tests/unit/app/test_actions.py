"""The parts of acting: what is kept on disk, what a request looks like on the wire, when it is tried again."""

from __future__ import annotations

import json
import logging
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from situ.app.action_queue import ACTIONS, AGAIN, FAILED, QUEUE, WAITING, ActionQueue, ActionRequest
from situ.app.action_worker import ACTION_LOG, ActionLog, RetrySettings, facts_of, requests_in, situation_of
from situ.app.webhook import build_request, host_of
from situ.event.lines import encode_row
from situ.event.message import StoredMessage, join_lines, position
from situ.event.row import Row
from situ.lang.records import replace
from situ.policies.actions.invocations import ActionInvocation
from situ.policies.actions.templates import parse_template, render_text

ABOUT = {
    "verb": "webhook",
    "action": "call",
    "policy": "alone",
    "situation": "s1",
    "detection": "d1",
    "time": "2026-11-15T12:00:00.5Z",
    "number": 0,
    "place": 1,
    "digest": "x",
    "bindings": [{"alias": "A", "concept": "person", "id": "g1"}],
    "attributes": '{"A": {"id": "g1", "age": 30.0}}',
}


def request(key: str = "d1-0.1", pos: int = 7) -> ActionRequest:
    return ActionRequest(key=key, pos=pos, about=ABOUT)


def row(id: str, type: str = "situ.action") -> Row:
    data = json.dumps(ABOUT).encode()
    return Row(0, "alone", 1, 1, "root", 0, id, "alone", type, 0, "", None, "", data)


def stored(*rows: Row) -> StoredMessage:
    return StoredMessage(seq=3, subject="s", body=join_lines([encode_row(each) for each in rows]), headers={}, at=0)


# ── from the log ──────────────────────────────────────────────────────────────────────────────────


def test_requests_are_found_among_other_events() -> None:
    found = requests_in(stored(row("x", "situ.situation.opened"), row("d1-0.1"), row("d1-0.2")))
    assert [(each.key, each.pos) for each in found] == [("d1-0.1", position(3, 1)), ("d1-0.2", position(3, 2))]
    assert found[0].about == ABOUT
    assert requests_in(stored(row("x", "Note"))) == []


def test_a_key_that_would_leave_its_folder_is_none(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "situ.host"):
        assert [each.key for each in requests_in(stored(row("../../x"), row("d1-0.1")))] == ["d1-0.1"]
    assert "../../x" in caplog.text


# ── on disk ───────────────────────────────────────────────────────────────────────────────────────


def test_how_far_the_log_was_read_is_kept(tmp_path: Path) -> None:
    assert ActionQueue(tmp_path).reached() is None
    ActionQueue(tmp_path).reach(12)
    assert ActionQueue(tmp_path).reached() == 12


@pytest.mark.parametrize("damaged", [b"no database" * 1000, None], ids=["text", "of a later release"])
def test_a_damaged_queue_is_put_aside_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damaged: bytes | None
) -> None:
    ActionQueue(tmp_path).reach(12)
    if damaged is None:
        with closing(sqlite3.connect(tmp_path / QUEUE)) as database:
            database.execute("PRAGMA user_version = 99")
    else:
        for file in (tmp_path / ACTIONS).iterdir():
            file.unlink()
        (tmp_path / QUEUE).write_bytes(damaged)
    asked = ActionQueue(tmp_path)
    assert asked.reached() is None
    assert "cannot be read" in caplog.text
    assert not list((tmp_path / ACTIONS).glob("damaged-*")), "to look at it changes nothing"
    asked.take([request()], 7)
    assert asked.all(WAITING) == [request()]
    assert (tmp_path / ACTIONS / f"damaged-{QUEUE.name}").exists()


def test_looking_at_a_project_that_asked_for_nothing_makes_nothing(tmp_path: Path) -> None:
    asked = ActionQueue(tmp_path)
    assert (asked.reached(), asked.all(FAILED), asked.count(WAITING), asked.find("x")) == (None, [], 0, None)
    assert list(tmp_path.iterdir()) == []


def test_requests_come_back_in_the_order_of_the_log(tmp_path: Path) -> None:
    asked = ActionQueue(tmp_path)
    kept = [request("a", 9), request("c", 1), request("b", 4)]
    asked.take(kept, 10)
    assert asked.all(WAITING) == ActionQueue(tmp_path).all(WAITING) == [kept[1], kept[2], kept[0]]
    assert asked.reached() == 10


def test_what_the_log_asks_for_again_is_not_begun_again(tmp_path: Path) -> None:
    asked = ActionQueue(tmp_path)
    asked.take([request()], 7)
    asked.fail(replace(request(), attempts=12))
    asked.take([request()], 7)
    assert (asked.count(WAITING), asked.count(FAILED)) == (0, 1)


def test_files_of_a_release_before_are_taken_over_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def write(file: str, content: dict[str, Any] | str) -> None:
        path = tmp_path / ACTIONS / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps({"format": 1, **content}))

    def stored(key: str, pos: int, attempts: int = 0) -> dict[str, Any]:
        return {"key": key, "pos": pos, "about": ABOUT, "attempts": attempts, "target": "", "problem": {}}

    write("waiting/a.json", stored("a", 3))
    write("waiting/b.json", stored("b", 1))
    write("tried/b.json", stored("b", 1, attempts=4))
    write("tried/gone.json", stored("gone", 1, attempts=4))
    write("failed/c.json", stored("c", 2, attempts=12))
    write("again/d.json", stored("d", 9, attempts=12))
    write("waiting/e.json", "{")
    write("cursor.json", {"reached": 40})
    asked = ActionQueue(tmp_path)
    assert asked.all(WAITING) == [replace(request("b", 1), attempts=4), request("a", 3)]
    assert asked.all(FAILED) == [replace(request("c", 2), attempts=12)]
    assert asked.all(AGAIN) == [replace(request("d", 9), attempts=12)]
    assert asked.reached() == 40
    assert "e.json cannot be read" in caplog.text
    assert not list((tmp_path / ACTIONS).rglob("*.json"))
    write("waiting/a.json", stored("a", 3))  # as if the process had died before it removed them
    asked.drop("a")
    assert [each.key for each in ActionQueue(tmp_path).all(WAITING)] == ["b"]


def test_threads_and_processes_share_it(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        queues = [ActionQueue(tmp_path) for _ in range(4)]
        list(threads.map(lambda n: queues[n % 4].take([request(f"k{n}", n)], n), range(200)))
    assert [each.pos for each in ActionQueue(tmp_path).all(WAITING)] == list(range(200))


def test_a_request_goes_from_waiting_to_failed_and_back(tmp_path: Path) -> None:
    asked = ActionQueue(tmp_path)
    asked.take([request()], 7)
    asked.fail(request())
    assert (asked.count(WAITING), asked.count(FAILED)) == (0, 1)
    assert asked.again("d1-0.1")
    assert not asked.again("d1-0.1")
    assert asked.find("d1-0.1") == (request(), AGAIN)
    assert asked.taken_again() == [request()]
    assert asked.is_waiting("d1-0.1")
    assert asked.taken_again() == []
    assert asked.drop("d1-0.1", WAITING)
    assert not asked.drop("d1-0.1", WAITING)


def test_what_was_dropped_does_not_come_back_with_what_became_of_it(tmp_path: Path) -> None:
    asked = ActionQueue(tmp_path)
    asked.take([request()], 7)
    tried = replace(request(), attempts=2)
    asked.note(tried)
    assert list(asked.all(WAITING)) == [tried]
    assert asked.find("d1-0.1") == (tried, WAITING)
    asked.drop("d1-0.1", WAITING)
    asked.note(replace(tried, attempts=3))
    assert list(asked.all(WAITING)) == []
    asked.fail(replace(tried, attempts=4))
    assert list(asked.all(FAILED)) == []


# ── the log of actions ────────────────────────────────────────────────────────────────────────────


def test_the_log_knows_its_keys_over_several_files(tmp_path: Path) -> None:
    log = ActionLog(tmp_path, size=100)
    for number in range(6):
        log.write("2026-11-15T12:00:00Z", "info", "alone", f"text [k{number + 1}] and more", f"k{number}")
    files = sorted(file.name for file in (tmp_path / ACTION_LOG).parent.iterdir())
    assert files == ["actions.log", "actions.log.1", "actions.log.2"]
    assert log.holds(["k0", "k5", "k6"]) == {"k0", "k5"}  # what a text says is no key


def test_of_the_oldest_lines_some_go(tmp_path: Path) -> None:
    log = ActionLog(tmp_path, size=10)
    for number in range(6):
        log.write("2026-11-15T12:00:00Z", "info", "alone", "text", f"k{number}")
    assert log.holds(f"k{number}" for number in range(6)) == {"k2", "k3", "k4", "k5"}


# ── on the wire ───────────────────────────────────────────────────────────────────────────────────


def wire(url: str, **more: object) -> list[str]:
    deed = ActionInvocation(
        **{"key": "k", "verb": "webhook", "target": url, "body": {"a": "ü"}, "method": "POST", **more}
    )  # type: ignore[arg-type]
    made = build_request(deed)
    head = [f"{made.method} {made.url.raw_path.decode()} HTTP/1.1"]
    head += [f"{name.decode()}: {value.decode()}" for name, value in made.headers.raw]
    return [*head, "", made.content.decode()]


def test_a_request_has_its_key_and_its_length() -> None:
    head = wire("https://user:p%40ss@example.org:8443/räume/x%2Fy?a=b&c=%20")
    assert head[0] == "POST /r%C3%A4ume/x%2Fy?a=b&c=%20 HTTP/1.1"
    assert "Host: example.org:8443" in head
    assert "Idempotency-Key: k" in head
    assert "Content-Length: 11" in head
    assert "Content-Type: application/json" in head
    assert "Authorization: Basic dXNlcjpwQHNz" in head
    assert head[-2:] == ["", '{"a": "ü"}']


def test_what_is_declared_counts() -> None:
    head = wire("http://a.example", headers=(("Content-Type", "text/plain"), ("Authorization", "Bearer x")))
    assert head[0] == "POST / HTTP/1.1"
    assert [line for line in head if line.startswith(("Content-Type", "Authorization"))] == [
        "Content-Type: text/plain",
        "Authorization: Bearer x",
    ]


def test_a_get_has_no_body() -> None:
    head = wire("http://a.example/x", method="GET")
    assert head[-2:] == ["", ""]
    assert not [line for line in head if line.startswith("Content-")]


def test_hosts_are_told_apart_by_port() -> None:
    assert host_of("https://a.example/x") == host_of("https://u@a.example:443/y") == "a.example:443"
    assert host_of("http://a.example") != host_of("https://a.example")
    assert host_of("no address") == "no address"


# ── how ───────────────────────────────────────────────────────────────────────────────────────────


def test_pauses_double_up_to_the_longest() -> None:
    manner = RetrySettings(pause=1.0, longest=60.0)
    assert [manner.before(attempt) for attempt in (2, 3, 4, 8, 9, 10_000)] == [1.0, 2.0, 4.0, 60.0, 60.0, 60.0]


def test_templates_say_what_was_known_then() -> None:
    template = parse_template("{A} {A.age} {time} {policy} {detection} ${TOKEN}", lambda start, length: None)
    facts = facts_of(request(), {"TOKEN": "s"})
    assert render_text(template, facts) == "g1 30 2026-11-15T12:00:00.500000Z alone d1 s"


def test_without_data_the_situation_is_sent() -> None:
    assert situation_of(request()) == {
        "policy": "alone",
        "situation": "s1",
        "detection": "d1",
        "time": "2026-11-15T12:00:00.5Z",
        "bindings": {"A": {"concept": "person", "id": "g1", "attributes": {"age": 30.0}}},
    }
