"""A generated case through the stages of detection as Spark's tasks run them: enriched, cut into buckets, worked."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from situ.bus.address import Address
from situ.lang.types.table import Types
from situ.policies.enrichment.instances import InstanceColumns
from situ.policies.enrichment.rows import to_blob
from situ.policies.kernel.detections import DetectionBatch, detections_of
from situ.policies.model import Detection, sort_detections
from situ.settings.model import Defaults
from situ.sources.model import Push
from situ.spark import detect
from situ.spark.checkpoint import Offset
from situ.spark.detect import BatchShare, BucketDetections, gather, work
from situ.spark.state_store import remove_other_buckets
from situ.stages.detect.detection_plan import DetectionPlan
from situ.storage.state_folder import open_folder
from tests.situations import Case, batches, observation_batches


def found_in_buckets(case: Case, folder: Path, buckets: int = 2, among: Sequence[int] = ()) -> list[Detection]:
    """What the buckets of a case find; they go from worker to worker and back, and workers are replaced.

    ``among`` are the numbers of buckets that a batch may change to. A batch may be cut off at any place, by the end of
    all its processes, and is repeated.
    """
    dice = random.Random(case.seed)
    detecting = DetectionPlan([case.policy], case.ontology, pushes(case), {}, Types(types={}), Defaults())
    knowledge = InstanceColumns(case.ontology)
    knowledge.take(case.instances)
    begin, found = Offset(), list[Detection]()
    hands: list[dict[Any, detect._InHand]] = [{}, {}]
    before = 0
    for number, batch in enumerate(batches(case, dice), 1):
        end = Offset(seq=number, version=1, clock=number)
        rows = detecting.enrichment.run(observation_batches(batch.observations, detecting.enrichment), knowledge).rows
        share = BatchShare(
            address=Address(servers=("nowhere",), zone="main"),
            checkpoint=open_folder(folder),
            begin=begin,
            end=end,
            watermarks={case.policy.name: batch.watermark},
            kept=frozenset([case.policy.name]) if number > 1 else frozenset(),
            buckets=buckets,
            before=before,
        )
        blobs = [[to_blob(part)] if part else [] for part in detecting.parts(rows, buckets)]
        steps = _steps(share, detecting, case, blobs)
        for _ in range(dice.choice((0, 0, 1, 2)) if among else 0):  # killed, and begun again
            for step in steps[: dice.randrange(len(steps) + 1)]:
                detect._in_hand = dice.choice(hands)
                step()
            for hand in hands:
                hand.clear()
        answers = []
        for step in steps:
            detect._in_hand = dice.choice(hands)  # the process that has this bucket now
            if dice.random() < 0.1:
                detect._in_hand.clear()  # a new one
            for _ in range(1 if dice.random() < 0.8 else 2):  # a task may be repeated
                answer = step()
            answers.append(answer)
        for answer in answers[-buckets:]:
            assert answer is not None
            found += _detections(case.policy.name, answer.detections.get(case.policy.name))
        begin, before = end, buckets
        if among:
            if dice.random() < 0.7:
                remove_other_buckets(share.checkpoint, max(share.before, buckets) if share.divides else buckets)
            buckets = dice.choice((*among, buckets))
    return sort_detections(found)


def _steps(
    share: BatchShare, detecting: DetectionPlan, case: Case, blobs: Sequence[list[bytes]]
) -> list[Callable[[], BucketDetections | None]]:
    """What the tasks of a batch do, in their order; the last of them are those of its buckets."""

    def gathered(bucket: int) -> None:
        gather(share, detecting, case.instances, bucket)

    def worked(bucket: int) -> BucketDetections:
        return work(share, detecting, lambda: detecting, case.instances, bucket, blobs[bucket])

    first = [partial(gathered, bucket) for bucket in range(share.before if share.divides else 0)]
    return [*first, *(partial(worked, bucket) for bucket in range(share.buckets))]


def pushes(case: Case) -> dict[str, Push]:
    """The push sources of a case, as far as its observations say something of them."""
    return {
        each.push: Push(
            name=each.push,
            event="Said",
            concept=each.concept,
            id=("id",),
            attribute=each.attribute,
            value=("value",),
            keep=timedelta(microseconds=case.keep.get(each.push, 0)),
        )
        for each in case.observations
    }


def _detections(policy: str, stream: bytes | None) -> list[Detection]:
    batches = pa.ipc.open_stream(stream) if stream is not None else ()
    return [each for batch in batches for each in detections_of(policy, DetectionBatch(batch))]
