"""A generated case through the stages of detection as Spark's tasks run them: enriched, cut into buckets, worked."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

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
from situ.spark.detect import BatchShare, work
from situ.stages.detect.detection_plan import DetectionPlan
from situ.storage.state_folder import open_folder
from tests.situations import Case, batches, observation_batches


def found_in_buckets(case: Case, folder: Path, buckets: int = 2) -> list[Detection]:
    """What the buckets of a case find; they go from worker to worker and back, and workers are replaced."""
    dice = random.Random(case.seed)
    detecting = DetectionPlan([case.policy], case.ontology, pushes(case), {}, Types(types={}), Defaults())
    knowledge = InstanceColumns(case.ontology)
    knowledge.take(case.instances)
    begin, found = Offset(), list[Detection]()
    hands: list[dict[tuple[str, int], detect._InHand]] = [{}, {}]
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
        )
        for bucket, part in enumerate(detecting.parts(rows, buckets)):
            detect._in_hand = dice.choice(hands)  # the process that has this bucket now
            if dice.random() < 0.1:
                detect._in_hand.clear()  # a new one
            blobs = [to_blob(part)] if part else []
            for _ in range(1 if dice.random() < 0.8 else 2):  # a batch may be repeated
                answer = work(share, detecting, lambda: detecting, case.instances, bucket, blobs)
            found += _detections(case.policy.name, answer.detections.get(case.policy.name))
        begin = end
    return sort_detections(found)


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
