"""The bus as a sink of Spark: rows of ``subject id headers body`` become messages, in their order.

A message with an id is stored once however often it is sent, which is what makes a repeated batch harmless. Rows
without body carry only figures for the driver. Ids in the option ``stored`` (a JSON list) are known to be there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
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
_HEADERS = msgspec.json.Decoder(dict[str, str])


@dataclass
class Written(WriterCommitMessage):
    """What one task stored, and what was stored before."""

    stored: int
    repeated: int


class BusWriter(DataSourceArrowWriter):
    """Publishes the rows of each task over one connection."""

    def __init__(self, address: Address, stored: frozenset[str] = frozenset()) -> None:
        self._address = address
        self._stored = stored

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        bus, live = shared_bus(self._address), Names(self._address.zone).live("")
        under_way: deque[Future[Ack]] = deque()
        acks: list[bool] = []
        for message in _messages(iterator):
            if message.id in self._stored:
                acks.append(True)
                continue
            if message.subject.startswith(live):
                bus.send(message)
                continue
            under_way.append(bus.store(message))
            if len(under_way) > _UNDER_WAY:
                acks.append(under_way.popleft().result().duplicate)
        acks.extend(future.result().duplicate for future in under_way)
        bus.flush()
        return Written(stored=acks.count(False), repeated=acks.count(True))


def _messages(batches: Iterator[pa.RecordBatch]) -> Iterator[Message]:
    for batch in batches:
        subjects, headers, bodies = (batch.column(name).to_pylist() for name in ("subject", "headers", "body"))
        for subject, header, body in zip(subjects, headers, bodies, strict=True):
            if body is not None:
                yield Message(subject=subject, headers=_HEADERS.decode(header), body=body)
