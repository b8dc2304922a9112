"""Tests of policies, run: given events and rows → the situations that come of them.

Everything that an engine does happens here, too, in the same order and by the same code, only that events come one by
one, the clock says what the test lets it say, and nothing is published.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from situ.deployment.detecting import Detecting
from situ.deployment.progress import Progress
from situ.deployment.stepping import States, step
from situ.situation.enrichment.known import Knowledge
from situ.situation.enrichment.observe import kept, observe, observed
from situ.situation.meaning import lifecycle
from situ.situation.meaning.detection import Instances, Observation
from situ.situation.meaning.lifecycle import Transition
from situ.situation.meaning.policy_test import Found, GivenEvent, PolicyTest, situations
from situ.situation.meaning.reference import detect
from situ.situation.meaning.watermark import Seen, seen_of
from situ.sources.model import Source
from situ.sources.table import Table, make_table
from situ.types.table import Types

_FOREVER = 1_000 * 86_400 * 1_000_000
"""After so long a silence everything is settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What came of a test. ``late`` are events that were not looked at, by a policy at least."""

    found: tuple[Found, ...]
    observations: tuple[Observation, ...]
    instances: Instances
    late: tuple[GivenEvent, ...] = ()


def tables_of(test: PolicyTest, detecting: Detecting, sources: Mapping[str, Source]) -> dict[str, Table]:
    """The rows of the tables that policies need: those that are given, and none of others."""
    return {
        name: test.pull[name]
        if name in test.pull
        else make_table(sources[name], {c.name: () for c in sources[name].columns})
        for name in detecting.tables.keyed
    }


def try_policies(test: PolicyTest, detecting: Detecting, tables: Mapping[str, Table], types: Types) -> Tried:
    """Run a test the way engines run."""
    run = _Run(detecting, detecting.tables.of(tables))
    said: list[Observation] = []
    late = []
    for event in test.events:
        run.step((), {}, event.received)
        new = list(observe([event], detecting.push, types))
        said += new
        if run.is_late(event.time, {each.push for each in new}):
            late.append(event)
        seen = seen_of(np.array([event.time]), np.array([event.received]))
        assert seen is not None
        run.step(new, {each.push: seen for each in new}, event.received)
    end = max((max(each.time, each.received) for each in test.events), default=0) + _FOREVER
    run.step((), {}, end if test.clock is None else test.clock)
    return Tried(found=tuple(situations(run.told)), observations=tuple(said), instances=run.instances, late=tuple(late))


class _Run:
    """Steps of detection, one after the other."""

    def __init__(self, detecting: Detecting, instances: Instances) -> None:
        self.detecting, self.instances = detecting, instances
        self.knowledge = Knowledge(detecting.ontology)
        self.progress, _ = Progress().adopted(detecting, None)
        self.states: States = {}
        self.told: list[Transition] = []

    def is_late(self, time: int, pushes: set[str]) -> bool:
        """Whether a policy that listens to one of these push sources has decided about that time already."""
        reached = [
            self.progress.policies[name].reached
            for name, watch in self.detecting.watches.items()
            if pushes & watch.patience.keys()
        ]
        return any(each is not None and time < each for each in reached)

    def step(self, said: Iterable[Observation], seen: Mapping[str, Seen], clock: int) -> None:
        done = step(
            self.detecting,
            self.progress,
            self.states,
            observed(said, self.detecting.enrichment),
            seen,
            clock,
            self.knowledge,
            self.instances,
        )
        self.progress, self.states = done.progress, done.states
        self.told += done.told


def try_by_definition(test: PolicyTest, detecting: Detecting, tables: Mapping[str, Table], types: Types) -> Tried:
    """Run a test by the reference: what is meant, whatever arrives when. Nothing is late."""
    instances = detecting.tables.of(tables)
    said = list(observe(test.events, detecting.push, types))
    told: list[Transition] = []
    for watch in detecting.watches.values():
        found = detect(watch.policy, detecting.ontology, said, instances, keep=kept(detecting.push), until=test.clock)
        end = test.clock if test.clock is not None else max((each.time for each in found), default=0) + _FOREVER
        told += lifecycle.step({}, found, end, watch.policy.hold)[1]
    return Tried(found=tuple(situations(told)), observations=tuple(said), instances=instances)
