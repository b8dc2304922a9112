"""Detection as DataFrames host it, without Spark: generated policies over generated traces, in buckets and in steps."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import timedelta

import pytest

from situ.lang.records import replace
from situ.lang.types.table import Types
from situ.policies.enrichment.instances import InstanceColumns
from situ.policies.enrichment.rows import to_blob
from situ.policies.lifecycle import SituationTransition
from situ.policies.model import Detection, Observation, sort_detections
from situ.policies.reference import detect
from situ.policies.watermark import SourceTimes
from situ.settings.model import Defaults
from situ.spark.dataframes import detect as batch_detection
from situ.spark.dataframes.detect import bucket_portions, detect_bucket
from situ.spark.dataframes.detect_stream import RunningPolicy
from situ.stages.detect.detection_plan import NOTHING_HIDDEN, DetectionPlan
from situ.stages.detect.progress import DetectionProgress
from situ.stages.detect.step import States, step
from tests.buckets import pushes
from tests.situations import Case, batches, generate, observation_batches
from tests.volume import cases

_LONG = timedelta(hours=1)


def plan_of(case: Case) -> DetectionPlan:
    lateness = timedelta(microseconds=case.lateness)
    sources = {name: replace(each, lateness=lateness, idle=_LONG) for name, each in pushes(case).items()}
    return DetectionPlan([case.policy], case.ontology, sources, {}, Types(types={}), Defaults())


def knowledge_of(case: Case) -> InstanceColumns:
    knowledge = InstanceColumns(case.ontology)
    knowledge.take(case.instances)
    return knowledge


@cases(30, 2_000)
def test_buckets_of_a_batch_find_what_is_meant(cases: int) -> None:
    """Rows come in any order, and none of them is late."""
    found = 0
    for seed in range(cases):
        case = generate(seed)
        dice = random.Random(seed)
        detecting, knowledge = plan_of(case), knowledge_of(case)
        given = list(case.observations)
        dice.shuffle(given)
        cut = dice.randrange(len(given) + 1)
        buckets = dice.choice((1, 2, 3))
        portions: list[tuple[int, int, bytes]] = []
        for some in (given[:cut], given[cut:]):
            rows = detecting.enrichment.run(observation_batches(some, detecting.enrichment), knowledge).rows
            portions += bucket_portions(detecting, rows, NOTHING_HIDDEN, buckets)
        detections: list[Detection] = []
        for bucket in range(buckets):
            own = sorted((first, blob) for number, first, blob in portions if number == bucket)
            detections += detect_bucket(detecting, case.instances, bucket, buckets, own)
        expected = detect(case.policy, case.ontology, case.observations, case.instances, keep=case.keep)
        assert sort_detections(detections) == sort_detections(expected), case.text
        found += len(expected)
    assert found > cases


@cases(10, 500)
@pytest.mark.parametrize("step", [1, 3])
def test_a_batch_in_small_portions_finds_the_same(monkeypatch: pytest.MonkeyPatch, step: int, cases: int) -> None:
    """Portions of a few rows, which overlap, and kernels that take in a few at a time."""
    monkeypatch.setattr(batch_detection, "_STEP", step)
    monkeypatch.setattr(batch_detection, "_PORTION", 2)
    for seed in range(1000, 1000 + cases):
        case = generate(seed)
        detecting, knowledge = plan_of(case), knowledge_of(case)
        given = list(case.observations)
        random.Random(seed).shuffle(given)
        portions: list[tuple[int, int, bytes]] = []
        for some in (given[::2], given[1::2]):
            rows = detecting.enrichment.run(observation_batches(some, detecting.enrichment), knowledge).rows
            portions += bucket_portions(detecting, rows, NOTHING_HIDDEN, 1)
        expected = detect(case.policy, case.ontology, case.observations, case.instances, keep=case.keep)
        own = sorted((first, blob) for _, first, blob in portions)
        assert sort_detections(detect_bucket(detecting, case.instances, 0, 1, own)) == sort_detections(expected)


@cases(20, 1_000)
def test_a_policy_in_a_stream_takes_the_steps_of_an_engine(cases: int) -> None:
    """Stored after every micro-batch, loaded before the next; the clock is that of events."""
    told_at_all = 0
    for seed in range(5000, 5000 + cases):
        case = generate(seed)
        detecting = plan_of(case)
        expected = list(engine_steps(case, detecting))
        found = list(stream_steps(case, detecting))
        assert found == expected, case.text
        told_at_all += sum(map(len, expected))
    assert told_at_all > cases


def seen_in(observations: Iterable[Observation]) -> dict[str, SourceTimes]:
    found: dict[str, SourceTimes] = {}
    for each in observations:
        times = SourceTimes(each.time, each.time, each.time, each.time)
        found[each.push] = found[each.push].merge(times) if each.push in found else times
    return found


def engine_steps(case: Case, detecting: DetectionPlan) -> Iterable[list[SituationTransition]]:
    progress: DetectionProgress | None = None
    states: States = {}
    knowledge, clock = knowledge_of(case), 0
    for batch in batches(case, random.Random(case.seed)):
        if not batch.observations:
            continue
        seen = seen_in(batch.observations)
        clock = max([clock, *(each.heard for each in seen.values())])
        if progress is None:
            first = min(each.first for each in seen.values())
            progress, _ = DetectionProgress().adopted(detecting, None, first)
        observed = observation_batches(batch.observations, detecting.enrichment)
        done = step(detecting, progress, states, observed, seen, clock, knowledge, case.instances)
        progress, states = done.progress, done.states
        yield list(done.told)


def stream_steps(case: Case, detecting: DetectionPlan) -> Iterable[list[SituationTransition]]:
    name = case.policy.name
    leaves = detecting.watches[name].plan.leaves
    knowledge, stored = knowledge_of(case), None
    for batch in batches(case, random.Random(case.seed)):
        if not batch.observations:
            continue
        observed = observation_batches(batch.observations, detecting.enrichment)
        rows = detecting.enrichment.run(observed, knowledge).rows
        blob = to_blob({number: rows[each.leaf] for number, each in enumerate(leaves) if each.leaf in rows})
        policy = RunningPolicy(detecting, name, stored)
        yield policy.take([blob], [seen_in(batch.observations)], case.instances, False)
        stored = policy.stored()
