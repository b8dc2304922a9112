"""Tables from real files and databases: what is read, when it is read again, and what trouble is called."""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet
import pytest

from situ.lang.documents import parse_yaml
from situ.lang.problems import Problems, SituError
from situ.lang.types.resolve import load_types
from situ.project.check import check_folder
from situ.sources import Source, load_sources
from situ.tables.cache import TableCache, TablesInUse, open_tables
from situ.tables.reader import TableReader
from tests.postgresql import PostgresqlServer
from tests.project_files import MINIMAL, write

UNREADABLE = "S111 The source `s` cannot be read: "
AT = datetime(2026, 11, 1, 8, 30, tzinfo=UTC)
TYPES = load_types([parse_yaml("types: {Corner: {x: double m, at: timestamp}}", "types/a.yaml")], Problems())
FILE = {"people.csv": "nr,role,age\n1,guest,40\n2,,\n"}
PEOPLE = "{csv: people.csv, columns: {nr: string, role: optional string, age: optional int}}"


def named(name: str, body: str) -> Source:
    problems = Problems()
    found = load_sources([parse_yaml(f"pull: {{{name}: {body}}}", "sources/a.yaml")], TYPES, problems)
    assert not list(problems), "\n".join(map(str, problems))
    return found[name]


def source(body: str) -> Source:
    return named("s", body)


def read(folder: Path, body: str, **options: Any) -> list[dict[str, Any]]:
    environment = options.pop("environment", {})
    reading = TableReader(folder, environment, **options)
    try:
        return [dict(row) for row in reading.read(source(body)).table.rows]
    finally:
        reading.close()


def refusal(folder: Path, body: str, **options: Any) -> str:
    """Code and message of what is wrong; every problem says what to do."""
    with pytest.raises(SituError) as caught:
        read(folder, body, **options)
    assert caught.value.hint
    return str(caught.value).partition(": ")[2]


class TestCsv:
    def test_columns_are_found_by_name(self, tmp_path: Path) -> None:
        write(tmp_path, FILE)
        assert read(tmp_path, PEOPLE) == [{"nr": "1", "role": "guest", "age": 40}, {"nr": "2"}]
        assert read(tmp_path, "{csv: people.csv, columns: {role: optional string}}") == [{"role": "guest"}, {}]

    def test_a_cell_without_anything_is_null_and_quotes_make_an_empty_text(self, tmp_path: Path) -> None:
        write(tmp_path, {"a.csv": 'a,b\n"",1\n,2\n'})
        assert read(tmp_path, "{csv: a.csv, columns: {a: optional string, b: int}}") == [{"a": "", "b": 1}, {"b": 2}]

    def test_quoted_lines_commas_and_a_mark_at_the_start(self, tmp_path: Path) -> None:
        write(tmp_path, {"a.csv": b'\xef\xbb\xbfa,b\r\n"x, ""y""\r\nz",1\r\n'})
        assert read(tmp_path, "{csv: a.csv, columns: {a: string, b: int}}") == [{"a": 'x, "y"\r\nz', "b": 1}]

    def test_texts_that_look_like_numbers_stay_texts(self, tmp_path: Path) -> None:
        write(tmp_path, {"a.csv": "a,b\n007,NaN\ntrue,null\n"})
        assert read(tmp_path, "{csv: a.csv, columns: {a: string, b: string}}") == [
            {"a": "007", "b": "NaN"},
            {"a": "true", "b": "null"},
        ]

    def test_a_file_without_rows(self, tmp_path: Path) -> None:
        write(tmp_path, {"a.csv": "a\n"})
        assert read(tmp_path, "{csv: a.csv, columns: {a: string}}") == []

    def test_places_come_from_the_environment(self, tmp_path: Path) -> None:
        write(tmp_path, {"data/people.csv": "nr\n1\n"})
        body = "{csv: '${WHERE}/people.csv', columns: {nr: int}}"
        assert read(tmp_path, body, environment={"WHERE": "data"}) == [{"nr": 1}]
        assert read(tmp_path, body, environment={"WHERE": str(tmp_path / "data")}) == [{"nr": 1}]
        assert "P109" in refusal(tmp_path, body)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (None, UNREADABLE + "no such file"),
            (b"", UNREADABLE + "it is empty"),
            (b"nr,age\n1,2\n", "S103 The file of `s` has no column `role`"),
            (b"nr,role,age,nr\n1,a,2,3\n", UNREADABLE + "it has several columns `nr`"),
            (b"nr,role,age\n1,a\n", UNREADABLE + "CSV parse error"),
            (b"nr,role,age\n1,\xff,3\n", UNREADABLE),
            (b"nr,\xff,age\n1,a,3\n", UNREADABLE + "it is not UTF-8"),
            (b"nr,role,age\n1,a,3\n2,b,many\n", 'S112 Row 2 of the source `s`, column `age`: the text "many"'),
            (b"nr,role,age\n,a,3\n", "S112 Row 1 of the source `s`, column `nr`: null, expected `string`"),
            (b"nr,role,age\n1,a,3\n2,a,3\n3,a,3\n", UNREADABLE + "it has more than 2 rows"),
        ],
    )
    def test_trouble_has_a_name(self, tmp_path: Path, text: bytes | None, expected: str) -> None:
        if text is not None:
            write(tmp_path, {"people.csv": text})
        assert refusal(tmp_path, PEOPLE, most_rows=2).startswith(expected)

    def test_a_folder_is_no_file(self, tmp_path: Path) -> None:
        (tmp_path / "people.csv").mkdir()
        assert refusal(tmp_path, PEOPLE).startswith("S111")


class TestParquet:
    def test_values_of_all_kinds(self, tmp_path: Path) -> None:
        fine = pa.array([1_793_521_800_123_456_789], pa.timestamp("ns", "Europe/Berlin"))
        table = pa.table(
            {
                "i": pa.array([7], pa.int16()),
                "d": pa.array([Decimal("12.50")], pa.decimal128(9, 2)),
                "t": fine,
                "day": pa.array([date(2026, 11, 1)]),
                "span": pa.array([1_000_001_000], pa.duration("ns")),
                "b": pa.array([b"ab"]),
                "word": pa.array(["x"]).dictionary_encode(),
                "where": pa.StructArray.from_arrays([pa.array([1.5]), fine], ["x", "at"]),
                "list": pa.array([[1, None]], pa.list_(pa.int32())),
                "extra": pa.array([1]),
            }
        )
        pa.parquet.write_table(table, tmp_path / "a.parquet")
        body = (
            '{parquet: a.parquet, columns: {i: int, d: "decimal(9,2)", t: timestamp, day: date, span: duration, '
            "b: bytes, word: string, where: Corner, list: [int]}}"
        )
        instant = datetime(2026, 11, 1, 8, 30, 0, 123456, tzinfo=UTC)
        (row,) = read(tmp_path, body)
        assert row == {
            "i": 7, "d": Decimal("12.50"), "t": instant, "day": date(2026, 11, 1),
            "span": timedelta(seconds=1, microseconds=1), "b": b"ab", "word": "x",
            "where": {"x": 1.5, "at": instant}, "list": [1, None],
        }  # fmt: skip
        assert (type(row["t"]), type(row["where"]["at"])) == (datetime, datetime)

    def test_trouble_has_a_name(self, tmp_path: Path) -> None:
        body = "{parquet: a.parquet, columns: {t: optional timestamp}}"
        assert refusal(tmp_path, body).startswith(UNREADABLE)
        write(tmp_path, {"a.parquet": "no parquet"})
        assert refusal(tmp_path, body).startswith(UNREADABLE)
        pa.parquet.write_table(pa.table({"u": [1, 2]}), tmp_path / "a.parquet")
        assert refusal(tmp_path, body).startswith("S103 The file of `s` has no column `t`")
        assert refusal(tmp_path, "{parquet: a.parquet, columns: {u: int}}", most_rows=1).startswith("S111")
        pa.parquet.write_table(pa.table({"t": [datetime(2026, 11, 1)]}), tmp_path / "a.parquet")  # noqa: DTZ001
        assert refusal(tmp_path, body).startswith("S112 Row 1 of the source `s`, column `t`: a datetime")


def people_db(file: Path, *rows: tuple[Any, ...]) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS badges (tag TEXT, person TEXT, active INT, since TEXT, pay NUMERIC)"
        )
        connection.execute("DELETE FROM badges")
        connection.executemany("INSERT INTO badges VALUES (?, ?, ?, ?, ?)", rows)
    connection.close()


BADGES = "{tag: string, person: optional string, active: boolean, since: timestamp, pay: 'decimal(9,2)'}"
ANN = ("t1", "ann", 1, "2026-11-01T08:30:00Z", 12.5)


class TestSqlite:
    def test_a_table_and_a_statement(self, tmp_path: Path) -> None:
        people_db(tmp_path / "people.db", ANN, ("t2", None, 0, "2026-11-01 09:30:00+01:00", 100))
        expected = [
            {"tag": "t1", "person": "ann", "active": True, "since": AT, "pay": Decimal("12.50")},
            {"tag": "t2", "active": False, "since": AT, "pay": Decimal("100.00")},
        ]
        url = "url: 'sqlite:///people.db'"
        assert read(tmp_path, f"{{sql: badges, {url}, columns: {BADGES}}}") == expected
        assert read(tmp_path, f"{{sql: main.badges, {url}, columns: {BADGES}}}") == expected
        statement = "SELECT tag, person FROM badges WHERE tag LIKE 't1%' OR tag = ':x'; "
        body = f'{{sql: "{statement}", {url}, columns: {{tag: string, person: string}}}}'
        assert read(tmp_path, body) == [{"tag": "t1", "person": "ann"}]

    def test_the_address_comes_from_the_environment(self, tmp_path: Path) -> None:
        people_db(tmp_path / "people.db", ANN)
        body = "{sql: badges, url: '${PEOPLE_DB}', columns: {tag: string}}"
        address = f"sqlite:///{tmp_path / 'people.db'}"
        assert read(tmp_path / "elsewhere", body, environment={"PEOPLE_DB": address}) == [{"tag": "t1"}]
        assert "P109" in refusal(tmp_path, body)

    def test_an_answer_that_did_not_change_is_not_read_into_values_again(self, tmp_path: Path) -> None:
        people_db(tmp_path / "people.db", ANN)
        badges = source(f"{{sql: badges, url: 'sqlite:///people.db', columns: {BADGES}}}")
        reading = TableReader(tmp_path, {})
        before = reading.read(badges)
        assert reading.read(badges, before) is before
        people_db(tmp_path / "people.db", (*ANN[:4], 13))
        after = reading.read(badges, before)
        assert after.table.rows[0]["pay"] == 13
        reading.close()

    def test_nothing_is_written_or_made(self, tmp_path: Path) -> None:
        url = "url: 'sqlite:///people.db'"
        assert "unable to open" in refusal(tmp_path, f"{{sql: badges, {url}, columns: {{tag: string}}}}")
        assert not (tmp_path / "people.db").exists()
        people_db(tmp_path / "people.db", ANN)
        # A statement from the environment was checked by nobody.
        body = f"{{sql: '${{SQL}}', {url}, columns: {{tag: string}}}}"
        refused = refusal(tmp_path, body, environment={"SQL": "DELETE FROM badges RETURNING tag"})
        assert refused.startswith("S111")
        assert len(read(tmp_path, f"{{sql: badges, {url}, columns: {{tag: string}}}}")) == 1

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ("{sql: gone, url: 'sqlite:///people.db', columns: {tag: string}}", UNREADABLE + "no such"),
            (
                "{sql: 'SELECT * FROM badges', url: 'sqlite:///people.db', columns: {tga: string}}",
                "S103 The statement of `s` has no column `tga`",
            ),
            (
                "{sql: 'SELECT tag, person AS tag FROM badges', url: 'sqlite:///people.db', columns: {tag: string}}",
                UNREADABLE + "it has several columns `tag`",
            ),
            (
                "{sql: badges, url: 'sqlite:///people.db', columns: {since: date}}",
                "S112 Row 1 of the source `s`, column",
            ),
            ("{sql: badges, url: 'sqlite:///README.md', columns: {tag: string}}", UNREADABLE + "file is not"),
            ("{sql: badges, url: 'sqlite://', columns: {tag: string}}", UNREADABLE + "`url` names no file"),
            ("{sql: badges, url: '${BAD}', columns: {tag: string}}", UNREADABLE + "`url` is no address"),
            ("{sql: badges, url: 'nodb://x', columns: {tag: string}}", UNREADABLE + "there is no kind of"),
        ],
    )
    def test_trouble_has_a_name(self, tmp_path: Path, body: str, expected: str) -> None:
        people_db(tmp_path / "people.db", ANN)
        write(tmp_path, {"README.md": "no database " * 100})
        assert refusal(tmp_path, body, environment={"BAD": "no address"}).startswith(expected)


@pytest.fixture(scope="module")
def postgresql(postgresql_server: PostgresqlServer) -> str:
    """The URL of a database."""
    return postgresql_server.new_database()


class TestPostgresql:
    def run(self, url: str, *statements: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)  # type: ignore[call-overload]

    def test_values_of_all_kinds(self, postgresql: str, tmp_path: Path) -> None:
        self.run(
            postgresql,
            "CREATE TABLE things (id uuid, big bigint, ok boolean, pay numeric(9,2), ratio double precision, "
            "at timestamptz, day date, span interval, raw bytea, doc jsonb, many int[], word text)",
            "INSERT INTO things VALUES ('00000000-0000-0000-0000-000000000001', 9000000000, true, 12.5, 0.5, "
            "'2026-11-01 09:30:00+01', '2026-11-01', '90 s', '\\x6162', "
            '\'{"x": 1, "at": "2026-11-01T08:30:00Z"}\', \'{1,2}\', NULL)',
        )
        columns = (
            "{id: string, big: long, ok: boolean, pay: 'decimal(9,2)', ratio: double, at: timestamp, day: date, "
            "span: duration, raw: bytes, doc: Corner, many: [int], word: optional string}"
        )
        expected = {
            "id": "00000000-0000-0000-0000-000000000001", "big": 9_000_000_000, "ok": True, "pay": Decimal("12.50"),
            "ratio": 0.5, "at": AT, "day": date(2026, 11, 1), "span": timedelta(seconds=90), "raw": b"ab",
            "doc": {"x": 1.0, "at": AT}, "many": [1, 2],
        }  # fmt: skip
        environment = {"DB": postgresql}
        for place in ("things", "public.things", "SELECT * FROM things WHERE 7 % 2 = 1 AND ratio::text LIKE '0%'"):
            body = f'{{sql: "{place}", url: "${{DB}}", columns: {columns}}}'
            assert read(tmp_path, body, environment=environment) == [expected]

    def test_it_only_reads(self, postgresql: str, tmp_path: Path) -> None:
        self.run(postgresql, "CREATE TABLE kept (a int)", "INSERT INTO kept VALUES (1)")
        environment = {"DB": postgresql, "SQL": "DELETE FROM kept RETURNING a"}
        body = "{sql: '${SQL}', url: '${DB}', columns: {a: int}}"
        assert "read-only" in refusal(tmp_path, body, environment=environment)
        assert read(tmp_path, "{sql: kept, url: '${DB}', columns: {a: int}}", environment=environment) == [{"a": 1}]

    def test_trouble_has_a_name(self, postgresql: str, tmp_path: Path) -> None:
        environment = {"DB": postgresql}
        body = "{sql: absent, url: '${DB}', columns: {a: int}}"
        assert "does not exist" in refusal(tmp_path, body, environment=environment)
        slow = "{sql: 'SELECT 1 AS a, pg_sleep(20) AS b', url: '${DB}', columns: {a: int}}"
        assert "timeout" in refusal(tmp_path, slow, environment=environment, longest=0.2)

    def test_a_server_that_is_not_there(self, tmp_path: Path) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        environment = {"DB": f"postgresql://me:hush@127.0.0.1:{port}/db"}
        refused = refusal(tmp_path, "{sql: t, url: '${DB}', columns: {a: int}}", environment=environment)
        assert refused.startswith("S111")
        assert "hush" not in refused

    def test_a_table_is_read_again_over_the_same_connection(self, postgresql: str, tmp_path: Path) -> None:
        self.run(postgresql, "CREATE TABLE moving (a int)", "INSERT INTO moving VALUES (1)")
        sources = {"s": source("{sql: moving, url: '${DB}', columns: {a: int}}")}
        with open_tables(sources, tmp_path, environment={"DB": postgresql}) as tables:
            assert tables.refresh().changed == frozenset()
            self.run(postgresql, "UPDATE moving SET a = 2")
            assert tables.refresh().changed == {"s"}
            assert tables.current("s").rows == ({"a": 2},)
            self.run(postgresql, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
            assert tables.refresh().problems == ()


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Kept:
    """A project with a file, tables over it and a clock."""

    def __init__(self, folder: Path, max_age: str = "", **options: Any) -> None:
        self.file = folder / "people.csv"
        self.clock = Clock()
        age = f", max_age: {max_age}" if max_age else ""
        self.source = source(f"{{csv: people.csv, columns: {{nr: string, role: string}}{age}}}")
        self.write("1,guest")
        self.tables = TableCache({"s": self.source}, TableReader(folder, {}), clock=self.clock, **options)
        self.tables.start()

    def write(self, *lines: str) -> None:
        self.file.write_text("\n".join(("nr,role", *lines)) + "\n")

    @property
    def roles(self) -> list[str]:
        return [row["role"] for row in self.tables.current("s").rows]


@pytest.fixture
def keep(tmp_path: Path) -> Iterator[Callable[..., Kept]]:
    made: list[Kept] = []

    def make(*arguments: Any, **options: Any) -> Kept:
        made.append(Kept(tmp_path, *arguments, **options))
        return made[-1]

    yield make
    for each in made:
        each.tables.close()


class TestCache:
    def test_a_table_stays_until_it_is_refreshed(self, keep: Callable[..., Kept]) -> None:
        kept = keep()
        before, snapshot, digest = kept.tables.current("s"), kept.tables.snapshot, kept.tables.digest
        kept.write("1,employee")
        assert kept.tables.current("s") is before
        assert kept.tables.refresh().changed == {"s"}
        assert kept.roles == ["employee"]
        assert snapshot["s"] is before
        assert kept.tables.digest != digest
        kept.write("1,guest")
        kept.tables.refresh()
        assert kept.tables.digest == digest

    def test_what_is_the_same_is_the_same_object(self, keep: Callable[..., Kept]) -> None:
        kept = keep()
        before = kept.tables.current("s")
        kept.write("1,guest")
        assert kept.tables.refresh().changed == frozenset()
        assert kept.tables.current("s") is before

    def test_it_is_read_again_when_it_is_too_old(self, keep: Callable[..., Kept]) -> None:
        kept = keep("1 min")
        kept.write("1,employee")
        kept.clock.now += 59
        assert kept.tables.refresh().changed == frozenset()
        assert kept.tables.age("s") == timedelta(seconds=59)
        kept.clock.now += 1
        assert kept.tables.refresh().changed == {"s"}
        assert kept.tables.age("s") == timedelta(0)

    def test_a_file_that_did_not_change_is_not_read_again(self, keep: Callable[..., Kept]) -> None:
        kept = keep()
        long_ago = 1_000_000_000_000_000_000
        os.utime(kept.file, ns=(long_ago, long_ago))
        kept.tables.refresh()
        # Other content with the same size and time: whoever reads it notices, and nobody does.
        kept.write("1,GUEST")
        os.utime(kept.file, ns=(long_ago, long_ago))
        kept.clock.now += 5
        assert kept.tables.refresh().changed == frozenset()
        assert kept.tables.age("s") == timedelta(0)
        os.utime(kept.file, ns=(long_ago, long_ago + 1))
        assert kept.tables.refresh().changed == {"s"}

    def test_what_cannot_be_read_stays_and_is_told(self, keep: Callable[..., Kept]) -> None:
        kept = keep("1 min", pause=10.0)
        kept.file.unlink()
        assert kept.tables.refresh().problems == ()
        kept.clock.now += 90
        refreshed = kept.tables.refresh()
        (problem,) = refreshed.problems
        assert (problem.code.code, problem.is_error) == ("S201", False)
        assert "90 s ago" in problem.message
        assert problem.cause is not None
        assert problem.cause.code.code == "S111"
        assert problem.hint == problem.cause.hint
        assert kept.roles == ["guest"]
        # It is left alone for a while, and told of all the same.
        kept.write("1,employee")
        kept.clock.now += 9
        assert [each.code.code for each in kept.tables.refresh().problems] == ["S201"]
        kept.clock.now += 1
        refreshed = kept.tables.refresh()
        assert (refreshed.changed, refreshed.problems) == ({"s"}, ())
        assert kept.roles == ["employee"]

    def test_a_table_that_no_longer_fits_is_not_taken(self, keep: Callable[..., Kept]) -> None:
        kept = keep(keyed={"s": [(("nr",), "")]}, pause=0.0)
        kept.write("1,guest", "1,employee")
        refreshed = kept.tables.refresh()
        assert [each.cause.code.code for each in refreshed.problems if each.cause] == ["S113"]
        assert kept.tables.current("s").find({"nr": "1"}) == {"nr": "1", "role": "guest"}
        kept.write("1,")
        assert [each.cause.code.code for each in kept.tables.refresh().problems if each.cause] == ["S112"]
        kept.write("1,employee")
        assert kept.tables.refresh().problems == ()

    def test_at_the_start_every_table_must_be_there(self, tmp_path: Path) -> None:
        write(tmp_path, {"a.csv": "a\n1\n1\n"})
        sources = {
            "one": named("one", "{csv: a.csv, columns: {a: int}}"),
            "two": named("two", "{csv: b.csv, columns: {a: int}}"),
            "three": named("three", "{csv: a.csv, columns: {b: int}}"),
        }
        with pytest.raises(SituError) as caught:
            open_tables(sources, tmp_path, keyed={"one": [(("a",), "")]})
        assert [problem.code.code for problem in caught.value.problems] == ["S113", "S111", "S103"]
        with open_tables({}, tmp_path) as tables, pytest.raises(KeyError):
            tables.current("one")

    def test_refreshing_while_others_look(self, keep: Callable[..., Kept]) -> None:
        """Every snapshot that is seen is a whole one."""
        kept = keep()
        seen: set[tuple[str, ...]] = set()
        done = threading.Event()

        def look() -> None:
            while not done.is_set():
                seen.add(tuple(kept.roles))

        looking = [threading.Thread(target=look) for _ in range(3)]
        for each in looking:
            each.start()
        try:
            for number in range(30):
                role = f"r{number % 2}"
                kept.write(f"1,{role}", f"2,{role}")
                kept.tables.refresh()
        finally:
            done.set()
            for each in looking:
                each.join()
        assert seen <= {("guest",), ("r0", "r0"), ("r1", "r1")}
        assert kept.roles == ["r1", "r1"]


def test_a_project_declares_what_is_read(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        {
            **MINIMAL,
            **FILE,
            "types/a.yaml": "types: {PersonId(string): {}}\n",
            "sources/building.yaml": """
                pull:
                  persons: {csv: people.csv, columns: {nr: PersonId, role: optional string}, key: nr}
                """,
        },
    )
    checked = check_folder(folder, {})
    assert checked.deployment is not None, checked.problems
    with open_tables(checked.deployment.sources, folder, environment={}) as tables:
        assert tables.current("persons").find({"nr": "1"}) == {"nr": "1", "role": "guest"}
    write(tmp_path, {"sources/more.yaml": "pull: {persons: {csv: a, columns: {x: PersonID}}}\n"})
    assert [f"{problem.location} {problem.code.code}" for problem in check_folder(folder, {}).problems] == [
        "sources/more.yaml:1:8 INT106",
        "sources/more.yaml:1:39 INT101",
    ]


class TestInUse:
    """Tables as a process has them in use: opened when they are needed, carried over, told of when they age."""

    OF = frozenset({(("nr",), "")})

    def sources(self, **bodies: str) -> dict[str, Source]:
        return {name: named(name, body) for name, body in bodies.items()}

    def test_what_is_open_stays_open_and_the_rest_is_closed(self, tmp_path: Path) -> None:
        write(tmp_path, {**FILE, "staff.csv": "nr\n7\n"})
        people, staff = "{csv: people.csv, columns: {nr: string}}", "{csv: staff.csv, columns: {nr: string}}"
        both = self.sources(people=people, staff=staff)
        with TablesInUse(tmp_path) as tables:
            assert tables.use(both, {}) == {}
            first = tables.use(both, {"people": self.OF})
            assert set(first) == {"people"}
            (tmp_path / "people.csv").unlink()
            # It could not be read again, and need not be for the other's sake.
            second = tables.use(both, {"people": self.OF, "staff": self.OF})
            assert second["people"] is first["people"]
            assert tables.use(both, {"people": self.OF, "staff": self.OF}) is second
            # Another source is another table, whatever its name is.
            with pytest.raises(SituError) as refused:
                tables.use(self.sources(people=people.replace("string", "int"), staff=staff), {"people": self.OF})
            assert refused.value.code == "S111"
            assert tables.snapshot is second
            assert set(tables.use(both, {"staff": self.OF})) == {"staff"}
        assert tables.snapshot == {}

    def test_a_key_that_is_needed_newly_must_tell_rows_apart(self, tmp_path: Path) -> None:
        write(tmp_path, {"people.csv": "nr,role\n1,guest\n2,guest\n"})
        sources = self.sources(people="{csv: people.csv, columns: {nr: string, role: string}}")
        with TablesInUse(tmp_path) as tables:
            before = tables.use(sources, {"people": self.OF})
            with pytest.raises(SituError) as refused:
                tables.use(sources, {"people": self.OF | {(("role",), "")}})
            assert refused.value.code == "S113"
            assert tables.snapshot is before

    def test_what_is_wrong_is_told_once(self, tmp_path: Path) -> None:
        write(tmp_path, FILE)
        with TablesInUse(tmp_path) as tables:
            assert tables.refresh() == ()
            before = tables.use(self.sources(people=PEOPLE), {"people": self.OF})
            (tmp_path / "people.csv").rename(tmp_path / "gone.csv")
            [told] = tables.refresh()
            assert "S201 The source `people` cannot be read again; what was read 0 s ago stays in use." in told
            assert "no such file" in told
            assert tables.refresh() == ()
            assert tables.snapshot == before
