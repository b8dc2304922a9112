"""What a task of Spark publishes: stored once, and sent at once only the first time."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from situ.bus.address import Address
from situ.bus.interface import StoreAck
from situ.event.message import ID, Message
from situ.spark import dispatch as sink

ADDRESS = Address(zone="main", servers=("nats://127.0.0.1:1",))


class Bus:
    """Notes what it is given."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.stored: list[str] = []

    def send(self, message: Message) -> None:
        self.sent.append(message.subject)

    def store(self, message: Message) -> Future[StoreAck]:
        self.stored.append(message.id)
        done: Future[StoreAck] = Future()
        done.set_result(StoreAck(len(self.stored)))
        return done


@pytest.mark.parametrize(
    ("known", "stored", "sent"),
    [((), ["a", "b"], ["situ.main.live.desk"]), (("a",), ["b"], []), (("z",), ["a", "b"], [])],
)
def test_a_batch_that_is_repeated_sends_nothing_again(
    known: tuple[str, ...], stored: list[str], sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = Bus()
    monkeypatch.setattr(sink, "shared_bus", lambda address: bus)
    messages = [
        Message(subject="situ.main.root.r1.Alarm", headers={ID: "a"}),
        Message(subject="situ.main.live.desk"),
        Message(subject="situ.main.out.g1", headers={ID: "b"}),
    ]
    sink.publish(ADDRESS, messages, known)
    assert (bus.stored, bus.sent) == (stored, sent)
