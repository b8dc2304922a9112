"""A client with credentials of its own tries everything else: the server refuses it, or the router."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import nats.errors
import pytest

from situ.bus.interface import Bus
from situ.client.connection import connect
from situ.event.message import REPLY, Message
from situ.lang.problems import SituError
from situ.protocol.permissions import permissions_of
from tests.admitted import AdmittingServer, Plain, admitting_server, plain
from tests.edge_zone import EdgeZone, edge_zone, eventually, take

BATCH = b'{"seq": 1, "batch": 10}'
CONSUMER = json.dumps(
    {"stream_name": "OUT_main", "config": {"durable_name": "alice_x", "filter_subject": "situ.main.out.>"}}
).encode()
WRITES = {
    "speak as another": ("situ.main.in.r1.bob", b'{"specversion": "1.0", "type": "Alarm"}'),
    "speak as a router": ("situ.main.raw.r1.0", b"[]"),
    "write the root log": ("situ.main.root.r1._", b"[]"),
    "write a delivery": ("situ.main.out.g", b"[]"),
    "write a dead letter": ("situ.main.dead.bob", b"{}"),
    "write a late event": ("situ.main.late.Alarm", b"{}"),
    "deliver to another": ("situ.main.live.bob", b"[]"),
    "deliver to itself": ("situ.main.live.alice", b"[]"),
    "give feedback": ("situ.main.feedback.sub.bob", b"{}"),
    "read the root log": ("$JS.API.DIRECT.GET.ROOT_main", BATCH),
    "read the ingress": ("$JS.API.DIRECT.GET.IN_main", BATCH),
    "read deliveries": ("$JS.API.DIRECT.GET.OUT_main", BATCH),
    "read dead letters": ("$JS.API.DIRECT.GET.DEAD_main", BATCH),
    "read late events": ("$JS.API.DIRECT.GET.LATE_main", BATCH),
    "read feedback": ("$JS.API.DIRECT.GET.FEED_main", BATCH),
    "read the registry": ("$JS.API.DIRECT.GET.KV_registry.$KV.registry.current", b""),
    "read a deployment": ("$JS.API.DIRECT.GET.OBJ_deployments", BATCH),
    "read a message": ("$JS.API.STREAM.MSG.GET.ROOT_main", b'{"seq": 1}'),
    "look at a stream": ("$JS.API.STREAM.INFO.ROOT_main", b""),
    "list the streams": ("$JS.API.STREAM.NAMES", b""),
    "look at the account": ("$JS.API.INFO", b""),
    "make a consumer": ("$JS.API.CONSUMER.CREATE.OUT_main", CONSUMER),
    "make a consumer of its own name": ("$JS.API.CONSUMER.CREATE.OUT_main.alice_x", CONSUMER),
    "make a durable consumer": ("$JS.API.CONSUMER.DURABLE.CREATE.ROOT_main.alice_x", CONSUMER),
    "read as another": ("$JS.API.CONSUMER.MSG.NEXT.OUT_main.bob_board", b'{"batch": 10}'),
    "look at another's consumer": ("$JS.API.CONSUMER.INFO.OUT_main.bob_board", b""),
    "list consumers": ("$JS.API.CONSUMER.LIST.OUT_main", b""),
    "remove another's consumer": ("$JS.API.CONSUMER.DELETE.OUT_main.bob_board", b""),
    "acknowledge for another": ("$JS.ACK.OUT_main.bob_board.1.1.1.0.0", b""),
    "empty a stream": ("$JS.API.STREAM.PURGE.ROOT_main", b""),
    "remove a stream": ("$JS.API.STREAM.DELETE.ROOT_main", b""),
    "make a stream": ("$JS.API.STREAM.CREATE.mine", b'{"name": "mine", "subjects": ["situ.main.in.>"]}'),
    "change a stream": ("$JS.API.STREAM.UPDATE.OUT_main", b'{"name": "OUT_main", "subjects": ["x"]}'),
    "write the registry": ("$KV.registry.current", b'{"version": 99}'),
    "write a session": ("$KV.clients_main.bob", b"{}"),
    "write figures": ("$KV.metrics_main.adopted.r1", b"{}"),
    "write a deployment": ("$O.deployments.C.x", b"{}"),
    "let others in": ("situ.main.admit", b""),
    "answer somebody": ("_INBOX.x.y", b"{}"),
    "answer another": ("_INBOX_bob.x", b"{}"),
    "ask the server": ("$SYS.REQ.SERVER.PING", b""),
}
HEARS = {
    "everything": ">",
    "all of ours": "situ.>",
    "deliveries to another": "situ.main.live.bob",
    "deliveries to all": "situ.main.live.*",
    "what others say": "situ.main.in.>",
    "what is stored": "situ.main.raw.>",
    "the root log": "situ.main.root.>",
    "what is kept for others": "situ.main.out.>",
    "dead letters": "situ.main.dead.>",
    "its own dead letters, at once": "situ.main.dead.alice",
    "late events": "situ.main.late.>",
    "feedback to another": "situ.main.feedback.sub.bob",
    "answers to all": "_INBOX.>",
    "answers to another": "_INBOX_bob.>",
    "the registry": "$KV.>",
    "deployments": "$O.>",
    "requests to streams": "$JS.API.>",
    "acknowledgements": "$JS.ACK.>",
    "events of the server": "$JS.EVENT.>",
    "the system": "$SYS.>",
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AdmittingServer]:
    with admitting_server(tmp_path / "nats", "alice", "bob") as running:
        yield running


@asynccontextmanager
async def prepared(server: AdmittingServer, folder: Path) -> AsyncIterator[tuple[EdgeZone, Plain]]:
    """A zone in which bob has something that waits for him, and a connection of alice."""
    async with edge_zone(folder, server) as zone, plain(server, "alice", server.seeds["alice"]) as alice:
        async with connect(zone.folder, servers=[server.url], client="bob", credentials=server.file("bob")) as bob:
            await bob.register_for_events("Alarm", durable="board")
        async with connect(
            zone.folder, servers=[server.url], client="pump", credentials=str(server.folder / "run")
        ) as pump:
            await (await pump.publish_event("Alarm", text="for bob", severity=5)).stored
        before: dict[str, object] = {}
        while before != (before := await traces(zone.bus)):
            await asyncio.sleep(0.4)  # what was declared for a while is taken back
        yield zone, alice


async def traces(bus: Bus) -> dict[str, object]:
    """What a successful attempt would change."""
    names = (
        "IN_main",
        "ROOT_main",
        "OUT_main",
        "DEAD_main",
        "LATE_main",
        "FEED_main",
        "KV_registry",
        "KV_clients_main",
    )
    streams = {name: await bus.state(name) for name in (*names, "OBJ_deployments")}
    return {**streams, "consumers": await bus.consumers()}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[bool, object, bool]]:
    """Attempt → whether it was forbidden, what came of it, whether nothing changed."""

    async def main() -> dict[str, tuple[bool, object, bool]]:
        found: dict[str, tuple[bool, object, bool]] = {}
        async with prepared(server, tmp_path_factory.mktemp("zone")) as (zone, alice):
            before = await traces(zone.bus)
            answers = await alice.hear("_INBOX_alice.try.*")
            for number, (attempt, (subject, body)) in enumerate(WRITES.items()):
                await alice.publish(subject, body, reply=f"_INBOX_alice.try.{number}")
                forbidden = await alice.forbidden(f'publish to "{subject}"')
                await asyncio.sleep(0.01)
                answer = None if answers.empty() else answers.get_nowait()
                found[attempt] = forbidden, answer, await traces(zone.bus) == before
            heard = {}
            for attempt, subject in HEARS.items():
                heard[attempt] = await alice.hear(subject)
                found[attempt] = await alice.forbidden(f'subscription to "{subject}"'), None, True
            async with connect(zone.folder, servers=[server.url], client="bob", credentials=server.file("bob")) as bob:
                registration = await bob.register_for_events("Level")
                await (await bob.publish_event("Alarm", text="mine", severity=1)).stored
                await bob.publish_event("Level", text="wrong")
                async with connect(
                    zone.folder, servers=[server.url], client="pump", credentials=str(server.folder / "run")
                ) as pump:
                    await (await pump.publish_event("Level", tank="t", level=1.0)).stored
                    assert (await take(aiter(registration), 1))[0].data.tank == "t"
            await alice.client.flush()
            for attempt, queue in heard.items():
                forbidden, _, _ = found[attempt]
                found[attempt] = forbidden, (None if queue.empty() else queue.get_nowait().subject), True
        return found

    with admitting_server(tmp_path_factory.mktemp("nats"), "alice", "bob") as server:
        return asyncio.run(main())


class TestByTheServer:
    """One connection for all: it is not the server that forgets."""

    @pytest.mark.parametrize("attempt", WRITES)
    def test_it_cannot(self, attempt: str, outcomes: dict[str, tuple[bool, object, bool]]) -> None:
        assert outcomes[attempt] == (True, None, True)

    @pytest.mark.parametrize("attempt", HEARS)
    def test_it_cannot_hear(self, attempt: str, outcomes: dict[str, tuple[bool, object, bool]]) -> None:
        assert outcomes[attempt] == (True, None, True)

    def test_what_it_may_is_what_it_needs(self, server: AdmittingServer) -> None:
        allowed = permissions_of("main", "alice")

        async def main() -> list[str]:
            async with plain(server, "alice", server.seeds["alice"]) as alice:
                for subject in allowed.publish:
                    await alice.publish(subject.replace("*", "r1"))
                for subject in allowed.subscribe:
                    await alice.hear(subject)
                await alice.client.flush()
                return alice.told

        assert asyncio.run(main()) == []


def body(**fields: object) -> bytes:
    return json.dumps(fields).encode()


INGRESS = "situ.main.in.r1.alice"
REQUESTS = {
    "a name with an underscore": body(do="next", name="bob_board", batch=1),
    "a wildcard": body(do="next", name="*", batch=1),
    "a dot": body(do="next", name="x.y", batch=1),
    "a path": body(do="info", name="../bob_board"),
    "another line": body(do="info", name="board\r\nPUB x 0"),
    "no consumer of its own": body(do="again", name="board", seq=1, batch=10, next_by_subj="situ.main.out.>"),
    "no such request": body(do="delete", name="board"),
    "too many": body(do="next", name="board", batch=10**9),
    "for too long": body(do="next", name="board", batch=1, expires=10**15),
    "no sequence": body(do="ack", name="board", seq=-1, number=1),
    "no JSON": b"\xff",
    "no object": b"[]",
}
KINDS = ("Describe", "Take")
PLACES = (
    "situ.main.live.bob",
    "situ.main.in.r1.bob",
    "$JS.API.STREAM.PURGE.ROOT_main",
    "$KV.registry.current",
    "_INBOX.>",
)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, bool]]:
    """Request → how often it was refused, and whether there was no answer and no consumer changed."""

    async def main() -> dict[str, tuple[int, bool]]:
        found: dict[str, tuple[int, bool]] = {}
        async with prepared(server, tmp_path_factory.mktemp("zone")) as (zone, alice):
            assert zone.router is not None
            before = await zone.bus.consumers()
            for why, asked in REQUESTS.items():
                refused = zone.router._desk.refused
                with suppress(nats.errors.TimeoutError):
                    await alice.ask(INGRESS, asked, timeout=0.3, **{"Situ-Message": "Take"})
                    refused = -1
                found[why] = zone.router._desk.refused - refused, await zone.bus.consumers() == before
        return found

    with admitting_server(tmp_path_factory.mktemp("nats"), "alice", "bob") as server:
        return asyncio.run(main())


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], tuple[list[str], bool]]:
    """A request whose answer is to go to another place → what came there, and whether nothing changed."""

    async def main() -> dict[tuple[str, str], tuple[list[str], bool]]:
        found: dict[tuple[str, str], tuple[list[str], bool]] = {}
        heard: list[str] = []

        async def hear(message: Message) -> None:
            heard.append(message.subject)

        async with prepared(server, tmp_path_factory.mktemp("zone")) as (zone, alice):
            await zone.bus.serve("situ.main.live.bob", hear)
            before = await traces(zone.bus)
            for kind in KINDS:
                for place in PLACES:
                    asked = body(do="info", name="board")
                    await alice.publish(INGRESS, asked, reply=place, **{"Situ-Message": kind})
                    await alice.publish(INGRESS, asked, **{"Situ-Message": kind, REPLY: place})
                    await alice.ask(INGRESS, asked, **{"Situ-Message": "Take"})  # what came before was looked at
                    found[kind, place] = list(heard), await traces(zone.bus) == before
        return found

    with admitting_server(tmp_path_factory.mktemp("nats"), "alice", "bob") as server:
        return asyncio.run(main())


class TestByTheRouter:
    """What goes to its own ingress, and asks for what is not its own."""

    @pytest.mark.parametrize("why", REQUESTS)
    def test_requests_for_what_is_not_its_own_get_no_answer(
        self, why: str, answers: dict[str, tuple[int, bool]]
    ) -> None:
        assert answers[why] == (1, True)

    def test_it_reads_again_what_it_was_given_and_nothing_else(self, server: AdmittingServer, tmp_path: Path) -> None:
        async def main() -> None:
            async with prepared(server, tmp_path) as (zone, alice):
                async with connect(
                    zone.folder, servers=[server.url], client="alice", credentials=server.file("alice")
                ) as node:
                    await node.register_for_events("Level", durable="levels")
                of = {each.name: each for each in await zone.bus.consumers()}
                foreign = zone.names.out(of["bob_board"].groups[0])
                own = zone.names.out(of["alice_levels"].groups[0])
                for refused, subject in enumerate((foreign, "", "situ.main.out.*"), 1):
                    asked = body(do="again", name="levels", seq=1, batch=10, next_by_subj=subject)
                    with pytest.raises(nats.errors.TimeoutError):
                        await alice.ask(INGRESS, asked, timeout=0.5, **{"Situ-Message": "Take"})
                    assert zone.router is not None
                    assert zone.router._desk.refused == refused
                asked = body(do="again", name="levels", seq=5, batch=10, next_by_subj=own)
                answer = await alice.ask(INGRESS, asked, **{"Situ-Message": "Take"})
                assert (answer.headers or {}).get("Status") == "404", "there is nothing, and it is told so"

        asyncio.run(main())

    def test_another_of_the_same_name_is_not_found(self, server: AdmittingServer, tmp_path: Path) -> None:
        """Whose subscription is meant stands in the subject, not in the request."""

        async def main() -> dict[str, object]:
            async with prepared(server, tmp_path) as (_, alice):
                answer = await alice.ask(INGRESS, body(do="info", name="board"), **{"Situ-Message": "Take"})
                found: dict[str, object] = json.loads(answer.data)["error"]
                return found

        assert asyncio.run(main())["code"] == 404

    @pytest.mark.parametrize("place", PLACES)
    @pytest.mark.parametrize("kind", KINDS)
    def test_the_router_does_not_write_for_it(
        self, kind: str, place: str, written: dict[tuple[str, str], tuple[list[str], bool]]
    ) -> None:
        """The server does not ask who may write to the subject of an answer; and the router may write anywhere."""
        assert written[kind, place] == ([], True)

    def test_events_with_keys_of_another_are_refused(self, server: AdmittingServer, tmp_path: Path) -> None:
        event = b'[\n{"specversion":"1.0","type":"Alarm","data":{"text":"x","severity":1}}\n]'

        async def main() -> None:
            async with prepared(server, tmp_path) as (zone, alice):
                node = connect(zone.folder, servers=[server.url], client="alice", credentials=server.file("alice"))
                async with node as connected:
                    status = await connected.status()
                    headers = {"Situ-Message": "Publish", "Situ-Session": str(status.session), "Situ-Count": "1"}
                    for client, code in (("bob", "R011"), ("alice", None)):
                        headers["Situ-Key"] = f"{client}.{status.incarnation}.1"
                        answer = json.loads((await alice.ask(INGRESS, event, **headers)).data)
                        assert answer.get("code") == code

        asyncio.run(main())

    def test_what_it_says_of_itself_is_not_believed(self, server: AdmittingServer, tmp_path: Path) -> None:
        """Source, advertisement and our own headers: the name in the subject is the one that counts."""
        event = {
            "specversion": "1.0",
            "id": "1",
            "source": "bob",
            "type": "Alarm",
            "situkey": "bob.1.1",
            "situcontext": "x",
            "situfrom": "bob",
            "data": {"text": "x", "severity": 1},
        }

        async def main() -> None:
            async with prepared(server, tmp_path) as (zone, alice):
                node = connect(zone.folder, servers=[server.url], client="alice", credentials=server.file("alice"))
                async with node as alices:
                    await alices.advertise("Alarm", name="alarms")
                    async with connect(
                        zone.folder, servers=[server.url], client="bob", credentials=server.file("bob")
                    ) as bob:
                        await bob.advertise("Alarm", name="his")
                        stored = len(await zone.messages(zone.names.root_stream))
                        dead = len(await zone.messages(zone.names.dead_stream))
                        await alices.close()
                        headers = {"Situ-Client": "bob", "Situ-Own": "1", "Situ-Context": "x", "Situ-Received": "0"}
                        await alice.ask(INGRESS, json.dumps(event).encode(), **headers)
                        await alice.ask(INGRESS, json.dumps({**event, "id": "2", "situad": "bob/his"}).encode())
                        root = (await zone.messages(zone.names.root_stream))[stored:]
                        letters = (await zone.messages(zone.names.dead_stream))[dead:]
                        assert not any(b'"source":"bob"' in each.body for each in root)
                        assert not any(b'"situkey":"bob.' in each.body for each in root)
                        assert {each.subject for each in letters} <= {"situ.main.dead.alice"}
                        assert b"R002" in letters[-1].body

        asyncio.run(main())


class TestForgedPrincipals:
    def test_credentials_of_another_are_noticed_at_once(self, server: AdmittingServer, tmp_path: Path) -> None:
        async def main() -> None:
            async with connect(tmp_path, servers=[server.url], client="bob", credentials=server.file("alice")):
                raise AssertionError

        with pytest.raises(SituError, match="those of `alice`") as refused:
            asyncio.run(main())
        assert refused.value.code == "R011"

    def test_a_file_that_says_another_name_opens_nothing(self, server: AdmittingServer, tmp_path: Path) -> None:
        forged = server.write("bob", "alice")

        async def main() -> float:
            loop = asyncio.get_running_loop()
            begin = loop.time()
            async with edge_zone(tmp_path, server):
                with pytest.raises(SituError) as refused:
                    async with connect(tmp_path, servers=[server.url], client="bob", credentials=str(forged)):
                        raise AssertionError
                assert refused.value.code == "B115"
                assert "situ.main.in.r1.bob" in str(refused.value)
            return loop.time() - begin

        assert asyncio.run(main()) < 8, "it is told so, and does not wait for an answer that cannot come"

    def test_a_key_that_nobody_knows_is_not_let_in(self, server: AdmittingServer, tmp_path: Path) -> None:
        from situ.bus.credentials import ClientCredentials, make_seed, write_secret

        file = tmp_path / "eve.creds"
        write_secret(file, ClientCredentials(client="eve", zone="main", seed=make_seed()).text())

        async def main() -> None:
            async with connect(tmp_path, servers=[server.url], client="eve", credentials=str(file)):
                raise AssertionError

        with pytest.raises(SituError) as refused:
            asyncio.run(main())
        assert refused.value.code == "B102"
        assert "situ client rotate eve" in refused.value.problems[0].hint

    def test_without_credentials_nobody_is_let_in(self, server: AdmittingServer, tmp_path: Path) -> None:
        async def main() -> None:
            async with connect(tmp_path, servers=[server.url], client="alice"):
                raise AssertionError

        with pytest.raises(SituError) as refused:
            asyncio.run(main())
        assert refused.value.code == "B102"

    def test_a_damaged_file_is_named(self, server: AdmittingServer, tmp_path: Path) -> None:
        file = tmp_path / "alice.creds"
        file.write_text(Path(server.file("alice")).read_text().replace("\nSU", "\nSUX"))

        async def main() -> None:
            async with connect(tmp_path, servers=[server.url], client="alice", credentials=str(file)):
                raise AssertionError

        with pytest.raises(SituError, match="damaged") as refused:
            asyncio.run(main())
        assert refused.value.code == "B111"


def test_a_client_with_its_own_credentials_does_all_a_client_does(server: AdmittingServer, tmp_path: Path) -> None:
    """Publishes, hears, keeps what waits over a process that dies, and reads history."""

    async def main() -> None:
        async with edge_zone(tmp_path, server) as zone:
            own = {"servers": [server.url], "credentials": server.file("alice")}
            feed = {"servers": [server.url], "credentials": server.file("bob")}
            async with (
                connect(zone.folder, client="alice", **own) as alice,
                connect(zone.folder, client="bob", **feed) as bob,
            ):
                live = await alice.register_for_events("Level")
                await alice.register_for_events("Alarm", durable="board")
                for number in range(300):
                    await bob.publish_event("Alarm", text=str(number), severity=1)
                await bob.publish_event("Level", tank="t", level=1.0)
                assert (await take(aiter(live), 1))[0].data.level == 1.0
                await bob.flush()
                events = alice.events("Alarm", durable="board")
                read = [event.data.text for event in await take(events, 150)]
            async with connect(zone.folder, client="alice", **own) as alice:
                events = alice.events("Alarm", durable="board", limit=151)
                again = [event async for event in events]
                assert read + [each.data.text for each in again[1:]] == [str(number) for number in range(300)]
                assert again[0].redelivered, "the last one was not done with"
                history = alice.events("Alarm", since="begin", limit=3)
                assert [event.data.text async for event in history] == ["0", "1", "2"]

            async def done() -> bool:
                found = {each.name: each for each in await zone.bus.consumers()}["alice_board"]
                return found.waiting == found.unacknowledged == 0

            for _ in range(100):
                if await done():
                    break
                await asyncio.sleep(0.05)
            assert await done(), "what was read is acknowledged"
            said = {each.who for each in zone.registry.changes(kind="subscription", name="alice/board")}
            assert said == {"alice"}, "who declared it is written down"

    asyncio.run(main())


def test_a_router_that_is_started_again_is_waited_for(server: AdmittingServer, tmp_path: Path) -> None:
    async def main() -> None:
        async with edge_zone(tmp_path, server) as zone:
            own = {"servers": [server.url], "credentials": server.file("alice")}
            async with connect(zone.folder, client="alice", **own) as alice:
                events = alice.events("Alarm", durable="board")
                first = asyncio.ensure_future(anext(events))
                await eventually(lambda: alice._subscriptions.registrations)
                await asyncio.sleep(0.5)
                await zone.crash()
                await asyncio.sleep(0.5)
                await zone.start()
                async with connect(
                    zone.folder, client="bob", servers=[server.url], credentials=server.file("bob")
                ) as bob:
                    await (await bob.publish_event("Alarm", text="x", severity=1)).stored
                async with asyncio.timeout(120):
                    assert (await first).data.text == "x"
                await events.aclose()

    asyncio.run(main())
