"""What policies publish is never late for those who read it: chains of three against the reference.

The log is a list here, and an engine a loop: batches are cut anywhere, what policies publish comes back when it likes,
and now and then all that is remembered goes through its stored form. As at the edge a step decides with what it
brings, as on Spark with what those before it brought.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from situ.event.row import Row
from situ.model.deployment import Deployment
from situ.policies.enrichment.instances import InstanceColumns
from situ.stages.detect.detection_plan import NOTHING_HIDDEN, DetectionPlan
from situ.stages.detect.progress import DetectionProgress, last_of
from situ.stages.detect.situation_events import PolicyMessage, situation_messages
from situ.stages.detect.step import States, decide, work, work_rows
from tests.policy_chains import INSTANCES, SECOND, START, Chain, Told, expected, generate, published_in, row_of, told_of
from tests.volume import seeds


class Loop:
    """An engine as a loop over a log."""

    def __init__(self, deployment: Deployment, dice: random.Random, *, ahead: bool) -> None:
        self.detecting = DetectionPlan.of(deployment)
        self._knowledge = InstanceColumns(self.detecting.ontology)
        self._dice, self._ahead = dice, ahead
        self.progress, _ = DetectionProgress().adopted(self.detecting, None, START)
        self.states: States = {}
        self.told: list[Told] = []
        self.late: list[str] = []
        self.on_their_way: list[tuple[PolicyMessage, int]] = []
        """What policies published, and when."""
        self._seqs = 0
        self._clock = START

    def step(self, rows: list[Row], clock: int) -> None:
        if not self._ahead:
            # The clock of batches does not go beyond what they do not have yet.
            waiting = [*(row.recv for row in rows), *(at for _, at in self.on_their_way)]
            clock = max(self._clock + 1, min([clock, *waiting]))
        self._clock = clock
        given = (self.detecting, self.progress, self.states)
        if self._ahead:
            worked = work_rows(self.detecting, None, *given[1:], rows, clock, self._knowledge, INSTANCES)
        else:
            read = self.detecting.observing.rows(rows)
            worked = work(*given, read.observed, {}, clock, self._knowledge, INSTANCES, NOTHING_HIDDEN)
        found = decide(self.detecting, worked, worked.found)
        self.progress, self.states = found.progress, found.states
        if not self._ahead:
            self.progress = self.progress.heard(read.seen, arrived=last_of(rows, self.progress.marks))
        self.late += [
            f"{row.client} {row.id} for {', '.join(found.late[row.pos])}" for row in rows if row.pos in found.late
        ]
        self.progress, published = situation_messages(found.told, self.detecting, None, self.progress, {}, INSTANCES)
        self.on_their_way += [(message, clock) for message in published]
        for message in published:
            self.told += [told_of(message.policy, each) for each in published_in(message.body)]

    def came(self) -> list[Row]:
        """What of all that policies published has come by now."""
        if not self.on_their_way or self._dice.random() < 0.4:
            return []
        some = self._dice.randrange(1, len(self.on_their_way) + 1)
        taken, self.on_their_way = self.on_their_way[:some], self.on_their_way[some:]
        return [
            self.row(each, message.policy, message.first + place, at, message.incarnation)
            for message, at in taken
            for place, each in enumerate(published_in(message.body))
        ]

    def row(self, event: object, client: str, seq: int, clock: int, incarnation: int = 1) -> Row:
        self._seqs += 1
        return row_of(event, client, seq, clock, self._seqs * 65536, incarnation)  # type: ignore[arg-type]

    def restart(self) -> None:
        self.progress = DetectionProgress.from_json(json.loads(json.dumps(self.progress.as_json())))
        kernels = {name: self.detecting.kernel(name) for name in self.states}
        loaded = {name: kernels[name].load(kernels[name].save(state)) for name, state in self.states.items()}
        self.states = {name: state for name, state in loaded.items() if state is not None}


def worked(chain: Chain, deployment: Deployment, dice: random.Random, *, ahead: bool) -> Loop:
    loop = Loop(deployment, dice, ahead=ahead)
    left = list(chain.events)
    clock = START
    while left:
        taken, left = left[: (some := dice.randrange(0, 6))], left[some:]
        clock = max([clock, *(each.received for each in taken)])
        rows = [loop.row(each, "meter", int(each.id[1:]) + 1, each.received) for each in taken]
        loop.step([*rows, *loop.came()], clock)
        if dice.random() < 0.2:
            loop.restart()
    for hour in range(1, 4):
        clock += 3600 * SECOND
        # A step for each of three policies, and those in which what they publish is on its way.
        for _ in range(8):
            loop.step(loop.came(), clock)
        while loop.on_their_way:
            loop.step(loop.came(), clock)
            clock += hour
    return loop


def check(seeds: range, folder: Path) -> None:
    found = 0
    for seed in seeds:
        chain = generate(seed)
        deployment = chain.deployment(folder / str(seed))
        meant = expected(deployment, chain.events)
        found += sum(policy != "first" for policy, *_ in meant)
        for ahead in (True, False):
            loop = worked(chain, deployment, random.Random(seed), ahead=ahead)
            assert loop.late == [], (seed, ahead)
            assert sorted(loop.told) == meant, (seed, ahead)
            assert not loop.progress.marks
    assert found > 10 * len(seeds), "too little came of it to show anything"


@seeds(range(6), range(2_000))
def test_nothing_that_policies_publish_is_late_for_others(tmp_path: Path, seeds: range) -> None:
    check(seeds, tmp_path)
