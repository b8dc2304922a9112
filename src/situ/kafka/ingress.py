"""Reading topics at the edge: records become messages of their clients, which the engine takes like any others.

The engine's cursor says what was taken of each partition, so reading goes on behind that after a crash, and what is
read again nevertheless is dropped by its keys. Kafka is told how far a client is behind that.

`TopicIngress` follows the deployment; each client that has topics is read by a `_Reader`, one partition's messages in
their order. The client library blocks, so it has a thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from situ.bus.event_loop import end
from situ.bus.interface import wall_clock
from situ.event.message import EventKey
from situ.event.row import Error
from situ.kafka.connection import KafkaAddress, group_of
from situ.kafka.formats import reader_of
from situ.kafka.positions import Partition, TopicPositions, first_offset
from situ.kafka.records import KafkaRecord, RecordMessage, incarnation_of, pack_records
from situ.kafka.worker_thread import WorkerThread
from situ.lang.problems import SituError
from situ.model import Deployment
from situ.routing.topics import TopicSource

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_log = logging.getLogger("situ.kafka")
_SOME = 500
_WAIT = 0.1
_MOST_UNDER_WAY = 64
"""Messages that the engine has and has not stored yet."""
_PAUSES = (0.5, 1.0, 2.0, 5.0)
_LOOK_EVERY = 10.0
"""Seconds after which it is looked for more partitions."""
_TELL_EVERY = 1.0
_CLOSING = 2.0


class TakingEngine(Protocol):
    """The engine, as far as topics need it."""

    async def take(self, key: EventKey, count: int, body: bytes, received: int) -> asyncio.Future[Any]: ...

    async def refuse(
        self, key: EventKey, original: bytes, received: int, errors: tuple[Error, ...]
    ) -> asyncio.Future[Any]: ...

    def last_taken(self, client: str, incarnation: int) -> tuple[int, int]: ...


class TopicIngress:
    """Reads the topics of all clients of a zone for its edge engine."""

    def __init__(self, address: KafkaAddress, engine: TakingEngine, *, clock: Callable[[], int] = wall_clock) -> None:
        self._address = address
        self._engine = engine
        self._clock = clock
        self._tasks: dict[str, tuple[TopicSource, asyncio.Task[None]]] = {}

    async def follow(self, deployment: Deployment) -> None:
        """Read what this deployment says: what is new is begun, what is gone ends."""
        wanted = {name: each.kafka for name, each in deployment.clients.items() if each.kafka is not None}
        gone = [name for name, (source, _) in self._tasks.items() if wanted.get(name) != source]
        await end([self._tasks.pop(name)[1] for name in gone])
        settings = deployment.settings
        for name, source in wanted.items():
            if name not in self._tasks:
                group = group_of(settings.name, settings.zone, name, source.group)
                reader = _Reader(self._address, self._engine, name, source, group, self._clock)
                self._tasks[name] = source, asyncio.create_task(reader.run())

    async def close(self) -> None:
        await end([task for _, task in self._tasks.values()])
        self._tasks.clear()


class _Reader:
    """Reads the topics of one client, for ever."""

    def __init__(
        self,
        address: KafkaAddress,
        engine: TakingEngine,
        client: str,
        source: TopicSource,
        group: str,
        clock: Callable[[], int],
    ) -> None:
        self._address = address
        self._engine = engine
        self._client = client
        self._source = source
        self._group = group
        self._clock = clock
        self._done: dict[Partition, int] = {}
        """The offsets behind what is stored."""
        self._told: dict[Partition, int] = {}
        self._under_way: deque[tuple[Partition, int, asyncio.Future[Any]]] = deque()

    async def run(self) -> None:
        failures = 0
        while True:
            try:
                await self._read()
                failures = 0
            except SituError as error:
                _log.warning("%s", error)
            except TimeoutError:
                _log.warning("%s", self._address.away("it does not answer"))
            except Exception as error:  # noqa: BLE001 - it begins again where it was
                _log.error("reading the topics of %s failed", self._client, exc_info=error)
            await asyncio.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])
            failures += 1

    async def _read(self) -> None:
        """From what is stored on, until something fails or there are other partitions."""
        thread = WorkerThread(f"kafka {self._client}")
        positions = TopicPositions(self._address)
        consumer: Consumer | None = None
        self._under_way.clear()
        try:
            consumer = await thread.call(self._address.consumer, self._group)
            at = await thread.call(self._starts, positions)
            await thread.call(_assign, consumer, at)
            reader = reader_of(self._source, self._address)
            loop = asyncio.get_running_loop()
            looked = tell = loop.time()
            while True:
                records = await thread.call(_consume, consumer, self._address)
                if records:
                    for message in await thread.call(_pack, records, self._client, reader):
                        await self._take(message)
                await self._settle(most=_MOST_UNDER_WAY if records else 0)
                if loop.time() - tell > _TELL_EVERY:
                    tell = loop.time()
                    self._tell(positions)
                if loop.time() - looked > _LOOK_EVERY:
                    looked = loop.time()
                    found = await thread.call(positions.partitions, self._source.topics, self._client)
                    if set(found) != at.keys():
                        await self._settle(most=0)
                        return
        finally:
            # Behind the last call, which may be under way yet and must not find them closed.
            for close in (consumer.close if consumer is not None else None, positions.close):
                if close is not None:
                    with suppress(Exception):
                        await thread.call(close, within=_CLOSING)
            thread.close()

    def _starts(self, positions: TopicPositions) -> dict[Partition, int]:
        partitions = positions.partitions(self._source.topics, self._client)
        new = [each for each in partitions if each not in self._done]
        extents, committed = positions.extents(new), positions.committed(self._group, new)
        for each in new:
            _, taken = self._engine.last_taken(self._client, incarnation_of(*each))
            self._done[each] = first_offset(self._source, extents[each], committed.get(each), taken, each, self._client)
        return {each: self._done[each] for each in partitions}

    async def _take(self, message: tuple[Partition, RecordMessage]) -> None:
        partition, taken = message
        received = self._clock()
        if taken.errors:
            stored = await self._engine.refuse(taken.key, taken.body, received, taken.errors)
        else:
            stored = await self._engine.take(taken.key, taken.count, taken.body, received)
        self._under_way.append((partition, taken.end, stored))

    async def _settle(self, most: int) -> None:
        while len(self._under_way) > most:
            partition, behind, stored = self._under_way.popleft()
            await stored
            self._done[partition] = behind

    def _tell(self, positions: TopicPositions) -> None:
        new = {each: at for each, at in self._done.items() if self._told.get(each) != at}
        positions.commit(self._group, new)
        self._told |= new


def _assign(consumer: Consumer, at: dict[Partition, int]) -> None:
    from confluent_kafka import TopicPartition

    consumer.assign([TopicPartition(*each, offset) for each, offset in at.items()])


def _consume(consumer: Consumer, address: KafkaAddress) -> list[KafkaRecord]:
    from confluent_kafka import KafkaError

    found = []
    for message in consumer.consume(_SOME, timeout=_WAIT):
        error = message.error()
        if error is None:
            found.append(KafkaRecord.of(message))
        elif error.code() != KafkaError._PARTITION_EOF and not error.retriable():
            raise address.away(error)
    return found


def _pack(records: Iterable[KafkaRecord], client: str, reader: Any) -> list[tuple[Partition, RecordMessage]]:
    """The messages of records of several partitions, each partition's in their order."""
    by_partition: dict[Partition, list[KafkaRecord]] = {}
    for each in records:
        by_partition.setdefault((each.topic, each.partition), []).append(each)
    return [
        (partition, message)
        for partition, some in by_partition.items()
        for message in pack_records(some, client, reader)
    ]
