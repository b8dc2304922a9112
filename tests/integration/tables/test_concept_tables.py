"""Instances of concepts from real tables: persons in PostgreSQL, SQLite or CSV, rooms in XML; fresh, aged, refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from situ.lang.problems import Problems, SituError
from situ.model import Deployment
from situ.policies.check.policy import check_policy
from situ.policies.language.parse import parse_policy
from situ.policies.model import Policy
from situ.policies.source_coverage import attributes_needed
from situ.project.check import check_folder
from situ.stages.detect.detection_plan import InstanceTables
from situ.tables.cache import TablesInUse, open_tables
from tests.domains import UNACCOMPANIED_GUEST
from tests.postgresql import PostgresqlServer
from tests.project_files import MINIMAL, write

EXAMPLE = Path(__file__).parents[3] / "examples" / "smart-building"
FLOOR = '<floor id="ground"><room id="lab" security="restricted"><box x1="8" y1="9" x2="16" y2="15"/></room></floor>'
PERSONS = [("p1", "guest"), ("p2", "employee")]
MADE = (
    "CREATE TABLE persons (nr text PRIMARY KEY, role text)",
    "INSERT INTO persons VALUES ('p1', 'guest'), ('p2', 'employee')",
)


def files(persons: str) -> dict[str, str]:
    return {
        **MINIMAL,
        "types/a.yaml": "events: {Sighting: {who: string, at: Point m}}\n",
        "ontology.yaml": (EXAMPLE / "ontology.yaml")
        .read_text()
        .replace("PersonId", "string")
        .replace("RoomId", "string"),
        "sources/a.yaml": f"""
            pull:
              persons:
                {{{persons}, columns: {{nr: string, role: string}}, key: nr, concept: person,
                 attributes: {{status: role}}}}
              rooms:
                {{xml: floor.xml, rows: //room, key: id, concept: room,
                 columns: {{id: string, security: string, area: {{type: Box m, xpath: box}}}}}}
            push: {{seen: {{event: Sighting, concept: person, id: who, attribute: position, value: at}}}}
            """,
        "floor.xml": FLOOR,
    }


POLICY = UNACCOMPANIED_GUEST.replace("raise alarm", "log that")


def policy_in(deployment: Deployment, text: str = POLICY) -> Policy:
    problems = Problems()
    found = check_policy(parse_policy(text, "p.dpl"), deployment.domain, problems, name="p")
    assert found is not None, "\n".join(map(str, problems))
    return found


def prepare(folder: Path, persons: str) -> tuple[Deployment, InstanceTables]:
    checked = check_folder(write(folder, files(persons)))
    assert checked.deployment is not None, "\n".join(map(str, checked.problems))
    deployment = checked.deployment
    return deployment, InstanceTables(attributes_needed(policy_in(deployment)), deployment.ontology, deployment.sources)


LAB = {"id": "lab", "security": "restricted", "area": {"x1": 8.0, "y1": 9.0, "x2": 16.0, "y2": 15.0}}
KNOWN = {
    "person": {"p1": {"id": "p1", "status": "guest"}, "p2": {"id": "p2", "status": "employee"}},
    "room": {"lab": LAB},
}


@pytest.fixture(scope="module")
def postgresql(postgresql_server: PostgresqlServer) -> str:
    """The URL of a database."""
    return postgresql_server.new_database()


Run = Callable[..., None]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Run]:
    """How a source names a database, and what runs statements in it."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'people.db'}"

        def run(*statements: str) -> None:
            with sqlite3.connect(tmp_path / "people.db") as connection:
                for statement in statements:
                    connection.execute(statement)

    else:
        url = request.getfixturevalue("postgresql")

        def run(*statements: str) -> None:
            with psycopg.connect(url, autocommit=True) as connection:
                for statement in statements:
                    connection.execute(statement)  # type: ignore[call-overload]

        run("DROP TABLE IF EXISTS persons")
    monkeypatch.setenv("PEOPLE_DB", url)
    run(*MADE)
    return "sql: persons, url: '${PEOPLE_DB}'", run


def plain(instances: Any) -> dict[str, Any]:
    return {concept: {each: dict(known) for each, known in of.items()} for concept, of in instances.items()}


def test_the_same_from_both_databases(tmp_path: Path, database: tuple[str, Run]) -> None:
    deployment, instances = prepare(tmp_path / "p", database[0])
    with open_tables(deployment.sources, tmp_path / "p", keyed=instances.keyed) as tables:
        assert plain(instances.of(tables.snapshot)) == KNOWN


def test_every_refresh_is_fresh_and_what_did_not_change_is_the_same(tmp_path: Path, database: tuple[str, Run]) -> None:
    deployment, instances = prepare(tmp_path / "p", database[0])
    with TablesInUse(tmp_path / "p") as tables:
        before = instances.of(tables.use(deployment.sources, instances.keyed))
        tables.refresh()
        same = instances.of(tables.snapshot)
        assert all(same[concept] is before[concept] for concept in before)
        database[1](
            "UPDATE persons SET role = 'employee' WHERE nr = 'p1'", "INSERT INTO persons VALUES ('p3', 'guest')"
        )
        tables.refresh()
        after = instances.of(tables.snapshot)
        assert {each: known["status"] for each, known in after["person"].items()} == {
            "p1": "employee",
            "p2": "employee",
            "p3": "guest",
        }
        assert after["room"] is before["room"]


def test_a_source_that_is_down_stays_as_it_was_and_says_how_old_it_is(
    tmp_path: Path, database: tuple[str, Run]
) -> None:
    deployment, instances = prepare(tmp_path / "p", database[0])
    with TablesInUse(tmp_path / "p") as tables:
        before = instances.of(tables.use(deployment.sources, instances.keyed))
        database[1]("ALTER TABLE persons RENAME TO gone")
        (told,) = tables.refresh()
        assert "S201 The source `persons` cannot be read again; what was read " in told
        assert tables.problems == (told,)
        assert instances.of(tables.snapshot)["person"] is before["person"]


def test_a_source_that_was_never_read_is_waited_for(tmp_path: Path, database: tuple[str, Run]) -> None:
    database[1]("ALTER TABLE persons RENAME TO later")
    deployment, instances = prepare(tmp_path / "p", database[0])
    with TablesInUse(tmp_path / "p") as tables:
        with pytest.raises(SituError, match="S111"):
            tables.use(deployment.sources, instances.keyed)
        database[1]("ALTER TABLE later RENAME TO persons")
        assert plain(instances.of(tables.use(deployment.sources, instances.keyed))) == KNOWN


def test_an_instance_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    deployment, instances = prepare(tmp_path, "csv: people.csv")
    write(tmp_path, {"people.csv": "nr,role\np1,guest\np2,employee\np1,employee\n"})
    with TablesInUse(tmp_path) as tables:
        with pytest.raises(SituError) as caught:
            tables.use(deployment.sources, instances.keyed)
        assert "S113 Rows 1 and 3 of the source `persons` both have nr `p1`." in str(caught.value)
        write(tmp_path, {"people.csv": "nr,role\np1,guest\np2,employee\n"})
        before = instances.of(tables.use(deployment.sources, instances.keyed))
        assert plain(before) == KNOWN
        write(tmp_path, {"people.csv": "nr,role\np1,guest\np2,employee\np1,employee\n"})
        (told,) = tables.refresh()
        assert "both have nr `p1`" in told
        assert instances.of(tables.snapshot)["person"] is before["person"]


def test_the_example(tmp_path: Path) -> None:
    checked = check_folder(EXAMPLE, {})
    deployment = checked.deployment
    assert deployment is not None, "\n".join(map(str, checked.problems))
    text = POLICY.replace("  room   R", "  floor F\n  room   R").replace(
        "  A is inside R", "  A is inside R\n  R is part of F"
    )
    instances = InstanceTables(attributes_needed(policy_in(deployment, text)), deployment.ontology, deployment.sources)
    assert instances.cover.tables == {"persons", "rooms"}
    with open_tables(
        {name: deployment.sources[name] for name in instances.cover.tables}, EXAMPLE, keyed=instances.keyed
    ) as tables:
        found = instances.of(tables.snapshot)
    assert found["person"]["p04"] == {"id": "p04", "name": "Oskar Lindqvist", "status": "guest", "host": "p01"}
    assert found["room"]["lab"] == {**LAB, "floor": "ground"}
    assert len(found["room"]) == 9
