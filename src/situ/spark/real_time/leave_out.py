"""What the engine leaves to real-time queries: deliveries of plain records to subscriptions that have them from there.

Where a task reads records, it notes which are plain (`note_plain`); where it delivers, it leaves out those that the
generation of its batch delivers (`RealTimeShare`). Everything else happens to these events as to any: they are in the
log, other subscriptions and policies get them, and what fails is a dead letter.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from zlib import crc32

from situ.event.message import KEY, TOPICS, EventKey, StoredMessage
from situ.event.row import Row
from situ.kafka.records import KafkaRecord
from situ.lang.records import replace
from situ.routing.delivery_groups import group_of
from situ.spark.checkpoint import Offset
from situ.spark.real_time.generations import Generation, Generations, partition_key
from situ.stages.interpret_out import ConvertedDeliveries
from situ.stages.plain_records import PlainRecords
from situ.stages.plan import Plan
from situ.stages.real_time import RealTimePlan, real_time_plan
from situ.storage.state_folder import StateFolder

PLAIN = "Situ-Plain"
"""Header of a message that was made of records: which of its events come from plain ones, as bits of a number."""
_KEPT = 8

_plans: OrderedDict[int, tuple[Plan, RealTimePlan]] = OrderedDict()


def planned(plan: Plan) -> RealTimePlan:
    """What goes in real time under a plan; the last few are remembered."""
    found = _plans.get(plan.version)
    if found is None or found[0] is not plan:
        found = _plans[plan.version] = plan, real_time_plan(plan)
        while len(_plans) > _KEPT:
            _plans.popitem(last=False)
    return found[1]


# ── where records are read ──


class PlainOffsets:
    """Notes the offsets of plain records while they are read."""

    def __init__(self, records: Iterable[KafkaRecord], plain: PlainRecords) -> None:
        self._records, self._plain = records, plain
        self._offsets: set[int] = set()

    def __iter__(self) -> Iterator[KafkaRecord]:
        for each in self._records:
            if self._plain.takes(each.key, each.value, each.time):
                self._offsets.add(each.offset)
            yield each

    def header(self, first: int, count: int) -> Mapping[str, str]:
        """For a message of the records from this offset on."""
        bits = 0
        for place in range(count):
            if first + place in self._offsets:
                self._offsets.discard(first + place)
                bits |= 1 << place
        return {PLAIN: f"{bits:x}"} if bits else {}


# ── where events are delivered ──


class RealTimeShare:
    """What a task of a batch leaves to the queries of a generation."""

    def __init__(self, plan: Plan, generation: Generation) -> None:
        self._generation = generation
        self._digests = planned(plan).digests
        subscriptions = plan.deployment.routed
        self._groups = {
            group_of(subscriptions[id]): id for each in self._digests.values() for id in each if id in subscriptions
        }
        self._places = {
            TOPICS | crc32(topic.encode()) << 16 | int(partition): partition_key(topic, int(partition))
            for each in generation.starts.values()
            for topic, _, partition in (place.rpartition(" ") for place in each)
        }
        self._plain: set[tuple[str, int, int]] = set()

    @classmethod
    def of(cls, plan: Plan, checkpoint: StateFolder, end: Offset) -> RealTimeShare | None:
        """None: nothing is left out in the batch that ends there."""
        if not end.real_time:
            return None
        made = cls(plan, Generations(checkpoint).load(end.real_time))
        return made if made._groups else None

    def noted(self, messages: Iterable[StoredMessage]) -> Iterator[StoredMessage]:
        """The same messages; which of their events come from plain records is remembered."""
        for message in messages:
            bits = int(message.headers.get(PLAIN, "0"), 16)
            if bits:
                key = EventKey.parse(message.headers[KEY])
                places = (place for place in range(bits.bit_length()) if bits >> place & 1)
                self._plain.update((key.client, key.incarnation, key.seq + place) for place in places)
            yield message

    def leave_out(self, rows: Sequence[Row], worded: ConvertedDeliveries) -> ConvertedDeliveries:
        """The deliveries without those that the generation makes."""
        if not any(group in self._groups for _, group, _ in worded.durable):
            return worded
        durable = [
            each for each in worded.durable if each[1] not in self._groups or not self._is_left(rows[each[0]], each[1])
        ]
        return replace(worded, durable=durable)

    def _is_left(self, row: Row, group: str) -> bool:
        if (row.client, row.incarnation, row.seq) not in self._plain:
            return False
        subscription = self._groups[group]
        digest = self._digests.get(row.client, {}).get(subscription, "")
        place = self._places.get(row.incarnation, "")
        return self._generation.takes(row.client, subscription, digest, place, row.seq - 1)
