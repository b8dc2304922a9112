"""Deliveries to topics: what waits for a subscription on the bus becomes records, each once.

Both engines put what a subscription gets into its durable queue, each event once. From there it goes to Kafka in
transactions: a transaction has the records of some messages of the queue, and how far the queue is, as the offset of a
consumer group. So both are there or neither is, whatever is killed. A producer of the same transactional id fences off
the one before it, so that two runs never write beside each other.

`TopicDeliveries` follows the deployment, one `_Delivery` for each subscription.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from situ.bus.event_loop import end
from situ.bus.interface import Bus, Consumption
from situ.event.message import HANDED, StoredMessage, split_lines
from situ.event.subjects import consumer_of
from situ.kafka.connection import PATIENCE, KafkaAddress, group_of, reason_of
from situ.kafka.formats import RecordWriter, WrittenRecord, writer_of
from situ.kafka.worker_thread import WorkerThread
from situ.lang.catalogue import NOT_ON_BUS, TOPIC_UNUSABLE
from situ.lang.problems import SituError
from situ.model import Deployment
from situ.routing.model import Subscription

if TYPE_CHECKING:
    from confluent_kafka import Producer

_log = logging.getLogger("situ.kafka")
_MOST_EVENTS = 5000
_LINGER = 0.005
"""Seconds for which a transaction waits for more."""
_PENDING = 64
_BEGINNING, _STUCK, _CLOSING = 5.0, 15.0, 2.0
"""Seconds for the two halves of a transaction, after which its producer is given up, and for the end of a producer."""
_PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)

OnRefused = Callable[[Sequence[tuple[bytes, SituError]]], Awaitable[None]]


class TopicDeliveries:
    """Delivers to the topics of a zone's subscriptions."""

    def __init__(self, address: KafkaAddress, bus: Bus, refuse: OnRefused) -> None:
        """``refuse`` is told which events do not fit the format of their topic."""
        self._address = address
        self._bus = bus
        self._refuse = refuse
        self._tasks: dict[str, tuple[Subscription, asyncio.Task[None]]] = {}

    async def follow(self, deployment: Deployment) -> None:
        """Deliver what this deployment says: what is new is begun, what is gone ends."""
        wanted = {id: each for id, each in deployment.subscriptions.items() if each.kafka is not None}
        gone = [id for id, (before, _) in self._tasks.items() if id not in wanted or wanted[id] != before]
        await end([self._tasks.pop(id)[1] for id in gone])
        for id, each in wanted.items():
            if id not in self._tasks:
                name = group_of(deployment.settings.name, deployment.settings.zone, id)
                writer = writer_of(each, deployment, self._address)
                delivery = _Delivery(self._address, self._bus, each, name, writer, self._refuse)
                self._tasks[id] = each, asyncio.create_task(delivery.run())

    async def close(self) -> None:
        await end([task for _, task in self._tasks.values()])
        self._tasks.clear()


class _Place(msgspec.Struct, frozen=True):
    """How far a queue is delivered: a message of it, and when that was stored.

    Among scopes the router numbers messages for their reader, so numbers of both kinds must not be compared; when a
    message was stored stays the same.
    """

    seq: int = 0
    at: int = 0
    own: bool = False

    def covers(self, message: StoredMessage) -> bool:
        own = HANDED in message.headers
        return message.at <= self.at and (own or self.own or message.seq <= self.seq)


class _Delivery:
    """Delivers one subscription, for ever."""

    def __init__(
        self,
        address: KafkaAddress,
        bus: Bus,
        subscription: Subscription,
        name: str,
        writer: RecordWriter,
        refuse: OnRefused,
    ) -> None:
        assert subscription.kafka is not None
        self._address = address
        self._bus = bus
        self._id = subscription.id
        self._topic = subscription.kafka.topic
        self._name = name
        self._writer = writer
        self._refuse = refuse
        self._failures = 0

    async def run(self) -> None:
        while True:
            try:
                await self._deliver()
            except SituError as error:
                # A subscription that is new has its queue when the router has adopted it.
                _log.log(logging.DEBUG if error.code == NOT_ON_BUS.code else logging.WARNING, "%s", error)
            except TimeoutError:
                # Whatever its transaction still does: the next producer ends it before it looks how far it came.
                _log.warning("%s", self._address.away("a transaction took too long"))
            except Exception as error:  # noqa: BLE001 - it begins again where the last transaction ended
                _log.error("delivering %s failed", self._id, exc_info=error)
            await asyncio.sleep(_PAUSES[min(self._failures, len(_PAUSES) - 1)])
            self._failures += 1

    async def _deliver(self) -> None:
        """From the last transaction on, until something fails."""
        consumption: Consumption | None = None
        sink: _Sink | None = None
        thread = WorkerThread(f"kafka {self._id}")
        try:
            sink = await thread.call(_Sink, self._address, self._topic, self._name, self._id)
            done = sink.done
            consumption = await self._bus.consume(consumer_of(self._id), pending=_PENDING)
            some: list[StoredMessage] = []
            messages = aiter(consumption)
            coming: asyncio.Future[StoredMessage] = asyncio.ensure_future(anext(messages))
            try:
                while True:
                    waits = _LINGER if some else None
                    await asyncio.wait([coming], timeout=waits)
                    if coming.done():
                        message = coming.result()
                        coming = asyncio.ensure_future(anext(messages))
                        if done.covers(message):
                            await consumption.acknowledge(message.seq)
                            continue
                        some.append(message)
                        if sum(_count(each) for each in some) < _MOST_EVENTS and len(some) < _PENDING // 2:
                            continue
                    records, refused = await thread.call(_written, some, self._writer)
                    if refused:  # before the transaction: it says that they are done with
                        await self._refuse(refused)
                    # The client library may wait for ever for a coordinator that died (librdkafka #5456 and #5511).
                    await thread.call(sink.begin, records, some[-1], within=_BEGINNING)
                    await thread.call(sink.commit, within=_STUCK)
                    await consumption.acknowledge(some[-1].seq)
                    some, self._failures = [], 0
            finally:
                coming.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await coming
        finally:
            if consumption is not None:
                with suppress(SituError, OSError):
                    await consumption.close()
            if sink is not None:
                with suppress(TimeoutError):
                    await thread.call(sink.close, within=_CLOSING)
            thread.close()


def _written(
    messages: Sequence[StoredMessage], writer: RecordWriter
) -> tuple[list[WrittenRecord], list[tuple[bytes, SituError]]]:
    """The records of these messages, and the events that do not fit the format of their topic."""
    records: list[WrittenRecord] = []
    refused: list[tuple[bytes, SituError]] = []
    for message in messages:
        for line in split_lines(message.body):
            try:
                records.append(writer.record(line))
            except SituError as error:
                if error.code.startswith("N"):
                    raise  # of the schema registry, and not of the event
                refused.append((line, error))
    return records, refused


def _count(message: StoredMessage) -> int:
    return message.body.count(b"\n")


class _Sink:
    """A producer, and how far the queue was when its last transaction ended. Used in one thread."""

    def __init__(self, address: KafkaAddress, topic: str, name: str, whose: str) -> None:
        from confluent_kafka import TopicPartition

        self._address = address
        self._topic = topic
        self._failed = ""
        """Why a record was not written; after that a sink is not used any more."""
        self._group = address.consumer(name)
        self._producer: Producer = address.producer(name)
        try:
            count = len(address.topic(self._group, topic).partitions)
            if not count:
                remedy = "Create it, or correct its name; what waits is delivered as soon as it is there."
                raise SituError(TOPIC_UNUSABLE(topic=topic, whose=whose, reason="it is not there", remedy=remedy))
            # Whoever wrote before is fenced off first, and what it left open ended: then what is committed is known.
            self._producer.init_transactions(PATIENCE * 3)
            at = [TopicPartition(topic, 0)]
            (found,) = address.when_coordinated(lambda: self._group.committed(at, PATIENCE))
        except SituError:
            self.close()
            raise
        except Exception as error:
            self.close()
            raise address.away(error) from error
        self.done = msgspec.json.decode(found.metadata, type=_Place) if found.metadata else _Place()

    def begin(self, records: Sequence[WrittenRecord], last: StoredMessage) -> None:
        """Begin a transaction: these records, and that all up to this message is delivered. N160 if that fails."""
        from confluent_kafka import TopicPartition

        place = _Place(seq=last.seq, at=last.at, own=HANDED in last.headers)
        at = [TopicPartition(self._topic, 0, last.seq + 1, msgspec.json.encode(place).decode())]
        with self._transaction():
            self._producer.begin_transaction()
            for record in records:
                self._produce(record)
            self._producer.send_offsets_to_transaction(at, self._group.consumer_group_metadata(), _BEGINNING)

    def commit(self) -> None:
        """End the transaction. N160 if it did not end."""
        with self._transaction():
            self._producer.commit_transaction(PATIENCE)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            with suppress(Exception):
                self._producer.abort_transaction(PATIENCE)
            raise self._address.away(self._failed or error) from error

    def _report(self, error: Any, _: Any) -> None:
        if error is not None:
            self._failed = self._failed or reason_of(error)

    def _produce(self, record: WrittenRecord) -> None:
        while True:
            try:
                self._producer.produce(
                    self._topic, record.value, record.key, headers=list(record.headers), on_delivery=self._report
                )
                return
            except BufferError:
                self._producer.poll(0.1)

    def close(self) -> None:
        self._group.close()
        # The library ends a producer with the object; what it has not written is not committed.
        del self._producer
