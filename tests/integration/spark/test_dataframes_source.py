"""The data source of a run: what a DataFrame publishes is what subscriptions get, as DataFrames again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from situ.bus.sync_bus import close_shared
from situ.lang.problems import SituError
from situ.testing import Zone
from tests.dataframes import streamed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXAMPLE = Path(__file__).parents[3] / "examples" / "smart-building"


@pytest.fixture(scope="module")
def run() -> Iterator[Path]:
    """The example at work on a bus of its own; gives its folder."""
    with Zone(EXAMPLE, bus="nats") as zone:
        yield zone.folder
        close_shared()


def face(number: int, **about: Any) -> str:
    data = {"camera": "camera-1", "face": "face-c86da", "polar": {"r": 5.0 + number / 2, "theta": 5.0 - 5 * number}}
    known = {"specversion": "1.0", "id": f"f{number}", "source": "camera-1", "type": "FaceSeen", "data": data}
    return json.dumps({**known, **about}, indent=2 if number % 2 else None)


def read(spark: SparkSession, folder: Path, subscription: str, **options: str) -> DataFrame:
    reader = spark.read.format("situ").option("project", str(folder)).option("subscription", subscription)
    return reader.options(**options).load()


def test_what_is_written_is_what_subscriptions_read(spark: SparkSession, run: Path, tmp_path: Path) -> None:
    from situ.spark import Project

    plant = Project(spark, run)
    texts = [(face(number),) for number in range(20)] + [("no\nevent",), (None,)]
    (tmp_path / "given").mkdir()
    spark.createDataFrame(texts, "value string").repartition(3).write.json(str(tmp_path / "given" / "all"))
    stream = spark.readStream.schema("value string").json(str(tmp_path / "given" / "*"))
    query = (
        stream.writeStream.format("situ")
        .option("project", str(run))
        .option("client", "camera-1")
        .option("checkpointLocation", str(tmp_path / "written"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(600)
    assert query.exception() is None
    # The engine takes what is stored a moment later; rows are asked for until they are all there.
    for _ in range(600):
        if read(spark, run, "control-room/all").count() == 20:
            break
    found = plant.decode(read(spark, run, "control-room/all"), "Sighting", received="received")
    rows = found.where("failure IS NULL").collect()
    assert sorted(row["event"]["id"] for row in rows) == sorted(f"f{number}" for number in range(20))
    assert {row["event"]["client"] for row in rows} == {"camera-1"}
    assert {row["data"]["who"] for row in rows} == {"p01"}
    # A subscription in the terms of a context gets its own type; one that may not see them gets nothing.
    feet = plant.decode(read(spark, run, "us-desk/lobby"), "PersonLocated", context="us")
    expected = plant.interpret(found.where(plant.matches("us-desk/lobby")), to="us")
    assert {row["event"]["id"]: row["data"] for row in feet.collect()} == {
        row["event"]["id"]: row["data"] for row in expected.collect()
    }
    assert 0 < feet.count() < 20
    assert read(spark, run, "aurora/all").count() == 0
    # As a stream from the beginning, in batches of a few messages, it is the same.
    reader = spark.readStream.format("situ").option("project", str(run)).option("subscription", "control-room/all")
    given = reader.option("start", "earliest").option("maxMessages", "1").load()
    assert {row["key"] for row in streamed(given, tmp_path / "read")} == {
        row["key"] for row in read(spark, run, "control-room/all").collect()
    }
    assert read(spark, run, "control-room/all", start="latest").count() == 0


def test_a_dataframe_of_events_is_published(spark: SparkSession, run: Path) -> None:
    from situ.spark import Project

    plant = Project(spark, run)
    table = spark.sql(
        "SELECT 'D7' AS door, 'lab' AS room, current_timestamp() AS time, 'doors/D7' AS source, 'x1' AS id"
    )
    used = plant.decode(table, "DoorUsed")
    plant.encode(used).write.format("situ").option("project", str(run)).option("client", "doors").mode("append").save()
    for _ in range(600):
        if read(spark, run, "security/restricted").count():
            break
    (row,) = plant.decode(read(spark, run, "security/restricted"), "DoorUsed").collect()
    assert (row["event"]["id"], row["data"]["door"], row["data"]["room"]) == ("x1", "D7", "lab")


def test_what_the_source_lacks_is_said(spark: SparkSession, run: Path, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    from situ.spark import Project

    Project(spark, run)
    texts = spark.createDataFrame([("x",)], "value string")
    numbers = spark.range(1)

    def write(frame: DataFrame, mode: str = "append", **options: str) -> None:
        frame.write.format("situ").options(**options).mode(mode).save()

    place = str(run)
    for ask, said in [
        (lambda: read(spark, run, "control-room/al").count(), "N154"),
        (lambda: spark.read.format("situ").option("project", place).load().count(), "N158"),
        (lambda: read(spark, run, "control-room/all", start="yesterday").count(), "N158"),
        (lambda: read(spark, run, "control-room/all", partitions="many").count(), "N158"),
        (lambda: read(spark, EXAMPLE, "control-room/all").count(), "B108"),
        (lambda: write(texts, project=place), "N158"),
        (lambda: write(texts, project=place, client="camera-77"), "N154"),
        (lambda: write(numbers, project=place, client="camera-1"), "N158"),
        (lambda: write(texts, "overwrite", project=place, client="camera-1"), "N158"),
    ]:
        with pytest.raises((PySparkException, SituError), match=said):
            ask()
