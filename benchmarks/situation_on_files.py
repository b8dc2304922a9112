"""Situ's detection on Spark over recorded files: what the product does with the root log, behind the decoding of it.

Enrichment in the tasks that read, rows to the buckets of the policy, kernels in Spark's workers, states in files beside
the checkpoint: these are the functions of :mod:`situ.spark.detect` and :mod:`situ.spark.detect`. Only where
events, tables and the plan come from is another: from files, as others have them, and not from the bus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.parquet

from benchmarks.situation_enrichment import PUSH, TYPES
from benchmarks.situation_recorded import LATENESS, answers_of, instances, observed, plan
from situ.bus.address import Address
from situ.policies.enrichment.instances import InstanceColumns
from situ.policies.model import InstancesByConcept, Policy
from situ.policies.watermark import merge_source_times, source_times_of
from situ.settings.model import Defaults
from situ.spark.checkpoint import Offset
from situ.spark.detect import BUCKETS as SCHEMA
from situ.spark.detect import (
    DRIVER,
    BatchShare,
    BucketDetections,
    EnrichmentNotes,
    every_bucket,
    for_buckets,
    for_driver,
    work,
)
from situ.stages.detect.detection_plan import DetectionPlan
from situ.storage.state_folder import open_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BUCKETS = 2
_NOWHERE = Address(zone="recorded", servers=())
_FORM = "bucket int, blob binary"
Answer = tuple[str, str]


@cache
def recorded_detecting() -> DetectionPlan:
    """The security policy alone."""
    return detecting_of((plan().policy,))


def detecting_of(policies: Iterable[Policy]) -> DetectionPlan:
    return DetectionPlan(policies, plan().ontology, {PUSH.name: PUSH}, {}, TYPES, Defaults())


@cache
def known(folder: Path) -> tuple[InstancesByConcept, InstanceColumns]:
    """The tables of a recording."""
    tables = (pa.parquet.read_table(folder / f"{name}.parquet") for name in ("persons", "rooms"))
    found, knowledge = instances(*tables), InstanceColumns(plan().ontology)
    knowledge.take(found)
    return found, knowledge


Make = Callable[[], DetectionPlan]
"""Gives the policies; in every process the same, and each time."""


def enrich_files(
    make: Make, folder: Path, reached: Mapping[str, int], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows for all buckets, and what was noticed: :func:`situ.spark.detect.enrich` for files."""
    detecting, noticed = make(), EnrichmentNotes()
    yield every_bucket(BUCKETS)
    events = pa.Table.from_batches(list(batches))
    if events.num_rows:
        times = events["time"].cast(pa.int64()).to_numpy()
        latest = source_times_of(times, times)
        noticed.seen = merge_source_times({PUSH.name: latest} if latest else {})
        seen = (observed(events, detecting.enrichment),)
        batch, beside = for_buckets(seen, detecting, known(folder)[1], reached, BUCKETS)
        noticed.add(beside)
        yield batch
    yield for_driver(noticed)


def detect_files(
    make: Make, folder: Path, share: BatchShare, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What buckets found: :func:`situ.spark.detect.detecting_in` for files."""
    blobs: dict[int, list[bytes]] = {}
    for batch in batches:
        for bucket, blob in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            blobs.setdefault(bucket, []).append(blob)
    found = [(DRIVER, blob) for blob in blobs.pop(DRIVER, ())]
    detecting = make()
    for bucket, parts in sorted(blobs.items()):
        given = [blob for blob in parts if blob]
        done = work(share, detecting, lambda: detecting, known(folder)[0], bucket, given)
        found.append((bucket, msgspec.msgpack.encode(done)))
    columns = [pa.array([each for each, _ in found], pa.int32()), pa.array([each for _, each in found], pa.binary())]
    yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def share_of(
    states: Path, begin: Offset, end: Offset, watermarks: Mapping[str, int], detecting: DetectionPlan
) -> BatchShare:
    """What all tasks of a batch know."""
    return BatchShare(
        address=_NOWHERE,
        checkpoint=open_folder(states),
        begin=begin,
        end=end,
        watermarks=watermarks,
        kept=frozenset(detecting.watches if begin.version else ()),
        buckets=BUCKETS,
    )


class OnFiles:
    """The driver's part: how far event time is, and what was found so far."""

    def __init__(self, folder: Path, states: Path, make: Make = recorded_detecting) -> None:
        self._folder, self._states, self._make = folder, states, make
        self._names = tuple(make().watches)
        self._watermarks: dict[str, int] = {}
        self._before = Offset()
        self.answers: list[Answer] = []
        self.sizes: list[int] = []
        """Of what kernels remember after each batch, in bytes."""

    def batch(self, frame: DataFrame, number: int) -> None:
        end = Offset(seq=number + 1, version=1, partitions=BUCKETS, clock=number + 1)
        share = share_of(self._states, self._before, end, self._watermarks, self._make())
        rows = frame.mapInArrow(partial(enrich_files, self._make, self._folder, self._watermarks), _FORM)
        placed = rows.repartitionById(BUCKETS, (rows["bucket"] + BUCKETS) % BUCKETS)
        found, latest, size = [], 0, 0
        for row in placed.mapInArrow(partial(detect_files, self._make, self._folder, share), _FORM).collect():
            if row["bucket"] == DRIVER:
                noticed = msgspec.msgpack.decode(row["blob"], type=EnrichmentNotes)
                latest = max([latest, *(each.time for each in noticed.seen.values())])
            else:
                told = msgspec.msgpack.decode(row["blob"], type=BucketDetections)
                size += told.size
                found += [pa.ipc.open_stream(each).read_all() for each in told.detections.values()]
        self._before = end
        if latest:
            self._watermarks = {name: max(latest - LATENESS, self._watermarks.get(name, 0)) for name in self._names}
        table = answers_of([batch for each in found for batch in each.to_batches()])
        self.answers += zip(table["id"].to_pylist(), table["room"].to_pylist(), strict=True)
        self.sizes.append(size)
