"""Rows of DataFrames become events, or say what is wrong with them in the words of engines; no row ends a job."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from situ.event.row import Origin, Row
from situ.lang.problems import SituError
from situ.stages.plan import compile_plan
from tests.dataframes import streamed
from tests.project_files import write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from situ.spark import Project

EXAMPLE = Path(__file__).parents[3] / "examples" / "smart-building"
NOW = dt.datetime(2026, 11, 1, 8, 30, tzinfo=dt.UTC)
FILES = {
    "situ.yaml": "name: all\ndefaults: {extra: reject}\n",
    "types/t.yaml": """\
        types:
          Place: {x: double m, y: double m}
          High(Place): {z: double m, since: duration}
          Grade(string): {}
        events:
          Everything:
            flag: boolean
            small: int
            large: long
            real: double
            text: string
            raw: bytes
            day: date
            at: timestamp
            took: duration
            price: decimal(10,2)
            grade: optional Grade
            places: [Place]
            where: optional Place
            level: {type: int, default: 3}
          Other: {text: string}
        """,
    "contexts/odd.yaml": "context: odd\nevents: {Other: {n: int}}\n",
}
FULL = {
    "flag": True,
    "small": 7,
    "large": 2**40,
    "real": 1.5,
    "text": "ä 'quoted'",
    "raw": "AP8=",
    "day": "2026-11-01",
    "at": "2026-11-01T08:30:00.000001Z",
    "took": "PT1M0.5S",
    "price": "12.50",
    "grade": "A",
    "places": [{"x": 1.0, "y": 2.0}, {"$type": "High", "x": 1.0, "y": 2.0, "z": 3.0, "since": "P1D"}, None],
    "where": {"$type": "High", "x": 1.0, "y": 2.0, "z": 3.0, "since": "PT0S"},
    "level": 9,
}
LACKING = {name: value for name, value in FULL.items() if name not in ("grade", "where", "level")}


def event(data: Any, **about: Any) -> str:
    known = {"specversion": "1.0", "id": "1", "source": "gate/4", "type": "Everything", "time": "2026-11-01T08:30:00Z"}
    return json.dumps({**known, "data": data, **about})


TEXTS = {
    "full": event(FULL),
    "lacking": event(LACKING),
    "quoted": event({**FULL, "text": 'say "so"\nand go on'}),
    "ext": event(LACKING, subject="s", traceparent="t", confidence="97.5", situad="gate/all"),
    "no time": json.dumps({"specversion": "1.0", "id": "2", "source": "gate", "type": "Everything", "data": LACKING}),
    "garbage": "this is no JSON",
    "empty": "",
    "cut off": event(FULL)[:-20],
    "twice": event(FULL).replace('"flag": true', '"flag": true, "flag": true'),
    "two": f"{event(FULL)},\n{event(FULL)}",
    "array": f"[{event(FULL)}]",
    "wrong": event({**FULL, "small": "7", "real": None, "price": "12.505", "places": [{"x": 1.0}]}),
    "extra": event({**FULL, "colour": "red"}),
    "subtype": event({**FULL, "where": {"$type": "Low", "x": 1.0, "y": 2.0}}),
    "large": event({**FULL, "small": 2**31}),
    "future": event(FULL, time="2036-11-01T08:30:00Z"),
    "unknown": event(FULL, type="Everythin"),
    "null": "null",
    "deep": event({**FULL, "text": "x" * 2_000_000}),
}
ELSEWHERE = {"two": "is 2 events", "empty": "is missing"}
"""What a message may hold and a row may not."""


def project(spark: SparkSession, folder: Path) -> Project:
    from situ.spark import Project

    return Project(spark, write(folder, FILES))


def as_an_engine(project: Project, text: str, received: int) -> Row | tuple[str, ...]:
    """What an engine makes of a message with this text: the event, or the codes and places of what is wrong."""
    plan = compile_plan(project.deployment)
    origin = Origin(client="gate", incarnation=1, seq=1, received=received, pos=0)
    rows = plan.interpretation.decode(b"[\n%b\n]" % text.encode(), origin)
    assert len(rows) == 1
    row = rows[0]
    return row if isinstance(row, Row) else tuple(f"{code} {path}" for code, path, _, _ in row.errors)


def test_texts_are_decoded_as_engines_do(spark: SparkSession, tmp_path: Path) -> None:
    every = project(spark, tmp_path / "project")
    received = int(NOW.timestamp() * 1_000_000)
    given = spark.createDataFrame(
        [(name, text.encode(), NOW) for name, text in TEXTS.items()] + [("missing", None, NOW)],
        "name string, value binary, came timestamp",
    )
    decoded = every.decode(given, "Everything", received="came")
    given.write.parquet(str(tmp_path / "given"))
    stream = spark.readStream.schema(given.schema).parquet(str(tmp_path / "given"))
    asked = every.decode(stream, "Everything", received="came")
    for records in (decoded.toArrow().to_pylist(), streamed(asked, tmp_path)):
        _held_to_engine(every, {each["name"]: each for each in records}, received)
    # The column alone, without what stands beside it: nothing is decoded twice, and nothing else is needed.
    assert decoded.select("name").count() == len(TEXTS) + 1
    letters = {row["name"]: row for row in every.dead_letters(decoded).collect()}
    assert letters.keys() == {name for name, row in _by_name(decoded).items() if row["failure"] is not None}
    assert letters["garbage"]["stage"] == "decode"
    assert letters["garbage"]["original"] == TEXTS["garbage"]


def _by_name(frame: DataFrame) -> dict[str, Any]:
    return {row["name"]: row for row in frame.collect()}


def _held_to_engine(every: Project, found: dict[str, Any], received: int) -> None:
    from situ.lang.types.data_column import DataColumn

    struct = every.deployment.types.event("Everything")
    assert struct is not None
    column = DataColumn(struct, every.deployment.types)
    assert found.keys() == {*TEXTS, "missing"}
    good = 0
    for name, text in TEXTS.items():
        row = found[name]
        if name in ELSEWHERE:
            assert ELSEWHERE[name] in row["failure"]["errors"][0]["message"]
            continue
        expected = as_an_engine(every, text, received)
        if isinstance(expected, Row):
            good += 1
            assert row["failure"] is None, (name, row["failure"])
            (written,) = column.texts(column.of_texts([expected.data]))
            assert written == expected.data, name
            assert row["data"] == column.of_texts([expected.data])[0].as_py(), name
            about = row["event"]
            assert (about["id"], about["source"], about["type"]) == (expected.id, expected.source, "Everything")
            assert about["time"] == dt.datetime.fromtimestamp(expected.time / 1_000_000, dt.UTC)
            assert about["confidence"] == expected.confidence
            assert (about["ad"] or "") == expected.ad
            assert about["client"] == "gate"
        else:
            assert row["data"] is None
            codes = tuple(f"{each['code']} {each['path']}" for each in row["failure"]["errors"])
            assert codes == expected, name
    assert good == 5
    assert found["missing"]["failure"]["errors"][0]["code"] == "E702"
    assert dict(found["ext"]["event"]["extensions"]) == {"subject": "s", "traceparent": "t"}


def test_rows_of_other_types_are_dead_letters(spark: SparkSession, tmp_path: Path) -> None:
    every = project(spark, tmp_path)
    other = event({"text": "x"}, type="Other")
    found = every.decode(spark.createDataFrame([(other,), (event(FULL),)], "value string"), "Everything")
    (letter,) = every.dead_letters(found).collect()
    assert (letter["type"], letter["errors"][0]["code"]) == ("Other", "E751")


def test_a_dataframe_that_says_it_has_something_else_is_found_out(spark: SparkSession) -> None:
    """Of two DataFrames in one, Spark keeps what the first says of its column."""
    from situ.spark import Project

    plant = Project(spark, EXAMPLE)
    text = event({"who": "p01", "at": {"x": 1.0, "y": 2.0}}, type="Sighting", source="camera-1")
    root = plant.decode(spark.createDataFrame([(text,)], "value string"), "Sighting")
    other = root.withColumn("event", root["event"].withField("context", root["event"]["id"]))
    feet = plant.interpret(root.unionAll(other), to="us")
    assert sorted(row["event"]["type"] for row in feet.collect()) == ["PersonLocated", "Sighting"]
    (letter,) = plant.dead_letters(feet).collect()
    assert letter["errors"][0]["code"] == "E751"


def test_columns_become_events(spark: SparkSession, tmp_path: Path) -> None:
    """Of a table of any origin: wider numbers are cast, structs matched by name, defaults filled in."""
    every = project(spark, tmp_path)
    rows = [
        ("good", True, 7, 1.5, [(1.0, 2.0)], "gate/4", 0),
        ("infinite", True, 7, float("inf"), [(1.0, 2.0)], "gate/4", 0),
        ("no number", True, 7, float("nan"), [(1.0, 2.0)], "gate/4", 0),
        ("null", None, 7, 1.5, [(1.0, 2.0)], "gate/4", 0),
        ("no place", True, 7, 1.5, None, "gate/4", 0),
        ("inner", True, 7, 1.5, [(1.0, None), None], "gate/4", 0),
        ("future", True, 7, 1.5, [(1.0, 2.0)], "gate/4", 5_000),
    ]
    schema = "text string, FLAG boolean, small smallint, r float, places array<struct<x: float, y: double>>"
    schema += ", source string, days int"
    table = spark.createDataFrame(rows, schema)
    decoded = every.decode(
        table,
        "Everything",
        attributes={
            "large": "small * 2L",
            "real": "r",
            "raw": "CAST('ab' AS BINARY)",
            "day": "DATE'2026-11-01'",
            "at": "TIMESTAMP'2026-11-01 08:30:00'",
            "took": "1500000L",
            "price": "CAST(12.5 AS DECIMAL(8,1))",
        },
        time="timestampadd(DAY, days, TIMESTAMP'2026-11-01 08:30:00')",
        id="concat('id-', text)",
    )
    found = {row["text"]: row for row in decoded.toArrow().to_pylist()}
    good = found["good"]
    assert good["failure"] is None
    assert good["event"]["id"] == "id-good"
    assert good["event"]["client"] == "gate"
    assert {name: good["data"][name] for name in ("small", "large", "took", "level", "where")} == {
        "small": 7,
        "large": 14,
        "took": 1_500_000,
        "level": 3,
        "where": None,
    }
    assert good["data"]["places"][0]["x"] == 1.0
    assert good["data"]["places"][0]["$type"] is None
    # Spark says that a row fails; why is worked out for those who look at dead letters.
    assert found["null"]["failure"]["errors"][0]["code"] == "E752"
    letters = {
        row["text"]: [f"{each['code']} {each['path']}" for each in row["errors"]]
        for row in every.dead_letters(decoded).collect()
    }
    assert letters == {
        "infinite": ["INT703 real"],
        "no number": ["INT703 real"],
        "null": ["INT707 flag"],
        "no place": ["INT707 places"],
        "inner": ["INT707 places[0].y"],
        "future": ["E703 "],
    }
    assert decoded.where("failure IS NULL").count() == 1


def test_a_row_without_an_id_gets_one_that_stays(spark: SparkSession, tmp_path: Path) -> None:
    every = project(spark, tmp_path)
    text = json.dumps({"specversion": "1.0", "source": "gate", "type": "Other", "data": {"text": "x"}})
    frame = spark.createDataFrame([(text,)], "value string")
    ids = {row["event"]["id"] for _ in range(2) for row in every.decode(frame, "Other").collect()}
    assert len(ids) == 1
    columns = spark.createDataFrame([("x", NOW), ("y", NOW)], "text string, time timestamp")
    named = every.decode(columns, "Other", source="'gate'")
    assert len({row["event"]["id"] for _ in range(2) for row in named.collect()}) == 2


def test_what_the_project_or_the_dataframe_lacks_is_said(spark: SparkSession, tmp_path: Path) -> None:
    from situ.spark import Project

    every = project(spark, tmp_path / "all")
    texts = spark.createDataFrame([("x", 1)], "value string, n int")
    columns = spark.createDataFrame([("x", 1)], "text string, n int")
    plain = every.decode(texts, "Other")
    for ask, code, hint in [
        (lambda: every.decode(texts, "Everythin"), "N154", "Everything"),
        (lambda: every.decode(texts, "Other", context="us"), "N154", "root"),
        (lambda: every.decode(texts, "Other", value="valu"), "N152", "value"),
        (lambda: every.decode(texts, "Other", value="n"), "N153", "Cast"),
        (lambda: every.decode(columns, "Other"), "N152", "time="),
        (lambda: every.decode(columns, "Other", time="now()"), "N152", "source="),
        (lambda: every.decode(columns, "Everything", time="now()", source="'x'"), "N152", "attributes"),
        (lambda: every.decode(columns, "Other", attributes={"texd": "n"}, time="now()", source="'x'"), "N152", "text"),
        (lambda: every.decode(columns, "Other", attributes={"text": "n"}, time="now()", source="'x'"), "N153", "Cast"),
        (lambda: every.interpret(columns), "N151", "decode"),
        (lambda: every.interpret(plain.select("event", "failure", "n")), "N151", "decode"),
        (lambda: every.dead_letters(columns), "N151", "decode"),
        (lambda: every.interpret(plain, to="us"), "N154", "root"),
        (lambda: every.interpret(plain, to="odd"), "N154", "Everything"),
        (lambda: every.interpret(every.decode(texts, "Other", context="odd")), "INT", ""),
    ]:
        with pytest.raises(SituError) as refused:
            ask()
        assert refused.value.code.startswith(code), refused.value
        assert hint in refused.value.hint, refused.value.hint
    with pytest.raises(SituError) as refused:
        Project(
            spark, write(tmp_path / "wrong", {"situ.yaml": "name: wrong\n", "types/t.yaml": "events: {A: {x: ints}}\n"})
        )
    assert refused.value.code.startswith("INT")
    with pytest.raises(SituError, match="P101"):
        Project(spark, tmp_path / "nowhere")


def test_a_session_of_another_time_zone_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    with pytest.raises(SituError) as refused:
        project(other, tmp_path)
    assert refused.value.code == "N157"
    other.conf.set("spark.sql.session.timeZone", "Etc/UTC")
    assert project(other, tmp_path).deployment.types.event("Other") is not None


def test_lookups_say_what_is_missing(spark: SparkSession) -> None:
    """Of the example: faces and cameras are looked up in tables."""
    from situ.spark import Project

    plant = Project(spark, EXAMPLE)
    seen = {"camera": "camera-1", "face": "face-c86da", "polar": {"r": 10.0, "theta": 5.0}}
    rows = [(event(data, type="FaceSeen", source="camera-1"),) for data in (seen, {**seen, "camera": "camera-9"})]
    cameras = plant.decode(spark.createDataFrame(rows, "value string"), "FaceSeen", context="cameras")
    assert [step.form for step in plant.steps(cameras)] == ["catalyst"]
    root = plant.interpret(cameras)
    assert [step.form for step in plant.steps(root, to="us")] == ["catalyst"]
    good, bad = sorted(root.collect(), key=lambda row: row["failure"] is not None)
    assert (good["event"]["type"], good["data"]["who"]) == ("Sighting", "p01")
    assert good["data"]["at"]["x"] == pytest.approx(3.0364014397836403)
    assert bad["data"] is None
    (letter,) = plant.dead_letters(plant.interpret(root, to="us")).collect()
    assert letter["errors"][0]["code"] == "INT705"
    assert "'camera-9'" in letter["errors"][0]["message"]
    # From one context straight into another leads over root.
    feet = plant.interpret(cameras, to="us").where("failure IS NULL").collect()
    assert [row["event"]["type"] for row in feet] == ["PersonLocated"]
