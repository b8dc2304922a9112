"""Tests of policies, run: given events and rows → the situations that come of them.

Everything that an engine does happens here, too, in the same order and by the same code, only that events come one by
one, the clock says what the test lets it say, and nothing is published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from situ.contexts.model import ROOT
from situ.event.lines import encode_row
from situ.event.message import join_lines
from situ.event.row import Row
from situ.lang.types.json_codec import encode
from situ.lang.types.table import Types
from situ.policies import lifecycle
from situ.policies.enrichment.instances import InstanceColumns
from situ.policies.enrichment.observations import ObservationBatch, keep_durations, observe
from situ.policies.lifecycle import SituationTransition
from situ.policies.model import Cause, InstancesByConcept, Observation
from situ.policies.policy_tests import FoundSituation, GivenEvent, PolicyTest, situations
from situ.policies.reference import detect
from situ.sources.model import Source
from situ.sources.table import Table, make_table
from situ.stages.detect.detection_plan import DetectionPlan
from situ.stages.detect.progress import DetectionProgress
from situ.stages.detect.step import DetectionStep, States, step

_CLIENT = "test"
_NOTHING = ObservationBatch(seen={})
_FOREVER = 1_000 * 86_400 * 1_000_000
"""After so long a silence everything is settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTestOutcome:
    """What came of a test. ``late`` are events that were not looked at, by a policy at least."""

    found: tuple[FoundSituation, ...]
    observations: tuple[Observation, ...]
    instances: InstancesByConcept
    late: tuple[GivenEvent, ...] = ()
    late_for: Mapping[str, frozenset[Cause]] = field(default_factory=dict)
    """The same by policy."""
    told: tuple[SituationTransition, ...] = ()
    settled: Mapping[str, int] = field(default_factory=dict)
    """How far each policy has decided; one that has decided nothing is not among them."""
    waits_for: Mapping[str, str] = field(default_factory=dict)
    """What policies wait for at the end."""


def tables_of(test: PolicyTest, detecting: DetectionPlan, sources: Mapping[str, Source]) -> dict[str, Table]:
    """The rows of the tables that policies need: those that are given, and none of others."""
    return {
        name: test.pull[name]
        if name in test.pull
        else make_table(sources[name], {c.name: () for c in sources[name].columns})
        for name in detecting.tables.keyed
    }


def run_policy_test(
    test: PolicyTest, detecting: DetectionPlan, tables: Mapping[str, Table], types: Types
) -> PolicyTestOutcome:
    """Run a test the way engines run."""
    run = _Run(detecting, detecting.tables.of(tables), begin_of(test))
    late = []
    late_for: dict[str, set[Cause]] = {}
    for number, event in enumerate(test.events, 1):
        run.settle(event.received)
        policies = run.step(read_event(event, number, detecting, types), event.received).late
        if policies:
            late.append(event)
        for name in {name for names in policies.values() for name in names}:
            late_for.setdefault(name, set()).add(Cause(event.source, event.id))
    run.settle(end_of(test))
    progress = run.progress
    return PolicyTestOutcome(
        found=tuple(situations(run.told)),
        observations=tuple(observe(test.events, detecting.push, types)),
        instances=run.instances,
        late=tuple(late),
        late_for={name: frozenset(causes) for name, causes in late_for.items()},
        told=tuple(run.told),
        settled={name: kept.reached for name, kept in progress.policies.items() if kept.reached is not None},
        waits_for={
            name: found
            for name, watch in detecting.watches.items()
            if (found := progress.waits_for(detecting, watch, end_of(test))) is not None
        },
    )


def read_event(event: GivenEvent, number: int, detecting: DetectionPlan, types: Types) -> ObservationBatch:
    """What an event says, as an engine that finds it in the root log sees it."""
    return detecting.observing.messages([body_of(event, number, types)])


def body_of(event: GivenEvent, number: int, types: Types) -> bytes:
    """The message of the root log that has this event alone; ``number`` is its place among those of the test."""
    declared = types.event(event.type)
    assert declared is not None, event.type
    row = Row(
        pos=0,
        client=_CLIENT,
        incarnation=1,
        seq=number,
        context=ROOT,
        recv=event.received,
        id=event.id,
        source=event.source,
        type=event.type,
        time=event.time,
        ad="",
        confidence=None,
        ext="",
        data=msgspec.json.encode(encode(declared, event.data, types)),
    )
    return join_lines([encode_row(row)])


def begin_of(test: PolicyTest) -> int:
    """When policies begin to listen: with the first event."""
    return test.events[0].received if test.events else 0


def end_of(test: PolicyTest) -> int:
    """What the clock says at the end of a test."""
    if test.clock is not None:
        return test.clock
    return max((max(each.time, each.received) for each in test.events), default=0) + _FOREVER


class _Run:
    """Steps of detection, one after the other."""

    def __init__(self, detecting: DetectionPlan, instances: InstancesByConcept, begin: int) -> None:
        self.detecting, self.instances = detecting, instances
        self.knowledge = InstanceColumns(detecting.ontology)
        self.progress, _ = DetectionProgress().adopted(detecting, None, begin)
        self.states: States = {}
        self.told: list[SituationTransition] = []

    def settle(self, clock: int) -> None:
        """Let the clock go on; a policy that others feed decides a step after they did."""
        before = None
        while before is None or before != self.progress.watermarks(self.detecting, clock):
            before = self.progress.watermarks(self.detecting, clock)
            self.step(_NOTHING, clock)

    def step(self, read: ObservationBatch, clock: int) -> DetectionStep:
        done = step(
            self.detecting,
            self.progress,
            self.states,
            read.observed,
            read.seen,
            clock,
            self.knowledge,
            self.instances,
        )
        self.progress, self.states = done.progress, done.states
        self.told += done.told
        return done


def run_policy_test_by_definition(
    test: PolicyTest, detecting: DetectionPlan, tables: Mapping[str, Table], types: Types
) -> PolicyTestOutcome:
    """Run a test by the reference: what is meant, whatever arrives when. Nothing is late."""
    instances = detecting.tables.of(tables)
    said = list(observe(test.events, detecting.push, types))
    told: list[SituationTransition] = []
    for watch in detecting.watches.values():
        found = detect(
            watch.policy, detecting.ontology, said, instances, keep=keep_durations(detecting.push), until=test.clock
        )
        end = test.clock if test.clock is not None else max((each.time for each in found), default=0) + _FOREVER
        told += lifecycle.step({}, found, end, watch.policy.hold)[1]
    return PolicyTestOutcome(found=tuple(situations(told)), observations=tuple(said), instances=instances)
