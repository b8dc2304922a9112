"""Where topics begin and end, and how far clients are in them.

`TopicPositions` asks Kafka; `first_offset` says where a partition is begun that was never read. All calls block, and
raise N160 where Kafka does not answer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from situ.event.message import lane_of
from situ.kafka.connection import PATIENCE, KafkaAddress, reason_of
from situ.kafka.records import incarnation_of
from situ.lang.catalogue import TOPIC_CUT, TOPIC_UNUSABLE
from situ.routing.topics import END, TopicSource

if TYPE_CHECKING:
    from confluent_kafka import Consumer
    from confluent_kafka.admin import AdminClient

_log = logging.getLogger("situ.kafka")
_LOOK_AGAIN = 10.0
"""Seconds after which it is looked whether a topic has more partitions."""

Partition = tuple[str, int]
"""Topic and number."""


class Extent(msgspec.Struct, frozen=True):
    """The first offset a partition still has, and the one behind its last committed record."""

    first: int
    end: int


class TopicPositions:
    """Asks Kafka for all clients of a zone."""

    def __init__(self, address: KafkaAddress) -> None:
        self._address = address
        self._admin: AdminClient | None = None
        self._consumers: dict[str, Consumer] = {}
        self._known: dict[str, tuple[float, int]] = {}
        """Topic → when it was looked at, and how many partitions it has; 0: there is no such topic."""
        self._told: set[str] = set()

    def partitions(self, topics: Iterable[str], whose: str) -> list[Partition]:
        """The partitions of these topics; one that is not there is told once, and has none yet."""
        found: list[Partition] = []
        for topic in topics:
            looked, count = self._known.get(topic, (0.0, 0))
            if time.monotonic() - looked > _LOOK_AGAIN:
                count = self._count(topic, whose)
                self._known[topic] = (time.monotonic(), count)
            found += [(topic, number) for number in range(count)]
        return found

    def _count(self, topic: str, whose: str) -> int:
        metadata = self._address.topic(self._administrator, topic)
        if metadata.error is None and metadata.partitions:
            self._told.discard(topic)
            return len(metadata.partitions)
        if topic not in self._told:
            self._told.add(topic)
            reason = reason_of(metadata.error) if metadata.error is not None else "it has no partitions"
            remedy = "Create it, or correct its name; what it gets is read as soon as it is there."
            _log.warning("%s", TOPIC_UNUSABLE(topic=topic, whose=whose, reason=reason, remedy=remedy))
        return 0

    def extents(self, partitions: Collection[Partition]) -> dict[Partition, Extent]:
        """Of each partition what it holds now."""
        if not partitions:
            return {}
        first, end = self._offsets(partitions, "earliest"), self._offsets(partitions, "latest")
        return {each: Extent(first[each], end[each]) for each in partitions}

    def ends(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """The offsets behind the last committed records."""
        return self._offsets(partitions, "latest") if partitions else {}

    def _offsets(self, partitions: Collection[Partition], which: str) -> dict[Partition, int]:
        from confluent_kafka import IsolationLevel, TopicPartition, admin

        spec: Any = admin.OffsetSpec  # type: ignore[attr-defined]  # the library exports it, its types do not
        asked = {TopicPartition(*each): getattr(spec, which)() for each in partitions}
        try:
            answers = self._administrator.list_offsets(
                asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=PATIENCE
            )
            return {(at.topic, at.partition): answer.result(PATIENCE).offset for at, answer in answers.items()}
        except Exception as error:
            raise self._address.away(error) from error

    def committed(self, group: str, partitions: Collection[Partition]) -> dict[Partition, int]:
        """How far a group is, as Kafka was told last; without partitions of which it was told nothing."""
        if not partitions:
            return {}
        from confluent_kafka import TopicPartition

        asked = [TopicPartition(*each) for each in partitions]
        found = self._address.when_coordinated(lambda: self._consumer(group).committed(asked, PATIENCE))
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def commit(self, group: str, offsets: Mapping[Partition, int]) -> None:
        """Tell Kafka how far a group is, some time soon: nothing depends on it but who looks at lags."""
        if not offsets:
            return
        from confluent_kafka import TopicPartition

        at = [TopicPartition(*each, offset) for each, offset in offsets.items()]
        try:
            self._consumer(group).commit(offsets=at, asynchronous=True)
        except Exception as error:  # noqa: BLE001 - it is told the next time
            _log.debug("how far %s is could not be told: %s", group, reason_of(error))

    @property
    def _administrator(self) -> AdminClient:
        if self._admin is None:
            self._admin = self._address.admin()
        return self._admin

    def _consumer(self, group: str) -> Consumer:
        if group not in self._consumers:
            self._consumers[group] = self._address.consumer(group)
        return self._consumers[group]

    def close(self) -> None:
        for each in self._consumers.values():
            each.close()
        self._consumers.clear()
        self._admin = None


def first_offset(
    source: TopicSource, extent: Extent, committed: int | None, taken: int, partition: Partition, client: str
) -> int:
    """Where reading a partition begins: behind what was ``taken`` of it by the root log, or ``committed`` to Kafka."""
    known = max(taken, committed if committed is not None else 0)
    if known:
        return within(known, extent, partition, client)
    return extent.end if source.start == END else extent.first


def within(at: int, extent: Extent, partition: Partition, client: str) -> int:
    """The offset to go on from; where records are gone that were not read, that is told and they are passed over."""
    topic, number = partition
    if at < extent.first:
        reason = f"{extent.first - at} records were deleted before they were read"
        remedy = "Have the topic keep its records for longer than a run may stand still."
        to = extent.first
    elif at > extent.end:
        reason = "the topic was created anew, or lost records"
        remedy = "Nothing is read of it before it holds as much: give a topic that is created anew another name."
        to = at
    else:
        return at
    told = TOPIC_CUT(
        topic=topic,
        partition=number,
        client=client,
        first=extent.first,
        last=extent.end - 1,
        at=at,
        reason=reason,
        remedy=remedy,
    )
    _log.warning("%s", told)
    return to


def taken_of(highest: Mapping[str, tuple[int, int]], client: str, partition: Partition) -> int:
    """The offset behind what was taken of a partition; 0 if nothing was."""
    incarnation = incarnation_of(*partition)
    _, seq = highest.get(lane_of(client, incarnation), (0, 0))
    return seq
