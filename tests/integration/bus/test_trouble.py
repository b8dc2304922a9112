"""The bus in trouble: servers that are killed, away, refuse or stand behind TLS; processes that fork."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import pickle
import random
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import nkeys
import pytest

from situ.bus.address import Address, resolve_address
from situ.bus.nats import NatsBus, open_bus
from situ.bus.sync_bus import BlockingBus, close_shared, shared_bus
from situ.event.message import ID, Message, StoredMessage
from situ.event.subjects import BusNames
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.settings import Settings
from situ.settings.kinds import BusSettings, plain
from tests.certificates import make_certificates
from tests.nats_server import NatsServer, free_port, nats_server

SETTINGS = Settings(name="test")
NAMES = BusNames("main")


async def prepared(address: Address, *, patience: float = 60) -> NatsBus:
    bus = await open_bus(address, name="test", patience=patience)
    await bus.prepare(SETTINGS)
    return bus


def test_a_server_killed_under_load_loses_nothing_doubles_nothing_and_keeps_the_order(server: NatsServer) -> None:
    total, kills = 6000, 3

    async def main() -> None:
        bus = await prepared(server.address())
        await bus.ensure_consumer("a_x", ["g1"])
        futures = []
        got: list[StoredMessage] = []

        async def consume() -> None:
            consumption = await bus.consume("a_x", pending=64)
            async for message in consumption:
                got.append(message)
                if len(got) % 10 == 0:
                    await consumption.acknowledge(message.seq)
                if message.body == b"%d" % (total - 1):
                    await consumption.acknowledge(message.seq)
                    break
            await consumption.close()

        async def disturb() -> None:
            for _ in range(kills):
                stored = sum(future.done() for future in futures)
                while sum(future.done() for future in futures) < min(stored + total // (kills + 2), total - 600):
                    await asyncio.sleep(0.002)
                await asyncio.to_thread(server.kill)
                assert sum(future.done() for future in futures) < total  # killed in the middle, not at the end
                await asyncio.to_thread(server.start)

        consumer, disturber = asyncio.ensure_future(consume()), asyncio.ensure_future(disturb())
        for n in range(total):
            message = Message(subject=NAMES.out("g1"), body=b"%d" % n, headers={ID: f"m{n}"})
            futures.append(await bus.store(message))
            if n % 50 == 0:
                await asyncio.sleep(0.001)
        acks = await asyncio.gather(*futures)
        await disturber
        assert [ack.seq for ack in acks] == list(range(1, total + 1))
        assert bus.reconnects >= kills
        await asyncio.wait_for(consumer, 60)
        assert [message.body for message in got] == [b"%d" % n for n in range(total)]
        await bus.close()

    asyncio.run(main())


def test_readers_and_watchers_go_on_after_a_restart(server: NatsServer) -> None:
    async def main() -> None:
        bus = await prepared(server.address())
        for n in range(300):
            future = await bus.store(Message(subject=NAMES.raw("r1", n % 2), body=b"%d" % n + bytes(50_000)))
        await future
        await bus.put(NAMES.clients, "x", b"0")
        entries = bus.watch(NAMES.clients, "x")
        assert (await anext(entries)).value == b"0"
        found = []
        async for message in bus.read(NAMES.in_stream, 1, subjects=[NAMES.raw("r1", 0), NAMES.raw("r1", 1)]):
            found.append(message.seq)
            if len(found) in (100, 200):
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
        assert found == list(range(1, 301))
        await bus.put(NAMES.clients, "x", b"1")
        assert (await asyncio.wait_for(anext(entries), 20)).value == b"1"
        await entries.aclose()  # type: ignore[attr-defined] # a generator
        await bus.close()

    asyncio.run(main())


def test_a_connection_that_ends_without_a_word_is_made_again(server: NatsServer) -> None:
    async def run() -> None:
        async with await open_bus(server.address(), name="test") as bus:
            client = bus._link._client
            assert client is not None
            # What the library does when the task that noticed the loss is ended before it could tell.
            client._closed_cb = None
            await client.close()
            deadline = time.monotonic() + 90
            while not bus.reconnects and time.monotonic() < deadline:
                await asyncio.sleep(0.05)
            assert bus.reconnects == 1
            await bus.prepare(Settings(name="x"))

    asyncio.run(run())


def test_handlers_serve_again_after_a_restart(server: NatsServer) -> None:
    async def main() -> None:
        bus = await prepared(server.address())

        async def handle(message: Message) -> Message:
            return message

        await bus.serve("situ.main.in.r1.*", handle)
        await asyncio.to_thread(server.kill)
        with pytest.raises(SituError) as failed:
            await bus.request(Message(subject="situ.main.in.r1.a"), timeout=0.5)
        assert failed.value.code == "B101"
        assert not bus.connected
        assert bus.trouble
        await asyncio.to_thread(server.start)
        while not bus.connected:
            await asyncio.sleep(0.02)
        assert (await bus.request(Message(subject="situ.main.in.r1.a", body=b"1"))).body == b"1"
        assert bus.trouble == ""
        await bus.close()

    asyncio.run(main())


def test_what_cannot_be_stored_in_time_fails_and_says_why(server: NatsServer) -> None:
    async def main() -> None:
        bus = await prepared(server.address(), patience=1)
        await asyncio.to_thread(server.kill)
        futures = [await bus.store(Message(subject=NAMES.raw("r1", 0), body=b"1")) for _ in range(3)]
        results = await asyncio.gather(*futures, return_exceptions=True)
        assert [getattr(result, "code", result) for result in results] == ["B101"] * 3
        for work in (bus.state(NAMES.in_stream), bus.get(NAMES.clients, "x"), anext(bus.read(NAMES.in_stream, 1, 5))):
            with pytest.raises(SituError) as failed:
                await work
            assert failed.value.code == "B101"
        await bus.close()

    asyncio.run(main())


def test_a_bus_that_is_down_is_told_in_time_and_found_when_it_is_up(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "nats")

    async def main() -> None:
        start = time.monotonic()
        with pytest.raises(SituError, match=f"127.0.0.1:{server.port}") as failed:
            await open_bus(server.address(), name="test", timeout=0.5)
        assert failed.value.code == "B101"
        assert time.monotonic() - start < 10
        opening = asyncio.ensure_future(open_bus(server.address(), name="test", timeout=30))
        await asyncio.sleep(0.2)
        await asyncio.to_thread(server.start)
        bus = await opening
        assert bus.connected
        await bus.close()

    try:
        asyncio.run(main())
    finally:
        server.kill()


def test_something_else_on_the_port_is_no_bus() -> None:
    async def main() -> None:
        async def chat(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"220 mail.example\r\n")
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

        other = await asyncio.start_server(chat, "127.0.0.1", 0)
        port = other.sockets[0].getsockname()[1]
        async with other:
            with pytest.raises(SituError) as failed:
                await open_bus(Address(zone="main", servers=(f"nats://127.0.0.1:{port}",)), name="test", timeout=0.5)
        assert failed.value.code == "B101"

    asyncio.run(main())


def test_a_server_that_is_too_old_is_told() -> None:
    async def main() -> str:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b'INFO {"version":"2.9.25","max_payload":1048576,"headers":true}\r\n')
            with suppress(OSError):
                while line := await reader.readline():
                    if line.startswith(b"PING"):
                        writer.write(b"PONG\r\n")
                writer.close()
                await writer.wait_closed()

        old = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = old.sockets[0].getsockname()[1]
        async with old:
            with pytest.raises(SituError, match=r"2\.9\.25") as failed:
                await open_bus(Address(zone="main", servers=(f"nats://127.0.0.1:{port}",)), name="test", timeout=5)
            await asyncio.sleep(0.05)
        return failed.value.code

    assert asyncio.run(main()) == "B110"


def test_a_wrong_token_is_refused_at_once(server: NatsServer, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("wrong")
    with pytest.raises(SituError) as failed:
        asyncio.run(open_bus(replace(server.address(), token_file=str(tmp_path / "wrong")), name="test", timeout=30))
    assert failed.value.code == "B102"
    with pytest.raises(SituError) as failed:
        asyncio.run(open_bus(replace(server.address(), token_file=str(tmp_path / "none")), name="test"))
    assert failed.value.code == "B111"
    assert "situ run" in failed.value.problems[0].hint


# ── servers of others ──


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("tls"))


def test_tls_and_credentials_of_a_server_of_ones_own(tmp_path: Path, certificates: Path) -> None:
    tls = (
        f'tls {{ cert_file: "{certificates}/server.pem", key_file: "{certificates}/server.key", '
        f'ca_file: "{certificates}/ca.pem", verify: true }}\nauthorization {{ user: "situ", password: "se:cret" }}'
    )
    (tmp_path / "credentials").write_text("situ:se:cret\n")
    for name in ("ca", "client", "stranger"):
        for end in ("pem", "key"):
            (tmp_path / f"{name}.{end}").write_bytes((certificates / f"{name}.{end}").read_bytes())

    def settings(**changes: str) -> Settings:
        files = {"credentials": "credentials", "ca": "ca.pem", "cert": "client.pem", "key": "client.key", **changes}
        texts = {name: plain(value) for name, value in files.items()}
        return replace(SETTINGS, bus=BusSettings(kind="nats", servers=(plain(server.url),), **texts))  # type: ignore[arg-type]

    async def stores(settings: Settings) -> int:
        bus = await open_bus(resolve_address(tmp_path, settings), name="test", timeout=5)
        try:
            await bus.prepare(SETTINGS)
            return (await (await bus.store(Message(subject=NAMES.raw("r1", 0), body=b"1")))).seq
        finally:
            await bus.close()

    with nats_server(tmp_path / "nats", config=tls, token="") as server:
        assert asyncio.run(stores(settings())) == 1
        address = resolve_address(tmp_path, settings())
        assert "cret" not in repr(address) + str(address) + address.to_json()
        assert Address.from_json(address.to_json()) == address == pickle.loads(pickle.dumps(address))
        for changes, code in (
            ({"ca": "stranger.pem"}, "B102"),  # not the authority that signed the server's
            ({"credentials": "ca.pem"}, "B102"),
            ({"cert": "missing.pem"}, "B111"),
            ({"ca": "credentials"}, "B111"),
        ):
            with pytest.raises(SituError) as failed:
                asyncio.run(stores(settings(**changes)))
            assert failed.value.code == code, changes


@pytest.mark.parametrize("key", ["", "-----BEGIN USER NKEY SEED-----\nnonsense\n------END USER NKEY SEED------\n"])
def test_credentials_that_are_damaged_say_so(tmp_path: Path, key: str) -> None:
    (tmp_path / "user.creds").write_text(f"-----BEGIN NATS USER JWT-----\nx\n------END NATS USER JWT------\n{key}")
    with nats_server(tmp_path / "nats", config=accounts()[0], token="") as server:
        address = Address(zone="main", servers=(server.url,), credentials=str(tmp_path / "user.creds"))
        with pytest.raises(SituError) as failed:
            asyncio.run(open_bus(address, name="test", timeout=2))
    assert failed.value.code == "B111"


def test_credentials_as_nats_tools_write_them_let_in(tmp_path: Path) -> None:
    config, credentials = accounts()
    (tmp_path / "user.creds").write_text(credentials)
    with nats_server(tmp_path / "nats", config=config, token="") as server:

        async def connect() -> int:
            address = Address(zone="main", servers=(server.url,), credentials=str(tmp_path / "user.creds"))
            async with await open_bus(address, name="test", timeout=5) as bus:
                await bus.prepare(Settings(name="x"))
                return (await bus.state(bus.names.in_stream)).messages

        assert asyncio.run(connect()) == 0
        without = Address(zone="main", servers=(server.url,))
        with pytest.raises(SituError) as failed:
            asyncio.run(open_bus(without, name="test", timeout=2))
        assert failed.value.code == "B102"


def accounts() -> tuple[str, str]:
    """The configuration of a server that knows an operator with one account, and the credentials of a user in it."""
    prefixes = {"operator": nkeys.PREFIX_BYTE_OPERATOR, "user": nkeys.PREFIX_BYTE_USER}
    pairs = {
        name: nkeys.from_seed(nkeys.encode_seed(os.urandom(32), prefixes.get(name, nkeys.PREFIX_BYTE_ACCOUNT)))
        for name in ("operator", "account", "system", "user")
    }
    public = {name: pair.public_key.decode() for name, pair in pairs.items()}
    everything = dict.fromkeys(("subs", "conn", "leaf", "imports", "exports", "data", "payload"), -1)
    stores = dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), -1)

    def token(name: str, issuer: str, **nats: object) -> str:
        claims = {"jti": name, "iat": 1, "iss": public[issuer], "sub": public[name], "name": name}
        claims["nats"] = {"version": 2, "type": "account" if name == "system" else name, **nats}
        parts = [base64url(json.dumps(part).encode()) for part in ({"typ": "JWT", "alg": "ed25519-nkey"}, claims)]
        return ".".join([*parts, base64url(pairs[issuer].sign(".".join(parts).encode()))])

    limits = {**everything, "wildcards": True}
    account = token("account", "operator", limits={**limits, **stores})
    system = token("system", "operator", limits=limits)
    user = token("user", "account", subs=-1, data=-1, payload=-1)
    config = (
        f"operator: {token('operator', 'operator')}\nsystem_account: {public['system']}\nresolver: MEMORY\n"
        f"resolver_preload: {{ {public['account']}: {account}, {public['system']}: {system} }}\n"
    )
    seed = pairs["user"].seed.decode()
    return config, (
        f"-----BEGIN NATS USER JWT-----\n{user}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def test_a_server_without_jetstream_is_told(tmp_path: Path) -> None:
    port = free_port()
    program = str(Path(sys.executable).parent / "nats-server")
    with subprocess.Popen([program, "-a", "127.0.0.1", "-p", str(port), "-l", str(tmp_path / "log")]) as plain_server:
        try:

            async def main() -> None:
                bus = await open_bus(Address(zone="main", servers=(f"nats://127.0.0.1:{port}",)), name="test")
                try:
                    await bus.prepare(SETTINGS)
                finally:
                    await bus.close()

            with pytest.raises(SituError) as failed:
                asyncio.run(main())
            assert failed.value.code == "B110"
            assert "JetStream" in str(failed.value)
        finally:
            plain_server.kill()


# ── without a loop ──


def test_threads_use_a_bus_without_a_loop(server: NatsServer) -> None:
    with BlockingBus(server.address()) as bus:
        bus.prepare(SETTINGS)
        futures: dict[int, list[int]] = {}

        def work(shard: int) -> None:
            acks = [bus.store(Message(subject=NAMES.raw("r1", shard), body=b"%d" % n)) for n in range(1500)]
            futures[shard] = [ack.result().seq for ack in acks]

        threads = [threading.Thread(target=work, args=(shard,)) for shard in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        bus.flush()
        assert all(seqs == sorted(seqs) for seqs in futures.values())
        found = [int(m.body) for m in bus.read(NAMES.in_stream, 1, subjects=[NAMES.raw("r1", 1)])]
        assert found == list(range(1500))
        assert next(iter(bus.read(NAMES.in_stream, 1))).seq == 1
        assert bus.state(NAMES.in_stream).messages == 3000
        failing = bus.store(Message(subject="nowhere.at.all"))
        with pytest.raises(SituError):
            failing.result(20)
        revision = bus.put(NAMES.clients, "x", b"1")
        entry = bus.get(NAMES.clients, "x")
        assert entry is not None
        assert entry.revision == revision
        bus.put_object("deployments", "1", b"content")
        assert bus.get_object("deployments", "1") == b"content"
    with pytest.raises(SituError, match="closed") as failed:
        bus.state(NAMES.in_stream)
    assert failed.value.code == "B101"


def test_no_loop_is_left_when_there_is_no_bus() -> None:
    before = threading.active_count()
    with pytest.raises(SituError):
        BlockingBus(Address(zone="main", servers=(f"nats://127.0.0.1:{free_port()}",)), timeout=0.3)
    assert threading.active_count() == before


FORK = """
import os, sys
from situ.bus.address import Address
from situ.bus.sync_bus import shared_bus
from situ.settings import Settings
address = Address.from_json(sys.argv[1])
bus = shared_bus(address)
assert shared_bus(address) is bus
bus.prepare(Settings(name="test"))
bus.put("registry", "x", b"1")
child = os.fork()
own = shared_bus(address)
assert (own is bus) == (child != 0)
assert own.get("registry", "x").value == b"1"
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert own.get("registry", "x").value == b"1"
    print("both")
"""


def test_a_forked_process_gets_a_connection_of_its_own(server: NatsServer) -> None:
    command = [sys.executable, "-W", "error", "-c", FORK, server.address().to_json()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "both\n"), done.stderr


def test_one_bus_is_shared_in_a_process_until_it_is_closed(server: NatsServer) -> None:
    bus = shared_bus(server.address())
    assert shared_bus(server.address()) is bus
    close_shared()
    assert not bus.connected
    again = shared_bus(server.address())
    assert again is not bus
    close_shared()


def test_programs_that_seed_their_chance_alike_store_all_they_send(server: NatsServer) -> None:
    """Ids that the bus makes up must differ between processes, whatever those do with `random`."""

    async def run() -> int:
        for _ in range(2):
            random.seed(7)
            async with await open_bus(server.address(), name="test") as bus:
                await bus.prepare(Settings(name="x"))
                await (await bus.store(Message(subject=bus.names.dead("a"), body=b"[]")))
                state = await bus.state(bus.names.dead_stream)
        return state.messages

    assert asyncio.run(run()) == 2
