"""Tests of policies on Spark: what they find there is what they find at the edge, also of events that come too late."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from situ.cli.project import open_project
from situ.model import Deployment
from situ.policies.policy_tests import GivenEvent, PolicyTest
from situ.project.check import check_folder
from situ.project.policy_tests import detection_of, find_tests, run_tests
from situ.sources.table import make_table
from situ.spark.policy_tests import run_policy_tests_on_spark
from situ.stages.detect.policy_tests import run_policy_test, tables_of
from tests.guarded import FILES
from tests.project_files import write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = Path(__file__).parents[3] / "examples" / "dangerous-goods"
SECOND = 1_000_000
INSIDE = "policy inside\nwindow 2 s\nconcepts\n  person A\n  room R\nconditions\n  A is inside R\nactions\n  log that\n"
ROWS = {
    "persons": {"nr": ["g1", "g2", "e1"], "role": ["guest", "guest", "employee"]},
    "rooms": {
        "id": ["lab", "hall"],
        "security": ["restricted", "open"],
        "area": [{"x1": 0.0, "y1": 0.0, "x2": 10.0, "y2": 10.0}, {"x1": 10.0, "y1": 0.0, "x2": 20.0, "y2": 10.0}],
    },
}


def walked(deployment: Deployment, seed: int) -> PolicyTest:
    """Persons who walk about, told of in disorder: some of it too late."""
    dice = random.Random(seed)

    def events() -> Iterator[GivenEvent]:
        for number in range(dice.randrange(1, 25)):
            time = dice.randrange(20) * SECOND + dice.choice((0, 0, 1))
            at = {"x": dice.uniform(-2.0, 22.0), "y": dice.uniform(-1.0, 11.0)}
            received = time + dice.choice((0, 0, 500_000, 3 * SECOND, 9 * SECOND))
            data = {"who": dice.choice(("g1", "g2", "e1", "nobody")), "at": at}
            yield GivenEvent(type="Sighting", id=f"e{number}", source="x", time=time, received=received, data=data)

    found = tuple(sorted(events(), key=lambda each: each.received))
    clock = dice.choice((None, max(each.received for each in found) + dice.randrange(12) * SECOND))
    pull = {name: make_table(deployment.sources[name], columns) for name, columns in ROWS.items()}
    policies = tuple(deployment.policies)[: dice.choice((1, 2, 2))]
    return PolicyTest(name=f"{seed}", policies=policies, events=found, pull=pull, clock=clock)


def test_spark_and_edge_come_to_the_same(spark: SparkSession, tmp_path: Path) -> None:
    checked = check_folder(write(tmp_path, {**FILES, "policies/inside.dpl": INSIDE}))
    deployment = checked.deployment
    assert deployment is not None, checked.problems
    tests = [walked(deployment, seed) for seed in range(30)]
    expected = []
    for test in tests:
        detecting = detection_of(deployment, test.policies)
        expected.append(
            run_policy_test(test, detecting, tables_of(test, detecting, deployment.sources), deployment.types)
        )
    assert sum(bool(each.late) for each in expected) > 10
    assert sum(any(found.policy == "unaccompanied-guest" for found in each.found) for each in expected) > 10
    assert sum(any(found.closed is None for found in each.found) for each in expected) > 2
    found = run_policy_tests_on_spark(spark, deployment, tests)
    assert [(each.found, each.late) for each in found] == [(each.found, each.late) for each in expected]
    assert run_policy_tests_on_spark(spark, deployment, []) == []


def test_the_tests_of_the_example_come_to_the_same(spark: SparkSession) -> None:
    opened = open_project(EXAMPLE)
    tested = run_tests(opened, find_tests(opened, ()))
    tests = [each.test for each in tested if each.test is not None]
    assert len(tests) == 6
    found = [(each.found, each.late) for each in run_policy_tests_on_spark(spark, opened.deployment, tests)]
    assert found == [(each.tried.found, each.tried.late) for each in tested if each.tried is not None]
