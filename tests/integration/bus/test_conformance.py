"""What every bus promises, tried on each: NATS with a real server, and the memory of a process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TypeVar

import pytest

from situ.bus.consumer_proxy import TAKE, ConsumerProxy
from situ.bus.interface import Bus
from situ.bus.memory import MemoryBus
from situ.bus.nats import open_bus
from situ.event.message import ID, MESSAGE, REPLY, Message, StoredMessage
from situ.event.subjects import BusNames
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.settings import Settings
from situ.settings.model import Log, Overlay, Retention
from tests.nats_server import NatsServer, nats_server

T = TypeVar("T")
SETTINGS = Settings(name="test")
_zones = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with nats_server(tmp_path_factory.mktemp("nats")) as running:
        yield running


@pytest.fixture(params=["nats", "memory"])
def on(request: pytest.FixtureRequest, server: NatsServer) -> Callable[..., T]:
    """Run a coroutine function on a bus with a zone of its own."""

    @asynccontextmanager
    async def opened(zone: str, settings: Settings) -> AsyncIterator[Bus]:
        bus: Bus
        if request.param == "nats":
            bus = await open_bus(server.address(zone), name="test", patience=10)
        else:
            bus = MemoryBus(zone)
        await bus.prepare(settings)
        try:
            yield bus
        finally:
            await bus.close()

    def run(work: Callable[[Bus, BusNames], Awaitable[T]], settings: Settings = SETTINGS) -> T:
        async def main() -> T:
            zone = f"t{next(_zones)}"
            async with asyncio.timeout(120), opened(zone, settings) as bus:
                return await work(bus, BusNames(zone))

        return asyncio.run(main())

    return run


async def store(bus: Bus, subject: str, *bodies: bytes, ids: bool = True) -> list[int]:
    headers = [{ID: f"{subject} {body[:40]!r}"} if ids else {} for body in bodies]
    futures = [
        await bus.store(Message(subject=subject, body=body, headers=header))
        for body, header in zip(bodies, headers, strict=True)
    ]
    return [ack.seq for ack in await asyncio.gather(*futures)]


async def collect(bus: Bus, stream: str, first: int = 1, last: int | None = None, *subjects: str) -> list[bytes]:
    return [message.body async for message in bus.read(stream, first, last, subjects=subjects)]


async def take(messages: AsyncIterator[T], number: int) -> list[T]:
    found: list[T] = []
    async for message in messages:
        found.append(message)
        if len(found) == number:
            break
    return found


# ── storing and reading ──


def test_messages_are_stored_in_order_and_read_back_whole(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        before = datetime.now(UTC)
        message = Message(subject=names.raw("r1", 3), body=b"[\n{}\n]", headers={ID: "a.1.1+1", "Situ-Key": "a.1.1"})
        assert (await (await bus.store(message))).seq == 1
        await store(bus, names.raw("r1", 4), *(b"%d" % n for n in range(2000)))
        found = [message async for message in bus.read(names.in_stream, 1)]
        assert [m.seq for m in found] == list(range(1, 2002))
        assert [m.body for m in found[1:]] == [b"%d" % n for n in range(2000)]
        first = found[0]
        assert (first.subject, first.body, dict(first.headers)) == (message.subject, message.body, message.headers)
        assert not first.redelivered
        moment = datetime.fromtimestamp(first.at / 1e6, UTC)
        assert before - timedelta(seconds=1) <= moment <= datetime.now(UTC) + timedelta(seconds=1)

    on(work)


def test_the_same_id_is_stored_once(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        message = Message(subject=names.raw("r1", 0), body=b"1", headers={ID: "x"})
        first = await (await bus.store(message))
        again = await (await bus.store(replace(message, body=b"2")))
        assert (first.seq, first.duplicate) == (1, False)
        assert (again.seq, again.duplicate) == (1, True)
        assert await collect(bus, names.in_stream) == [b"1"]

    on(work)


def test_reading_takes_ranges_and_subjects(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        for n in range(30):
            await store(bus, names.root("r1", ("A", "B.C", "D")[n % 3]), b"%d" % n)
        stream, a, bc = names.root_stream, names.root("r1", "A"), names.root("r1", "B.C")
        assert await collect(bus, stream, 5, 8) == [b"4", b"5", b"6", b"7"]
        assert await collect(bus, stream, 1, 10, a) == [b"0", b"3", b"6", b"9"]
        assert await collect(bus, stream, 2, 9, bc, a) == [b"1", b"3", b"4", b"6", b"7"]
        assert await collect(bus, stream, 28, None, f"situ.{names.zone}.root.*.D") == [b"29"]
        assert await collect(bus, stream, 31) == []
        assert await collect(bus, stream, 9, 5) == []
        assert await collect(bus, stream, 1, None, names.root("r2", "A")) == []

    on(work)


def test_large_messages_are_read_whole(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        bodies = [bytes([65 + n]) * (7 * 1024 * 1024) for n in range(4)]
        await store(bus, names.raw("r1", 0), *bodies, ids=False)
        found = await collect(bus, names.in_stream)
        assert [(len(body), body[:1]) for body in found] == [(len(body), body[:1]) for body in bodies]

    on(work)


def test_purged_sequences_are_a_gap_that_reading_passes(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        await store(bus, names.raw("r1", 0), *(b"%d" % n for n in range(10)))
        await bus.purge(names.in_stream, 5)
        state = await bus.state(names.in_stream)
        assert (state.first, state.last, state.messages) == (5, 10, 6)
        assert await collect(bus, names.in_stream, 1, 6) == [b"4", b"5"]
        await bus.purge(names.in_stream, 999)
        state = await bus.state(names.in_stream)
        assert (state.first, state.last, state.messages, state.size) == (11, 10, 0, 0)
        assert await store(bus, names.raw("r1", 0), b"next") == [11]
        assert await collect(bus, names.in_stream) == [b"next"]

    on(work)


def test_an_empty_stream_holds_nothing(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        state = await bus.state(names.dead_stream)
        assert (state.first, state.last, state.messages) == (1, 0, 0)
        assert await collect(bus, names.dead_stream) == []
        assert await bus.find(names.dead_stream, datetime.now(UTC)) == 1
        await bus.purge(names.dead_stream, 10)
        assert await store(bus, names.dead("a"), b"x") == [1]

    on(work)


def test_a_moment_is_found(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        start = datetime.now(UTC)
        await store(bus, names.root("r1"), b"a", b"b")
        await asyncio.sleep(0.02)
        between = datetime.now(UTC)
        await asyncio.sleep(0.02)
        await store(bus, names.root("r1"), b"c")
        assert await bus.find(names.root_stream, start - timedelta(minutes=1)) == 1
        assert await bus.find(names.root_stream, between) == 3
        assert await bus.find(names.root_stream, datetime.now(UTC) + timedelta(seconds=5)) == 4

    on(work)


def test_a_full_ingress_stream_refuses_and_keeps_what_it_has(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        subject = names.raw("r1", 0)
        futures = [await bus.store(Message(subject=subject, body=bytes(1000), headers={ID: str(n)})) for n in range(20)]
        results = await asyncio.gather(*futures, return_exceptions=True)
        failed = [result for result in results if isinstance(result, SituError)]
        stored = len(results) - len(failed)
        assert {error.code for error in failed} == {"B103"}
        assert 5 <= stored < 20
        held = await collect(bus, names.in_stream)
        assert len(held) == stored
        await bus.purge(names.in_stream, 5)
        assert await store(bus, subject, b"again") == [stored + 1]

    on(work, replace(SETTINGS, log=Log(size=10_000)))


def test_what_is_behind_a_refused_message_of_a_lane_is_refused_too(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        subject = names.raw("r1", 0)
        futures = [
            await bus.store(Message(subject=subject, body=bytes(size)), lane="a") for size in (1000, 20_000, 10, 10)
        ]
        other = await bus.store(Message(subject=subject, body=b"of another"), lane="b")
        results = await asyncio.gather(*futures, return_exceptions=True)
        assert [getattr(result, "code", "stored") for result in results] == ["stored", "B103", "B103", "B103"]
        assert (await other).seq == 2
        again = [await bus.store(Message(subject=subject, body=bytes(10)), lane="a") for _ in range(3)]
        assert [ack.seq for ack in await asyncio.gather(*again)] == [3, 4, 5]

    on(work, replace(SETTINGS, log=Log(size=10_000)))


def test_the_root_log_drops_its_oldest(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        await store(bus, names.root("r1"), *(b"%03d" % n + bytes(1000) for n in range(20)))
        state = await bus.state(names.root_stream)
        held = [body[:3] for body in await collect(bus, names.root_stream)]
        assert state.last == 20
        assert 5 <= state.messages < 10
        assert held == [b"%03d" % n for n in range(20 - state.messages, 20)]

    on(work, replace(SETTINGS, log=Log(size=10_000)))


def test_settings_change_a_stream_and_keep_its_content(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        await store(bus, names.raw("r1", 0), b"kept")
        await bus.prepare(SETTINGS)
        await bus.prepare(replace(SETTINGS, log=Log(size=5000)))
        assert await collect(bus, names.in_stream) == [b"kept"]
        future = await bus.store(Message(subject=names.raw("r1", 0), body=bytes(6000)))
        with pytest.raises(SituError) as refused:
            await future
        assert refused.value.code == "B103"

    on(work)


def test_what_cannot_be_stored_is_told(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        large = Message(subject=names.raw("r1", 0), body=bytes(9 * 1024 * 1024))
        with pytest.raises(SituError) as refused:
            await (await bus.store(large))
        assert refused.value.code == "B104"
        with pytest.raises(SituError) as refused:
            await bus.send(replace(large, subject=names.live("a")))
        assert refused.value.code == "B104"
        with pytest.raises(SituError) as refused:
            await (await bus.store(Message(subject="nowhere.at.all")))
        assert refused.value.code == "B109"
        for missing in (bus.state("IN_nowhere"), collect(bus, "IN_nowhere"), bus.get("nowhere", "x")):
            with pytest.raises(SituError) as refused:
                await missing
            assert refused.value.code == "B109"
        assert await store(bus, names.raw("r1", 0), b"the rest is unaffected") == [1]

    on(work)


# ── durable consumers ──


async def outgoing(bus: Bus, names: BusNames, group: str, *bodies: bytes) -> list[int]:
    return await store(bus, names.out(group), *bodies)


def test_a_consumer_gets_what_came_after_it_was_made(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        await outgoing(bus, names, "g1", b"before")
        await bus.ensure_consumer("a_x", ["g1", "g2"])
        await outgoing(bus, names, "g1", b"1")
        await outgoing(bus, names, "g3", b"of nobody")
        await outgoing(bus, names, "g2", b"2")
        await bus.ensure_consumer("a_x", ["g1", "g2"])
        await outgoing(bus, names, "g1", b"3")
        consumption = await bus.consume("a_x")
        assert [m.body for m in await take(aiter(consumption), 3)] == [b"1", b"2", b"3"]
        await consumption.close()

    on(work)


def test_what_all_have_acknowledged_is_gone(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        await bus.ensure_consumer("a_x", ["g1"])
        await bus.ensure_consumer("b_x", ["g1"])
        seqs = await outgoing(bus, names, "g1", *(b"%d" % n for n in range(10)))
        for name in ("a_x", "b_x"):
            consumption = await bus.consume(name)
            await take(aiter(consumption), 7)
            await consumption.acknowledge(seqs[5])
            await consumption.close()
            await eventually(bus, name, seqs[5])
        assert await collect(bus, names.out_stream) == [b"6", b"7", b"8", b"9"]
        await bus.drop_consumer("a_x")
        assert [state.name for state in await bus.consumers()] == ["b_x"]
        await bus.drop_consumer("b_x")
        await bus.drop_consumer("b_x")

    on(work)


async def eventually(bus: Bus, name: str, acknowledged: int) -> None:
    """An acknowledgement needs no answer, so it takes effect a moment later."""
    for _ in range(500):
        found = {state.name: state for state in await bus.consumers()}
        if found[name].acknowledged == acknowledged:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(found)


def test_a_reader_that_dies_leaves_what_it_did_not_acknowledge_to_the_next_in_order(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        await bus.ensure_consumer("a_x", ["g1", "g2"])
        for n in range(60):
            await outgoing(bus, names, f"g{n % 3}", b"%d" % n)
        wanted = [b"%d" % n for n in range(60) if n % 3]
        first = await bus.consume("a_x", pending=10)
        got = await take(aiter(first), 10)
        await first.acknowledge(got[3].seq)
        await first.close()
        await eventually(bus, "a_x", got[3].seq)

        second = await bus.consume("a_x", pending=10)
        again: list[StoredMessage] = []
        async for message in second:
            again.append(message)
            if message.body == b"59":
                break
            await second.acknowledge(message.seq)
        assert [m.body for m in again] == wanted[4:]
        assert [m.redelivered for m in again[:6]] == [True] * 6
        # What had been on its way, but was never seen, may be marked as well; what came later is not.
        assert not any(m.redelivered for m in again[20:])
        await second.close()
        await eventually(bus, "a_x", again[-2].seq)

        third = await bus.consume("a_x")
        last = (await take(aiter(third), 1))[0]
        assert (last.body, last.redelivered) == (b"59", True)
        await third.acknowledge(last.seq)
        await third.close()
        await eventually(bus, "a_x", last.seq)
        assert (await bus.state(names.out_stream)).messages == 0

    on(work)


def test_no_more_is_under_way_than_the_reader_wants(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        await bus.ensure_consumer("a_x", ["g1"])
        await outgoing(bus, names, "g1", *(b"%d" % n for n in range(50)))
        consumption = await bus.consume("a_x", pending=4)
        messages = aiter(consumption)
        got = await take(messages, 4)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(waiting := asyncio.ensure_future(anext(messages))), 0.3)
        assert (await bus.consumers())[0].unacknowledged <= 4
        await consumption.acknowledge(got[1].seq)
        assert (await waiting).body == b"4"
        await consumption.acknowledge(got[3].seq)
        assert [m.body for m in await take(messages, 3)] == [b"5", b"6", b"7"]
        await consumption.close()

    on(work)


def test_a_reader_waits_for_what_comes(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        await bus.ensure_consumer("a_x", ["g1"])
        consumption = await bus.consume("a_x")
        waiting = asyncio.ensure_future(take(aiter(consumption), 2))
        await asyncio.sleep(0.05)
        await outgoing(bus, names, "g1", b"1", b"2")
        assert [m.body for m in await waiting] == [b"1", b"2"]
        await consumption.close()

    on(work)


def test_groups_of_a_consumer_can_change(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        await bus.ensure_consumer("a_x", ["g1"])
        await outgoing(bus, names, "g1", b"1")
        await bus.ensure_consumer("a_x", ["g1", "g2"])
        await outgoing(bus, names, "g2", b"2")
        assert (await bus.consumers())[0].groups == ("g1", "g2")
        consumption = await bus.consume("a_x")
        assert [m.body for m in await take(aiter(consumption), 2)] == [b"1", b"2"]
        await consumption.close()

    on(work)


class Loud:
    """Has readers of guarded consumers get everything in capitals, and nothing of what is not theirs."""

    active = True

    def knows(self, consumer: str) -> bool:
        return consumer == "a_x"

    async def decide(self, consumer: str, message: StoredMessage) -> bytes | None:
        return message.body.upper() if self.knows(consumer) else None

    def mark(self, seq: int, number: int) -> str:
        return f"m{seq}-{number}"

    def marked(self, mark: str) -> tuple[int, int] | None:
        seq, _, number = mark.removeprefix("m").partition("-")
        return (int(seq), int(number)) if mark.startswith("m") else None


def test_readers_of_a_guarded_consumer_get_what_its_guard_makes_of_messages(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        guard = Loud()
        bus.guard(guard)
        desk = ConsumerProxy(bus, guard)

        async def serve(message: Message) -> None:
            assert message.headers[MESSAGE] == TAKE
            await desk.serve(message.subject.rpartition(".")[2], message)

        router = await bus.serve(names.ingress("r1"), serve)
        await bus.ensure_consumer("a_x", ["g1"])
        await outgoing(bus, names, "g1", b"a")
        assert not (await bus.consumers())[0].guarded
        await bus.ensure_consumer("a_x", ["g1"], guarded=True)
        await outgoing(bus, names, "g1", b"b", b"c")
        assert (await bus.consumers())[0].guarded
        for expected, redelivered in (([b"A", b"B", b"C"], False), ([b"B", b"C"], True)):
            consumption = await bus.consume("a_x")
            got = await take(aiter(consumption), len(expected))
            assert [m.body for m in got] == expected
            assert {m.redelivered for m in got} == {redelivered}
            await consumption.acknowledge(got[0].seq)
            await consumption.close()
        await outgoing(bus, names, "g1", b"d")
        consumption = await bus.consume("a_x")
        assert [m.body for m in await take(aiter(consumption), 2)] == [b"C", b"D"]
        await consumption.close()
        await bus.ensure_consumer("a_x", ["g1"])
        assert not (await bus.consumers())[0].guarded
        await desk.close()
        await router.close()

    on(work)


def test_a_later_consumer_does_not_get_what_an_earlier_one_waits_for(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        await bus.ensure_consumer("a_x", ["g1"])
        await outgoing(bus, names, "g1", b"1", b"2", b"3")
        await bus.ensure_consumer("b_x", ["g1"])
        await bus.ensure_consumer("c_x", [])
        await outgoing(bus, names, "g1", b"4", b"5")
        for name, expected in (("a_x", [b"1", b"2", b"3", b"4", b"5"]), ("b_x", [b"4", b"5"])):
            for redelivered in (False, True):
                consumption = await bus.consume(name)
                got = await take(aiter(consumption), len(expected))
                assert [m.body for m in got] == expected
                assert {m.redelivered for m in got} == {redelivered}
                await consumption.close()
        states = {state.name: state for state in await bus.consumers()}
        assert [state.groups for state in states.values()] == [("g1",), ("g1",), ()]
        assert (states["c_x"].waiting, states["b_x"].unacknowledged, states["a_x"].acknowledged) == (0, 2, 0)

    on(work)


def test_nobody_reads_as_a_consumer_that_is_not_there(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        with pytest.raises(SituError) as refused:
            await bus.consume("a_x")
        assert refused.value.code == "B109"

    on(work)


def test_what_waits_too_long_for_a_consumer_makes_room(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        await bus.ensure_consumer("a_x", ["g1"])
        await outgoing(bus, names, "g1", *(b"%03d" % n + bytes(1000) for n in range(20)))
        consumption = await bus.consume("a_x")
        messages = aiter(consumption)
        first = (await take(messages, 1))[0]
        missed = int(first.body[:3])
        assert missed > 5
        last = (await take(messages, 19 - missed))[-1]
        await consumption.acknowledge(last.seq)
        await eventually(bus, "a_x", last.seq)
        state = (await bus.consumers())[0]
        assert (state.handed, state.number) == (last.seq, 20 - missed)
        await consumption.close()

    on(work, replace(SETTINGS, overlay=Overlay(groups=Retention(size=10_000))))


# ── at once ──


def test_requests_are_answered_in_order_and_one_at_a_time(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        at_work = 0

        async def handle(message: Message) -> Message:
            nonlocal at_work
            at_work += 1
            assert at_work == 1
            await asyncio.sleep(0.001)
            at_work -= 1
            client = message.subject.rpartition(".")[2]
            return Message(subject="", body=client.encode() + message.body, headers={"X": message.headers["Y"]})

        serving = await bus.serve(names.ingress("r1"), handle)
        requests = [
            bus.request(Message(subject=names.ingress("r1", "desk"), body=b"%d" % n, headers={"Y": str(n)}))
            for n in range(20)
        ]
        answers = await asyncio.gather(*requests)
        assert [answer.body for answer in answers] == [b"desk%d" % n for n in range(20)]
        assert [answer.headers["X"] for answer in answers] == [str(n) for n in range(20)]
        await serving.close()
        with pytest.raises(SituError) as refused:
            await bus.request(Message(subject=names.ingress("r1", "desk")))
        assert refused.value.code == "B106"

    on(work)


def test_an_answer_can_come_later(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        waiting: list[Message] = []

        async def handle(message: Message) -> None:
            waiting.append(message)

        await bus.serve(names.ingress("r1"), handle)
        request = asyncio.ensure_future(bus.request(Message(subject=names.ingress("r1", "a"), body=b"?")))
        while not waiting:
            await asyncio.sleep(0.005)
        await bus.send(Message(subject=waiting[0].headers[REPLY], body=b"!"))
        assert (await request).body == b"!"

    on(work)


def test_a_request_without_answer_ends(on, caplog: pytest.LogCaptureFixture) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        async def handle(message: Message) -> Message | None:
            if message.body == b"fail":
                raise RuntimeError("a defect")
            return Message(subject="") if message.body == b"answer" else None

        await bus.serve(names.ingress("r1"), handle)
        for body in (b"", b"fail"):
            with pytest.raises(SituError) as refused:
                await bus.request(Message(subject=names.ingress("r1", "a"), body=body), timeout=0.2)
            assert refused.value.code == "B105"
        await bus.request(Message(subject=names.ingress("r1", "a"), body=b"answer"))
        assert "a defect" in caplog.text

    on(work)


def test_messages_reach_who_listens_now_and_nobody_is_no_error(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        got: asyncio.Queue[Message] = asyncio.Queue()
        await bus.send(Message(subject=names.live("a"), body=b"lost"))
        serving = await bus.serve(f"situ.{names.zone}.live.>", got.put)  # type: ignore[arg-type] # gives None
        for n in range(5):
            await bus.send(Message(subject=names.live("a"), body=b"%d" % n, headers={"N": str(n)}))
        found = [await got.get() for _ in range(5)]
        assert [m.body for m in found] == [b"%d" % n for n in range(5)]
        assert found[2].headers["N"] == "2"
        await serving.close()

    on(work)


# ── values and objects ──


def test_values_are_set_with_and_without_a_condition(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        bucket = names.clients
        assert await bus.get(bucket, "a.b") is None
        first = await bus.put(bucket, "a.b", b"1", expected=0)
        for wrong in (0, first + 7):
            with pytest.raises(SituError) as refused:
                await bus.put(bucket, "a.b", b"2", expected=wrong)
            assert refused.value.code == "B107"
        second = await bus.put(bucket, "a.b", b"2", expected=first)
        third = await bus.put(bucket, "a.b", b"")
        assert first < second < third
        entry = await bus.get(bucket, "a.b")
        assert entry is not None
        assert (entry.key, entry.value, entry.revision) == ("a.b", b"", third)
        await bus.remove(bucket, "a.b")
        assert await bus.get(bucket, "a.b") is None
        assert await bus.put(bucket, "a.b", b"new", expected=0) > third

    on(work)


def test_entries_are_listed_by_prefix(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        bucket = names.metrics
        assert await bus.entries(bucket) == ()
        for key in ("engine.b", "engine.a", "adopted.a", "engine.c", "engine.a"):
            await bus.put(bucket, key, key.encode())
        await bus.remove(bucket, "engine.c")
        assert [entry.key for entry in await bus.entries(bucket)] == ["adopted.a", "engine.a", "engine.b"]
        assert [entry.value for entry in await bus.entries(bucket, "engine.")] == [b"engine.a", b"engine.b"]

    on(work)


def test_a_watcher_sees_the_value_now_and_every_last_one(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        bucket = names.clients
        await bus.put(bucket, "a.x", b"1")
        await bus.put(bucket, "b.x", b"of no interest")
        await bus.put(bucket, "a.gone", b"1")
        await bus.remove(bucket, "a.gone")
        async with aclosing(bus.watch(bucket, "a.*")) as entries:  # type: ignore[type-var] # a generator
            assert (await anext(entries)).value == b"1"
            for n in range(20):
                await bus.put(bucket, "a.x", b"%d" % n)
                assert (await asyncio.wait_for(anext(entries), 5)).value == b"%d" % n
            await bus.put(bucket, "a.y", b"new")
            assert (await asyncio.wait_for(anext(entries), 5)).key == "a.y"
            await bus.remove(bucket, "a.x")
            gone = await asyncio.wait_for(anext(entries), 5)
            assert (gone.key, gone.value) == ("a.x", None)

    on(work)


def test_objects_are_kept_whole_and_replaced(on) -> None:  # type: ignore[no-untyped-def]
    async def work(bus: Bus, names: BusNames) -> None:
        name = f"{names.zone} 1"
        assert await bus.get_object("deployments", name) is None
        content = bytes(range(256)) * 3000
        await bus.put_object("deployments", name, content)
        assert await bus.get_object("deployments", name) == content
        await bus.put_object("deployments", name, b"")
        assert await bus.get_object("deployments", name) == b""

    on(work)
