"""DataFrames of events for tests: many cases in one query, as a batch or as a stream."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from situ.contexts.model import ROOT, Context, Direction
from situ.contexts.table import Contexts
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.transformation import Transformation
from situ.lang.expr.runtime import FAILURES
from situ.lang.types.arrow_schema import arrow_type
from situ.model import Deployment
from situ.settings import Settings
from situ.spark.dataframes.frame import EventFrame
from situ.spark.dataframes.worker import ENVELOPE
from tests.integration.spark.test_expressions import FAILED, stored, without_nulls
from tests.transformations import laid_out

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from situ.spark import Project

A_QUERY = 8
TIME = dt.datetime(2026, 11, 1, 8, 30, tzinfo=dt.UTC)


def envelope(type: str, context: str, **about: Any) -> dict[str, Any]:
    """The column ``event`` of one row."""
    known = {"id": "17", "source": "gate/4", "client": "gate", "time": TIME, "extensions": []}
    return {**known, "type": type, "context": context, **about}


def project_of(spark: SparkSession, context: Context) -> Project:
    """A project that has this context, and those above it."""
    from situ.spark import Project

    settings = Settings(name="generated")
    return Project.of(spark, Deployment(settings=settings, types=context.root.types, contexts=Contexts(context.chain)))


@dataclass(frozen=True, slots=True)
class Converted:
    """Events that are converted, and what an engine makes of each."""

    name: str
    project: Project
    way: Transformation
    context: str
    events: Sequence[dict[str, Any]]

    @property
    def kind(self) -> EventFrame:
        into = self.way.direction is Direction.IN
        return EventFrame(type=self.way.source.name, context=self.context if into else ROOT)

    @property
    def to(self) -> str:
        return ROOT if self.way.direction is Direction.IN else self.context

    def expected(self) -> Iterator[Any]:
        converter = Converter(self.way)
        read = {"id": "17", "source": "gate/4", "type": self.way.source.name, "time": TIME, "confidence": None}
        for data in self.events:
            try:
                made = converter.data(read, data)
                yield without_nulls(stored(laid_out(made, self.way.target, self.way.targets)))
            except FAILURES:
                yield FAILED

    def columns(self) -> dict[str, pa.Array]:
        data = [stored(laid_out(each, self.way.source, self.way.types)) for each in self.events]
        about = envelope(self.kind.type, self.kind.context)
        return {
            f"{self.name}_event": pa.array([about] * len(data), ENVELOPE),
            f"{self.name}_data": pa.array(data, arrow_type(self.way.source, self.way.types)),
        }

    def interpreted(self, frame: DataFrame) -> DataFrame:
        """The DataFrame with a column of this case's name: the data in other terms, and whether it failed."""
        from situ.spark.dataframes.frame import FAILURES as FIELDS
        from situ.spark.dataframes.frame import struct_type

        given = frame.selectExpr(
            "*",
            f"{self.name}_event AS event",
            f"{self.name}_data AS data",
            f"CAST(NULL AS {struct_type(FIELDS)}) AS failure",
        ).drop(f"{self.name}_event", f"{self.name}_data")
        made = self.project.interpret(self.kind.put_on(given), self.to)
        packed = f"named_struct('data', data, 'failed', failure IS NOT NULL) AS {self.name}"
        return made.selectExpr("*", packed).drop("event", "data", "failure")


def judge(spark: SparkSession, cases: Sequence[Converted], folder: Path | None = None) -> int:
    """Hold what DataFrames give against what engines do; with a folder as streams. Also how many events that were."""
    judged = 0
    for start in range(0, len(cases), A_QUERY):
        some = cases[start : start + A_QUERY]
        count = max(len(each.events) for each in some)
        columns: dict[str, pa.Array] = {"n": pa.array(range(count))}
        for each in some:
            assert len(each.events) == count
            columns |= each.columns()
        frame = spark.createDataFrame(pa.table(columns)).coalesce(1)
        records = _stream(frame, some, folder / str(start)) if folder is not None else _collected(_chain(frame, some))
        for record in records:
            for each in some:
                answer = record[each.name]
                result = FAILED if answer["failed"] else without_nulls(answer["data"])
                wanted = list(each.expected())[record["n"]]
                assert _same(result, wanted), (each.name, each.events[record["n"]], result, wanted)
                judged += 1
    return judged


def _same(a: Any, b: Any) -> bool:
    return (type(a) is type(b) and a == b) or repr(a) == repr(b)


def _collected(frame: DataFrame) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = frame.toArrow().to_pylist()
    return found


def _stream(frame: DataFrame, cases: Sequence[Converted], folder: Path) -> list[Mapping[str, Any]]:
    frame.write.parquet(str(folder / "given"))
    given = frame.sparkSession.readStream.schema(frame.schema).parquet(str(folder / "given"))
    return streamed(_chain(given, cases), folder)


def _chain(frame: DataFrame, cases: Sequence[Converted]) -> DataFrame:
    for each in cases:
        frame = each.interpreted(frame)
    return frame


def streamed(frame: DataFrame, folder: Path) -> list[Mapping[str, Any]]:
    """What a streaming query writes of everything that is there by now."""
    write = frame.writeStream.format("parquet").option("path", str(folder / "found"))
    query = write.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(600)
    assert query.exception() is None
    return _collected(frame.sparkSession.read.schema(frame.schema).parquet(str(folder / "found")))
