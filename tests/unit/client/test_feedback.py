"""Feedback as a client hears it: each message once, the slow hold up nobody, and only what is for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

from situ.bus.memory import MemoryBus
from situ.client.capabilities import CapabilityHandler
from situ.client.feedback import FeedbackStream
from situ.client.session import Session
from situ.event.message import Message
from situ.quality.negotiation.feedback import Advice, StateChange
from situ.settings import Settings


def change(number: int, id: str = "desk/M1", state: Any = "satisfied") -> StateChange:
    return StateChange(expectation=id, version=1, number=number, state=state)


async def told(bus: MemoryBus, message: StateChange, client: str = "desk") -> None:
    body = json.dumps(message.as_json()).encode()
    await (await bus.store(Message(subject=bus.names.feedback("sub", client), body=body)))


async def prepared() -> MemoryBus:
    bus = MemoryBus()
    await bus.prepare(Settings())
    return bus


def hearing_test(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Runs it on a loop of its own."""

    @wraps(test)
    def run() -> None:
        asyncio.run(asyncio.wait_for(test(), 10))

    return run


@hearing_test
async def test_each_message_once_whatever_comes_again() -> None:
    bus = await prepared()
    hearing: FeedbackStream[StateChange] = FeedbackStream(bus, "desk", "sub")
    assert await hearing.begin()
    assert not await hearing.begin()
    heard: asyncio.Queue[int] = asyncio.Queue()
    hearing.add(lambda each: heard.put_nowait(each.number))
    for number in (3, 3, 5, 4, 5, 6):
        await told(bus, change(number))
    await told(bus, change(1, "desk/M2"))
    await told(bus, change(9), client="other")
    assert [await heard.get() for _ in range(4)] == [3, 5, 6, 1]
    await asyncio.sleep(0)
    assert (heard.empty(), hearing.repeats) == (True, 3)
    await hearing.close()


@hearing_test
async def test_who_takes_long_or_fails_holds_up_nobody() -> None:
    bus = await prepared()
    hearing: FeedbackStream[StateChange] = FeedbackStream(bus, "desk", "sub")
    await hearing.begin()
    never, heard = asyncio.Event(), asyncio.Queue[int]()

    async def slow(_: StateChange) -> None:
        await never.wait()

    def failing(_: StateChange) -> None:
        raise RuntimeError("broken")

    hearers = [hearing.add(slow), hearing.add(failing), hearing.add(lambda each: heard.put_nowait(each.number))]
    for number in (1, 2, 3):
        await told(bus, change(number))
    assert [await heard.get() for _ in range(3)] == [1, 2, 3]
    assert [each.called for each in hearers] == [1, 3, 3]
    assert hearers[1].error == "RuntimeError: broken"
    await hearers[2].close()
    await told(bus, change(4))
    assert heard.empty()
    await hearing.close()


@hearing_test
async def test_what_cannot_be_read_is_passed_over() -> None:
    bus = await prepared()
    hearing: FeedbackStream[StateChange] = FeedbackStream(bus, "desk", "sub")
    await hearing.begin()
    stream = hearing.stream()
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    for body in (b"", b"[]", b'{"message": "situ.quality.other"}', b'{"message": "situ.quality.state"}', b"\xff"):
        await (await bus.store(Message(subject=bus.names.feedback("sub", "desk"), body=body)))
    await told(bus, change(1))
    assert (await first).number == 1
    await stream.aclose()
    await hearing.close()


@hearing_test
async def test_advice_of_long_ago_is_forgotten() -> None:
    bus = await prepared()

    async def advertise(type: str) -> None:
        """Nothing is published here."""

    handler = CapabilityHandler(bus, Session(bus, "pump", 1, 1), advertise)
    followed: asyncio.Queue[str] = asyncio.Queue()

    async def follow(advice: Advice) -> None:
        followed.put_nowait(advice.id)

    handler.on_advice(follow)
    subject = bus.names.feedback("pub", "pump")
    await asyncio.sleep(0.01)
    for number in range(1, 1502):
        advice = Advice(id=f"pump/Level#{number}", kind="relax", profile="pump/Level", number=number)
        await (await bus.store(Message(subject=subject, body=json.dumps(advice.as_json()).encode())))
    assert [await followed.get() for _ in range(1501)][-1] == "pump/Level#1501"
    assert len(handler._asked) == 1000
    await handler.close()
