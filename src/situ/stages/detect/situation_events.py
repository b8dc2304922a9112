"""Situations → messages of their policies: who may see them, what they say, and counts of what detection came to.

`SituationMeet` puts the stamps of a situation together, `situation_messages` makes the messages, `DetectionCounts` and
`DetectionStatus` are what engines report. The same for all engines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from situ.event.failures import StageFailure, failure_of
from situ.event.lines import with_parts
from situ.event.message import EventKey, join_lines
from situ.event.row import Row
from situ.lang.records import replace
from situ.model.deployment import Deployment
from situ.policies.actions.action_events import ActionEvent, action_events, line_of
from situ.policies.enrichment.enrich import EnrichedRows, PushObservations
from situ.policies.lifecycle import SITUATION_TYPES, SituationPhase, SituationTransition, situation_data
from situ.policies.model import Detection, InstancesByConcept
from situ.policies.source_coverage import attributes_needed
from situ.scopes.stamp_codec import StampPart, merge_parts, read_parts, with_withheld, write_parts
from situ.stages.derived_visibility import (
    NonEventStamps,
    ReleaseRule,
    Releases,
    is_released,
    released_event,
    released_situation,
    sees_rows,
)
from situ.stages.detect.detection_plan import DetectionPlan, PolicyRuntime
from situ.stages.detect.progress import DetectionProgress
from situ.stages.visibility import NOBODYS, EventVisibility

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The meet: who may see situations. Each carries the stamps of everything that it comes from.
#
# Stamps do not go through kernels. A detection names its causes by where they are in the root log, and there their
# stamps are; so what a situation comes from is put together when it is told. It counts for all that is told of a
# situation what any of its detections came from: a later one says when the first was. That is remembered with the
# situation, since the log forgets.
#
# Before a detection counts, all that it comes from must be visible to what its policy reads as, in the epoch in force:
# what a policy remembers it may have seen under other scopes.

UNSTAMPED = StampPart(0, 0, 0)
"""Stands for what a situation came from before there were scopes: it is for those who name none."""


@dataclass(frozen=True, slots=True)
class MeetResult:
    """The parts of a situation, as they count for it and as they count for what it asks to be done, and are kept."""

    counted: str
    kept: str
    merged: int


class SituationMeet:
    """The policies of one version."""

    def __init__(self, deployment: Deployment, detecting: DetectionPlan, seeing: EventVisibility) -> None:
        self._deployment, self._detecting, self._seeing = deployment, detecting, seeing
        self._releases = Releases(seeing.graph)
        self._beside = NonEventStamps(deployment, detecting, seeing, self._releases)
        self._always: dict[str, frozenset[StampPart]] = {}
        self._unseen: dict[str, tuple[str, ...]] = {}

    @classmethod
    def of(
        cls, deployment: Deployment, detecting: DetectionPlan, seeing: EventVisibility | None
    ) -> SituationMeet | None:
        """None: there are no scopes, and never were."""
        return cls(deployment, detecting, seeing) if seeing is not None else None

    # ── what follows from the version alone, worked out when it is first asked for ──

    @property
    def blind(self) -> frozenset[str]:
        """Policies that do not see a table which they need: they detect nothing."""
        return frozenset(name for name in self._detecting.watches if self.unseen(name))

    def unseen(self, policy: str) -> tuple[str, ...]:
        """The tables that a policy needs and does not see."""
        if policy not in self._unseen:
            watch = self._detecting.watches[policy]
            self._unseen[policy] = tuple(each for each in sorted(self.tables(policy)) if not self._shows(each, watch))
        return self._unseen[policy]

    def tables(self, policy: str) -> set[str]:
        """The tables that say something which a policy asks for."""
        return self._beside.sources(self._detecting.watches[policy])

    def _shows(self, source: str, watch: PolicyRuntime) -> bool:
        assert watch.reads is not None
        return sees_rows(self._seeing, self._deployment.sources[source], watch.reads)

    def always(self, policy: str) -> frozenset[StampPart]:
        """What counts for all situations of a policy: rows of tables, and what they say is absent."""
        if policy not in self._always:
            watch = self._detecting.watches.get(policy)  # of one that is gone, what counted is kept
            beside = self._beside
            self._always[policy] = (
                beside.of_sources(watch) | beside.of_absence(watch) if watch is not None else frozenset()
            )
        return self._always[policy]

    # ── what counts ──

    def counted(
        self, found: Mapping[str, Sequence[Detection]], causes: Mapping[int, Row]
    ) -> dict[str, Sequence[Detection]]:
        """Those detections all of whose causes, found at their positions, their policies may see now."""
        return {
            name: [each for each in some if self._sees_all(name, each, causes)]
            for name, some in found.items()
            if some and not self.unseen(name)
        }

    def _sees_all(self, policy: str, detection: Detection, causes: Mapping[int, Row]) -> bool:
        reads = self._detecting.watches[policy].reads
        assert reads is not None
        rows = [causes.get(position) for position in detection.positions]
        return all(row is not None and self._seeing.sees(self._seeing.look(row), reads) for row in rows)

    # ── what situations come from ──

    def met(self, transition: SituationTransition, causes: Mapping[int, Row], before: str | None) -> MeetResult:
        """What is told with this transition; ``before`` are the parts of what this step has told of the situation."""
        situation = transition.situation
        known = situation.parts if before is None else before
        parts = set(read_parts(known))
        if transition.stage is not SituationPhase.CLOSED or not known:
            parts.update(_of_causes(situation.positions, causes))
            parts |= self.always(situation.policy)
            if transition.stage is not SituationPhase.OPENED and not known:
                parts.add(UNSTAMPED)
        kept, merged = merge_parts(parts)
        counted = write_parts(self._releases.let_go(situation.policy, kept))
        return MeetResult(counted, write_parts(kept), merged)

    def released(self, policy: str) -> ReleaseRule | None:
        """What holds for a policy whose situations are released."""
        return self._releases.get(policy)


def _of_causes(positions: Iterable[int], causes: Mapping[int, Row]) -> Iterator[StampPart]:
    for position in positions:
        row = causes.get(position)
        if row is None:
            yield StampPart(NOBODYS, 0, 0)  # the log has it no more: nobody knows who may see it
            continue
        yield StampPart(row.tags, row.epoch, row.bits)
        yield from read_parts(row.parts)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Messages of policies, which are clients like others. Pure: the same transitions give the same events with the same
# ids, numbered alike. A policy's events of one step are one message, or as few as fit the bus.

_MOST_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyMessage:
    """A message of a policy: so many events, the first with this number."""

    policy: str
    incarnation: int
    first: int
    count: int
    body: bytes
    merged: int = 0
    """Stamps of what situations come from that were merged with others, because they were too many."""
    released: tuple[str, ...] = ()
    """Ids of the events of its policy that were released in this step, with its last message."""
    let_go: str = ""
    """In which dimensions, and who did."""

    @property
    def key(self) -> EventKey:
        return EventKey(self.policy, self.incarnation, self.first)

    @property
    def audit(self) -> str:
        """What is to be kept of releases."""
        return f"{self.policy} released in {self.let_go}: {', '.join(self.released)}"


def cause_positions(told: Iterable[SituationTransition]) -> list[int]:
    """Where in the root log the causes are that these transitions tell, in order, each once."""
    return sorted({position for each in told for position in each.situation.positions if position})


def situation_messages(
    told: Sequence[SituationTransition],
    now: DetectionPlan,
    former: DetectionPlan | None,
    progress: DetectionProgress,
    causes: Mapping[int, Row],
    instances: InstancesByConcept,
    past: Collection[str] = (),
    meeting: SituationMeet | None = None,
    known: Iterable[SituationTransition] = (),
    failures: list[StageFailure] | None = None,
    before: DetectionProgress | None = None,
) -> tuple[DetectionProgress, list[PolicyMessage]]:
    """The messages that tell these transitions, and what actions come to.

    ``causes`` are the events at their positions, those that are found; ``former`` knows the policies that are gone.
    ``past`` are the ids of transitions from before a policy came: no action is done for them. Where there are scopes,
    ``meeting`` knows who may see all that; ``known`` are transitions that were told before, and count for it. What
    cannot be told in a way that nobody foresaw is put to ``failures``, and all else is told. ``before`` is what was
    before another deployment, which knows how far those had decided that are gone.
    """
    parts = None
    if meeting is not None:
        parts = _Parts(meeting, causes)
        for each in known:
            parts.met(each)
    by_policy: dict[str, list[SituationTransition]] = {}
    for each in told:
        by_policy.setdefault(each.situation.policy, []).append(each)
    messages = []
    for name, transitions in by_policy.items():
        knows = now if name in now.watches else former
        watch = knows.watches.get(name) if knows is not None else None
        if watch is None or knows is None:
            continue  # nobody knows any more what it was about
        told_by = _TransitionMessages(name, watch, knows, causes, instances, parts)
        kept = progress.policies.get(name)
        quiet = kept.quiet if kept is not None else None
        for each in transitions:
            told_by.tell(each, acts=each.id not in past and (quiet is None or each.time >= quiet))
        if failures is not None:
            failures += told_by.failures
        for some in _fitting(told_by.lines):
            progress, first = progress.numbered(name, len(some))
            body = join_lines(some)
            messages.append(
                PolicyMessage(policy=name, incarnation=progress.incarnation, first=first, count=len(some), body=body)
            )
        if told_by.merged or told_by.released:
            messages[-1] = replace(
                messages[-1], merged=told_by.merged, released=tuple(told_by.released), let_go=told_by.let_go
            )
    for name, found in parts.of.items() if parts is not None else ():
        progress = progress.with_parts(name, found)
    feeders = now.feeders if former is None else now.feeders | former.feeders
    return progress.marked((each.policy for each in messages), feeders, before or progress), messages


class _Parts:
    """What situations come from that something is told of, as far as it is told."""

    def __init__(self, meeting: SituationMeet, causes: Mapping[int, Row]) -> None:
        self.meeting, self._causes = meeting, causes
        self.of: dict[str, dict[str, str]] = {}
        """By policy and situation."""

    def met(self, transition: SituationTransition) -> MeetResult:
        situation = transition.situation
        known = self.of.setdefault(situation.policy, {})
        met = self.meeting.met(transition, self._causes, known.get(situation.id))
        known[situation.id] = met.kept
        return met


class _TransitionMessages:
    """The events of one policy."""

    def __init__(
        self,
        name: str,
        watch: PolicyRuntime,
        knows: DetectionPlan,
        causes: Mapping[int, Row],
        instances: InstancesByConcept,
        parts: _Parts | None,
    ) -> None:
        self._name, self._watch, self._knows = name, watch, knows
        self._causes, self._instances = causes, instances
        self._parts = parts
        # Where there are scopes, a policy tells nothing of tables that it has not asked for itself.
        self._asked = attributes_needed(watch.policy, knows.actions) if parts is not None else None
        self._let_go = parts.meeting.released(name) if parts is not None else None
        self.lines: list[bytes] = []
        self.failures: list[StageFailure] = []
        self.merged = 0
        self.released: list[str] = []
        self.let_go = f"{self._let_go.text}, by {self._let_go.by}" if self._let_go is not None else ""

    def tell(self, transition: SituationTransition, *, acts: bool) -> None:
        try:
            self._tell(transition, acts=acts)
        except Exception as error:  # noqa: BLE001 - of this transition, and of no other
            self.failures.append(failure_of(error, "tell"))

    def _tell(self, transition: SituationTransition, *, acts: bool) -> None:
        policy, let_go = self._watch.policy, self._let_go
        met = self._parts.met(transition) if self._parts is not None else None
        withheld: Mapping[str, Any] = {}
        if let_go is None:
            positions = transition.situation.positions
            data = situation_data(
                transition, policy, [self._causes[each] for each in positions if each in self._causes]
            )
        else:
            data, withheld = released_situation(transition, policy, let_go.keep)
        self._add(
            ActionEvent(type=SITUATION_TYPES[transition.stage], id=transition.id, data=data),
            transition.time,
            met,
            withheld,
        )
        if acts:
            try:
                self._act(transition, met)
            except Exception as error:  # noqa: BLE001 - the situation is told in any case
                self.failures.append(failure_of(error, "act"))
        self.merged += met.merged if met is not None else 0

    def _act(self, transition: SituationTransition, met: MeetResult | None) -> None:
        policy, let_go, knows = self._watch.policy, self._let_go, self._knows
        for each in action_events(transition, policy, knows.actions, knows.ontology, self._instances, self._asked):
            left = each if let_go is None or not is_released(each) else released_event(each, let_go.keep)
            self._add(left, transition.time, met)

    def _add(
        self, event: ActionEvent, time: int, met: MeetResult | None, withheld: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        let_go = self._let_go if is_released(event) else None
        line = line_of(self._name, time, event, let_go.text if let_go is not None else "")
        if met is not None:
            line = with_parts(line, with_withheld(met.counted if is_released(event) else met.kept, withheld))
        if let_go is not None:
            self.released.append(event.id)
        self.lines.append(line)


def _fitting(lines: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Portions that the bus takes as messages: what is told of a long past may be too much for one."""
    some: list[bytes] = []
    size = 0
    for line in lines:
        if some and size + len(line) > _MOST_BYTES:
            yield some
            some, size = [], 0
        some.append(line)
        size += len(line) + 1
    if some:
        yield some


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Counts by policy and by push source, and what was odd, with an example of each. Parts that were counted elsewhere are
# added up. Nothing is decided by it.


@dataclass(frozen=True, slots=True)
class Anomaly:
    """How often something odd was seen, and one of the cases."""

    count: int = 0
    sample: str = ""


@dataclass(slots=True, kw_only=True)
class DetectionCounts:
    """``late_events`` are events that came too late for a policy at least; ``late`` counts them for each."""

    opened: dict[str, int] = field(default_factory=dict)
    """Situations, by policy."""
    detections: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    late_events: int = 0
    events: dict[str, int] = field(default_factory=dict)
    """Those that told something, by push source."""
    unknown: dict[str, Anomaly] = field(default_factory=dict)
    """Observations of identities that no pull source knows, by push source."""
    failures: dict[str, Anomaly] = field(default_factory=dict)
    """Tests that failed on values, by their text."""
    merged: dict[str, int] = field(default_factory=dict)
    """Stamps of what situations come from that were too many and became fewer, by policy."""
    released: dict[str, int] = field(default_factory=dict)
    """Events that an administrator let go, by policy."""

    def take_told(self, told: Iterable[SituationTransition]) -> None:
        for each in told:
            if each.detection:
                _count(self.detections, each.situation.policy)
            if each.stage is SituationPhase.OPENED:
                _count(self.opened, each.situation.policy)

    def take_published(self, published: Iterable[PolicyMessage]) -> None:
        for each in published:
            if each.merged:
                _count(self.merged, each.policy, each.merged)
            if each.released:
                _count(self.released, each.policy, len(each.released))

    def take_late(self, late: Mapping[int, Iterable[str]]) -> None:
        """Positions of events, each with the policies that it came too late for."""
        self.late_events += len(late)
        for policies in late.values():
            for policy in policies:
                _count(self.late, policy)

    def take_observed(self, observed: Iterable[PushObservations]) -> None:
        for each in observed:
            if each.rows.num_rows:
                _count(self.events, each.rows.column("push")[0].as_py(), each.rows.num_rows)

    def take_enriched(self, enriched: EnrichedRows) -> None:
        for unknown in enriched.unknown:
            _note(self.unknown, unknown.push, Anomaly(unknown.count, f"{unknown.concept} {unknown.sample}"))
        for failure in enriched.failures:
            _note(self.failures, failure.test, Anomaly(failure.count, failure.shown))

    def add(self, other: DetectionCounts) -> None:
        """With what was counted elsewhere."""
        self.late_events += other.late_events
        pairs = (
            (self.opened, other.opened),
            (self.detections, other.detections),
            (self.late, other.late),
            (self.events, other.events),
            (self.merged, other.merged),
            (self.released, other.released),
        )
        for mine, others in pairs:
            for name, number in others.items():
                _count(mine, name, number)
        for known, seen in ((self.unknown, other.unknown), (self.failures, other.failures)):
            for name, odd in seen.items():
                _note(known, name, odd)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionStatus:
    """What an engine lets others see of detection: its policies, how far they are, and what it has come to."""

    tally: DetectionCounts = field(default_factory=DetectionCounts)
    progress: DetectionProgress = field(default_factory=DetectionProgress)
    detecting: DetectionPlan | None = None
    """None: nothing was worked yet."""


def _count(counts: dict[str, int], name: str, number: int = 1) -> None:
    counts[name] = counts.get(name, 0) + number


def _note(known: dict[str, Anomaly], name: str, odd: Anomaly) -> None:
    """The last example is shown."""
    known[name] = Anomaly(known[name].count + odd.count if name in known else odd.count, odd.sample)
