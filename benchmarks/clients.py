"""Clients in processes of their own: of Situ, and of a bare JetStream by ``nats-py``, that do the same.

Events say when they were published (``sent``, nanoseconds of the monotonic clock). A publisher has a number of events
and a rate; rate 0 is as fast as it can. A subscriber ends when it has had them all.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

from benchmarks.running import Pipe

PER_MESSAGE, LINGER, UNDER_WAY = 500, 0.005, 16
_STREAM, _SUBJECT = "BARE", "bare.events"


async def paced(count: int, rate: float) -> AsyncIterator[int]:
    """Numbers at this rate, each when it is due."""
    began = time.monotonic()
    number = 0
    while number < count:
        due = count if not rate else min(count, int((time.monotonic() - began) * rate) + 1)
        for each in range(number, due):
            yield each
        number = due
        if rate and number < count:
            await asyncio.sleep(max(began + number / rate - time.monotonic(), 0.0005))


class _Received:
    """Counts events, and remembers how old they were."""

    def __init__(self, count: int) -> None:
        self.done = asyncio.Event()
        self._left = count
        self._ages: list[int] = []

    def add(self, sent: int) -> None:
        self._ages.append(time.monotonic_ns() - sent)
        self._left -= 1
        if not self._left:
            self.done.set()

    def report(self) -> dict[str, Any]:
        return {"end": time.monotonic(), "ages": [each / 1e6 for each in self._ages]}


# ── Situ ──


def sensor(number: int, sensors: int) -> str:
    """Of an event: one of so many for every fiftieth, nobody's for all others, however many there are."""
    return f"s{number // 50 % sensors}" if number % 50 == 0 else "nobody"


def publish(
    pipe: Pipe,
    *,
    folder: str,
    client: str,
    type: str,
    count: int,
    rate: float,
    filler: int = 0,
    sensors: int = 100,
) -> None:
    """Publish events of this type, their text ``filler`` bytes longer."""

    async def work() -> None:
        import situ

        text = "x" * filler
        async with situ.connect(folder, client=client, queue_timeout=120.0) as node:
            await node.advertise(type)
            await node.publish_event(type, number=-1, sent=0, sensor="s0", text="")
            await node.flush()
            await _begin(pipe)
            began = time.monotonic()
            async for number in paced(count, rate):
                await node.publish_event(
                    type, number=number, sent=time.monotonic_ns(), sensor=sensor(number, sensors), text=text
                )
            await node.flush()
            pipe.send({"begin": began, "end": time.monotonic()})

    asyncio.run(work())


def subscribe(pipe: Pipe, *, folder: str, client: str, type: str, where: str, durable: bool, count: int) -> None:
    """Take this many events that match, by a callback."""

    async def work() -> None:
        import situ

        async with situ.connect(folder, client=client) as node:
            received = _Received(count)
            wanted = await node.register_for_events(type, where=where, durable="bench" if durable else None)
            await node.add_listener(wanted, lambda event: received.add(event.data["sent"]))
            pipe.send("ready")
            await received.done.wait()
            pipe.send(received.report())
            await node.unregister_for_events(wanted)  # what nobody reads any more would be kept for ever

    asyncio.run(work())


# ── nats-py alone ──


def bare_publish(pipe: Pipe, *, url: str, token: str, count: int, rate: float, filler: int = 0) -> None:
    """Put events together into messages as Situ's clients do, and store them in a stream."""

    async def work() -> None:
        import nats

        connection = await nats.connect(url, token=token)
        stream = connection.jetstream()
        await _begin(pipe)
        began = time.monotonic()
        under_way: set[asyncio.Future[Any]] = set()
        lines: list[bytes] = []
        size, first, text = 0, 0.0, "x" * filler

        async def send() -> None:
            nonlocal lines, size
            body, lines, size = b"[\n" + b",\n".join(lines) + b"\n]", [], 0
            if len(under_way) >= UNDER_WAY:
                await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            future = await stream.publish_async(_SUBJECT, body)
            under_way.add(future)
            future.add_done_callback(under_way.discard)

        async def linger() -> None:
            while True:
                await asyncio.sleep(LINGER / 5)
                if lines and time.monotonic() - first >= LINGER:
                    await send()

        lingering = asyncio.create_task(linger())
        async for number in paced(count, rate):
            data = {"number": number, "sent": time.monotonic_ns(), "sensor": sensor(number, 100), "text": text}
            event = {"specversion": "1.0", "id": str(number), "source": "bare", "type": "Reading", "data": data}
            if not lines:
                first = time.monotonic()
            lines.append(json.dumps(event, separators=(",", ":")).encode())
            size += len(lines[-1])
            if len(lines) >= PER_MESSAGE or size >= 512 * 1024:
                await send()
        if lines:
            await send()
        lingering.cancel()
        if under_way:
            await asyncio.wait(under_way)
        pipe.send({"begin": began, "end": time.monotonic()})
        await connection.close()

    asyncio.run(work())


def bare_consume(pipe: Pipe, *, url: str, token: str, count: int) -> None:
    """Take messages as a durable pull consumer, read them, acknowledge them."""

    async def work() -> None:
        import nats
        import nats.errors

        connection = await nats.connect(url, token=token)
        stream = connection.jetstream()
        await stream.add_stream(name=_STREAM, subjects=[_SUBJECT])
        await stream.purge_stream(_STREAM)
        consumer = await stream.pull_subscribe(_SUBJECT, durable=f"bench-{time.monotonic_ns()}")
        received = _Received(count)
        pipe.send("ready")
        while not received.done.is_set():
            try:
                messages = await consumer.fetch(UNDER_WAY, timeout=30)
            except nats.errors.TimeoutError:
                continue
            for message in messages:
                for event in json.loads(message.data):
                    received.add(event["data"]["sent"])
                await message.ack()
        pipe.send(received.report())
        await connection.close()

    asyncio.run(work())


async def _begin(pipe: Pipe) -> None:
    pipe.send("ready")
    await asyncio.to_thread(pipe.recv)
