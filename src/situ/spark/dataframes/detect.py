"""Stage detect on DataFrames, as a batch: all events of a DataFrame → what became of situations.

A batch knows every event there is: none is late, and the order of rows counts for nothing. Three steps, with a shuffle
between them. `enrich_events` makes rows of leaves of events, for the buckets of policies; `detect_bucket` runs the
kernels of a bucket over the rows in the order of event time, which Spark sorts them in; `situation_table` makes
situations of detections with equal bindings. Streams are :mod:`situ.spark.dataframes.detect_stream`, which shares the
first step and the result; histories are :mod:`situ.spark.history.detect`, which shares the first two.

A task never has all rows of a bucket: they come in portions sorted by their first event time, and what no later portion
can add to is worked and let go. Spark spills what does not fit into memory while it sorts.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from situ.contexts.model import ROOT
from situ.event.failures import is_of_event
from situ.event.row import Row
from situ.lang.types.data_column import DataColumn
from situ.policies import lifecycle
from situ.policies.enrichment.enrich import EnrichedRows
from situ.policies.enrichment.instances import InstanceColumns
from situ.policies.enrichment.observations import EventColumns
from situ.policies.enrichment.rows import concat, from_blob, to_blob
from situ.policies.kernel.detections import detections_of
from situ.policies.kernel.state import KernelState
from situ.policies.lifecycle import SituationTransition, situation_sentence
from situ.policies.model import Detection, InstancesByConcept
from situ.policies.plan import Leaf
from situ.sources.table import Table
from situ.spark.dataframes.conditions import is_root_event
from situ.spark.dataframes.frame import DATA, EVENT, EventFrame
from situ.spark.dataframes.worker import ProjectTerms, event_rows, now
from situ.stages.detect.detection_plan import NOTHING_HIDDEN, DetectionPlan, Hidden
from situ.stages.detect.step import PolicyObservations, PolicyReader, read_rows, readable
from situ.stages.plan import Plan
from situ.stages.stamp import stamp

_INSTANT = pa.timestamp("us", tz="UTC")
SITUATIONS = pa.schema(
    [
        ("policy", pa.string()),
        ("situation", pa.string()),
        ("phase", pa.string()),
        ("time", _INSTANT),
        ("bindings", pa.map_(pa.string(), pa.string())),
        ("causes", pa.list_(pa.struct([("source", pa.string()), ("id", pa.string())]))),
        ("start", _INSTANT),
        ("last", _INSTANT),
        ("end", _INSTANT),
        ("detections", pa.int64()),
        ("text", pa.string()),
    ]
)
"""A row for each time that something happens to a situation: it is opened, continued, or closed."""

PORTIONS = pa.schema([("bucket", pa.int32()), ("first", pa.int64()), ("blob", pa.binary())])
"""Rows of leaves for a bucket, and the earliest of their times."""
DETECTIONS = pa.schema([("policy", pa.string()), ("share", pa.int32()), ("detection", pa.binary())])
_STEP = 200_000
"""Rows that kernels of a bucket take in at a time."""
_PORTION = 16_384
"""Rows of a portion: few enough that portions of events which come in about the order of time hardly overlap."""
_TOLD = 10_000
"""Detections that a task gives back at a time."""
_FOREVER = 1_000 * 86_400 * 1_000_000
"""Microseconds after the last event at which everything is settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionTerms:
    """What workers need to detect: the project, the policies, and the tables these look things up in."""

    project: ProjectTerms
    policies: tuple[str, ...]
    tables: Mapping[str, Table]

    def ready(self) -> ReadyPolicies:
        """The policies, ready to work; compiled once in a process."""
        plan = self.project.plan()
        key = (self.project.digest, self.policies)
        found = _ready.get(key)
        if found is None or found.plan is not plan:
            detecting = plan.detecting.only(self.policies)
            reading = PolicyReader.of(detecting, plan.seeing)
            found = _ready[key] = ReadyPolicies(plan, detecting, reading, InstanceColumns(detecting.ontology))
            while len(_ready) > _KEPT:
                _ready.pop(next(iter(_ready)))
        return found


@dataclass(frozen=True, slots=True)
class ReadyPolicies:
    """Policies in a worker: compiled, with what is known of instances."""

    plan: Plan
    detecting: DetectionPlan
    reading: PolicyReader | None
    knowledge: InstanceColumns

    def instances(self, tables: Mapping[str, Table]) -> InstancesByConcept:
        known = self.detecting.tables.of(tables)
        self.knowledge.take(known)
        return known


_ready: dict[tuple[str, tuple[str, ...]], ReadyPolicies] = {}
_KEPT = 64
"""Choices of policies that a process keeps ready: in a stream each policy is one by itself."""


def blind_policies(plan: Plan, policies: Collection[str]) -> list[str]:
    """Those that do not see a table which they need, and so detect nothing."""
    return [] if plan.meeting is None else [name for name in policies if name in plan.meeting.blind]


def detect_batch(frames: Sequence[tuple[DataFrame, EventFrame]], terms: DetectionTerms, buckets: int) -> DataFrame:
    """What became of situations by the events of these DataFrames."""
    schema = from_arrow_schema(PORTIONS)
    parts = [observed(frame, kind).mapInArrow(_enriching(terms, kind, buckets), schema) for frame, kind in frames]
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionAll(part)
    found = sorted_by_bucket(rows, buckets).mapInArrow(_detecting(terms, buckets), from_arrow_schema(DETECTIONS))
    return found.groupBy("policy", "share").applyInArrow(_deciding(terms), from_arrow_schema(SITUATIONS))


def sorted_by_bucket(portions: DataFrame, buckets: int) -> DataFrame:
    """The portions of each bucket in one partition, in the order of time."""
    return portions.repartitionById(buckets, "bucket").sortWithinPartitions("bucket", "first")


def observed(frame: DataFrame, kind: EventFrame) -> DataFrame:
    """What detection reads of a DataFrame: events in root's terms that nothing is wrong with."""
    return frame.where(is_root_event(kind.type)).select(EVENT, DATA)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Events → rows of leaves.


def _enriching(terms: DetectionTerms, kind: EventFrame, buckets: int) -> Callable[[Any], Any]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ready = terms.ready()
        ready.instances(terms.tables)
        for batch in batches:
            rows, read = enrich_events(ready, kind, batch)
            yield record_batch(bucket_portions(ready.detecting, rows.rows, read.hidden, buckets), PORTIONS)

    return run


def bucket_portions(
    detecting: DetectionPlan, rows: Mapping[Leaf, pa.RecordBatch], hidden: Hidden, buckets: int
) -> Iterator[tuple[int, int, bytes]]:
    """What the buckets get of rows of leaves, as :data:`PORTIONS`."""
    for bucket, part in enumerate(detecting.parts(rows, buckets, hidden)):
        for first, some in _cut_by_time(part):
            yield bucket, first, to_blob(some)


def _cut_by_time(part: Mapping[int, pa.RecordBatch]) -> Iterator[tuple[int, Mapping[int, pa.RecordBatch]]]:
    if not part:
        return
    clocks = {number: batch.column("time").to_numpy() for number, batch in part.items()}
    count = sum(map(len, clocks.values()))
    if count <= _PORTION:
        yield min(int(clock.min()) for clock in clocks.values()), part
        return
    ordered = {}
    for number, batch in part.items():
        if np.any(np.diff(clocks[number]) < 0):
            order = np.argsort(clocks[number], kind="stable")
            batch, clocks[number] = batch.take(pa.array(order)), clocks[number][order]
        ordered[number] = batch
    every = np.sort(np.concatenate(list(clocks.values())))
    begins = [int(each) for each in np.unique(every[::_PORTION])]
    for begin, end in zip(begins, [*begins[1:], None], strict=True):
        some = {}
        for number, batch in ordered.items():
            start = int(np.searchsorted(clocks[number], begin))
            stop = batch.num_rows if end is None else int(np.searchsorted(clocks[number], end))
            if start < stop:
                some[number] = batch.slice(start, stop - start)
        yield begin, some


def enrich_events(
    ready: ReadyPolicies, kind: EventFrame, batch: pa.RecordBatch
) -> tuple[EnrichedRows, PolicyObservations]:
    """The rows of leaves that events of one type give, and what they say of push sources.

    Their columns are read as they are, where these tell it, and no value of Python is made of them. Where there are
    scopes, events are stamped first: a policy gets nothing of what it does not see, nor of what its publisher may not
    publish.
    """
    if ready.reading is None and ready.plan.seeing is None:
        read = _read_columns(ready, kind, batch)
        if read is not None:
            try:
                return ready.detecting.enrichment.run(read.observed, ready.knowledge), read
            except Exception as error:
                if not is_of_event(error):
                    raise
    return enrich_rows(ready, _rows(ready, kind, batch))


def enrich_rows(ready: ReadyPolicies, rows: Sequence[Row]) -> tuple[EnrichedRows, PolicyObservations]:
    """The same of events one by one; those that make it fail are left out."""
    detecting = ready.detecting
    try:
        read = read_rows(detecting, ready.reading, rows)
        return detecting.enrichment.run(read.observed, ready.knowledge), read
    except Exception as error:
        if not is_of_event(error):
            raise
    good, _ = readable(detecting, ready.reading, rows, ready.knowledge)
    read = read_rows(detecting, ready.reading, good)
    return detecting.enrichment.run(read.observed, ready.knowledge), read


def _read_columns(ready: ReadyPolicies, kind: EventFrame, batch: pa.RecordBatch) -> PolicyObservations | None:
    events, data = batch.column(EVENT), batch.column(DATA)
    if events.null_count or data.null_count:
        return None
    clock = now()
    received = events.field("received").cast(pa.int64()).fill_null(clock)
    times = pc.coalesce(events.field("time").cast(pa.int64()), received)
    columns = EventColumns(
        type=kind.type,
        ids=events.field("id").fill_null(""),
        sources=events.field("source").fill_null(""),
        times=times.to_numpy(),
        received=received.to_numpy(),
        positions=pa.array(np.arange(1, len(events) + 1)),
        clients=events.field("client").fill_null(""),
        data=data,
    )
    found = ready.detecting.observing.columns(columns)
    if found is None:
        return None
    return PolicyObservations(observed=found.observed, seen=found.seen, hidden=NOTHING_HIDDEN)


def _rows(ready: ReadyPolicies, kind: EventFrame, batch: pa.RecordBatch) -> list[Row]:
    struct = ready.plan.deployment.types.event(kind.type)
    assert struct is not None, "the driver has looked it up"
    column = DataColumn(struct, ready.plan.deployment.types)
    texts = column.texts(batch.column(DATA))
    rows = [row for row in event_rows(batch.column(EVENT), texts, now()) if row is not None]
    return stamped_rows(ready, rows)


def stamped_rows(ready: ReadyPolicies, rows: list[Row]) -> list[Row]:
    """Events in root's terms, with what there is to know of who may see them now."""
    if ready.plan.seeing is None:
        return rows
    for row in rows:
        row.context = ROOT
    good, _ = stamp(rows, ready.plan)
    return good


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Rows of leaves → detections.


def _detecting(terms: DetectionTerms, buckets: int) -> Callable[[Any], Any]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from detection_batches(terms, portions_of(batches), buckets)

    return run


def portions_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, bytes]]:
    """The rows of :data:`PORTIONS`."""
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def detection_batches(
    terms: DetectionTerms, portions: Iterable[tuple[int, int, bytes]], buckets: int
) -> Iterator[pa.RecordBatch]:
    """What is found in portions that are sorted by bucket and time, as :data:`DETECTIONS`."""
    ready = terms.ready()
    instances = ready.instances(terms.tables)
    for bucket, own in groupby(portions, key=lambda each: each[0]):
        some = ((first, blob) for _, first, blob in own)
        found = detect_bucket(ready.detecting, instances, bucket, buckets, some)
        while rows := [
            (each.policy, _share(each, buckets), msgspec.msgpack.encode(each)) for each in islice(found, _TOLD)
        ]:
            yield record_batch(rows, DETECTIONS)


def detect_bucket(
    detecting: DetectionPlan,
    instances: InstancesByConcept,
    bucket: int,
    buckets: int,
    portions: Iterable[tuple[int, bytes]],
) -> Iterator[Detection]:
    """What the kernels of a bucket find in all rows that there are for it: portions in the order of their first time.

    Rows before the first time of a portion are all there when it comes. They are worked when they have become many.
    """
    work = _BucketWork(detecting, instances, bucket, buckets)
    for first, blob in portions:
        if work.waiting >= work.enough and first > work.reached:
            yield from work.step(first)
        work.add(blob)
    yield from work.step(None)


class _BucketWork:
    """Kernels of a bucket on their way through time, and the rows that wait for their turn."""

    def __init__(self, detecting: DetectionPlan, instances: InstancesByConcept, bucket: int, buckets: int) -> None:
        self._detecting, self._instances = detecting, instances
        self._kernels = {name: detecting.kernel(name, bucket, buckets) for name in detecting.watches}
        self._states: dict[str, KernelState] = {}
        self._parts: dict[int, list[pa.RecordBatch]] = {}
        self.waiting, self.enough = 0, _STEP
        self.reached = -_FOREVER
        self._latest = 0

    def add(self, blob: bytes) -> None:
        for number, some in from_blob(blob).items():
            self._parts.setdefault(number, []).extend(some)
            self.waiting += sum(batch.num_rows for batch in some)

    def step(self, until: int | None) -> Iterator[Detection]:
        """Work what was before this time; None: all of it, and nothing comes any more, so that absence is settled."""
        rows = self._due(until)
        if until is None:
            until = max(self._latest, self.reached) + _FOREVER
        for name, kernel in self._kernels.items():
            own = self._detecting.rows_of(name, rows)
            own = {leaf: batch for leaf, batch in own.items() if batch.num_rows}
            if name not in self._states and not own:
                continue
            state = self._states.get(name) or kernel.start()
            self._states[name], found = kernel.step(state, own, until, self._instances)
            yield from detections_of(name, found)
        self.reached = until
        self.waiting = sum(batch.num_rows for some in self._parts.values() for batch in some)
        # Where portions overlap for long, much waits in any case: what is left is not gone over for each of them.
        self.enough = max(_STEP, 2 * self.waiting)

    def _due(self, until: int | None) -> dict[int, pa.RecordBatch]:
        due: dict[int, pa.RecordBatch] = {}
        for number, some in self._parts.items():
            batch = concat(self._detecting.leaf_of(number), some)
            if batch.num_rows:
                clock = batch.column("time").to_numpy()
                self._latest = max(self._latest, int(clock.max()))
                if until is None or self._latest < until:
                    due[number], self._parts[number] = batch, []
                    continue
                early = clock < until
                due[number] = batch.filter(pa.array(early))
                self._parts[number] = [batch.filter(pa.array(~early))]
        return due


def _share(detection: Detection, shares: int) -> int:
    """Detections with equal bindings are one situation, and must meet."""
    return zlib.crc32(repr(detection.bindings).encode()) % shares


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Detections → situations.


def _deciding(terms: DetectionTerms) -> Callable[[Any], Any]:
    def run(table: pa.Table) -> pa.Table:
        detecting = terms.ready().detecting
        name = table.column("policy")[0].as_py()
        found = [msgspec.msgpack.decode(each, type=Detection) for each in table.column("detection").to_pylist()]
        end = max(each.time for each in found) + _FOREVER
        _, told = lifecycle.step({}, found, end, detecting.watches[name].policy.hold)
        return situation_table(told, detecting)

    return run


def situation_table(told: Iterable[SituationTransition], detecting: DetectionPlan) -> pa.Table:
    """What is told of situations, as rows of :data:`SITUATIONS`."""
    rows = [situation_row(each, detecting) for each in told]
    return pa.Table.from_pylist(rows, schema=SITUATIONS)


def situation_row(transition: SituationTransition, detecting: DetectionPlan) -> dict[str, Any]:
    situation = transition.situation
    policy = detecting.watches[situation.policy].policy
    return {
        "policy": situation.policy,
        "situation": situation.id,
        "phase": transition.stage.value,
        "time": transition.time,
        "bindings": list(situation.bindings),
        "causes": [{"source": cause.source, "id": cause.id} for cause in situation.causes],
        "start": situation.start,
        "last": situation.last,
        "end": transition.end,
        "detections": situation.detections,
        "text": situation_sentence(policy, situation.bindings, transition),
    }


def record_batch(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
