"""The bus goes away under the Spark engine and comes back: nothing is lost, nothing comes twice."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from situ.lang.problems import SituError
from situ.spark.engine import SparkEngine
from tests.integration.spark.test_engine import ALL, drained, reading, wait_for
from tests.zone import Zone, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_goes_on_when_the_bus_is_back(spark: SparkSession, tmp_path: Path) -> None:
    with zone(tmp_path, [ALL]) as at:
        engine = started(spark, at, tmp_path)
        try:
            for times in range(2):
                at.send("press-1", [reading(1000 * times + number, 1.0) for number in range(100)])
                wait_for(drained(engine, at), seconds=180)
                at.send("press-2", [reading(1000 * times + number, 1.0) for number in range(100)])
                at.server.kill()  # perhaps in the middle of a batch
                engine = survived(engine, spark, at, tmp_path, seconds=3 * times + 1)
            wait_for(drained(engine, at), seconds=180)
        finally:
            engine.stop()
        root = at.root()
        for press in ("press-1", "press-2"):
            assert [row.seq for row in root if row.client == press] == list(range(1, 201))
        assert [len(rows) for rows in at.delivered().values()] == [400]


def survived(engine: SparkEngine, spark: SparkSession, at: Zone, folder: Path, *, seconds: float) -> SparkEngine:
    """The bus comes back after a while. An engine that gave up said why, and another goes on where it was."""
    time.sleep(seconds)
    at.server.start()
    try:
        if not engine.wait(0.5):
            return engine
        raise AssertionError("it ended and said nothing")
    except SituError as error:
        said = str(error)
    # That it was the bus is known, so whoever runs the engine starts it again.
    assert re.search(r"N102 .*B1\d\d", said), said
    return started(spark, at, folder)


def started(spark: SparkSession, at: Zone, folder: Path) -> SparkEngine:
    engine = SparkEngine(spark, at.address, at.deployment.settings, folder / "checkpoints")
    engine.start()
    return engine
