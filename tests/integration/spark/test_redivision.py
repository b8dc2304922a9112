"""What policies remember is divided anew on a real bus and a real Spark, while events flow and batches are cut off."""

from __future__ import annotations

import random
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from situ.event.instants import print_instant
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.policies import lifecycle
from situ.policies.lifecycle import SituationTransition
from situ.policies.model import Cause, Observation
from situ.policies.reference import detect
from situ.settings.model import Executors
from situ.spark.detect_query import DetectBatchReport, SparkDetection
from situ.spark.elastic.executors import ExecutorPool
from situ.spark.engine import SparkEngine
from situ.storage.state_folder import open_folder
from tests.integration.spark.test_detection import guarded, running, told, wait_for, walked
from tests.zone import Zone, cut_off, event, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = 1_790_000_000_000_000
STATUS = {who: {"id": who, "status": "guest" if who[0] == "g" else "employee"} for who in ("g1", "g2", "e1", "e2")}
LAB = {"id": "lab", "security": "restricted", "area": {"x1": 0.0, "y1": 0.0, "x2": 10.0, "y2": 10.0}}


Step = tuple[int, str, float, float]
LONG = {**guarded(), "situ": "defaults: {lateness: 100 ms, idle: 1 h}\n"}
"""A source that is waited for: what comes after a pause, while an engine begins again, is not late."""


class Walk:
    """Persons who walk about, sent in portions."""

    def __init__(self, at: Zone, seed: int) -> None:
        self._at = at
        self._steps = walked(seed, 30_000)
        self._sent: list[Step] = []

    def go_on(self) -> None:
        self._send(list(islice(self._steps, 150)))

    def end(self) -> None:
        """Somebody is seen a while after all that: what went before is decided then."""
        self._send([(self._sent[-1][0] + 600_000_000, "e1", 45.0, 15.0)])

    def _send(self, some: list[Step]) -> None:
        events = [
            event(f"e{n}", "Sighting", {"who": who, "at": {"x": x, "y": y}}, time=print_instant(START + after))
            for n, (after, who, x, y) in enumerate(some, len(self._sent))
        ]
        self._at.send("reader", events)
        self._sent += some

    def means(self) -> list[SituationTransition]:
        """What becomes of situations by the definition of the policy."""
        observations = [
            Observation(
                push="seen",
                concept="person",
                identity=who,
                attribute="position",
                value={"x": x, "y": y},
                time=START + after,
                cause=Cause("reader/x", f"e{n}"),
            )
            for n, (after, who, x, y) in enumerate(self._sent)
        ]
        (policy,) = self._at.deployment.policies.values()
        instances = {"person": STATUS, "room": {"lab": LAB}}
        found = detect(policy, self._at.deployment.ontology, observations, instances)
        return list(lifecycle.step({}, found, 1 << 60, policy.hold)[1])


def want(at: Zone, buckets: int) -> None:
    settings = at.deployment.settings
    at.publish(replace(at.deployment, settings=replace(settings, spark=replace(settings.spark, buckets=buckets))))


class Cut:
    """Ends the batch that divides what is remembered anew where a step begins; none, if no step is named."""

    def __init__(self, step: str) -> None:
        self._step, self._divides = step, False
        self.batches: list[DetectBatchReport] = []

    def reach(self, step: str) -> None:
        self._divides = self._divides or step == "divide"
        if self._divides and step == self._step:
            raise cut_off(step)


def change(engine: SparkEngine, walk: Walk, buckets: int, cut: Cut) -> None:
    walk.go_on()
    wait_for(lambda: any(each.buckets == buckets for each in cut.batches), engine)
    walk.go_on()


def check(spark: SparkSession, folder: Path, seed: int, changes: list[tuple[int, str]]) -> None:
    """Change to each number of buckets, and cut the batch that does it off where a step begins, if one is named."""
    with zone(folder, **LONG) as at:
        walk = Walk(at, seed)
        walk.go_on()
        for buckets, step in changes:
            cut = Cut(step)
            with running(spark, at, folder, on_detect=cut.batches.append, on_detect_step=cut.reach) as engine:
                want(at, buckets)
                if step:
                    with pytest.raises(SituError, match="N102"):
                        send_until_it_ends(walk, engine)
                    without_spark(at, folder)
                else:
                    change(engine, walk, buckets, cut)
        walk.end()
        expected = {each.id for each in walk.means()}
        kept = folder / "checkpoints" / "detect" / "states"
        with running(spark, at, folder) as engine:
            wait_for(lambda: len(told(at)) >= len(expected), engine, seconds=120)
            names = [str(each) for each in range(changes[-1][0])]
            wait_for(lambda: sorted(each.name for each in kept.iterdir()) == names, engine)
        assert len(expected) > 10
        assert {row.id for row in at.root() if row.type.startswith("situ.situation")} == expected
        assert len(told(at)) == len(expected), "each once"


def without_spark(at: Zone, folder: Path) -> None:
    """Another engine that takes over now finishes the batch; Spark, which goes on, repeats it and comes to the same."""
    checkpoints = open_folder(folder / "checkpoints")
    settings, project = at.deployment.settings, folder / "project"
    detection = SparkDetection(
        None, at.address, settings, checkpoints, events=checkpoints / "events", folder=project, partitions=2
    )
    left = detection.finish()
    assert left is not None
    assert left.states.keys() == at.deployment.policies.keys()


def send_until_it_ends(walk: Walk, engine: SparkEngine) -> None:
    for _ in range(60):
        walk.go_on()
        assert not engine.wait(2)


def test_buckets_become_more_and_fewer_while_events_flow(spark: SparkSession, tmp_path: Path) -> None:
    check(spark, tmp_path, 7, [(8, "divided"), (8, ""), (2, "progress"), (2, "")])


def test_where_there_are_no_executors_to_ask_for_it_is_said_once_and_the_run_goes_on(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    pool = ExecutorPool(spark.sparkContext)
    limits, trigger = Executors(min=2, max=3), timedelta(milliseconds=200)
    assert pool.resize(limits, trigger) is None, "on one machine it is not our matter"
    pool.is_remote = True  # a master that is no cluster, although its name does not say so
    with caplog.at_level("WARNING", logger="situ.spark"):
        assert [pool.resize(limits, trigger) for _ in range(3)] == [2, 2, 2]
    assert [record.getMessage().split()[0] for record in caplog.records] == ["N180"]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(900, 920))
def test_any_changes_with_any_cut_tell_each_situation_once(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    changes, before = list[tuple[int, str]](), 2
    for _ in range(4):
        buckets = dice.choice([each for each in (1, 2, 3, 5, 8) if each != before])
        cuts = [each for each in ("divide", "divided", "publish", "progress", "done") if dice.random() < 0.4]
        changes += [(buckets, cut) for cut in cuts[:1]]
        changes.append((buckets, ""))
        before = buckets
    check(spark, tmp_path, seed, changes)
