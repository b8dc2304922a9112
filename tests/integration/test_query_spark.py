"""Queries of Spark: one that failed because a process was slow goes on, one that failed for itself does not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
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


def test_a_query_that_fails_for_itself_fails(spark: SparkSession, tmp_path: Path) -> None:
    begun = 0

    def batch(frame: DataFrame, number: int) -> None:
        raise RuntimeError("there is no such table")

    def begin() -> StreamingQuery:
        nonlocal begun
        begun += 1
        return _begin(spark, tmp_path, batch)

    query = Query(begin)
    query.start()
    with pytest.raises(SituError) as failed:
        query.wait()
    assert [each.code.code for each in failed.value.problems] == ["N102"]
    assert begun == 1


def test_processes_that_never_start_are_given_up_after_a_while_and_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun = 0

    def begin() -> StreamingQuery:
        nonlocal begun
        begun += 1
        raise PySparkException(_SLOW)

    query = Query(begin, patience=0.2, pause=0.01)
    with pytest.raises(SituError) as failed:
        query.start()
    assert "no Python process of Spark started" in failed.value.problems[0].message
    assert begun > 2
    assert [each.getMessage() for each in caplog.records if "took more than ten seconds" in each.getMessage()] == [
        caplog.records[0].getMessage()
    ]


def test_whoever_waits_for_slow_processes_can_be_stopped() -> None:
    tried = threading.Event()

    def begin() -> StreamingQuery:
        tried.set()
        raise PySparkException(_SLOW)

    query = Query(begin)
    starting = threading.Thread(target=query.start)
    starting.start()
    assert tried.wait(60)
    query.stop()
    starting.join(60)
    assert not starting.is_alive()
