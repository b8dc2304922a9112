"""What policies ask for is done: once, in order, again after a crash with the same key, and kept where it fails."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from situ.app.action_queue import FAILED, WAITING, ActionQueue, ActionRequest
from situ.app.action_worker import ACTION_LOG, ActionWorker, RetrySettings
from situ.app.webhook import WebhookResponse, send_request
from situ.bus.memory import MemoryBus
from situ.event.lines import encode_row
from situ.event.message import Message, join_lines
from situ.event.row import Row
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.policies.actions.action_events import digest_of
from situ.policies.actions.invocations import ActionInvocation
from situ.policies.actions.model import VERB_OF
from situ.policies.actions.resolve import steps_of
from situ.protocol.messages import Nack
from situ.protocol.wire import decode_from_router
from situ.registry.snapshots import publish_deployment
from tests.edge_zone import EdgeZone, edge_zone, eventually
from tests.guarded import FILES
from tests.http_targets import Target, http_target

MANNER = RetrySettings(glance=0.01, timeout=1.0, attempts=3, pause=0.02, longest=0.05)
SITU = "defaults: {lateness: 100 ms, idle: 300 ms}\n"
POLICY = """policy {name}
window 1 s
concepts
  person A (status = 'guest')
  room R (security = 'restricted')
conditions
  A is inside R
actions
  {action}
"""
ACTIONS = """
actions:
  call:
    - {{webhook: "{url}/rooms/{{R}}?who={{A}}", headers: {{Authorization: "Bearer ${{TOKEN}}", About: "{{A.status}}"}}}}
    - {{log: "{{A}} in {{R}}", level: warning}}
  call elsewhere: {{webhook: "{other}/x", data: {{who: "{{A}}"}}}}
  call with a secret: {{webhook: "{url}/${{TOKEN}}", method: PUT, data: "{{A}}"}}
  note: {{log: "{{A}} was seen"}}
  end: {{delete policy: "{{policy}}"}}
  rest: {{suspend policy: other}}
  dismiss: {{suspend policy: nobody}}
"""
USED = ("call", "call elsewhere", "call with a secret", "note", "end", "rest", "dismiss")
TOKEN = "s3cret"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Projects are checked where the environment has something to say; what it says to runs is given to them."""
    monkeypatch.setenv("TOKEN", "of the check")


def files(url: str = "http://127.0.0.1:9", other: str = "http://127.0.0.1:9") -> dict[str, str]:
    found = {name: text for name, text in FILES.items() if name not in ("situ.yaml", "actions.yaml")}
    del found["policies/unaccompanied-guest.dpl"]
    found["actions.yaml"] = ACTIONS.format(url=url, other=other)
    found["policies/intruder.dpl"] = POLICY.format(name="intruder", action="\n  ".join(USED))
    found["policies/other.dpl"] = POLICY.format(name="other", action="publish Note").replace("publish Note", "log seen")
    return found


@asynccontextmanager
async def zone_with(folder: Path, **urls: str) -> AsyncIterator[EdgeZone]:
    """A zone in which nobody detects: requests are made by hand."""
    async with edge_zone(folder, situ=SITU, more=files(**urls), spark=True) as zone:
        yield zone


@asynccontextmanager
async def acting(
    zone: EdgeZone, manner: RetrySettings = MANNER, environment: Mapping[str, str] | None = None
) -> AsyncIterator[ActionWorker]:
    """What is started ends as a process does that is killed: nothing is put in order."""
    found = ActionWorker(
        zone.bus,
        zone.registry,
        zone.folder,
        manner=manner,
        environment={"TOKEN": TOKEN} if environment is None else environment,
    )
    await found.start()
    task = asyncio.create_task(found.run())
    try:
        yield found
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def request(zone: EdgeZone, action: str, situation: str, who: str = "g1", policy: str = "intruder") -> list[Row]:
    """The events by which an engine asks for an action."""
    deployment = zone.registry.current()
    (number, wanted), *_ = [
        (number, each) for number, each in enumerate(deployment.policies[policy].actions) if each.name == action
    ]
    rows = []
    for place, step in enumerate(steps_of(wanted, deployment.actions)):
        data = {
            "verb": VERB_OF[type(step)],
            "action": action,
            "policy": policy,
            "situation": situation,
            "detection": situation,
            "time": "2026-11-15T12:00:00Z",
            "number": number,
            "place": place,
            "digest": digest_of(step, wanted),
            "bindings": [
                {"alias": "A", "concept": "person", "id": who},
                {"alias": "R", "concept": "room", "id": "lab"},
            ],
            "attributes": json.dumps({"A": {"status": who}}),
        }
        rows.append(_row(policy, f"{situation}-{number}.{place}", data))
    return rows


def _row(policy: str, id: str, data: Any) -> Row:
    return Row(
        pos=0,
        client=policy,
        incarnation=1,
        seq=1,
        context="root",
        recv=0,
        id=id,
        source=policy,
        type="situ.action",
        time=0,
        ad="",
        confidence=None,
        ext="",
        data=json.dumps(data).encode(),
    )


async def ask(zone: EdgeZone, *rows: Row) -> None:
    body = join_lines([encode_row(each) for each in rows])
    await (await zone.bus.store(Message(subject=zone.names.root("r1"), body=body)))


def kept(zone: EdgeZone, state: str) -> list[ActionRequest]:
    return list(ActionQueue(zone.folder).all(state))


def logged(zone: EdgeZone) -> list[str]:
    file = zone.folder / ACTION_LOG
    return file.read_text().splitlines() if file.exists() else []


def nothing_kept(zone: EdgeZone) -> bool:
    return not kept(zone, WAITING) and not kept(zone, FAILED)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_what_is_detected_is_done_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with http_target() as target:
            more = files(url=target.url)
            more["policies/intruder.dpl"] = POLICY.format(name="intruder", action="call")
            async with (
                edge_zone(tmp_path, situ=SITU, more=more) as zone,
                acting(zone) as doing,
                zone.connect("reader") as reader,
            ):
                await reader.publish_event("Sighting", {"who": "g1", "at": {"x": 5.0, "y": 5.0}})
                await eventually(lambda: doing.counts.done == 3)  # the other policy logs it, too
            (sent,) = target.sent
            assert (sent.method, sent.path) == ("POST", "/rooms/lab?who=g1")
            assert sent.headers["authorization"] == f"Bearer {TOKEN}"
            assert sent.headers["about"] == "guest"
            assert sent.data["policy"] == "intruder"
            assert sent.data["bindings"]["A"] == {"concept": "person", "id": "g1", "attributes": {"status": "guest"}}
            (line,) = [each for each in logged(zone) if "intruder" in each]
            assert "WARNING intruder: g1 in lab [" in line
            assert line.endswith(f"[{sent.key[:-1]}1]")
            assert nothing_kept(zone)
            stored = b"".join([each.body for each in await _messages(zone)])
            assert TOKEN.encode() not in stored

    asyncio.run(run())


async def _messages(zone: EdgeZone) -> list[Any]:
    assert isinstance(zone.bus, MemoryBus)
    return [each for stream in zone.names.streams for each in await zone.messages(stream)]


def test_what_events_bring_changes_neither_host_nor_headers(tmp_path: Path) -> None:
    hostile = "x@evil.example/..%2f?a=b#c\r\nHost: evil.example\r\n\r\nGET / HTTP/1.1"

    async def run() -> None:
        async with http_target() as target, zone_with(tmp_path, url=target.url) as zone, acting(zone) as doing:
            await ask(zone, *request(zone, "call", "a1", who=hostile))
            await eventually(lambda: doing.counts.done == 2)
            (sent,) = target.sent
            assert sent.path.startswith("/rooms/lab?who=x%40evil.example%2F..%252f%3Fa%3Db%23c%0D%0AHost")
            assert sent.headers["host"] == f"127.0.0.1:{target.port}"
            assert sent.headers["about"].startswith("x@evil.example/..%2f?a=b#c  Host: evil.example")
            (line,) = logged(zone)
            assert "Host: evil.example" in line

    asyncio.run(run())


def test_a_failing_target_holds_up_nobody_else_and_is_kept(tmp_path: Path) -> None:
    def answer(sent: Any) -> int:
        return 503

    async def run() -> None:
        async with (
            http_target() as target,
            http_target(answer) as failing,
            zone_with(tmp_path, url=target.url, other=failing.url) as zone,
            acting(zone, replace(MANNER, pause=1.0, longest=1.0)) as doing,
        ):
            for number in range(10):
                await ask(zone, *request(zone, "call elsewhere", f"a{number}"))
            await ask(zone, *request(zone, "call", "b1"))
            await eventually(lambda: doing.counts.done == 2)
            assert doing.counts.failed == 0  # all of those are still being tried
            await eventually(lambda: doing.counts.failed == 10)
            assert len(failing.sent) == 30
            assert failing.most <= MANNER.to_one_host
            assert {each.key for each in failing.sent} == {f"a{number}-1.0" for number in range(10)}
            assert not kept(zone, WAITING)
            one = kept(zone, FAILED)[0]
            assert (one.attempts, one.problem["code"], one.target) == (3, "S721", f"{failing.url}/x")
            assert "answered 503" in one.problem["message"]
            assert one.problem["hint"].endswith(f"`situ actions retry {one.key}`.")
            failing.answer = lambda sent: 200
            assert ActionQueue(zone.folder).again(one.key)
            await eventually(lambda: doing.counts.done == 3)
            assert failing.sent[-1].data == {"who": "g1"}
            assert len(kept(zone, FAILED)) == 9

    asyncio.run(run())


@pytest.mark.parametrize(
    ("status", "attempts", "said"),
    [
        (400, 1, "answered 400"),
        (302, 1, "redirects are not followed"),
        (429, 3, "answered 429"),
        (None, 3, "did not answer within 0.2 s"),
    ],
)
def test_answers_decide_whether_it_is_tried_again(tmp_path: Path, status: int, attempts: int, said: str) -> None:
    async def run() -> None:
        async with (
            http_target(lambda sent: status) as target,
            zone_with(tmp_path, url=target.url) as zone,
            acting(zone, replace(MANNER, timeout=0.2)) as doing,
        ):
            await ask(zone, *request(zone, "call with a secret", "a1"))
            await eventually(lambda: doing.counts.failed == 1)
            (one,) = kept(zone, FAILED)
            assert (one.attempts, len(target.sent)) == (attempts, attempts)
            assert said in one.problem["message"]
            assert target.sent[0].path == f"/{TOKEN}"
            # What is kept and shown has the secret as it is written.
            assert one.target == target.url + "/${TOKEN}"
            assert TOKEN not in str(one)

    asyncio.run(run())


def test_nobody_there_is_tried_again_until_somebody_is(tmp_path: Path) -> None:
    async def run() -> None:
        port = free_port()
        async with (
            zone_with(tmp_path, url=f"http://127.0.0.1:{port}") as zone,
            acting(zone, replace(MANNER, attempts=1000)) as doing,
        ):
            await ask(zone, *request(zone, "call", "a1"))
            await eventually(lambda: any(each.attempts > 1 for each in kept(zone, WAITING)))
            assert "refused the connection" in kept(zone, WAITING)[0].problem["message"]
            assert logged(zone) == []  # what comes behind it in the same situation waits
            async with http_target(port=port) as target:
                await eventually(lambda: doing.counts.done == 2)
            assert len(target.sent) == 1
            assert len(logged(zone)) == 1

    asyncio.run(run())


def test_after_a_crash_it_comes_again_with_the_same_key(tmp_path: Path) -> None:
    async def run() -> None:
        async with http_target(lambda sent: None) as target, zone_with(tmp_path, url=target.url) as zone:
            async with acting(zone, replace(MANNER, timeout=20.0)):
                await ask(zone, *request(zone, "call", "a1"))
                await eventually(lambda: target.sent)
            target.answer = lambda sent: 200
            async with acting(zone) as doing:
                await eventually(lambda: doing.counts.done == 2)
            async with acting(zone) as doing:
                await asyncio.sleep(0.1)
                assert doing.counts.done == 0
            assert [each.key for each in target.sent] == ["a1-0.0", "a1-0.0"]
            assert len(logged(zone)) == 1

    asyncio.run(run())


def test_what_was_asked_for_while_nobody_ran_is_done(tmp_path: Path) -> None:
    async def run() -> None:
        async with zone_with(tmp_path) as zone:
            await ask(zone, *request(zone, "note", "before"))  # before anything ran here at all
            async with acting(zone):
                pass
            await ask(zone, *request(zone, "note", "a1"))
            async with acting(zone) as doing:
                await eventually(lambda: doing.counts.done == 1)
            (line,) = logged(zone)
            assert line.endswith("intruder: g1 was seen [a1-3.0]")

    asyncio.run(run())


def test_a_line_is_logged_exactly_once_over_a_crash(tmp_path: Path) -> None:
    async def run() -> None:
        async with zone_with(tmp_path) as zone:
            async with acting(zone) as doing:
                await ask(zone, *request(zone, "note", "a1"), *request(zone, "note", "a2"))
                await eventually(lambda: doing.counts.done == 2)
            # As if the process had died after the first line was written, and within the second.
            file = zone.folder / ACTION_LOG
            first, second = file.read_bytes().splitlines(keepends=True)
            file.write_bytes(first + second[:-5])
            for row in (*request(zone, "note", "a1"), *request(zone, "note", "a2")):
                ActionQueue(zone.folder).take([ActionRequest(key=row.id, pos=1, about=json.loads(row.data))], 1)
            async with acting(zone) as doing:
                await eventually(lambda: nothing_kept(zone))
                assert doing.counts.done == 1
            assert file.read_bytes().splitlines(keepends=True) == [first, second]

    asyncio.run(run())


def test_policies_are_suspended_and_deleted(tmp_path: Path) -> None:
    added = POLICY.format(name="added", action="delete policy added")

    async def run() -> None:
        from situ.registry.object_files import policy_document

        async with zone_with(tmp_path) as zone, acting(zone) as doing:
            zone.registry.add("policy", "added", policy_document("added", added, "added.dpl"), who="test")
            asked = request(zone, "delete policy", "a1", policy="added")
            await ask(zone, *asked)
            await eventually(lambda: doing.counts.done == 1)
            assert "added" not in zone.registry.current().policies
            asked[0].id = "a2-0.0"  # it was asked for twice, and is gone: what it was is known from the registry
            await ask(zone, *asked)
            await eventually(lambda: doing.counts.done == 2)
            await ask(zone, *request(zone, "rest", "a3"))
            await eventually(lambda: doing.counts.done == 3)
            assert zone.registry.current().suspended == {"other"}
            assert zone.registry.changes(1)[0].who == "policy intruder"
            await ask(zone, *request(zone, "end", "a4"))  # one of the folder rests: the folder would bring it back
            await eventually(lambda: doing.counts.done == 4)
            assert zone.registry.current().suspended == {"intruder", "other"}
            await ask(zone, *request(zone, "dismiss", "a5"))
            await eventually(lambda: doing.counts.failed == 1)
            assert kept(zone, FAILED)[0].problem["code"] == "D108"

    asyncio.run(run())


def test_a_policy_that_suspends_itself_is_not_detected_any_more(tmp_path: Path) -> None:
    more = {**files(), "policies/intruder.dpl": POLICY.format(name="intruder", action="suspend policy intruder")}

    async def run() -> None:
        async with (
            edge_zone(tmp_path, situ=SITU, more=more) as zone,
            acting(zone) as doing,
            zone.connect("reader") as reader,
        ):
            await reader.publish_event("Sighting", {"who": "g1", "at": {"x": 5.0, "y": 5.0}})
            await eventually(lambda: doing.counts.done == 2)
            await publish_deployment(zone.bus, zone.registry.current())
            engine = zone.engine
            assert engine is not None
            await eventually(lambda: engine._detection._detecting.watches.keys() == {"other"})
            assert "intruder" in zone.registry.current().policies

    asyncio.run(run())


def test_what_nobody_declares_or_the_environment_lacks_is_not_done(tmp_path: Path) -> None:
    async def run() -> None:
        async with http_target() as target, zone_with(tmp_path, url=target.url) as zone:
            async with acting(zone, environment={}) as doing:
                await ask(zone, *request(zone, "call with a secret", "a1"))
                forged = request(zone, "call elsewhere", "a2")
                forged[0].data = forged[0].data.replace(b'"digest": "', b'"digest": "0')
                await ask(zone, *forged)
                await eventually(lambda: doing.counts.failed == 2)
            assert [each.problem["code"] for each in kept(zone, FAILED)] == ["S723", "S722"]
            assert target.sent == []

    asyncio.run(run())


def test_nobody_asks_in_the_name_of_a_policy(tmp_path: Path) -> None:
    async def run() -> None:
        async with edge_zone(tmp_path, situ=SITU, more=files()) as zone, acting(zone) as doing:
            (row,) = request(zone, "note", "a1")
            body = join_lines([encode_row(row)])
            answer = await zone.bus.request(Message(subject=zone.names.ingress("r1", "intruder"), body=body))
            said = decode_from_router(answer.headers, answer.body)
            assert isinstance(said, Nack)
            assert said.code == "R017"
            with pytest.raises(SituError, match="R017"):
                async with zone.connect("intruder"):
                    pass
            await asyncio.sleep(0.1)
            assert doing.counts.done == 0

    asyncio.run(run())


def test_what_somebody_drops_is_not_tried_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            http_target(lambda sent: 500) as target,
            zone_with(tmp_path, url=target.url) as zone,
            acting(zone, replace(MANNER, attempts=1000)) as doing,
        ):
            await ask(zone, *request(zone, "call", "a1"))
            await eventually(lambda: len(target.sent) > 1)
            assert ActionQueue(zone.folder).drop("a1-0.0", WAITING)
            await eventually(lambda: doing.counts.done == 1)
            assert len(logged(zone)) == 1
            assert nothing_kept(zone)

    asyncio.run(run())


def test_no_more_is_taken_than_can_wait(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            http_target(lambda sent: None) as target,
            zone_with(tmp_path, url=target.url) as zone,
            acting(zone, replace(MANNER, most_waiting=3, timeout=0.5)) as doing,
        ):
            for number in range(9):
                await ask(zone, *request(zone, "note", f"a{number}"), *request(zone, "call", f"b{number}"))
            await eventually(lambda: len(kept(zone, WAITING)) >= 3)
            await asyncio.sleep(0.1)
            assert len(kept(zone, WAITING)) <= 6
            assert doing.counts.done < 9
            _release(target)
            await eventually(lambda: doing.counts.done >= 9)

    asyncio.run(run())


def _release(target: Target) -> None:
    target.answer = lambda sent: 200


# ── what targets answer ───────────────────────────────────────────────────────────────────────────


async def _answers(raw: bytes, timeout: float = 5.0, scheme: str = "http", port: int = 0) -> WebhookResponse:
    """What comes of a request to a server that says this, whatever it is asked, and leaves."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(raw)
        with suppress(OSError):
            await writer.drain()
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1")
    try:
        port = port or server.sockets[0].getsockname()[1]
        target = f"{scheme}://127.0.0.1:{port}/{TOKEN}"
        return await send_request(ActionInvocation(key="k", verb="webhook", target=target, method="POST"), timeout)
    finally:
        server.close()


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", WebhookResponse()),
        (b"HTTP/1.0 204 \r\n\r\n", WebhookResponse()),
        (b"HTTP/1.1 102 Wait\r\n\r\nHTTP/1.1 201 Made\r\n\r\n", WebhookResponse()),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\ncut", WebhookResponse()),
        (b"HTTP/1.1 200 OK\r\n\r\n" + 4 * 1024 * 1024 * b"x", WebhookResponse()),
        (b"HTTP/1.1 404 Not here\r\nContent-Length: 0\r\n\r\n", WebhookResponse("answered 404 Not here")),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", WebhookResponse("answered 500 Oh", again=True)),
        (b"220 mail.example ESMTP\r\n", WebhookResponse("broke the connection off", again=True)),
        (b"HTTP/1.1 200 OK\r\nX: " + 200_000 * b"x", WebhookResponse("broke the connection off", again=True)),
        (b"", WebhookResponse("broke the connection off", again=True)),
    ],
)
def test_the_status_decides_whatever_comes_behind_it(
    raw: bytes, said: WebhookResponse, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        assert asyncio.run(_answers(raw)) == said
    assert TOKEN not in caplog.text


def test_who_is_no_server_of_this_kind_is_told_apart() -> None:
    plain = asyncio.run(_answers(b"HTTP/1.1 200 OK\r\n\r\n", scheme="https"))
    assert plain == WebhookResponse("speaks no TLS that is understood here", again=True)
    assert asyncio.run(_answers(b"", port=free_port())) == WebhookResponse("refused the connection", again=True)
