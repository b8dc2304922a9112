"""A project on a Spark cluster whose workers see nothing of the driver's disk gives what one process gives.

Code comes by the archive, plans and tables over the bus, states by the store. An executor, a worker and the driver are
killed while events come.
"""

from __future__ import annotations

import json
import re
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from simulator import example_building, simulate

import situ
from situ.event.row import Row
from situ.event.subjects import REGISTRY, BusNames
from situ.project.check import check_folder
from tests.faults.deployed import Deployed, deployed, wait_for
from tests.integration.kafka.projects import CLIENTS, files_with, once, secured, value
from tests.integration.kafka.projects import TYPES as READINGS
from tests.integration.spark.test_detection import running
from tests.integration.spark.test_scenarios import EXAMPLES, PARTS, files_of
from tests.kafka_server import PASSWORD, kafka_server
from tests.nats_server import free_port
from tests.s3_server import BUCKET, s3_server
from tests.spark_cluster import SparkCluster, spark_cluster, why_not
from tests.zone import Zone, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = Path(situ.__file__).parent
NOTHING: Mapping[str, str] = MappingProxyType({})
Sent = list[tuple[str, list[dict[str, Any]]]]
"""Messages: who sends them, and their events."""


@dataclass(frozen=True)
class Building:
    """What sensors of the example send in a minute, and the guests who are alone then."""

    messages: Sent
    events: int
    alone: Counter[tuple[str, str]]


def building(start: datetime) -> Building:
    simulation = simulate(
        example_building(),
        duration=timedelta(minutes=1),
        types=("TagSeen", "FaceSeen"),
        seed=11,
        start=start,
        situations=2,
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
    messages.append((last["source"], [{**last, "time": (start + timedelta(minutes=3)).isoformat()}]))
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
    found = {str(file.relative_to(folder)): file.read_text(encoding="utf-8") for file in files}
    # Events are of twenty minutes ago. Where a cluster takes longer to start than a source is waited for, all are late.
    found["sources/building.yaml"] = found["sources/building.yaml"].replace("idle: 10 s", "idle: 1 h")
    assert "idle: 1 h" in found["sources/building.yaml"]
    return found


class OnCluster:
    """The example's run, with a cluster below it."""

    def __init__(self, cluster: SparkCluster, run: Deployed, page: int) -> None:
        self.cluster, self.run, self._page = cluster, run, page
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

    def page(self, name: str) -> Any:
        """What the web page of Spark answers about the application."""
        base = f"http://127.0.0.1:{self._page}/api/v1/applications"
        (application,) = httpx.get(base, timeout=60).json()
        return httpx.get(f"{base}/{application['id']}/{name}", timeout=60).json()

    def said(self, expected: Outcome) -> str:
        """What is there, of a run that does not come to its end."""
        root = self.run.root()
        found = outcome(root)
        missing = expected.rows - found.rows, expected.opened - found.opened, expected.alarms - found.alarms
        return f"{Counter(row.type for row in root)}\nmissing {missing}\ndead {self.run.dead()}\n{self.run.log[-2000:]}"

    def await_more(self, than: int) -> None:
        wait_for(lambda: self.seen() > than, "events go on", every=0.3)


@contextmanager
def on_cluster(
    folder: Path,
    checkpoints: str,
    conf: Mapping[str, str] = NOTHING,
    *,
    situ: str = "",
    files: Mapping[str, str] = NOTHING,
    variables: Mapping[str, str] = NOTHING,
    hidden: Sequence[Path] = (),
) -> Iterator[OnCluster]:
    """A project of these ``files`` instead of the example; workers do not see what is ``hidden``."""
    project = folder / "project"
    project.mkdir(parents=True)
    with spark_cluster(folder / "cluster", hidden=[project, SOURCE, *hidden]) as cluster:
        page = free_port()
        given = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "600m",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.default.parallelism": "2",
            "spark.ui.enabled": "true",
            "spark.ui.port": str(page),
            **conf,
        }
        spark = {"master": cluster.url, "checkpoints": checkpoints, "conf": given}
        settings = f"spark: {json.dumps(spark)}\ndefaults: {{install_timeout: 60 s}}\n{situ}"
        files = {"types/all.yaml": "version: 1\n", **(files or example())}
        with deployed(project, engine="spark", situ=settings, files=files, variables=dict(variables)) as run:
            yield OnCluster(cluster, run, page)


def kill_executor(at: OnCluster) -> None:
    wait_for(at.cluster.executors, "there are executors")
    at.cluster.executors()[0].kill()


def kill_worker(at: OnCluster) -> None:
    at.cluster.kill_worker(at.cluster.workers[0])
    at.cluster.add_worker()


def kill_driver(at: OnCluster) -> None:
    at.run.kill()
    at.run.start()
    at.run.ready()


Kill = Callable[[OnCluster], None]
KILLS = (kill_executor, kill_worker, kill_driver)


def check_kills(at: OnCluster, given: Building, kills: Sequence[Kill], expected: Outcome) -> None:
    """Kill each after a part of the events was sent, and see what comes of all."""
    step = -(-len(given.messages) // (len(kills) + 1))
    for number, kill in enumerate(kills):
        before = at.seen()
        some = given.messages[number * step : (number + 1) * step]
        at.send(some)
        if not number:
            check_rows(at, sum(len(events) for _, events in some))
        at.await_more(before)
        kill(at)
    at.send(given.messages[len(kills) * step :])
    try:
        wait_for(lambda: is_done(at.run.root(), given), "everything is in the log", every=0.5)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{at.said(expected)}") from None
    found = outcome(at.run.root())
    assert at.run.dead() == []
    assert max(Counter((client, seq) for client, seq, *_ in found.rows.elements()).values()) == 1, "each event once"
    assert found == expected


def check_rows(at: OnCluster, sent: int) -> None:
    """The web page of Spark counts the events that were published, and names what it does."""
    wait_for(lambda: at.seen() >= sent, "the first events are in the log", every=0.3)
    own = sum(row.type != "Sighting" for row in at.run.root())  # what policies published
    read = re.compile(r"events: messages \d+ to \d+ of what came in")

    def rows() -> int:
        stages = [each for each in at.page("stages") if read.fullmatch(each.get("description") or "")]
        return sum(each["inputRecords"] for each in stages)

    wait_for(lambda: sent <= rows() <= sent + own, "as many rows as events", every=0.3)
    secrets = {name: value for name, value in at.page("environment")["sparkProperties"] if "SITU_SECRET" in name}
    assert secrets
    assert set(secrets.values()) == {"*********(redacted)"}


def packed(at: OnCluster) -> None:
    """The command gives what the run has shipped."""
    archives = at.run.folder / ".situ" / "cache" / "spark-archives"
    (shipped,) = archives.iterdir()
    told = at.run.command("package", "spark", "--out", str(archives))
    assert told["archive"] == str(shipped)
    assert f"--master {at.cluster.url}" in told["command"]
    assert "kind: StatefulSet" in (archives / "kubernetes.yaml").read_text()
    assert (archives / "env" / "bin" / "python").exists()


def a_while_ago() -> datetime:
    return datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=20)


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_a_cluster_that_shares_nothing_gives_what_one_process_gives(spark: SparkSession, tmp_path: Path) -> None:
    given = building(a_while_ago())
    expected = in_one_process(spark, tmp_path / "alone", given)
    assert expected.opened == given.alone
    with on_cluster(tmp_path, f"file://{tmp_path}/states") as at:
        check_kills(at, given, KILLS, expected)
        packed(at)
        assert at.run.stop() == 0


@pytest.mark.soak
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_states_are_on_an_object_store_and_everything_is_killed_ten_times(spark: SparkSession, tmp_path: Path) -> None:
    given = building(a_while_ago())
    expected = in_one_process(spark, tmp_path / "alone", given)
    with s3_server(tmp_path / "s3") as s3, on_cluster(tmp_path, f"s3a://{BUCKET}/states", s3.conf) as at:
        check_kills(at, given, KILLS * 10, expected)
        assert at.run.stop() == 0


@pytest.mark.soak
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_workers_read_topics_with_what_comes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers have neither library, password nor certificates of Kafka of their own, and nothing shows the password."""
    with kafka_server(tmp_path / "kafka") as broker:
        broker.create("readings", partitions=4)
        broker.create("hot")
        settings = f"kafka: {{servers: '{broker.secure_servers}'{secured(broker)}}}\n"
        files = {"types/readings.yaml": READINGS, "clients/readings.yaml": CLIENTS}
        given = {"KAFKA_PASSWORD": PASSWORD}
        states, hidden = f"file://{tmp_path}/states", [broker.folder]
        with on_cluster(tmp_path, states, situ=settings, files=files, variables=given, hidden=hidden) as at:
            monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)  # for this process, which reads situ.yaml, too

            def rows() -> list[Row]:
                return [row for row in at.run.root() if row.client == "plant"]

            def kill_broker(_: OnCluster) -> None:
                broker.kill()
                broker.start()

            step = 5_000
            for number, kill in enumerate((*KILLS, kill_broker)):
                numbers = range(number * step, (number + 1) * step)
                broker.write("readings", [(f"s{each % 7}", value(each)) for each in numbers])
                wait_for(lambda number=number: len(rows()) > number * step, "topics are read", every=0.5)
                kill(at)
            wait_for(lambda: len(rows()) >= 4 * step, "all is read", every=0.5)
            wait_for(lambda: len(broker.read("hot")) >= 4 * step, "all is written", every=0.5)
            assert once(rows())
            assert sorted(int(row.id) for row in rows()) == list(range(4 * step))
            keys = [dict(each.headers())["situkey"] for each in broker.read("hot")]
            assert len(set(keys)) == len(keys) == 4 * step
            assert at.run.dead() == []
            assert PASSWORD not in json.dumps(at.page("environment"))
            assert not any(PASSWORD in str(each.cmdline()) for each in at.cluster.executors())
            logs = [*(tmp_path / "cluster").glob("*.log"), *(tmp_path / "cluster").glob("worker-*/*/*/std*")]
            assert logs
            assert not any(PASSWORD in each.read_text(errors="replace") for each in logs)
            assert files_with(at.run.folder / ".situ" / "logs", PASSWORD) == []
            with tarfile.open(next((at.run.folder / ".situ" / "cache" / "spark-archives").iterdir())) as archive:
                assert any("/confluent_kafka.libs/librdkafka" in each for each in archive.getnames())
