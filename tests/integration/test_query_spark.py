"""Queries of Spark: one that failed because a process was slow goes on, one that failed for itself does not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from situ.errors import SituError
from situ.pipeline.query import Query

_SLOW = "Python worker failed to connect back."


def _begin(spark: SparkSession, checkpoint: Path, batch: Callable[[DataFrame, int], None]) -> StreamingQuery:
    stream = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    return stream.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(batch).start()


def test_a_query_is_started_again_when_a_process_of_spark_was_slow(spark: SparkSession, tmp_path: Path) -> None:
    failing = [_SLOW, _SLOW]
    worked = threading.Event()

    def batch(frame: DataFrame, number: int) -> None:
        query.begin_batch()
        if failing:
            raise RuntimeError(failing.pop())
        worked.set()
        query.end_batch()

    query = Query(lambda: _begin(spark, tmp_path, batch))
    query.start()
    while not worked.is_set():
        assert not query.wait(0.1)
    query.stop()
    assert query.wait(0), "and it ends when it is stopped"


@pytest.mark.parametrize(("reason", "starts"), [("there is no such table", 1), (_SLOW, 20)])
def test_a_query_that_fails_for_itself_or_always_fails(
    spark: SparkSession, tmp_path: Path, reason: str, starts: int
) -> None:
    begun = 0

    def batch(frame: DataFrame, number: int) -> None:
        raise RuntimeError(reason)

    def begin() -> StreamingQuery:
        nonlocal begun
        begun += 1
        return _begin(spark, tmp_path, batch)

    query = Query(begin)
    query.start()
    with pytest.raises(SituError) as failed:
        query.wait()
    assert [each.code.code for each in failed.value.problems] == ["N102"]
    assert begun == starts
