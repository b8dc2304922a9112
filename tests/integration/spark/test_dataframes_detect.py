"""Situations in DataFrames: what engines find, in batches that know everything and in streams where events are late."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.model import Deployment
from situ.policies.enrichment.instances import InstanceColumns
from situ.policies.policy_tests import FoundSituation, GivenEvent, PolicyTest
from situ.project.policy_tests import detection_of, find_tests, run_tests
from situ.sources.table import Table
from situ.spark.dataframes.detect import SITUATIONS, situation_table
from situ.stages.detect.policy_tests import read_event, run_policy_test_by_definition
from situ.stages.detect.progress import DetectionProgress
from situ.stages.detect.step import States, step
from situ.tables.cache import open_tables
from tests.dataframes import streamed
from tests.guarded import FILES
from tests.integration.spark.test_policy_tests import INSIDE, walked
from tests.project_files import write
from tests.volume import cases

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from situ.spark import Project

EXAMPLES = Path(__file__).parents[3] / "examples"
SECOND, HOUR = 1_000_000, 3_600_000_000
START = 1_793_521_800 * SECOND
PROJECT = {
    **FILES,
    "policies/inside.dpl": INSIDE,
    # The same persons and rooms as generated walks have.
    "people.csv": "nr,role\ng1,guest\ng2,guest\ne1,employee\n",
    "rooms.csv": 'id,security,area\nlab,restricted,"{""x1"":0,""y1"":0,""x2"":10,""y2"":10}"\n'
    'hall,open,"{""x1"":10,""y1"":0,""x2"":20,""y2"":10}"\n',
}
Told = list[dict[str, Any]]


def guarded(spark: SparkSession, folder: Path) -> Project:
    from situ.spark import Project

    return Project(spark, write(folder, PROJECT))


def tables_of(project: Project, folder: Path) -> Mapping[str, Table]:
    detecting = detection_of(project.deployment, tuple(project.deployment.policies))
    names = detecting.tables.keyed
    sources = {name: project.deployment.sources[name] for name in names}
    with open_tables(sources, folder, keyed=names) as tables:
        return tables.snapshot


def instant(time: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(time // SECOND, dt.UTC) + dt.timedelta(microseconds=time % SECOND)


def text_of(event: GivenEvent) -> tuple[str, dt.datetime]:
    """An event as JSON, and when it was received."""
    about = {"specversion": "1.0", "id": event.id, "source": event.source, "type": event.type}
    time = instant(event.time).isoformat().replace("+00:00", "Z")
    return json.dumps({**about, "time": time, "data": event.data}), instant(event.received)


def shifted(event: GivenEvent, shift: int, name: str) -> GivenEvent:
    times = {"time": event.time + shift, "received": event.received + shift}
    return GivenEvent(type=event.type, id=f"{name}-{event.id}", source=event.source, data=event.data, **times)


def sorted_rows(rows: Iterable[Mapping[str, Any]]) -> Told:
    return sorted(({**row, "bindings": sorted(row["bindings"])} for row in rows), key=repr)


def collected(frame: DataFrame) -> Told:
    return sorted_rows(frame.toArrow().cast(SITUATIONS).to_pylist())


def found_in(rows: Told) -> set[FoundSituation]:
    """What became of situations, of which a batch tells everything: all of them are closed."""
    assert all(row["end"] is None for row in rows if row["phase"] != "closed")
    return {
        FoundSituation(
            id=row["situation"],
            policy=row["policy"],
            at=_micros(row["start"]),
            bindings=tuple(row["bindings"]),
            closed=_micros(row["end"]),
            detections=row["detections"],
        )
        for row in rows
        if row["phase"] == "closed"
    }


def unnamed(found: Iterable[FoundSituation]) -> set[FoundSituation]:
    return {replace(each, id="") for each in found}


def _micros(time: dt.datetime) -> int:
    return (time - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


def frame_of(spark: SparkSession, events: Sequence[GivenEvent]) -> DataFrame:
    return spark.createDataFrame([text_of(each) for each in events], "value string, came timestamp")


# ── batches ───────────────────────────────────────────────────────────────────────────────────────


@cases(20, 300)
def test_a_batch_finds_what_is_meant(spark: SparkSession, tmp_path: Path, cases: int) -> None:
    """Generated walks an hour apart, in any order. Some events come late; a batch knows them all."""
    building = guarded(spark, tmp_path)
    policies, pull = tuple(building.deployment.policies), tables_of(building, tmp_path)
    detecting = detection_of(building.deployment, policies)
    events: list[GivenEvent] = []
    expected: set[FoundSituation] = set()
    for number in range(cases):
        walk = walked(building.deployment, number).events
        own = tuple(shifted(each, START + number * HOUR, str(number)) for each in walk)
        test = PolicyTest(name="", policies=policies, events=own, pull=pull, clock=None)
        expected |= set(run_policy_test_by_definition(test, detecting, pull, building.deployment.types).found)
        events += own
    random.Random(3).shuffle(events)
    root = building.decode(frame_of(spark, events).repartition(3), "Sighting", received="came")
    rows = collected(building.detect(root))
    assert found_in(rows) == expected
    assert {row["policy"] for row in rows} == set(policies)
    assert len(expected) > cases
    opened = next(row for row in rows if row["phase"] == "opened")
    assert opened["causes"][0]["source"] == "x"
    assert opened["text"].startswith("A ")


def test_the_examples_own_tests_of_policies(spark: SparkSession) -> None:
    """Those of their files in which nothing is late: what is expected there is found in a DataFrame."""
    from situ.cli.project import open_project
    from situ.spark import Project

    judged = 0
    for name in ("smart-building", "dangerous-goods"):
        opened = open_project(EXAMPLES / name)
        project = Project(spark, EXAMPLES / name)
        for tested in run_tests(opened, find_tests(opened, ())):
            test = tested.test
            if test is None or tested.tried is None or tested.tried.late or test.clock is not None:
                continue
            types = sorted({each.type for each in test.events})
            for type in types:
                assert type in project.deployment.types.events
            frames = [
                project.decode(
                    frame_of(spark, [each for each in test.events if each.type == type]),
                    type,
                    client="'camera-4'" if name == "smart-building" else None,
                )
                for type in types
            ]
            rows = collected(project.detect(frames, policies=test.policies))
            # Who publishes is a part of the id; there are scopes, and so a test that is nobody sees nothing.
            assert unnamed(found_in(rows)) == unnamed(tested.tried.found), tested
            judged += 1
    assert judged >= 3


TABLES = {
    "situ.yaml": "name: tables\ndefaults: {lateness: 1 s, idle: 1 h}\n",
    "types/t.yaml": "events:\n  Stood: {who: string, place: string}\n  Met: {who: string, other: string}\n",
    "ontology.yaml": """
        concepts:
          thing: {id: string, status: string, where: string, near: string}
          place: {id: string}
        relationships:
          at: {between: [thing.where, place.id], function: "="}
          beside: {between: [thing.near, thing.id], function: "="}
        """,
    "sources/s.yaml": """
        pull:
          things: {csv: things.csv, columns: {id: string, status: string}, concept: thing, key: id}
          places: {csv: places.csv, columns: {id: string}, concept: place, key: id}
        push:
          stood: {event: Stood, concept: thing, id: who, attribute: where, value: place}
          met: {event: Met, concept: thing, id: who, attribute: near, value: other}
        """,
    "things.csv": "id,status\n1,guest\n5,guest\n"
    + "".join(f"{each},staff\n" for each in (101, 105, 142, 143))
    + "".join(f"{each},other\n" for each in (2, 3, 7, 8, 10, 13, 15)),
    "places.csv": "id\nR12\nR123\n",
    "policies/alone.dpl": "policy alone\nwindow 5 s\nhold 1 s\nconcepts\n  thing A (status = 'guest')\n"
    "  thing B (status = 'staff')\n  place R\nconditions\n  A is at R\n  A is not beside B or B is not at R\n"
    "actions\n  log it\n",
    "policies/chain.dpl": "policy chain\nwindow 5 s\nhold 1 s\nconcepts\n  thing A\n  thing B\n  thing C\n  thing D\n"
    "conditions\n  A is beside B\n  B is beside C\n  C is beside D\nactions\n  log it\n",
    "actions.yaml": 'actions:\n  log it: [{log: "{A}"}]\n',
}
# The two tables of the thesis: who stood where, who met whom, and when.
TABLE_5_3 = [
    (-4, "Stood", "101", "R12"),
    (0, "Stood", "1", "R12"),
    (1, "Stood", "101", "R12"),
    (2, "Stood", "5", "R123"),
    (3, "Met", "1", "105"),
    (4, "Met", "1", "101"),
    (5, "Met", "5", "142"),
    (6, "Stood", "143", "R123"),
]
TABLE_5_4 = [(100, "Met", a, b) for a, b in [("2", "7"), ("3", "5"), ("5", "13"), ("15", "8"), ("13", "7")]]
TABLE_5_4 += [(200, "Met", a, b) for a, b in [("2", "7"), ("7", "15"), ("10", "8")]]
LAST = [(300, "Stood", "nobody", "R12"), (300, "Met", "nobody", "2")]


def happened(*tables: Iterable[tuple[int, str, str, str]]) -> list[GivenEvent]:
    found = []
    for number, (second, type, who, what) in enumerate(each for table in tables for each in table):
        data = {"who": who, "place" if type == "Stood" else "other": what}
        time = START + second * SECOND
        found.append(GivenEvent(type=type, id=f"e{number}", source="x", time=time, received=time, data=data))
    return found


def short(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, float]]:
    """What was opened: policy, bindings, and seconds."""
    opened = (row for row in rows if row["phase"] == "opened")
    return sorted(
        (row["policy"], "".join(f"{a}{b}" for a, b in sorted(row["bindings"])), (_micros(row["time"]) - START) / SECOND)
        for row in opened
    )


@pytest.mark.parametrize("refuted", [True, False])
def test_the_worked_tables_as_batch_and_as_stream(spark: SparkSession, tmp_path: Path, refuted: bool) -> None:
    from situ.spark import Project

    project = Project(spark, write(tmp_path / "project", TABLES))
    table = TABLE_5_3 if refuted else [each for each in TABLE_5_3 if each[0] != 4]
    alone = [("alone", "A5RR123", 7.0)] if refuted else [("alone", "A1RR12", 5.0), ("alone", "A5RR123", 7.0)]
    expected = [*alone, ("chain", "A3B5C13D7", 100.0)]
    events = happened(table, TABLE_5_4, LAST)
    frames = [
        project.decode(frame_of(spark, [each for each in events if each.type == type]), type, received="came")
        for type in ("Stood", "Met")
    ]
    assert short(collected(project.detect(frames))) == expected
    if refuted:
        stream = Stream(spark, tmp_path / "stream")
        stream.add(events)
        assert short(stream.run(project, ("Stood", "Met"), None)) == expected


# ── streams ───────────────────────────────────────────────────────────────────────────────────────


class Stream:
    """Events in files, each of which is one micro-batch; goes on from its checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder, self._files = spark, folder, 0
        (folder / "given").mkdir(parents=True)

    def add(self, events: Iterable[GivenEvent]) -> None:
        """One micro-batch."""
        self._files += 1
        file = self._folder / "given" / f"{self._files:04d}.json"
        lines = [{"value": text, "came": came.isoformat()} for text, came in map(text_of, events)]
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        os.utime(file, (self._files, self._files))

    def run(
        self, project: Project, types: Sequence[str], policies: Sequence[str] | None, clock: Any = "received"
    ) -> Told:
        read = self._spark.readStream.schema("value string, came timestamp").option("maxFilesPerTrigger", "1")
        given = read.json(str(self._folder / "given"))
        frames = [
            project.decode(given.where(f"get_json_object(value, '$.type') = '{type}'"), type, received="came")
            for type in types
        ]
        return sorted_rows(streamed(project.detect(frames, policies, clock=clock), self._folder))


def engine_finds(
    deployment: Deployment, pull: Mapping[str, Table], portions: Iterable[Sequence[GivenEvent]]
) -> tuple[Told, int]:
    """What an engine tells of the same portions, by the clock of the events; and how many came too late."""
    detecting = detection_of(deployment, tuple(deployment.policies))
    progress: DetectionProgress | None = None
    states: States = {}
    knowledge, instances = InstanceColumns(detecting.ontology), detecting.tables.of(pull)
    told, clock, late = [], 0, 0
    for number, portion in enumerate(portions):
        read = [read_event(each, number + 1, detecting, deployment.types) for each in portion]
        clock = max([clock, *(each.received for each in portion)])
        if progress is None:
            progress, _ = DetectionProgress().adopted(detecting, None, min(each.received for each in portion))
        for one in read:
            progress = progress.heard(one.seen)
        observed = [each for one in read for each in one.observed]
        done = step(detecting, progress, states, observed, {}, clock, knowledge, instances)
        progress, states = done.progress, done.states
        late += len(done.late)
        told += done.told
    return sorted_rows(situation_table(told, detecting).to_pylist()), late


@cases(3, 40)
def test_a_stream_tells_what_engines_tell(spark: SparkSession, tmp_path: Path, cases: int) -> None:
    """The same portions, late events and all; stopped in the middle, it goes on from its checkpoint."""
    building = guarded(spark, tmp_path / "project")
    pull = tables_of(building, tmp_path / "project")
    events = [
        shifted(each, START + number * 60 * SECOND, str(number))
        for number in range(cases)
        for each in walked(building.deployment, 40 + number).events
    ]
    events.sort(key=lambda each: (each.received, each.id))
    size = max(1, len(events) // (2 * cases))
    portions = [events[start : start + size] for start in range(0, len(events), size)]
    expected, late = engine_finds(building.deployment, pull, portions)
    stream = Stream(spark, tmp_path / "stream")
    for portion in portions[: len(portions) // 2]:
        stream.add(portion)
    first = stream.run(building, ("Sighting",), None)
    for portion in portions[len(portions) // 2 :]:
        stream.add(portion)
    found = stream.run(building, ("Sighting",), None)
    assert found == expected
    assert len(first) < len(found)
    assert late > 0
    assert {row["policy"] for row in found} == {"inside", "unaccompanied-guest"}


def test_a_stream_tells_of_absence_though_nothing_more_comes(spark: SparkSession, tmp_path: Path) -> None:
    """By the clock on the wall: the guest was alone for as long as the policy says."""
    files = {**PROJECT, "situ.yaml": "name: guarded\ndefaults: {lateness: 100 ms, idle: 300 ms}\n"}
    quick = {"policies/unaccompanied-guest.dpl": FILES["policies/unaccompanied-guest.dpl"].replace("5 s", "1 s")}
    from situ.spark import Project

    building = Project(spark, write(tmp_path / "project", {**files, **quick}))
    (tmp_path / "given").mkdir()
    stream = spark.readStream.schema("value string").json(str(tmp_path / "given"))
    root = building.decode(stream, "Sighting")
    found = building.detect(root, policies=["unaccompanied-guest"])
    query = (
        found.writeStream.format("memory")
        .queryName("alone")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        now = dt.datetime.now(dt.UTC).isoformat()
        data = {"who": "g1", "at": {"x": 5.0, "y": 5.0}}
        about = {"specversion": "1.0", "id": "e1", "source": "reader", "type": "Sighting", "time": now, "data": data}
        (tmp_path / "given" / "1.json").write_text(json.dumps({"value": json.dumps(about)}))
        while spark.sql("SELECT * FROM alone WHERE phase = 'closed'").count() == 0:
            assert query.isActive, query.exception()
            assert not query.awaitTermination(0.2)
    finally:
        query.stop()
    rows = spark.sql("SELECT phase, bindings FROM alone ORDER BY time").collect()
    assert [(row["phase"], row["bindings"]) for row in rows] == [
        ("opened", {"A": "g1", "R": "lab"}),
        ("closed", {"A": "g1", "R": "lab"}),
    ]


# ── what cannot be detected ───────────────────────────────────────────────────────────────────────


def test_what_detection_lacks_is_said(spark: SparkSession, tmp_path: Path) -> None:
    from situ.spark import Project

    project = Project(spark, write(tmp_path / "project", TABLES))
    texts = spark.createDataFrame([("x",)], "value string")
    stood = project.decode(texts, "Stood")
    (tmp_path / "given").mkdir()
    stream = project.decode(spark.readStream.schema("value string").json(str(tmp_path / "given")), "Met")
    for ask, code, hint in [
        (lambda: project.detect(stood, policies=["alon"]), "N154", "alone"),
        (lambda: project.detect(stood, policies=["alone"]), "N156", "Give one"),
        (lambda: project.detect(texts, policies=["alone"]), "N151", "decode"),
        (lambda: project.detect([stood, stream], policies=["alone"]), "N156", "streams"),
    ]:
        with pytest.raises(SituError) as refused:
            ask()
        assert refused.value.code == code
        assert hint in refused.value.hint
    plant = Project(spark, EXAMPLES / "smart-building")
    cameras = plant.decode(texts, "FaceSeen", context="cameras")
    with pytest.raises(SituError, match="in the terms of `cameras`"):
        plant.detect(cameras)
