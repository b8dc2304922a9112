"""What many policies and many identities cost: recorded events through enrichment and kernels, in one process.

These are the stages of detection as Spark's tasks run them, one after the other: events in columns become rows of
leaves, these are divided among two buckets as bytes, and the kernels of all policies take their step in each, whose
states are stored. Spark itself, which would run two of them at a time, is not in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa

from benchmarks.bench import Bench
from benchmarks.harness import Plot, Scenario, Taken, Variant, Verdict
from benchmarks.situation_events import domain, security_plan
from benchmarks.situation_on_files import (
    detect_files,
    detecting_of,
    enrich_files,
    recorded_detecting,
    share_of,
)
from benchmarks.situation_recorded import CLOSING, LATENESS, Recording, answers_of, record, write
from situ.lang.records import replace
from situ.spark.checkpoint import Offset
from situ.spark.detect import DRIVER, BucketDetections
from situ.stages.detect.detection_plan import DetectionPlan

POLICIES = (1, 10, 100, 1_000)
IDENTITIES = (100, 1_000, 10_000, 100_000)
FULL = 20
"""Seconds of events after which as much is remembered as ever will be."""
OWN, SAME = "each about other people", "all about the same people"


class Flowing:
    """All stages in one process, batch by batch."""

    def __init__(self, recording: Recording, folder: Path, states: Path, detecting: DetectionPlan, size: int) -> None:
        self._events = recording.events
        self._folder, self._states, self._detecting, self._size = folder, states, detecting, size
        self._at, self._before, self._latest = 0, Offset(), 0
        self.answers: set[tuple[str, str]] = set()
        self.remembered = 0

    @property
    def is_done(self) -> bool:
        """Whether all events were taken, and what they decide is known: those of nobody come one by one."""
        return self._at >= self._events.num_rows

    def fill(self, events: int) -> None:
        """Until so many events were taken."""
        while self._at < events:
            self.step()

    def step(self) -> int:
        left = self._events.num_rows - CLOSING - self._at
        part = self._events.slice(self._at, min(self._size, left) if left > 0 else 1)
        assert part.num_rows, "the recording is too short"
        self._at += part.num_rows
        end = Offset(seq=self._at, version=1, clock=self._at)
        watermarks = dict.fromkeys(self._detecting.watches, self._latest - LATENESS) if self._latest else {}
        share = share_of(self._states, self._before, end, watermarks, self._detecting)
        rows = list(enrich_files(self._made, self._folder, watermarks, part.to_batches()))
        self.remembered = 0
        for batch in detect_files(self._made, self._folder, share, rows):
            for bucket, blob in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                if bucket != DRIVER:
                    found = msgspec.msgpack.decode(blob, type=BucketDetections)
                    self.remembered += found.size
                    tables = [pa.ipc.open_stream(each).read_all() for each in found.detections.values()]
                    told = answers_of([batch for table in tables for batch in table.to_batches()])
                    self.answers.update(zip(told["id"].to_pylist(), told["room"].to_pylist(), strict=True))
        self._before = end
        self._latest = max(self._latest, int(part["time"].cast(pa.int64()).to_numpy().max()))
        return part.num_rows

    def _made(self) -> DetectionPlan:
        return self._detecting


def _work(flowing: Flowing, steps: int) -> Callable[[], Taken]:
    def work() -> Taken:
        start = time.perf_counter()
        events = sum(flowing.step() for _ in range(steps))
        rate = events / (time.perf_counter() - start)
        assert flowing.answers, "nobody was alone"
        return Taken(value=rate, figures={"state in MB": flowing.remembered / 1e6, "µs an event": 1e6 / rate})

    return work


def _flowing(bench: Bench, recording: Recording, detecting: DetectionPlan, size: int, people: int) -> Flowing:
    folder = bench.folder("recorded")
    write(replace(recording, events=recording.events.slice(0, CLOSING + 1)), folder, 1)
    flowing = Flowing(recording, folder, bench.folder("states"), detecting, size)
    flowing.fill(min(FULL * people, 2 * recording.events.num_rows // 3))
    return flowing


# ── policies ──


def departments(recording: Recording, count: int) -> Recording:
    """With people in so many departments, of whom a policy each knows; groups stay together."""
    persons = [
        {"id": row["id"], "status": f"{row['status']} {number // 3 % count}"}
        for number, row in enumerate(recording.persons.to_pylist())
    ]
    return replace(recording, persons=pa.Table.from_pylist(persons))


def _policies(count: int, *, own: bool) -> DetectionPlan:
    of = domain()
    plans = []
    for number in range(count):
        about = {"guest": f"guest {number}", "employee": f"employee {number}"} if own else {}
        plans.append(security_plan(of, name=f"policy-{number}", **about))
    return detecting_of(plan.policy for plan in plans)


def _policy_variants(bench: Bench) -> list[Variant]:
    people, size, steps = bench.some(6_000, 600), bench.some(30_000, 3_000), bench.some(2, 1)
    recording = record((FULL + 5 * 5 * steps) * people, people)
    variants = []
    for count in POLICIES if not bench.quick else POLICIES[:2]:
        own = _flowing(bench, departments(recording, count), _policies(count, own=True), size, people)
        variants.append(
            Variant(name=f"{count:,}, {OWN}", work=_work(own, steps), point=float(count), series=OWN),
        )
        if count <= 100:
            same = _flowing(bench, recording, _policies(count, own=False), size, people)
            variants.append(
                Variant(name=f"{count:,}, {SAME}", work=_work(same, steps), point=float(count), series=SAME),
            )
    return variants


def _policy_verdicts(medians: dict[str, float]) -> list[Verdict]:
    found = []
    for first, many, series in ((1, 1_000, OWN), (1, 100, SAME)):
        if f"{many:,}, {series}" in medians:
            ratio = medians[f"{first:,}, {series}"] / medians[f"{many:,}, {series}"]
            found.append(Verdict(what=f"{many:,} policies, {series}: times the cost of one", value=ratio))
    return found


# ── identities ──


def _identity_variants(bench: Bench) -> list[Variant]:
    size, steps = bench.some(100_000, 3_000), bench.some(2, 1)
    variants = []
    for people in IDENTITIES if not bench.quick else IDENTITIES[1:2]:
        recording = record(FULL * people + (2 + 5 * steps) * size, people)
        flowing = _flowing(bench, recording, recorded_detecting(), size, people)
        variants.append(Variant(name=f"{people:,} identities", work=_work(flowing, steps), point=float(people)))
    return variants


def _identity_verdicts(medians: dict[str, float]) -> list[Verdict]:
    few, many = (f"{count:,} identities" for count in (1_000, 100_000))
    if many not in medians:
        return []
    return [Verdict(what="100,000 identities: times the cost of 1,000", value=medians[few] / medians[many])]


SCENARIOS = [
    Scenario(
        name="situation-policies",
        title="Detection: events a second against the number of policies",
        unit="events/s",
        about=(
            "Policies like the one on security over the same push source and tables, with recorded positions of 6,000 "
            "people, batches of 30,000 events; all stages of detection in one process, on one core, without Spark. "
            "Either each policy is about guests and employees of its own department, so that all of them together "
            "look at as much as one would; or each is about everybody. Enrichment is done once for all."
        ),
        variants=_policy_variants,
        judge=_policy_verdicts,
        repetitions=3,
        warm=False,
        plot=Plot(x="policies", y="events/s", log_y=True),
    ),
    Scenario(
        name="situation-identities",
        title="Detection: events a second against the number of identities, all stages",
        unit="events/s",
        about=(
            "The security policy over recorded positions of so many people, each seen once a second, twenty to a room: "
            "batches of 100,000 events, windows full; all stages of detection in one process, on one core, without "
            "Spark. The more people, the shorter the time that a batch is about, and the more rooms."
        ),
        variants=_identity_variants,
        judge=_identity_verdicts,
        repetitions=3,
        warm=False,
        plot=Plot(x="identities", y="events/s"),
    ),
]
