"""The worked examples as Spark SQL, in two queries: what the generated functions give, which is what is expected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integration.spark.test_transformations import EVENTS, FAILED, judge, judged
from tests.unit.contexts.test_resolve_rules import ROWS
from tests.worked_examples import competing, logistics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_gives_what_is_expected(spark: SparkSession) -> None:
    examples = [*logistics(), *map(competing, ROWS)]
    found = [judged(each.name, each.made, [each.data] * EVENTS) for each in examples]
    assert not any(result == FAILED for each in found for result in each.expected)
    assert judge(spark, found) == 10 + 26
