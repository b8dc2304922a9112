"""What the checker refuses: the code, the place, and a remedy that helps."""

from __future__ import annotations

import pytest

from situ.lang.expr.checker.check import check, check_condition
from situ.lang.expr.format import print_expression
from situ.lang.expr.interpret import interpret
from situ.lang.expr.limits import ExpressionLimits
from situ.lang.expr.scope import Definition, Variable, event_scope
from situ.lang.types.model import BOOLEAN, DOUBLE, POINT, STRING, Attribute, Struct
from situ.lang.types.table import Types
from tests.expressions import LINE, ROW, UNITS, M, row_scope

REFUSED = [
    # text, code, column, part of the hint
    ("", "X101", 1, "as in SQL"),
    ("d >", "X101", 3, "as in SQL"),
    ("d = = 1", "X101", 5, "as in SQL"),
    ("d 5", "X101", 3, "as in SQL"),
    ("(d > 1", "X101", 6, "as in SQL"),
    ("s = 'open", "X101", 9, "single quotes"),
    ("d > 1; d > 2", "X101", 1, "as in SQL"),
    ("SELECT d FROM data", "X101", 8, "as in SQL"),
    ("d > 5 []", "X101", 7, "as in SQL"),
    ("dd > 1", "X102", 1, "`d`"),
    ("at.z > 1", "X102", 1, "`x`, `y`"),
    ("flor(d) > 1", "X102", 1, "`floor`"),
    ("d > 5 metrs", "X102", 5, "units:"),
    ("m > 5 km/h", "X102", 10, "`5 [km/h]`"),
    ("s IS Row2", "X102", 6, "name of a type"),
    ("d > 'a'", "X103", 5, "without quotes"),
    ("d AND b", "X103", 1, ""),
    ("ts > '2026-11-01T00:00:00Z'", "X103", 6, "TIMESTAMP"),
    ("TIMESTAMP '2026-11-01T00:00:00' < ts", "X103", 11, "+01:00"),
    ("DATE '2026-02-30' = date", "X103", 6, "DATE '2026-11-01'"),
    ("dur > DURATION 'P1M'", "X103", 16, "without months"),
    ("lines.qty > 1", "X103", 1, "exists"),
    ("lines = lines_", "X103", 1, "attributes"),
    ("b < b_", "X103", 1, ""),
    ("ts + ts > ts", "X103", 6, ""),
    ("CASE WHEN b THEN 1 ELSE 'x' END = 1", "X103", 25, "without quotes"),
    ("12345678901234567890123456789012345678901 > d", "X103", 1, ""),
    ("d > 1e999", "X103", 5, ""),
    ("dec * 1e30 > 10000000000000000000000000000000000000", "X103", 1, "to_decimal"),
    ("m > 5 s", "X104", 5, "different things"),
    ("m > d", "X104", 5, "Declare what has no unit"),
    ("m + t > 1", "X104", 1, "different things"),
    ("t + t > 20 degC", "X104", 5, "delta_degC"),
    ("dur > 5", "X104", 7, "`5 s`"),
    ("sin(m) > 0", "X104", 5, ""),
    ("sqrt(m) > 1", "X104", 6, ""),
    ("m > 5 EUR", "X104", 5, "function"),
    ("d / 0 > 1", "X105", 5, "dead letter"),
    ("d > 1 / (2 - 2)", "X105", 5, "dead letter"),
    ("to_double('3,5') > d", "X105", 1, "dead letter"),
    ("9223372036854775807 + 1 > l", "X105", 1, "dead letter"),
    ("floor('a') = 1", "X106", 1, "floor(double) -> long"),
    ("substring(s) = 'a'", "X106", 1, "substring(string, long[, long])"),
    ("s LIKE s_", "X106", 8, "x LIKE 'a%'"),
    ("round(d, i) = 1", "X106", 10, "round(double[, int])"),
    ("round(d, 99) = 1", "X106", 1, "round"),
    ("format_time(ts, 'YYYY', 'UTC') = 'a'", "X106", 1, "format_time"),
    ("hour(ts, 'Mars/Olympus') = 1", "X106", 1, "hour"),
    ("hour(ts, 'EST') = 1", "X106", 1, "hour"),
    ("exists(d, x -> x)", "X106", 8, "exists(list, x -> …)"),
    ("exists(lines, d > 1)", "X106", 1, "exists(list, x -> …)"),
    ("struct(d + 1).a > 1", "X106", 8, "struct(a AS x"),
    ("inside(d, at)", "X106", 1, "inside(a, b)"),
    ("if(b, 1) = 1", "X106", 1, "if(condition, a, b)"),
    ("coalesce() = 1", "X106", 1, "coalesce(a, b)"),
    ("d::int > 1", "X101", 2, "as in SQL"),
    ("CAST(d AS int) > 1", "X102", 1, "to_long"),
    ("now() > ts", "X102", 1, "event.time"),
    ("d > (SELECT 1)", "X101", 13, "as in SQL"),
    ("lines[1].qty > 1", "X107", 1, "operators and functions"),
    ("exists(lines, x -> exists(lines_, y -> y.qty = x.qty))", "X107", 27, "operators and functions"),
    ("count(*) > 1", "X107", 7, "operators and functions"),
    ("d AS x", "X101", 3, "as in SQL"),
    ("((" * 40 + "d" + "))" * 40 + " > 1", "X108", 65, "limits:"),
    (" AND ".join(["d > 1"] * 400), "X108", 3331, "limits:"),
    ("s IN (" + ", ".join(f"'{n}'" for n in range(5000)) + ")", "X108", 1, "limits:"),
    ("'" + "x" * 200_000 + "' = s", "X108", 1, "limits:"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "column", "hint"), REFUSED, ids=[row[0][:40] for row in REFUSED])
def test_refused(text: str, code: str, column: int, hint: str) -> None:
    checked = check_condition(text, row_scope())
    assert checked.node is None
    first = checked.problems[0]
    assert (first.code.code, first.location and first.location.column) == (code, column), first
    assert hint in first.hint


def test_all_problems_of_an_expression_at_once() -> None:
    checked = check_condition("dd > 1 AND flor(e) = 2 AND m > 5 s OR lines.qty = 1", row_scope())
    assert [problem.code.code for problem in checked.problems] == ["X102", "X102", "X104", "X103"]


def test_limits_can_be_raised() -> None:
    text = " AND ".join(["d > 1"] * 400)
    assert check_condition(text, row_scope()).node is None
    wide = event_scope(ROW, units=UNITS, limits=ExpressionLimits(nodes=5000))
    assert check_condition(text, wide).node is not None


def test_names_of_the_envelope_and_the_payload() -> None:
    scope = event_scope(ROW, units=UNITS)
    for text in (
        "event.time = ts",
        "event.s = data.s",
        "data.s = s",
        "event.id = event.source",
        "event.confidence > 80 %",
    ):
        assert check_condition(text, scope).problems == (), text


def test_quantities_without_brackets() -> None:
    assert check_condition("m < 5 ft AND t > 21 °C AND event.confidence >= 80 %", event_scope(ROW, units=UNITS)).node
    assert check_condition("i % 3 = 1", row_scope()).node, "a percent sign before a number is a remainder"


def test_whole_numbers_in_different_units_meet_as_doubles() -> None:
    assert interpret(check("2 km + 3 m", row_scope()).tree(), {}) == 2.003
    assert check_condition("m > 2 km + 3 m", row_scope()).node is not None


def test_a_function_of_the_project_is_put_in_with_its_units() -> None:
    near_scope = event_scope(ROW, units=UNITS)
    parameters = (
        ("a", Variable(type=POINT, unit=M)),
        ("b", Variable(type=POINT, unit=M)),
        ("limit", Variable(type=DOUBLE, unit=M)),
    )
    inner = type(near_scope)(variables=dict(parameters), units=UNITS)
    body = check("distance(a, b) <= limit", inner, expected=BOOLEAN).tree()
    near = Definition(name="near", parameters=parameters, result=Variable(type=BOOLEAN), body=body)
    scope = event_scope(ROW, units=UNITS, functions={"near": near})
    direct = check_condition("distance(at, at_) <= 500 cm", scope).tree()
    assert check_condition("near(at, at_, 500 cm)", scope).tree() == direct
    wrong = check_condition("near(at, at_, 5 s)", scope)
    assert [problem.code.code for problem in wrong.problems] == ["X104"]
    other_units = check_condition("near(at, struct(1 km AS x, 200 cm AS y), 5 m)", scope).tree()
    assert other_units == check_condition("distance(at.x, at.y, 1000 m, 2 m) <= 5 m", scope).tree()
    assert [p.code.code for p in check_condition("near(at, struct(1 kg AS x, 2 AS y), 5 m)", scope).problems] == [
        "X104"
    ]
    assert [p.code.code for p in check_condition("near(at, struct('a' AS x, 2 AS y), 5 m)", scope).problems] == ["X103"]
    few = check_condition("near(at, at_)", scope)
    assert [problem.code.code for problem in few.problems] == ["X106"]


@pytest.mark.parametrize(
    "text", ["66666666666666666666 / 666 > 6666666666666666666666", "dec = 9007199254740993", "dec * 0.125 > 1.50"]
)
def test_exact_numbers_are_printed_exactly(text: str) -> None:
    node = check(text, row_scope()).tree()
    assert check(print_expression(node), row_scope()).tree() == node


def test_a_conversion_is_printed_so_that_it_reads_back() -> None:
    yards = Struct(
        "Yards", (Attribute(name="m", type=DOUBLE, unit=M), Attribute(name="y", type=DOUBLE, unit=UNITS.parse("yd")))
    )
    scope = event_scope(yards, units=UNITS)
    node = check("m + y", scope).tree()
    assert print_expression(node) == "m + to_unit(y, 'm')"
    assert check("m + to_unit(y, 'm')", scope).tree() == node
    assert interpret(node, {"data": {"m": 1.0, "y": 10.0}}) == pytest.approx(10.144)
    assert check("to_unit(m, 'zzz') > 1", scope).problems[0].code.code == "X102"
    assert check("to_unit(m, m) > 1", scope).problems[0].code.code == "X106"
    assert check("to_unit(m, 's') > 1", scope).problems[0].code.code == "X104"


def test_type_tests_know_subtypes() -> None:
    base = Struct("Base", (Attribute(name="n", type=STRING),))
    derived = Struct("Derived", base.attributes, (base,))
    holder = Struct("Holder", (Attribute(name="part", type=base),))
    types = Types(
        types={t.name: t for t in (base, derived, holder, LINE)},
        events=frozenset({"Base", "Derived", "Holder"}),
        units=UNITS,
    )
    event = check_condition("type IS Base", event_scope(base, types=types)).tree()
    for name, expected in (("Base", True), ("Derived", True), ("Holder", False)):
        assert interpret(event, {"event": {"type": name}, "data": {}}) is expected
    part = check_condition("part IS Derived", event_scope(holder, types=types)).tree()
    assert interpret(part, {"data": {"part": {"n": "a"}}}) is False
    assert interpret(part, {"data": {"part": {"n": "a", "$type": "Derived"}}}) is True
