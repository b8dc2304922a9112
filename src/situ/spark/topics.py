"""Topics of Kafka in the query of events: how far a batch reads them, and what its tasks read.

How far is in the offset of the batch, beside the position in the log of the bus: a batch that is repeated reads the
same records. What they become are messages as routers store those of clients, so that all behind this is the same for
both. `TopicPlanner` is beside the driver, `topic_messages` in tasks, `TopicCommits` in the driver.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import msgspec

from situ.bus.address import Address
from situ.event.message import CLIENT, CONTEXT, COUNT, DEPLOYMENT, ID, KEY, RECEIVED, REFUSED, StoredMessage, message_id
from situ.event.subjects import BusNames, shard_of
from situ.kafka.connection import KafkaAddress, group_of
from situ.kafka.formats import reader_of
from situ.kafka.partition_reader import RangeReader
from situ.kafka.positions import Extent, Partition, TopicPositions, first_offset, taken_of, within
from situ.kafka.records import RecordMessage, pack_records
from situ.lang.problems import SituError
from situ.model import Deployment
from situ.routing.topics import TopicSource
from situ.spark.checkpoint import Highest, Offset
from situ.spark.plans import load_plan
from situ.spark.real_time.leave_out import PlainOffsets, planned

_log = logging.getLogger("situ.spark")
_PAUSE = 5.0
"""Seconds for which Kafka is not asked again when it did not answer: other clients' events do not wait for it."""
_ROUTER = "kafka"
Topics = dict[str, tuple[int, int]]


def sources_of(deployment: Deployment) -> Mapping[str, TopicSource]:
    """The clients whose events come from topics."""
    return {name: each.kafka for name, each in deployment.clients.items() if each.kafka is not None}


def _key(client: str, partition: Partition) -> str:
    topic, number = partition
    return f"{client} {topic} {number}"


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Beside the driver: how far a batch reads.


class TopicPlanner:
    """Says how far batches read topics. ``highest`` gives what was taken of partitions that no batch has read."""

    def __init__(self, highest: Callable[[Offset], Highest]) -> None:
        self._highest = highest
        self._positions: TopicPositions | None = None
        self._not_before = 0.0

    def next(self, deployment: Deployment, begin: Offset, most: int) -> Topics:
        """How far the batch reads that begins there: about ``most`` records of all partitions together."""
        waiting: Topics = {key: (end, end) for key, (_, end) in begin.topics.items()}
        sources = sources_of(deployment)
        if not sources or time.monotonic() < self._not_before:
            return waiting
        try:
            if self._positions is None:
                self._positions = TopicPositions(KafkaAddress.of_process())
            return {**waiting, **self._next(self._positions, sources, deployment, begin, most)}
        except SituError as error:
            _log.warning("%s", error)
            self._not_before = time.monotonic() + _PAUSE
            return waiting

    def _next(
        self,
        positions: TopicPositions,
        sources: Mapping[str, TopicSource],
        deployment: Deployment,
        begin: Offset,
        most: int,
    ) -> Topics:
        named = {client: positions.partitions(each.topics, client) for client, each in sources.items()}
        ends = positions.ends({each for some in named.values() for each in some})
        found: Topics = {}
        for client, partitions in named.items():
            new = [each for each in partitions if _key(client, each) not in begin.topics]
            starts = self._starts(positions, client, sources[client], new, deployment, begin) if new else {}
            for each in partitions:
                _, at = begin.topics.get(_key(client, each), (0, 0))
                at = starts.get(each, at)
                if at > ends[each]:
                    within(at, Extent(0, ends[each]), each, client)
                found[_key(client, each)] = (at, max(ends[each], at))
        behind = sum(end > at for at, end in found.values())
        share = max(most // behind, 1) if behind else 0
        return {key: (at, min(end, at + share)) for key, (at, end) in found.items()}

    def _starts(
        self,
        positions: TopicPositions,
        client: str,
        source: TopicSource,
        partitions: list[Partition],
        deployment: Deployment,
        begin: Offset,
    ) -> dict[Partition, int]:
        settings = deployment.settings
        group = group_of(settings.name, settings.zone, client, source.group)
        committed = positions.committed(group, partitions)
        extents = positions.extents(partitions)
        highest = self._highest(begin)
        return {
            each: first_offset(
                source, extents[each], committed.get(each), taken_of(highest, client, each), each, client
            )
            for each in partitions
        }

    def close(self) -> None:
        if self._positions is not None:
            self._positions.close()


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# In tasks: the records as messages.


@dataclass(frozen=True)
class TopicRange:
    """What a task reads of one partition for one client."""

    client: str
    topic: str
    partition: int
    begin: int
    end: int


def ranges_of(end: Offset, number: int) -> tuple[TopicRange, ...]:
    """What the task of this number reads of topics, in a batch that ends here."""
    found = []
    for place, (key, (first, last)) in enumerate(sorted(end.topics.items())):
        client, topic, partition = key.split(" ")
        task = place % end.partitions if end.spread else shard_of(client) % end.partitions
        if last > first and task == number:
            found.append(TopicRange(client, topic, int(partition), first, last))
    return tuple(found)


@cache
def _reader(address: KafkaAddress, process: int) -> RangeReader:
    """One for each process: a forked one must not use what its parent has open."""
    return RangeReader(address)


def topic_messages(
    address: Address, ranges: tuple[TopicRange, ...], version: int, clock: int
) -> Iterator[StoredMessage]:
    """The records of these ranges as messages of their clients, received when the batch was planned."""
    if not ranges:
        return
    kafka = KafkaAddress.of_process()
    ranged = _reader(kafka, os.getpid())
    plan = load_plan(address, version)
    sources, settings = sources_of(plan.deployment), plan.deployment.settings
    names = BusNames(address.zone)
    for each in ranges:
        source = sources[each.client]
        group = group_of(settings.name, settings.zone, each.client, source.group)
        records = ranged.read(group, (each.topic, each.partition), each.begin, each.end)
        context = plan.interpretation.stamped(each.client)
        shared = planned(plan).clients.get(each.client)
        noted = PlainOffsets(records, shared.plain) if shared is not None else None
        for message in pack_records(noted or records, each.client, reader_of(source, kafka)):
            more = noted.header(message.key.seq - 1, message.count) if noted is not None else {}
            yield _message(message, names, context, version, clock, more)


def _message(
    message: RecordMessage, names: BusNames, context: str, version: int, clock: int, more: Mapping[str, str]
) -> StoredMessage:
    client = message.key.client
    headers = {
        CLIENT: client,
        CONTEXT: context,
        DEPLOYMENT: str(version),
        RECEIVED: str(clock),
        KEY: str(message.key),
        COUNT: str(message.count),
        ID: message_id(message.key, message.count),
        **more,
    }
    if message.errors:
        headers[REFUSED] = msgspec.json.encode(message.errors).decode()
    subject = names.raw(_ROUTER, shard_of(client))
    return StoredMessage(seq=0, subject=subject, body=message.body, headers=headers, at=clock)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# In the driver: Kafka is told how far clients are, so that their lag can be looked at there. Nothing goes on from it
# but a query whose checkpoint is gone.


class TopicCommits:
    """Tells Kafka how far batches have come."""

    def __init__(self, address: KafkaAddress | None) -> None:
        self._positions = TopicPositions(address) if address is not None else None

    def done(self, offset: Offset, deployment: Deployment) -> None:
        """A batch is done that ended here."""
        if self._positions is None or not offset.records:
            return
        settings = deployment.settings
        for client, source in sources_of(deployment).items():
            offsets = {
                (topic, int(partition)): end
                for key, (first, end) in offset.topics.items()
                if end > first
                for whose, topic, partition in [key.split(" ")]
                if whose == client
            }
            self._positions.commit(group_of(settings.name, settings.zone, client, source.group), offsets)

    def close(self) -> None:
        if self._positions is not None:
            self._positions.close()
