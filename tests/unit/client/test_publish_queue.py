"""A client's queue against a real router machine, over a wire that loses, delays and breaks what it carries."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable

import pytest

from situ.client.publish_queue import Packet, PublishQueue, Receipt, pause
from situ.event.message import split_lines
from situ.lang.catalogue import NO_RIGHT
from situ.lang.problems import SituError
from situ.protocol.effects import Answer, Effect, Received, Store, Stored, StoreFailed
from situ.protocol.messages import Connect, FromRouter, FullList, Nack, Publish, Terms
from situ.protocol.router_machine import step
from situ.protocol.router_state import RouterState

LOST = SituError(NO_RIGHT(client="pump", reason="the wire is broken"))


class Wire:
    """A router that stores in a list; ``fault`` says what happens to the n-th message: None is nothing bad."""

    def __init__(self, fault: Callable[[int], str | None] = lambda number: None) -> None:
        self.fault = fault
        self.stored: dict[str, bytes] = {}
        self.sent = 0
        self.restarts = 0
        self.sender = PublishQueue("pump", 5, self.transmit, patience=0.2)
        self.sender.terms = Terms(batch_events=10, linger=0.001)
        self.sender.on_lost = self.reconnect
        self.answers: dict[int, asyncio.Future[FromRouter]] = {}
        self.refusing = 0
        """Refusals under way: as in a lane of the bus, what is handed over behind them is refused with them."""
        self.reconnect()

    def reconnect(self) -> None:
        self.state = RouterState(zone="main", router="r1", incarnation=1)
        self.restarts += 1
        step(self.state, Received(client="pump", session=1, message=Connect(incarnation=5), ticket=0), 0.0)
        listed = FullList(acked=self.sender.stored)
        step(self.state, Received(client="pump", session=1, message=listed, ticket=0), 0.0)
        asyncio.get_running_loop().call_soon(self.sender.resume)

    async def transmit(self, message: Publish) -> FromRouter:
        self.sent += 1
        number, fault = self.sent, self.fault(self.sent)
        if fault == "lost":
            raise LOST
        if fault == "restart":
            self.state = RouterState(zone="main", router="r1", incarnation=2)
        answer: asyncio.Future[FromRouter] = asyncio.get_running_loop().create_future()
        self.answers[number] = answer
        given = Received(client="pump", session=1, message=message, ticket=number)
        self.do(step(self.state, given, 0.0), "full" if fault == "full" else "")
        if fault == "unanswered":
            raise LOST
        return await answer

    def do(self, effects: tuple[Effect, ...], fault: str = "") -> None:
        loop = asyncio.get_running_loop()
        for effect in effects:
            if isinstance(effect, Answer):
                answer = self.answers.get(effect.ticket)
                if answer is not None and not answer.done():
                    answer.set_result(effect.message)
            elif isinstance(effect, Store):
                if fault or self.refusing:
                    self.refusing += 1
                    outcome: Stored | StoreFailed = StoreFailed(ticket=effect.ticket, reason="full")
                else:
                    self.stored.setdefault(f"{effect.key}+{effect.count}", effect.body)
                    outcome = Stored(ticket=effect.ticket)
                loop.call_later(random.random() / 500, self.later, self.state, outcome)

    def later(self, state: RouterState, outcome: Stored | StoreFailed) -> None:
        self.refusing -= isinstance(outcome, StoreFailed)
        self.do(step(state, outcome, 0.0))

    def events(self) -> list[bytes]:
        return [line for body in self.stored.values() for line in split_lines(body)]


async def publish(sender: PublishQueue, count: int) -> list[Receipt]:
    receipts = []
    for _ in range(count):
        if sender.busy:
            await sender.room()
        receipts.append(sender.put(b'{"n":%d}' % (sender.seq + 1), None))
    return receipts


def expected(count: int) -> list[bytes]:
    return [b'{"n":%d}' % number for number in range(1, count + 1)]


@pytest.mark.parametrize("seed", range(6))
def test_whatever_the_wire_does_all_events_are_stored_once_and_in_order(seed: int) -> None:
    chance = random.Random(seed)
    faults = {
        number: chance.choice(["lost", "full", "unanswered", "restart"])
        for number in range(1, 40)
        if chance.random() < 0.2
    }

    async def main() -> None:
        wire = Wire(faults.get)
        receipts = await publish(wire.sender, 200)
        wire.sender.hurry()
        async with asyncio.timeout(30):
            for receipt in receipts:
                while not receipt._packet.outcome.done():  # type: ignore[union-attr]
                    wire.sender.hurry()  # the pauses are tested elsewhere
                    await asyncio.sleep(0.001)
                await receipt.stored
        assert wire.events() == expected(200)
        assert (wire.sender.stored, wire.sender.queued) == (200, 0)
        await wire.sender.close()

    asyncio.run(main())


def test_events_that_come_together_share_messages() -> None:
    async def main() -> None:
        wire = Wire()
        await publish(wire.sender, 95)
        assert await wire.sender.flush(5)
        assert Counter(len(split_lines(body)) for body in wire.stored.values()) == {10: 9, 5: 1}

    asyncio.run(main())


def test_a_message_holds_no_more_bytes_than_allowed() -> None:
    async def main() -> None:
        wire = Wire()
        wire.sender.terms = Terms(batch_size=100, linger=0.001)
        for _ in range(10):
            wire.sender.put(b'{"n":"%s"}' % (b"x" * 30), None)
        assert await wire.sender.flush(5)
        assert max(len(body) for body in wire.stored.values()) <= 104
        assert len(wire.events()) == 10

    asyncio.run(main())


def test_a_full_queue_makes_the_next_wait_and_then_fail() -> None:
    async def main() -> None:
        wire = Wire(lambda number: "lost")
        wire.sender._most = 20
        await publish(wire.sender, 20)
        with pytest.raises(SituError) as error:
            await publish(wire.sender, 1)
        assert error.value.code == "R004"
        assert error.value.hint
        assert wire.sender.seq == 20
        wire.fault = lambda number: None
        wire.sender.hurry()
        await publish(wire.sender, 1)
        wire.sender.hurry()
        assert await wire.sender.flush(5)
        assert wire.events() == expected(21)
        await wire.sender.close()

    asyncio.run(main())


def test_an_event_over_the_limit_is_refused_at_once_and_takes_no_number() -> None:
    async def main() -> None:
        wire = Wire()
        wire.sender.terms = Terms(event_limit=50)
        with pytest.raises(SituError) as error:
            wire.sender.put(b"x" * 51, None)
        assert error.value.code == "R007"
        await publish(wire.sender, 1)
        assert await wire.sender.flush(5)
        assert wire.events() == expected(1)

    asyncio.run(main())


def test_what_can_never_be_stored_fails_what_waits() -> None:
    async def main() -> None:
        wire = Wire(lambda number: "lost")
        receipts = await publish(wire.sender, 3)
        wire.sender.fail(LOST)
        for receipt in receipts:
            with pytest.raises(SituError) as error:
                await receipt.stored
            assert error.value.code == "R011"
        with pytest.raises(SituError):
            await publish(wire.sender, 1)
        await wire.sender.close()

    asyncio.run(main())


def test_a_refusal_for_good_ends_the_queue() -> None:
    async def main() -> None:
        wire = Wire()

        async def refuse(message: Publish) -> FromRouter:
            return Nack(of="Publish", code="R011", message="No.", hint="Ask.")

        wire.sender._transmit = refuse
        (receipt,) = await publish(wire.sender, 1)
        with pytest.raises(SituError) as error:
            await receipt.stored
        assert (error.value.code, error.value.hint) == ("R011", "Ask.")

    asyncio.run(main())


def test_pauses_grow_are_spread_and_end_at_half_a_minute() -> None:
    assert [pause(attempt, 0.5) for attempt in range(7)] == [0.1, 0.4, 1.6, 6.4, 25.6, 30.0, 30.0]
    assert (round(pause(0, 0.0), 3), round(pause(0, 1.0), 3)) == (0.075, 0.125)
    assert pause(9, 1.0) == 30.0


def test_a_receipt_shows_its_key() -> None:
    async def main() -> None:
        assert repr(Receipt(1, "x", Packet("pump", 5, 1))) == "Receipt(key='pump.5.1', id='x', duplicate=False)"
        assert await Receipt(0, "x", None).stored == ""

    asyncio.run(main())
