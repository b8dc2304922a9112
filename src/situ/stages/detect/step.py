"""One step of detection: observations in, what happened to situations out.

`PolicyReader` says what policies see of the events of the log, `work` takes observations in, `decide` settles what
becomes of situations; `step_safely` and `detections_safely` leave out what makes a policy fail.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from situ.event.failures import StageFailure, failure_of, is_of_event, largest_working
from situ.event.lines import decode_line, read_stamp, stored_lines
from situ.event.message import STAMP, StoredMessage, position
from situ.event.row import Row
from situ.lang.expr.emit.vectors import Bools
from situ.lang.records import replace
from situ.lang.tags import TagSet
from situ.policies.enrichment.enrich import EnrichedRows, PushObservations
from situ.policies.enrichment.instances import InstanceColumns
from situ.policies.enrichment.observations import LogEvent, LogLine
from situ.policies.kernel.detections import DetectionBatch, detections_of, schema_of
from situ.policies.kernel.kernel import Kernel
from situ.policies.kernel.state import KernelState
from situ.policies.lifecycle import SituationTransition
from situ.policies.model import Detection, InstancesByConcept
from situ.policies.plan import Leaf
from situ.policies.watermark import SourceTimes
from situ.routing.visibility import VisibilityKey
from situ.scopes.stamp_codec import stamps_in
from situ.stages.detect.detection_plan import NOTHING_HIDDEN, DetectionPlan, Hidden, partial_source_key, visible_rows
from situ.stages.detect.progress import Arrived, DetectionProgress, last_of
from situ.stages.visibility import EventVisibility

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What policies see: of the events of the log those that are visible to what they read as, in both epochs. What is not
# visible to a policy is left out before it remembers anything of it, does not tell it how far its sources are, and is
# not late for it. All that is worked out once for policies that read alike, and only of types that policies listen to.
# Without scopes there is nothing of this.

_MOST_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class _LogEvent:
    pos: int
    type: str
    heard: LogEvent
    look: VisibilityKey


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleEvents:
    """Of some events: what is hidden from whom, and how far push sources are by what is not."""

    hidden: Hidden
    seen: dict[str, SourceTimes]


class PolicyReader:
    """The policies of one version, and what they read as."""

    def __init__(self, detecting: DetectionPlan, seeing: EventVisibility) -> None:
        self._observing, self._seeing = detecting.observing, seeing
        self._listened = detecting.observing.types
        self._reads = sorted(
            {watch.reads for watch in detecting.watches.values() if watch.reads is not None},
            key=lambda tags: (tags.named, tags.rest),
        )
        self._known: dict[tuple[VisibilityKey, TagSet], bool] = {}

    @classmethod
    def of(cls, detecting: DetectionPlan, seeing: EventVisibility | None) -> PolicyReader | None:
        """None: there are no scopes, and policies see everything."""
        return cls(detecting, seeing) if seeing is not None else None

    def rows(self, rows: Iterable[Row]) -> VisibleEvents:
        """What policies see of these events."""
        look, is_own = self._seeing.look, self._observing.is_own
        return self._shown(
            [
                _LogEvent(row.pos, row.type, LogEvent(row.time, row.recv, is_own(row.client), row.data), look(row))
                for row in rows
                if row.type in self._listened
            ]
        )

    @property
    def readers(self) -> Sequence[TagSet]:
        """What policies read as."""
        return self._reads

    def visible(
        self, message: StoredMessage, lines: Sequence[LogLine], places: Sequence[int]
    ) -> Sequence[Bools | bool]:
        """For each reader, which of these lines it sees, that are at these places of a message; or that it sees all of
        them, or none. What no policy listens to is not looked at."""
        stamp = message.headers.get(STAMP)
        if stamp:
            tags, epoch, bits = read_stamp(stamp)
            if epoch == self._seeing.epoch:
                look = (tags, epoch, bits, bits, "")
                return [self._sees(look, reads) for reads in self._reads]
        stamps = [(line.situtags, line.situepoch, line.situbits, line.situparts) for line in lines]
        if stamp or any(epoch != self._seeing.epoch for _, epoch, _, _ in set(stamps)):
            return self._visible_by_rows(message, lines, places)
        looks = {each: _look_of(*each) for each in set(stamps)}
        shown: list[Bools | bool] = []
        for reads in self._reads:
            sees = {each: self._sees(look, reads) for each, look in looks.items()}
            first, *others = set(sees.values())
            shown.append(np.fromiter(map(sees.__getitem__, stamps), np.bool_, len(stamps)) if others else first)
        return shown

    def _visible_by_rows(
        self, message: StoredMessage, lines: Sequence[LogLine], places: Sequence[int]
    ) -> Sequence[Bools | bool]:
        """What was stamped in an epoch that is over: filters that are new since then ask the event itself."""
        stored, listened = stored_lines(message), self._listened
        looks = [
            self._seeing.look(decode_line(stored[place], pos=position(message.seq, place)))
            if line.type in listened
            else None
            for line, place in zip(lines, places, strict=True)
        ]
        return [
            np.fromiter((look is None or self._sees(look, reads) for look in looks), np.bool_, len(looks))
            for reads in self._reads
        ]

    def _shown(self, events: list[_LogEvent]) -> VisibleEvents:
        hidden: dict[TagSet, np.ndarray[tuple[int], np.dtype[np.int64]]] = {}
        seen: dict[str, SourceTimes] = {}
        for reads in self._reads:
            positions: list[int] = []
            heard: dict[str, list[LogEvent]] = {}
            for event in events:
                if self._sees(event.look, reads):
                    heard.setdefault(event.type, []).append(event.heard)
                else:
                    positions.append(event.pos)
            if positions:
                hidden[reads] = np.array(positions, np.int64)
            seen |= {partial_source_key(push, reads): latest for push, latest in self._observing.seen(heard).items()}
        return VisibleEvents(hidden=hidden, seen=seen)

    def _sees(self, look: VisibilityKey, reads: TagSet) -> bool:
        found = self._known.get((look, reads))
        if found is None:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            found = self._known[look, reads] = self._seeing.sees(look, reads)
        return found


def _look_of(tags: int, epoch: int, said: str, parts: str) -> VisibilityKey:
    bits = int(said, 16) if said else 0
    return tags, epoch, bits, bits, stamps_in(parts)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The step, all in one place. Where policies are worked in several partitions, an engine does the parts of this where
# they belong.

STAGE = "detect"
States = Mapping[str, KernelState]
"""What kernels remember, by policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionStep:
    """What a step leaves behind, and what it tells."""

    progress: DetectionProgress
    states: States
    told: tuple[SituationTransition, ...] = ()
    enriched: EnrichedRows = field(default_factory=lambda: EnrichedRows(rows=MappingProxyType({})))
    observed: tuple[PushObservations, ...] = ()
    late: Mapping[int, list[str]] = field(default_factory=dict)
    """Where events are that came too late, and for which policies."""
    due: bool = False
    """Whether time that goes by can bring more, though no event comes."""
    failed: Mapping[int, StageFailure] = field(default_factory=dict)
    """Where events are that nothing, or not every policy, can work on."""
    begun_anew: Mapping[str, StageFailure] = field(default_factory=dict)
    """Policies that could not go on from what they remembered, and have forgotten it."""
    failures: tuple[StageFailure, ...] = ()
    """Of detections that nothing could be decided about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOutput:
    """What kernels made of observations, before anything is decided about situations."""

    progress: DetectionProgress
    states: States
    found: Mapping[str, Sequence[Detection]]
    watermarks: Mapping[str, int]
    enriched: EnrichedRows
    observed: tuple[PushObservations, ...]
    late: Mapping[int, list[str]]
    clock: int
    failed: Mapping[int, StageFailure] = field(default_factory=dict)
    begun_anew: Mapping[str, StageFailure] = field(default_factory=dict)


def step(
    detecting: DetectionPlan,
    progress: DetectionProgress,
    states: States,
    observed: Iterable[PushObservations],
    seen: Mapping[str, SourceTimes],
    clock: int,
    knowledge: InstanceColumns,
    instances: InstancesByConcept,
    hidden: Hidden = NOTHING_HIDDEN,
    held: Collection[str] = (),
) -> DetectionStep:
    """Take in observations, and decide what the watermarks of now allow; those that are ``held`` decide nothing."""
    worked = work(detecting, progress, states, observed, seen, clock, knowledge, instances, hidden, held=held)
    return decide(detecting, worked, worked.found)


def work(
    detecting: DetectionPlan,
    progress: DetectionProgress,
    states: States,
    observed: Iterable[PushObservations],
    seen: Mapping[str, SourceTimes],
    clock: int,
    knowledge: InstanceColumns,
    instances: InstancesByConcept,
    hidden: Hidden = NOTHING_HIDDEN,
    arrived: Arrived = MappingProxyType({}),
    held: Collection[str] = (),
) -> KernelOutput:
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
    after: dict[str, KernelState] = {}
    found: dict[str, list[Detection]] = {}
    failed: dict[int, StageFailure] = {}
    begun_anew: dict[str, StageFailure] = {}
    for name, watch in detecting.watches.items():
        kernel = detecting.kernel(name)
        state = states[name] if name in states else kernel.start()
        rows = {
            each.leaf: visible_rows(enriched.rows[each.leaf], watch.reads, hidden)
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
    return KernelOutput(
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


# Of nulls: Arrow loads pandas when it makes a column of a list, and most processes that load this module make none.
_COLUMNS = schema_of(())
NOTHING_FOUND = DetectionBatch(
    pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in _COLUMNS], schema=_COLUMNS)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyStep:
    """What a kernel remembers and found, and the positions of events that it could not work on."""

    state: KernelState
    found: DetectionBatch
    failed: Mapping[int, StageFailure] = field(default_factory=dict)
    begun_anew: StageFailure | None = None


def step_safely(
    kernel: Kernel,
    state: KernelState,
    rows: Mapping[Leaf, pa.RecordBatch],
    watermark: int,
    instances: InstancesByConcept,
) -> PolicyStep:
    """A step of one policy. Events that make it fail are left out; if what it remembers does, it begins anew: a policy
    that fails at every step is no policy, and the others go on in any case."""
    try:
        after, found = kernel.step(state, rows, watermark, instances)
        return PolicyStep(state=after, found=found)
    except Exception as error:
        if not is_of_event(error):
            raise
    positions = sorted({pos for batch in rows.values() for pos in batch.column("pos").to_pylist()})
    begun_anew = None

    def step(some: Sequence[int]) -> tuple[KernelState, DetectionBatch]:
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
            return PolicyStep(state=state, found=NOTHING_FOUND, failed=failed, begun_anew=begun_anew)
    after, found = step(good)
    failed = {pos: failure_of(error, STAGE) for pos, error in bad}
    return PolicyStep(state=after, found=found, failed=failed, begun_anew=begun_anew)


def work_rows(
    detecting: DetectionPlan,
    reading: PolicyReader | None,
    progress: DetectionProgress,
    states: States,
    rows: Sequence[Row],
    clock: int,
    knowledge: InstanceColumns,
    instances: InstancesByConcept,
) -> KernelOutput:
    """Take in events of the log, of which policies see what ``reading`` says; without it, everything."""

    arrived = last_of(rows, progress.marks)

    def take(rows: Sequence[Row]) -> KernelOutput:
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
class PolicyObservations:
    """What events say, and which policies see which of them."""

    observed: Sequence[PushObservations]
    seen: Mapping[str, SourceTimes]
    hidden: Hidden


def read_rows(detecting: DetectionPlan, reading: PolicyReader | None, rows: Sequence[Row]) -> PolicyObservations:
    """What events of the log say, as far as policies see them."""
    read = detecting.observing.rows(rows)
    if reading is None:
        return PolicyObservations(observed=read.observed, seen=read.seen, hidden=NOTHING_HIDDEN)
    shown = reading.rows(rows)
    return PolicyObservations(observed=read.observed, seen=shown.seen, hidden=shown.hidden)


def read_messages(
    detecting: DetectionPlan, reading: PolicyReader | None, messages: Iterable[StoredMessage]
) -> PolicyObservations:
    """What messages of the log say, which are in the terms of now, as far as policies see them."""
    read = detecting.observing.log(messages, reading)
    if reading is None:
        return PolicyObservations(observed=read.observed, seen=read.seen, hidden=NOTHING_HIDDEN)
    seen = {
        partial_source_key(push, reads): latest
        for reads, sources in read.seen_by.items()
        for push, latest in sources.items()
    }
    return PolicyObservations(observed=read.observed, seen=seen, hidden=read.hidden)


def readable(
    detecting: DetectionPlan, reading: PolicyReader | None, rows: Sequence[Row], knowledge: InstanceColumns
) -> tuple[list[Row], dict[int, StageFailure]]:
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


def detections_safely(found: Detections, work: Callable[[Detections], _T]) -> tuple[_T, list[StageFailure]]:
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


def decide(detecting: DetectionPlan, worked: KernelOutput, found: Detections) -> DetectionStep:
    """What becomes of situations, with those of the detections that count."""
    (progress, told), failures = detections_safely(
        found, lambda some: worked.progress.decided(detecting, some, worked.watermarks)
    )
    due = progress.has_open or any(state.due is not None for state in worked.states.values())
    # Those that others feed decide a step after these.
    due = due or (bool(detecting.feeders) and progress.lags(detecting, worked.clock))
    return DetectionStep(
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
