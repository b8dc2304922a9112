"""Sources: how they are declared, how cells become values, and which row a key finds."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from textwrap import dedent
from typing import Any

import pytest

from situ.lang.documents import parse_json, parse_yaml, substitute
from situ.lang.expr.checker.check import check
from situ.lang.expr.emit.python import compile_value
from situ.lang.expr.faults import find_faults
from situ.lang.expr.interpret import interpret
from situ.lang.expr.scope import NameScope, Variable
from situ.lang.problems import Problems, SituError
from situ.lang.quantities import format_duration
from situ.lang.types.model import DATE, DOUBLE, STRING, TIMESTAMP, ListOf, Named
from situ.lang.types.resolve import load_types
from situ.lang.types.table import Types
from situ.model import Deployment, diff_deployments
from situ.settings import Settings
from situ.sources import Source, SourceKind, Table, load_sources, make_table
from situ.sources.load import sources_from_json
from situ.sources.model import may_be_as_of, may_be_key, sources_as_json
from situ.sources.queries import is_table, read_statement

TYPES_FILE = parse_yaml(
    dedent("""
        types:
          TagId(string): {}
          Corner: {x: double m, y: {type: double, unit: m, default: 0}, name: optional string}
        events:
          Seen: {tag: TagId}
        units: {EUR: currency}
    """),
    "types/a.yaml",
)


def _types() -> Types:
    problems = Problems()
    types = load_types([TYPES_FILE], problems)
    assert not problems.errors
    return types


TYPES = _types()
AT = datetime(2026, 11, 1, 8, 30, tzinfo=UTC)


def load(text: str, environment: Mapping[str, str] | None = None) -> tuple[Mapping[str, Source], Problems]:
    problems = Problems()
    document = parse_yaml(dedent(text), "sources/a.yaml")
    if environment is not None and document.root is not None:
        root = substitute(document.root, environment, problems)
        document = type(document)(file=document.file, root=root, problems=document.problems)
    return load_sources([document], TYPES, problems), problems


def sources(text: str) -> Mapping[str, Source]:
    found, problems = load(text)
    assert not list(problems), "\n".join(map(str, problems))
    return found


def source(columns: str, *more: str) -> Source:
    body = ", ".join(("csv: a.csv", f"columns: {columns}", *more))
    return sources(f"pull: {{s: {{{body}}}}}")["s"]


class TestDeclarations:
    def test_the_three_kinds(self) -> None:
        found = sources(
            """
            pull:
              badges: {sql: "SELECT tag, person FROM badges", url: "${PEOPLE_DB}", max_age: 1 min,
                columns: {tag: TagId, person: string}}
              persons: {csv: people.csv, columns: {nr: string, role: optional string}, key: nr}
              fx_rates: {parquet: fx.parquet, key: [quote, base], as_of: valid_from,
                columns: {base: string, quote: string, rate: double, valid_from: timestamp}}
            """
        )
        assert list(found) == ["badges", "fx_rates", "persons"]
        badges, rates, persons = found.values()
        assert (badges.kind, badges.url, badges.max_age) == (SourceKind.SQL, "${PEOPLE_DB}", timedelta(minutes=1))
        assert badges.place == "SELECT tag, person FROM badges"
        assert [str(each.type) for each in badges.columns] == ["string", "TagId"]
        assert (rates.kind, rates.key, rates.as_of) == (SourceKind.PARQUET, ("quote", "base"), "valid_from")
        assert (persons.kind, persons.place, persons.key, persons.max_age) == (
            SourceKind.CSV, "people.csv", ("nr",), timedelta(0),
        )  # fmt: skip
        assert persons.location is not None
        assert persons.row.name == ""

    def test_nothing_yet(self) -> None:
        assert sources("pull:\n") == {}
        assert sources("# soon\n") == {}

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ("{columns: {a: string}}", ["1:8 S101"]),
            ("{csv: a.csv, parquet: b, columns: {a: string}}", ["1:8 S101"]),
            ("{csv: '', columns: {a: string}}", ["1:17 P105"]),
            ("{csv: a.csv}", ["1:8 P104"]),
            ("{csv: a.csv, columns: {}}", ["1:33 P105"]),
            ("{csv: a.csv, columns: [a]}", ["1:33 P105"]),
            ("{csv: a.csv, columns: {a: strng}}", ["1:37 INT101"]),
            ("{csv: a.csv, columns: {a: double wibbles}}", ["1:44 INT105"]),
            ("{csv: a.csv, columns: {a b: string}}", ["1:34 INT110"]),
            ("{csv: a.csv, columns: {a: {type: int, default: x}}}", ["1:58 INT111"]),
            ("{csv: a.csv, columns: {a: string}, key: b}", ["1:51 S103"]),
            ("{csv: a.csv, columns: {a: string}, key: [a, a]}", ["1:55 INT106"]),
            ("{csv: a.csv, columns: {a: string}, key: []}", ["1:51 P105"]),
            ("{csv: a.csv, columns: {a: Corner}, key: a}", ["1:51 S104"]),
            ("{csv: a.csv, columns: {a: string}, as_of: a}", ["1:53 S104"]),
            ("{csv: a.csv, columns: {a: string}, as_of: b}", ["1:53 S103"]),
            ("{csv: a.csv, columns: {a: string}, max_age: 5}", ["1:55 P121"]),
            ("{csv: a.csv, columns: {a: string}, max_age: true}", ["1:55 P105"]),
            ("{csv: a.csv, columns: {a: string}, url: 'sqlite:///a'}", ["1:46 P103"]),
            ("{sql: t, columns: {a: string}}", ["1:12 P104"]),
            ("{sql: t, url: here, columns: {a: string}}", ["1:25 P105"]),
            ("{sql: 'DELETE FROM t', url: 'sqlite:///a', columns: {a: string}}", ["1:17 S102"]),
            ("{sql: 'SELECT b FROM t', url: 'sqlite:///a', columns: {a: string}}", ["1:66 S103"]),
            ("{csv: a.csv, columns: {a: string}, concepts: person}", ["1:46 P103"]),
            ("{csv: a.csv, columns: {a: strng}, key: b, max_age: 5}", ["1:37 INT101", "1:50 S103", "1:62 P121"]),
            ("what", ["1:11 P105"]),
        ],
    )
    def test_what_is_wrong_has_a_place_and_a_code(self, body: str, expected: list[str]) -> None:
        found, problems = load(f"pull: {{s: {body}}}")
        places = [f"{p.location.line}:{p.location.column} {p.code.code}" for p in problems.sorted() if p.location]
        assert places == expected
        assert found == {}
        assert all(problem.hint for problem in problems if problem.code.code != "P105")

    def test_names(self) -> None:
        found, problems = load("pull: {1st: {csv: a, columns: {a: string}}, b-2: {csv: a, columns: {a: string}}}")
        assert [problem.code.code for problem in problems] == ["INT110"]
        assert list(found) == ["b-2"]

    def test_a_name_in_two_files(self) -> None:
        problems = Problems()
        text = "pull: {s: {csv: a, columns: {a: string}}}"
        load_sources([parse_yaml(text, "sources/a.yaml"), parse_yaml(text, "sources/b.yaml")], TYPES, problems)
        assert [str(problem.location) for problem in problems] == ["sources/b.yaml:1:8"]
        assert [problem.code.code for problem in problems] == ["INT106"]

    def test_what_follows_from_a_faulty_type_is_not_said_again(self) -> None:
        problems = Problems()
        file = parse_yaml("types: {Bad: {x: nonsense}, Worse(Gone): {y: int}}", "types/b.yaml")
        types = load_types([file], problems)
        before = len(problems)
        text = "pull: {s: {csv: a, columns: {a: Bad, b: Worse}}}"
        load_sources([parse_yaml(text, "sources/a.yaml")], types, problems, faults=find_faults([file], types))
        assert len(problems) == before

    def test_secrets_stay_outside(self) -> None:
        text = "pull: {s: {sql: t, url: '${DB}', columns: {a: string}}}"
        found, problems = load(text, {"DB": "postgresql://me:secret@host/db"})
        assert not list(problems)
        assert found["s"].url == "${DB}"
        assert "secret" not in repr(found)
        _, problems = load(text, {"DB": "secret"})
        assert [problem.code.code for problem in problems] == ["P105"]
        assert "secret" not in str(list(problems))

    def test_the_json_form_reads_back(self) -> None:
        found = sources(
            """
            pull:
              badges: {sql: badges, url: "${DB}", columns: {tag: TagId, at: optional Corner m}, key: tag, max_age: 90 s}
              rates: {csv: r.csv, key: [q, b], as_of: d, columns: {q: string, b: string, d: date,
                r: {type: "decimal(9,4)", unit: EUR, optional: true, default: 1}}}
            """
        )
        value = json.loads(json.dumps(sources_as_json(found), sort_keys=True))
        again = sources_from_json(value, TYPES)
        assert again == found
        assert value["badges"]["max_age"] == format_duration(timedelta(seconds=90))
        assert value["rates"]["columns"]["r"] == {
            "type": "decimal(9,4)", "unit": "EUR", "optional": True, "default": "1.0000",
        }  # fmt: skip
        with pytest.raises(ValueError, match="S101"):
            sources_from_json({"s": {"columns": {"a": "string"}}}, TYPES)

    def test_a_deployment_holds_them_and_says_what_changed(self) -> None:
        settings = Settings(name="plant")
        old = Deployment(
            settings=settings, types=TYPES, sources=sources("pull: {s: {csv: a.csv, columns: {a: int, b: string}}}")
        )
        new = Deployment(
            settings=settings, types=TYPES, sources=sources("pull: {s: {csv: a.csv, columns: {a: long, b: string}}}")
        )
        assert Deployment.from_json(json.loads(json.dumps(old.as_json()))) == old
        assert old.digest != new.digest
        (change,) = diff_deployments(old, new)
        assert str(change) == "source s changed"
        assert [(each.part, each.before, each.after) for each in change.details] == [("a", "int", "long")]
        assert change.before == "csv: a.csv, columns: {a: int, b: string}"


class TestStatements:
    @pytest.mark.parametrize(
        ("text", "columns"),
        [
            ("SELECT tag, p AS person FROM badges", {"tag", "person"}),
            ("with a as (select 1 as b) select b from a", {"b"}),
            ("select a from b union select c from d;", {"a"}),
            ("-- all\n/* of */ (select a from b)", {"a"}),
            ("select a::text as b, c->>'d' as e from f", {"b", "e"}),
            ("select a from b where c like '%x:y'", {"a"}),
            ("select * from x", None),
            ("select count(*), a from b", None),
            ("hr.badges", None),
        ],
    )
    def test_queries(self, text: str, columns: set[str] | None) -> None:
        assert read_statement(text).columns == columns

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "DELETE FROM t",
            "INSERT INTO t SELECT 1",
            "SELECT 1; SELECT 2",
            "SELECT :a FROM t",
            "SELECT a FROM t WHERE b = ?",
            "WITH d AS (DELETE FROM t RETURNING a) SELECT a FROM d",
            "WITH d AS (SELECT 1 AS a) INSERT INTO t SELECT a FROM d",
            "SELECT a INTO u FROM t",
            "SELECT FROM WHERE",
            "PRAGMA writable_schema",
            "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        ],
    )
    def test_what_is_no_query(self, text: str) -> None:
        with pytest.raises(SituError) as caught:
            read_statement(text)
        assert caught.value.code == "S102"
        assert caught.value.hint

    def test_names_of_tables(self) -> None:
        assert is_table("badges")
        assert is_table(" hr.badges ")
        assert not is_table("select a from b")
        assert not is_table("a.b.c")


def cells(column: str, *values: Any, text: bool = False) -> list[Any]:
    table = make_table(source(f"{{c: {column}}}"), {"c": values}, text=text)
    return [row.get("c") for row in table.rows]


class TestCells:
    @pytest.mark.parametrize(
        ("column", "found", "expected"),
        [
            ("string", "a", "a"),
            ("TagId", "", ""),
            ("boolean", " True", True),
            ("int", " -7 ", -7),
            ("long", "9223372036854775807", 2**63 - 1),
            ("double km/h", "1e3", 1000.0),
            ("double", "-.5", -0.5),
            ('"decimal(5,2)"', "12.5", Decimal("12.50")),
            ("bytes", "AAE=", b"\0\1"),
            ("date", "2026-11-01", date(2026, 11, 1)),
            ("timestamp", "2026-11-01T09:30:00+01:00", AT),
            ("duration", "PT5S", timedelta(seconds=5)),
            ("[int]", "[1, null]", [1, None]),
            ("Corner", '{"x": 1, "z": 0}', {"x": 1.0, "y": 0.0}),
            ("optional int", None, None),
            ("{type: int, default: 3}", None, 3),
        ],
    )
    def test_texts(self, column: str, found: str, expected: Any) -> None:
        (value,) = cells(column, found, text=True)
        assert value == expected
        assert type(value) is type(expected)

    @pytest.mark.parametrize(
        ("column", "found", "expected"),
        [
            ("string", "a", "a"),
            ("boolean", True, True),
            ("boolean", 1, True),
            ("int", Decimal("7.00"), 7),
            ("double", Decimal("0.5"), 0.5),
            ("double", 3, 3.0),
            ('"decimal(5,2)"', Decimal("12.500"), Decimal("12.50")),
            ('"decimal(5,2)"', 12.5, Decimal("12.50")),
            ('"decimal(5,2)"', 100, Decimal("100.00")),
            ("bytes", memoryview(b"ab"), b"ab"),
            ("date", date(2026, 11, 1), date(2026, 11, 1)),
            ("timestamp", datetime(2026, 11, 1, 10, 30, tzinfo=timezone(timedelta(hours=2))), AT),
            ("timestamp", "2026-11-01 08:30:00Z", AT),
            ("duration", timedelta(days=2), timedelta(days=2)),
            ("[Corner]", [{"x": 1, "name": "a"}, None], [{"x": 1.0, "y": 0.0, "name": "a"}, None]),
        ],
    )
    def test_values(self, column: str, found: Any, expected: Any) -> None:
        (value,) = cells(column, found)
        assert value == expected
        assert type(value) is type(expected)

    @pytest.mark.parametrize(
        ("column", "found", "text"),
        [
            ("boolean", "yes", True),
            ("int", "1.0", True),
            ("int", "3000000000", True),
            ("double", "nan", True),
            ("double", "1,5", True),
            ("double", "1e999", True),
            ('"decimal(5,2)"', "1.234", True),
            ("timestamp", "2026-11-01T08:30:00", True),
            ("Corner", "{x: 1}", True),
            ("[int]", "{}", True),
            ("int", None, True),
            ("boolean", 2, False),
            ("int", True, False),
            ("int", 1.5, False),
            ("int", Decimal("1.5"), False),
            ("double", float("inf"), False),
            ("double", Decimal("NaN"), False),
            ('"decimal(5,2)"', Decimal("NaN"), False),
            ('"decimal(5,2)"', Decimal("1e500"), False),
            ("string", 5, False),
            ("date", AT, False),
            ("timestamp", AT.replace(tzinfo=None), False),
            ("timestamp", datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))), False),
            ("duration", timedelta(days=200_000_000), False),
            ("Corner", {"y": 1}, False),
            ("Corner", [1], False),
        ],
    )
    def test_what_does_not_fit_is_refused_with_its_place(self, column: str, found: Any, text: bool) -> None:
        with pytest.raises(SituError) as caught:
            make_table(source(f"{{c: {column}}}"), {"c": [found]}, text=text)
        (problem,) = caught.value.problems
        assert problem.code.code == "S112"
        assert (problem.values["source"], problem.values["row"], problem.values["column"]) == ("s", 1, "c")
        assert problem.location is not None
        assert problem.hint

    def test_all_that_is_wrong_is_said_at_once(self) -> None:
        with pytest.raises(SituError) as caught:
            make_table(
                source("{a: int, b: date}"), {"a": ["1", "x", "y"], "b": ["2026-11-01", "2026-11-01", "z"]}, text=True
            )
        places = [(p.values["row"], p.values["column"]) for p in caught.value.problems]
        assert places == [(2, "a"), (3, "a"), (3, "b")]
        with pytest.raises(SituError) as caught:
            cells("int", *["x"] * 1000, text=True)
        assert len(caught.value.problems) == 20


RATES = source("{base: string, quote: optional string, rate: double, since: optional timestamp, day: optional date}")


def rates(*rows: tuple[str, str | None, float, Any, Any]) -> Table:
    names = ("base", "quote", "rate", "since", "day")
    return make_table(RATES, {name: [row[n] for row in rows] for n, name in enumerate(names)})


class TestTables:
    def test_rows_are_found_by_key(self) -> None:
        table = rates(("EUR", "USD", 1.1, None, None), ("EUR", None, 1.2, None, None), ("USD", "EUR", 0.9, None, None))
        assert table.find({"base": "EUR", "quote": "USD"}) == {"base": "EUR", "quote": "USD", "rate": 1.1}
        assert table.find({"quote": "EUR", "base": "USD"}) == {"base": "USD", "quote": "EUR", "rate": 0.9}
        assert table.find({"base": "USD", "quote": "USD"}) is None
        assert len(table) == 3

    def test_nulls_never_match(self) -> None:
        table = rates(("EUR", None, 1.1, None, None), ("EUR", None, 1.2, None, None))
        assert table.find({"base": "EUR", "quote": None}) is None

    def test_as_of_takes_the_last_row_not_after_the_time(self) -> None:
        hour = timedelta(hours=1)
        table = rates(
            ("EUR", "USD", 1.3, AT + 2 * hour, None),
            ("EUR", "USD", 1.1, AT, None),
            ("EUR", "USD", 1.2, AT + hour, None),
            ("EUR", "USD", 9.9, None, None),
        )
        index = table.index(("base", "quote"), "since")

        def rate(at: datetime | None) -> float | None:
            row = index.find(("EUR", "USD"), at)
            return None if row is None else row["rate"]

        assert rate(AT - timedelta(microseconds=1)) is None
        assert rate(AT) == 1.1
        assert rate(AT + hour - timedelta(microseconds=1)) == 1.1
        assert rate(AT + hour) == 1.2
        assert rate(AT + 100 * hour) == 1.3
        assert rate(None) is None
        assert index.find(("EUR", "GBP"), AT) is None

    def test_a_day_begins_at_midnight_in_utc(self) -> None:
        table = rates(("EUR", "USD", 1.1, None, date(2026, 11, 1)))
        midnight = datetime(2026, 11, 1, tzinfo=UTC)
        key = {"base": "EUR"}
        assert table.find(key, "day", midnight) == table.rows[0]
        assert table.find(key, "day", midnight - timedelta(microseconds=1)) is None

    def test_two_rows_for_a_key_are_refused(self) -> None:
        table = rates(("EUR", "USD", 1.1, AT, None), ("USD", "EUR", 1.2, AT, None), ("EUR", "USD", 1.3, AT, None))
        for as_of in ("", "since"):
            with pytest.raises(SituError) as caught:
                table.index(("base", "quote"), as_of)
            (problem,) = caught.value.problems
            assert problem.code.code == "S113"
            assert (problem.values["first"], problem.values["second"]) == (1, 3)
            assert "`EUR`" in problem.message
        assert table.index(("rate",)).find((1.3,)) == table.rows[2]

    def test_the_key_of_a_source_tells_its_rows_apart(self) -> None:
        keyed = source("{a: string, d: date}", "key: a")
        with pytest.raises(SituError, match="S113"):
            make_table(keyed, {"a": ["x", "x"], "d": ["2026-11-01", "2026-11-02"]})
        dated = source("{a: string, d: date}", "key: a", "as_of: d")
        assert len(make_table(dated, {"a": ["x", "x"], "d": ["2026-11-01", "2026-11-02"]})) == 2

    def test_the_digest_is_that_of_the_content(self) -> None:
        one, other = ("EUR", "USD", 1.1, AT, None), ("USD", "EUR", 0.9, None, None)
        assert rates(one, other).digest == rates(other, one).digest
        assert rates(one, other) == rates(other, one)
        assert hash(rates(one, other)) == hash(rates(other, one))
        different = [rates(one), rates(one, one), rates(), rates(("EUR", "USD", 1.2, AT, None))]
        assert len({table.digest for table in different}) == 4
        renamed = make_table(source("{a: int}"), {"a": []})
        assert renamed.digest != make_table(source("{b: int}"), {"b": []}).digest
        assert renamed != "a table"

    def test_a_table_travels(self) -> None:
        table = rates(("EUR", "USD", 1.1, AT, None))
        table.index(("base",))
        again = pickle.loads(pickle.dumps(table))
        assert again == table
        assert again.find({"base": "EUR"}) == table.rows[0]

    def test_rows_are_what_expressions_read(self) -> None:
        table = make_table(
            source("{id: string, x: double m, role: optional string, at: optional Corner}"),
            {"id": ["a", "b"], "x": [1, 2], "role": ["guest", None], "at": [{"x": 5}, None]},
        )
        scope = NameScope(variables={"cam": Variable(type=table.row)}, types=TYPES)
        tree = check("struct(cam.x * 2 AS x, coalesce(cam.role, 'none') AS role, cam.at.x AS far)", scope).tree()
        expected = [{"x": 2.0, "role": "guest", "far": 5.0}, {"x": 4.0, "role": "none", "far": None}]
        compiled = compile_value(tree, ["cam"]).call
        for row, result in zip(table.rows, expected, strict=True):
            assert interpret(tree, {"cam": row}) == result
            assert compiled(row) == result

    def test_wrong_questions_are_mistakes_of_the_caller(self) -> None:
        table = rates()
        for columns, as_of in (((), ""), (("gone",), ""), (("base",), "rate"), (("base",), "gone")):
            with pytest.raises(ValueError, match="no rows can be found"):
                table.index(columns, as_of)

    def test_which_columns_find_rows(self) -> None:
        assert may_be_key(Named("TagId", STRING))
        assert not may_be_key(ListOf(STRING))
        assert may_be_as_of(TIMESTAMP)
        assert may_be_as_of(Named("Day", DATE))
        assert not may_be_as_of(DOUBLE)


def test_json_documents_declare_sources_too() -> None:
    problems = Problems()
    document = parse_json('{"pull": {"s": {"csv": "a", "columns": {"a": "string"}}}}', "a.json")
    assert list(load_sources([document], TYPES, problems)) == ["s"]
