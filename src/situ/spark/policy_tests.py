"""Tests of policies on Spark: what is given through the stages of detection, all tests of a project in one query.

Each event of a test is a batch of its own, so what comes too late is too late here as at the edge. How far a batch
decides depends on the times of events alone, and is worked out before; what buckets find becomes situations afterwards,
on the driver, as in :mod:`situ.spark.detect_query`. Enrichment, buckets and kernels are those of a run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from situ.bus.address import Address
from situ.event.message import StoredMessage
from situ.lang.records import replace
from situ.model import Deployment
from situ.policies.enrichment.observations import observe
from situ.policies.lifecycle import SituationTransition
from situ.policies.policy_tests import PolicyTest, situations
from situ.sources.table import Table
from situ.spark.checkpoint import Offset
from situ.spark.detect import (
    DRIVER,
    BatchShare,
    BucketDetections,
    EnrichmentNotes,
    detections_in,
    enrich,
    every_bucket,
    work,
)
from situ.stages.detect.detection_plan import DetectionPlan
from situ.stages.detect.policy_tests import PolicyTestOutcome, begin_of, body_of, end_of, read_event, tables_of
from situ.stages.detect.progress import DetectionProgress
from situ.stages.plan import Plan, compile_plan
from situ.storage.state_folder import open_folder

_SCHEMA = pa.schema([("test", pa.int32()), ("bucket", pa.int32()), ("batch", pa.int32()), ("blob", pa.binary())])
_SPARK_SCHEMA = "test int, bucket int, batch int, blob binary"
_NOWHERE = Address(zone="test", servers=())
_Row = tuple[int, int, int, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """How far a batch decides; ``event`` is the number of the one in it, 0 if only the clock went on."""

    watermarks: Mapping[str, int]
    event: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """A test as tasks need it."""

    policies: tuple[str, ...]
    tables: Mapping[str, Table]
    batches: tuple[_Batch, ...]


@dataclass(slots=True)
class _Answer:
    """What came of a test: what buckets found, by batch, and what was noticed of events."""

    found: dict[int, list[BucketDetections]] = field(default_factory=dict)
    late: set[int] = field(default_factory=set)


def run_policy_tests_on_spark(
    session: SparkSession, deployment: Deployment, tests: Sequence[PolicyTest]
) -> list[PolicyTestOutcome]:
    """What comes of these tests of a deployment's policies, in this order."""
    terms = json.dumps(deployment.as_json()).encode()
    plans = [_plan(terms, test.policies) for test in tests]
    trials = [
        _Trial(
            policies=test.policies,
            tables=tables_of(test, plan.detecting, deployment.sources),
            batches=tuple(_batches(test, plan)),
        )
        for test, plan in zip(tests, plans, strict=True)
    ]
    answers = _answers(session, terms, trials, tests, deployment)
    return [_tried(*each) for each in zip(tests, plans, trials, answers, strict=True)]


def _batches(test: PolicyTest, plan: Plan) -> Iterator[_Batch]:
    """The batches of a test: what one of them sees counts for the next, and time goes on before an event comes."""
    detecting = plan.detecting
    progress, _ = DetectionProgress().adopted(detecting, None, begin_of(test))
    last: Mapping[str, int] = {}

    def until(clock: int) -> Iterator[_Batch]:
        nonlocal progress, last
        while (watermarks := progress.watermarks(detecting, clock)) != last:
            progress, _ = progress.decided(detecting, {}, watermarks)
            yield _Batch(watermarks=watermarks)
            last = watermarks

    for number, event in enumerate(test.events, 1):
        yield from until(event.received)
        yield _Batch(watermarks=last, event=number)
        progress = progress.heard(read_event(event, number, detecting, plan.deployment.types).seen)
        yield from until(event.received)
    yield from until(end_of(test))


def _answers(
    session: SparkSession, terms: bytes, trials: Sequence[_Trial], tests: Sequence[PolicyTest], deployment: Deployment
) -> list[_Answer]:
    buckets = max(2, session.sparkContext.defaultParallelism)
    rows: list[_Row] = []
    for number, (trial, test) in enumerate(zip(trials, tests, strict=True)):
        rows.append((number, DRIVER, 0, b""))  # so that every bucket takes every step
        for place, batch in enumerate(trial.batches, 1):
            if batch.event:
                rows.append(
                    (number, DRIVER, place, body_of(test.events[batch.event - 1], batch.event, deployment.types))
                )
    answers = [_Answer() for _ in trials]
    if not rows:
        return answers
    given = session.createDataFrame(rows, _SPARK_SCHEMA).repartition(buckets, "test")
    enriched = given.mapInArrow(_enriching(terms, trials, buckets), _SPARK_SCHEMA)
    worked = enriched.repartition(buckets, "test", "bucket").mapInArrow(
        _detecting(terms, trials, buckets), _SPARK_SCHEMA
    )
    for row in worked.collect():
        answer = answers[row.test]
        if row.bucket != DRIVER:
            answer.found.setdefault(row.batch, []).append(msgspec.msgpack.decode(row.blob, type=BucketDetections))
        elif msgspec.msgpack.decode(row.blob, type=EnrichmentNotes).late:
            answer.late.add(trials[row.test].batches[row.batch - 1].event)
    return answers


def _tried(test: PolicyTest, plan: Plan, trial: _Trial, answer: _Answer) -> PolicyTestOutcome:
    detecting = plan.detecting
    progress, _ = DetectionProgress().adopted(detecting, None)
    told: list[SituationTransition] = []
    for place, batch in enumerate(trial.batches, 1):
        found = {name: detections_in(name, answer.found.get(place, ())) for name in detecting.watches}
        progress, transitions = progress.decided(detecting, found, batch.watermarks)
        told += transitions
    return PolicyTestOutcome(
        found=tuple(situations(told)),
        observations=tuple(observe(test.events, detecting.push, plan.deployment.types)),
        instances=detecting.tables.of(trial.tables),
        late=tuple(event for number, event in enumerate(test.events, 1) if number in answer.late),
    )


# ── in workers ────────────────────────────────────────────────────────────────────────────────────

_Mapped = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@lru_cache(maxsize=64)
def _plan(terms: bytes, policies: tuple[str, ...]) -> Plan:
    """What is at work in a test: these policies of the deployment, and nobody who publishes or subscribes."""
    deployment = _deployment(terms)
    others = {name: each for name, each in deployment.policies.items() if name not in policies}
    chosen = {name: deployment.policies[name] for name in policies}
    return compile_plan(
        replace(
            deployment,
            policies={**chosen, **others},
            suspended=frozenset(others),
            clients={},
            advertisements={},
            subscriptions={},
        )
    )


@lru_cache(maxsize=1)
def _deployment(terms: bytes) -> Deployment:
    return Deployment.from_json(json.loads(terms))


def _enriching(terms: bytes, trials: Sequence[_Trial], buckets: int) -> _Mapped:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, _, place, body in sorted(_rows(batches)):
            trial = trials[number]
            if not place:
                yield _marked(every_bucket(buckets), number, place)
                continue
            plan = _plan(terms, trial.policies)
            instances = plan.detecting.tables.of(trial.tables)
            message = StoredMessage(seq=trial.batches[place - 1].event, subject="", body=body, headers={}, at=0)
            before = trial.batches[place - 2].watermarks if place > 1 else {}
            for batch in enrich([message], plan, instances, before, buckets):
                yield _marked(batch, number, place)

    return run


def _detecting(terms: bytes, trials: Sequence[_Trial], buckets: int) -> _Mapped:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        blobs: dict[tuple[int, int], dict[int, list[bytes]]] = {}
        for number, bucket, place, blob in _rows(batches):
            if bucket == DRIVER:
                yield _batch([(number, bucket, place, blob)])
            else:
                blobs.setdefault((number, bucket), {}).setdefault(place, []).append(blob)
        for (number, bucket), given in sorted(blobs.items()):
            trial = trials[number]
            plan = _plan(terms, trial.policies)
            with TemporaryDirectory() as folder:
                found = _worked(plan.detecting, trial, Path(folder), bucket, buckets, given)
                yield _batch((number, bucket, place, msgspec.msgpack.encode(each)) for place, each in found)

    return run


def _worked(
    detecting: DetectionPlan,
    trial: _Trial,
    folder: Path,
    bucket: int,
    buckets: int,
    blobs: Mapping[int, list[bytes]],
) -> Iterator[tuple[int, BucketDetections]]:
    """All batches of a test in one bucket, each from where the one before left off."""
    instances = detecting.tables.of(trial.tables)
    begin = Offset()
    for place, batch in enumerate(trial.batches, 1):
        end = Offset(seq=place, version=1, clock=place)
        share = BatchShare(
            address=_NOWHERE,
            checkpoint=open_folder(folder),
            begin=begin,
            end=end,
            watermarks=batch.watermarks,
            kept=frozenset(trial.policies) if place > 1 else frozenset(),
            buckets=buckets,
        )
        found = work(share, detecting, lambda: detecting, instances, bucket, blobs.get(place, []))
        if found.detections:
            yield place, found
        begin = end


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[_Row]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _marked(batch: pa.RecordBatch, number: int, place: int) -> pa.RecordBatch:
    blobs = zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
    return _batch((number, bucket, place, blob) for bucket, blob in blobs)


def _batch(rows: Iterable[_Row]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(_SCHEMA)
    arrays = [pa.array(column, each.type) for column, each in zip(columns, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)
