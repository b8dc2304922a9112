"""Stage enrich: messages of the root log → rows of the leaves of all policies, for the buckets that work them.

A bucket gets the rows it needs as bytes, however many they are: one row for Spark to move. What a task saw of push
sources, and what came too late, goes to the driver in rows of no bucket.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import msgspec
import pyarrow as pa

from situ.deployment.detecting import Detecting
from situ.deployment.former_terms import in_terms_of_now
from situ.deployment.hiding import NOTHING_HIDDEN, Hidden
from situ.deployment.plan import Plan
from situ.deployment.stepping import Read, read_rows, readable
from situ.deployment.tally import Tally
from situ.event.isolation import Failure, is_of_event
from situ.event.lines import decode_line, stored_lines
from situ.event.message import CLIENT, COUNT, KEY, EventKey, Stored, position
from situ.event.row import Row
from situ.situation.enrichment.enrich import Observed
from situ.situation.enrichment.known import Knowledge
from situ.situation.enrichment.rows import to_blob
from situ.situation.meaning.detection import Instances
from situ.situation.meaning.watermark import Seen, merged

DRIVER = -1
"""The bucket of what is for the driver."""
BUCKETS = pa.schema([("bucket", pa.int32()), ("blob", pa.binary())])
MANY = 1000
"""Messages that are enriched together."""


class Noticed(msgspec.Struct):
    """What a task noticed beside the rows."""

    def add(self, other: Noticed) -> None:
        """With what it noticed of more messages."""
        self.seen = merged(self.seen, other.seen)
        self.late.update(other.late)
        self.tally.add(other.tally)
        self.failed.update(other.failed)

    seen: dict[str, Seen] = {}
    late: dict[int, list[str]] = {}
    """Positions of events that came too late, and the policies they came too late for."""
    tally: Tally = msgspec.field(default_factory=Tally)
    failed: dict[int, Failure] = {}
    """Positions of events that nothing can be made of."""
    arrived: dict[str, tuple[int, int]] = {}
    """Of policies that something is expected of: the last event of each that came, by incarnation and number."""


@dataclass(slots=True)
class _Worked:
    """What is known of instances, as long as the tables are the same."""

    detecting: Detecting
    knowledge: Knowledge = field(init=False)

    def __post_init__(self) -> None:
        self.knowledge = Knowledge(self.detecting.ontology)


_worked: dict[int, _Worked] = {}


def enrich(
    messages: Iterable[Stored],
    plan: Plan,
    instances: Instances,
    reached: Mapping[str, int],
    buckets: int,
    marked: Collection[str] = (),
) -> Iterator[pa.RecordBatch]:
    """The rows for all buckets, in several portions, and then what was noticed.

    ``marked`` are the policies that something is expected of.
    """
    detecting = plan.detecting
    worked = _worked.get(id(detecting))
    if worked is None or worked.detecting is not detecting:
        _worked.clear()
        worked = _worked[id(detecting)] = _Worked(detecting)
    worked.knowledge.take(instances)
    noticed = Noticed()
    for some in _portions(messages):
        now = [in_terms_of_now(each, plan.interpretation) for each in some]
        try:
            read = _read(now, plan)
            batch, beside = for_buckets(
                read.observed, detecting, worked.knowledge, reached, buckets, read.hidden, seen=read.seen
            )
        except Exception as error:
            if not is_of_event(error):
                raise
            rows = [row for each in now for row in _rows_of(each)]
            good, failed = readable(detecting, plan.reading, rows, worked.knowledge)
            read = read_rows(detecting, plan.reading, good)
            batch, beside = for_buckets(
                read.observed, detecting, worked.knowledge, reached, buckets, read.hidden, seen=read.seen
            )
            beside.failed.update(failed)
        noticed.add(beside)
        noticed.arrived = _latest(noticed.arrived, some, marked)
        yield batch
    yield for_driver(noticed)


def _read(messages: Sequence[Stored], plan: Plan) -> Read:
    """What messages of the log say, as far as policies see them."""
    positions = (position(each.seq, 0) for each in messages)
    clients = (each.headers.get(CLIENT, "") for each in messages)
    read = plan.detecting.observing.messages([each.body for each in messages], positions, clients)
    if plan.reading is None:
        return Read(observed=read.observed, seen=read.seen, hidden=NOTHING_HIDDEN)
    shown = plan.reading.messages(messages)
    return Read(observed=read.observed, seen=shown.seen, hidden=shown.hidden)


def _rows_of(message: Stored) -> list[Row]:
    lines = stored_lines(message)
    return [decode_line(line, pos=position(message.seq, place)) for place, line in enumerate(lines)]


def for_buckets(
    observed: Sequence[Observed],
    detecting: Detecting,
    knowledge: Knowledge,
    reached: Mapping[str, int],
    buckets: int,
    hidden: Hidden = NOTHING_HIDDEN,
    *,
    seen: Mapping[str, Seen] = MappingProxyType({}),
) -> tuple[pa.RecordBatch, Noticed]:
    """What each bucket gets of these observations; policies get nothing of events that are ``hidden`` from them."""
    noticed = Noticed(seen=dict(seen))
    late = detecting.late(observed, reached, hidden)
    noticed.late.update(late)
    enriched = detecting.enrichment.run(observed, knowledge)
    noticed.tally.take_observed(observed)
    noticed.tally.take_late(late)
    noticed.tally.take_enriched(enriched)
    parts = detecting.parts(enriched.rows, buckets, hidden)
    return _batch((bucket, to_blob(rows)) for bucket, rows in enumerate(parts) if rows), noticed


def for_driver(noticed: Noticed) -> pa.RecordBatch:
    return _batch([(DRIVER, msgspec.msgpack.encode(noticed))])


def every_bucket(buckets: int) -> pa.RecordBatch:
    """Rows that make each bucket take a step, though it got nothing."""
    return _batch((bucket, b"") for bucket in range(buckets))


def _latest(
    arrived: Mapping[str, tuple[int, int]], messages: Iterable[Stored], marked: Collection[str]
) -> dict[str, tuple[int, int]]:
    found = dict(arrived)
    for message in messages if marked else ():
        if (client := message.headers.get(CLIENT, "")) in marked:
            key, count = EventKey.parse(message.headers[KEY]), int(message.headers[COUNT])
            found[client] = max(found.get(client, (0, 0)), (key.incarnation, key.seq + count - 1))
    return found


def _portions(messages: Iterable[Stored]) -> Iterator[list[Stored]]:
    some: list[Stored] = []
    for message in messages:
        some.append(message)
        if len(some) >= MANY:
            yield some
            some = []
    if some:
        yield some


def _batch(rows: Iterable[tuple[int, bytes]]) -> pa.RecordBatch:
    found = list(rows)
    columns = [
        pa.array([bucket for bucket, _ in found], pa.int32()),
        pa.array([blob for _, blob in found], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=BUCKETS)
