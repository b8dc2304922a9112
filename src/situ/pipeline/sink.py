"""The bus as a sink: messages are published in their order, by the task that has them.

A message with an id is stored once however often it is sent, which is what makes a repeated batch harmless. For jobs of
one's own, ``format("situ-bus")`` takes rows of ``subject headers body``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from situ.bus.address import Address
from situ.bus.blocking import shared_bus
from situ.bus.interface import Ack
from situ.bus.names import Names
from situ.event.message import Message

_UNDER_WAY = 256
OnStored = Callable[[Message, Ack], None]
_HEADERS = msgspec.json.Decoder(dict[str, str])


@dataclass
class Written(WriterCommitMessage):
    """What one task stored, and what was stored before."""

    stored: int
    repeated: int


class BusWriter(DataSourceArrowWriter):
    """Publishes the rows of each task over one connection."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return publish(self._address, _messages(iterator))


def publish(
    address: Address, messages: Iterable[Message], stored: Collection[str] = (), on_stored: OnStored | None = None
) -> Written:
    """Send what is for clients that are there now, store all else but these ids: they are known to be stored.

    If there are such ids, a batch that was interrupted is repeated. Volatile subscriptions, which promise nothing over
    a crash, get nothing of it: they may have got it before.
    """
    bus, live = shared_bus(address), Names(address.zone).live("")
    under_way: deque[tuple[Message, Future[Ack]]] = deque()
    acks: list[bool] = []

    def wait() -> None:
        message, future = under_way.popleft()
        ack = future.result()
        acks.append(ack.duplicate)
        if on_stored is not None:
            on_stored(message, ack)

    for message in messages:
        if message.id in stored:
            acks.append(True)
            continue
        if message.subject.startswith(live):
            if not stored:
                bus.send(message)
            continue
        under_way.append((message, bus.store(message)))
        if len(under_way) > _UNDER_WAY:
            wait()
    while under_way:
        wait()
    return Written(stored=acks.count(False), repeated=acks.count(True))


def _messages(batches: Iterator[pa.RecordBatch]) -> Iterator[Message]:
    for batch in batches:
        subjects, headers, bodies = (batch.column(name).to_pylist() for name in ("subject", "headers", "body"))
        for subject, header, body in zip(subjects, headers, bodies, strict=True):
            yield Message(subject=subject, headers=_HEADERS.decode(header), body=body)
