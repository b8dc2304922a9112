"""A project on a Spark cluster whose workers see nothing of the driver's disk gives what one process gives.

Code comes by the archive, plans and tables over the bus, states by the store. An executor, a worker and the driver are
killed while events come.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from simulator import example_building, simulate

import situ
from situ.event.row import Row
from situ.event.subjects import REGISTRY, BusNames
from situ.project.check import check_folder
from tests.faults.deployed import Deployed, deployed, wait_for
from tests.integration.spark.test_detection import running
from tests.integration.spark.test_scenarios import EXAMPLES, PARTS, files_of
from tests.spark_cluster import SparkCluster, spark_cluster, why_not
from tests.zone import Zone, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = Path(situ.__file__).parent
Sent = list[tuple[str, list[dict[str, Any]]]]
"""Messages: who sends them, and their events."""


@dataclass(frozen=True)
class Building:
    """What sensors of the example send in two minutes, and the guests who are alone then."""

    messages: Sent
    events: int
    alone: Counter[tuple[str, str]]


def building(start: datetime) -> Building:
    simulation = simulate(
        example_building(),
        duration=timedelta(minutes=2),
        types=("TagSeen", "FaceSeen"),
        seed=11,
        start=start,
        situations=3,
    )
    messages: Sent = []
    events = [json.loads(line) for text in simulation.json_lines() for line in text.splitlines()]
    waiting: dict[str, list[dict[str, Any]]] = {}
    for each in events:
        some = waiting.setdefault(each["source"], [])
        some.append(each)
        if len(some) == 10:
            messages.append((each["source"], waiting.pop(each["source"])))
    messages += waiting.items()
    # Somebody is seen a while after all that: what went before is decided then.
    last = {**next(each for each in events if each["type"] == "TagSeen"), "id": "last"}
    messages.append((last["source"], [{**last, "time": (start + timedelta(minutes=4)).isoformat()}]))
    alone = Counter((each.guest, each.room) for each in simulation.truth)
    return Building(messages, len(events) + 1, alone)


@dataclass(frozen=True)
class Outcome:
    """What came of it: every event of the root log by its key, and the situations."""

    rows: Counter[tuple[str, int, str, str]]
    opened: Counter[tuple[str, str]]
    alarms: Counter[str]


def outcome(root: list[Row]) -> Outcome:
    seen = Counter((row.client, row.seq, row.type, row.data.decode()) for row in root if row.type == "Sighting")
    opened: Counter[tuple[str, str]] = Counter()
    for row in root:
        if row.type == "situ.situation.opened":
            bound = {each["alias"]: each["id"] for each in json.loads(row.data)["bindings"]}
            opened[bound["A"], bound["R"]] += 1
    return Outcome(seen, opened, Counter(row.data.decode() for row in root if row.type == "Alarm"))


def is_done(root: list[Row], given: Building) -> bool:
    stages = Counter(row.type for row in root)
    closed, alarms = stages["situ.situation.closed"], stages["Alarm"]
    return stages["Sighting"] >= given.events and min(closed, alarms) >= given.alone.total()


def in_one_process(spark: SparkSession, folder: Path, given: Building) -> Outcome:
    with zone(folder, **files_of("smart-building", str)) as at, running(spark, at, folder) as engine:
        for client, events in given.messages:
            at.send(client, events)
        while not is_done(at.root(), given):
            assert not engine.wait(0.2)
        assert at.dead() == []
        return outcome(at.root())


def example() -> dict[str, str]:
    folder = EXAMPLES / "smart-building"
    files = [file for part in (*PARTS, "sources/*") for file in sorted(folder.glob(part))]
    return {str(file.relative_to(folder)): file.read_text(encoding="utf-8") for file in files}


class OnCluster:
    """The example's run, with a cluster below it."""

    def __init__(self, cluster: SparkCluster, run: Deployed) -> None:
        self.cluster, self.run = cluster, run
        self._sent: dict[str, int] = {}

    def send(self, messages: Sent) -> None:
        with self.run.bus() as bus:
            checked = check_folder(self.run.folder)
            assert checked.deployment is not None
            version = json.loads(bus.get(REGISTRY, "current").value)["version"]  # type: ignore[union-attr, arg-type]
            at = Zone(None, bus, self.run.address, checked.deployment.at_version(version), BusNames("main"))  # type: ignore[arg-type]
            at._next.update(self._sent)
            for client, events in messages:
                at.send(client, events)
            self._sent = dict(at._next)

    def seen(self) -> int:
        return sum(row.type == "Sighting" for row in self.run.root())

    def await_more(self, than: int) -> None:
        wait_for(lambda: self.seen() > than, "events go on", every=0.3)


@contextmanager
def on_cluster(folder: Path, checkpoints: str, conf: str = "") -> Iterator[OnCluster]:
    project = folder / "project"
    project.mkdir(parents=True)
    with spark_cluster(folder / "cluster", hidden=[project, SOURCE]) as cluster:
        spark = (
            "{spark.driver.host: 127.0.0.1, spark.driver.bindAddress: 127.0.0.1, spark.executor.memory: 512m, "
            "spark.executor.cores: 1, spark.executor.extraJavaOptions: '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC', "
            f"spark.driver.memory: 600m, spark.default.parallelism: 2{conf}}}"
        )
        settings = f"spark: {{master: '{cluster.url}', checkpoints: '{checkpoints}', conf: {spark}}}\n"
        settings += "defaults: {install_timeout: 60 s}\n"
        files = {**example(), "types/all.yaml": "version: 1\n"}
        with deployed(project, engine="spark", situ=settings, files=files) as run:
            yield OnCluster(cluster, run)


def kill_executor(at: OnCluster) -> None:
    wait_for(at.cluster.executors, "there are executors")
    at.cluster.executors()[0].kill()


def kill_worker(at: OnCluster) -> None:
    worker = at.cluster.workers[0]
    at.cluster.kill_worker(worker)
    at.cluster.add_worker()


def kill_driver(at: OnCluster) -> None:
    at.run.kill()
    at.run.start()
    at.run.ready()


def check_kills(at: OnCluster, given: Building, kills: list[Callable[[OnCluster], None]], expected: Outcome) -> None:
    """Kill each after a part of the events was sent, and see what comes of all."""
    step = -(-len(given.messages) // (len(kills) + 1))
    for number, kill in enumerate(kills):
        before = at.seen()
        at.send(given.messages[number * step : (number + 1) * step])
        at.await_more(before)
        kill(at)
    at.send(given.messages[len(kills) * step :])
    wait_for(lambda: is_done(at.run.root(), given), "everything is in the log", every=0.5)
    found = outcome(at.run.root())
    assert at.run.dead() == []
    assert max(Counter((client, seq) for client, seq, *_ in found.rows.elements()).values()) == 1, "each event once"
    assert found == expected


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_a_cluster_that_shares_nothing_gives_what_one_process_gives(spark: SparkSession, tmp_path: Path) -> None:
    given = building(datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=20))
    expected = in_one_process(spark, tmp_path / "alone", given)
    assert expected.opened == given.alone
    with on_cluster(tmp_path, f"file://{tmp_path}/states") as at:
        check_kills(at, given, [kill_executor, kill_worker, kill_driver], expected)
        assert at.run.stop() == 0
