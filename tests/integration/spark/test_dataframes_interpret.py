"""DataFrames in the terms of other contexts: what engines make of each event, as a batch and as a stream."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from situ.contexts.transform.transformation import transformations
from situ.lang.problems import Problems, SituError
from situ.lang.records import replace
from tests.dataframes import Converted, judge, project_of, streamed
from tests.project_files import write
from tests.transformations import generated_case, make_attributes, make_struct
from tests.unit.contexts.test_resolve_rules import ROWS
from tests.volume import cases
from tests.worked_examples import Example, competing, logistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVENTS = 6


def worked(spark: SparkSession, examples: Iterator[Example]) -> list[Converted]:
    return [
        Converted(each.name, project_of(spark, each.context), each.made, each.context.id, [each.data] * 2)
        for each in examples
    ]


def test_the_worked_examples(spark: SparkSession, tmp_path: Path) -> None:
    """Four contexts of logistics, and rules that compete for one place."""
    found = worked(spark, (*logistics(), *map(competing, ROWS)))
    assert judge(spark, found) == 2 * (10 + 26)
    assert {step.form for each in found[:10] for step in _steps(spark, each)} == {"catalyst"}
    assert judge(spark, found[::4], tmp_path) == 2 * 9


def _steps(spark: SparkSession, each: Converted) -> list[object]:
    from situ.spark.dataframes.interpret import frame_step

    return [frame_step(each.way, each.kind, each.to)]


def generated(spark: SparkSession, count: int, start: int = 0) -> list[Converted]:
    """So many of generated contexts, each with events of which some fail."""
    found: list[Converted] = []
    seed = start
    while len(found) < count:
        seed += 1
        case = generated_case(seed)
        if case is None:
            continue
        names = {event.name for event in case.events}
        project = project_of(spark, case.context)
        for name, made in transformations(case.context, case.direction, Problems()).items():
            if name in names and not made.externals:
                dice = random.Random(seed)
                makes = [make_struct if dice.random() < 0.2 else make_attributes for _ in range(EVENTS)]
                events = [make(dice, made.source, made.types) for make in makes]
                with suppress(SituError):  # what Spark cannot compute is not on DataFrames
                    each = Converted(f"d{seed}_{name}", project, made, case.context.id, events)
                    if each.way.execution == "native":
                        found.append(each)
    return found[:count]


@cases(8, 300)
def test_generated_contexts(spark: SparkSession, tmp_path: Path, cases: int) -> None:
    found = generated(spark, cases)
    assert judge(spark, found) == cases * EVENTS
    part = found if cases > 100 else found[:5]
    assert judge(spark, part, tmp_path) == len(part) * EVENTS


# ── rows of tables ──

TABLES = {
    "situ.yaml": "name: tables\n",
    "types/t.yaml": """\
        types: {Tag(string): {}, Owner(string): {}, Door: {nr: long, day: date, ok: optional boolean}}
        events:
          Seen: {badge: optional Tag, again: Tag, room: Tag, door: Door, back: Door, n: int}
        """,
    "sources/s.yaml": """\
        pull:
          badges: {csv: badges.csv, columns: {tag: string, owner: optional string}, key: tag}
          owners:
            csv: owners.csv
            columns: {id: string, room: double, tags: "optional [string]", at: optional Point m}
            key: id
          doors:
            csv: doors.csv
            columns: {nr: long, day: date, ok: optional boolean, name: optional string}
            key: [nr, day, ok]
        """,
    "badges.csv": "tag,owner\nb1,p1\nb3,\n",
    "owners.csv": 'id,room,tags,at\np1,7.5,"[""a"",""b""]","{""x"":1.5,""y"":2.0}"\np2,8,,\np3,0,[],\n',
    "doors.csv": "nr,day,ok,name\n1,2026-01-01,true,north\n1,2026-01-02,true,south\n1,2026-01-01,false,\n"
    "1,2026-01-01,,nowhere\n",
    "contexts/c.yaml": """\
        context: owners
        types: {Place: {name: string, tags: "optional [string]", at: optional Point m, n: double}}
        events:
          Seen: {badge: optional Owner, again: optional Owner, room: Owner, door: string, back: optional Place, n: int}
        maps: [{out: Seen -> Seen}]
        rules:
          out: [Tag -> owner, Seen.again -> owner_or_null, Seen.room -> owner_or_none, Door -> name, Seen.back -> place]
        functions:
          owner:
            signature: Tag -> Owner
            lookup: {row: {source: badges, key: {tag: value}}}
            expr: coalesce(row.owner, 'nobody')
          owner_or_null:
            signature: Tag -> Owner
            lookup: {row: {source: badges, key: {tag: value}}}
            expr: coalesce(row.owner, 'nobody')
            missing: null
          owner_or_none:
            signature: Tag -> Owner
            lookup: {row: {source: badges, key: {tag: "'b' || value"}}}
            expr: coalesce(row.owner, 'nobody')
            missing: {default: none}
          name:
            signature: Door -> string
            lookup: {row: {source: doors, key: {nr: value.nr % (value.nr - 1) + 1, day: value.day, ok: value.ok}}}
            expr: coalesce(row.name, 'unnamed')
          place:
            signature: Door -> Place
            lookup:
              row: {source: doors, key: {nr: value.nr, day: value.day, ok: value.ok}}
              owner: {source: owners, key: {id: "'p' || event.id"}}
            missing: null
            expr: >
              struct(coalesce(row.name, 'unnamed') AS name, owner.tags AS tags, owner.at AS at, 1.5 / owner.room AS n)
        """,
}
SEEN = (
    "id STRING, badge STRING, again STRING, room STRING, door STRUCT<nr: BIGINT, day: DATE, ok: BOOLEAN>, "
    "back STRUCT<nr: BIGINT, day: DATE, ok: BOOLEAN>, n INT, _row STRING"
)


def _seen(dice: random.Random, number: int) -> tuple[object, ...]:
    def door() -> tuple[object, ...]:
        return (
            dice.choice((1, 2, 2, 2, 3)),
            dt.date(2026, 1, dice.choice((1, 1, 2))),
            dice.choice((True, True, False, None)),
        )

    badge, again = (dice.choice(("b1", "b1", "b3", None)), dice.choice(("b1", "b3", "b7")))
    return dice.choice("1123x"), badge, again, dice.choice("139"), door(), door(), number, "of the user"


def test_rows_of_tables_are_joined(spark: SparkSession, tmp_path: Path) -> None:
    """What functions look up comes to the same by joins of Spark as by the converters of engines."""
    from situ.spark import Project
    from situ.spark.dataframes.interpret import interpret_frame

    project = Project(spark, write(tmp_path / "project", TABLES))
    dice = random.Random(3)
    rows = spark.createDataFrame([_seen(dice, number) for number in range(300)], SEEN)
    rows.write.parquet(str(tmp_path / "rows"))
    stream = spark.readStream.schema(SEEN).parquet(str(tmp_path / "rows"))

    def decoded(frame: DataFrame) -> DataFrame:
        return project.decode(frame, "Seen", attributes={}, time="timestamp'2026-01-05 00:00:00'", source="'gate'")

    (step,) = project.steps(decoded(rows), to="owners")
    assert step.form == "catalyst"
    assert len(step.joins) == 6
    over_arrow = replace(step, sql=None, joins={})
    made = interpret_frame(decoded(rows), over_arrow, project._terms, project._table)
    wanted = sorted(map(_shown, made.toArrow().to_pylist()))
    assert 50 < sum(failed for _, _, failed in wanted) < 250, "some fail and some do not"
    joined = project.interpret(decoded(rows), to="owners")
    assert joined.columns == made.columns
    assert sorted(map(_shown, joined.toArrow().to_pylist())) == wanted
    found = streamed(project.interpret(decoded(stream), to="owners"), tmp_path)
    assert sorted(map(_shown, found)) == wanted
    letters = project.dead_letters(joined).collect()
    assert {each["errors"][0]["code"] for each in letters} == {"INT704", "INT705"}


def _shown(row: Mapping[str, Any]) -> tuple[str, str, bool]:
    """A row, but for how the form that it took says that it failed."""
    return row["event"]["id"], repr((row["data"], row["_row"])), row["failure"] is not None
