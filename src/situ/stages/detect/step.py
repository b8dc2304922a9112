"""One step of detection, all in one place: observations in, what happened to situations out.

Where policies are worked in several partitions, an engine does the parts of this where they belong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from situ.deployment.detecting import Detecting
from situ.deployment.hiding import NOTHING_HIDDEN, Hidden, left_of
from situ.deployment.progress import Arrived, Progress, last_of
from situ.deployment.reading import Reading
from situ.event.isolation import Failure, failure_of, is_of_event, largest_working
from situ.event.row import Row
from situ.situation.enrichment.enrich import Enriched, Observed
from situ.situation.enrichment.known import Knowledge
from situ.situation.kernel.kernel import Kernel
from situ.situation.kernel.reporting import Detected, detections_of, schema_of
from situ.situation.kernel.state import State
from situ.situation.meaning.detection import Detection, Instances
from situ.situation.meaning.lifecycle import Transition
from situ.situation.meaning.watermark import Seen
from situ.situation.policies.leaves import Leaf

STAGE = "detect"
States = Mapping[str, State]
"""What kernels remember, by policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a step leaves behind, and what it tells."""

    progress: Progress
    states: States
    told: tuple[Transition, ...] = ()
    enriched: Enriched = field(default_factory=lambda: Enriched(rows=MappingProxyType({})))
    observed: tuple[Observed, ...] = ()
    late: Mapping[int, list[str]] = field(default_factory=dict)
    """Where events are that came too late, and for which policies."""
    due: bool = False
    """Whether time that goes by can bring more, though no event comes."""
    failed: Mapping[int, Failure] = field(default_factory=dict)
    """Where events are that nothing, or not every policy, can work on."""
    begun_anew: Mapping[str, Failure] = field(default_factory=dict)
    """Policies that could not go on from what they remembered, and have forgotten it."""
    failures: tuple[Failure, ...] = ()
    """Of detections that nothing could be decided about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """What kernels made of observations, before anything is decided about situations."""

    progress: Progress
    states: States
    found: Mapping[str, Sequence[Detection]]
    watermarks: Mapping[str, int]
    enriched: Enriched
    observed: tuple[Observed, ...]
    late: Mapping[int, list[str]]
    clock: int
    failed: Mapping[int, Failure] = field(default_factory=dict)
    begun_anew: Mapping[str, Failure] = field(default_factory=dict)


def step(
    detecting: Detecting,
    progress: Progress,
    states: States,
    observed: Iterable[Observed],
    seen: Mapping[str, Seen],
    clock: int,
    knowledge: Knowledge,
    instances: Instances,
    hidden: Hidden = NOTHING_HIDDEN,
    held: Collection[str] = (),
) -> Step:
    """Take in observations, and decide what the watermarks of now allow; those that are ``held`` decide nothing."""
    worked = work(detecting, progress, states, observed, seen, clock, knowledge, instances, hidden, held=held)
    return decide(detecting, worked, worked.found)


def work(
    detecting: Detecting,
    progress: Progress,
    states: States,
    observed: Iterable[Observed],
    seen: Mapping[str, Seen],
    clock: int,
    knowledge: Knowledge,
    instances: Instances,
    hidden: Hidden = NOTHING_HIDDEN,
    arrived: Arrived = MappingProxyType({}),
    held: Collection[str] = (),
) -> Worked:
    """Take in observations, each policy those that are not ``hidden`` from it, up to the watermarks of now.

    ``arrived`` is how far policies are by what of them has come with these.
    """
    observed = tuple(observed)
    reached = {name: kept.reached for name, kept in progress.policies.items() if kept.reached is not None}
    late = detecting.late(observed, reached, hidden)
    progress = progress.heard(seen, arrived=arrived)
    watermarks = progress.watermarks(detecting, clock)
    watermarks = {name: now for name, now in watermarks.items() if name not in held}
    knowledge.take(instances)
    enriched = detecting.enrichment.run(observed, knowledge)
    after: dict[str, State] = {}
    found: dict[str, list[Detection]] = {}
    failed: dict[int, Failure] = {}
    begun_anew: dict[str, Failure] = {}
    for name, watch in detecting.watches.items():
        kernel = detecting.kernel(name)
        state = states[name] if name in states else kernel.start()
        rows = {
            each.leaf: left_of(enriched.rows[each.leaf], watch.reads, hidden)
            for each in watch.plan.leaves
            if each.leaf in enriched.rows
        }
        now = watermarks.get(name, state.watermark)
        stepped = step_safely(kernel, state, rows, now, instances)
        after[name] = stepped.state
        failed |= stepped.failed
        if stepped.begun_anew is not None:
            begun_anew[name] = stepped.begun_anew
        try:
            after[name], ahead = kernel.ahead(stepped.state, instances)
            if len(stepped.found) or len(ahead):
                found[name] = [*detections_of(name, stepped.found), *detections_of(name, ahead)]
        except Exception as error:  # noqa: BLE001 - it can be told later, by the step that decides it
            failure_of(error, STAGE)
            if len(stepped.found):
                found[name] = detections_of(name, stepped.found)
    return Worked(
        progress=progress,
        states=after,
        found=found,
        watermarks=watermarks,
        enriched=enriched,
        observed=observed,
        late=late,
        failed=failed,
        begun_anew=begun_anew,
        clock=clock,
    )


NOTHING_FOUND = Detected(pa.RecordBatch.from_pylist([], schema=schema_of(())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """What a kernel remembers and found, and the positions of events that it could not work on."""

    state: State
    found: Detected
    failed: Mapping[int, Failure] = field(default_factory=dict)
    begun_anew: Failure | None = None


def step_safely(
    kernel: Kernel, state: State, rows: Mapping[Leaf, pa.RecordBatch], watermark: int, instances: Instances
) -> Stepped:
    """A step of one policy. Events that make it fail are left out; if what it remembers does, it begins anew: a policy
    that fails at every step is no policy, and the others go on in any case."""
    try:
        after, found = kernel.step(state, rows, watermark, instances)
        return Stepped(state=after, found=found)
    except Exception as error:
        if not is_of_event(error):
            raise
    positions = sorted({pos for batch in rows.values() for pos in batch.column("pos").to_pylist()})
    begun_anew = None

    def step(some: Sequence[int]) -> tuple[State, Detected]:
        wanted = pa.array(some, pa.int64())
        left = {leaf: batch.filter(pc.is_in(batch.column("pos"), wanted)) for leaf, batch in rows.items()}
        return kernel.step(state, left, watermark, instances)

    try:
        good, bad = largest_working(positions, step)
    except Exception as error:  # noqa: BLE001 - no event of now
        begun_anew = failure_of(error, STAGE)
        state = kernel.start()
        try:
            good, bad = largest_working(positions, step)
        except Exception as again:  # noqa: BLE001 - it fails on nothing at all: nothing can be done for it
            failed = dict.fromkeys(positions, failure_of(again, STAGE))
            state = replace(state, watermark=max(watermark, state.watermark))
            return Stepped(state=state, found=NOTHING_FOUND, failed=failed, begun_anew=begun_anew)
    after, found = step(good)
    failed = {pos: failure_of(error, STAGE) for pos, error in bad}
    return Stepped(state=after, found=found, failed=failed, begun_anew=begun_anew)


def work_rows(
    detecting: Detecting,
    reading: Reading | None,
    progress: Progress,
    states: States,
    rows: Sequence[Row],
    clock: int,
    knowledge: Knowledge,
    instances: Instances,
) -> Worked:
    """Take in events of the log, of which policies see what ``reading`` says; without it, everything."""

    arrived = last_of(rows, progress.marks)

    def take(rows: Sequence[Row]) -> Worked:
        read = read_rows(detecting, reading, rows)
        return work(
            detecting, progress, states, read.observed, read.seen, clock, knowledge, instances, read.hidden, arrived
        )

    try:
        return take(rows)
    except Exception as error:
        if not is_of_event(error):
            raise
    knowledge.take(instances)
    good, failed = readable(detecting, reading, rows, knowledge)
    worked = take(good)
    return replace(worked, failed={**failed, **worked.failed})


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What events say, and which policies see which of them."""

    observed: Sequence[Observed]
    seen: Mapping[str, Seen]
    hidden: Hidden


def read_rows(detecting: Detecting, reading: Reading | None, rows: Sequence[Row]) -> Read:
    """What events of the log say, as far as policies see them."""
    read = detecting.observing.rows(rows)
    if reading is None:
        return Read(observed=read.observed, seen=read.seen, hidden=NOTHING_HIDDEN)
    shown = reading.rows(rows)
    return Read(observed=read.observed, seen=shown.seen, hidden=shown.hidden)


def readable(
    detecting: Detecting, reading: Reading | None, rows: Sequence[Row], knowledge: Knowledge
) -> tuple[list[Row], dict[int, Failure]]:
    """Those of the events that can be read and enriched, and the positions of the others."""

    def read(some: Sequence[Row]) -> None:
        found = read_rows(detecting, reading, some)
        detecting.late(found.observed, {}, found.hidden)
        detecting.enrichment.run(found.observed, knowledge)

    good, bad = largest_working(rows, read)
    return good, {row.pos: failure_of(error, STAGE) for row, error in bad}


Detections = Mapping[str, Sequence[Detection]]
"""What was found, by policy."""
_T = TypeVar("_T")


def detections_safely(found: Detections, work: Callable[[Detections], _T]) -> tuple[_T, list[Failure]]:
    """What a function without effects makes of detections. Those that make it fail are left out: what was remembered
    brings them again and again, and nothing would be told any more."""
    try:
        return work(found), []
    except Exception as error:
        if not is_of_event(error):
            raise

    def together(some: Sequence[tuple[str, Detection]]) -> dict[str, list[Detection]]:
        by_policy: dict[str, list[Detection]] = {name: [] for name in found}
        for name, each in some:
            by_policy[name].append(each)
        return by_policy

    every = [(name, each) for name, some in found.items() for each in some]
    good, bad = largest_working(every, lambda some: work(together(some)))
    return work(together(good)), [failure_of(error, STAGE) for _, error in bad]


def decide(detecting: Detecting, worked: Worked, found: Detections) -> Step:
    """What becomes of situations, with those of the detections that count."""
    (progress, told), failures = detections_safely(
        found, lambda some: worked.progress.decided(detecting, some, worked.watermarks)
    )
    due = progress.has_open or any(state.due is not None for state in worked.states.values())
    # Those that others feed decide a step after these.
    due = due or (bool(detecting.feeders) and progress.lags(detecting, worked.clock))
    return Step(
        progress=progress,
        states=worked.states,
        told=tuple(told),
        enriched=worked.enriched,
        observed=worked.observed,
        late=worked.late,
        due=due,
        failed=worked.failed,
        begun_anew=worked.begun_anew,
        failures=tuple(failures),
    )
