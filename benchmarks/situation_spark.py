"""The security policy on Spark: Situ against the same written by hand, over the same files, to the same answers."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.bench import Bench
from benchmarks.harness import Scenario, Taken, Variant, Verdict
from benchmarks.situation_by_hand import grouped, joined, joined_with_care
from benchmarks.situation_on_files import Answer, OnFiles
from benchmarks.situation_recorded import Files, record, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SITU, JOINS, CARE, GROUPS = "Situ", "joins of streams", "joins of streams, with care", "function over groups"
PARTS = 2
"""Files in a batch: tasks that read it."""
Written = Callable[["SparkSession", "DataFrame", Path], "DataFrame"]


def events(session: SparkSession, files: Files) -> DataFrame:
    """The recorded events as a stream, so many files a batch."""
    form = "id string, person string, x double, y double, time timestamp"
    return session.readStream.schema(form).option("maxFilesPerTrigger", PARTS).parquet(str(files.parquet))


def by_hand(bench: Bench, files: Files, way: Written, skipped: int) -> Taken:
    found: list[Answer] = []

    def batch(frame: DataFrame, number: int) -> None:
        found.extend((row["id"], row["room"]) for row in frame.collect())

    frame = way(bench.spark, events(bench.spark, files), files.folder)
    return _taken(bench, files, frame.writeStream.outputMode("append").foreachBatch(batch), found, skipped)


def by_situ(bench: Bench, files: Files, skipped: int) -> Taken:
    on_files = OnFiles(files.folder, bench.folder("states"))
    stream = events(bench.spark, files).writeStream.foreachBatch(on_files.batch)
    return _taken(bench, files, stream, on_files.answers, skipped)


def _taken(bench: Bench, files: Files, stream: Any, found: list[Answer], skipped: int) -> Taken:
    """Run it to the end of the files, and hold its answers against what is expected."""
    query = stream.option("checkpointLocation", str(bench.folder("checkpoint"))).trigger(availableNow=True).start()
    query.awaitTermination()
    assert len(found) == len(set(found)), "a detection was reported twice"
    assert set(found) == files.recording.answers, (
        f"{len(set(found) - files.recording.answers)} invented, {len(files.recording.answers - set(found))} missed"
    )
    full = PARTS * files.size
    lasted = [each["durationMs"]["triggerExecution"] for each in query.recentProgress if each["numInputRows"] >= full]
    millis = statistics.median(lasted[skipped:])
    return Taken(value=full / millis * 1000, figures={"ms a batch": millis})


def _recorded(bench: Bench, people: int, batches: int) -> Files:
    """Each batch is about five seconds."""
    return write(record(batches * 5 * people, people), bench.folder("recorded"), batches * PARTS)


def _variants(bench: Bench, people: int, batches: int, skipped: int, ways: dict[str, Written]) -> list[Variant]:
    people, batches, skipped = bench.some(people, 100), bench.some(batches, 2), bench.some(skipped, 1)
    files = _recorded(bench, people, batches)
    variants = [Variant(name=SITU, work=partial(by_situ, bench, files, skipped))]
    for name, way in list(ways.items())[:1] if bench.quick else ways.items():
        variants.append(Variant(name=name, work=partial(by_hand, bench, files, way, skipped)))
    return variants


def _judge(goals: dict[str, float | None], medians: dict[str, float]) -> list[Verdict]:
    found = []
    for name, goal in goals.items():
        if name not in medians:
            continue
        ratio = medians[SITU] / medians[name]
        met = None if goal is None else ratio >= goal
        found.append(Verdict(what=f"Situ over {name}", value=ratio, goal=f"≥ {goal:g}×" if goal else "", met=met))
    return found


_FAIR = (
    "Everybody reads the same files, has the same tables, gives detections to the driver, and keeps what it remembers "
    "where Spark has its checkpoint; all answers are held against those expected, and are the same. Situ runs what it "
    "runs behind its log: enrichment, the kernel by bucket, states in files."
)
SCENARIOS = [
    Scenario(
        name="situation-spark",
        title="The security policy on Spark, and a function written for it by hand",
        unit="events/s",
        about=(
            "Recorded positions of 20,000 people, each seen once a second, in files of Parquet: 100,000 events a "
            f"batch, a window of 5 s, windows full. {_FAIR} The function over groups is `applyInPandasWithState` in "
            "numpy, for this policy only: guests divided among two groups, employees in both."
        ),
        variants=partial(_variants, people=20_000, batches=12, skipped=6, ways={GROUPS: grouped}),
        judge=partial(_judge, {GROUPS: 0.8}),
        repetitions=5,
        spark=True,
    ),
    Scenario(
        name="situation-spark-joins",
        title="The security policy on Spark, and as joins of streams",
        unit="events/s",
        about=(
            "The same with 1,000 people and 5,000 events a batch, for joins of streams take their time: a batch costs "
            f"Situ little more than what Spark needs for any. {_FAIR} The joins are Spark's own: guests near employees "
            "in a grid of 5 m, those joined to employees in the room, and an outer join of guests in restricted rooms "
            "to these; with care, duplicates are dropped between joins, and a semi-join stands in for one."
        ),
        variants=partial(_variants, people=1_000, batches=9, skipped=5, ways={CARE: joined_with_care, JOINS: joined}),
        judge=partial(_judge, {JOINS: 10.0, CARE: None}),
        repetitions=3,
        warm=False,
        spark=True,
    ),
]
