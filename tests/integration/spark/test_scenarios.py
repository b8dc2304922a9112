"""The two scenarios on Spark, from what sensors say to what people are told, with tables in databases.

Readers tell of tags, so many centimetres from where they hang; cameras of faces, so many feet away at an angle; rooms
are in an XML floor plan, people in PostgreSQL and SQLite. A database goes away in the middle, and comes back.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from situ.registry.snapshots import TROUBLES
from situ.spark.engine import SparkEngine
from tests.integration.spark.test_detection import running, told, wait_for
from tests.postgresql import PostgresqlServer
from tests.zone import Zone, event, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[3] / "examples"
PARTS = (
    "actions.yaml",
    "ontology.yaml",
    "scopes.yaml",
    "types/*",
    "functions/*",
    "contexts/*",
    "data/*",
    "policies/*.dpl",
    "clients/*",
)


def files_of(example: str, sources: Callable[[str], str]) -> dict[str, Any]:
    """An example as a zone takes it, with other sources."""
    folder = EXAMPLES / example
    more = {
        str(file.relative_to(folder)): file.read_text(encoding="utf-8")
        for part in PARTS
        for file in sorted(folder.glob(part))
    }
    (declared,) = (folder / "sources").iterdir()
    more[f"sources/{declared.name}"] = sources(declared.read_text(encoding="utf-8"))
    return {"types": "version: 1\n", "more": {**more, "clients/all.yaml": ""}}


def rows_of(example: str, file: str) -> list[dict[str, str]]:
    with (EXAMPLES / example / "data" / file).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def store(execute: Callable[..., object], table: str, rows: list[dict[str, str]], mark: str) -> None:
    """A table with these rows; what is empty is null."""
    names = list(rows[0])
    execute(f"CREATE TABLE {table} ({', '.join(f'{name} text' for name in names)})")
    for row in rows:
        marks = ", ".join([mark] * len(names))
        execute(f"INSERT INTO {table} VALUES ({marks})", [row[name] or None for name in names])


def sqlite(file: Path, table: str, rows: list[dict[str, str]]) -> str:
    with sqlite3.connect(file) as connection:
        store(connection.execute, table, rows, "?")
    return f"sqlite:///{file}"


class People:
    """A database of PostgreSQL that nobody gets into for a while."""

    def __init__(self, server: PostgresqlServer) -> None:
        self._server = server
        self.url = server.make_database("people")

    def run(self, *statement: Any) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(*statement)

    def go_away(self) -> None:
        self._server.psql("ALTER DATABASE people ALLOW_CONNECTIONS false")
        self._server.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'people'")

    def come_back(self) -> None:
        self._server.psql("ALTER DATABASE people ALLOW_CONNECTIONS true")


@pytest.fixture
def people(postgresql_server: PostgresqlServer) -> People:
    found = People(postgresql_server)
    store(found.run, "people", rows_of("smart-building", "people.csv"), "%s")
    return found


class Sensors:
    """What readers and cameras say of persons at a place of the building, each in its own terms."""

    def __init__(self, at: Zone, start: datetime) -> None:
        self._at, self._start, self._number = at, start, 0
        self._persons = {row["id"]: row for row in rows_of("smart-building", "people.csv")}
        sensors = rows_of("smart-building", "readers.csv") + rows_of("smart-building", "cameras.csv")
        self._mounts = {row["id"]: tuple(float(row[name]) for name in ("x", "y", "heading")) for row in sensors}

    def read(self, second: float, sensor: str, who: str, x: float, y: float) -> None:
        left, below, heading = self._mounts[sensor]
        east, north = x - left, y - below
        angle = math.atan2(north, east) - math.radians(heading)
        distance, person = math.hypot(east, north), self._persons[who]
        if sensor.startswith("reader"):
            place = {"dx": 100 * distance * math.cos(angle), "dy": 100 * distance * math.sin(angle)}
            type, data = "TagSeen", {"reader": sensor, "tag": person["tag"], "cartesian": place}
        else:
            polar = {"r": distance / 0.3048, "theta": math.degrees(angle)}
            type, data = "FaceSeen", {"camera": sensor, "face": person["face"], "polar": polar}
        self._number += 1
        time = (self._start + timedelta(seconds=second)).isoformat()
        self._at.send(sensor, [event(f"e{self._number}", type, data, time=time)])

    def settle(self, engine: SparkEngine) -> None:
        """Wait until all of it is in the log: what comes next must not overtake it."""
        wait_for(lambda: sum(row.type == "Sighting" for row in self._at.root()) == self._number, engine)


def troubles(at: Zone) -> dict[str, list[str]]:
    """What queries say is wrong, as `situ status` shows it."""
    found = {name: at.bus.get(at.names.metrics, f"{TROUBLES}{name}") for name in ("spark", "detect")}
    return {name: json.loads(entry.value) for name, entry in found.items() if entry is not None and entry.value}


@contextmanager
def building(spark: SparkSession, folder: Path, people: People) -> Iterator[tuple[Zone, SparkEngine]]:
    faces = sqlite(folder / "faces.db", "faces", rows_of("smart-building", "people.csv"))

    def sources(text: str) -> str:
        changed = text.replace("faces: {csv: data/people.csv,", f"faces: {{sql: faces, url: '{faces}',")
        changed = changed.replace("badges: {csv: data/people.csv,", f"badges: {{sql: people, url: '{people.url}',")
        statement = "SELECT id, name, role, host FROM people"
        changed = changed.replace("    csv: data/people.csv\n", f"    sql: {statement}\n    url: '{people.url}'\n")
        assert "people.csv" not in changed
        return changed

    given = files_of("smart-building", sources)
    with zone(folder, **given) as at, running(spark, at, folder) as engine:
        yield at, engine


def test_guests_astray_are_told_of_though_a_database_goes_away(
    spark: SparkSession, tmp_path: Path, people: People
) -> None:
    with building(spark, tmp_path, people) as (at, engine):
        sensors = Sensors(at, datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=10))
        lone = {"A": "p04", "R": "lab"}
        sensors.read(0, "camera-4", "p04", 12, 12)  # a guest alone in the laboratory
        sensors.read(1, "camera-4", "p07", 18, 12)  # another in the server room,
        sensors.read(2, "reader-4", "p01", 17, 12)  # with an employee
        sensors.settle(engine)
        sensors.read(60, "reader-1", "p01", 3, 3)
        wait_for(lambda: len(told(at)) >= 2, engine)
        assert told(at) == [("opened", lone), ("closed", lone)]
        (alarm,) = [json.loads(row.data) for row in at.root() if row.type == "Alarm"]
        assert alarm == {"room": "lab", "text": "Oskar Lindqvist is alone in lab", "who": "p04"}
        opened = next(row for row in at.root() if row.type == "situ.situation.opened")
        assert [each["type"] for each in json.loads(opened.data)["causes"]] == ["Sighting"]

        people.go_away()  # what was read last stays in use, and that is said
        sensors.read(100, "reader-4", "p04", 12, 12)
        sensors.settle(engine)
        sensors.read(160, "reader-1", "p01", 3, 3)
        wait_for(lambda: len(told(at)) >= 4, engine)
        assert told(at)[2:] == [("opened", lone), ("closed", lone)]
        wait_for(lambda: {"spark", "detect"} <= troubles(at).keys(), engine)
        said = troubles(at)
        assert any("S201 The source `badges` cannot be read again" in each for each in said["spark"])
        assert any("S201 The source `persons` cannot be read again" in each for each in said["detect"])
        assert at.dead() == []

        people.come_back()
        people.run("UPDATE people SET role = 'employee' WHERE id = 'p04'")
        for second in range(161, 199):  # whoever looks up looks again after a while
            if not troubles(at):
                break
            sensors.read(second, "camera-3", "p01", 3, 3)
            assert not engine.wait(1.0)
        assert troubles(at) == {}
        sensors.read(200, "reader-4", "p04", 12, 12)  # an employee now
        sensors.read(210, "camera-4", "p07", 18, 12)
        sensors.settle(engine)
        sensors.read(260, "reader-1", "p01", 3, 3)
        wait_for(lambda: len(told(at)) >= 6, engine)
        assert told(at)[4:] == [("opened", {"A": "p07", "R": "server"}), ("closed", {"A": "p07", "R": "server"})]


def test_trucks_that_must_not_meet_are_told_of(spark: SparkSession, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("trucks", EXAMPLES / "dangerous-goods" / "programs" / "trucks.py")
    assert spec is not None
    assert spec.loader is not None
    trucks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(trucks)
    url = sqlite(tmp_path / "fleet.db", "trucks", rows_of("dangerous-goods", "trucks.csv"))

    def sources(text: str) -> str:
        changed = text.replace("csv: data/trucks.csv,", f"sql: trucks, url: '{url}',")
        return changed.replace("    csv: data/trucks.csv\n", f"    sql: trucks\n    url: '{url}'\n")

    start = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=10)
    given = files_of("dangerous-goods", sources)
    assert "trucks.csv" not in given["more"]["sources/port.yaml"]
    with zone(tmp_path, **given) as at, running(spark, at, tmp_path) as engine:
        for second, sayings in groupby(trucks.drive(), key=lambda each: each[0]):
            time = (start + timedelta(seconds=second)).isoformat()
            for client, some in groupby(sorted(sayings, key=lambda each: each[1]), key=lambda each: each[1]):
                at.send(client, [event(f"{client}-{second}-{n}", *each[2:], time=time) for n, each in enumerate(some)])
        sent = 6 * trucks.SECONDS
        wait_for(lambda: sum(row.type == "TruckAt" for row in at.root()) == sent, engine)
        empty = {"unit": "G-7006", "position": {"lat": 53.5, "lon": 9.9}}
        late = (start + timedelta(minutes=5)).isoformat()
        at.send("koch", [event("last", "Fix", empty, time=late)])
        wait_for(lambda: sum(stage == "closed" for stage, _ in told(at)) >= 2, engine)
        opened = [bound for stage, bound in told(at) if stage == "opened"]
        warned = {row.type: json.loads(row.data) for row in at.root() if row.type in ("TooClose", "OffRoute")}
        assert at.dead() == []
    assert sorted(opened, key=len) == [
        {"A": "L-105", "C": "tank-road", "T": "t5"},
        {"A": "L-101", "B": "L-102", "S": "t1", "T": "t2"},
    ]
    assert "petrol of HH KO 118 and hydrogen peroxide of HH TK 204" in warned["TooClose"]["text"]
    assert (warned["OffRoute"]["truck"], warned["OffRoute"]["corridor"]) == ("t5", "tank-road")
