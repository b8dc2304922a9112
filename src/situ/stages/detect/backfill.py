"""Back-fill: a policy that is new begins with what the log holds since an instant, and goes on from there.

`LogPortions` gathers messages of the log for each step, `Backfill` runs policies over them, `start_from_backfill` gives
where these policies go on from and what is told of the past.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType

import pyarrow as pa

from situ.event.lines import decode_line, stored_lines
from situ.event.message import CLIENT, RECEIVED, StoredMessage
from situ.lang.records import replace
from situ.policies import lifecycle
from situ.policies.enrichment.instances import InstanceColumns
from situ.policies.kernel.detections import DetectionBatch, detections_of
from situ.policies.kernel.state import KernelState
from situ.policies.lifecycle import SituationTransition
from situ.policies.model import Detection, InstancesByConcept, PolicyStart, PolicyStarts
from situ.policies.watermark import SourceTimes
from situ.stages.detect.detection_plan import DetectionPlan
from situ.stages.detect.progress import DetectionProgress
from situ.stages.detect.step import PolicyReader, read_messages

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Messages of the log in portions, as an engine would have got them. The clock is that of the log, which says when each
# message came: on its way into the log it is not late yet. What policies look back on is taken, too, from before the
# time that counts.

_MICROSECOND = timedelta(microseconds=1)
_LONGEST, _SHORTEST = 1_000_000, 50_000
"""Microseconds of the log that are worked in one step: what came in one of them is in time for each other."""
_MOST = 5_000
"""Messages that are."""


class LogPortions:
    """Messages that are gathered for the next step; from ``begin`` on, stored since then, they count."""

    def __init__(self, detecting: DetectionPlan, begin: int, since: int) -> None:
        self._begin, self._since = begin, since
        self._waiting: list[StoredMessage] = []
        patience = [each.lateness for watch in detecting.watches.values() for each in watch.patience.values()]
        self._longest = min(max(min(patience, default=_LONGEST), _SHORTEST), _LONGEST)
        self.counts = False

    def due(self, message: StoredMessage) -> int | None:
        """Up to which time what is gathered is to be worked before this message is added; None: not yet."""
        waiting = self._waiting
        if not waiting:
            return None
        if message.seq >= self._begin and not self.counts:
            return min(received_at(message), self._since)
        return received_at(message) if len(waiting) >= _MOST or message.at - waiting[0].at > self._longest else None

    def add(self, message: StoredMessage) -> None:
        self._waiting.append(message)
        self.counts = message.seq >= self._begin

    def taken(self) -> list[StoredMessage]:
        """What is gathered, which is then not waiting any more."""
        some, self._waiting = self._waiting, []
        return some


def received_at(message: StoredMessage) -> int:
    """When a message was received, in microseconds."""
    return min(int(message.headers.get(RECEIVED, message.at)), message.at)


def lookback(detecting: DetectionPlan) -> int:
    """How much earlier than a detection its causes can be, and what refutes it; in microseconds."""
    found = 0
    for watch in detecting.watches.values():
        kept = max((each.kept for each in watch.plan.leaves), default=0)
        repeated = max((detecting.push[name].keep // _MICROSECOND for name in watch.patience), default=0)
        lateness = max((each.lateness for each in watch.patience.values()), default=0)
        found = max(found, kept + watch.policy.hold + repeated + lateness)
    return found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Policies over the past. What one finds there is told like everything else, except what the log says already; a kernel
# remembers afterwards what it would, had the policy been at work. Buckets can be filled apart: all of them see all of
# the log, so they agree on how far it is settled, and detections need not come in the order of the log to become
# situations.
#
# The log does not say how far a policy was that published what another reads. So one that others feed takes in all of
# the past before it decides anything, and then no more than these have decided by now: their events stand late in the
# log.


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillState:
    """What a bucket, or all of it, has of the past."""

    states: Mapping[str, KernelState] = field(default_factory=lambda: MappingProxyType({}))
    detections: Mapping[str, Sequence[pa.RecordBatch]] = field(default_factory=lambda: MappingProxyType({}))
    """By policy, as kernels report them."""
    reached: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """How far each policy has decided."""
    seen: Mapping[str, SourceTimes] = field(default_factory=lambda: MappingProxyType({}))
    told: frozenset[str] = frozenset()
    """Ids of what policies of these names have told before, in that part of the log."""
    quiet: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """How far those would have decided that had to wait for others which begin in the past, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillStart:
    """What follows from what is filled: where policies go on from, and what is told of the past."""

    progress: DetectionProgress
    filled: bool = False
    """Whether there was any."""
    told: tuple[SituationTransition, ...] = ()
    past: frozenset[str] = frozenset()
    """Ids of those that no action is done for."""
    known: tuple[SituationTransition, ...] = ()
    """Those that the log tells already, of situations that are still open."""


def policies_to_backfill(
    detecting: DetectionPlan, starts: PolicyStarts, before: DetectionProgress
) -> dict[int, tuple[str, ...]]:
    """The policies that begin in the past, by when: those that nothing is remembered of."""
    found: dict[int, tuple[str, ...]] = {}
    for name in sorted(starts.keys() & detecting.watches.keys() - before.policies.keys()):
        found[starts[name].at] = (*found.get(starts[name].at, ()), name)
    return found


def bounds_of(
    detecting: DetectionPlan, progress: DetectionProgress, fills: Mapping[int, Sequence[str]], clock: int
) -> dict[str, int | None]:
    """How far policies that begin in the past and are fed by others may decide; None: these have yet to tell theirs."""
    filled = {name for names in fills.values() for name in names}
    watermarks = progress.watermarks(detecting, clock)
    found: dict[str, int | None] = {}
    for name in filled:
        fed = progress.listening(detecting, detecting.watches[name], clock).fed
        # One that begins now tells nothing older than what it begins with.
        far = [
            None if each in filled else pace if pace is not None else watermarks.get(each) for each, pace in fed.items()
        ]
        if far:
            known = [each for each in far if each is not None]
            found[name] = min(known) if len(known) == len(far) else None
    return found


class Backfill:
    """Policies over messages of the log, in its order; those from ``begin`` on, stored since an instant, count."""

    def __init__(
        self,
        detecting: DetectionPlan,
        instances: InstancesByConcept,
        begin: int,
        since: int,
        *,
        bucket: int = 0,
        buckets: int = 1,
        reading: PolicyReader | None = None,
        bounds: Mapping[str, int | None] = MappingProxyType({}),
    ) -> None:
        self._bounds = bounds
        self._quiet: dict[str, int] = {}
        self._detecting, self._instances = detecting, instances
        self._reading = reading
        self._place = (bucket, buckets)
        self._portions = LogPortions(detecting, begin, since)
        self._knowledge = InstanceColumns(detecting.ontology)
        self._progress = DetectionProgress()
        self._states: dict[str, KernelState] = {}
        self._found: dict[str, list[pa.RecordBatch]] = {}
        self._told: set[str] = set()
        self._clock = 0

    def take(self, messages: Iterable[StoredMessage]) -> None:
        """The next messages, in the terms of now."""
        for message in messages:
            self._begin(received_at(message))
            if message.headers.get(CLIENT) in self._detecting.watches:
                self._told.update(decode_line(line).id for line in stored_lines(message))
            if (clock := self._portions.due(message)) is not None:
                self._step(clock)
            self._portions.add(message)
            self._clock = max(self._clock, received_at(message))

    def _begin(self, clock: int) -> None:
        if not self._progress.policies:
            self._progress, _ = self._progress.adopted(self._detecting, None, clock)

    def filled(self) -> BackfillState:
        """After the last of them. What is behind it may still be in time: the clock does not go further."""
        self._begin(0)
        self._step(self._clock, last=True)
        policies = self._progress.policies
        return BackfillState(
            states=self._states,
            detections=self._found,
            reached={name: kept.reached for name, kept in policies.items() if kept.reached is not None},
            seen=self._progress.seen,
            told=frozenset(self._told),
            quiet=self._quiet,
        )

    def _step(self, clock: int, *, last: bool = False) -> None:
        detecting, (bucket, buckets) = self._detecting, self._place
        some = self._portions.taken()
        read = read_messages(detecting, self._reading, some)
        progress = self._progress.heard(read.seen)
        watermarks = self._held(progress, progress.watermarks(detecting, clock), last=last)
        self._knowledge.take(self._instances)
        enriched = detecting.enrichment.run(read.observed, self._knowledge)
        part = detecting.parts(enriched.rows, buckets, read.hidden)[bucket]
        for name in detecting.watches:
            kernel = detecting.kernel(name, bucket, buckets)
            state = self._states[name] if name in self._states else kernel.start()
            now = watermarks.get(name, state.watermark)
            self._states[name], found = kernel.step(state, detecting.rows_of(name, part), now, self._instances)
            if found.batch.num_rows and self._portions.counts:
                self._found.setdefault(name, []).append(found.batch)
        self._progress, _ = progress.decided(detecting, {}, watermarks)

    def _held(self, progress: DetectionProgress, watermarks: dict[str, int], *, last: bool) -> dict[str, int]:
        """Without going on with those that others feed, before the last step and then further than these are."""
        if not self._portions.counts:
            return watermarks
        for name in self._bounds.keys() & watermarks.keys():
            bound, reached = self._bounds[name] if last else None, progress.policies[name].reached
            if last and self._bounds[name] is None:
                self._quiet[name] = watermarks[name]
            allowed = [each for each in (bound, reached) if each is not None]
            if allowed:
                watermarks[name] = min(watermarks[name], max(allowed))
            else:
                del watermarks[name]
        return watermarks


def start_from_backfill(
    progress: DetectionProgress,
    detecting: DetectionPlan,
    starts: Mapping[str, PolicyStart],
    filled: Sequence[BackfillState],
    blind: Collection[str] = (),
) -> BackfillStart:
    """The policies that were filled, in all their buckets, go on; what became of situations until then is told.

    Those that are ``blind`` do not see what they would need, and have detected nothing.
    """
    told: list[SituationTransition] = []
    before: list[SituationTransition] = []
    past: set[str] = set()
    policies = dict(progress.policies)
    known = frozenset[str]().union(*(each.told for each in filled))
    quiet = {name: time for each in filled for name, time in each.quiet.items() if not starts[name].acts}
    for name in {name for each in filled for name in each.states} & policies.keys():
        policies[name] = replace(policies[name], since=starts[name].at, quiet=quiet.get(name))
    for name, reached in {name: reached for each in filled for name, reached in each.reached.items()}.items():
        found = _detections(name, filled) if name not in blind else []
        current, transitions = lifecycle.step({}, found, reached, detecting.watches[name].policy.hold)
        policies[name] = replace(policies[name], reached=reached, open=current)
        new = [each for each in transitions if each.id not in known]
        told += new
        still_open = {each.id for each in current.values()}
        before += [each for each in transitions if each.id in known and each.situation.id in still_open]
        if not starts[name].acts:
            past.update(each.id for each in new)
    heard = progress.heard(*(each.seen for each in filled))
    progress = replace(heard, policies=policies)
    return BackfillStart(
        progress=progress, filled=bool(filled), told=tuple(told), past=frozenset(past), known=tuple(before)
    )


def _detections(policy: str, filled: Sequence[BackfillState]) -> list[Detection]:
    batches = (batch for each in filled for batch in each.detections.get(policy, ()))
    return [detection for batch in batches for detection in detections_of(policy, DetectionBatch(batch))]
