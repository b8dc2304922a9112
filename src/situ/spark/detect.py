"""The two stages of detection in Spark's workers: enrich makes rows of the root log, detect runs kernels by bucket.

`enrich` turns messages into rows of the leaves of all policies, for the buckets that work them. `work` takes the rows
of one bucket and its remembered state to detections, which go to the driver.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from types import MappingProxyType

import msgspec
import pyarrow as pa

from situ.bus.address import Address
from situ.event.failures import StageFailure, is_of_event
from situ.event.lines import decode_line, stored_lines
from situ.event.message import CLIENT, COUNT, KEY, EventKey, StoredMessage, position
from situ.event.row import Row
from situ.gc_tuning import trim_memory
from situ.policies.enrichment.enrich import PushObservations
from situ.policies.enrichment.instances import InstanceColumns
from situ.policies.enrichment.rows import concat, from_blob, to_blob
from situ.policies.kernel.detections import DetectionBatch, detections_of
from situ.policies.kernel.state import KernelState
from situ.policies.model import Detection, InstancesByConcept
from situ.policies.watermark import SourceTimes, merge_source_times
from situ.spark import frames
from situ.spark.checkpoint import Offset
from situ.spark.elastic.load import sample_of_task
from situ.spark.plans import known_instances, load_plan
from situ.spark.state_store import BucketStep, KernelStateStore, name_of
from situ.stages.detect.detection_plan import NOTHING_HIDDEN, DetectionPlan, Hidden
from situ.stages.detect.situation_events import DetectionCounts
from situ.stages.detect.step import PolicyObservations, read_rows, readable, step_safely
from situ.stages.plan import Plan
from situ.stages.root_log import upgrade_message
from situ.storage.state_folder import StateFolder

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Stage enrich. A bucket gets the rows it needs as bytes, however many they are: one row for Spark to move. What a task
# saw of push sources, and what came too late, goes to the driver in rows of no bucket.

DRIVER = -1
"""The bucket of what is for the driver."""
BUCKETS = pa.schema([("bucket", pa.int32()), ("blob", pa.binary())])
ENRICHED = pa.schema(
    [
        *BUCKETS,
        ("events", pa.int64()),
        ("late", pa.int64()),
        ("enrich_ms", pa.float64()),
        ("watermark", pa.timestamp("us", "UTC")),
        ("state_bytes", pa.int64()),
    ]
)
"""Of what leaves the stage: with what Spark shows of it, in the rows for the driver."""
MANY = 1000
"""Messages that are enriched together."""


class EnrichmentNotes(msgspec.Struct):
    """What a task noticed beside the rows."""

    def add(self, other: EnrichmentNotes) -> None:
        """With what it noticed of more messages."""
        self.seen = merge_source_times(self.seen, other.seen)
        self.late.update(other.late)
        self.tally.add(other.tally)
        self.failed.update(other.failed)

    seen: dict[str, SourceTimes] = {}
    late: dict[int, list[str]] = {}
    """Positions of events that came too late, and the policies they came too late for."""
    tally: DetectionCounts = msgspec.field(default_factory=DetectionCounts)
    failed: dict[int, StageFailure] = {}
    """Positions of events that nothing can be made of."""
    arrived: dict[str, tuple[int, int]] = {}
    """Of policies that something is expected of: the last event of each that came, by incarnation and number."""


@dataclass(slots=True)
class _EnrichedPart:
    """What is known of instances, as long as the tables are the same."""

    detecting: DetectionPlan
    knowledge: InstanceColumns = field(init=False)

    def __post_init__(self) -> None:
        self.knowledge = InstanceColumns(self.detecting.ontology)


_worked: dict[int, _EnrichedPart] = {}


def enriching(address: Address) -> frames.Mapped:
    """The function that Spark maps over the rows of the root log, in every batch."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        began = time.perf_counter()
        note, number, _ = frames.batch_of_task()
        for batch in enrich_part(address, note, number, frames.messages_of(batches)):
            yield _shown(batch, note, number, began)

    return run


def _shown(batch: pa.RecordBatch, note: frames.BatchNote, number: int, began: float) -> pa.RecordBatch:
    """With what Spark shows, if this is what a task tells the driver at its end."""
    count, shown = batch.num_rows, dict[str, object]()
    if count == 1 and batch.column(0)[0].as_py() == DRIVER:
        noticed = msgspec.msgpack.decode(batch.column(1)[0].as_py(), type=EnrichmentNotes)
        shown = {
            "events": sum(noticed.tally.events.values()),
            "late": len(noticed.late),
            "enrich_ms": round(1000 * (time.perf_counter() - began), 3),
            "watermark": note.watermark,
            "state_bytes": 0 if number else note.state_bytes,
        }
    columns = [pa.array([shown.get(each.name)] * count, each.type) for each in list(ENRICHED)[len(BUCKETS) :]]
    return pa.RecordBatch.from_arrays([*batch.columns, *columns], schema=ENRICHED)


def enrich_part(
    address: Address, note: frames.BatchNote, number: int, messages: Iterable[StoredMessage]
) -> Iterator[pa.RecordBatch]:
    """The rows that one part of a batch makes of its messages."""
    if not number:
        yield every_bucket(note.buckets)
    plan = load_plan(address, note.end.version)
    if note.end.seq <= note.begin.seq or plan.detecting.is_empty:
        return
    instances = known_instances(plan, address, note.end.tables)
    yield from enrich(messages, plan, instances, note.reached, note.buckets, note.expected)


def enrich(
    messages: Iterable[StoredMessage],
    plan: Plan,
    instances: InstancesByConcept,
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
        worked = _worked[id(detecting)] = _EnrichedPart(detecting)
    worked.knowledge.take(instances)
    noticed = EnrichmentNotes()
    for some in _portions(messages):
        now = [upgrade_message(each, plan.interpretation) for each in some]
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


def _read(messages: Sequence[StoredMessage], plan: Plan) -> PolicyObservations:
    """What messages of the log say, as far as policies see them."""
    positions = (position(each.seq, 0) for each in messages)
    clients = (each.headers.get(CLIENT, "") for each in messages)
    read = plan.detecting.observing.messages([each.body for each in messages], positions, clients)
    if plan.reading is None:
        return PolicyObservations(observed=read.observed, seen=read.seen, hidden=NOTHING_HIDDEN)
    shown = plan.reading.messages(messages)
    return PolicyObservations(observed=read.observed, seen=shown.seen, hidden=shown.hidden)


def _rows_of(message: StoredMessage) -> list[Row]:
    lines = stored_lines(message)
    return [decode_line(line, pos=position(message.seq, place)) for place, line in enumerate(lines)]


def for_buckets(
    observed: Sequence[PushObservations],
    detecting: DetectionPlan,
    knowledge: InstanceColumns,
    reached: Mapping[str, int],
    buckets: int,
    hidden: Hidden = NOTHING_HIDDEN,
    *,
    seen: Mapping[str, SourceTimes] = MappingProxyType({}),
) -> tuple[pa.RecordBatch, EnrichmentNotes]:
    """What each bucket gets of these observations; policies get nothing of events that are ``hidden`` from them."""
    noticed = EnrichmentNotes(seen=dict(seen))
    late = detecting.late(observed, reached, hidden)
    noticed.late.update(late)
    enriched = detecting.enrichment.run(observed, knowledge)
    noticed.tally.take_observed(observed)
    noticed.tally.take_late(late)
    noticed.tally.take_enriched(enriched)
    parts = detecting.parts(enriched.rows, buckets, hidden)
    return _batch((bucket, to_blob(rows)) for bucket, rows in enumerate(parts) if rows), noticed


def for_driver(noticed: EnrichmentNotes) -> pa.RecordBatch:
    return _batch([(DRIVER, msgspec.msgpack.encode(noticed))])


def every_bucket(buckets: int) -> pa.RecordBatch:
    """Rows that make each bucket take a step, though it got nothing."""
    return _batch((bucket, b"") for bucket in range(buckets))


def _latest(
    arrived: Mapping[str, tuple[int, int]], messages: Iterable[StoredMessage], marked: Collection[str]
) -> dict[str, tuple[int, int]]:
    found = dict(arrived)
    for message in messages if marked else ():
        if (client := message.headers.get(CLIENT, "")) in marked:
            key, count = EventKey.parse(message.headers[KEY]), int(message.headers[COUNT])
            found[client] = max(found.get(client, (0, 0)), (key.incarnation, key.seq + count - 1))
    return found


def _portions(messages: Iterable[StoredMessage]) -> Iterator[list[StoredMessage]]:
    some: list[StoredMessage] = []
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Stage detect. A task has some buckets of a batch: what is remembered of each, the rows that came for it, and the
# watermarks give what is remembered afterwards, and detections.


class BucketDetections(msgspec.Struct):
    """What a bucket found: detections by policy, as Arrow streams; and whether time alone can bring more."""

    detections: dict[str, bytes] = {}
    due: bool = False
    size: int = 0
    """Of what is remembered."""
    failed: dict[int, StageFailure] = {}
    """Positions of events that a policy could not work on."""
    begun_anew: dict[str, StageFailure] = {}
    """Policies that could not go on from what they remembered here."""
    worker: str = ""
    """The executor, where somebody asked."""


@dataclass(slots=True)
class _InHand:
    """What this process has of a bucket: as which batch left it, and how much lies between that and what is stored."""

    at: str
    states: Mapping[str, KernelState]
    steps: int = 0
    size: int = 0


_in_hand: dict[tuple[StateFolder, int, int], _InHand] = {}
"""By checkpoint, bucket, and how many buckets there are."""
_MOST_STEPS = 50
_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchShare:
    """What all tasks of a batch know: where it begins and ends, how far it decides, which policies go on."""

    address: Address
    checkpoint: StateFolder
    begin: Offset
    end: Offset
    watermarks: Mapping[str, int]
    kept: frozenset[str]
    """Policies that are what they were."""
    buckets: int
    """Among which what is remembered at the end is divided."""
    before: int = 0
    """And where the batch begins; 0: in the same way."""
    filled: bool = False
    """Whether policies begin that have worked a part of the past."""

    @property
    def anew(self) -> bool:
        """Whether others than those may have been at work before."""
        return self.begin.version != self.end.version

    @property
    def divides(self) -> bool:
        """Whether what is remembered is divided anew."""
        return self.before not in (0, self.buckets)


def detecting_in(share: BatchShare) -> frames.Mapped:
    """The function that Spark maps over the rows of a batch."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        blobs: dict[int, list[bytes]] = {}
        for batch in batches:
            for bucket, blob in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                blobs.setdefault(bucket, []).append(blob)
        yield from (row_of(DRIVER, blob) for blob in blobs.pop(DRIVER, ()))
        if not blobs:
            return
        plan = load_plan(share.address, share.end.version)
        instances = known_instances(plan, share.address, share.end.tables)

        def former() -> DetectionPlan:
            return former_policies(share, plan)

        _drop_others(share)
        sample = sample_of_task(plan.deployment.settings)
        for bucket, parts in sorted(blobs.items()):
            given = [blob for blob in parts if blob]
            found = work(share, plan.detecting, former, instances, bucket, given)
            found.worker = sample.worker if sample is not None else ""
            yield row_of(bucket, msgspec.msgpack.encode(found))

    return run


def work(
    share: BatchShare,
    detecting: DetectionPlan,
    former: Callable[[], DetectionPlan],
    instances: InstancesByConcept,
    bucket: int,
    blobs: list[bytes],
) -> BucketDetections:
    """One bucket's step: with these rows for it, in blobs, what it remembers is brought up to the watermarks.

    ``former`` are the policies that were at work before.
    """
    store, end = KernelStateStore(share.checkpoint, bucket), name_of(share.end)
    begin, place = name_of(share.begin), (share.checkpoint, bucket, share.buckets)
    # Put back when the step is done: after one that failed, the state is worked out from what is stored.
    hand = _in_hand.pop(place, None)
    if share.divides:
        hand = _InHand(begin, _divided(share, former(), bucket))
    elif hand is None or hand.at != begin:
        policies = former() if share.begin.version else detecting
        hand = _recalled(begin, policies, instances, bucket, share.buckets, store, hand)
    kept = {name: state for name, state in hand.states.items() if name in share.kept}
    if share.filled:
        kept |= _loaded(detecting, store.load_filled(end), bucket, share.buckets)
    found, after = _step(detecting, kept, blobs, share.watermarks, instances, bucket, share.buckets)
    steps, size = hand.steps + 1, hand.size + sum(map(len, blobs))
    # Stored steps are taken again by the policies of one version, in one bucket: so that a new version begins with a
    # whole state, and another number of buckets, too.
    if share.anew or share.divides or steps > _MOST_STEPS or size > _MOST_BYTES:
        saved = {name: detecting.kernel(name, bucket, share.buckets).save(state) for name, state in after.items()}
        store.save_whole(end, saved, begin)
        steps = size = 0
        trim_memory()
    else:
        store.save_step(end, BucketStep(begin, blobs, dict(share.watermarks)))
    _in_hand[place] = _InHand(end, after, steps, size)
    found.size = sum(state.size for state in after.values())
    return found


def remembered_at(
    checkpoint: StateFolder, at: str, detecting: DetectionPlan, instances: InstancesByConcept, bucket: int, buckets: int
) -> Mapping[str, KernelState]:
    """What the kernels of a bucket remember where a batch ended, by policy."""
    return _recalled(at, detecting, instances, bucket, buckets, KernelStateStore(checkpoint, bucket), None).states


def detections_in(policy: str, found: Iterable[BucketDetections]) -> list[Detection]:
    """What buckets found of a policy, on the driver."""
    streams = (each.detections[policy] for each in found if policy in each.detections)
    batches = (batch for stream in streams for batch in pa.ipc.open_stream(stream))
    return [detection for batch in batches for detection in detections_of(policy, DetectionBatch(batch))]


def _recalled(
    begin: str,
    detecting: DetectionPlan,
    instances: InstancesByConcept,
    bucket: int,
    buckets: int,
    store: KernelStateStore,
    before: _InHand | None,
) -> _InHand:
    """What was remembered where a batch begins, worked out from what is stored, by those who were at work then.

    Spark gives a bucket to another worker now and then, and back: what this one had ``before`` is a few steps behind.
    """
    stored, steps = store.load(begin, before.at if before is not None else None)
    if stored is not None:
        before = _InHand(begin, _loaded(detecting, stored, bucket, buckets))
    assert before is not None
    states, size = before.states, before.size
    for step in steps:
        _, states = _step(detecting, states, step.blobs, step.watermarks, instances, bucket, buckets)
        size += sum(map(len, step.blobs))
    return _InHand(begin, states, before.steps + len(steps), size)


def _loaded(detecting: DetectionPlan, stored: Mapping[str, bytes], bucket: int, buckets: int) -> dict[str, KernelState]:
    loaded = {
        name: detecting.kernel(name, bucket, buckets).load(stored[name]) for name in detecting.watches if name in stored
    }
    return {name: state for name, state in loaded.items() if state is not None}


def _step(
    detecting: DetectionPlan,
    states: Mapping[str, KernelState],
    blobs: Iterable[bytes],
    watermarks: Mapping[str, int],
    instances: InstancesByConcept,
    bucket: int,
    buckets: int,
) -> tuple[BucketDetections, dict[str, KernelState]]:
    parts: dict[int, list[pa.RecordBatch]] = {}
    for blob in blobs:
        for number, some in from_blob(blob).items():
            parts.setdefault(number, []).extend(some)
    rows = {number: concat(detecting.leaf_of(number), some) for number, some in parts.items()}
    found, after = BucketDetections(), dict[str, KernelState]()
    for name in detecting.watches:
        kernel = detecting.kernel(name, bucket, buckets)
        state = states.get(name) or kernel.start()
        own = detecting.rows_of(name, rows)
        stepped = step_safely(kernel, state, own, watermarks.get(name, state.watermark), instances)
        after[name] = stepped.state
        found.failed.update(stepped.failed)
        if stepped.begun_anew is not None:
            found.begun_anew[name] = stepped.begun_anew
        found.due = found.due or after[name].due is not None
        if stepped.found.batch.num_rows:
            found.detections[name] = stream_of(stepped.found.batch)
    return found, after


def former_policies(share: BatchShare, plan: Plan) -> DetectionPlan:
    """The policies that were at work before the batch."""
    return load_plan(share.address, share.begin.version).detecting if share.anew else plan.detecting


def _drop_others(share: BatchShare) -> None:
    """What this process has of buckets that there are no more, nobody asks for again."""
    for place in [each for each in _in_hand if each[0] == share.checkpoint]:
        if place[2] not in (share.buckets, share.before):
            del _in_hand[place]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Another number of buckets. The batch whose end names another number than its beginning begins with what the buckets of
# before left: first each of them is written down as a whole, in a job of its own, then each of the new ones takes its
# share of those that it comes from. An identity is in the bucket that its checksum leaves as the remainder, so these
# are the ones that agree with it in the remainder by the greatest common divisor: of 2 buckets that become 8 one, of 8
# that become 2 four. What they left stays until the batch behind this one: however often this one is repeated, it
# begins with the same.


def sources_of(bucket: int, before: int, after: int) -> list[int]:
    """Of so many buckets those that have something for a bucket when there are so many of them."""
    step = gcd(before, after)
    return [each for each in range(before) if each % step == bucket % step]


def _divided(share: BatchShare, policies: DetectionPlan, bucket: int) -> dict[str, KernelState]:
    begin = name_of(share.begin)
    parts = [
        _loaded(policies, KernelStateStore(share.checkpoint, each).load_whole(begin), each, share.before)
        for each in sources_of(bucket, share.before, share.buckets)
    ]
    found = {}
    for name in policies.watches:
        if any(name in part for part in parts):
            one = policies.kernel(name)
            whole = one.united([part[name] if name in part else one.start() for part in parts])
            found[name] = policies.kernel(name, bucket, share.buckets).share(whole)
    return found


def gather(share: BatchShare, policies: DetectionPlan, instances: InstancesByConcept, bucket: int) -> None:
    """Write down all that a bucket of before remembers where the batch begins; ``policies`` are those of then."""
    begin, store = name_of(share.begin), KernelStateStore(share.checkpoint, bucket)

    def states() -> Mapping[str, bytes]:
        hand = _in_hand.get((share.checkpoint, bucket, share.before))
        if hand is None or hand.at != begin:
            hand = _recalled(begin, policies, instances, bucket, share.before, store, hand)
        kernels = {name: policies.kernel(name, bucket, share.before) for name in hand.states}
        return {name: kernel.save(hand.states[name]) for name, kernel in kernels.items()}

    store.add_whole(begin, states)


def gathering(share: BatchShare) -> frames.Mapped:
    """The function that Spark maps over the numbers of the buckets of before."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            gather_buckets(share, batch.column(0).to_pylist())
            yield batch

    return run


def gather_buckets(share: BatchShare, buckets: Iterable[int]) -> None:
    """The same, of several buckets."""
    plan = load_plan(share.address, share.end.version)
    policies = former_policies(share, plan)
    # As they were known at the end of the batch that left it.
    then = load_plan(share.address, share.begin.version) if share.anew else plan
    instances = known_instances(then, share.address, share.begin.tables)
    for bucket in buckets:
        gather(share, policies, instances, bucket)


def stream_of(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def row_of(bucket: int, blob: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([bucket], pa.int32()), pa.array([blob], pa.binary())], schema=BUCKETS)
