"""Chains of policies on Spark: what they publish goes through another query, and is in time for those who read it."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from situ.event.instants import print_instant
from situ.spark.detect_query import DetectBatchReport
from tests.integration.spark.test_detection import running, wait_for
from tests.policy_chains import CONDITIONS, END, LAST, SECOND, Said, expected, generate, told_of
from tests.zone import Zone, event, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def say(at: Zone, events: list[Said]) -> None:
    said = [event(e.id, e.type, dict(e.data), source=e.source, time=print_instant(e.time)) for e in events]
    at.send("meter", said)


class SlowQueries:
    """Now and then what policies publish stands in the ingress stream behind later messages, and stays there while
    detection goes on: as on a machine where a batch takes seconds."""

    def __init__(self, at: Zone, left: list[Said], times: int) -> None:
        self._at, self._left, self._times = at, left, times
        self._one_at_a_time = threading.Lock()
        self._planned = threading.Event()
        self._planned.set()

    def say(self, count: int) -> None:
        with self._one_at_a_time:
            say(self._at, self._left[:count])
            del self._left[:count]

    def detect(self, step: str) -> None:
        if step == "offset":
            self._planned.set()
        if step == "publish" and self._times and self._left:
            self._times -= 1
            self._planned.clear()
            time.sleep(1.1)
            self.say(2)

    def events(self, step: str) -> None:
        if step == "offset":
            self._planned.wait(3)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak), pytest.param(3, marks=pytest.mark.soak)])
def test_nothing_of_a_chain_is_late_or_lost_or_told_twice_on_spark(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chain, dice = generate(seed, idle="1 h"), random.Random(seed)
    more = {name: text for name, text in chain.files.items() if name not in ("types/all.yaml", "situ.yaml")}
    situ = next(line for line in chain.files["situ.yaml"].splitlines() if line.startswith("defaults")) + "\n"
    meant = expected(chain.deployment(tmp_path / "reference"), (*chain.events, *LAST))
    assert {policy for policy, *_ in meant} == set(CONDITIONS), "a chain that tells nothing shows nothing"
    reached = dict.fromkeys(CONDITIONS, 0)

    def noticed(batch: DetectBatchReport) -> None:
        reached.update({name: kept.reached or 0 for name, kept in batch.progress.policies.items()})

    with zone(tmp_path, types=chain.files["types/all.yaml"], situ=situ, more=more) as at:
        left = [*chain.events, *LAST]
        half = dice.randrange(10, 30)
        first, left = left[:half], left[half:]
        slow = SlowQueries(at, left, times=15)
        say(at, first[:5])
        with running(spark, at, tmp_path, on_detect=noticed) as engine:
            say(at, first[5:])
            wait_for(lambda: reached["first"] > first[0].time - 3 * SECOND, engine)
        hooks = {"on_step": slow.events, "on_detect_step": slow.detect}
        with running(spark, at, tmp_path, on_detect=noticed, **hooks) as engine:
            while left:
                slow.say(dice.randrange(1, 12))
                time.sleep(0.5)
            wait_for(lambda: all(each >= END - 3 * SECOND for each in reached.values()), engine)
            wait_for(lambda: sum(row.client in CONDITIONS for row in at.root()) >= len(meant), engine)
        assert sorted(told_of(row.client, row) for row in at.root() if row.client in CONDITIONS) == meant
        assert at.messages(at.names.late_stream) == []
