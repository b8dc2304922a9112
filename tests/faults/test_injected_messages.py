"""Every handler of messages is made to raise once: of the router, of its effects, of works beside it, of the client.

Handlers are read from the tables that dispatch to them: one that is new is tried as well.
"""

from __future__ import annotations

import asyncio
import dataclasses
import typing
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from situ.client.client import Client
from situ.edge.detect import EdgeDetection
from situ.edge.engine import EdgeEngine
from situ.edge.measure import EdgeMeter
from situ.edge.tables import EdgeTables
from situ.event.message import EventKey, Message
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.protocol import effects, messages
from situ.protocol import router_machine as machine
from situ.protocol.effects import Effect
from situ.protocol.messages import Connect, Describe, FullList, Heartbeat, Nack, Publish
from situ.protocol.wire import ROUTER_KINDS, decode_from_router, encode
from situ.router.declarations import DeclarationQueue
from situ.router.negotiation import NegotiationHost, ShapeRollout
from situ.router.router import Router
from situ.routing.model import Advertisement
from tests.edge_zone import EdgeZone, edge_zone, eventually
from tests.faults.injected import Unforeseen

CLIENTS = """
  tester: {advertisements: {levels: {type: Level}}}
  other: {advertisements: {levels: {type: Level}}}
"""
LEVEL = b'[\n{"specversion":"1.0","type":"Level","data":{"tank":"t","level":1.0}}\n]'


def example(kind: type) -> Any:
    """Something of this kind; what it says does not matter, since nobody gets to look at it."""
    hints = typing.get_type_hints(kind, vars(messages) | vars(effects))
    names = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else msgspec.structs.fields(kind)
    return kind(**{each.name: _value(each.name, hints[each.name]) for each in names})


def _value(name: str, hint: Any) -> Any:
    plain: dict[str, Any] = {
        "ticket": 999_999,
        "key": EventKey("tester", 1, 1),
        "body": LEVEL if hint is bytes else {},
        "message": Describe(req=1),
        "what": (),
        "wanted": None,
        "operation": {},
    }
    if name in plain:
        return plain[name]
    origin = typing.get_origin(hint) or hint
    by_type: dict[Any, Any] = {str: "x", bool: False, float: 0.0, tuple: (), dict: {}}
    if origin is int or (origin not in by_type and int in typing.get_args(hint)):
        return 1
    return by_type.get(origin, {} if "Mapping" in str(hint) else None)


class Talking:
    """A client that speaks for itself."""

    def __init__(self, zone: EdgeZone, client: str = "tester") -> None:
        self._zone = zone
        self._client = client
        self.session = 0

    async def say(self, message: Any) -> Any:
        headers, body = encode(message, self.session)
        subject = self._zone.names.ingress("r1", self._client)
        answer = await self._zone.bus.request(Message(subject=subject, headers=headers, body=body), timeout=10)
        return decode_from_router(answer.headers, answer.body)

    async def connect(self) -> None:
        """As a new process does."""
        self.session += 1
        for message in (Connect(incarnation=self.session), FullList()):
            answer = await self.say(message)
            assert not isinstance(answer, Nack), answer


@asynccontextmanager
async def talking(folder: Path) -> AsyncIterator[tuple[EdgeZone, Router, Talking]]:
    async with edge_zone(folder, clients=CLIENTS) as zone:
        assert zone.router is not None
        yield zone, zone.router, Talking(zone)


async def is_well(zone: EdgeZone, client: str = "other") -> None:
    """Another client is served, from its first word to an event that is stored."""
    async with zone.connect(client) as node:
        await node.describe("Level")
        await (await node.publish_event("Level", tank="t", level=2.0)).stored


def once(work: Any) -> tuple[Any, list[int]]:
    """A handler that raises the first time."""
    raised: list[int] = []

    def fail(*args: Any, **kwargs: Any) -> Any:
        if not raised:
            raised.append(1)
            raise Unforeseen("put in by a test")
        return work(*args, **kwargs)

    return fail, raised


def test_every_message_of_a_client(tmp_path: Path) -> None:
    async def main() -> None:
        async with talking(tmp_path) as (zone, router, tester):
            for kind, work in list(machine._MESSAGES.items()):
                await tester.connect()
                incarnation = tester.session
                said = example(kind)
                if kind is Publish:
                    said = Publish(key=EventKey("tester", incarnation, 1), count=1, body=LEVEL)
                before = Counter(router.failures)
                machine._MESSAGES[kind], raised = once(work)
                try:
                    answer = await tester.say(said)
                finally:
                    machine._MESSAGES[kind] = work
                assert raised, kind
                assert isinstance(answer, Nack), (kind, answer)
                assert (answer.of, answer.code) == (kind.__name__, "Q133")
                assert "put in by" not in answer.message
                assert Counter(router.failures) - before == {f"message {kind.__name__}": 1}
                # What it was about is said once more, as the client library does, and is done.
                await tester.connect()
                assert not isinstance(await tester.say(Heartbeat()), Nack)
            await is_well(zone)

    asyncio.run(main())


def test_every_input_of_the_machine(tmp_path: Path) -> None:
    async def main() -> None:
        async with talking(tmp_path) as (zone, router, tester):
            await tester.connect()
            for kind, work in list(machine._STEPS.items()):
                before = Counter(router.failures)
                machine._STEPS[kind], raised = once(work)
                try:
                    router._put(example(kind))
                    await eventually(lambda raised=raised: bool(raised), within=20)
                finally:
                    machine._STEPS[kind] = work
                assert sum((Counter(router.failures) - before).values()) == 1, kind
            assert not isinstance(await tester.say(Heartbeat()), Nack)
            await is_well(zone)

    asyncio.run(main())


def test_every_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = typing.get_args(Effect)
    assert kinds

    async def main() -> None:
        async with talking(tmp_path) as (zone, router, tester):
            await tester.connect()
            do = Router._do
            for kind in kinds:
                effect = example(kind)
                if kind is effects.Declare:
                    effect = replace(effect, what=Advertisement(client="tester", name="x", type="Level"))
                raised: list[int] = []

                async def fail(
                    self: Router, given: Effect, wanted: Effect = effect, raised: list[int] = raised
                ) -> None:
                    if given is wanted:
                        raised.append(1)
                        raise Unforeseen("put in by a test")
                    await do(self, given)

                before = Counter(router.failures)
                with monkeypatch.context() as patch:
                    patch.setattr(Router, "_do", fail)
                    patch.setitem(machine._STEPS, effects.Link, lambda *given, effect=effect: (effect,))
                    router._put(effects.Link(client="tester", up=True))
                    await eventually(lambda raised=raised: bool(raised), within=20)
                assert Counter(router.failures) - before == {f"effect {kind.__name__}": 1}
            assert not isinstance(await tester.say(Heartbeat()), Nack)
            await is_well(zone)

    asyncio.run(main())


def test_storing_that_fails_once_is_told_and_the_event_is_stored_when_it_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the client library does is all that is needed."""
    take, raised = EdgeEngine.take, []

    async def fail(self: EdgeEngine, *args: Any, **kwargs: Any) -> Any:
        if not raised:
            raised.append(1)
            raise Unforeseen("put in by a test")
        return await take(self, *args, **kwargs)

    async def main() -> None:
        async with edge_zone(tmp_path, clients=CLIENTS) as zone:
            monkeypatch.setattr(EdgeEngine, "take", fail)
            async with zone.connect("tester") as node:
                await (await node.publish_event("Level", tank="t", level=1.0)).stored
            assert raised
            assert zone.router is not None
            assert zone.router.failures == {"effect Store": 1}
            assert len(await zone.messages(zone.names.root_stream)) == 1

    asyncio.run(main())


ENGINE_WORKS = {
    "route": (EdgeEngine, "_route_on"),
    "follow": (EdgeEngine, "_follow"),
    "save": (EdgeEngine, "_save"),
    "measure": (EdgeMeter, "look_on"),
    "tables": (EdgeTables, "refresh_on"),
    "adopt": (EdgeEngine, "_try_again"),
    "detect": (EdgeDetection, "run"),
}
ROUTER_WORKS = {
    "follow": (Router, "_follow"),
    "await engines": (Router, "_await_engines"),
    "declare": (DeclarationQueue, "run"),
    "release": (DeclarationQueue, "release"),
    "negotiate": (NegotiationHost, "run"),
    "reshape": (ShapeRollout, "run"),
}


def test_every_work_beside_the_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them at once, when they begin: each begins again."""
    for owner, name in (*ENGINE_WORKS.values(), *ROUTER_WORKS.values()):
        fail, _ = once(getattr(owner, name))

        async def work(*args: Any, fail: Any = fail, **kwargs: Any) -> None:
            await fail(*args, **kwargs)

        monkeypatch.setattr(owner, name, work)

    async def main() -> None:
        async with edge_zone(tmp_path, clients=CLIENTS) as zone:
            router, engine = zone.router, zone.engine
            assert router is not None
            assert engine is not None
            assert engine.works.keys() == ENGINE_WORKS.keys()
            assert router.works.keys() == ROUTER_WORKS.keys()
            async with zone.connect("other") as node, zone.connect("desk") as desk:
                # Needs nearly all of them: a declaration, its version, and that engines have it.
                got = await desk.register_for_events("Level")
                await (await node.publish_event("Level", tank="t", level=2.0)).stored
                async with asyncio.timeout(60):
                    assert (await anext(aiter(got))).data.level == 2.0
            assert engine.counts.failures == {f"engine {name}": 1 for name in ENGINE_WORKS}
            assert router.failures == {f"router {name}": 1 for name in ROUTER_WORKS}

    asyncio.run(main())


def test_every_message_of_a_router_at_the_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a client is told, and what happens to its session: it stays connected, and counts what it missed."""

    async def main() -> None:
        async with edge_zone(tmp_path, clients=CLIENTS) as zone, zone.connect("tester") as node:
            session = node._session
            for kind in sorted(ROUTER_KINDS - {"HistoryAck"}):
                headers, body = encode(example(getattr(messages, kind, None) or _quality(kind)))
                with monkeypatch.context() as patch:
                    patch.setattr("situ.client.session.decode_from_router", once(decode_from_router)[0])
                    await session._heard(Message(subject="x", headers=headers, body=body))
                assert session.mistakes.counts[f"client {kind}"] == 1
            assert node.client == "tester"
            for name in ("on_told", "on_events"):
                before = sum(session.mistakes.counts.values())
                given = getattr(session, name)
                setattr(session, name, once(given)[0])
                told = {"Situ-Message": "AdAck"} if name == "on_told" else {}
                body = b'{"ad":"levels","state":"installed"}' if told else LEVEL
                await session._heard(Message(subject="x", headers=told, body=body))
                setattr(session, name, given)
                assert sum(session.mistakes.counts.values()) == before + 1
            await (await node.publish_event("Level", tank="t", level=2.0)).stored
            assert sum((await node.status()).failures.values()) == len(ROUTER_KINDS) - 1 + 2

    asyncio.run(main())


def _quality(kind: str) -> type:
    from situ.protocol import messages as quality_messages

    return getattr(quality_messages, kind)  # type: ignore[no-any-return]


def test_what_a_client_sends_is_sent_again_and_what_it_hears_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from situ.client.publish_queue import PublishQueue

    async def main() -> None:
        async with edge_zone(tmp_path, clients=CLIENTS) as zone, zone.connect("tester") as node:
            monkeypatch.setattr(PublishQueue, "_acknowledged", once(PublishQueue._acknowledged)[0])
            await (await node.publish_event("Level", tank="t", level=2.0)).stored
            assert (await node.status()).failures == {"client publish": 1}
            assert len(await zone.messages(zone.names.root_stream)) == 1, "stored once, however often it was sent"
            got: list[float] = []

            def hear(event: Any) -> None:
                if not got:
                    got.append(-1.0)
                    raise Unforeseen("put in by a test")
                got.append(event.data.level)

            async with zone.connect("other") as other:
                listener = await node.add_listener("Level", hear)
                for number in range(3):
                    await (await other.publish_event("Level", tank="t", level=float(number))).stored
                await eventually(lambda: len(got) == 3, within=20)
            assert got == [-1.0, 1.0, 2.0]
            assert isinstance(node, Client)
            assert "Unforeseen" in listener.error

    asyncio.run(main())


def test_a_router_that_cannot_go_on_ends_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`situ status` said for ever that it runs; now the run ends with what ended it."""

    async def main() -> None:
        async with talking(tmp_path) as (_, router, tester):
            await tester.connect()

            def no_memory(*args: Any) -> Any:
                raise MemoryError

            monkeypatch.setattr("situ.router.router.step", no_memory)
            router._put(effects.Link(client="x", up=True))
            with pytest.raises(SituError, match="MemoryError") as ended:
                async with asyncio.timeout(20):
                    await router.ended()
            assert ended.value.code == "N102"

    asyncio.run(main())
