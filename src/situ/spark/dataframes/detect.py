"""Stage detect on DataFrames, as a batch: all events of a DataFrame → what became of situations.

A batch knows every event there is: none is late, and the order of rows counts for nothing. Three steps, with a shuffle
between them. `enrich_events` makes rows of leaves of events, for the buckets of policies; `detect_bucket` runs the
kernels of a bucket over the rows in the order of event time; `situation_table` makes situations of detections with
equal bindings. Streams are :mod:`situ.spark.dataframes.detect_stream`, which shares the first step and the result.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from situ.contexts.model import ROOT
from situ.event.failures import is_of_event
from situ.event.row import Row
from situ.lang.types.model import Struct
from situ.policies import lifecycle
from situ.policies.enrichment.instances import InstanceColumns
from situ.policies.enrichment.rows import concat, from_blob, to_blob
from situ.policies.kernel.detections import detections_of
from situ.policies.kernel.kernel import Kernel
from situ.policies.lifecycle import SituationTransition, situation_sentence
from situ.policies.model import Detection, InstancesByConcept
from situ.policies.plan import Leaf
from situ.sources.table import Table
from situ.spark.dataframes.conditions import is_root_event
from situ.spark.dataframes.frame import DATA, EVENT, EventFrame
from situ.spark.dataframes.values import DataColumn
from situ.spark.dataframes.worker import ProjectTerms, event_rows, now
from situ.stages.detect.detection_plan import DetectionPlan
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

_BUCKETS = pa.schema([("bucket", pa.int32()), ("blob", pa.binary())])
_DETECTIONS = pa.schema([("policy", pa.string()), ("share", pa.int32()), ("detection", pa.binary())])
_STEP = 200_000
"""Rows that a kernel takes in at a time."""
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
    schema = from_arrow_schema(_BUCKETS)
    parts = [observed(frame, kind).mapInArrow(_enriching(terms, kind, buckets), schema) for frame, kind in frames]
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionAll(part)
    found = rows.groupBy("bucket").applyInArrow(_detecting(terms, buckets), from_arrow_schema(_DETECTIONS))
    return found.groupBy("policy", "share").applyInArrow(_deciding(terms), from_arrow_schema(SITUATIONS))


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
            shares = ready.detecting.parts(rows, buckets, read.hidden)
            found = [(bucket, to_blob(part)) for bucket, part in enumerate(shares) if part]
            yield _batch(found, _BUCKETS)

    return run


def enrich_events(
    ready: ReadyPolicies, kind: EventFrame, batch: pa.RecordBatch
) -> tuple[Mapping[Leaf, pa.RecordBatch], PolicyObservations]:
    """The rows of leaves that events of one type give, and what they say of push sources.

    Where there are scopes, events are stamped first: a policy gets nothing of what it does not see, nor of what its
    publisher may not publish.
    """
    detecting = ready.detecting
    struct = ready.plan.deployment.types.event(kind.type)
    assert struct is not None, "the driver has looked it up"
    rows = _rows(ready, struct, batch)
    try:
        read = read_rows(detecting, ready.reading, rows)
        return detecting.enrichment.run(read.observed, ready.knowledge).rows, read
    except Exception as error:
        if not is_of_event(error):
            raise
    good, _ = readable(detecting, ready.reading, rows, ready.knowledge)
    read = read_rows(detecting, ready.reading, good)
    return detecting.enrichment.run(read.observed, ready.knowledge).rows, read


def _rows(ready: ReadyPolicies, struct: Struct, batch: pa.RecordBatch) -> list[Row]:
    column = DataColumn(struct, ready.plan.deployment.types)
    texts = column.texts(batch.column(DATA))
    rows = [row for row in event_rows(batch.column(EVENT), texts, now()) if row is not None]
    if ready.plan.seeing is None:
        return rows
    for row in rows:
        row.context = ROOT
    good, _ = stamp(rows, ready.plan)
    return good


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Rows of leaves → detections.


def _detecting(terms: DetectionTerms, buckets: int) -> Callable[[Any], Any]:
    def run(table: pa.Table) -> pa.Table:
        ready = terms.ready()
        instances = ready.instances(terms.tables)
        bucket = table.column("bucket")[0].as_py()
        found = detect_bucket(ready.detecting, instances, bucket, buckets, table.column("blob").to_pylist())
        rows = [(each.policy, _share(each, buckets), msgspec.msgpack.encode(each)) for each in found]
        return pa.Table.from_batches([_batch(rows, _DETECTIONS)])

    return run


def detect_bucket(
    detecting: DetectionPlan, instances: InstancesByConcept, bucket: int, buckets: int, blobs: Iterable[bytes]
) -> Iterator[Detection]:
    """What the kernels of a bucket find in all rows that there are for it."""
    parts: dict[int, list[pa.RecordBatch]] = {}
    for blob in blobs:
        for number, some in from_blob(blob).items():
            parts.setdefault(number, []).extend(some)
    rows = {number: concat(detecting.leaf_of(number), some) for number, some in parts.items()}
    for name in detecting.watches:
        own = detecting.rows_of(name, rows)
        if any(batch.num_rows for batch in own.values()):
            yield from _run(name, detecting.kernel(name, bucket, buckets), own, instances)


def _run(
    name: str, kernel: Kernel, rows: Mapping[Leaf, pa.RecordBatch], instances: InstancesByConcept
) -> Iterator[Detection]:
    """A kernel over rows in the order of time, some at a time: what it joins at once stays bounded."""
    state = kernel.start()
    for some, watermark in _in_order(rows):
        state, found = kernel.step(state, some, watermark, instances)
        yield from detections_of(name, found)


def _in_order(rows: Mapping[Leaf, pa.RecordBatch]) -> Iterator[tuple[Mapping[Leaf, pa.RecordBatch], int]]:
    """Portions of rows, each with the time before which nothing more comes."""
    clocks = {leaf: batch.column("time").to_numpy() for leaf, batch in rows.items()}
    every = np.sort(np.concatenate(list(clocks.values())))
    ends = [int(every[place]) for place in range(_STEP, len(every), _STEP)]
    begin = int(every[0])
    for end in (*dict.fromkeys(ends), int(every[-1]) + _FOREVER):
        some = {
            leaf: batch.filter(pa.array((clocks[leaf] >= begin) & (clocks[leaf] < end))) for leaf, batch in rows.items()
        }
        yield {leaf: batch for leaf, batch in some.items() if batch.num_rows}, end
        begin = end


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


def _batch(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
