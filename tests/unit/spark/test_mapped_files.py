"""Files of others: what a map says, and what becomes of rows that are not as it says."""

from __future__ import annotations

import datetime as dt
import gzip
import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from situ.event.instants import print_instant
from situ.event.row import Row
from situ.lang.documents import parse_yaml
from situ.lang.problems import Problems, SituError
from situ.model import Deployment
from situ.spark.history.mapped_files import DeadRow, FileMap, find_files, load_map, read_mapped
from situ.stages.plan import compile_plan
from situ.storage.state_folder import StateFolder
from situ.testing.fixtures import load_project
from tests.project_files import write

PROJECT = {
    "situ.yaml": "name: plant\n",
    "types/a.yaml": """
        events:
          Seen: {who: string, at: Place, level: optional double, count: optional int, ok: optional boolean,
                 since: optional timestamp, tags: "optional [string]"}
        types:
          Place: {floor: int, room: optional string}
        """,
    "contexts/feet.yaml": """
        context: feet
        version: 1
        types:
          Seen: {who: string, at: Place, level: optional double ft}
          Place: {floor: int, room: optional string}
        """,
    "clients/c.yaml": "clients: {gate: {advertisements: {seen: {type: Seen}}}}\n",
}
MAP = """
files: "*.csv"
type: Seen
client: gate
columns: {who: badge, at.floor: floor, at.room: room, since: {column: since, format: milliseconds}}
time: {column: when, format: "%d.%m.%Y %H:%M:%S", zone: Europe/Berlin}
id: [device, nr]
source: {column: device}
delimiter: ";"
"""
CSV = """\
nr;device;when;badge;floor;room;level;ok;since;noise
1;gate/a;18.11.2026 09:30:00;ann;2;"lab; north";12.5;TRUE;1793521800000;x
2;gate/b;18.07.2026 09:30:00;bob;0;;;;;y
"""


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    files = {name: text for name, text in PROJECT.items() if not name.startswith("contexts")}
    return load_project(write(tmp_path / "plant", files)).deployment


def mapped(text: str, deployment: Deployment) -> FileMap:
    problems = Problems()
    found = load_map(parse_yaml(text, "a.map.yaml"), deployment, problems)
    problems.raise_errors()
    assert found is not None
    return found


def read(folder: Path, text: str, deployment: Deployment) -> list[Row | DeadRow]:
    by, plan = mapped(text, deployment), compile_plan(deployment)
    files = find_files(StateFolder(str(folder)), [by], deployment)
    return [each for file in files for each in read_mapped(file, by, plan)]


def good(found: Sequence[Row | DeadRow]) -> list[Row]:
    rows = [each for each in found if isinstance(each, Row)]
    assert len(rows) == len(found), found
    return rows


def test_rows_become_events_as_the_map_says(tmp_path: Path, deployment: Deployment) -> None:
    write(tmp_path / "in", {"a.csv": CSV, "b.txt": "no"})
    first, second = good(read(tmp_path / "in", MAP, deployment))
    assert (first.id, first.source, first.type, first.client) == ("gate/a/1", "gate/a", "Seen", "gate")
    # Winter and summer of the declared zone.
    assert print_instant(first.time) == "2026-11-18T08:30:00Z"
    assert print_instant(second.time) == "2026-07-18T07:30:00Z"
    assert first.data == (
        b'{"who":"ann","at":{"floor":2,"room":"lab; north"},"level":12.5,"ok":true,"since":"2026-11-01T08:30:00Z"}'
    )
    assert second.data == b'{"who":"bob","at":{"floor":0}}'


def test_compressed_files_and_single_files_are_read(tmp_path: Path, deployment: Deployment) -> None:
    write(tmp_path / "in", {"deep/a.csv.gz": gzip.compress(CSV.encode())})
    assert len(good(read(tmp_path / "in", MAP.replace("*.csv", "*.gz"), deployment))) == 2
    write(tmp_path, {"one.csv": CSV})
    assert len(good(read(tmp_path / "one.csv", MAP, deployment))) == 2


def test_parquet_keeps_its_types(tmp_path: Path, deployment: Deployment) -> None:
    zone = dt.timezone(dt.timedelta(hours=1))
    table = pa.table(
        {
            "who": ["ann", "bob"],
            "at": [{"floor": 2, "room": "lab"}, {"floor": 0, "room": None}],
            "level": pa.array([1, 2], pa.int64()),
            "count": pa.array([7.0, 8.0], pa.float64()),
            "tags": [["a", "b"], None],
            "stamp": pa.array([dt.datetime(2026, 11, 18, 9, 30, 0, 5, zone)] * 2, pa.timestamp("ns", "Europe/Berlin")),
        }
    )
    (tmp_path / "in").mkdir()
    parquet.write_table(table, tmp_path / "in" / "a.parquet")
    text = "type: Seen\ntime: stamp\nsource: lab\nclient: gate\n"
    found = read(tmp_path / "in", text, deployment)
    first, second = good(found)
    assert first.data == b'{"who":"ann","at":{"floor":2,"room":"lab"},"level":1.0,"count":7,"tags":["a","b"]}'
    assert print_instant(second.time) == "2026-11-18T08:30:00.000005Z"
    assert first.id != second.id


def test_a_row_that_fails_is_a_dead_letter_and_the_rest_goes_on(tmp_path: Path, deployment: Deployment) -> None:
    rows = [
        "3;gate/a;18.11.2026 09:30:00;ann;high;lab;1;;;",
        "4;gate/a;2026-11-18;ann;1;lab;1;;;",
        "5;gate/a;;ann;1;lab;1;;;",
        "6;gate/a;18.11.2026 09:30:00;;1;lab;1;;;",
        "7;gate/a;18.11.2026 09:30:00;ann;1",
        "8;;18.11.2026 09:30:00;ann;1;lab;1;;;",
        "9;gate/a;18.11.2026 09:30:00;zoe;3;lab;1;;;",
    ]
    content = (CSV + "\n".join(rows) + "\n").encode() + b"10;gate/a;18.11.2026 09:30:00;\xff;3;lab;1;;;\n"
    write(tmp_path / "in", {"a.csv": content})
    found = read(tmp_path / "in", MAP, deployment)
    assert [each.id for each in found if isinstance(each, Row)] == ["gate/a/1", "gate/b/2", "gate/a/9"]
    dead = [each for each in found if isinstance(each, DeadRow)]
    said = [f"{each.row} {each.code} {each.message}" for each in sorted(dead, key=lambda each: each.row)]
    for line, wanted in zip(
        said,
        (
            "0 B201 .*it has 5 columns, and the header has 10",
            "3 INT703 .*at.floor.*high",
            "4 B201 .*`2026-11-18` in `when` is no time of the form `%d.%m.%Y %H:%M:%S`",
            "5 B201 .*it has no time: `when` is empty",
            "6 .*who",
            "7 B201 .*it has no source: `device` is empty",
            "9 B201 .*it is not UTF-8",
        ),
        strict=True,
    ):
        assert re.match(wanted, line), (line, wanted)


def test_a_time_without_zone_needs_one_in_the_map(tmp_path: Path, deployment: Deployment) -> None:
    write(tmp_path / "in", {"a.csv": CSV})
    (first, _) = read(tmp_path / "in", MAP.replace(", zone: Europe/Berlin", ""), deployment)
    assert isinstance(first, DeadRow)
    assert "says no zone, and the map says none: add `zone`" in first.message


def test_a_column_that_is_not_there_is_named_with_those_that_are_near(tmp_path: Path, deployment: Deployment) -> None:
    write(tmp_path / "in", {"a.csv": CSV.replace("badge", "badges").replace("nr;", "number;")})
    with pytest.raises(SituError) as refused:
        read(tmp_path / "in", MAP, deployment)
    problems = {str(each.values["column"]): each for each in refused.value.problems}
    assert {each.code.code for each in refused.value.problems} == {"P135"}
    assert problems.keys() == {"badge", "nr"}
    assert "the map says is `who`" in problems["badge"].message
    assert "Did you mean `badges`?" in problems["badge"].hint
    assert problems["badge"].location is not None
    assert problems["badge"].location.line == 5


def test_what_a_type_requires_must_be_a_column(tmp_path: Path, deployment: Deployment) -> None:
    write(tmp_path / "in", {"a.csv": CSV})
    with pytest.raises(SituError, match=r"P135.*no column `who`, which the map says is the attribute of `Seen`"):
        read(tmp_path / "in", MAP.replace("who: badge, ", ""), deployment)


@pytest.mark.parametrize(
    ("old", "new", "code", "said"),
    [
        ("type: Seen", "type: Sean", "N154", "Did you mean `Seen`"),
        ("client: gate", "client: gate\ncontext: metric", "N154", "context `metric`"),
        ("who: badge", "whom: badge", "P138", "Did you mean `who`"),
        ("at.floor: floor", "at.flor: floor", "P138", "Did you mean `floor`"),
        ("Europe/Berlin", "Europe/Berlyn", "P136", "Did you mean `Europe/Berlin`"),
        ('"%d.%m.%Y %H:%M:%S"', "german", "P136", "`german` is no format"),
        ('delimiter: ";"', 'delimiter: "; "', "P105", "one character"),
        ("files:", "fils:", "P103", "files"),
    ],
)
def test_a_map_that_is_wrong_says_where(deployment: Deployment, old: str, new: str, code: str, said: str) -> None:
    with pytest.raises(SituError) as refused:
        mapped(MAP.replace(old, new), deployment)
    found = refused.value.problems[0]
    assert (found.code.code, said in f"{found.message} {found.hint}") == (code, True), str(found)
    assert found.location is not None
    assert found.location.file == "a.map.yaml"


def test_no_files_and_files_that_are_none(tmp_path: Path, deployment: Deployment) -> None:
    write(tmp_path / "in", {"a.parquet": b"nothing at all"})
    with pytest.raises(SituError, match="P137"):
        read(tmp_path / "in", MAP, deployment)
    with pytest.raises(SituError, match="P139"):
        read(tmp_path / "in", MAP.replace("*.csv", "*"), deployment)
