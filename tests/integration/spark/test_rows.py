"""What Spark itself shows of the queries: how many events they took, what stages did, jobs with names, no secrets."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from situ.spark.detect_query import QUERY as DETECT
from situ.spark.engine import QUERY as EVENTS
from tests.integration.spark.test_detection import guarded, running, told, wait_for
from tests.zone import event, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGES, EACH = 7, 5


class Progress:
    """All that Spark told of a query; it forgets what is a hundred batches old."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        (self.query,) = [each for each in spark.streams.active if each.name == name]
        self._name = name
        self._batches: dict[int, dict[str, Any]] = {}

    @property
    def rows(self) -> int:
        self._batches |= {each["batchId"]: each for each in self.query.recentProgress if each["numInputRows"]}
        return sum(each["numInputRows"] for each in self._batches.values())

    @property
    def read(self) -> int:
        """Events, where rows are none."""
        return sum(each["read"] or 0 for each in self.observed) if self.rows else 0

    @property
    def observed(self) -> list[dict[str, Any]]:
        shown = [each["observedMetrics"].get(self._name) for each in self._batches.values()]
        return [each.asDict() if hasattr(each, "asDict") else dict(each) for each in shown if each is not None]


def test_spark_counts_events_and_shows_what_stages_did(spark: SparkSession, tmp_path: Path) -> None:
    with zone(tmp_path, **guarded()) as at, running(spark, at, tmp_path) as engine:
        events, detection = Progress(spark, EVENTS), Progress(spark, DETECT)
        for number in range(MESSAGES):
            data = {"who": "g1", "at": {"x": 5.0, "y": 5.0}}
            at.send("reader", [event(f"e{number}-{each}", "Sighting", data) for each in range(EACH)])
        at.send("reader", [event("away", "Sighting", {"who": "g2", "at": {"x": 30.0, "y": 5.0}})])
        sent = MESSAGES * EACH + 1
        wait_for(lambda: min(events.rows, detection.read) >= sent and len(told(at)) >= 2, engine)
        # What policies publish comes in as events of clients do.
        wait_for(lambda: events.rows == len(at.root()), engine)
        # What detection shows of itself it knows from its second batch on: that which reads of the situations.
        wait_for(lambda: detection.rows > 0 and any(each["state_bytes"] for each in detection.observed), engine)
        logged = len(at.root())
        assert logged > sent
        assert sum(each["events"] for each in events.observed) == logged
        assert sum(each["dead_letters"] for each in events.observed) == 0
        stages = [f"{stage}_ms" for stage in ("decode", "log", "route", "publish")]
        assert all(each[stage] > 0 for each in events.observed for stage in stages)
        assert sum(each["events"] or 0 for each in detection.observed) == sent, "only sightings tell policies something"
        assert sent <= detection.read <= logged, "what no policy listens to need not be read"
        assert any(each["watermark"] is not None for each in detection.observed)
        with redirect_stdout(io.StringIO()) as explained:
            events.query.explain(extended=True)
        assert "MapInArrow" in explained.getvalue()
        assert at.server.token not in explained.getvalue()
