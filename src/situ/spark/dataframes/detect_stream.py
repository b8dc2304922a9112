"""Stage detect on streaming DataFrames: one policy is one key of a stateful operator.

Enrichment runs in parallel, as in a batch. What it gives of a micro-batch goes to the policies, each of which is worked
by one task at a time: how far event time is settled depends on all events of all its sources, which nobody sees who
has only a part of them. A key remembers what an engine does, the state of the kernel and the progress of the policy,
and takes the steps of an engine (:mod:`situ.stages.detect.step`): so lateness, idle sources and absence mean the same.

The operator is ``applyInPandasWithState``: it runs on every state store and over Spark Connect.
``transformWithStateInPandas`` needs a session with RocksDB for its state, and is no faster with states kept whole
(docs/internals/decisions/0056).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from situ.lang.records import replace
from situ.policies.enrichment.rows import concat, from_blob, to_blob
from situ.policies.kernel.detections import detections_of
from situ.policies.kernel.state import KernelState
from situ.policies.lifecycle import SituationTransition
from situ.policies.model import InstancesByConcept
from situ.policies.watermark import SourceTimes, merge_source_times
from situ.spark.dataframes.detect import (
    SITUATIONS,
    DetectionTerms,
    ReadyPolicies,
    enrich_events,
    observed,
    situation_table,
)
from situ.spark.dataframes.frame import EventFrame
from situ.spark.dataframes.worker import now
from situ.stages.detect.detection_plan import DetectionPlan, visible_rows
from situ.stages.detect.progress import DetectionProgress
from situ.stages.detect.step import step_safely

_PARTS = pa.schema([("policy", pa.string()), ("blob", pa.binary()), ("seen", pa.binary())])
_STATE = "state BINARY"
_LOOK = 1_000
"""Milliseconds after which a policy that waits for something looks at the clock again."""
_encode, _decode = msgspec.msgpack.encode, msgspec.msgpack.decode


class StoredPolicy(msgspec.Struct):
    """What a key remembers from one micro-batch to the next."""

    progress: bytes
    """As JSON."""
    kernel: bytes
    clock: int


def detect_stream(frames: Sequence[tuple[DataFrame, EventFrame]], terms: DetectionTerms, *, wall: bool) -> DataFrame:
    """What becomes of situations as events come; by the clock on the wall, or else by when events were received."""
    schema = from_arrow_schema(_PARTS)
    parts = [observed(frame, kind).mapInArrow(_enriching(terms, kind), schema) for frame, kind in frames]
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionAll(part)
    timeout = GroupStateTimeout.ProcessingTimeTimeout if wall else GroupStateTimeout.NoTimeout
    return rows.groupBy("policy").applyInPandasWithState(
        _detecting(terms, wall), from_arrow_schema(SITUATIONS), _STATE, "append", timeout
    )


def _enriching(terms: DetectionTerms, kind: EventFrame) -> Callable[[Any], Any]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ready = terms.ready()
        ready.instances(terms.tables)
        for batch in batches:
            if batch.num_rows:
                yield _parts(ready, kind, batch)

    return run


def _parts(ready: ReadyPolicies, kind: EventFrame, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A row for each policy: what its leaves get of these events, and how far its sources are by them."""
    enriched, read = enrich_events(ready, kind, batch)
    rows = enriched.rows
    seen = _encode({name: list(times) for name, times in read.seen.items()})
    found = []
    for name, watch in ready.detecting.watches.items():
        own = {
            number: visible_rows(rows[each.leaf], watch.reads, read.hidden)
            for number, each in enumerate(watch.plan.leaves)
            if each.leaf in rows
        }
        found.append((name, to_blob(own), seen))
    arrays = [pa.array(column, each.type) for column, each in zip(zip(*found, strict=True), _PARTS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_PARTS)


def _detecting(terms: DetectionTerms, wall: bool) -> Callable[[Any, Any, Any], Any]:
    def run(key: tuple[str], parts: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        name = key[0]
        alone = replace(terms, policies=(name,))
        ready = alone.ready()
        instances = ready.instances(terms.tables)
        policy = RunningPolicy(ready.detecting, name, _stored(state))
        given = [row for part in parts for row in zip(part["blob"], part["seen"], strict=True)]
        told = policy.take([bytes(blob) for blob, _ in given], [_times(seen) for _, seen in given], instances, wall)
        state.update((_encode(policy.stored()),))
        if wall and policy.waits:
            state.setTimeoutDuration(_LOOK)
        if told:
            yield situation_table(told, ready.detecting).to_pandas(maps_as_pydicts="strict")

    return run


def _stored(state: GroupState) -> StoredPolicy | None:
    return _decode(bytes(state.get[0]), type=StoredPolicy) if state.exists else None


def _times(seen: bytes) -> dict[str, SourceTimes]:
    found = _decode(bytes(seen), type=dict[str, list[int]])
    return {name: SourceTimes(*times) for name, times in found.items()}


class RunningPolicy:
    """One policy between two micro-batches: takes steps as an engine does."""

    def __init__(self, detecting: DetectionPlan, name: str, stored: StoredPolicy | None) -> None:
        self._detecting, self._name = detecting, name
        self._kernel = detecting.kernel(name)
        self._state: KernelState = self._kernel.start()
        self._progress: DetectionProgress | None = None
        self._clock = 0
        if stored is not None:
            self._progress = DetectionProgress.from_json(msgspec.json.decode(stored.progress))
            self._state = self._kernel.load(stored.kernel) or self._state
            self._clock = stored.clock

    def take(
        self,
        blobs: Iterable[bytes],
        seen: Sequence[Mapping[str, SourceTimes]],
        instances: InstancesByConcept,
        wall: bool,
    ) -> list[SituationTransition]:
        """Rows of a micro-batch in, what is told of situations out."""
        heard = merge_source_times(*seen)
        came = max((each.heard for each in heard.values()), default=0)
        # Without a clock on the wall, time goes on as events come.
        self._clock = max(self._clock, came, now() if wall else 0)
        detecting, progress = self._detecting, self._progress
        if progress is None:
            first = min((each.first for each in heard.values()), default=self._clock)
            progress, _ = DetectionProgress().adopted(detecting, None, first)
        progress = progress.heard(heard)
        watermarks = progress.watermarks(detecting, self._clock)
        watermark = watermarks.get(self._name, self._state.watermark)
        stepped = step_safely(self._kernel, self._state, self._rows(blobs), watermark, instances)
        after, ahead = self._kernel.ahead(stepped.state, instances)
        found = [*detections_of(self._name, stepped.found), *detections_of(self._name, ahead)]
        self._state = after
        self._progress, told = progress.decided(detecting, {self._name: found}, watermarks)
        return told

    def _rows(self, blobs: Iterable[bytes]) -> dict[Any, pa.RecordBatch]:
        leaves = self._detecting.watches[self._name].plan.leaves
        parts: dict[int, list[pa.RecordBatch]] = {}
        for blob in blobs:
            for number, some in from_blob(blob).items():
                parts.setdefault(number, []).extend(some)
        return {leaves[number].leaf: concat(leaves[number].leaf, some) for number, some in parts.items()}

    @property
    def waits(self) -> bool:
        """Whether time that goes by can bring more, though no event comes."""
        return self._state.due is not None or (self._progress is not None and self._progress.has_open)

    def stored(self) -> StoredPolicy:
        assert self._progress is not None, "nothing was taken in"
        return StoredPolicy(
            progress=msgspec.json.encode(self._progress.as_json()),
            kernel=self._kernel.save(self._state),
            clock=self._clock,
        )
