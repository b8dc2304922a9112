"""Stage detect, for policies that begin in the past: each bucket works what the root log holds, in Spark's workers.

The batch that brings such a policy begins with this. A task reads all of that part of the log and keeps what belongs to
its bucket; what its kernels remember then lies beside the checkpoint, where the bucket's own step finds it. Repeated,
it comes to the same: the part of the log ends where the batch begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from situ.bus.address import Address
from situ.bus.sync_bus import shared_bus
from situ.event.instants import instant_at
from situ.event.subjects import BusNames
from situ.policies.watermark import SourceTimes
from situ.spark.checkpoint import Offset
from situ.spark.detect import BUCKETS, row_of, stream_of
from situ.spark.plans import known_instances, load_plan
from situ.spark.state_store import KernelStateStore, name_of
from situ.stages.detect.backfill import Backfill, BackfillState, bounds_of, lookback, policies_to_backfill
from situ.stages.detect.progress import DetectionProgress
from situ.stages.detect.step import PolicyReader
from situ.stages.plan import Plan
from situ.stages.root_log import upgrade_message
from situ.storage.state_folder import StateFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillRange:
    """Policies that begin at one instant: which part of the log they work, and from which message on it counts."""

    policies: tuple[str, ...]
    since: int
    first: int
    begin: int
    last: int
    bounds: Mapping[str, int | None]
    """How far those may decide that other policies feed."""


class BucketBackfill(msgspec.Struct):
    """What a bucket has of one such past, for the driver."""

    detections: dict[str, list[bytes]]
    reached: dict[str, int]
    seen: dict[str, SourceTimes]
    told: list[str]
    quiet: dict[str, int]


def pasts_of(
    plan: Plan, before: DetectionProgress, progress: DetectionProgress, address: Address, last: int, clock: int
) -> list[BackfillRange]:
    """What is to be worked of the log, up to a message, by policies that are new to ``before``.

    ``progress`` knows how far those are that feed them.
    """
    bus, log = shared_bus(address), BusNames(address.zone).root_stream
    found = []
    fills = policies_to_backfill(plan.detecting, plan.deployment.starts, before)
    bounds = bounds_of(plan.detecting, progress, fills, clock)
    for since, names in fills.items():
        early = max(since - lookback(plan.detecting.only(names)), 0)
        first, begin = bus.find(log, instant_at(early)), bus.find(log, instant_at(since))
        found.append(BackfillRange(policies=names, since=since, first=first, begin=begin, last=last, bounds=bounds))
    return found


def fill(
    session: SparkSession | None,
    address: Address,
    checkpoint: StateFolder,
    end: Offset,
    buckets: int,
    pasts: list[BackfillRange],
) -> list[BackfillState]:
    """All buckets of these policies; what their kernels remember is on disk, and not in the answer.

    Without a session it is done here, one after the other.
    """
    if session is None:
        every = (fill_bucket(address, checkpoint, end, bucket, buckets, pasts) for bucket in range(buckets))
        return [_filled(found) for some in every for found in some]
    work = filling_in(address, checkpoint, end, buckets, pasts)
    rows = session.range(0, buckets, 1, buckets).mapInArrow(work, from_arrow_schema(BUCKETS)).collect()
    return [_filled(found) for row in rows for found in msgspec.msgpack.decode(row.blob, type=list[BucketBackfill])]


def filling_in(
    address: Address, checkpoint: StateFolder, end: Offset, buckets: int, pasts: list[BackfillRange]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark maps over the numbers of buckets."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for bucket in batch.column(0).to_pylist():
                found = fill_bucket(address, checkpoint, end, bucket, buckets, pasts)
                yield row_of(bucket, msgspec.msgpack.encode(found))

    return run


def fill_bucket(
    address: Address, checkpoint: StateFolder, end: Offset, bucket: int, buckets: int, pasts: list[BackfillRange]
) -> list[BucketBackfill]:
    """One bucket: what it found, by instant of beginning; what it remembers is written down."""
    plan = load_plan(address, end.version)
    instances = known_instances(plan, address, end.tables)
    bus, log = shared_bus(address), BusNames(address.zone).root_stream
    found, states = list[BucketBackfill](), dict[str, bytes]()
    for past in pasts:
        detecting = plan.detecting.only(past.policies)
        reading = PolicyReader.of(detecting, plan.seeing)
        filling = Backfill(
            detecting,
            instances,
            past.begin,
            past.since,
            bucket=bucket,
            buckets=buckets,
            reading=reading,
            bounds=past.bounds,
        )
        if past.first <= past.last:
            messages = bus.read(log, past.first, past.last)
            filling.take(upgrade_message(message, plan.interpretation) for message in messages)
        filled = filling.filled()
        states |= {name: detecting.kernel(name, bucket, buckets).save(state) for name, state in filled.states.items()}
        found.append(
            BucketBackfill(
                detections={name: [stream_of(each) for each in some] for name, some in filled.detections.items()},
                reached=dict(filled.reached),
                seen=dict(filled.seen),
                told=sorted(filled.told),
                quiet=dict(filled.quiet),
            )
        )
    KernelStateStore(checkpoint, bucket).save_filled(name_of(end), states)
    return found


def _filled(found: BucketBackfill) -> BackfillState:
    return BackfillState(
        detections={
            name: [batch for stream in streams for batch in pa.ipc.open_stream(stream)]
            for name, streams in found.detections.items()
        },
        reached=found.reached,
        seen=found.seen,
        told=frozenset(found.told),
        quiet=found.quiet,
    )
