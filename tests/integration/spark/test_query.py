"""Queries of Spark: one that failed goes on from its last batch; one that fails again and again, or says why, ends."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from situ.lang.problems import SituError
from situ.spark.fork_server import forking_python
from situ.spark.session import Query
from tests.zone import cut_off

_SLOW = "Python worker failed to connect back."


def _begin(spark: SparkSession, checkpoint: Path, batch: Callable[[DataFrame, int], None]) -> StreamingQuery:
    stream = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    return stream.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(batch).start()


def test_a_query_is_started_again_when_a_process_of_spark_was_slow(spark: SparkSession, tmp_path: Path) -> None:
    failing = [_SLOW, _SLOW]
    worked = threading.Event()

    def batch(frame: DataFrame, number: int) -> None:
        query.begin_batch(number)
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


def test_a_stop_in_a_batch_is_told_in_few_words(spark: SparkSession, tmp_path: Path) -> None:
    """Spark knows a stop by the text of what is raised, and takes a part of its stack for each letter of it."""
    begun, said = threading.Event(), list[str]()

    def batch(frame: DataFrame, number: int) -> None:
        begun.set()
        while not query._stopping.is_set():
            time.sleep(0.01)
        try:
            query.begin_batch(number)
        except Exception as error:
            said.append("".join(traceback.format_exception(error)))
            raise

    query = Query(lambda: _begin(spark, tmp_path, batch))
    query.start()
    assert begun.wait(60)
    query.stop()
    assert query.wait(0)
    assert query._query is not None
    assert query._query.exception() is None, "it was stopped, and has not failed"
    (text,) = said
    told = text[text.index("py4j.protocol.Py4JJavaError: An error occurred while calling") :]
    assert "java.lang.InterruptedException" in told
    assert len(told) < 200


def test_what_nobody_foresaw_is_told_once_and_the_batch_repeated(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Wherever it is raised: where the query begins, in a batch, behind all that a batch does."""
    failing = ["in a batch", "behind a batch", "behind a batch"]
    numbers: list[int] = []
    failures: list[int] = []

    def batch(frame: DataFrame, number: int) -> None:
        query.begin_batch(number)
        numbers.append(number)
        if failing and failing[0] == "in a batch":
            raise KeyError(failing.pop(0))
        query.end_batch()
        if failing and number > numbers[0]:
            raise KeyError(failing.pop(0))

    def begin() -> StreamingQuery:
        if not failures:
            raise KeyError("where it begins")
        return _begin(spark, tmp_path, batch)

    query = Query(begin, name="trial", on_failure=lambda: failures.append(1))
    query.start()
    while failing or len(set(numbers)) < 3:
        assert not query.wait(0.1)
    query.stop()
    assert len(failures) == 4
    assert [numbers.count(each) for each in sorted(set(numbers))[:2]] == [2, 3]
    told = [each.getMessage() for each in caplog.records if "goes on from its last batch" in each.getMessage()]
    assert ["KeyError: 'in a batch'" in each for each in told] == [False, True, False]
    assert all("Traceback (most recent call last)" in each and "Streaming Query" not in each for each in told)


@pytest.mark.parametrize("behind", [False, True], ids=["in a batch", "behind all that it does"])
def test_a_batch_that_fails_again_and_again_is_not_repeated_for_ever(
    spark: SparkSession, tmp_path: Path, behind: bool
) -> None:
    begun, failures = 0, 0

    def batch(frame: DataFrame, number: int) -> None:
        query.begin_batch(number)
        if behind:
            query.end_batch()
        raise RuntimeError("there is no such table")

    def begin() -> StreamingQuery:
        nonlocal begun
        begun += 1
        return _begin(spark, tmp_path, batch)

    def fail() -> None:
        nonlocal failures
        failures += 1

    query = Query(begin, on_failure=fail)
    query.start()
    with pytest.raises(SituError, match="RuntimeError: there is no such table") as failed:
        query.wait()
    assert [each.code.code for each in failed.value.problems] == ["N102"]
    assert begun == failures == 4


def test_a_query_that_says_why_it_cannot_go_on_ends(spark: SparkSession, tmp_path: Path) -> None:
    """To begin again at once would not help: what is damaged stays damaged, and a bus that is away is waited for."""
    begun = 0

    def batch(frame: DataFrame, number: int) -> None:
        query.begin_batch(number)
        raise cut_off("publish")

    def begin() -> StreamingQuery:
        nonlocal begun
        begun += 1
        return _begin(spark, tmp_path, batch)

    query = Query(begin)
    query.start()
    with pytest.raises(SituError, match="cut off before publish"):
        query.wait()
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


def test_a_query_that_is_stopped_at_the_beginning_of_a_batch_has_not_failed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What fails stands in the log of Spark with a traceback; and a batch that was given up is done again."""
    begun, asked, numbers = threading.Event(), threading.Event(), []
    queries: list[StreamingQuery] = []

    def batch(frame: DataFrame, number: int) -> None:
        begun.set()
        assert asked.wait(120), "nobody asked to stop"
        numbers.append(number)
        query.begin_batch(number)
        query.end_batch()

    def begin() -> StreamingQuery:
        queries.append(_begin(spark, tmp_path, batch))
        return queries[-1]

    query = Query(begin)
    query.start()
    assert begun.wait(120), "no batch began"
    stopping = threading.Thread(target=query.stop)
    stopping.start()
    while not query._stopping.is_set():
        assert stopping.is_alive()
    asked.set()
    stopping.join(120)
    assert not stopping.is_alive(), "it does not stop"
    assert queries[0].exception() is None
    again: list[int] = []
    next_one = Query(lambda: _begin(spark, tmp_path, lambda frame, number: again.append(number)))
    next_one.start()
    while not again:
        assert not next_one.wait(0.1)
    next_one.stop()
    assert again[0] == numbers[0], "what was given up was not taken for done"


def test_python_processes_of_spark_are_forks_of_one_that_has_loaded_pyspark(spark: SparkSession) -> None:
    def tell(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"found": [pyspark.__file__, " ".join(sys.orig_argv)]})

    assert spark.sparkContext.pythonExec == str(forking_python())
    places, started = (row.found for row in spark.range(0, 1, 1, 1).mapInArrow(tell, "found string").collect())
    assert places == pyspark.__file__, "and not from Spark's zip file"
    assert " -m situ.spark.fork_server serve " in started
