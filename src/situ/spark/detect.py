"""Stage detect: the kernels of all policies, bucket by bucket, in Spark's workers.

A task has some buckets of a batch: what is remembered of each, the rows that came for it, and the watermarks give what
is remembered afterwards, and detections, which go to the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa

from situ.bus.address import Address
from situ.deployment.detecting import Detecting
from situ.deployment.stepping import step_safely
from situ.event.isolation import Failure
from situ.garbage import give_back
from situ.pipeline.enrich import BUCKETS, DRIVER
from situ.pipeline.kept import StateStore, Taken, name_of
from situ.pipeline.looking_up import known_instances
from situ.pipeline.offsets import Offset
from situ.pipeline.plans import load_plan
from situ.situation.enrichment.rows import concat, from_blob
from situ.situation.kernel.reporting import Detected, detections_of
from situ.situation.kernel.state import State
from situ.situation.meaning.detection import Detection, Instances


class Found(msgspec.Struct):
    """What a bucket found: detections by policy, as Arrow streams; and whether time alone can bring more."""

    detections: dict[str, bytes] = {}
    due: bool = False
    size: int = 0
    """Of what is remembered."""
    failed: dict[int, Failure] = {}
    """Positions of events that a policy could not work on."""
    begun_anew: dict[str, Failure] = {}
    """Policies that could not go on from what they remembered here."""


@dataclass(slots=True)
class _InHand:
    """What this process has of a bucket: as which batch left it, and how much lies between that and what is stored."""

    at: str
    states: Mapping[str, State]
    steps: int = 0
    size: int = 0


_in_hand: dict[tuple[str, int], _InHand] = {}
"""By checkpoint and bucket."""
_MOST_STEPS = 50
_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What all tasks of a batch know: where it begins and ends, how far it decides, which policies go on."""

    address: Address
    checkpoint: Path
    begin: Offset
    end: Offset
    watermarks: Mapping[str, int]
    kept: frozenset[str]
    """Policies that are what they were."""
    buckets: int
    filled: bool = False
    """Whether policies begin that have worked a part of the past."""

    @property
    def anew(self) -> bool:
        """Whether others than those may have been at work before."""
        return self.begin.version != self.end.version


def detecting_in(share: Share) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
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

        def former() -> Detecting:
            return load_plan(share.address, share.begin.version).detecting if share.anew else plan.detecting

        for bucket, parts in sorted(blobs.items()):
            given = [blob for blob in parts if blob]
            yield row_of(bucket, msgspec.msgpack.encode(work(share, plan.detecting, former, instances, bucket, given)))

    return run


def work(
    share: Share,
    detecting: Detecting,
    former: Callable[[], Detecting],
    instances: Instances,
    bucket: int,
    blobs: list[bytes],
) -> Found:
    """One bucket's step: with these rows for it, in blobs, what it remembers is brought up to the watermarks.

    ``former`` are the policies that were at work before.
    """
    store, end = StateStore(share.checkpoint, bucket), name_of(share.end)
    begin = name_of(share.begin)
    hand = _in_hand.pop((str(share.checkpoint), bucket), None)
    if hand is None or hand.at != begin:
        policies = former() if share.begin.version else detecting
        hand = _recalled(begin, policies, instances, bucket, share.buckets, store, hand)
    kept = {name: state for name, state in hand.states.items() if name in share.kept}
    if share.filled:
        kept |= _loaded(detecting, store.load_filled(end), bucket, share.buckets)
    found, after = _step(detecting, kept, blobs, share.watermarks, instances, bucket, share.buckets)
    steps, size = hand.steps + 1, hand.size + sum(map(len, blobs))
    if share.anew or steps > _MOST_STEPS or size > _MOST_BYTES:
        saved = {name: detecting.kernel(name, bucket, share.buckets).save(state) for name, state in after.items()}
        store.save_whole(end, saved, begin)
        steps = size = 0
        give_back()
    else:
        store.save_step(end, Taken(begin, blobs, dict(share.watermarks)))
    _in_hand[str(share.checkpoint), bucket] = _InHand(end, after, steps, size)
    found.size = sum(state.size for state in after.values())
    return found


def remembered_at(
    checkpoint: Path, at: str, detecting: Detecting, instances: Instances, bucket: int, buckets: int
) -> Mapping[str, State]:
    """What the kernels of a bucket remember where a batch ended, by policy."""
    return _recalled(at, detecting, instances, bucket, buckets, StateStore(checkpoint, bucket), None).states


def detections_in(policy: str, found: Iterable[Found]) -> list[Detection]:
    """What buckets found of a policy, on the driver."""
    streams = (each.detections[policy] for each in found if policy in each.detections)
    batches = (batch for stream in streams for batch in pa.ipc.open_stream(stream))
    return [detection for batch in batches for detection in detections_of(policy, Detected(batch))]


def _recalled(
    begin: str,
    detecting: Detecting,
    instances: Instances,
    bucket: int,
    buckets: int,
    store: StateStore,
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


def _loaded(detecting: Detecting, stored: Mapping[str, bytes], bucket: int, buckets: int) -> dict[str, State]:
    loaded = {
        name: detecting.kernel(name, bucket, buckets).load(stored[name]) for name in detecting.watches if name in stored
    }
    return {name: state for name, state in loaded.items() if state is not None}


def _step(
    detecting: Detecting,
    states: Mapping[str, State],
    blobs: Iterable[bytes],
    watermarks: Mapping[str, int],
    instances: Instances,
    bucket: int,
    buckets: int,
) -> tuple[Found, dict[str, State]]:
    parts: dict[int, list[pa.RecordBatch]] = {}
    for blob in blobs:
        for number, some in from_blob(blob).items():
            parts.setdefault(number, []).extend(some)
    rows = {number: concat(detecting.leaf_of(number), some) for number, some in parts.items()}
    found, after = Found(), dict[str, State]()
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


def stream_of(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def row_of(bucket: int, blob: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([bucket], pa.int32()), pa.array([blob], pa.binary())], schema=BUCKETS)
