"""Subscriptions and scopes as columns: which rows engines would deliver, many cases in one query."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from situ.lang.problems import SituError
from situ.lang.types.arrow_schema import arrow_type
from situ.lang.types.data_column import DataColumn
from situ.model import Deployment
from situ.project.check import check_folder
from situ.routing.model import Advertisement, ClientDeclaration, Subscription
from situ.scopes import filter_sets
from situ.spark.dataframes.frame import EventFrame
from situ.spark.dataframes.worker import ENVELOPE, FAILURE, event_rows
from situ.stages.plan import Plan, compile_plan
from situ.stages.stamp import stamp
from tests.dataframes import envelope, streamed
from tests.oracles.visibility import visible
from tests.project_files import write
from tests.scopes import TYPES, World, worlds
from tests.volume import cases

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from situ.spark import Project

EXAMPLE = Path(__file__).parents[3] / "examples" / "smart-building"


# ── scopes: what the three rules say ──────────────────────────────────────────────────────────────


def deployment_of(world: World) -> Deployment:
    """A publisher for each set of tags that is advertised, a subscriber for each that is asked for."""
    everything = tuple(sorted(TYPES.events))
    ads = {f"p{n}": tags for n, tags in enumerate(world.ads)}
    subs = {f"s{n}": tags for n, tags in enumerate(world.subs)}
    return Deployment(
        types=TYPES,
        scopes=world.graph,
        clients={name: ClientDeclaration(name=name) for name in (*ads, *subs)},
        advertisements={
            f"{name}/{type}": Advertisement(client=name, name=type, type=type, scopes=tags)
            for name, tags in ads.items()
            for type in everything
        },
        subscriptions={
            f"{name}/all": Subscription(client=name, name="all", types=everything, scopes=tags)
            for name, tags in subs.items()
        },
    )


def judge_worlds(spark: SparkSession, count: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All cases of some worlds, a query for each type of event; every third world has families that are nested."""
    texts: dict[str, list[tuple[tuple[int, int], str]]] = {name: [] for name in TYPES.events}
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TYPES.events}
    expected: set[tuple[int, int]] = set()
    for world in worlds(count, start=0):
        with monkeypatch.context() as patch:
            if world.seed % 3 == 0:
                patch.setattr(filter_sets, "MOST_SETS", 1)
            project = _project(spark, deployment_of(world))
        for number, (ad, sub, event) in enumerate(world.cases):
            client, asked = f"p{world.ads.index(ad)}", f"s{world.subs.index(sub)}/all"
            about = {**envelope(event.type, "root", client=client, ad=f"{client}/{event.type}"), **event.envelope}
            rows[event.type].append({"n": (world.seed, number), "event": about, "data": dict(event.data)})
            texts[event.type].append(((world.seed, number), _text(project, asked, event.type)))
            if visible(world.graph, event, ad, sub):
                expected.add((world.seed, number))
    total = sum(map(len, rows.values()))
    found: set[tuple[int, int]] = set()
    for type, some in rows.items():
        found |= _seen(spark, type, some, dict(texts[type]), folder / type)
    assert found == expected
    assert total >= count
    assert 0.15 < len(expected) / total < 0.85


def _seen(
    spark: SparkSession, type: str, rows: Sequence[dict[str, Any]], texts: dict[Any, str], folder: Path
) -> set[Any]:
    """Each row is asked its own question: whether it is visible to the subscription of its case."""
    frame = _frame(spark, EventFrame(type=type), rows)
    found: set[Any] = set()
    keys = list(texts)
    for start in range(0, len(keys), 60):
        some = keys[start : start + 60]
        arms = " ".join(f"WHEN world = {key[0]} AND number = {key[1]} THEN {texts[key]}" for key in some)
        chosen = frame.where(f"CASE {arms} ELSE FALSE END")
        found |= {(row["world"], row["number"]) for row in chosen.select("world", "number").collect()}
    return found


def _text(project: Project, asked: str, type: str) -> str:
    from situ.spark.dataframes.conditions import visible_text

    declared = project.deployment.subscriptions[asked]
    event = project.deployment.types.event(type)
    assert event is not None
    return visible_text(project._plan, declared.scopes, event)


def _project(spark: SparkSession, deployment: Deployment) -> Project:
    from situ.spark import Project

    return Project.of(spark, deployment)


def _frame(spark: SparkSession, kind: EventFrame, rows: Sequence[dict[str, Any]]) -> DataFrame:
    struct = TYPES.event(kind.type)
    assert struct is not None
    table = pa.table(
        {
            "world": pa.array([row["n"][0] for row in rows]),
            "number": pa.array([row["n"][1] for row in rows]),
            "event": pa.array([row["event"] for row in rows], ENVELOPE),
            "data": pa.array([row["data"] for row in rows], arrow_type(struct, TYPES)),
            "failure": pa.nulls(len(rows), FAILURE),
        }
    )
    return kind.put_on(spark.createDataFrame(table).coalesce(1))


@cases(75, 3_000)
def test_scopes_say_what_the_rules_say(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cases: int
) -> None:
    judge_worlds(spark, cases, tmp_path, monkeypatch)


# ── a project: who gets what ──────────────────────────────────────────────────────────────────────


def sightings(dice: random.Random, count: int) -> Iterator[dict[str, Any]]:
    clients = ["camera-1", "camera-4", "reader-6", "reader-9", "stranger"]
    for number in range(count):
        client = dice.choice(clients)
        ad = dice.choice([None, None, f"{client}/seen", "camera-1/seen", "camera-1/none"])
        yield {
            "n": number,
            "event": envelope("Sighting", "root", id=f"e{number}", source=client, client=client, ad=ad),
            "data": {"who": "p01", "at": {"x": dice.uniform(0, 20), "y": dice.uniform(0, 14)}},
        }


def wanted(plan: Plan, rows: Sequence[dict[str, Any]], subscription: str) -> tuple[set[int], set[int]]:
    """What an engine finds: those that a subscription asks for, and those that are visible to it."""
    struct = plan.deployment.types.event("Sighting")
    assert struct is not None
    assert plan.seeing is not None
    column = DataColumn(struct, plan.deployment.types)
    texts = column.texts(pa.array([row["data"] for row in rows], column.arrow))
    made = [row for row in event_rows(pa.array([each["event"] for each in rows], ENVELOPE), texts, 0) if row]
    matched = {row.pos - 1 for row in made if plan.routing.matches(subscription, row)}
    good, _ = stamp(list[Any](made), plan)
    tags = plan.deployment.subscriptions[subscription].scopes
    seen = {row.pos - 1 for row in good if plan.seeing.sees(plan.seeing.look(row), tags)}
    return matched, seen


SUBSCRIPTIONS = (
    "desk/arrivals",
    "us-desk/lobby",
    "security/at-racks",
    "control-room/all",
    "aurora/all",
    "cleaners/all",
)


def test_every_subscription_gets_what_engines_give_it(spark: SparkSession, tmp_path: Path) -> None:
    from situ.spark import Project

    plant = Project(spark, EXAMPLE)
    checked = check_folder(EXAMPLE).deployment
    assert checked is not None
    plan = compile_plan(checked)
    rows = list(sightings(random.Random(7), 300))
    struct = plan.deployment.types.event("Sighting")
    assert struct is not None
    table = pa.table(
        {
            "n": pa.array([row["n"] for row in rows]),
            "event": pa.array([row["event"] for row in rows], ENVELOPE),
            "data": pa.array([row["data"] for row in rows], arrow_type(struct, plan.deployment.types)),
            "failure": pa.nulls(len(rows), FAILURE),
        }
    )
    root = EventFrame(type="Sighting").put_on(spark.createDataFrame(table).coalesce(1))
    asked = {name: (plant.matches(name, of=root), plant.visible(name, of=root)) for name in SUBSCRIPTIONS}

    def chosen(frame: DataFrame) -> DataFrame:
        return frame.select(
            "n",
            *(
                column.alias(f"{name}:{kind}")
                for name, both in asked.items()
                for kind, column in zip("mv", both, strict=True)
            ),
        )

    root.write.parquet(str(tmp_path / "given"))
    stream = EventFrame(type="Sighting").put_on(spark.readStream.schema(root.schema).parquet(str(tmp_path / "given")))
    for records in (chosen(root).toArrow().to_pylist(), streamed(chosen(stream), tmp_path)):
        for name in SUBSCRIPTIONS:
            matched, seen = wanted(plan, rows, name)
            assert {each["n"] for each in records if each[f"{name}:m"]} == matched, name
            assert {each["n"] for each in records if each[f"{name}:v"]} == seen, name
            assert name == "cleaners/all" or 0 < len(seen) < len(rows)
    # The type need not be said where a subscription asks for one.
    assert root.where(plant.matches("us-desk/lobby")).count() == len(wanted(plan, rows, "us-desk/lobby")[0])


def test_without_scopes_everything_is_visible(spark: SparkSession, tmp_path: Path) -> None:
    from situ.spark import Project

    files = {
        "situ.yaml": "name: plain\n",
        "types/t.yaml": "events:\n  Said: {what: string}\n",
        "clients/c.yaml": "clients:\n  desk: {subscriptions: {all: {types: [Said], where: \"what <> 'x'\"}}}\n",
    }
    plain = Project(spark, write(tmp_path, files))
    given = spark.createDataFrame([("a",), ("x",), (None,)], "what string")
    root = plain.decode(given, "Said", time="current_timestamp()", source="'desk'")
    assert [row["what"] for row in root.where(plain.visible("desk/all")).collect()] == ["a", "x"]
    assert [row["what"] for row in root.where(plain.matches("desk/all")).collect()] == ["a"]


def test_what_the_project_does_not_have_is_said(spark: SparkSession) -> None:
    from situ.spark import Project

    plant = Project(spark, EXAMPLE)
    for ask, code, hint in [
        (lambda: plant.matches("us-desk/loby"), "N154", "us-desk/lobby"),
        (lambda: plant.visible("nobody/x"), "N154", "It has"),
        (lambda: plant.matches("aurora/all"), "N155", "of=df"),
        (lambda: plant.matches("aurora/all", of="Sightin"), "N154", "Sighting"),
        (lambda: plant.matches("aurora/all", of=spark.range(1)), "N151", "decode"),
    ]:
        with pytest.raises(SituError) as refused:
            ask()
        assert refused.value.code == code
        assert hint in refused.value.hint


def test_rows_that_failed_match_nothing(spark: SparkSession) -> None:
    from situ.spark import Project

    plant = Project(spark, EXAMPLE)
    bad = plant.decode(spark.createDataFrame([("{}",)], "value string"), "Sighting")
    assert bad.where(plant.matches("us-desk/lobby")).count() == 0
    assert bad.where(plant.visible("aurora/all", of=bad)).count() == 0
    assert bad.count() == 1


def test_filters_that_only_python_can_decide_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    from situ.spark import Project

    files = {
        "situ.yaml": "name: told\n",
        "types/t.yaml": "events:\n  Said: {what: string, who: string}\n",
        "sources/s.yaml": "pull:\n  names: {csv: names.csv, columns: {id: string, name: string}, key: id}\n",
        "names.csv": "id,name\n1,Ada\n",
        "contexts/named.yaml": """\
            context: named
            types: {Name(string): {}}
            events: {Heard: {what: string, who: Name}}
            maps: [{out: Said -> Heard, attributes: {who: who}}]
            rules: ["string -> named"]
            functions:
              named: {signature: string -> Name, lookup: {row: {source: names, key: {id: value}}}, value: row.name}
            """,
        "clients/c.yaml": """\
            clients:
              desk:
                context: named
                subscriptions: {ada: {types: [Heard], where: "who = 'Ada'"}, all: {types: [Heard]}}
            """,
    }
    checked = check_folder(write(tmp_path, files))
    if checked.deployment is None:
        pytest.fail(str([str(each) for each in checked.problems]))
    told = Project(spark, tmp_path)
    with pytest.raises(SituError) as refused:
        told.matches("desk/ada")
    assert refused.value.code == "N156"
    assert told.matches("desk/all") is not None
