"""Reading ranges of topics: the same records whenever a range is read.

`RangeReader` is for tasks of Spark, which get a range of offsets and read it as often as the batch is repeated.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from situ.kafka.connection import KafkaAddress
from situ.kafka.positions import Partition
from situ.kafka.records import KafkaRecord

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

_log = logging.getLogger("situ.kafka")
_PATIENCE = 30.0
"""Seconds without anything from Kafka, after which a task gives up: its batch is begun again later."""
_SOME = 2000
_MOST_OPEN = 16
# What a consumer has fetched ahead is thrown away when it goes elsewhere.
_OPTIONS = {"queued.max.messages.kbytes": 8192}


class RangeReader:
    """Reads ranges in one process, which goes on where the range before ended without asking anew."""

    def __init__(self, address: KafkaAddress) -> None:
        self._address = address
        self._open: OrderedDict[tuple[str, Partition], _OpenPartition] = OrderedDict()

    def read(self, group: str, partition: Partition, begin: int, end: int) -> Iterator[KafkaRecord]:
        """The records from ``begin`` to before ``end``; N160 if Kafka does not give them."""
        key = (group, partition)
        found = self._open.pop(key, None) or _OpenPartition(self._address, group, partition)
        try:
            yield from found.read(begin, end)
        except BaseException:
            found.close()
            raise
        self._open[key] = found
        while len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)[1].close()


class _OpenPartition:
    """A consumer that has one partition, and what it has read beyond the last range."""

    def __init__(self, address: KafkaAddress, group: str, partition: Partition) -> None:
        self._address = address
        self._partition = partition
        self._consumer: Consumer = address.consumer(group, **_OPTIONS)
        self._at = -1
        self._beyond: list[Message] = []

    def read(self, begin: int, end: int) -> Iterator[KafkaRecord]:
        from confluent_kafka import KafkaError, TopicPartition

        if begin != self._at:
            self._consumer.assign([TopicPartition(*self._partition, begin)])
            self._beyond = []
        heard, last = time.monotonic(), "no answer"
        # What ends the range may be no record but the mark of a transaction: then the end of the partition tells.
        while True:
            messages = self._beyond or self._consumer.consume(_SOME, timeout=0.5)
            self._beyond = []
            for place, message in enumerate(messages):
                error, offset = message.error(), message.offset() or 0
                if error is None:
                    heard = time.monotonic()
                    if offset >= end:
                        self._at, self._beyond = end, messages[place:]
                        return
                    yield KafkaRecord.of(message)
                    if offset + 1 >= end:
                        self._at, self._beyond = end, messages[place + 1 :]
                        return
                elif error.code() == KafkaError._PARTITION_EOF:
                    heard = time.monotonic()
                    if offset >= end:
                        self._at, self._beyond = end, []
                        return
                    last = f"the partition ends at {offset} and was read up to {end} before"
                elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                    first, _ = self._consumer.get_watermark_offsets(TopicPartition(*self._partition), timeout=10)
                    if first >= end:
                        self._at = -1
                        return  # all of it is gone
                    self._consumer.assign([TopicPartition(*self._partition, max(first, begin))])
                else:
                    last = str(error.str())
            if time.monotonic() - heard > _PATIENCE:
                raise self._address.away(last)

    def close(self) -> None:
        self._consumer.close()
