"""Who is let in: kept by the registry, admitted by the embedded server while it runs, ended at once."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from situ.app.admission import ask_to_admit, serve_admissions
from situ.bus.address import Address
from situ.bus.credentials import ClientCredentials, file_of, make_folder, make_seed, public_key, seed_in, write_secret
from situ.bus.embedded_server import EmbeddedServer
from situ.bus.nats import NatsBus, open_bus
from situ.event.message import Message
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.protocol.permissions import BusPrincipal
from situ.registry import Registry, open_registry
from situ.settings import Settings

SETTINGS = Settings(name="test")


def key() -> str:
    return public_key(make_seed())


class TestRegistry:
    def test_a_client_is_added_once(self, tmp_path: Path) -> None:
        with open_registry(tmp_path, SETTINGS) as registry:
            made = registry.principals.add("alice", key(), who="ann")
            assert registry.principals.list() == (made,)
            assert (made.name, made.version, made.who, made.principal.rights) == ("alice", 1, "ann", "client")
            with pytest.raises(SituError) as refused:
                registry.principals.add("alice", key(), who="ann")
            assert refused.value.code == "D115"
            assert registry.principals.list() == (made,)

    def test_rotated_and_removed_keys_are_ended(self, tmp_path: Path) -> None:
        with open_registry(tmp_path, SETTINGS) as registry:
            principals = registry.principals
            principals.add("alice", key(), who="ann")
            second = key()
            assert principals.rotate("alice", second, who="ben").version == 2
            assert [each.principal.key for each in principals.list()] == [second]
            principals.remove("alice", who="ben")
            assert principals.list() == ()
            assert principals.add("alice", key(), who="ann").version == 3, "no number is given twice"

    @pytest.mark.parametrize("what", ["rotate", "remove"])
    def test_nobody_ends_what_is_not_there(self, what: str, tmp_path: Path) -> None:
        with open_registry(tmp_path, SETTINGS) as registry:
            registry.principals.add("alice", key(), who="ann")
            of = registry.principals
            done = {
                "rotate": lambda: of.rotate("alise", key(), who="ann"),
                "remove": lambda: of.remove("alise", who=""),
            }
            with pytest.raises(SituError) as refused:
                done[what]()
            assert refused.value.code == "D116"
            assert "alice" in refused.value.problems[0].hint

    @pytest.mark.parametrize("name", ["", "a.b", "a b", "*", "a_b", "x" * 65, "a/b", "../x"])
    def test_names_that_no_subject_can_hold_are_refused(self, name: str, tmp_path: Path) -> None:
        with open_registry(tmp_path, SETTINGS) as registry, pytest.raises(SituError) as refused:
            registry.principals.add(name, key(), who="ann")
        assert refused.value.code == "D117"

    def test_only_public_keys_are_kept(self, tmp_path: Path) -> None:
        seed = make_seed()
        with open_registry(tmp_path, SETTINGS) as registry:
            registry.principals.add("alice", public_key(seed), who="ann")
        kept = b"".join(file.read_bytes() for file in (tmp_path / ".situ").glob("registry.db*"))
        assert public_key(seed).encode() in kept
        assert seed.encode() not in kept


class Embedded:
    """A server, its run's connection, and clients with files of their own."""

    def __init__(self, folder: Path, server: EmbeddedServer, bus: NatsBus, registry: Registry) -> None:
        self.folder = folder
        self.server = server
        self.bus = bus
        self.registry = registry

    def add(self, client: str, *, rotate: bool = False) -> Path:
        seed = make_seed()
        known = self.registry.principals
        (known.rotate if rotate else known.add)(client, public_key(seed), who="ann")
        make_folder(self.folder)
        file = file_of(self.folder, client)
        write_secret(file, ClientCredentials(client=client, zone="main", seed=seed).text())
        return file

    def address(self, client: str) -> Address:
        own = replace(self.server.address, token_file="", credentials=str(file_of(self.folder, client)))
        return replace(own, principal=client)

    async def open(self, client: str) -> NatsBus:
        return await open_bus(self.address(client), name=client, timeout=5, patience=5)


@asynccontextmanager
async def embedded(folder: Path) -> AsyncIterator[Embedded]:
    with open_registry(folder, SETTINGS) as registry:
        async with EmbeddedServer(folder, SETTINGS) as server, await open_bus(server.address, name="run") as bus:
            await bus.prepare(SETTINGS)
            await serve_admissions(bus, registry, server)
            yield Embedded(folder, server, bus, registry)


async def gone(bus: NatsBus) -> None:
    async with asyncio.timeout(10):
        while bus.connected:
            await asyncio.sleep(0.02)


class TestEmbedded:
    def test_clients_are_let_in_while_it_runs_and_shut_out_at_once(self, tmp_path: Path) -> None:
        async def main() -> None:
            async with embedded(tmp_path) as there:
                there.add("alice")
                with pytest.raises(SituError) as early:
                    await there.open("alice")
                assert early.value.code == "B102"
                there.add("bob")
                await ask_to_admit(there.bus)
                alice, bob = await there.open("alice"), await there.open("bob")
                there.registry.principals.remove("alice", who="ann")
                await ask_to_admit(there.bus)
                await gone(alice)
                with pytest.raises(SituError) as refused:
                    await alice.request(Message(subject="situ.main.in.r1.alice"), timeout=1)
                assert refused.value.code == "B102"
                assert "rotate alice" in refused.value.problems[0].hint
                with pytest.raises(SituError) as late:
                    await there.open("alice")
                assert late.value.code == "B102"
                assert (bob.connected, bob.reconnects) == (True, 0), "nobody else notices"
                assert (there.bus.connected, there.bus.reconnects) == (True, 0)
                await alice.close()
                await bob.close()

        asyncio.run(main())

    def test_stolen_credentials_are_worth_nothing_once_they_are_rotated(self, tmp_path: Path) -> None:
        async def main() -> None:
            async with embedded(tmp_path) as there:
                file = there.add("alice")
                await ask_to_admit(there.bus)
                stolen = tmp_path / "stolen"
                stolen.write_text(file.read_text())
                thief_is = replace(there.address("alice"), credentials=str(stolen))
                alice, thief = await there.open("alice"), await open_bus(thief_is, name="thief")
                there.add("alice", rotate=True)
                await ask_to_admit(there.bus)
                await gone(thief)
                async with asyncio.timeout(10):
                    while alice.reconnects < 1:
                        await asyncio.sleep(0.02)
                assert alice.connected, "its file was replaced: it is let in again by itself"
                await asyncio.sleep(0.3)
                assert not thief.connected
                with pytest.raises(SituError) as refused:
                    await open_bus(thief_is, name="thief", timeout=5)
                assert refused.value.code == "B102"
                await alice.close()
                await thief.close()

        asyncio.run(main())

    def test_a_configuration_that_the_server_refuses_changes_nothing(self, tmp_path: Path) -> None:
        async def main() -> None:
            async with embedded(tmp_path) as there:
                there.add("alice")
                await ask_to_admit(there.bus)
                alice = await there.open("alice")
                with pytest.raises(SituError) as refused:
                    await there.server.admit([BusPrincipal(name="eve", key="Unothing")])
                assert refused.value.code == "B110"
                assert alice.connected
                there.add("bob")
                await ask_to_admit(there.bus)
                await (await there.open("bob")).close()
                await alice.close()

        asyncio.run(main())

    def test_who_was_let_in_is_let_in_by_a_server_that_is_started_again(self, tmp_path: Path) -> None:
        async def main() -> None:
            async with embedded(tmp_path) as there:
                there.add("alice")
                await ask_to_admit(there.bus)
                assert there.server._process is not None
                there.server._process.kill()
                await (await there.open("alice")).close()
                assert there.server.restarts == 1

        asyncio.run(main())

    def test_a_client_cannot_have_others_let_in(self, tmp_path: Path) -> None:
        async def main() -> None:
            async with embedded(tmp_path) as there:
                there.add("alice")
                await ask_to_admit(there.bus)
                alice = await there.open("alice")
                with pytest.raises(SituError) as refused:
                    await ask_to_admit(alice)
                assert refused.value.code == "B115"
                await alice.close()

        asyncio.run(main())

    def test_no_secret_is_in_the_configuration_and_a_token_of_before_is_replaced(self, tmp_path: Path) -> None:
        make_folder(tmp_path)
        secret = tmp_path / ".situ" / "credentials" / "bus"
        secret.write_text("the-token-of-an-older-release")

        async def main() -> None:
            async with embedded(tmp_path) as there:
                file = there.add("alice")
                await ask_to_admit(there.bus)
                assert stat.S_IMODE(file.stat().st_mode) == 0o600
                told = (tmp_path / ".situ" / "nats" / "server.conf").read_text()
                for each in (secret, file):
                    seed = seed_in(each.read_text())
                    assert seed is not None
                    assert seed not in told
                    assert public_key(seed) in told

        asyncio.run(main())
