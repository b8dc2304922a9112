"""Situations on Spark, end to end on a real bus: what the edge finds, through crashes, silence and changes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from situ.pipeline.engine import SparkEngine
from tests.guarded import FILES
from tests.zone import Zone, event, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SITU = "defaults: {lateness: 100 ms, idle: 1 s}\n"
MORE = {name: text for name, text in FILES.items() if name not in ("situ.yaml", "types/building.yaml")}
QUICK = {**MORE, "policies/unaccompanied-guest.dpl": MORE["policies/unaccompanied-guest.dpl"].replace("5 s", "1 s")}
G1 = {"A": "g1", "R": "lab"}


@contextmanager
def running(spark: SparkSession, at: Zone, folder: Path, **hooks: Any) -> Iterator[SparkEngine]:
    settings = at.deployment.settings
    engine = SparkEngine(
        spark, at.address, settings, folder / "checkpoints", folder=folder / "project", partitions=2, **hooks
    )
    engine.start()
    try:
        yield engine
    finally:
        engine.stop()


def wait_for(condition: Callable[[], object], engine: SparkEngine, *, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        assert not engine.wait(0.05)


def guarded() -> dict[str, Any]:
    return {"types": FILES["types/building.yaml"], "situ": SITU, "more": {**QUICK, "clients/all.yaml": ""}}


def see(at: Zone, number: int, who: str, x: float, y: float = 5.0, **about: Any) -> None:
    at.send("reader", [event(f"e{number}", "Sighting", {"who": who, "at": {"x": x, "y": y}}, **about)])


def told(at: Zone) -> list[tuple[str, dict[str, str]]]:
    rows = [row for row in at.root() if row.type.startswith("situ.situation")]
    data = [json.loads(row.data) for row in rows]
    bindings = [{each["alias"]: each["id"] for each in some["bindings"]} for some in data]
    return [(row.type.rpartition(".")[2], some) for row, some in zip(rows, bindings, strict=True)]


def test_a_guest_alone_is_a_situation_though_nothing_more_comes(spark: SparkSession, tmp_path: Path) -> None:
    with zone(tmp_path, **guarded()) as at, running(spark, at, tmp_path) as engine:
        see(at, 1, "g1", 5)
        see(at, 2, "g2", 30)
        wait_for(lambda: len(told(at)) == 2, engine)
        assert told(at) == [("opened", G1), ("closed", G1)]
        (alarm,) = [row for row in at.root() if row.type == "GuestAlone"]
        assert json.loads(alarm.data) == {"text": "g1 alone in lab", "status": "guest"}
        opened = next(row for row in at.root() if row.type == "situ.situation.opened")
        (cause,) = json.loads(opened.data)["causes"]
        assert (cause["id"], cause["source"]) == ("e1", "reader/x")
