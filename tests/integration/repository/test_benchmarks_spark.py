"""Every benchmark that uses the Spark session runs: once, small, in the session of the tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from benchmarks.__main__ import SCENARIOS
from benchmarks.bench import Bench
from benchmarks.harness import Scenario, measure


@pytest.fixture(scope="module")
def bench(spark: SparkSession) -> Iterator[Bench]:
    with Bench(quick=True, spark=spark) as bench:
        yield bench


@pytest.mark.parametrize(
    "scenario", [each for each in SCENARIOS if each.spark and not each.needs], ids=lambda each: each.name
)
def test_a_scenario_runs_and_is_judged(scenario: Scenario, bench: Bench) -> None:
    result = measure(scenario, bench)
    assert result["variants"]
    assert all(variant["median"] > 0 for variant in result["variants"])  # type: ignore[attr-defined]
